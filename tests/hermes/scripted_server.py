"""An OpenAI-compatible server on 127.0.0.1 that answers from a script."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

Body = dict[str, Any]

MODEL = "scripted-model"
CONTEXT_LENGTH = 128_000
EXHAUSTED = "(the script has no further step)"


@dataclass(frozen=True)
class ToolCall:
    """One tool call of the scripted model; `arguments` may be raw, even malformed, JSON text."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    def wire(self, index: int, call_id: str) -> Body:
        """Return the call in the form of the chat completions API."""
        raw = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        return {"index": index, "id": call_id, "type": "function", "function": {"name": self.name, "arguments": raw}}


@dataclass(frozen=True)
class Failure:
    """An HTTP error instead of a reply."""

    status: int = 500
    message: str = "scripted failure"


Reply = str | ToolCall | Sequence[ToolCall] | Failure
Step = Reply | Callable[[Body], Reply]


@dataclass(frozen=True)
class Request:
    """One logged chat completion request."""

    body: Body
    side: bool  # answered beside the script, such as the generation of a title

    @property
    def messages(self) -> list[Body]:
        """Return the messages of the request."""
        return list(self.body.get("messages", []))

    @property
    def tool_names(self) -> list[str]:
        """Return the names of the offered tools, in order."""
        return [tool["function"]["name"] for tool in self.body.get("tools") or []]

    @property
    def system(self) -> str:
        """Return the system prompt."""
        return "\n".join(text_of(m) for m in self.messages if m.get("role") == "system")

    @property
    def last_user(self) -> str:
        """Return the newest user message as it went over the wire."""
        texts = [text_of(m) for m in self.messages if m.get("role") == "user"]
        return texts[-1] if texts else ""

    @property
    def tool_results(self) -> list[str]:
        """Return the results of tools, oldest first."""
        return [text_of(m) for m in self.messages if m.get("role") == "tool"]

    @property
    def recalled(self) -> str:
        """Return what stands inside the memory fence of the newest user message, without the host's note."""
        _, opened, rest = self.last_user.partition("<memory-context>\n")
        inside, closed, _ = rest.partition("\n</memory-context>")
        if not (opened and closed):
            return ""
        return inside.partition("]\n\n")[2]


def text_of(message: Body) -> str:
    """Return the text of a message whose content is a string or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _whole_text(body: Body) -> str:
    return "\n".join(text_of(message) for message in body.get("messages", []))


class ScriptedServer:
    """Serve `script` one step per conversation request, and log every request."""

    def __init__(self, *script: Step) -> None:
        self._lock = threading.Lock()
        self._steps: list[Step] = list(script)
        self._sides: list[tuple[str, Step]] = [("Generate a short, descriptive title", "Scripted title")]
        self._log: list[Request] = []
        self._probes: list[str] = []
        self._ids = itertools.count(1)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, name="scripted-server", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def base_url(self) -> str:
        """Return the address to configure as an OpenAI-compatible endpoint."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def requests(self) -> list[Request]:
        """Return the conversation requests so far: those that consumed a step."""
        with self._lock:
            return [request for request in self._log if not request.side]

    @property
    def side_requests(self) -> list[Request]:
        """Return the chat requests that were answered beside the script."""
        with self._lock:
            return [request for request in self._log if request.side]

    @property
    def probes(self) -> list[str]:
        """Return the other requests (`METHOD path`): model lists, probes for the kind of server."""
        with self._lock:
            return list(self._probes)

    @property
    def remaining(self) -> int:
        """Return the number of steps that were not asked for."""
        with self._lock:
            return len(self._steps)

    def say(self, *steps: Step) -> None:
        """Append steps to the script."""
        with self._lock:
            self._steps.extend(steps)

    def answer_when(self, marker: str, step: Step) -> None:
        """Answer each request whose text contains `marker` with `step`, outside the script."""
        with self._lock:
            self._sides.insert(0, (marker, step))

    def clear(self) -> None:
        """Forget the script and the log."""
        with self._lock:
            self._steps.clear()
            self._log.clear()
            self._probes.clear()

    def close(self) -> None:
        """Stop serving."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)

    def note_probe(self, line: str) -> None:
        """Log a request that is no chat completion."""
        with self._lock:
            self._probes.append(line)

    def next_reply(self, body: Body) -> Reply:
        """Log a chat request and return its reply."""
        whole = _whole_text(body)
        with self._lock:
            side = next((step for marker, step in self._sides if marker in whole), None)
            self._log.append(Request(body, side is not None))
            step = side if side is not None else self._steps.pop(0) if self._steps else EXHAUSTED
        return step(body) if callable(step) else step

    def completion(self, reply: Reply) -> tuple[Body, str]:
        """Return the assistant message for a reply and its finish reason."""
        if isinstance(reply, str):
            return {"role": "assistant", "content": reply}, "stop"
        assert not isinstance(reply, Failure)
        calls = [reply] if isinstance(reply, ToolCall) else list(reply)
        wired = [call.wire(index, f"call_{next(self._ids)}") for index, call in enumerate(calls)]
        return {"role": "assistant", "content": None, "tool_calls": wired}, "tool_calls"


def _usage() -> Body:
    return {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _envelope(kind: str, choice: Body) -> Body:
    return {
        "id": "chatcmpl-scripted",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL,
        "choices": [choice],
    }


def _chunks(message: Body, finish: str) -> Iterator[Body]:
    kind = "chat.completion.chunk"
    yield _envelope(kind, {"index": 0, "delta": message, "finish_reason": None})
    yield _envelope(kind, {"index": 0, "delta": {}, "finish_reason": finish})
    yield _envelope(kind, {"index": 0, "delta": {}, "finish_reason": None}) | {"choices": [], "usage": _usage()}


def _handler_for(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        owner = server

    return Handler


class _Handler(BaseHTTPRequestHandler):
    """Answer the paths a client of the chat completions API asks for."""

    owner: ScriptedServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Keep the test output quiet."""

    def do_GET(self) -> None:
        """Answer the model list; every other probe (Ollama, LM Studio, llama.cpp) gets a 404."""
        self.owner.note_probe(f"GET {self.path}")
        card = {"id": MODEL, "object": "model", "owned_by": "test", "context_length": CONTEXT_LENGTH}
        if self.path.rstrip("/") == "/v1/models":
            self._json(200, {"object": "list", "data": [card]})
        elif self.path.startswith("/v1/models/"):
            self._json(200, card)
        else:
            self._json(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        """Answer a chat completion, as one object or as server-sent events."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.rstrip("/") != "/v1/chat/completions":
            self.owner.note_probe(f"POST {self.path}")
            self._json(404, {"error": {"message": "not found"}})
            return
        body: Body = json.loads(raw)
        reply = self.owner.next_reply(body)
        if isinstance(reply, Failure):
            self._json(reply.status, {"error": {"message": reply.message, "type": "scripted"}})
            return
        message, finish = self.owner.completion(reply)
        if body.get("stream"):
            self._stream(message, finish)
        else:
            choice = {"index": 0, "message": message, "finish_reason": finish}
            self._json(200, _envelope("chat.completion", choice) | {"usage": _usage()})

    def _json(self, status: int, payload: Body) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, message: Body, finish: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in _chunks(message, finish):
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True
