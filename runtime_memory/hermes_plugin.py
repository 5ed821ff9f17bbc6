# Written by `mem hermes install` of runtime-memory; `mem hermes uninstall` removes it.
"""Hand the memory provider of runtime-memory to Hermes Agent, or say why it cannot be used.

Hermes takes a plugin folder for a memory provider when it calls register_memory_provider, and drops one that raises
without a word. So whatever is missing, something is registered that can tell. Nothing here imports runtime-memory
itself, as this file also runs where it is gone: `hermes update` may rebuild the environment.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import shlex
import sys
from typing import Any

try:
    from agent.memory_provider import MemoryProvider as _Base
except ImportError:
    _Base = object

NEEDED = (
    *("runtime_memory", "provider", "filelock", "huggingface_hub", "lancedb", "markdown_it", "numkong", "numpy"),
    *("pyarrow", "pydantic_settings", "regex", "safetensors", "tantivy", "threadpoolctl", "tokenizers", "yaml"),
)


def register(ctx: Any) -> None:
    """Register the provider, or a stand-in that says what is missing."""
    try:
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        if not missing:
            importlib.import_module("provider").register(ctx)
            return
        problem = "it is not installed" if "runtime_memory" in missing else f"{', '.join(missing)} cannot be imported"
    except Exception as error:  # noqa: BLE001 - a plugin that raises is dropped without a word
        problem = f"it cannot be imported ({type(error).__name__}: {error})"
    ctx.register_memory_provider(Unavailable(problem))


def pip_command() -> str:
    """Return the command that installs runtime-memory for this interpreter."""
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip"):
        return f"{python} -m pip install runtime-memory"
    return f"uv pip install --python {python} runtime-memory"


class Unavailable(_Base):  # type: ignore[misc]
    """A memory provider that does nothing but tell why."""

    name = "runtimememory"
    _told = False

    def __init__(self, problem: str) -> None:
        self._problem = problem

    def unavailable_reason(self) -> str:
        """Return what is missing, for which interpreter, and the command that installs it."""
        return f"Runtime Memory is off: {self._problem} in {sys.executable}. Run: {pip_command()}"

    def is_available(self) -> bool:
        """Return False, and say why on standard error once a process: Hermes itself does not."""
        stream = sys.__stderr__  # `hermes -z` closes sys.stderr
        if stream is not None and not Unavailable._told:
            Unavailable._told = True
            with contextlib.suppress(OSError, ValueError):
                print(self.unavailable_reason(), file=stream, flush=True)
        return False

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Do nothing."""

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return no tools."""
        return []

    def get_config_schema(self) -> list[dict[str, Any]]:
        """Return nothing to set."""
        return []

    def shutdown(self) -> None:
        """Do nothing."""
