"""The Tantivy index: the terms of every record, and a copy of the record to return. Always rebuilt from the table.

A state document, replaced in the same commit as the records, says which version of the table the index has applied.
Writers must hold the store's lock: Tantivy takes one writer at a time. Errors of Tantivy pass through.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import tantivy

from indexes.analysis import analyze
from indexes.bm25 import TermStatistics, idf, reckoned_documents
from indexes.durable import make_private
from indexes.filters import All, Filter, In, matches
from indexes.layout import Layout, Record
from indexes.masks import asks_only
from indexes.remembered import remembered
from indexes.text_counts import COUNTS_KEPT, FILTERS_KEPT, LARGE, MOST, Known, Seen, TextState
from indexes.text_files import LinkedFolder, damaged_files, segment_bytes
from indexes.text_numbers import ID_NUMBERS, id_numbers, ids_of, kind
from indexes.text_queries import compile_filter, keyword, must, should
from indexes.text_records import decode, encode

__all__ = ["TextHit", "TextIndex", "TextState", "is_damage"]

_STATE_ID = "__state__"
_HEAP_BYTES = 64_000_000
_CHECKED_BYTES = 64_000_000
"""Up to this size an index is checked when it is opened, which takes 1 ms per MB at most; a larger one on request."""
_SPARE = 1.3
_KINDS_KEPT = 10_000
_ID_FIELDS = tuple(f"id_{number}" for number in range(ID_NUMBERS))


class TextHit(NamedTuple):
    """A record found by its terms, with its BM25 score."""

    id: str
    score: float


class TextIndex:
    """Search records by their terms, with BM25, and return stored copies of them by id."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self._folder = folder
        self._layout = layout
        self._times = [field.name for field in layout.columns if pa.types.is_timestamp(field.type)]
        self._schema = _schema(layout)
        self._index: tantivy.Index | None = None
        self._state: TextState | None = None
        self._links: LinkedFolder | None = None
        self._known = Known(None)
        self._filters: dict[Filter, tantivy.Query] = {}  # a session asks with the same one turn after turn
        self._passing_kinds: dict[tuple[Filter, float | None], bool] = {}

    @property
    def state(self) -> TextState | None:
        """What this reader sees; None where there is no usable index."""
        return self._state

    def reload(self) -> TextState | None:
        """See the newest commit; a missing or damaged index gives None."""
        try:
            if self._links:
                self._links.refresh()
            index = self._index if self._state else self._opened()
            state = _read_state(index, self._schema) if index else None
        except BaseException as error:
            if not is_damage(error):
                raise
            state = None
        if state is not None:
            self._index = index
        self._state = state
        return state

    def _opened(self) -> tantivy.Index | None:
        """Open the index where it is; None where there is none. Raises ValueError when a file of it is damaged."""
        folder = self._folder
        if not folder.is_dir():
            return None
        if segment_bytes(folder) <= _CHECKED_BYTES and (damaged := damaged_files(folder)):
            raise ValueError(f"damaged: {', '.join(damaged)}")
        if not os.access(folder, os.W_OK):
            self._links = self._links or LinkedFolder(folder)
            self._links.refresh()
            folder = self._links.path
        return _open(folder, self._schema)

    def damaged_files(self) -> list[str]:
        """Return the names of the files that are not what was written, whatever the index's size."""
        try:
            return damaged_files(self._folder)
        except (OSError, ValueError, KeyError, TypeError) as error:
            return [f"meta.json ({error})"]

    def is_writable(self) -> bool:
        """Tell whether this process could write the index."""
        return os.access(self._folder if self._folder.exists() else self._folder.parent, os.W_OK)

    def discard(self) -> None:
        """Take the index for damaged: what it holds is no longer read, and the next catch-up rebuilds it."""
        self._state = None

    def apply(self, written: Iterable[Record], deleted: Collection[str], state: TextState) -> None:
        """Replace and delete records, and the state with them, in one commit."""
        index = self._usable()
        _write(index, self._schema, (self._document(record) for record in written), deleted, state)
        make_private(self._folder)
        index.reload()
        self._state = state

    def rebuild(self, records: Iterable[Record], state: TextState) -> None:
        """Build the index anew beside the old one, then swap; readers keep the old one until they reload."""
        beside, before = (self._folder.with_name(self._folder.name + suffix) for suffix in (".new", ".old"))
        for left in (beside, before):
            shutil.rmtree(left, ignore_errors=True)
        beside.mkdir(parents=True)
        try:
            index = tantivy.Index(self._schema, path=str(beside))
            _write(index, self._schema, (self._document(record) for record in records), (), state)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        make_private(beside)
        if self._folder.is_dir():
            self._folder.rename(before)
        else:
            self._folder.unlink(missing_ok=True)
        beside.rename(self._folder)
        shutil.rmtree(before, ignore_errors=True)
        self._index, self._state = _open(self._folder, self._schema), state

    def search(
        self, terms: Mapping[str, float], statistics: TermStatistics, where: Filter, limit: int
    ) -> list[TextHit]:
        """Return the records that hold any of the weighted terms, best BM25 score first.

        A term is as rare as it is among the records that pass the filter: what is common in the whole index may tell
        much in one project, and the other way round.
        """
        known, searcher = self._known_now(), self._searcher()  # the searcher sees that state or a newer one
        documents = reckoned_documents(searcher, self._state_query())
        boosts = {
            term: weight * statistics.rarity(term) / idf(searcher.doc_freq("terms", term), documents)
            for term, weight in terms.items()
            if statistics.frequencies.get(term)
        }
        if not boosts:
            return []
        scored = should([tantivy.Query.boost_query(self._term(term), boost) for term, boost in boosts.items()])
        telling = self._telling(where)
        found = self._best_passing(searcher, scored, telling, limit)
        if found is None:
            query = scored if telling == All() else must(scored, self._filter(telling))
            found = self._hits(searcher, searcher.search(query, limit, count=False).hits)
        known.found = searcher, {hit.id: address for hit, address in found}
        return sorted((hit for hit, _ in found), key=lambda hit: (hit.score, hit.id), reverse=True)

    def _best_passing(
        self, searcher: tantivy.Searcher, scored: tantivy.Query, where: Filter, limit: int
    ) -> list[tuple[TextHit, tantivy.DocAddress]] | None:
        """Return the best hits that pass a filter which most records of a large index pass; None for another.

        Without a filter Tantivy skips what cannot be among the best, which takes a fifth of the time.
        """
        share = self.share(where)
        if where == All() or share < MOST or self.records < LARGE or not asks_only(where, self._layout.shared):
            return None
        hits = searcher.search(scored, int(_SPARE * limit / share), count=False).hits
        kinds = searcher.fast_field_values("kind", [address for _, address in hits])
        found = [
            hit for hit, kind_ in zip(hits, kinds, strict=True) if self._is_passing(searcher, hit[1], kind_, where)
        ]
        return self._hits(searcher, found[:limit]) if len(found) >= limit else None

    def _is_passing(
        self, searcher: tantivy.Searcher, address: tantivy.DocAddress, kind_: float | None, where: Filter
    ) -> bool:
        """Tell whether a record passes a filter; of those of one kind, all do or none."""

        def passes() -> bool:
            return matches(where, json.loads(searcher.doc(address)["record"][0]))

        return remembered(self._passing_kinds, (where, kind_), passes, most=_KINDS_KEPT)

    def _hits(
        self, searcher: tantivy.Searcher, hits: Sequence[tuple[Any, tantivy.DocAddress]]
    ) -> list[tuple[TextHit, tantivy.DocAddress]]:
        addresses = [address for _, address in hits]
        numbers: Any = [searcher.fast_field_values(name, addresses) for name in _ID_FIELDS]  # its stub says floats, too
        ids = ids_of(numbers) if hits else []
        return [
            (TextHit(id_ or searcher.doc(address)["id"][0], score), address)
            for id_, (score, address) in zip(ids, hits, strict=True)
        ]

    def find(self, where: Filter, limit: int | None = None) -> list[Record]:
        """Return records that pass the filter, in no order; all of them without a limit."""
        searcher = self._searcher()
        hits = searcher.search(self._filter(where), limit or max(1, searcher.num_docs), count=False).hits
        stored = (searcher.doc(address).get_first("record") for _, address in hits)
        return [decode(record, self._times) for record in stored if record is not None]

    def get(self, ids: Collection[str]) -> dict[str, Record]:
        """Return the stored records with these ids; unknown ids are left out."""
        searcher, addresses = self._known_now().found  # mostly those of a search just made
        stored = {id_: searcher.doc(addresses[id_])["record"][0] for id_ in ids if searcher and id_ in addresses}
        known = {id_: decode(record, self._times) for id_, record in stored.items()}
        others = tuple(id_ for id_ in ids if id_ not in known)
        return known | ({record["id"]: record for record in self.find(In("id", others))} if others else {})

    def ids_with_prefix(self, prefix: str, where: Filter, limit: int) -> list[str]:
        """Return ids that begin with a prefix, of records that pass the filter."""
        found = self._searcher().terms_with_prefix("id", prefix, filter_query=self._filter(where), limit=limit)
        return [term for term, _ in found]

    def statistics(self, terms: Iterable[str], where: Filter) -> TermStatistics:
        """Return how many records pass the filter, and how many of these hold each term.

        In a large index a frequent term is not counted among many records, which takes long: it gets their share of the
        records that hold it.
        """
        telling = self._telling(where)
        records, searcher = self._passing(telling), self._searcher()
        seen = Seen(telling, records, self.records, self._known_now().holding(telling))
        return TermStatistics(records, {term: self._frequency(searcher, term, seen) for term in terms})

    def _frequency(self, searcher: tantivy.Searcher, term: str, seen: Seen) -> int:
        frequency = searcher.doc_freq("terms", term)
        if not frequency or seen.reckons(frequency):
            return max(1, round(frequency * seen.share)) if frequency else 0

        def counted() -> int:  # without what is deleted and not merged away
            return self._count(*([] if seen.where == All() else [self._filter(seen.where)]), self._term(term))

        return remembered(seen.holding, term, counted, most=COUNTS_KEPT)

    @property
    def records(self) -> int:
        """How many records it holds; 0 where there is no usable index."""
        return max(0, self._searcher().num_docs - 1) if self._state is not None else 0

    def share(self, where: Filter) -> float:
        """Return the share of the records that pass a filter; 0 where there is no usable index."""
        return self._passing(self._telling(where)) / self.records if self.records else 0.0

    def _passing(self, where: Filter) -> int:
        if where == All():
            return self.records
        passing = self._known_now().passing  # counted once for a state of the index
        return remembered(passing, where, lambda: self._count(self._filter(where)), most=COUNTS_KEPT)

    def _telling(self, where: Filter) -> Filter:
        """Return a filter without the clauses that every record passes: in most stores, all are of one user."""
        return remembered(self._known_now().telling, where, lambda: self._reduced(where), most=FILTERS_KEPT)

    def _reduced(self, where: Filter) -> Filter:
        match where:
            case All(clauses):
                kept = tuple(each for clause in clauses if (each := self._reduced(clause)) != All())
                return kept[0] if len(kept) == 1 else All(kept)
            case In(_, (_,)) if self._passing(where) == self.records:
                return All()
        return where

    def _known_now(self) -> Known:
        if self._known.state != self._state:
            self._known = Known(self._state)
        return self._known

    def _count(self, *clauses: tantivy.Query) -> int:
        found: Any = self._searcher().search(must(*clauses), 1, count=True)  # its stub lacks the count
        return int(found.count)

    def rarest(self, terms: Mapping[str, float], limit: int) -> dict[str, float]:
        """Return the terms that the fewest records hold, of those that any record holds, with their weights."""
        searcher = self._searcher()
        found = {term: frequency for term in terms if (frequency := searcher.doc_freq("terms", term))}
        return {term: terms[term] for term in sorted(found, key=found.__getitem__)[:limit]}

    def ids(self) -> set[str]:
        """Return the id of every record."""
        searcher = self._searcher()
        hits = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs), count=False).hits
        return {searcher.doc(address)["id"][0] for _, address in hits} - {_STATE_ID}

    def close(self) -> None:
        """Let go of the files."""
        self._index = self._state = None
        if self._links:
            self._links.close()
            self._links = None

    def _usable(self) -> tantivy.Index:
        if self._index is None:
            raise ValueError("the text index is not open")
        return self._index

    def _searcher(self) -> tantivy.Searcher:
        return self._usable().searcher()

    def _term(self, term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, "terms", term, "freq")

    def _state_query(self) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, "id", _STATE_ID, "basic")

    def _filter(self, where: Filter) -> tantivy.Query:
        def compiled() -> tantivy.Query:
            return tantivy.Query.const_score_query(compile_filter(where, self._schema), 0.0)

        return remembered(self._filters, where, compiled, most=FILTERS_KEPT)

    def _document(self, record: Record) -> tantivy.Document:
        fields: dict[str, list[Any]] = {"id": [record["id"]], "record": [encode(record)]}
        for name in self._layout.keywords:
            value = record[name]
            several = isinstance(value, list | tuple)
            fields[name] = [keyword(item) for item in value] if several else [keyword(value)]
        fields["terms"] = [" ".join(analyze(record["content"]))]
        fields["kind"] = [kind(record, self._layout.shared)]
        fields |= {name: [number] for name, number in zip(_ID_FIELDS, id_numbers(record["id"]), strict=True)}
        return tantivy.Document.from_dict(fields, self._schema)


