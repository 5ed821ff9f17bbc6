"""What the tools, the resources and the prompt do with the store; it knows nothing of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runtime_memory import arguments, serialize
from runtime_memory.errors import InvalidInputError, MemoryNotFoundError
from runtime_memory.mcp.context import project_context
from runtime_memory.models import Memory, NewMemory

if TYPE_CHECKING:
    from runtime_memory.store import MemoryStore

__all__ = ["Calls"]

_Tool = Callable[[Mapping[str, Any]], dict[str, Any]]
_LISTED = 100
_GATHERED = 300
_ON_TOPIC = 30


class Calls:
    """The server's use of one store, in one project or (None) in all of them; any thread may call it.

    Every method raises RuntimeMemoryErrors alone.
    """

    def __init__(self, store: MemoryStore, project: str | None = None) -> None:
        self._store = store
        self.project = project
        self._tools: dict[str, _Tool] = {
            "remember": self._remember,
            "recall": self._recall,
            "outcome": self._outcome,
            "edit": self._edit,
            "forget": self._forget,
            "why": self._why,
            "stats": self._stats,
        }

    def tool(self, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool and return its result."""
        if name not in self._tools:
            raise InvalidInputError(f"unknown tool {name!r}; valid are: {', '.join(self._tools)}"[:300])
        return self._tools[name](args)

    def newest(self) -> list[Memory]:
        """Return the memories that are listed as resources: the newest hundred."""
        return self._store.list(limit=_LISTED, project=self.project)

    def memory(self, memory_id: str) -> dict[str, Any]:
        """Return everything about one memory."""
        return _for_model(self._store.get(memory_id))

    def context(self, args: Mapping[str, Any]) -> str:
        """Return what is known about a project as the text of a prompt; with a ``topic`` what is known about that."""
        project = self._project(args)
        if topic := arguments.optional_text(args, "topic"):
            found = [hit.memory for hit in self._store.search(topic, limit=_ON_TOPIC, project=project)]
        else:
            found = self._store.list(limit=_GATHERED, project=project)
        return project_context(found, project=project, topic=topic)

    def _remember(self, args: Mapping[str, Any]) -> dict[str, Any]:
        new = NewMemory(
            arguments.required_text(args, "content"),
            category=arguments.required_text(args, "category").strip().lower(),
            tags=arguments.tags(args),
            project=self._project(args),
            profile=self._store.settings.profile,
            supersedes=arguments.optional_text(args, "supersedes"),
        )
        return serialize.written_json(self._store.write([new])[0])

    def _recall(self, args: Mapping[str, Any]) -> dict[str, Any]:
        found = self._store.search(
            arguments.required_text(args, "query"),
            limit=arguments.limit(args),
            category=_category(args),
            project=self._project(args),
        )
        return serialize.results_json(found, full=False)

    def _outcome(self, args: Mapping[str, Any]) -> dict[str, Any]:
        outcome = arguments.outcome(args)
        known, unknown = arguments.known(_ids(args), self._store.get)
        if not known:
            return {"recorded": False, "reason": f"no memory with these ids is known: {', '.join(unknown)}"}
        updated = self._store.record_outcome(known, outcome, origin="mcp")
        result = {"recorded": True, "outcome": outcome, "updated": serialize.outcomes_json(updated)}
        return result | ({"unknown": unknown} if unknown else {})

    def _edit(self, args: Mapping[str, Any]) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if arguments.optional_text(args, "content"):
            changes["content"] = arguments.required_text(args, "content")
        if category := _category(args):
            changes["category"] = category
        if args.get("tags") is not None:
            changes["tags"] = arguments.tags(args)
        memory_id = arguments.required_text(args, "memory_id").strip("`'\" ")
        if not changes:
            raise InvalidInputError("nothing to change; give content, category or tags")
        return _for_model(self._store.edit(memory_id, **changes))

    def _forget(self, args: Mapping[str, Any]) -> dict[str, Any]:
        known, unknown = arguments.known(_ids(args), self._store.get)
        if unknown:
            raise MemoryNotFoundError(f"nothing was forgotten; no memory is known by: {', '.join(unknown)}")
        return {"forgotten": [self._store.forget(each).id for each in known]}

    def _why(self, args: Mapping[str, Any]) -> dict[str, Any]:
        project = self._project(args)
        found = self._store.explain(
            arguments.required_text(args, "query"),
            limit=arguments.limit(args, self._store.settings.recall_limit),
            outside=self.project is None,
            project=project,
        )
        return serialize.explanation_json(found)

    def _stats(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return serialize.stats_json(self._store.stats())

    def _project(self, args: Mapping[str, Any]) -> str | None:
        """Return the project of a call; a server that is bound to one leads to no other."""
        named = arguments.optional_text(args, "project")
        if self.project and named not in (None, self.project):
            raise InvalidInputError(f"this server serves the project {self.project!r} only; leave project out"[:300])
        return self.project or named


def _for_model(memory: Memory) -> dict[str, Any]:
    """Return everything about a memory, its content as a model may be shown it."""
    return serialize.memory_json(memory) | serialize.memory_json(memory, full=False)


def _ids(args: Mapping[str, Any]) -> list[str]:
    """Return the ids of a call, which must name one at least; ``memory_id`` is taken too."""
    ids = arguments.id_list(args) or arguments.id_list(args, "memory_id")
    if not ids:
        raise InvalidInputError("memory_ids is required: the ids of the memories, as recall returns them")
    return ids


def _category(args: Mapping[str, Any]) -> str | None:
    named = arguments.optional_text(args, "category")
    return named.lower() if named else None
