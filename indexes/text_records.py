"""Write records as the copies that the text index keeps: JSON, with times as microseconds of the epoch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from indexes.layout import Record

__all__ = ["decode", "encode"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def encode(value: Mapping[str, Any]) -> bytes:
    """Return a record, or anything else of texts and numbers, as a stored copy."""
    return _ENCODER.encode(value).encode()


def decode(stored: bytes, times: Iterable[str]) -> Record:
    """Return the record that a copy holds; ``times`` names its columns of times."""
    record: dict[str, Any] = json.loads(stored.decode())
    for name in times:
        record[name] = None if record[name] is None else _moment(record[name])
    return record


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


_ENCODER = json.JSONEncoder(default=_micros, ensure_ascii=False)
