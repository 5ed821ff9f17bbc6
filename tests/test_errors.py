"""Every error is one of ours, sits where the documentation draws it, and says what to do."""

from __future__ import annotations

import errno
import inspect
import re
from pathlib import Path

import filelock
import pytest
import tantivy

from indexes.text import TextIndex
from indexes.vectors import VectorTable
from runtime_memory import MemoryStore, errors
from runtime_memory.errors import (
    EmbeddingError,
    InvalidInputError,
    MemoryNotFoundError,
    RuntimeMemoryError,
    SettingsError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)
from runtime_memory.failures import store_errors

FOLDER = Path("/somewhere/memories")


def drawn_parents() -> dict[str, str]:
    """Return the parent of every error as the docstring of the module draws it."""
    path: list[str] = []
    parents = {}
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        if drawn := re.match(r"([│├└─\s]*)(\w+Error)\b", line):
            depth = len(drawn[1]) // 4
            path[depth:] = [drawn[2]]
            if depth:
                parents[drawn[2]] = path[depth - 1]
    return parents


def panic() -> BaseException:
    """Return what Rust code raises when it panics, which is no Exception."""
    schema = tantivy.SchemaBuilder().build()
    searcher = tantivy.Index(schema).searcher()
    try:
        searcher.search(tantivy.Query.all_query(), 0)
    except BaseException as error:  # noqa: BLE001 - that is the point
        return error
    raise AssertionError("tantivy no longer panics on a limit of 0; find another panic")


def test_the_drawn_tree_is_the_real_one() -> None:
    classes = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    real = {name: value.__bases__[0].__name__ for name, value in classes.items() if value is not RuntimeMemoryError}
    assert drawn_parents() == real
    assert sorted(classes) == sorted(errors.__all__)


def test_errors_are_also_what_python_programmers_expect() -> None:
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(MemoryNotFoundError, LookupError)


MAPPED: list[tuple[BaseException, type[StoreError], str]] = [
    (filelock.Timeout("lock"), StoreBusyError, "try again"),
    (PermissionError(errno.EACCES, "denied"), StoreUnavailableError, "make the folder writable"),
    (PermissionError(errno.EPERM, "not permitted"), StoreUnavailableError, "make the folder writable"),
    (OSError(errno.EROFS, "read-only"), StoreUnavailableError, "read-only"),
    (OSError(errno.ENOSPC, "full"), StoreUnavailableError, "free some space"),
    (OSError(errno.EDQUOT, "quota"), StoreUnavailableError, "free some space"),
    (NotADirectoryError(errno.ENOTDIR, "not a directory"), StoreUnavailableError, "RUNTIME_MEMORY_DB"),
    (FileExistsError(errno.EEXIST, "exists"), StoreUnavailableError, "RUNTIME_MEMORY_DB"),
    (OSError(errno.EIO, "input/output error"), StoreDamagedError, "Keep a copy of the folder"),
    (RuntimeError("lance error: IO: No space left on device (os error 28)"), StoreUnavailableError, "free some space"),
    (RuntimeError("lance error: Permission denied (os error 13)"), StoreUnavailableError, "make the folder writable"),
    (ValueError("Read-only file system (os error 30)"), StoreUnavailableError, "read-only"),
    (RuntimeError("lance error: Not found: data/1.lance, file.rs:42\nmore"), StoreDamagedError, "Not found: data/1"),
    (ValueError("Data corrupted: footer is wrong"), StoreDamagedError, "text/ part may be deleted"),
    (RuntimeError(""), StoreDamagedError, "RuntimeError"),
    (panic(), StoreDamagedError, "Keep a copy of the folder"),
]


@pytest.mark.parametrize(
    ("raised", "kind", "advice"), MAPPED, ids=[f"{type(e).__name__} {str(e)[:30]}".strip() for e, _, _ in MAPPED]
)
def test_an_error_of_a_library_below_becomes_one_of_ours(
    raised: BaseException, kind: type[StoreError], advice: str
) -> None:
    with pytest.raises(kind) as caught, store_errors(FOLDER):
        raise raised
    assert type(caught.value) is kind
    assert caught.value.__cause__ is raised
    assert str(FOLDER) in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "raised", [InvalidInputError("a"), SettingsError("b"), EmbeddingError("c"), StoreBusyError("d")]
)
def test_an_error_of_ours_passes_unchanged(raised: RuntimeMemoryError) -> None:
    with pytest.raises(type(raised)) as caught, store_errors(FOLDER):
        raise raised
    assert caught.value is raised


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(3), MemoryError(), GeneratorExit()])
def test_what_is_no_failure_of_the_store_passes_unchanged(raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught, store_errors(FOLDER):
        raise raised
    assert caught.value is raised


def test_an_error_of_pyarrow_is_mapped_too() -> None:
    import pyarrow as pa

    with pytest.raises(StoreDamagedError), store_errors(FOLDER):
        raise pa.lib.ArrowTypeError("Expected bytes, got a 'int' object")


def test_a_full_disk_keeps_what_was_stored_and_takes_the_next_write(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = store.add("the first fact")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(VectorTable, "write", full)
        with pytest.raises(StoreUnavailableError, match="free some space"):
            store.add("the second fact")
    assert store.list() == [memory]
    store.add("the third fact")
    assert len(store.search("fact")) == 2
    assert store.check() == []


def test_a_text_index_that_cannot_be_written_loses_no_memory(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add("the first fact")

    def full(*_: object) -> None:
        raise ValueError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(TextIndex, "apply", full)
        patch.setattr(TextIndex, "rebuild", full)
        assert store.add("the second fact").content == "the second fact"  # the table has it
        assert store.search("the second fact")[0].memory.content == "the second fact"
    store.add("the third fact")
    hits = store.search("the second fact")
    assert hits[0].memory.content == "the second fact"
    assert hits[0].text_rank == 1
    assert store.check() == []
