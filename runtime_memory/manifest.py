"""The small file that says what a store's folder holds: format version, tables, and the model of the vectors."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from indexes.durable import sync_folder
from runtime_memory.errors import StoreDamagedError, StoreError, StoreFormatError

__all__ = ["FORMAT_VERSION", "Manifest", "manifest_stamp", "model_name", "replace_file", "stored_model"]

FORMAT_VERSION = 2
_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in the folder.

    ``epoch`` changes whenever a table is replaced, so that open stores and text indexes of another table are
    recognised. ``embedding`` is the identity of the model of the vectors, None before there are any; ``model`` is the
    name by which that model is loaded where the settings name none, None for the default model. ``weights`` are those
    of the fusion, None for the default ones.
    """

    format: int
    epoch: str
    table: str
    dimension: int
    embedding: str | None
    outcomes: str = "outcomes"
    model: str | None = None
    weights: Mapping[str, Any] | None = None

    @classmethod
    def new(cls, dimension: int, embedding: str | None, model: str | None = None) -> Manifest:
        """Return the manifest of a store that is about to be made."""
        return cls(FORMAT_VERSION, _epoch(), "memories", dimension, embedding, model=model)

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """Return the manifest of a folder, None where there is none.

        Raises StoreDamagedError when it cannot be read, StoreFormatError when a newer version wrote it.
        """
        path = folder / _NAME
        try:
            return cls.parse(path.read_bytes(), str(folder))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StoreDamagedError(
                f"{path} cannot be read ({error}). Restore the folder from a backup (mem restore), or set "
                "RUNTIME_MEMORY_DB to another one."
            ) from error

    @classmethod
    def parse(cls, text: bytes, place: str) -> Manifest:
        """Return the manifest that a text holds; ``place`` is named in the error for a newer format.

        Raises ValueError when it is none, StoreFormatError when a newer version wrote it.
        """
        try:
            stored = json.loads(text)
            version = int(stored["format"])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"it is no manifest: {error}") from error
        if version > FORMAT_VERSION:
            raise StoreFormatError(
                f"{place} has format {version}, written by a newer version; this one reads up to {FORMAT_VERSION}. "
                "Upgrade: pip install --upgrade runtime-memory"
            )
        try:
            manifest = cls(**stored)
        except TypeError as error:
            raise ValueError(f"its fields are not those of this format: {error}") from error
        for name in (manifest.table, manifest.outcomes):
            if not isinstance(name, str) or not name.replace("-", "").isalnum():
                raise ValueError(f"it names no table: {name!r}")
        return manifest

    def with_embedding(self, identity: str, model: str | None) -> Manifest:
        """Return the manifest of the same table once it has vectors of this model."""
        return replace(self, embedding=identity, model=model)

    def replaced(self, **changes: object) -> Manifest:
        """Return the manifest of a store whose tables have been replaced."""
        return replace(self, epoch=_epoch(), **changes)  # type: ignore[arg-type]

    def renamed(self, table: str, outcomes: str) -> Manifest:
        """Return the manifest of tables with other names."""
        return replace(self, table=table, outcomes=outcomes)

    def encoded(self) -> bytes:
        """Return the text of the file."""
        return json.dumps(asdict(self), indent=2).encode()

    def write(self, folder: Path) -> None:
        """Replace the folder's manifest in one step, so that a reader sees the old or the new one whole."""
        replace_file(folder / _NAME, self.encoded())


def model_name(given: str | None) -> str | None:
    """Return the name by which a model is found from anywhere: the whole path of a folder, any other name as it is."""
    folder = Path(given).expanduser() if given else None
    return str(folder.resolve()) if folder and folder.is_dir() else given


def stored_model(folder: Path) -> str | None:
    """Return the name of the model of a store's vectors; None for the default one, and where there is no manifest."""
    try:
        manifest = Manifest.read(folder)
    except (StoreError, OSError):  # opening the store says what is wrong
        return None
    return manifest.model if manifest else None


def manifest_stamp(folder: Path) -> tuple[int, int, int] | None:
    """Return what changes with every writing of the manifest, for the price of a look at the folder; None without."""
    try:
        stat = os.stat(folder / _NAME)  # noqa: PTH116 - each call of the store asks: half the time of Path.stat
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size


def replace_file(path: Path, content: bytes) -> None:
    """Write a file beside and put it in place, both durably: a reader sees the old or the new one whole."""
    beside = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_folder(path.parent, private=False)


def _epoch() -> str:
    return uuid.uuid4().hex
