"""Read published test sets in their own formats: LoCoMo, LongMemEval, BEIR folders, SciFact, and folders of notes.

Each is found by the name of its file or by what a folder holds; nothing of a data folder is executed.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.datasets import Dataset

__all__ = ["beir", "found", "locomo", "longmemeval", "notes", "scifact"]

Reader = Callable[[], Dataset]

_LEAST_NOTE = 80
_ADVERSARIAL = 5
_TURN = re.compile(r"D:?(\d+):(\d+)(?:\s*-\s*D:?(\d+):(\d+))?")
_TITLE = re.compile(r"\s*#\s+(.+)\n")


def found(path: Path) -> Iterator[tuple[str, Reader]]:
    """Yield the name and the reader of every test set at a path."""
    if path.is_dir() and (path / "corpus.jsonl").exists():
        for judgements in sorted((path / "qrels").glob("*.tsv")):
            yield f"{path.name}-{judgements.stem}", partial(beir, path, judgements.stem)
    elif path.is_dir():
        for inner in sorted(path.iterdir()):
            if inner.is_dir() or _stem(inner) is not None:
                yield from found(inner)
    elif (stem := _stem(path)) is not None:
        yield from _by_name(path, stem)


def _stem(path: Path) -> str | None:
    """Return a data file's name without its endings; None for any other file."""
    match = re.fullmatch(r"(.+?)(\.jsonl?(\.gz)?|\.zip|\.tar\.gz)", path.name)
    return match[1] if match else None


def _by_name(path: Path, stem: str) -> Iterator[tuple[str, Reader]]:
    if stem.startswith("locomo") and not stem.endswith("_audit"):
        yield "locomo", partial(locomo, path)
    elif stem.startswith("longmemeval"):
        yield "longmemeval-pool", partial(longmemeval, path, pooled=True)
        yield "longmemeval-haystack", partial(longmemeval, path, pooled=False)
    elif stem.startswith("scifact") and path.suffix == ".zip":
        yield stem, partial(scifact, path)
    elif path.name.endswith(".tar.gz"):
        yield stem, partial(notes, path)


def locomo(path: Path) -> Dataset:
    """Read LoCoMo (Maharana et al., ACL 2024): one document a turn, each question within its own conversation.

    A file ``..._audit.json`` beside it (dial481/locomo-audit) corrects wrong citations, and takes out the questions
    whose answer is wrong. Questions that cannot be answered as they are asked (category 5) have no judgement.
    """
    beside = path.with_name(path.name.split(".")[0] + "_audit.json")
    audit = {each["question_id"]: each for each in _json(beside)} if beside.exists() else {}
    documents: dict[str, str] = {}
    queries: dict[str, str] = {}
    scopes: dict[str, str] = {}
    sessions: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    for number, sample in enumerate(_json(path)):
        conversation = sample["sample_id"]
        for id_, session, text in _turns(sample["conversation"]):
            document = f"{conversation}/{id_}"
            documents[document], sessions[document] = text, f"{conversation}/{session}"
            scopes[document] = conversation
        for place, asked in enumerate(sample["qa"]):
            correction = audit.get(f"locomo_{number}_qa{place}")
            if correction and correction["error_type"] != "WRONG_CITATION":
                continue
            query = f"{conversation}/q{place}"
            queries[query], scopes[query] = asked["question"], conversation
            cited = correction["correct_evidence"] if correction else asked.get("evidence", [])
            evidence = [f"{conversation}/{id_}" for id_ in _cited(cited)]
            if asked["category"] != _ADVERSARIAL and (known := [id_ for id_ in evidence if id_ in documents]):
                qrels[query] = dict.fromkeys(known, 1)
    return Dataset("locomo", documents, queries, qrels, scopes, sessions=sessions)


def longmemeval(path: Path, *, pooled: bool) -> Dataset:
    """Read LongMemEval (Wu et al., ICLR 2025): one document a turn of either side.

    ``pooled`` puts the turns of all questions into one collection; otherwise each question is searched within its own
    haystack. The turns marked ``has_answer`` are relevant; questions to abstain from have no judgement.
    """
    documents: dict[str, str] = {}
    scopes: dict[str, str] = {}
    sessions: dict[str, str] = {}
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    haystacks: dict[str, frozenset[str]] = {}
    for row in _rows(path):
        query = row["question_id"]
        queries[query] = row["question"]
        relevant: dict[str, int] = {}
        brought: set[str] = set()
        for id_, date, turns in zip(
            row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"], strict=True
        ):
            # The names of evidence sessions say that they are evidence.
            session = hashlib.sha256(id_.encode()).hexdigest()[:12]
            session = session if pooled else f"{query}/{session}"
            brought.add(session)
            for place, turn in enumerate(turns):
                document = f"{session}#{place}"
                documents.setdefault(document, f"[{date}] {turn['role']}: {turn['content']}")
                sessions[document] = session
                if not pooled:
                    scopes[document] = query
                if turn.get("has_answer"):
                    relevant[document] = 1
        haystacks[query] = frozenset(brought)
        if not pooled:
            scopes[query] = query
        if relevant and not query.endswith("_abs"):
            qrels[query] = relevant
    name = "longmemeval-pool" if pooled else "longmemeval-haystack"
    return Dataset(name, documents, queries, qrels, scopes, sessions=sessions, haystacks=haystacks)


