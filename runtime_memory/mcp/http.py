"""Serve over HTTP: on this machine alone, or with a token; Host and Origin are checked against DNS rebinding."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime_memory.errors import ServerError
from runtime_memory.mcp.server import build_server, keep_open

if TYPE_CHECKING:
    from runtime_memory.store import MemoryStore

__all__ = ["Address", "Guard", "http_app", "is_loopback", "listen", "serve_http"]

PATH = "/mcp"
MAX_BODY = 4 * 1024 * 1024  # a memory has 100,000 characters at most
_SHUTDOWN_SECONDS = 5
_SHORTEST_TOKEN = 16
_HOW_TO_MAKE = "One is made by: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, which further names clients may use for it, and the token that they must send."""

    host: str = "127.0.0.1"
    port: int = 8765
    names: Sequence[str] = ()
    token: str | None = None


def serve_http(
    store: MemoryStore, project: str | None, address: Address, told: Callable[[str], None] = lambda _: None
) -> None:
    """Serve until a signal comes, then finish what is under way and close the store.

    ``told`` is called with the URL once connections are accepted. Raises ServerError before anything is served, when
    the address is not on this machine and there is no token, the token is weak, or the port cannot be had.
    """
    check(address)
    with listen(address) as listening:
        port = listening.getsockname()[1]
        told(f"http://{_bracketed(address.host)}:{port}{PATH}")
        config = uvicorn.Config(
            http_app(store, project, address, port),
            access_log=False,
            log_level=logging.WARNING,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        uvicorn.Server(config).run(sockets=[listening])


def check(address: Address) -> None:
    """Raise ServerError where the address would leave the memories open to others."""
    if address.token is None:
        if not is_loopback(address.host):
            raise ServerError(
                f"{address.host} can be reached from other machines, so a token is needed: set "
                f"RUNTIME_MEMORY_MCP_TOKEN, or give --token-file. {_HOW_TO_MAKE}"
            )
    elif len(address.token) < _SHORTEST_TOKEN or not address.token.isascii() or not address.token.isprintable():
        raise ServerError(
            f"the token must have {_SHORTEST_TOKEN} characters or more, all of them printable ASCII. {_HOW_TO_MAKE}"
        )


def http_app(store: MemoryStore, project: str | None, address: Address, port: int) -> ASGIApp:
    """Return the application: the server at ``/mcp``, behind the token where there is one.

    No session is kept, so a client that disappears leaves nothing behind, and one that comes back after a restart of
    the server needs not begin again.
    """
    server = build_server(store, project, lifespan=keep_open(store))
    hosts = [name if _has_port(name) else f"{name}:{port}" for name in _names(address)]
    bare = _names(address) if port == 80 else address.names  # these may stand behind a proxy on the usual port
    hosts += [name for name in bare if not _has_port(name)]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_BODY,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    return Guard(app, address.token)


class Guard:
    """Let through only requests that carry the token, where there is one, and only those that ask for something.

    The token is compared in constant time. A GET would open a stream, by which nothing ever comes, for as long as the
    client holds it.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 or 405 in the application's place, or let it answer."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if not self._allows(Headers(scope=scope).get("authorization", "")):
            said, named = "A valid token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            return PlainTextResponse(said, status_code=401, headers=named)
        if scope["method"] != "POST":
            return PlainTextResponse("Only POST is answered here", status_code=405, headers={"Allow": "POST"})
        return None

    def _allows(self, header: str) -> bool:
        if self._token is None:
            return True
        scheme, _, given = header.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token)


def listen(address: Address) -> socket.socket:
    """Return a listening socket; port 0 takes a free one. Raises ServerError where that cannot be had."""
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((address.host, address.port), family=family, backlog=512)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ServerError(
            f"cannot listen at {_bracketed(address.host)}:{address.port}: {reason}; choose another --port or --host"
        ) from error


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _names(address: Address) -> list[str]:
    """Return the names by which clients may ask for the server."""
    own = [] if address.host in ("0.0.0.0", "::") else [_bracketed(address.host)]  # noqa: S104 - compared, not bound
    reachable = [] if is_loopback(address.host) else [socket.gethostname()]
    return list(dict.fromkeys([*_LOCAL_NAMES, *own, *reachable, *address.names]))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdigit() and not name.endswith("]")
