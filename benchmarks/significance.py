"""Tell a difference from noise: bootstrap intervals and paired randomisation tests, over queries, with seeds.

Queries are taken as independent. Those of one conversation are a little alike, so that intervals are somewhat narrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RESAMPLES", "Compared", "compare", "interval"]

Floats = NDArray[np.float64]

RESAMPLES = 10_000
_CHUNK = 500


@dataclass(frozen=True)
class Compared:
    """A setting against the default: the mean difference, its 95 % interval, and what chance would give.

    ``p`` is the two-sided p-value of this comparison alone; ``adjusted`` is the chance that the greatest difference of
    all settings compared along with it would be as great, were there no difference at all.
    """

    difference: float
    low: float
    high: float
    p: float
    adjusted: float

    @property
    def real(self) -> bool:
        """Tell whether the difference is more than noise, at 5 % over all that was compared."""
        return self.adjusted < 0.05


def interval(values: Floats, *, seed: int, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a mean."""
    means = _resampled(values[None, :], seed, resamples)[0]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def compare(settings: Floats, default: Floats, *, seed: int, resamples: int = RESAMPLES) -> list[Compared]:
    """Compare settings to the default, query by query.

    The test flips the sign of each query's differences at random, all settings together, so that their dependence is
    kept; p-values over many settings follow from the greatest studentised difference (Westfall and Young, 1993).

    Args:
        settings: one row a setting, shape (settings, queries).
        default: shape (queries,).
        seed: of the random numbers.
        resamples: of the bootstrap, and of the test.
    """
    differences = settings - default
    count = differences.shape[1]
    bounds = np.percentile(_resampled(differences, seed, resamples), [2.5, 97.5], axis=1)
    # The root mean square stays the same whatever the signs, so that only sums need to be drawn.
    spread = np.sqrt((differences**2).sum(1))
    spread = np.where(spread > 0, spread, np.inf)
    observed = np.abs(differences.sum(1)) / spread
    alone, jointly = np.ones(len(settings)), np.ones(len(settings))
    random = np.random.default_rng(seed)
    for size in _sizes(resamples):
        signs = random.integers(0, 2, (count, size)) * 2.0 - 1.0
        drawn = np.abs(differences @ signs) / spread[:, None]
        alone += (drawn >= observed[:, None] - 1e-12).sum(1)
        jointly += (drawn.max(0) >= observed[:, None] - 1e-12).sum(1)
    return [
        Compared(*(float(value) for value in row))
        for row in zip(differences.mean(1), *bounds, alone / (resamples + 1), jointly / (resamples + 1), strict=True)
    ]


def _resampled(values: Floats, seed: int, resamples: int) -> Floats:
    """Return the means of queries drawn with replacement, the same draws for every row: shape (rows, resamples)."""
    count = values.shape[1]
    random = np.random.default_rng(seed)
    shares = np.full(count, 1 / count)
    means = [values @ random.multinomial(count, shares, size).T / count for size in _sizes(resamples)]
    return np.concatenate(means, axis=1)


def _sizes(resamples: int) -> list[int]:
    return [min(_CHUNK, resamples - start) for start in range(0, resamples, _CHUNK)]