def beir(folder: Path, split: str) -> Dataset:
    """Read a folder in BEIR's form: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``."""
    documents = {row["_id"]: f"{row.get('title', '')} {row['text']}".strip() for row in _rows(folder / "corpus.jsonl")}
    texts = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels" / f"{split}.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            grade = int(row["score"])
            if grade > 0 and row["corpus-id"] in documents:
                qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = grade
    return Dataset(f"{folder.name}-{split}", documents, {query: texts[query] for query in qrels}, qrels)


def scifact(path: Path) -> Dataset:
    """Read SciFact (Wadden et al., EMNLP 2020) as a ZIP of ``corpus_<split>.csv`` and ``claims_<split>.csv``.

    A claim's relevant abstracts are those that it cites.
    """
    split = path.name.split(".")[0].removeprefix("scifact_")
    csv.field_size_limit(10_000_000)
    with zipfile.ZipFile(path) as archive:

        def rows(name: str) -> Iterator[dict[str, str]]:
            with archive.open(f"{name}_{split}.csv") as file:
                yield from csv.DictReader(io.TextIOWrapper(file, "utf-8", newline=""))

        documents = {row["doc_id"]: f"{row['title']} {' '.join(_sentences(row['abstract']))}" for row in rows("corpus")}
        queries: dict[str, str] = {}
        qrels: dict[str, dict[str, int]] = {}
        for row in rows("claims"):
            queries[row["id"]] = row["claim"]
            if cited := [id_ for id_ in re.findall(r"\d+", row["cited_doc_ids"]) if id_ in documents]:
                qrels[row["id"]] = dict.fromkeys(cited, 1)
    return Dataset(f"scifact_{split}", documents, queries, qrels)


def notes(path: Path) -> Dataset:
    """Read an archive of Markdown notes as a search for known items: each note's title asks for the rest of it.

    A heuristic, no human judgement. Notes of the top folder (a README, a licence), without a title in their first
    line, or with less than 80 characters under it, are left out.
    """
    documents: dict[str, str] = {}
    queries: dict[str, str] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".md") and "/" in member.name else None
            text = file.read().decode("utf-8", "replace") if file else ""
            title = _TITLE.match(text)
            if title and len(text) > title.end() + _LEAST_NOTE:
                documents[member.name], queries[member.name] = text[title.end() :].strip(), title[1].strip()
    return Dataset(_stem(path) or path.name, documents, queries, {name: {name: 1} for name in documents})


def _turns(conversation: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the session and the text of every turn of a LoCoMo conversation."""
    numbers = sorted(int(name[8:]) for name in conversation if re.fullmatch(r"session_\d+", name))
    for session in (f"session_{number}" for number in numbers):
        for turn in conversation[session]:
            image = f" [shares image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            when = conversation[f"{session}_date_time"]
            yield turn["dia_id"], session, f"[{when}] {turn['speaker']}: {turn['text']}{image}"


def _cited(evidence: Iterable[str]) -> list[str]:
    """Return the turns that LoCoMo's evidence names, in its many spellings: lists, ranges, stray colons and zeros."""
    turns: list[str] = []
    for session, first, other, last in (each for item in evidence for each in _TURN.findall(item)):
        end = int(last) if other == session else int(first)
        turns += [f"D{int(session)}:{number}" for number in range(int(first), end + 1)]
    return list(dict.fromkeys(turns))


def _sentences(column: str) -> list[str]:
    """Return the sentences of a printed NumPy array of strings, which has no commas."""
    listed = literal_eval(re.sub(r"(['\"])\s*\n\s*(?=['\"])", r"\1, ", column))
    return [str(sentence) for sentence in listed]


def _open(path: Path) -> io.TextIOBase:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def _json(path: Path) -> Any:
    with _open(path) as file:
        return json.load(file)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON array or of JSON lines."""
    with _open(path) as file:
        if ".jsonl" in path.name:
            yield from (json.loads(line) for line in file if line.strip())
        else:
            yield from json.load(file)
