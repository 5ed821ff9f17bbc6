"""Run sessions on a scenario's arrays: ask, get a noisy verdict, credit it, and rank held-out questions again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning.arms import UNATTRIBUTED_WEIGHT, Arm, Told
from benchmarks.learning.scenario import Scenario
from runtime_memory.outcomes import HALF_LIFE_DAYS
from runtime_memory.recall import RECORD_MARGIN

__all__ = ["LIMIT", "SESSION_DAYS", "Course", "Plan", "draw", "oracle", "ranked", "run"]

LIMIT = 8
"""Memories recalled a turn."""
SESSION_DAYS = 3
Integers = NDArray[np.intp]
Numbers = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Plan:
    """What chance decides, the same for every arm: S seeds, N sessions, T topics, Q questions.

    ``asked`` (S, N, T) is the row of the question that a session asks about a topic, -1 for none. ``held_out`` (S, Q)
    are human questions about a trained topic that no session asks. ``wrong`` and ``named`` (S, N, T) tell of each
    verdict whether it is wrong, and whether it names the memory.
    """

    asked: Integers
    held_out: Booleans
    wrong: Booleans
    named: Booleans


@dataclass(frozen=True)
class Course:
    """What was measured before the first session and after each (N + 1, S, Q); NaN for questions not measured.

    ``reciprocal`` is 1 / rank of the first right memory, ``first`` whether a wrong one leads, ``ahead`` whether a wrong
    one is before the first right one.
    """

    reciprocal: Numbers
    first: Numbers
    ahead: Numbers


def draw(scenario: Scenario, seeds: int, sessions: int, *, noise: float, unnamed: float = 0.5) -> Plan:
    """Draw the chances: which questions are held out and asked, which verdicts are wrong, and which name no memory.

    Questions of the data set are divided at random where a topic has no made-up ones; a topic is trained when it has a
    question on either side.
    """
    count, topics = scenario.about.shape
    asked = np.full((seeds, sessions, topics), -1)
    held = np.zeros((seeds, count), bool)
    luck = np.empty((seeds, sessions, topics))
    named = np.empty((seeds, sessions, topics), bool)
    made_up = bool((~scenario.human).any())
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        training = ~scenario.human if made_up else _divide(scenario, rng)
        both = (scenario.about & training[:, None]).any(0) & (scenario.about & ~training[:, None]).any(0)
        for topic in np.flatnonzero(both):
            rows = np.flatnonzero(scenario.about[:, topic] & training)
            asked[seed, :, topic] = rng.choice(rows, sessions)
        held[seed] = scenario.human & ~training & (scenario.about & both).any(1)
        luck[seed] = rng.random((sessions, topics))
        named[seed] = rng.random((sessions, topics)) >= unnamed
    return Plan(asked, held, luck < noise, named)


def run(scenario: Scenario, arm: Arm, outcome_weight: float, plan: Plan, *, blame: int = 0) -> Course:
    """Return what the sessions of a plan do to the ranks; ``blame`` fails every true memory so often beforehand."""
    seeds, sessions, _ = plan.asked.shape
    shape = (seeds, scenario.topic_of.size)
    told = Told(*(np.zeros(shape) for _ in range(4)))
    measured = plan.held_out | scenario.untouched
    rows = np.flatnonzero(measured.any(0))
    course = Course(*(np.full((sessions + 1, seeds, scenario.human.size), np.nan) for _ in range(3)))
    truths = _truths(scenario)
    for _ in range(blame):
        _credit(told, np.arange(seeds).repeat(truths.size), np.tile(truths, seeds), np.zeros(seeds * truths.size), 1.0)
    for session in range(sessions + 1):
        if session:
            _hold(scenario, arm, told, plan, outcome_weight=outcome_weight, session=session - 1)
        _measure(scenario, ranked(scenario, arm, told, rows, outcome_weight), rows, course, session)
    for values in (course.reciprocal, course.first, course.ahead):
        values[:, ~measured] = np.nan
    return course


def oracle(scenario: Scenario) -> Numbers:
    """Return 1 / rank of the first right memory (Q) where no rival is in the store."""
    key = np.where(scenario.role < 0, -np.inf, scenario.fused)
    rank = _rank(key[None], scenario.role[None] > 0)
    return np.where(rank > 2 * LIMIT, 0.0, 1 / rank)[0]


def ranked(scenario: Scenario, arm: Arm, told: Told, rows: Integers, outcome_weight: float) -> Numbers:
    """Return final scores (S, R, K) of the candidates of questions (R rows); -inf for what recall does not look at.

    The same steps as in the store: outcomes move the most relevant twice as many as recalled, and one more for each
    that is failing; of two that contradict each other the better record goes first where the arm has that rule, and
    else the newer where they match equally; failing ones are left out.
    """
    scores = arm.score(told)
    failing = scores <= arm.failing
    candidates = scenario.candidates[rows]
    outcome = scores[:, candidates]
    pool = 2 * (LIMIT + failing.astype(np.float32) @ scenario.found[rows].T)
    inside = (np.arange(candidates.shape[1]) < pool[:, :, None]) & (candidates >= 0)
    key = np.where(inside, scenario.fused[rows] * (1 + outcome_weight * outcome), -np.inf)
    if arm.settles:
        contrary = scenario.contrary[rows]
        for pairs in (contrary, contrary[..., ::-1]):
            _put_first(pairs, key, outcome, least=RECORD_MARGIN)
        _put_first(scenario.newer[rows], key, outcome, least=-RECORD_MARGIN)
    else:
        _put_first(scenario.newer[rows], key, outcome, least=0.0)
    return np.where(failing[:, candidates], -np.inf, key)


def _divide(scenario: Scenario, rng: np.random.Generator) -> Booleans:
    """Divide the questions about topics at random into those to train with and those to hold out, topic by topic."""
    side = rng.random(scenario.human.size) < 0.5
    fixed = np.zeros(side.size, bool)
    for topic in rng.permutation(scenario.about.shape[1]):
        rows = rng.permutation(np.flatnonzero(scenario.about[:, topic]))
        free = rows[~fixed[rows]]
        if side[rows].all() or not side[rows].any():
            side[free[:1]] = ~side[free[:1]]
        fixed[rows] = True
    return side & scenario.about.any(1)


def _hold(scenario: Scenario, arm: Arm, told: Told, plan: Plan, *, outcome_weight: float, session: int) -> None:
    """Ask a session's questions, and credit the verdicts when all are asked."""
    asked = plan.asked[:, session]
    fading = 0.5 ** (SESSION_DAYS / HALF_LIFE_DAYS)
    told.worked *= fading
    told.failed *= fading
    rows = np.unique(asked[asked >= 0])
    key = ranked(scenario, arm, told, rows, outcome_weight)
    seed, topic = np.nonzero(asked >= 0)
    row = np.searchsorted(rows, asked[seed, topic])
    keys = key[seed, row]
    order = np.argsort(-keys, axis=1, kind="stable")[:, :LIMIT]
    there = np.take_along_axis(keys, order, 1) > -np.inf
    block = np.take_along_axis(scenario.candidates[rows[row]], order, 1)
    role = np.where(there, np.take_along_axis(scenario.role[rows[row]], order, 1), 0)
    acted = (role != 0).argmax(1)
    used = (role != 0).any(1)
    each = np.arange(seed.size)
    worked = (role[each, acted] > 0) ^ plan.wrong[seed, session, topic]
    named = plan.named[seed, session, topic]
    for memory, found in zip(block.T, there.T, strict=True):
        np.add.at(told.recalled, (seed[found], memory[found]), 1)
    by_name = used & named
    _credit(told, seed[by_name], block[by_name, acted[by_name]], worked[by_name], 1.0)
    if arm.credit == "named":
        return
    total = UNATTRIBUTED_WEIGHT if arm.credit == "shared" else there.sum(1)
    share = total / np.maximum(1, there.sum(1))
    for memory, found in zip(block.T, there.T, strict=True):
        chosen = used & ~named & found
        _credit(told, seed[chosen], memory[chosen], worked[chosen], share[chosen])


