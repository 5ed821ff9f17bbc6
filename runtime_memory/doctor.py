"""Check everything that a memory depends on, one finding each, and mend what is safe to mend."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from runtime_memory import cpu, hermes_shim
from runtime_memory.errors import RuntimeMemoryError
from runtime_memory.settings import Settings

if TYPE_CHECKING:
    from runtime_memory.health import Health
    from runtime_memory.models import StoreStats
    from runtime_memory.store import MemoryStore

__all__ = ["Finding", "State", "diagnose"]

_LOW_BYTES = 200_000_000
_MANY_FRAGMENTS = 400
_SHOWN = 3


class State(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, what was found, and what to do about it."""

    name: str
    state: State
    message: str
    advice: str | None = None


def diagnose(*, db: str | None = None, fix: bool = False, home: Path | None = None) -> Iterator[Finding]:
    """Yield findings, as they come; with ``fix`` what is safe to mend is mended first.

    ``db`` is the store's folder, by default that of the settings; ``home`` the home of Hermes. Never raises for what is
    wrong: that is a finding.
    """
    yield Finding(
        "version", State.OK, f"runtime-memory {metadata.version('runtime-memory')}, Python {sys.version.split()[0]}"
    )
    settings, problems = Settings.load_valid(db=db)
    yield _settings(problems)
    usable = _libraries()
    yield usable
    yield from _folder(settings.folder, fix=fix)
    if usable.state is State.OK:
        yield from _store(settings, fix=fix)
    yield _network(settings)
    yield from _hermes(hermes_shim.status(home or hermes_shim.default_home()))


def _settings(problems: list[str]) -> Finding:
    if problems:
        return Finding("settings", State.PROBLEM, "; ".join(problems), "correct or unset what is named")
    given = sorted(name for name in os.environ if name.startswith("RUNTIME_MEMORY_"))
    return Finding("settings", State.OK, f"valid{'; set: ' if given else ', all by default'}{', '.join(given)}")


def _libraries() -> Finding:
    advice = "use another machine, or build lancedb from source for this one"
    if missing := cpu.missing_features():
        return Finding("processor", State.PROBLEM, f"it lacks {', '.join(missing)}, which LanceDB needs", advice)
    if problem := cpu.probe():
        return Finding("libraries", State.PROBLEM, problem, f"{sys.executable} -m pip install --upgrade runtime-memory")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("lancedb", "tantivy"))
    return Finding("libraries", State.OK, f"{versions} can be loaded")


def _folder(folder: Path, *, fix: bool) -> Iterator[Finding]:
    if not folder.exists():
        yield Finding("folder", State.NOTE, f"{folder} is not there yet", "the first memory makes it")
        return
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        yield Finding("folder", State.PROBLEM, f"{folder} cannot be read", "make it a folder that you may read")
        return
    if not os.access(folder, os.W_OK):
        yield Finding("folder", State.PROBLEM, f"{folder} cannot be written", f"chmod u+rwx {folder}")
    yield _private(folder, fix=fix)
    yield _lock(folder)
    free = shutil.disk_usage(folder).free
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    message = f"{_megabytes(size)} used by {folder}, {_megabytes(free)} free"
    low = free < max(_LOW_BYTES, size)
    yield Finding("disk", State.PROBLEM if low else State.OK, message, "free some space" if low else None)


def _lock(folder: Path) -> Finding:
    from indexes.lock import WriterLock

    lock = WriterLock(folder / "lock", 0)
    with lock.held(wait=False) as free:
        if free:
            return Finding("lock", State.OK, "free")
    holder = lock.holder()
    message = f"held by {holder}" if holder else "held by another process, or it cannot be taken here"
    return Finding("lock", State.NOTE, message, "a write waits for it; stop that process if it hangs")


