"""What the host has, and a stand-in with the same surface for what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["MemoryProvider", "RecallStatus"]


class _StandInProvider:
    """The surface of ``agent.memory_provider.MemoryProvider``, for where Hermes is not installed."""

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Write nothing: settings are environment variables."""


@dataclass(frozen=True)
class _StandInStatus:
    provider_label: str
    count: int
    glyph: str


if TYPE_CHECKING:
    MemoryProvider = _StandInProvider
    RecallStatus = _StandInStatus
else:
    try:
        from agent.memory_provider import MemoryProvider
    except ImportError:
        MemoryProvider = _StandInProvider
    try:
        from agent.memory_provider import RecallStatus
    except ImportError:
        RecallStatus = _StandInStatus