def _credit(told: Told, seed: Integers, memory: Integers, worked: NDArray, weight: NDArray | float) -> None:
    worked = worked.astype(float)
    np.add.at(told.worked, (seed, memory), worked * weight)
    np.add.at(told.failed, (seed, memory), (1 - worked) * weight)
    np.add.at(told.steps, (seed, memory), np.where(worked > 0, 0.2, -0.3) * weight)
    np.clip(told.steps, -1, 1, out=told.steps)


def _measure(scenario: Scenario, key: Numbers, rows: Integers, course: Course, session: int) -> None:
    role = np.broadcast_to(scenario.role[rows], key.shape)
    right = _rank(key, role > 0)
    wrong = _rank(key, role < 0)
    course.reciprocal[session][:, rows] = 1 / right
    course.first[session][:, rows] = wrong == 1
    course.ahead[session][:, rows] = wrong < right


def _rank(key: Numbers, chosen: Booleans) -> Numbers:
    """Return the rank of the best of the chosen, infinite where none is left."""
    best = np.where(chosen, key, -np.inf).max(-1, keepdims=True)
    place = np.where(chosen & (key == best), np.arange(key.shape[-1]), key.shape[-1]).min(-1, keepdims=True)
    ahead = (key > best) | ((key == best) & (np.arange(key.shape[-1]) < place))
    return np.where(np.isfinite(best[..., 0]), 1.0 + ahead.sum(-1), np.inf)


def _put_first(pairs: Integers, key: Numbers, outcome: Numbers, *, least: float) -> None:
    """Put the first of each pair before the second, in place, where its record is better by at least so much."""
    for number in range(pairs.shape[1]):
        rows = np.flatnonzero(pairs[:, number, 0] >= 0)
        if not rows.size:
            return
        late, early = pairs[rows, number].T
        behind = (key[:, rows, late] < key[:, rows, early]) | (
            (key[:, rows, late] == key[:, rows, early]) & (late > early)
        )
        better = outcome[:, rows, late] - outcome[:, rows, early] >= least
        moves = behind & better & (key[:, rows, late] > -np.inf)
        key[:, rows, late] = np.where(moves, np.nextafter(key[:, rows, early], np.inf), key[:, rows, late])


def _truths(scenario: Scenario) -> Integers:
    place = {document: number for number, document in enumerate(scenario.documents)}
    return np.array([place[topic.truth] for topic in scenario.world.topics])
