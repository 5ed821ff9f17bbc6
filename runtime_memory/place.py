"""Where a store lives: in a folder, or on an object store with a folder on this machine for what is kept of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runtime_memory.errors import StoreError

__all__ = ["SCHEMES", "Place", "parse_options", "without_secrets"]

SCHEMES = ("s3", "gs", "az")
"""The object stores that LanceDB speaks to: S3 and what speaks its protocol, those of Google Cloud, and of Azure."""

_DEFAULTS = {
    "connect_timeout": "3s",
    "timeout": "20s",
    "client_max_retries": "2",
    "client_retry_timeout": "10",
}
"""Bounds of a request: without them LanceDB would try for minutes to reach a store that is away."""


_SECRET = ("key", "secret", "token", "password", "credential", "sas", "account", "client_id", "tenant")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tables are, and the local folder: the store's own, or the cache of a remote one.

    ``uri`` is None for a store in a folder; ``options`` are LanceDB's storage options for it.
    """

    folder: Path
    uri: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, db: str, options: Mapping[str, str]) -> Place:
        """Return the place that a setting names, a folder or a URI of an object store."""
        if "://" not in db:
            return cls(Path(db).expanduser())
        uri = db.rstrip("/")
        return cls(_cache_folder(uri), uri, {**_DEFAULTS, **options})

    @property
    def is_remote(self) -> bool:
        """Whether the tables are on an object store."""
        return self.uri is not None

    def __str__(self) -> str:
        """Return what a person knows it by."""
        return self.uri or str(self.folder)

    def refuse_remote(self, what: str, instead: str) -> None:
        """Raise StoreError for a remote store: what is not possible there, and what to do instead."""
        if self.is_remote:
            raise StoreError(f"{what} is for a store in a folder, and {self} is on an object store; {instead}")


def parse_options(text: str) -> dict[str, str]:
    """Return storage options given as a JSON object, or as ``key=value`` with commas between them.

    Raises ValueError, which never repeats a value: there may be a secret among them.
    """
    if text.lstrip().startswith("{"):
        try:
            stored = json.loads(text)
        except ValueError:
            raise ValueError("it is no valid JSON object") from None
        pairs = list(stored.items())
    else:
        pairs = [tuple(part.split("=", 1)) for part in text.split(",") if part.strip()]
    if any(len(pair) != 2 or not str(pair[0]).strip() for pair in pairs):
        raise ValueError("give key=value pairs with commas between them, or a JSON object")
    return {str(key).strip().lower(): _value(value) for key, value in pairs}


def without_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """Return the storage options that may be written to a file: where the store is, not who may use it."""
    return {name: value for name, value in options.items() if not any(word in name for word in _SECRET)}


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _cache_folder(uri: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "runtime-memory" / hashlib.sha256(uri.encode()).hexdigest()[:16]
