"""Runtime Memory as a memory provider of Hermes Agent."""

from __future__ import annotations

from typing import Any

from provider.memory_provider import RuntimeMemoryProvider

__all__ = ["RuntimeMemoryProvider", "register"]


def register(ctx: Any) -> None:
    """Hand the provider to the host; it calls this when it loads the plugin."""
    ctx.register_memory_provider(RuntimeMemoryProvider())