def _private(folder: Path, *, fix: bool) -> Finding:
    if os.name != "posix":
        return Finding("permissions", State.OK, "not checked on this system")
    paths = [folder, *folder.rglob("*")]
    open_ = [path for path in paths if path.exists() and not path.is_symlink() and path.stat().st_mode & 0o077]
    if not open_:
        return Finding("permissions", State.OK, "only you can read it")
    message = f"{len(open_)} files or folders have permissions for others"
    if not fix:
        reachable = folder in open_  # else nobody gets to them: they are of a write that was cut short
        return Finding("permissions", State.PROBLEM if reachable else State.NOTE, message, "mem doctor --fix")
    for path in open_:
        path.chmod(0o700 if path.is_dir() else 0o600)
    return Finding("permissions", State.FIXED, f"{message}; now only by you")


def _store(settings: Settings, *, fix: bool) -> Iterator[Finding]:
    from runtime_memory.store import MemoryStore

    if not settings.place.is_remote and not (settings.folder / "manifest.json").exists():
        yield Finding(
            "store", State.NOTE, "there are no memories yet", 'begin with: mem add "…"   or: mem import FOLDER'
        )
        yield from _model(settings, None)
        return
    try:
        with MemoryStore(settings) as store:
            yield from _contents(store, fix=fix)
    except RuntimeMemoryError as error:
        advice = "mem restore BACKUP brings back an earlier state"
        if settings.place.is_remote:
            advice = "look at what the message names"
        yield Finding("store", State.PROBLEM, str(error), advice)


def _contents(store: MemoryStore, *, fix: bool) -> Iterator[Finding]:
    stats, health = store.stats(), store.health()
    archived = stats.total_memories - stats.active_memories
    yield Finding("store", State.OK, f"{stats.total_memories} memories, {archived} of them archived")
    for sentence in health.recovered:
        yield Finding("recovery", State.NOTE, sentence, "the damaged files are kept beside the store")
    mend = _Mending(store, fix=fix)
    yield mend.finding("indexes", _agreement(health), store.reindex)
    yield mend.finding("fragments", _fragments(health), store.optimize)
    yield from _model(store.settings, stats)
    yield mend.finding("vectors", _vectors(health, store.settings), store.optimize)
    yield _orphans(health)
    yield _leftovers(health)
    yield _project(store.settings, stats)
    yield from _quality(store)


@dataclass(frozen=True)
class _Mending:
    store: MemoryStore
    fix: bool

    def finding(self, name: str, found: Finding, mend: Callable[[], object]) -> Finding:
        """Return a finding, mended where that was asked for and helps."""
        if found.state is not State.PROBLEM or not self.fix:
            return found
        try:
            mend()
        except RuntimeMemoryError as error:
            return Finding(name, State.PROBLEM, f"{found.message}; mending it failed: {error}", found.advice)
        return replace(found, state=State.FIXED, advice=None)


def _agreement(health: Health) -> Finding:
    if not health.disagreements:
        return Finding("indexes", State.OK, "the table and the text index agree, id by id")
    few = "; ".join(health.disagreements[:_SHOWN])
    return Finding("indexes", State.PROBLEM, f"{len(health.disagreements)} disagreements: {few}", "mem reindex")


def _fragments(health: Health) -> Finding:
    message = f"{health.fragments} data files"
    if health.fragments <= _MANY_FRAGMENTS:
        return Finding("fragments", State.OK, message)
    return Finding("fragments", State.PROBLEM, f"{message}, which makes reading slow", "mem doctor --fix")


def _model(settings: Settings, stats: StoreStats | None) -> Iterator[Finding]:
    if settings.embedding == "null":
        yield Finding("model", State.NOTE, "search goes by words alone", "unset RUNTIME_MEMORY_EMBEDDING for more")
        return
    from runtime_memory.embedding import load_embedder
    from runtime_memory.manifest import stored_model

    try:
        embedder = load_embedder(settings.embedding_model or stored_model(settings.folder))
    except Exception as error:  # noqa: BLE001 - whatever a model's files do is a finding
        yield Finding("model", State.PROBLEM, str(error), "until then memories are found by their words")
        return
    stored = stats.embedding_model if stats else None
    if stored not in (None, embedder.identity):
        message = f"the store's vectors are of {stored}, the configured model is {embedder.identity}"
        yield Finding("model", State.PROBLEM, message, "mem reindex --embeddings")
        return
    yield Finding("model", State.OK, f"{embedder.identity}, {embedder.dimension} dimensions")


