"""What a provider instance knows of its session: who speaks, in which project, and whether it may write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from runtime_memory.project import session_project

if TYPE_CHECKING:
    from runtime_memory.settings import Settings

__all__ = ["Session"]


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of one agent."""

    id: str
    project: str | None = None
    user: str | None = None
    profile: str | None = None
    read_only: bool = False

    @classmethod
    def begin(cls, session_id: str, given: Mapping[str, Any], settings: Settings) -> Session:
        """Return the session that a host's keywords describe; unknown ones are ignored."""
        context, platform = _text(given, "agent_context"), _text(given, "platform")
        identity = _text(given, "agent_identity")
        return cls(
            id=session_id,
            project=session_project(settings.project, _text(given, "agent_workspace")),
            user=_user(_text(given, "user_id"), settings.owners),
            profile=None if identity in ("", "default") else identity,
            read_only=context not in ("", "primary") or platform == "cron",
        )

    def renamed(self, session_id: str) -> Session:
        """Return the session under the id that the host has switched to."""
        return replace(self, id=session_id)

    @property
    def seen(self) -> dict[str, Any]:
        """Who asks, as the store's reading methods want it."""
        return {"project": self.project, "session": self.id, **self.owner}

    @property
    def owner(self) -> dict[str, Any]:
        """Whose memories these are, as the store's writing methods want it."""
        return {"user": self.user, "profile": self.profile}


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return str(value).strip() if value is not None else ""


def _user(user_id: str, owners: tuple[str, ...]) -> str | None:
    """Return the user whose memories are kept apart; None for the owner."""
    return None if not user_id or "*" in owners or user_id in owners else user_id
