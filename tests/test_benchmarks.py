"""The benchmarks: measures, fusions on arrays, what is noise, held-out choices, and what a run leaves behind."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
import pytest
import typer
from numpy.typing import NDArray
from typer.testing import CliRunner

from benchmarks import fusion, gate, options, published, quality, results, significance, sweep
from benchmarks.__main__ import app
from benchmarks.candidates import Candidates, collect
from benchmarks.datasets import Dataset, sample_datasets, sampled
from benchmarks.embedding_cache import CachedEmbedder
from benchmarks.evaluate import evaluate
from benchmarks.fusion import SHIPPED, Swept
from benchmarks.metrics import measures, official
from benchmarks.no_harm import moved
from indexes.fusion import Fusion, apply_outcomes, fuse
from runtime_memory import relevance
from tests.conftest import WideEmbedder

OTHER_FUSION = Fusion(k=60, text_weight=1.4, vector_weight=0.6, alpha=0.7, rank_share=0.25, depth=3)


@pytest.fixture(scope="module")
def small() -> Dataset:
    """Return the sample conversations with a few questions, one document of them twice."""
    dataset = next(each for each in sample_datasets() if each.name == "sample-conversations")
    first = next(iter(dataset.documents))
    documents = {**dataset.documents, "copy": dataset.documents[first]}
    scopes = {**dataset.scopes, "copy": dataset.scopes[first]}
    kept = sampled(dataset, 40, seed=3)
    return replace(kept, name="small-conversations", documents=documents, scopes=scopes, foreign=dataset.foreign[:4])


@pytest.fixture(scope="module")
def candidates(small: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Candidates:
    return collect(small, WideEmbedder(), tmp_path_factory.mktemp("candidates"))


@pytest.fixture(scope="module")
def pool(candidates: Candidates) -> sweep.Pool:
    return sweep.pool(candidates)


@pytest.fixture
def results_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the commands write below the test's own folder, with an embedder that takes no time."""
    monkeypatch.setattr(options, "embedder", lambda model: WideEmbedder())
    monkeypatch.setattr(options, "CANDIDATES", tmp_path / "candidates")
    monkeypatch.setattr(quality, "FOLDER", tmp_path)
    save = results.Report.save
    monkeypatch.setattr(results.Report, "save", lambda report: save(report, tmp_path))
    return tmp_path


# Measures


def test_measures_worked_out_by_hand() -> None:
    """Three are relevant, two of them found, at ranks 2 and 7: gains 1 / log2(3) and 1 / log2(8)."""
    best = 1 + 1 / math.log2(3) + 1 / 2
    expected = {
        "any@5": 1.0,
        "any@10": 1.0,
        "nDCG@5": 1 / math.log2(3) / best,
        "nDCG@10": (1 / math.log2(3) + 1 / 3) / best,
        "R@5": 1 / 3,
        "R@10": 2 / 3,
    }
    gains = np.array([[0, 1, 0, 0, 0, 0, 1, 0, 0, 0]], float)
    ideal = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0, 0]], float)
    assert {name: values[0] for name, values in measures(gains, ideal).items()} == pytest.approx(expected)

    documents = [f"d{rank}" for rank in range(1, 11)]
    dataset = Dataset("hand", dict.fromkeys([*documents, "lost"], ""), {"q": ""}, {"q": {"d2": 1, "d7": 1, "lost": 1}})
    memories = {document: number for number, document in enumerate(dataset.documents)}
    by_library = quality.measure(dataset, {"q": documents}, memories)
    assert by_library == pytest.approx({name: expected[name] for name in by_library})


def test_measures_on_arrays_are_those_of_the_library(candidates: Candidates, pool: sweep.Pool) -> None:
    scored = sweep.scores(pool, OTHER_FUSION)
    ours = pool.evaluate(scored)
    ranked = quality.rankings(candidates)["default"]
    by_library = quality.measure(candidates.dataset, ranked, candidates.memories)
    of_default = pool.evaluate(sweep.scores(pool, SHIPPED))
    assert by_library == pytest.approx({name: of_default[name].mean() for name in by_library})
    assert ours["nDCG@10"].mean() != of_default["nDCG@10"].mean()


def test_official_measures_of_longmemeval_worked_out_by_hand() -> None:
    """Its discount leaves rank 2 at full worth: ranks 2 and 6 have 1 and 1 / log2(6), the best two 1 and 1."""
    values = official(["a", "X", "b", "c", "d", "Y"], {"X", "Y"})
    assert values == pytest.approx(
        {
            "recall_all@5": 0.0,
            "ndcg_any@5": 1 / 2,
            "recall_all@10": 1.0,
            "ndcg_any@10": (1 + 1 / math.log2(6)) / 2,
        }
    )


