"""The learning benchmark's rivals, its held-out questions, and its arrays, which must do what the real store does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pytest

from benchmarks.datasets import Dataset, sample_datasets
from benchmarks.learning.arms import ARMS, NONE, OURS, Told
from benchmarks.learning.rivals import Vocabulary, contradicted, cue
from benchmarks.learning.scenario import NOW, Scenario, World, build, filled, world
from benchmarks.learning.simulate import LIMIT, SESSION_DAYS, Plan, draw, oracle, ranked, run
from indexes.fusion import Fusion
from provider.conversation import UNATTRIBUTED_WEIGHT
from runtime_memory import MemoryStore, Outcome
from runtime_memory.outcomes import FAILING_SCORE
from runtime_memory.recall import RECORD_MARGIN
from tests.conftest import Clock, OpenStore, WideEmbedder

SESSIONS = 2
TEXTS = [
    "[8 May 2023] Mara: the staging database listens on port 5433",
    "We meet Tomas every Tuesday at nine",
    "the pump is not running at night",
    "ok",
]


@pytest.fixture(scope="module")
def made() -> World:
    """Return the sample's memories of one scope, ten of them with a rival."""
    whole = next(each for each in sample_datasets() if each.name == "sample-conversations")
    scopes = {id_: scope for id_, scope in whole.scopes.items() if scope == "atlas"}
    return world(
        Dataset(
            "atlas",
            {id_: text for id_, text in whole.documents.items() if id_ in scopes},
            {id_: text for id_, text in whole.queries.items() if id_ in scopes},
            {id_: judged for id_, judged in whole.qrels.items() if id_ in scopes},
            scopes,
        ),
        seed=1,
        limit=10,
    )


@pytest.fixture(scope="module")
def scenario(made: World) -> Scenario:
    return build(made, WideEmbedder(), Fusion())


@pytest.mark.parametrize("text", TEXTS)
def test_a_rival_differs_from_the_truth_and_is_the_same_for_the_same_seed(text: str) -> None:
    vocabulary = Vocabulary(TEXTS)
    for seed in range(30):
        wrong = contradicted(text, vocabulary, random.Random(seed))
        assert wrong != text
        assert wrong == contradicted(text, vocabulary, random.Random(seed))


def test_a_rival_keeps_the_date_and_the_speaker_of_a_turn() -> None:
    wrong = {contradicted(TEXTS[0], Vocabulary(TEXTS), random.Random(seed)) for seed in range(30)}
    assert all(each.startswith("[8 May 2023] Mara: ") for each in wrong)
    assert len(wrong) > 3


def test_a_made_up_question_has_words_of_the_memory_alone() -> None:
    asked = cue(TEXTS[0], random.Random(0)).removeprefix("what do we know about ").removesuffix("?")
    assert set(asked.split()) <= set(TEXTS[0].split())


def test_no_held_out_question_is_ever_asked(scenario: Scenario) -> None:
    plan = draw(scenario, seeds=4, sessions=6, noise=0.2)
    for seed in range(4):
        assert not set(plan.asked[seed].ravel()) & set(np.flatnonzero(plan.held_out[seed]))
    assert plan.held_out.any(1).all()
    assert not (plan.held_out & scenario.untouched).any()


def test_without_feedback_nothing_changes_and_nobody_beats_an_oracle_then(scenario: Scenario) -> None:
    plan = draw(scenario, seeds=2, sessions=3, noise=0.2)
    course = run(scenario, ARMS[NONE], 0.0, plan)
    assert np.array_equal(course.reciprocal[0], course.reciprocal[-1], equal_nan=True)
    held = plan.held_out[0]
    assert (oracle(scenario)[held] >= course.reciprocal[0][0, held]).all()


def test_true_verdicts_put_the_right_memory_first_and_wrong_ones_do_not(scenario: Scenario) -> None:
    told = [run(scenario, ARMS[OURS], 0.1, draw(scenario, 3, 8, noise=noise, unnamed=0)) for noise in (0.0, 1.0)]
    honest, lying = (float(np.nanmean(course.ahead[-1])) for course in told)
    assert honest < float(np.nanmean(told[0].ahead[0])) < lying


