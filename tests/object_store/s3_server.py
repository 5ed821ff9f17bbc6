"""An S3 server on this machine, in a process of its own: ``python s3_server.py PORT``; port 0 takes a free one.

It prints its port. Each request that writes is handled alone: a conditional write must be one step, as it is in S3,
and moto looks and writes in two.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

_WRITING = {"PUT", "POST", "DELETE"}
_writing = threading.Lock()


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"


def _one_writer(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def handle(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in _WRITING:
            return app(environ, start)
        with _writing:
            return list(app(environ, start))

    return handle


if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = _one_writer(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", int(sys.argv[1]), app, threaded=True, request_handler=_Handler)
    print(server.port, flush=True)
    server.serve_forever()
