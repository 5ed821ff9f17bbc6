"""A TCP proxy that can be closed and opened again: to its clients, a server that goes away and comes back."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_CHUNK = 65_536


class Proxy:
    """Pass every connection on to a port of this machine, as long as it is open."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener: socket.socket | None = None
        self._connections: set[socket.socket] = set()
        self.port = 0
        self.open()

    def open(self) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        self._listener.listen(128)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Break off every connection, and refuse new ones."""
        if self._listener is not None:
            _end(self._listener)
            self._listener = None
        for connection in list(self._connections):
            _end(connection)
        self._connections.clear()

    def hang(self) -> None:
        """Break off every connection, and take new ones without ever answering."""
        self.close()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen(128)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:  # it has been stopped
                _end(client)
                continue
            self._connections |= {client, server}
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
        for each in (source, sink):
            self._connections.discard(each)
            _end(each)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