def _vectors(health: Health, settings: Settings) -> Finding:
    if not health.without_vectors:
        return Finding("vectors", State.OK, f"{health.vectors} passages embedded, none is missing")
    message = f"{health.without_vectors} memories have no vector"
    if settings.embedding == "null":
        return Finding("vectors", State.NOTE, message, "none is needed while RUNTIME_MEMORY_EMBEDDING is 'null'")
    return Finding("vectors", State.PROBLEM, message, "mem reindex")


def _orphans(health: Health) -> Finding:
    if not health.orphans:
        return Finding("outcomes", State.OK, "each belongs to a memory")
    message = f"outcomes of {health.orphans} memories that are forgotten"
    return Finding("outcomes", State.NOTE, message, "they count for nothing; mem purge removes them")


def _leftovers(health: Health) -> Finding:
    if not health.leftovers:
        return Finding("leftovers", State.OK, "none")
    names = ", ".join(path.name for path in health.leftovers[:_SHOWN])
    message = f"{len(health.leftovers)} parts that are not in use: {names}"
    return Finding("leftovers", State.NOTE, message, "mem purge removes them")


def _project(settings: Settings, stats: StoreStats) -> Finding:
    named = settings.project
    if not named or named == "auto" or not stats.total_memories or named in stats.by_project:
        return Finding(
            "project", State.OK, f"{named or 'none'}; with memories: {', '.join(stats.by_project) or 'none'}"
        )
    there = ", ".join(stats.by_project) or "none"
    message = f"RUNTIME_MEMORY_PROJECT is {named!r}, which has no memories"
    return Finding("project", State.NOTE, message, f"projects with memories: {there}")


def _quality(store: MemoryStore) -> Iterator[Finding]:
    from runtime_memory.suspicion import suspicion

    sources: dict[str, int] = {}
    suspect = 0
    for memory in store.memories():
        sources[memory.source.value] = sources.get(memory.source.value, 0) + 1
        suspect += suspicion(memory.content) is not None
    yield Finding("sources", State.OK, ", ".join(f"{count} {name}" for name, count in sources.items()) or "none")
    if suspect:
        message = f"{suspect} memories read like instructions to the agent"
        yield Finding("suspects", State.NOTE, message, "look at them: mem list --suspect")


def _network(settings: Settings) -> Finding:
    always = f"to {settings.place}" if settings.place.is_remote else "none"
    fetched = "" if settings.embedding == "null" else ", but to fetch a model's weights once, when they are missing"
    return Finding("network", State.OK, always + fetched)


def _hermes(found: hermes_shim.Status) -> Iterator[Finding]:
    if found.interpreter is None and not found.installed:
        yield Finding("hermes", State.NOTE, "there is no hermes command on the PATH", "mem hermes install connects it")
        return
    if not found.installed or not found.current:
        yield Finding("hermes", State.PROBLEM, f"no current plugin in {found.home}", "mem hermes install")
    if found.configured != hermes_shim.NAME:
        message = f"memory.provider is {found.configured or 'not set'}, ours is {hermes_shim.NAME}"
        yield Finding("hermes provider", State.NOTE, message, hermes_shim.NEXT_COMMAND)
    if found.interpreter and found.missing:
        message = f"{found.interpreter} cannot import {', '.join(found.missing)}"
        advice = hermes_shim.install_command(found.interpreter)
        yield Finding("hermes interpreter", State.PROBLEM, message, advice)
    if found.ok:
        yield Finding("hermes", State.OK, f"active in {found.home}, run by {found.interpreter}")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"
