"""The small file that says what a store's folder holds: format version, table, and the model of its vectors."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from runtime_memory.errors import StoreDamagedError, StoreFormatError

__all__ = ["FORMAT_VERSION", "Manifest"]

FORMAT_VERSION = 1
_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in the folder.

    ``epoch`` changes whenever the table is replaced, so that a text index of another table is recognised.
    ``embedding`` is the identity of the model of the vectors, None before there are any.
    """

    format: int
    epoch: str
    table: str
    dimension: int
    embedding: str | None

    @classmethod
    def new(cls, dimension: int, embedding: str | None) -> Manifest:
        """Return the manifest of a store that is about to be made."""
        return cls(FORMAT_VERSION, uuid.uuid4().hex, "memories", dimension, embedding)

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """Return the manifest of a folder, None where there is none.

        Raises StoreDamagedError when it cannot be read, StoreFormatError when a newer version wrote it.
        """
        path = folder / _NAME
        try:
            stored = json.loads(path.read_text("utf-8"))
            version = int(stored["format"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise StoreDamagedError(
                f"{path} cannot be read ({error}). Restore it from a backup, or set RUNTIME_MEMORY_DB to another "
                "folder."
            ) from error
        if version > FORMAT_VERSION:
            raise StoreFormatError(
                f"{folder} has format {version}, written by a newer version; this one reads up to {FORMAT_VERSION}. "
                "Upgrade: pip install --upgrade runtime-memory"
            )
        try:
            return cls(**stored)
        except TypeError as error:
            raise StoreDamagedError(f"{path} lacks a field ({error}). Restore it from a backup.") from error

    def with_embedding(self, identity: str) -> Manifest:
        """Return the manifest of the same table once it has vectors of this model."""
        return replace(self, embedding=identity)

    def write(self, folder: Path) -> None:
        """Replace the folder's manifest in one step, so that a reader sees the old or the new one whole."""
        beside = folder / f"{_NAME}.new"
        with beside.open("w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(folder / _NAME)