def _schema(layout: Layout) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field("record", stored=True)
    builder.add_bytes_field("state", stored=True)
    for name in ("kind", *_ID_FIELDS):
        builder.add_unsigned_field(name, fast=True)
    for name in layout.keywords:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    return builder.build()


def is_damage(error: BaseException) -> bool:
    """Tell whether an error is what Tantivy raises for files that it cannot read; its panics are no Exceptions."""
    return isinstance(error, ValueError | OSError | TypeError | KeyError) or type(error).__name__ == "PanicException"


def _read_state(index: tantivy.Index, schema: tantivy.Schema) -> TextState | None:
    index.reload()
    searcher = index.searcher()
    query = tantivy.Query.term_query(schema, "id", _STATE_ID, "basic")
    hits = searcher.search(query, 1, count=False).hits
    return TextState(**json.loads(searcher.doc(hits[0][1])["state"][0])) if hits else None


def _open(folder: Path, schema: tantivy.Schema) -> tantivy.Index | None:
    if not tantivy.Index.exists(str(folder)):
        return None
    index = tantivy.Index(schema, path=str(folder), reuse=True)
    index.config_reader("manual")
    return index


def _write(
    index: tantivy.Index,
    schema: tantivy.Schema,
    documents: Iterable[tantivy.Document],
    deleted: Collection[str],
    state: TextState,
) -> None:
    writer = index.writer(_HEAP_BYTES, 1)
    try:
        for id_ in (_STATE_ID, *deleted):
            writer.delete_documents_by_term("id", id_)
        for document in documents:
            writer.delete_documents_by_term("id", document["id"][0])
            writer.add_document(document)
        marker = {"id": [_STATE_ID], "state": [encode(state._asdict())]}
        writer.add_document(tantivy.Document.from_dict(marker, schema))
        writer.commit()
    finally:
        writer.wait_merging_threads()  # a writer dropped without it leaves its segments unmerged