def test_a_ranking_survives_the_way_through_trec_files(candidates: Candidates, tmp_path: Path) -> None:
    ranked = quality.rankings(candidates)
    quality.keep_runs(candidates.dataset, ranked, tmp_path)
    name = candidates.dataset.name
    measured = evaluate(tmp_path / f"{name}.rrf-k-60.run", tmp_path / f"{name}.qrels", ["Success@10", "nDCG@10"])
    expected = quality.measure(candidates.dataset, ranked["RRF, k = 60"], candidates.memories)
    assert measured == pytest.approx({"Success@10": expected["any@10"], "nDCG@10": expected["nDCG@10"]})
    lines = list(ir_measures.read_trec_run(str(tmp_path / f"{name}.rrf-k-60.run")))
    assert len(lines) == sum(map(len, ranked["RRF, k = 60"].values()))


# Candidates and fusions


@pytest.mark.parametrize(
    "setting", [SHIPPED, OTHER_FUSION, replace(SHIPPED, rank_share=1), replace(SHIPPED, alpha=0.9)]
)
def test_scores_on_arrays_are_those_of_the_store(candidates: Candidates, pool: sweep.Pool, setting: Fusion) -> None:
    scored = sweep.scores(pool, setting)
    for row in range(len(candidates.queries)):
        text, vectors = candidates.arms(row)
        expected = fuse(text[: setting.depth], vectors[: setting.depth], setting)
        shown = {
            f"{memory:09}": score
            for memory, score in zip(pool.memory[row], scored[row], strict=True)
            if score > -np.inf
        }
        assert shown == pytest.approx(expected)