def test_the_arrays_rank_as_the_store_does_after_sessions_with_noisy_verdicts(
    made: World, scenario: Scenario, open_store: OpenStore, clock: Clock
) -> None:
    plan = draw(scenario, seeds=1, sessions=SESSIONS, noise=0.2)
    clock.now = NOW
    store = open_store(embedder=WideEmbedder())
    stored = filled(made, store)
    scores = _replayed(made, scenario, plan, store, stored, clock)
    assert sum(score != 0 for score in scores.values()) > LIMIT
    assert min(scores.values()) > FAILING_SCORE
    told = _told(scenario, plan)
    for document, score in zip(scenario.documents, ARMS[OURS].score(told)[0], strict=True):
        assert score == pytest.approx(scores[stored[document]], abs=1e-9)
    rows = np.arange(len(made.questions))
    key = ranked(scenario, ARMS[OURS], told, rows, Fusion().outcome_weight)[0]
    for row, found in enumerate(_searched(made, store)):
        order = np.argsort(-key[row], kind="stable")[:LIMIT]
        assert [stored[scenario.documents[scenario.candidates[row, place]]] for place in order] == found


def test_unjust_blame_costs_ranks_that_later_verdicts_give_back(scenario: Scenario) -> None:
    plan = draw(scenario, seeds=3, sessions=12, noise=0.0, unnamed=0)
    course = run(scenario, ARMS[OURS], Fusion().outcome_weight, plan, blame=1)
    blameless = run(scenario, ARMS[OURS], Fusion().outcome_weight, plan)
    held = plan.held_out
    assert course.reciprocal[0][held].mean() < blameless.reciprocal[0][held].mean()
    assert course.reciprocal[-1][held].mean() > course.reciprocal[0][held].mean()


def test_what_a_few_unnamed_verdicts_make_does_not_decide_between_contradicting_memories() -> None:
    told = Told(*(np.zeros((1, 1)) for _ in range(4)))
    told.worked += 4 * UNATTRIBUTED_WEIGHT / LIMIT
    assert 0 < ARMS[OURS].score(told)[0, 0] < RECORD_MARGIN
    told.worked[:] = 1
    assert ARMS[OURS].score(told)[0, 0] > RECORD_MARGIN


def _told(scenario: Scenario, plan: Plan) -> Told:
    """Return what the simulation has been told at the end: the arm keeps it in what it scores."""
    kept: list[Told] = []
    arm = ARMS[OURS]

    def score(told: Told) -> np.ndarray:
        kept[:] = [Told(*(getattr(told, name).copy() for name in ("worked", "failed", "steps", "recalled")))]
        return arm.score(told)

    spying = type(arm)(arm.name, score, arm.credit, arm.failing, arm.settles)
    run(scenario, spying, Fusion().outcome_weight, plan)
    return kept[0]


def _replayed(
    made: World, scenario: Scenario, plan: Plan, store: MemoryStore, stored: dict[str, str], clock: Clock
) -> dict[str, float]:
    """Hold the plan's sessions in the store, by its public face, and return the outcome scores."""
    for session in range(SESSIONS):
        clock.now += timedelta(days=SESSION_DAYS)
        reports = []
        blocks = dict(enumerate(_searched(made, store)))
        for topic, row in enumerate(plan.asked[0, session]):
            if row < 0:
                continue
            question, block = made.questions[row], blocks[row]
            right = {stored[document] for document in question.relevant}
            rivals = {stored[r] for t in made.topics if t.truth in question.about for r in t.rivals}
            acted = next((id_ for id_ in block if id_ in right | rivals), None)
            if acted is None:
                continue
            worked = (acted in right) != bool(plan.wrong[0, session, topic])
            named = bool(plan.named[0, session, topic])
            reports.append(([acted] if named else block, worked, 1.0 if named else UNATTRIBUTED_WEIGHT / len(block)))
        for ids, worked, weight in reports:
            store.record_outcome(ids, Outcome.WORKED if worked else Outcome.FAILED, weight=weight)
    return {memory.id: memory.outcome_score for memory in store.list()}


def _searched(made: World, store: MemoryStore) -> Iterator[list[str]]:
    for question in made.questions:
        yield [hit.memory.id for hit in store.search(question.text, project=question.scope, limit=LIMIT)]
