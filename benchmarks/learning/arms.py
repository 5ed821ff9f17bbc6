"""Ways to turn verdicts into a score of each memory, as arrays; the store's own scoring is one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from provider.conversation import UNATTRIBUTED_WEIGHT
from runtime_memory.outcomes import FAILING_SCORE, PRIOR_STRENGTH

__all__ = ["ARMS", "NONE", "OURS", "UNATTRIBUTED_WEIGHT", "Arm", "Credit", "Told"]

Numbers = NDArray[np.float64]
Credit = Literal["named", "shared", "full"]


@dataclass
class Told:
    """What an arm was told of each memory (S simulations, D memories): reports weighed, faded where the arm fades them.

    ``worked`` and ``failed`` are sums of weights, ``steps`` is the clamped sum of steps, ``recalled`` counts recalls.
    """

    worked: Numbers
    failed: Numbers
    steps: Numbers
    recalled: Numbers


@dataclass(frozen=True)
class Arm:
    """A way of scoring: what a verdict without a name is credited to, and at which score a memory is left out.

    ``settles`` tells whether the record decides between memories that contradict each other.
    """

    name: str
    score: Callable[[Told], Numbers]
    credit: Credit = "named"
    failing: float = -np.inf
    settles: bool = False


def _none(told: Told) -> Numbers:
    return np.zeros_like(told.worked)


def _ours(told: Told) -> Numbers:
    worked, failed = told.worked, told.failed * 12 / 7
    return (worked - failed) / (worked + failed + PRIOR_STRENGTH)


def _steps(told: Told) -> Numbers:
    return told.steps


def _counts(told: Told) -> Numbers:
    """Score as runtime-memory 4.0.1 does: a failure weighs 1.5 successes, against two expected of neither kind."""
    failed = 1.5 * told.failed
    return (told.worked - failed) / (told.worked + failed + 2.0)


def _frequency(told: Told) -> Numbers:
    """Score by recalls alone, on the logarithmic scale of runtime-memory 3.0.0 that reaches 1 at about a hundred."""
    return np.minimum(1.0, np.log1p(told.recalled) / np.log(101.0))


OURS, NONE = "ours", "no feedback"
ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(NONE, _none),
        Arm(OURS, _ours, "shared", FAILING_SCORE, settles=True),
        Arm("ours, named only", _ours, "named", FAILING_SCORE, settles=True),
        Arm("ours, without settling", _ours, "shared", FAILING_SCORE),
        Arm("additive, in full", _steps, "full"),
        Arm("additive, shared", _steps, "shared"),
        Arm("additive, named only", _steps, "named"),
        Arm("counts 4.x", _counts, "named", -0.5),
        Arm("counts 4.x, shared", _counts, "shared", -0.5),
        Arm("frequency", _frequency),
    )
}
