"""When a file was made: by its name, or by the git repository that it is in."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

from runtime_memory.importers.frontmatter import noon

__all__ = ["committed", "named", "read_log", "undated"]

_DATE_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_SECONDS = 30
_ALONE = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def named(name: str) -> datetime | None:
    """Return noon of the first date in a file's name, as in ``2024-05-01 standup.md``."""
    for found in _DATE_IN_NAME.finditer(name):
        try:
            return noon(date(int(found[1]), int(found[3]), int(found[4])))
        except ValueError:
            continue
    return None


def committed(file: str | os.PathLike[str]) -> datetime | None:
    """Return when a file was first committed, None outside a repository and for a file that git does not know.

    ``file`` is an absolute path without links. The history of a repository is read once, and again when its index has
    changed.
    """
    path = os.fspath(file)
    folder = os.path.dirname(path)  # noqa: PTH120 - this runs once a note
    while not os.path.lexists(f"{folder}/.git"):
        folder, below = os.path.dirname(folder), folder  # noqa: PTH120
        if folder == below:
            return None
    try:
        changed = os.stat(f"{folder}/.git/index").st_mtime_ns  # noqa: PTH116
    except OSError:  # a worktree's index is elsewhere, and a new repository has none
        changed = 0
    return _first_commits(folder, changed).get(path)


@functools.lru_cache(maxsize=8)
def _first_commits(folder: str, _changed: int) -> Mapping[str, datetime]:
    """Return the date of the first commit of every file of a repository, by absolute path.

    Only exact renames are followed: for others git would compare contents, which may not even be on this machine.
    """
    command = ["git", "-C", folder, "-c", "log.showSignature=false", "log", "--no-ext-diff", "--find-renames=100%"]
    command += ["--name-status", "-z", "--format=%x01%at"]
    try:
        done = subprocess.run(  # noqa: S603 - the folder is one argument, and git is what the person has installed
            command,
            env=os.environ | _ALONE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):  # no git, or no commit yet: the date of the last change must do
        return {}
    return {f"{folder}/{name}": moment for name, moment in read_log(done.stdout).items()}


def read_log(log: bytes) -> dict[str, datetime]:
    """Return the date of the first commit of every file, by its newest name, from git's log with names and NULs.

    A file that was deleted and made again is as old as its second life.
    """
    first: dict[str, datetime] = {}
    newest_name: dict[str, str] = {}
    made: set[str] = set()
    for commit in log.split(b"\1")[1:]:
        seconds, *entries = os.fsdecode(commit).split("\0")
        try:
            moment = datetime.fromtimestamp(int(seconds), UTC)
        except (ValueError, OverflowError):
            continue
        names = iter(entries)
        for status in names:
            kind = status.strip()[:1]
            before = next(names, "") if kind in "RC" and kind else ""
            name = next(names, "")
            current = newest_name.pop(name, name) if kind in "ARC" else newest_name.get(name, name)
            if not kind or current in made:
                continue
            first[current] = moment
            if kind == "R":
                newest_name[before] = current
            elif kind in "AC":
                made.add(current)
    return first


def undated(file: Path, modified: datetime) -> datetime:
    """Return the date of a file that gives none itself: of its first commit, else of its last change."""
    return committed(os.path.realpath(file)) or modified
