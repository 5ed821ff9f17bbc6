"""Who sees which memories: filters by user, profile, project and session, the same for every operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexes.filters import All, AnyOf, Filter, In
from runtime_memory.content import choice, label, tag_list
from runtime_memory.models import MemoryCategory, MemoryScope

__all__ = ["Caller", "in_project", "where"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a gateway user (None: the owner) in a profile (None: the default one).

    A user's memories are seen by that user alone. A named profile sees its own memories and the default's; the
    default profile does not see a named one's, unless profiles are shared.
    """

    user: str | None = None
    profile: str | None = None
    profiles_shared: bool = False

    def sees(self) -> Filter:
        """Return what passes every operation of this caller."""
        own = In("user", (label(self.user, "user"),))
        if self.profiles_shared:
            return own
        return All((own, In("profile", tuple({"", label(self.profile, "profile")}))))


def in_project(project: str | None, session: str | None = None) -> Filter:
    """Return what a search in a project sees: its memories and the global ones; without a project, everything.

    Memories of a session are seen in that session, and where no project narrows the search.
    """
    named = label(project, "project")
    if not named:
        return All()
    seen: list[Filter] = [In("scope", (MemoryScope.GLOBAL.value,))]
    seen.append(All((In("scope", (MemoryScope.PROJECT.value,)), In("project", (named,)))))
    if held := label(session, "session"):
        seen.append(All((In("scope", (MemoryScope.SESSION.value,)), In("session", (held,)))))
    return AnyOf(tuple(seen))


def where(
    caller: Caller,
    *,
    project: str | None = None,
    session: str | None = None,
    category: MemoryCategory | str | None = None,
    tags: Sequence[str] = (),
    include_archived: bool = False,
) -> Filter:
    """Return what a search of a caller sees, narrowed to what has the category and all the tags."""
    clauses = [caller.sees(), in_project(project, session)]
    if category is not None:
        clauses.append(In("category", (choice(MemoryCategory, category, "category").value,)))
    clauses += [In("tags", (tag,)) for tag in tag_list(tags)]
    if not include_archived:
        clauses.append(In("archived", (False,)))
    return All(tuple(clauses))
