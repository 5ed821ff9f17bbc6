"""Helpers for snippets that run inside the Hermes environment (see `Hermes.python`)."""

from __future__ import annotations

import importlib
import json
from typing import Any

REPORT = "@@report "


def agent(*, toolsets: tuple[str, ...] = ("memory",), **options: Any) -> Any:
    """Build a real AIAgent the way a gateway does: `user_id`, `platform`, `session_id` … as options."""
    runtime_provider = importlib.import_module("hermes_cli.runtime_provider")
    config = importlib.import_module("hermes_cli.config").load_config()
    runtime = runtime_provider.resolve_runtime_provider()
    settings = {key: runtime.get(key) for key in ("api_key", "base_url", "provider", "api_mode", "credential_pool")}
    settings |= {"model": config["model"]["default"], "enabled_toolsets": list(toolsets), "quiet_mode": True}
    return importlib.import_module("run_agent").AIAgent(**{**settings, **options})


def session_db() -> Any:
    """Open the session database of the current HERMES_HOME."""
    return importlib.import_module("hermes_state").SessionDB()


def ask(an_agent: Any, question: str, history: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Run one turn; the result holds `final_response` and `messages`."""
    result: dict[str, Any] = an_agent.run_conversation(question, conversation_history=history)
    return result


def provider(an_agent: Any) -> Any:
    """Return the external memory provider of an agent, or None."""
    manager = an_agent._memory_manager
    return manager.providers[0] if manager and manager.providers else None


def report(value: Any) -> None:
    """Hand a JSON value to the test."""
    print(REPORT + json.dumps(value), flush=True)
