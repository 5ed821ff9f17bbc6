"""The MCP server over one store: the SDK's protocol on one side, plain calls on the other."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import anyio
from anyio import CapacityLimiter, to_thread
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.lowlevel.server import lifespan as default_lifespan
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from runtime_memory.errors import InvalidInputError, MemoryNotFoundError, RuntimeMemoryError, StoreClosedError
from runtime_memory.mcp.calls import Calls
from runtime_memory.mcp.catalogue import NAME, TITLE, ToolSpec, instructions, tool_specs
from runtime_memory.mcp.context import one_line

if TYPE_CHECKING:
    from runtime_memory.store import MemoryStore

__all__ = ["PROMPT", "build_server", "keep_open"]

PROMPT = "project_context"
SCHEME = "memory://"

_log = logging.getLogger(__name__)
_THREADS = 16
_MAX_MESSAGE = 500
_MAX_TITLE = 80
_JSON = "application/json"
_Context = ServerRequestContext[Any, Any]
_Lifespan = Callable[[Server[Any]], AbstractAsyncContextManager[Any]]
_R = TypeVar("_R")


def build_server(
    store: MemoryStore, project: str | None = None, *, lifespan: _Lifespan = default_lifespan
) -> Server[Any]:
    """Return the server of a store, bound to a project or to none; the store is the caller's to close."""
    handlers = _Handlers(Calls(store, project))
    return Server(
        NAME,
        version=version("runtime-memory"),
        title=TITLE,
        instructions=instructions(project),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        lifespan=lifespan,
    )


def keep_open(store: MemoryStore) -> _Lifespan:
    """Return a lifespan that warms the store on a thread of its own, and closes it when the server ends."""

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[None]:
        Thread(target=_warm, args=(store,), name="runtime-memory-warm-up", daemon=True).start()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(store.close)

    return lifespan


class _Handlers:
    """Answer requests; the store is synchronous, so its work runs on worker threads."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._limiter = CapacityLimiter(_THREADS)

    async def list_tools(self, _: _Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(spec, self._calls.project) for spec in tool_specs()])

    async def call_tool(self, _: _Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            text = _as_json(await self._run(self._calls.tool, params.name, params.arguments or {}))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, the model must read it and the server go on
            return CallToolResult(content=[TextContent(text=_message(params.name, error))], is_error=True)
        return CallToolResult(content=[TextContent(text=text)], structured_content=json.loads(text))

    async def list_resources(self, _: _Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        with _protocol_errors():
            newest = await self._run(self._calls.newest)
        return ListResourcesResult(
            resources=[
                Resource(
                    uri=SCHEME + memory.id,
                    name=memory.id,
                    title=one_line(memory.content, _MAX_TITLE),
                    description=memory.category.value,
                    mime_type=_JSON,
                )
                for memory in newest
            ]
        )

    async def list_resource_templates(
        self, _: _Context, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        template = ResourceTemplate(
            uri_template=SCHEME + "{id}",
            name="memory",
            title="A memory",
            description="Everything about one memory: its text, where it came from, and its outcome record.",
            mime_type=_JSON,
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, _: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        with _protocol_errors(uri=uri):
            if not uri.startswith(SCHEME):
                raise InvalidInputError(f"{uri[:80]!r} is no memory; the form is {SCHEME}ID")
            memory = await self._run(self._calls.memory, unquote(uri.removeprefix(SCHEME)).strip("/"))
        content = TextResourceContents(uri=params.uri, mime_type=_JSON, text=_as_json(memory))
        return ReadResourceResult(contents=[content])

    async def list_prompts(self, _: _Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        arguments = [PromptArgument(name="topic", description="What it should be about; everything when left out.")]
        if self._calls.project is None:
            named = "The project's name; all of them when left out."
            arguments.insert(0, PromptArgument(name="project", description=named))
        described = "What long-term memory holds on a project: decisions, conventions, gotchas, commands."
        prompt = Prompt(name=PROMPT, title="Project context", description=described, arguments=arguments)
        return ListPromptsResult(prompts=[prompt])

    async def get_prompt(self, _: _Context, params: GetPromptRequestParams) -> GetPromptResult:
        with _protocol_errors():
            if params.name != PROMPT:
                raise InvalidInputError(f"unknown prompt {params.name[:80]!r}; there is {PROMPT}")
            text = await self._run(self._calls.context, params.arguments or {})
        message = PromptMessage(role="user", content=TextContent(text=_clean(text)))
        return GetPromptResult(description="What long-term memory holds on the project.", messages=[message])

    async def _run(self, function: Callable[..., _R], *args: Any) -> _R:
        # A client that goes away does not abandon its call: the thread ends what it began.
        return await to_thread.run_sync(functools.partial(function, *args), limiter=self._limiter)


class _protocol_errors:  # noqa: N801 - used like a function, as those of contextlib
    """Turn what goes wrong into an error of the protocol: parameters that are not valid, or an internal one."""

    def __init__(self, **data: str) -> None:
        self._data = data or None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            callers = isinstance(error, InvalidInputError | MemoryNotFoundError)
            code = INVALID_PARAMS if callers else INTERNAL_ERROR
            raise MCPError(code=code, message=_message("the memory", error), data=self._data) from error


def _warm(store: MemoryStore) -> None:
    try:
        store.warm()
    except StoreClosedError:
        pass  # the server ended before it was warm
    except Exception as error:  # noqa: BLE001 - nobody waits for this thread; the first call tells its caller
        _log.warning("the store could not be opened ahead of the first call: %s", error)


def _tool(spec: ToolSpec, project: str | None) -> Tool:
    return Tool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        input_schema=spec.input_schema(with_project=project is None),
        output_schema=spec.output_schema(),
        annotations=ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent,
            open_world_hint=False,
        ),
    )


def _message(what: str, error: Exception) -> str:
    """Return what a client reads of an error: ours as they are, others logged and named."""
    if isinstance(error, RuntimeMemoryError):
        message = str(error)
    else:
        _log.error("%s failed", what, exc_info=error)
        message = f"{what} failed: {type(error).__name__}: {error}"
    return _clean(message if len(message) <= _MAX_MESSAGE else f"{message[:200]} […] {message[-250:]}")


def _as_json(value: Mapping[str, Any]) -> str:
    return _clean(json.dumps(value, ensure_ascii=False))


def _clean(text: str) -> str:
    """Return a text that can be sent: a lone surrogate has no UTF-8 form."""
    return text.encode("utf-8", "replace").decode()
