"""Find the files of a folder and read their text, and say what is wrong with those that cannot be read."""

from __future__ import annotations

import codecs
import functools
import os
import re
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from runtime_memory.importers import Item

__all__ = [
    "MAX_BYTES",
    "Document",
    "below",
    "decode",
    "forget_folders",
    "load",
    "origin",
    "place",
    "printable",
    "real",
    "stem",
    "walk",
]

MAX_BYTES = 16_000_000

_NOT_NOTES = frozenset({"__pycache__", "node_modules", "site-packages"})
_UTF16, _UTF32 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_CONTROLS = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f]")  # no text holds these; tab, line ends and escape are in some
_WINDOWS_1252 = re.compile("[\x80-\x9f]")


class Document(NamedTuple):
    """A file's text, its lines ended by line feeds, when it was changed last (seconds), and what there is to notice."""

    text: str
    changed: float
    notice: str | None = None

    @property
    def modified(self) -> datetime:
        """When the file was changed last."""
        return datetime.fromtimestamp(self.changed, UTC)


def origin(path: Path, anchor: str = "") -> str:
    """Return a place in a file: the file's absolute path without links and, after a ``#``, an anchor in it."""
    try:
        return place(printable(real(path)), anchor)
    except ValueError:  # a NUL in the path: no such file can be, but it was asked for
        return place(str(path), anchor)


def real(file: str | os.PathLike[str]) -> str:
    """Return the absolute path of a file without links; of its folder that is asked once (see ``forget_folders``).

    Raises ValueError for a path with a NUL in it.
    """
    path = os.fspath(file)
    folder, name = os.path.split(path)
    if name in ("", ".", "..") or "\0" in name or os.path.islink(path):  # noqa: PTH114 - this runs once a note
        return os.path.realpath(path)
    return os.path.join(_real_folder(folder), name)  # noqa: PTH118


@functools.lru_cache(maxsize=1024)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def forget_folders() -> None:
    """Look anew where folders really are, as an import does that begins."""
    _real_folder.cache_clear()


def stem(name: str) -> str:
    """Return a file's name without its suffix, as pathlib has it."""
    dot = name.rfind(".")
    return name[:dot] if 0 < dot < len(name) - 1 else name


def place(file: str, anchor: str = "") -> str:
    """Return a place in a file whose absolute path is known."""
    return f"{file}#{anchor}" if anchor or "#" in file else file  # else a # of the path would begin the anchor


def printable(path: str) -> str:
    """Return a path as valid Unicode, two different ones as two different texts."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def below(path: Path, wanted: Callable[[Path], bool]) -> Iterator[Path | Item]:
    """Yield the wanted files of a folder, and what is passed over; a file yields itself, whatever it is."""
    return walk(path, wanted) if path.is_dir() else iter((path,))


def walk(
    folder: Path, wanted: Callable[[Path], bool], kept: Callable[[Path], bool] = lambda _: False
) -> Iterator[Path | Item]:
    """Yield the wanted files of a folder in order, and items for what is passed over.

    Hidden files and folders, and what is in them, are passed over unless ``kept`` says otherwise; symbolic links too:
    what they lead to inside the folder is found anyway, what is outside was not asked for. What is neither wanted nor a
    folder is left out without a word. A folder that cannot be listed is a fault, and the others are walked.
    """
    root = os.path.realpath(folder)
    unreadable: list[OSError] = []
    for name, below, files in os.walk(root, onerror=unreadable.append):
        here = Path(name)
        inside = "/." in name.removeprefix(root)  # something hidden
        descend = []
        for each in sorted(below):
            reason = _passed_over(here / each, inside or each.startswith("."), kept)
            if reason:
                yield Item(printable(str(here / each)) + "/", skipped=reason)
            else:
                descend.append(each)
        below[:] = descend
        for each in sorted(files):
            if wanted(file := here / each):
                reason = _passed_over(file, inside or each.startswith("."), kept)
                yield Item(printable(str(file)), skipped=reason) if reason else file
    for error in unreadable:
        yield Item(printable(str(error.filename or folder)), skipped=error.strerror or str(error), fault=True)


def load(file: Path) -> Document | Item:
    """Return a file's text, or the reason why it has none; never raises."""
    try:
        about = os.stat(file)  # noqa: PTH116 - these lines run once a note, and pathlib costs as much as the reading
        if not stat.S_ISREG(about.st_mode):
            return Item(origin(file), skipped="not a regular file", fault=True)
        if about.st_size > MAX_BYTES:
            return Item(origin(file), skipped=f"larger than {MAX_BYTES // 1_000_000} MB", fault=True)
        with open(file, "rb", buffering=0) as opened:  # noqa: PTH123
            data = opened.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        return Item(origin(file), skipped=getattr(error, "strerror", None) or str(error), fault=True)
    text, notice = decode(data)
    if text is None:
        return Item(origin(file), skipped="not a text file", fault=True)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Document(text, about.st_mtime, notice)


def decode(data: bytes) -> tuple[str | None, str | None]:
    """Return the text in some bytes, None where they are no text, and a notice when it had to be guessed or mended.

    UTF-8 and, by their mark or their NULs, UTF-16 and UTF-32; else UTF-8 with a few bad bytes replaced, or
    Windows-1252 or Latin-1 where most bytes beyond ASCII would be bad.
    """
    if data.startswith(_UTF32):
        return _decoded(data, "utf-32")
    if data.startswith(_UTF16):
        return _decoded(data, "utf-16")
    if b"\0" in data:
        return _with_nul(data)
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        return _not_utf8(data)


def _decoded(data: bytes, encoding: str) -> tuple[str | None, str | None]:
    text = data.decode(encoding, "replace").removeprefix("\ufeff").replace("\0", "")
    bad = text.count("\ufffd") > data.decode(encoding, "ignore").count("\ufffd")
    return text, f"not all of it is {encoding.upper()}; what is not was replaced" if bad else None


def _with_nul(data: bytes) -> tuple[str | None, str | None]:
    sample = data[:4_096]
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        # In UTF-16 nearly every second byte of a Western text is NUL, and none of the others.
        if sample[start::2].count(0) > 0.7 * (len(sample) // 2) and 0 not in sample[1 - start :: 2]:
            text, notice = _decoded(data, encoding)
            return (None, None) if text is None or _CONTROLS.search(text) else (text, notice)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None, None
    return (None, None) if _CONTROLS.search(text) else (text.replace("\0", " "), "NUL characters were left out")


def _not_utf8(data: bytes) -> tuple[str | None, str | None]:
    mended = data.decode("utf-8-sig", "replace")
    bad = mended.count("\ufffd")
    if sum(map(len, re.findall("[^\x00-\x7f\ufffd]+", mended))) > bad:
        return mended, f"{bad} bytes are not UTF-8 and were replaced"
    text = data.decode("latin-1")
    if _CONTROLS.search(text):
        return None, None
    if _WINDOWS_1252.search(text):
        return data.decode("cp1252", "replace"), "not UTF-8, read as Windows-1252"
    return text, "not UTF-8, read as Latin-1"


def _passed_over(path: Path, hidden: bool, kept: Callable[[Path], bool]) -> str | None:  # noqa: FBT001 - a fact of it
    if hidden and not kept(path):
        return "hidden"
    if path.name in _NOT_NOTES:
        return "not its owner's notes"
    return "a symbolic link" if os.path.islink(path) else None  # noqa: PTH114
