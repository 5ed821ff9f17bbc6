"""Tell which project a session is in: the repository, wherever one of its worktrees is checked out."""

from __future__ import annotations

from pathlib import Path

__all__ = ["repository_name", "session_project"]


def session_project(setting: str | None, workspace: str | None) -> str | None:
    """Return the project: the setting (``auto`` for the repository), else the last part of the host's workspace."""
    if setting == "auto":
        try:
            return repository_name(Path.cwd())
        except OSError:  # the folder is gone, or may not be looked into
            return None
    if setting:
        return setting
    parts = [part for part in (workspace or "").replace("\\", "/").split("/") if part]
    return parts[-1] if parts else None


def repository_name(directory: Path) -> str | None:
    """Return the name of the main checkout of the git repository around a folder.

    None outside a repository, and where the repository is the home folder or the root: there it holds everything.
    """
    for folder in (directory, *directory.parents):
        marker = folder / ".git"
        if marker.exists():
            checkout = folder if marker.is_dir() else _main_checkout(folder, marker)
            return None if checkout.resolve() in (Path.home().resolve(), Path(checkout.anchor)) else checkout.name
    return None


def _main_checkout(folder: Path, marker: Path) -> Path:
    """Return the main checkout that a worktree's ``.git`` file leads to; a submodule is a checkout of its own."""
    try:
        repository = folder / marker.read_text("utf-8").partition("gitdir:")[2].strip()
        common = (repository / (repository / "commondir").read_text("utf-8").strip()).resolve()
    except (OSError, ValueError):
        return folder
    return common.parent if common.name == ".git" else common.with_suffix("")
