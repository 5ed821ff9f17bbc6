"""Mask passwords, keys and tokens in a text, and keep the sentence around them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Masked", "mask"]


class Masked(NamedTuple):
    """A text without its secrets, and what kinds of secret it held, in order."""

    text: str
    kinds: tuple[str, ...]


class _Rule(NamedTuple):
    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    shown: Callable[[re.Match[str]], bool] = lambda _: False


def mask(text: str) -> Masked:
    """Replace every secret by its kind, as in ``[masked: aws key]``; a masked text stays as it is.

    Recognised are tokens of a published form, private keys, passwords in addresses and headers, and what a text itself
    calls a password, a secret, a token or an API key, where the value looks like one.
    """
    kinds: list[str] = []
    lowered = text.lower()
    for rule in _RULES:
        if any(hint in lowered for hint in rule.hints):
            text = rule.pattern.sub(_masking(rule, kinds), text)
    return Masked(text, tuple(dict.fromkeys(kinds)))


def _masking(rule: _Rule, kinds: list[str]) -> Callable[[re.Match[str]], str]:
    def replace(found: re.Match[str]) -> str:
        if rule.shown(found):
            return found[0]
        groups = found.groupdict()
        kind = _named(groups["name"]) if "name" in groups else rule.kind
        kinds.append(kind)
        return f"{groups.get('before') or ''}[masked: {kind}]"

    return replace


def _named(name: str) -> str:
    lowered = name.lower()
    return next((kind for kind in ("token", "secret", "key") if kind in lowered), "password").replace("key", "api key")


def _token(kind: str, pattern: str, *hints: str) -> _Rule:
    """Return the rule of a published form; a hint is a part that every such token has, in lower case."""
    return _Rule(kind, hints, re.compile(rf"(?<![A-Za-z0-9]){pattern}"))


_PLACEHOLDERS = frozenset(
    "changeme example foo null none string text token secret password passwd passphrase pass key true false required "
    "optional unset username user your xxx xxxx hidden redacted".split()
)


def _is_placeholder(value: str) -> bool:
    """Tell whether a value stands for a secret that is elsewhere."""
    bare = value.strip("'\"`").lower()
    return (
        bare in _PLACEHOLDERS
        or bare.startswith(("$", "<", "{", "[", "%", "*", "your", "my_", "my-", "os.", "env.", "process.", "secrets."))
        or len(set(bare)) == 1
    )


def _is_open_address(found: re.Match[str]) -> bool:
    """Tell whether an address holds no password worth hiding; many a local database has its user's name for one."""
    return found["value"] == found["user"] or _is_placeholder(found["value"])


def _is_word(found: re.Match[str]) -> bool:
    """Tell whether what follows the word password is no password: most texts go on with another word."""
    name, value, joint = found["name"], found["value"].rstrip(".:"), found["joint"].strip()
    if len(value) < 4 or _is_placeholder(value) or _REFERENCE.search(value):
        return True
    if found["quote"]:
        return joint in _VERBS and value.isalpha() and _named(name) != "password"
    digits, letters = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    if _named(name) != "password":
        return not (digits and letters and len(value) >= 8)
    if digits:
        return bool(_DATE.fullmatch(value)) or (not letters and not value.isdigit())
    return not (joint == "=" and name.isupper()) and not (letters and _SYMBOL.search(value))


_VERBS = frozenset({"is", "was", "ist", "war", "es", "est"})
_REFERENCE = re.compile(r"^/|://|[()\[\]{}<>]|^[A-Za-z_]+(?:\.[A-Za-z_]+)+$|^[A-Za-z]+_[A-Za-z_]+$|^[A-Za-z-]+$(?<=-[a-z]{9})")
_SYMBOL = re.compile(r"[!#$%&*+=?@^|~]")
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")