def test_the_sweep_evaluates_each_setting_as_alone(pool: sweep.Pool) -> None:
    evaluated = list(sweep.sweep(pool, depths=[100]))
    assert len({setting for setting, _ in evaluated}) == len(evaluated)
    for setting, values in evaluated[:: len(evaluated) // 25]:
        alone = pool.evaluate(sweep.scores(pool, setting))
        assert values["nDCG@10"] == pytest.approx(alone["nDCG@10"]), setting


def test_candidates_are_found_once(small: Dataset, candidates: Candidates, tmp_path: Path) -> None:
    embedder = WideEmbedder()
    collect(small, embedder, tmp_path)
    embedded = len(embedder.embedded)
    again = collect(small, embedder, tmp_path)
    assert len(embedder.embedded) == embedded > 0
    assert (again.text == candidates.text).all()
    assert (again.vector_scores == candidates.vector_scores).all()
    assert again.memories == candidates.memories
    shorter = replace(small, documents={id_: f"{text} now" for id_, text in small.documents.items()})
    collect(shorter, embedder, tmp_path)
    assert len(embedder.embedded) > embedded


def test_documents_with_one_text_are_one_memory(small: Dataset, candidates: Candidates) -> None:
    first = next(iter(small.documents))
    assert candidates.memories["copy"] == candidates.memories[first]
    assert len(set(candidates.memories.values())) == len(set(small.documents.values()))
    ranked = quality.rankings(candidates)["default"]
    assert not any("copy" in documents for documents in ranked.values())


def test_published_fusions_worked_out_by_hand() -> None:
    """Text finds a (8), b (4); vectors find b (.6), c (.2). Columns are c, b, a."""
    data = sweep.Pool(
        text_rank=np.array([[10**6, 2, 1]]),
        text_score=np.array([[0.0, 4.0, 8.0]]),
        vector_rank=np.array([[2, 1, 10**6]]),
        vector_score=np.array([[0.2, 0.6, 0.0]]),
        vector_lists=np.array([[0.6, 0.2]]),
        memory=np.array([[2, 1, 0]]),
        pairs=np.array([[0, 1, 1]]),
        ideal=np.eye(1, 10),
    )

    def of(score: NDArray[np.float64]) -> list[float]:
        return [float(value) for value in score[0]]

    assert of(published.inverse_square_rank(data, 10)) == pytest.approx([1 / 4, 2 * (1 / 4 + 1), 1])
    assert of(published.comb(data, 10, mnz=False)) == pytest.approx([0, 0 + 1, 1])
    assert of(published.comb(data, 10, mnz=True)) == pytest.approx([0, 2, 1])
    assert of(published.rank_biased_centroid(data, 10, persistence=0.5)) == pytest.approx([0.5, 1.5, 1])
    assert of(published.borda(data, 10)) == pytest.approx([1 + 2, 2 + 3, 3 + 1])
    assert of(published.standardised(data, 10)) == pytest.approx([-1 - 1, -1 + 1, 1 - 1])
    assert of(published.theoretical(data, 10, alpha=0.5)) == pytest.approx([0.5 * 1.2 / 1.6, 0.25 + 0.5, 0.5])
    assert of(published.text_alone(data, 1)) == [-np.inf, -np.inf, 8.0]


def test_no_fusion_shows_what_no_arm_found(pool: sweep.Pool) -> None:
    for name, score in published.FUSIONS.items():
        scored = score(pool, 3)
        text, vectors = pool.found(3)
        found = {"text alone (BM25)": text, "vectors alone": vectors}.get(name, text | vectors)
        assert (np.isfinite(scored) == found).all(), name


def test_outcomes_on_arrays_order_as_in_the_store(candidates: Candidates, pool: sweep.Pool) -> None:
    base = sweep.scores(pool, SHIPPED)
    outcomes = np.where(pool.memory % 3 == 0, -0.5, 0.25) * (pool.memory >= 0)
    after = moved(base, outcomes, 0.4, limit=4)
    for row in range(0, len(candidates.queries), 5):
        shown = [column for column in range(base.shape[1]) if base[row, column] > -np.inf]
        fused = {f"{pool.memory[row, column]:09}": float(base[row, column]) for column in shown}
        known = {f"{pool.memory[row, column]:09}": float(outcomes[row, column]) for column in shown}
        expected = [id_ for id_, _ in apply_outcomes(fused, known, replace(SHIPPED, outcome_weight=0.4), pool=8)]
        order = sorted(shown, key=lambda column: -after[row, column])
        assert [f"{pool.memory[row, column]:09}" for column in order] == expected


def test_an_outcome_weight_changes_nothing_without_outcomes(pool: sweep.Pool) -> None:
    base = sweep.scores(pool, SHIPPED)
    unmoved = pool.evaluate(moved(base, np.zeros(base.shape), 0.7))
    assert {name: values.tolist() for name, values in unmoved.items()} == {
        name: values.tolist() for name, values in pool.evaluate(base).items()
    }


# What is noise


def test_the_same_seed_gives_the_same_interval_and_test() -> None:
    random = np.random.default_rng(0)
    values, default = random.random((2, 50)), random.random(50)
    assert significance.interval(default, seed=1) == significance.interval(default, seed=1)
    assert significance.interval(default, seed=1) != significance.interval(default, seed=2)
    assert significance.compare(values, default, seed=1) == significance.compare(values, default, seed=1)


def test_a_clear_difference_is_real_and_chance_is_noise() -> None:
    random = np.random.default_rng(5)
    default = random.random(200)
    same, better = default + random.normal(0, 0.1, 200), default + random.normal(0.1, 0.1, 200)
    chance, clear, equal = significance.compare(np.stack([same, better, default]), default, seed=1)
    assert clear.real
    assert 0 < clear.low < clear.difference < clear.high
    assert not chance.real
    assert chance.low < 0 < chance.high
    assert (equal.difference, equal.p, equal.adjusted) == (0, 1, 1)


def test_the_best_of_many_chances_is_noise() -> None:
    """One of 200 comparisons without any difference looks real alone, and does not over all of them."""
    random = np.random.default_rng(6)
    default = random.random(100)
    compared = significance.compare(default + random.normal(0, 0.1, (200, 100)), default, seed=1, resamples=2_000)
    assert min(each.p for each in compared) < 0.05
    assert not any(each.real for each in compared)
    assert all(each.adjusted >= each.p for each in compared)


def test_an_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(9)
    covered = 0
    for seed in range(100):
        low, high = significance.interval(random.random(60), seed=seed, resamples=500)
        covered += low <= 0.5 <= high
    assert 85 <= covered <= 100


# Held-out choices and pictures


def _swept(name: str, family: str, *means: float) -> Swept:
    settings = tuple(replace(SHIPPED, k=float(k)) for k in range(1, len(means) + 1))
    return Swept(name, family, settings, np.repeat(np.array(means)[:, None], 10, axis=1), np.full(10, 0.5))


def test_a_setting_is_chosen_without_the_family_held_out() -> None:
    measured = [_swept("a", "a", 0.9, 0.1), _swept("b-1", "b", 0.2, 0.3), _swept("b-2", "b", 0.2, 0.4)]
    assert fusion.best(measured) == 0
    assert fusion.best(measured, without="a") == 1
    assert fusion.best(measured, without="b") == 0
    rows = fusion.held_out(measured, seed=1)
    assert (rows["a"]["of the chosen"], rows["a"]["best possible"]) == pytest.approx((0.1, 0.9))
    assert (rows["b-2"]["of the chosen"], rows["b-2"]["best possible"]) == pytest.approx((0.2, 0.4))


def test_one_family_counts_once_whatever_its_sets() -> None:
    measured = [_swept("a", "a", 0.8, 0.6), _swept("b-1", "b", 0.5, 0.6), _swept("b-2", "b", 0.5, 0.6)]
    assert fusion.best(measured) == 0


def test_values_of_many_sets_side_by_side_have_the_mean_over_families() -> None:
    measured = [_swept("a", "a", 0.9, 0.3), _swept("b-1", "b", 0.2, 0.3), _swept("b-2", "b", 0.4, 0.6)]
    values, default = fusion.combined(measured)
    assert values.mean(1) == pytest.approx([(0.9 + 0.3) / 2, (0.3 + 0.45) / 2])
    assert default.mean() == pytest.approx(0.5)


def test_the_default_is_in_the_grid_and_marked_on_every_heat_map(pool: sweep.Pool) -> None:
    grid = fusion.swept("small", "small", pool)
    assert grid.row(SHIPPED) is not None
    maps = fusion.heats(grid, significance.compare(grid.values, grid.default, seed=1, resamples=50))
    for each in maps:
        assert each.marked
        assert each.values[each.marked] == pytest.approx(grid.default.mean())


# The gate


def _asked(relevance: float, *, own: bool, gold: float = 0.0) -> gate.Asked:
    return gate.Asked(
        own=own,
        answered=relevance >= 0.4,
        injected=1,
        gold_found=gold > 0,
        gold_injected=gold >= 0.3,
        relevance=relevance,
        gold_relevance=gold,
        threshold=0.4,
        memories=60,
        small_talk=False,
    )


def test_the_curve_passes_through_what_was_measured() -> None:
    asked = [_asked(0.8, own=True, gold=0.8), _asked(0.5, own=True, gold=0.2), _asked(0.3, own=True, gold=0.3)]
    asked += [_asked(0.45, own=False), _asked(0.1, own=False)]
    points = gate.curve(asked)
    now = next(point for point in points if point.shift == 0)
    assert (now.own, now.foreign, now.kept) == pytest.approx((2 / 3, 1 / 2, 1 / 3))
    assert (points[0].own, points[0].foreign, points[-1].own) == (1, 1, 0)
    assert gate.summary(asked)["AUC"] == pytest.approx(5 / 6)


def test_equal_evidence_counts_half_in_the_area() -> None:
    assert gate.area([0.5, 0.5], [0.5, 0.5, 0.5]) == 0.5
    assert gate.area([0.5, 0.9], [0.1, 0.5]) == 3.5 / 4


def test_a_calibrated_gate_lets_in_the_share_that_it_was_fitted_to() -> None:
    asked = [_asked(number / 1000, own=False) for number in range(1000)]
    fitted = gate.calibrate(asked, gate.Gate(cosine_share=0.7, base=0.1, growth=0.1))
    assert sum(each.relevance > fitted.threshold(60) for each in asked) / 1000 == pytest.approx(
        gate.FOREIGN_SHARE, abs=0.002
    )


# Embeddings, and the commands


def test_a_text_is_embedded_once_over_runs(tmp_path: Path) -> None:
    embedder = WideEmbedder()
    texts = ["one", "another", "one"]
    first = CachedEmbedder(embedder, tmp_path)
    assert sorted(first.missing(texts)) == ["another", "one"]
    vectors = first.embed_passages(texts)
    query = first.embed_query("one")
    again = CachedEmbedder(_Broken(), tmp_path)
    assert again.missing(texts) == []
    assert (again.embed_passages(texts) == vectors).all()
    assert (again.embed_query("one") == query).all()
    assert embedder.embedded.count("one") == 1


class _Broken(WideEmbedder):
    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError(passages)

    def embed_query(self, query: str) -> NDArray[np.float32]:
        raise AssertionError(query)


def test_fusion_leaves_tables_plots_and_what_they_were_measured_with(results_folder: Path) -> None:
    arguments = ["fusion", "--limit", "25", "--images", str(results_folder), "--dataset", "sample-conversations"]
    ran = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert ran.exit_code == 0
    written = json.loads((results_folder / "fusion.json").read_text("utf-8"))
    assert written["settings"]["seed"] == 7
    assert written["machine"]["cores"] > 0
    assert {"python", "lancedb", "tantivy", "numpy", "runtime-memory"} <= written["versions"].keys()
    assert written["datasets"]["sample-conversations"]["judged queries"] == 25
    assert len(written["datasets"]["sample-conversations"]["sha256"]) == 16
    assert "sample-conversations: fusions against the default" in written["tables"]
    assert "| default |" in (results_folder / "fusion.md").read_text("utf-8")
    picture = (results_folder / "fusion-sample-conversations.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= 100 * 1024


def test_quality_tells_the_same_of_the_store_as_of_its_fusion(results_folder: Path) -> None:
    ran = CliRunner().invoke(app, ["quality", "--limit", "25", "--search", "--runs"], catch_exceptions=False)
    assert ran.exit_code == 0
    tables = json.loads((results_folder / "quality.json").read_text("utf-8"))["tables"]
    rows = next(rows for title, rows in tables.items() if title.startswith("sample-conversations"))
    assert rows["store.search"]["any@10"] == pytest.approx(rows["default"]["any@10"], abs=0.05)
    assert (results_folder / "runs" / "sample-notes.default.run").exists()


def test_gate_leaves_its_curve(results_folder: Path) -> None:
    arguments = ["gate", "--words", "--limit", "10", "--dataset", "sample-conversations"]
    ran = CliRunner().invoke(app, [*arguments, "--images", str(results_folder)], catch_exceptions=False)
    assert ran.exit_code == 0
    written = json.loads((results_folder / "gate-words.json").read_text("utf-8"))
    assert {point["shift"] for point in written["curves"]["sample-conversations"]} >= {0}
    assert (results_folder / "gate-words.png").read_bytes().startswith(b"\x89PNG")


def test_calibrating_writes_what_the_store_reads(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = results_folder / "package" / "relevance.py"
    module.parent.mkdir()
    module.with_name("calibration.json").write_text('{"default": {"cosine_share": 0.7}}', "utf-8")
    monkeypatch.setattr(relevance, "__file__", str(module))
    small = next(each for each in sample_datasets() if each.name == "sample-conversations")
    monkeypatch.setattr(gate, "sample_datasets", lambda: [sampled(small, 5, seed=1)])
    monkeypatch.setattr(gate, "run", lambda model: None)
    ran = CliRunner().invoke(app, ["calibrate"], catch_exceptions=False)
    assert ran.exit_code == 0
    written = json.loads(module.with_name("calibration.json").read_text("utf-8"))
    assert written["default"] == {"cosine_share": 0.7}
    assert relevance.Gate(**written[WideEmbedder().identity]).base > 0


def test_a_limit_holds_for_all_or_for_one_family() -> None:
    everything = options.datasets(None, None)
    assert [len(each.qrels) for each in options.datasets(None, None, ["9"])] == [9, 9]
    assert [len(each.qrels) for each in options.datasets(None, None, ["9", "sample=7"])] == [7, 7]
    other = options.datasets(None, None, ["other=9"])
    assert [len(each.qrels) for each in other] == [len(each.qrels) for each in everything]
    for wrong in ("0", "-3", "sample=", "many"):
        with pytest.raises(typer.BadParameter, match="--limit is a number"):
            options.datasets(None, None, [wrong])


def test_the_sample_is_there_by_name_beside_a_path(tmp_path: Path) -> None:
    (tmp_path / "small" / "qrels").mkdir(parents=True)
    (tmp_path / "small" / "corpus.jsonl").write_text('{"_id": "d", "text": "t"}', "utf-8")
    (tmp_path / "small" / "queries.jsonl").write_text('{"_id": "q", "text": "t"}', "utf-8")
    (tmp_path / "small" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n", "utf-8")
    names = [each.name for each in options.datasets(tmp_path, ["sample-notes", "small-test"])]
    assert names == ["sample-notes", "small-test"]
    assert [each.name for each in options.datasets(tmp_path, ["sample-notes"])] == ["sample-notes"]
    assert [each.name for each in options.datasets(tmp_path, None)] == ["small-test"]


def test_an_unknown_data_set_is_named_with_those_that_are_there() -> None:
    ran = CliRunner().invoke(app, ["quality", "--dataset", "nowhere"])
    assert ran.exit_code == 2
    assert "nowhere" in ran.output
    assert "sample-notes" in ran.output
