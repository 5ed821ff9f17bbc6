"""An S3 server on this machine, in a process of its own: ``python s3_server.py PORT [STATE]``; port 0 takes a free one.

It prints its port. Each request that writes is handled alone: a conditional write must be one step, as it is in S3,
and moto looks and writes in two. With a file for its state it goes on from there, and leaves there, when it is
terminated, what it holds: as a server does that keeps its objects on a disk.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from moto.s3 import models
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

_ACCOUNT, _PARTITION = "123456789012", "aws"
_WRITING = {"PUT", "POST", "DELETE"}
_LISTED = 1000
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_App = Callable[[dict[str, Any], Any], Iterable[bytes]]
_writing = threading.Lock()


class _Key(models.FakeKey):
    """An object that is held as it was sent: moto's own reads all of a large one from a file for every range of it."""

    __module__, __qualname__ = models.__name__, "FakeKey"  # whose place it takes
    _content = b""

    @property
    def value(self) -> bytes:
        return self._content

    @value.setter
    def value(self, value: bytes) -> None:
        self._content = bytes(value)
        self.contentsize = len(value)

    @property
    def etag(self) -> str:
        if self._etag is None:
            self._etag = hashlib.md5(self._content, usedforsecurity=False).hexdigest()
        return f'"{self._etag}"'

    @cached_property
    def listed(self) -> str:
        """The object as a list of a bucket names it."""
        return (
            f"<Contents><Key>{escape(self.name)}</Key><LastModified>{self.last_modified_ISO8601}</LastModified>"
            f"<ETag>{escape(self.etag)}</ETag><Size>{self.contentsize}</Size><StorageClass>STANDARD</StorageClass>"
            "</Contents>"
        )

    def dispose(self, garbage: bool = False) -> None:
        super().dispose(garbage)
        self._content = b""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_content"}


class _Multipart(models.FakeMultipart):
    """An upload in parts, which are let go of when it is complete."""

    __module__, __qualname__ = models.__name__, "FakeMultipart"

    def complete(self, *args: Any) -> Any:
        made = super().complete(*args)
        self.dispose()
        return made


class _NoChecksum:
    """Nobody asks for the checksum of such an upload; moto's own needs twice the object's memory."""

    def __init__(self, *_: object) -> None: ...

    def addPart(self, _: bytes) -> None: ...  # noqa: N802 - moto's name

    def build(self) -> None: ...


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"


class _Answer(NamedTuple):
    status: str
    headers: dict[str, str]
    body: bytes


def _quick(app: _App) -> _App:
    """Answer what a store asks for most without moto, which takes ten times as long or more."""

    def handle(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        answer = (_range(environ) or _listing(environ)) if environ["REQUEST_METHOD"] == "GET" else None
        if answer is None:
            return app(environ, start)
        start(answer.status, list((answer.headers | {"Content-Length": str(len(answer.body))}).items()))
        return [answer.body]

    return handle


def _range(environ: dict[str, Any]) -> _Answer | None:
    """Return a range of an object; None for any other question."""
    asked = _RANGE.fullmatch(environ.get("HTTP_RANGE", ""))
    _, bucket, name = f"{environ['PATH_INFO']}/".split("/", 2)
    held = _backend().buckets.get(bucket)
    key = held.keys.get(name.removesuffix("/")) if held is not None else None
    if asked is None or environ["QUERY_STRING"] or not isinstance(key, _Key) or key.contentsize <= int(asked[1]):
        return None
    first, last = int(asked[1]), min(int(asked[2]), key.contentsize - 1)
    headers = {
        "Content-Range": f"bytes {first}-{last}/{key.contentsize}",
        "ETag": key.etag,
        "Last-Modified": key.last_modified_RFC1123,
    }
    return _Answer("206 Partial Content", headers, bytes(memoryview(key.value)[first : last + 1]))


def _listing(environ: dict[str, Any]) -> _Answer | None:
    """Return the list of the objects with a prefix where one answer holds it; None for any other question."""
    asked = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
    bucket = _backend().buckets.get(environ["PATH_INFO"].strip("/"))
    if asked.keys() != {"list-type", "prefix"} or bucket is None:
        return None
    with _writing:
        keys = sorted((key for name, key in bucket.keys.items() if name.startswith(asked["prefix"])), key=_name)
    if len(keys) > _LISTED or not all(isinstance(key, _Key) for key in keys):
        return None
    listed = "".join(key.listed for key in keys)
    body = f"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{bucket.name}</Name>\
<Prefix>{escape(asked["prefix"])}</Prefix><KeyCount>{len(keys)}</KeyCount><MaxKeys>{_LISTED}</MaxKeys>\
<IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"""
    return _Answer("200 OK", {"Content-Type": "application/xml"}, body.encode())


def _name(key: models.FakeKey) -> str:
    return str(key.name)


def _backend() -> models.S3Backend:
    return models.s3_backends[_ACCOUNT][_PARTITION]


def _one_writer(app: _App) -> _App:
    def handle(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in _WRITING:
            return app(environ, start)
        with _writing:
            return list(app(environ, start))

    return handle


def _keep_state(file: Path) -> None:
    """Take up the buckets of a file, and write them there when this process is told to end."""
    backend = _backend()
    if file.exists():
        backend.buckets.update(pickle.loads(file.read_bytes()))

    def end(*_: object) -> None:
        with _writing:  # what is being written is written; its answer may be lost
            file.write_bytes(pickle.dumps(dict(backend.buckets)))
            os._exit(0)

    signal.signal(signal.SIGTERM, end)


if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    models.FakeKey, models.FakeMultipart, models.MultipartChecksumBuilder = _Key, _Multipart, _NoChecksum
    port, *state = sys.argv[1:]
    if state:
        _keep_state(Path(*state))
    app = _quick(_one_writer(DomainDispatcherApplication(create_backend_app)))
    server = make_server("127.0.0.1", int(port), app, threaded=True, request_handler=_Handler)
    print(server.port, flush=True)
    server.serve_forever()
