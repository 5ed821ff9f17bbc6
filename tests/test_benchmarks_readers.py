"""The benchmarks' readers: published test sets in their own formats, written small."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from benchmarks.datasets import Dataset, folder_datasets, sample_datasets, sampled
from runtime_memory.errors import InvalidInputError


def only(path: Path, *names: str) -> Dataset:
    (dataset,) = folder_datasets(path, list(names))
    return dataset


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    """Write a conversation of two sessions, five questions, and an audit that corrects one and drops one."""
    session = [{"dia_id": f"D1:{n}", "speaker": "Ann", "text": f"one {n}"} for n in range(1, 5)]
    image = {"dia_id": "D2:1", "speaker": "Bob", "text": "look", "blip_caption": "a red boat"}
    asked = [
        {"question": "listed?", "category": 1, "evidence": ["D1:1; D1:03", "D9:9"]},
        {"question": "a range?", "category": 2, "evidence": ["D1:2-D1:4"]},
        {"question": "wrong citation?", "category": 1, "evidence": ["D1:1"]},
        {"question": "wrong answer?", "category": 1, "evidence": ["D1:1"]},
        {"question": "cannot be answered?", "category": 5, "evidence": ["D1:1"]},
        {"question": "stray colon?", "category": 4, "evidence": ["D:2:1."]},
    ]
    conversation = {
        "session_10_date_time": "later",
        "session_1": session,
        "session_1_date_time": "in May",
        "session_2": [image],
        "session_2_date_time": "in June",
    }
    with gzip.open(tmp_path / "locomo_small.json.gz", "wt", encoding="utf-8") as file:
        json.dump([{"sample_id": "c", "conversation": conversation, "qa": asked}], file)
    audit = [
        {"question_id": "locomo_0_qa2", "error_type": "WRONG_CITATION", "correct_evidence": ["D2:1"]},
        {"question_id": "locomo_0_qa3", "error_type": "HALLUCINATION", "correct_evidence": ["D1:2"]},
    ]
    (tmp_path / "locomo_small_audit.json").write_text(json.dumps(audit), "utf-8")
    return tmp_path


def test_locomo_is_read_with_its_corrections_and_every_spelling_of_evidence(locomo: Path) -> None:
    dataset = only(locomo)
    assert dataset.documents["c/D2:1"] == "[in June] Bob: look [shares image: a red boat]"
    assert list(dataset.documents) == ["c/D1:1", "c/D1:2", "c/D1:3", "c/D1:4", "c/D2:1"]
    assert dataset.qrels == {
        "c/q0": {"c/D1:1": 1, "c/D1:3": 1},
        "c/q1": {"c/D1:2": 1, "c/D1:3": 1, "c/D1:4": 1},
        "c/q2": {"c/D2:1": 1},
        "c/q5": {"c/D2:1": 1},
    }
    assert "c/q3" not in dataset.queries
    assert "c/q4" in dataset.queries
    assert set(dataset.scopes.values()) == {"c"}


@pytest.fixture
def longmemeval(tmp_path: Path) -> Path:
    """Write two questions that share a session, and one to abstain from."""

    def turn(role: str, content: str, *, answers: bool = False) -> dict[str, object]:
        return {"role": role, "content": content, "has_answer": answers}

    shared = [turn("user", "I have a cat", answers=True), turn("assistant", "nice")]
    other = [turn("user", "hello"), turn("assistant", "you have a dog", answers=True)]

    def row(id_: str, **sessions: list[dict[str, object]]) -> dict[str, object]:
        return {
            "question_id": id_,
            "question": f"{id_}?",
            "haystack_session_ids": list(sessions),
            "haystack_dates": ["2024"] * len(sessions),
            "haystack_sessions": list(sessions.values()),
        }

    rows = [row("q1", answer_1=shared, answer_2=other), row("q2", answer_1=shared), row("q3_abs", answer_1=shared)]
    with gzip.open(tmp_path / "longmemeval_small.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in rows)
    return tmp_path


def test_longmemeval_is_one_pool_or_a_haystack_for_each_question(longmemeval: Path) -> None:
    pool = only(longmemeval, "longmemeval-pool")
    haystack = only(longmemeval, "longmemeval-haystack")
    assert sorted(pool.documents.values()) == [
        "[2024] assistant: nice",
        "[2024] assistant: you have a dog",
        "[2024] user: I have a cat",
        "[2024] user: hello",
    ]
    assert len(haystack.documents) == 4 + 2 + 2
    assert {query: len(grades) for query, grades in pool.qrels.items()} == {"q1": 2, "q2": 1}
    assert not pool.scopes
    assert all(haystack.scopes[document] == "q2" for document in haystack.qrels["q2"])
    assert len(set(pool.sessions.values())) == 2
    assert pool.family == haystack.family == "longmemeval"
    assert not any("answer_" in document for document in (*pool.documents, *haystack.documents))


def test_a_sample_of_a_haystack_keeps_only_what_is_searched(longmemeval: Path) -> None:
    haystack, pool = only(longmemeval, "longmemeval-haystack"), only(longmemeval, "longmemeval-pool")
    one = sampled(haystack, 1, seed=1)
    assert len(one.qrels) == 1
    assert {one.scopes[document] for document in one.documents} == set(one.qrels)
    drawn = sampled(pool, 1, seed=1)
    assert drawn.qrels.keys() == one.qrels.keys()
    assert set(drawn.documents.values()) == set(one.documents.values())
    assert sampled(pool, 5, seed=1) is pool
    assert sampled(haystack, 1, seed=1) == one


def test_a_beir_folder_has_a_data_set_for_each_split(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "d1", "title": "Cats", "text": "purr"}, {"_id": "d2", "text": "bark"}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), "utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "who purrs?"}\n{"_id": "q2", "text": "?"}\n', "utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n", "utf-8")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\nq2\tgone\t1\n", "utf-8")
    for path in (tmp_path, folder):
        dev, test = folder_datasets(path, [])
        assert (dev.name, test.name) == ("small-dev", "small-test")
        assert test.documents == {"d1": "Cats purr", "d2": "bark"}
        assert test.queries == {"q1": "who purrs?"}
        assert (test.qrels, dev.qrels) == ({"q1": {"d1": 2}}, {"q2": {"d2": 1}})


def test_scifact_is_read_from_its_tables(tmp_path: Path) -> None:
    def table(columns: list[str], rows: list[list[str]]) -> str:
        text = io.StringIO()
        csv.writer(text).writerows([columns, *rows])
        return text.getvalue()

    abstract = "['One finding.'\n \"Another's finding.\"]"
    with zipfile.ZipFile(tmp_path / "scifact_train.zip", "w") as archive:
        archive.writestr("corpus_train.csv", table(["doc_id", "title", "abstract"], [["7", "Title", abstract]]))
        archive.writestr("claims_train.csv", table(["id", "claim", "cited_doc_ids"], [["1", "c", "[7 8]"]]))
    dataset = only(tmp_path)
    assert dataset.documents == {"7": "Title One finding. Another's finding."}
    assert (dataset.queries, dataset.qrels) == ({"1": "c"}, {"1": {"7": 1}})


def test_notes_are_looked_for_by_their_titles(tmp_path: Path) -> None:
    body = "A note that is long enough to be looked for. " * 3
    notes = {"git/undo.md": f"# Undo a commit\n\n{body}", "README.md": f"# All\n\n{body}", "git/short.md": "# A\n\nb"}
    with tarfile.open(tmp_path / "my-til.tar.gz", "w:gz") as archive:
        for name, text in notes.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    dataset = only(tmp_path)
    assert dataset.documents == {"git/undo.md": body.strip()}
    assert dataset.queries == {"git/undo.md": "Undo a commit"}
    assert dataset.name == "my-til"


def test_a_folder_without_data_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", "utf-8")
    with pytest.raises(InvalidInputError, match="no data set that can be read"):
        list(folder_datasets(tmp_path, []))


def test_an_unknown_name_is_told_with_the_known_ones(longmemeval: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'nowhere'.*'longmemeval-haystack'"):
        list(folder_datasets(longmemeval, ["nowhere"]))


def test_a_fingerprint_follows_what_is_searched_asked_and_judged() -> None:
    dataset = next(iter(sample_datasets()))
    assert dataset.fingerprint == next(iter(sample_datasets())).fingerprint
    assert dataset.fingerprint != sampled(dataset, 5, seed=1).fingerprint


def test_every_judgement_of_the_sample_has_its_document_in_the_same_project() -> None:
    for dataset in sample_datasets():
        for query, grades in dataset.qrels.items():
            assert grades.keys() <= dataset.documents.keys()
            assert {dataset.scopes[document] for document in grades} == {dataset.scopes[query]}
