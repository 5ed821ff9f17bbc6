"""Mask passwords, keys and tokens in a text, and keep the sentence around them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

__all__ = ["Masked", "mask", "mask_nested", "masked_since"]


_SHORT = 200


class Masked(NamedTuple):
    """A text without its secrets, and what kinds of secret it held."""

    text: str
    kinds: tuple[str, ...]


def mask(text: str) -> Masked:
    """Replace every secret by its kind, as in ``[masked: aws key]``; a masked text stays as it is.

    Recognised are tokens of a published form, private keys, passwords in addresses and headers, and what the text
    itself calls a password, token, secret or key, where the value looks like one.
    """
    return _remembered(text) if len(text) <= _SHORT else _masked(text)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> Masked:
    """Return the same of a short text: an import meets its tags and its paths again and again."""
    return _masked(text)


def _masked(text: str) -> Masked:
    kinds: list[str] = []
    lowered = text.lower()
    hints = {hint for rarest, hints in _by_rarest() if rarest in lowered for hint in hints if hint in lowered}
    for rule in _RULES if hints else ():
        if not hints.isdisjoint(rule.hints) and _may_match(rule, lowered):
            text = rule.pattern.sub(_masking(rule, kinds), text)
    return Masked(text, tuple(dict.fromkeys(kinds)))


def _may_match(rule: _Rule, lowered: str) -> bool:
    return rule.sieve is None or not lowered.isascii() or rule.sieve.search(lowered) is not None


_FROM_RARE_TO_COMMON = "_:zqjx8945673210vk./yw-bgpfmucdlhrsnioate "


@cache
def _by_rarest() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the hints by their rarest character: most texts lack many of these, and one is sought in no time."""
    groups: dict[str, list[str]] = {}
    for hint in sorted({hint for rule in _RULES for hint in rule.hints}):
        groups.setdefault(min(hint, key=_FROM_RARE_TO_COMMON.find), []).append(hint)
    return tuple((rarest, tuple(hints)) for rarest, hints in groups.items())


def mask_nested(value: Any, name: str = "") -> Any:
    """Return a JSON value with every secret in it masked, also what its name alone gives away, and the names too."""
    if isinstance(value, dict):
        masked: dict[Any, Any] = {}
        for key, each in value.items():
            shown = mask(key).text if isinstance(key, str) else key
            while shown in masked:  # two names that are secrets
                shown = f"{shown} again"
            masked[shown] = mask_nested(each, str(shown))
        return masked
    if isinstance(value, list | tuple):
        return [mask_nested(each, name) for each in value]
    if isinstance(value, str):
        alone = mask(value)
        return alone.text if alone.kinds or not name else _mask_named(name, value)
    return _mask_named(name, value) if name and isinstance(value, int) and not isinstance(value, bool) else value


def _mask_named(name: str, value: Any) -> Any:
    kinds = mask(f'{name}="{value}"').kinds
    return f"[masked: {kinds[0]}]" if kinds else value


def masked_since(given: Callable[[], str], kept: str) -> tuple[str, ...]:
    """Return the kinds of secret that are masked in a text and were not in the one that it was made from."""
    if "[masked: " not in kept:
        return ()
    before = given()
    return tuple(dict.fromkeys(kind for kind in _MASK.findall(kept) if f"[masked: {kind}]" not in before))


class _Rule(NamedTuple):
    """A secret is what ``pattern`` finds, without the group ``before`` and unless ``harmless`` says so.

    The pattern is tried on texts that hold one of the hints, which are in lower case; where it is slow, and the text
    is ASCII, only on those in which the ``sieve`` finds something once they are in lower case.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    harmless: Callable[[re.Match[str]], bool] = lambda _: False
    sieve: re.Pattern[str] | None = None


def _masking(rule: _Rule, kinds: list[str]) -> Callable[[re.Match[str]], str]:
    def replace(found: re.Match[str]) -> str:
        if rule.harmless(found):
            return found[0]
        groups = found.groupdict("")
        kind = rule.kind or _kind(groups["name"])
        kinds.append(kind)
        return f"{groups.get('before', '')}[masked: {kind}]"

    return replace


def _kind(name: str) -> str:
    """Return what a text calls a secret."""
    lowered = name.lower()
    return next((kind for kind in ("token", "key", "secret") if kind in lowered), "password")


def _token(kind: str, pattern: str, *hints: str) -> _Rule:
    return _Rule(kind, hints, re.compile(rf"(?<![A-Za-z0-9]){pattern}"))


_PLACEHOLDERS = frozenset(
    "changeme example foobar null none string text token secret password passwd pass pwd passphrase true false "
    "required optional unset user username hidden redacted".split()
)
_ELSEWHERE = ("$", "<", "{", "[", "%", "*", "your", "os.", "env.", "process.", "secrets.", "/", "./", "~")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_MASK = re.compile(r"\[masked: ([a-z ]+)\]")
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")
_SYMBOL = re.compile(r"[!#$%&*+=?@^|~]")


def _is_placeholder(value: str) -> bool:
    """Tell whether a value only stands for a secret that is somewhere else."""
    lowered = value.lower()
    return lowered in _PLACEHOLDERS or lowered.startswith(_ELSEWHERE) or "://" in value or len(set(value)) == 1


def _is_open_address(found: re.Match[str]) -> bool:
    # A local database often has its user's name for a password: without it the address would be of no use.
    return found["value"] == found["user"] or _is_placeholder(found["value"])


def _is_prose(found: re.Match[str]) -> bool:
    return re.fullmatch(r"[a-z-]+", found["value"]) is not None


# What else follows "the password is", beside passwords of letters alone.
_OF_A_PASSWORD = frozenset(
    """
    above again alone alphanumeric ascii bcrypt below blank boolean broken bytes char clear cleartext complex
    correct data different double easy elsewhere email empty enough equal expired fake false field fine first
    forgotten found fresh given gone great hard hash hashes here hidden identical incorrect input insecure
    inside integer invalid irrelevant kept known legacy literally lost lowercase mandatory masked mine missing
    never number object obsolete okay once outside plain plaintext prompt public random ready reset right rotten
    safe same secretstr secure sensitive short shown simple somewhere stale still stolen strong taken theirs
    there twice unclear undefined unique unknown unsafe unset uppercase useless valid value varchar visible weak
    written wrong yours
    """.split()
)
_LIKE_AN_ADJECTIVE = re.compile(r"[a-z]+(?:ed|ing|able|ible|ory|al|ive|ful|less|ous|ant|ent|ary|ic|ly)", re.IGNORECASE)


def _is_of_a_password(found: re.Match[str]) -> bool:
    value = found["value"].lower()
    return (
        value in _OF_A_PASSWORD
        or _is_placeholder(value)
        or value == (found.groupdict().get("user") or "").lower()
        or _LIKE_AN_ADJECTIVE.fullmatch(value) is not None
    )


def _is_no_secret(found: re.Match[str]) -> bool:
    """Tell whether what follows the word "password" is none: most sentences go on with a word."""
    name, value, quoted = found["name"], found["value"], bool(found["quote"])
    if len(value) < 4 or _is_placeholder(value) or _DATE.fullmatch(value):
        return True
    if not quoted and _DOTTED.fullmatch(value):
        return True
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    if _kind(name) == "password":
        assigned = name.isupper() and "=" in found["joint"]
        return not (quoted or assigned or digits or (letters and _SYMBOL.search(value)))
    mixed = value.lower() != value != value.upper()
    return len(value) < 8 or not letters or digits < (1 if mixed else 2)


_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|passwort|kennwort|contraseña|mot de passe|senha|пароль|密码|密碼"
    r"|パスワード|비밀번호"
    r"|secret[ _-]?access[ _-]?key|(?:api|access|account|auth|encryption|private|secret|signing)[ _-]?key|secret|token"
)
_HINTS = tuple("pass pwd kennwort contraseña senha пароль 密码 密碼 パスワード 비밀번호 key secret token".split())
_JOINT = r":=|=>|[=:\uff1a]|(?:is|was|ist|war|es|est|é|это)\b|是|は|为|為"
_END = r"\s\"'`,;()\[\]{}<>\u3000-\u30ff\u4e00-\u9fff\uff00-\uff65"
_NAMED = re.compile(
    rf"(?P<before>(?P<name>(?:{_NAMES})(?-i:_[A-Z0-9]+)?)[\"'`]?(?: (?:for|of|to|on|in|at|für) [^\n.:=]{{1,40}}?)?"
    rf"(?P<joint>\s*(?:{_JOINT})\s*)(?P<quote>[\"'`])?)"
    rf"(?P<value>(?(quote)[^\s\"'`]+(?=[\"'`])|[^{_END}]*[^{_END}.:](?![A-Za-z0-9_(\[{{])))",
    re.IGNORECASE,
)
_NAMING = re.compile(
    r"(?:pass(?:word|wd|phrase|code|wort|e)|pwd|kennwort|senha|key|secret|token)(?:_[a-z0-9]+)?[\"'`]?"
    rf"(?: (?:for|of|to|on|in|at) [^\n.:=]{{1,40}}?)?\s*(?:{_JOINT})"
)
"""What every match of the pattern above has in it, in ASCII and lower case."""
_OPTION = re.compile(
    rf"(?P<before>--(?P<name>[a-z-]{{0,20}}(?:{_NAMES}))(?P<joint> )(?P<quote>[\"'])?)(?P<value>[^\s\"'-][^\s\"']+)",
    re.IGNORECASE,
)
_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]+-----|(?:\s|\\n|[A-Za-z0-9+/=]{16,})*+)"
)

# The forms are those that the issuers publish, for scanners like that of GitHub to find.
_RULES = (
    _Rule("private key", ("private key",), _PEM),
    _token("aws key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])", "akia", "asia", "abia", "acca"),
    _token("anthropic key", r"sk-ant-[\w-]{10,}", "sk-ant-"),
    _token("openai key", r"sk-(?=[A-Za-z_-]{0,60}\d)[\w-]{16,}", "sk-"),
    _token(
        "github token", r"(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,})", *"ghp_ gho_ ghu_ ghs_ ghr_ _pat_".split()
    ),
    _token("gitlab token", r"gl(?:pat|ptt|dt|rt|ft|soat|cbt|agent)-[\w.-]{16,}", "glpat-", "gl"),
    _token("slack token", r"(?:xox[abeoprs]|xapp)-[\w-]{10,}", "xox", "xapp-"),
    _Rule("slack webhook", ("hooks.slack.com",), re.compile(r"(?P<before>hooks\.slack\.com/services/)[\w/-]{16,}")),
    _token("stripe key", r"(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{10,}", "k_live_", "k_test_", "whsec_"),
    _token("google key", r"(?:AIza[\w-]{30,}|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,})", "aiza", "gocspx-", "ya29."),
    _token("hugging face token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _token("npm token", r"npm_[A-Za-z0-9]{30,}", "npm_"),
    _token("pypi token", r"pypi-[\w-]{32,}", "pypi-"),
    _token("sendgrid key", r"SG\.[\w-]{16,}\.[\w-]{16,}", "sg."),
    _token("twilio key", r"SK[0-9a-f]{32}(?![A-Za-z0-9])", "sk"),
    _token("telegram token", r"\d{8,10}:AA[\w-]{32,34}(?![\w-])", ":aa"),
    _token("digitalocean token", r"do[opr]_v1_[a-f0-9]{32,}", "_v1_"),
    _token(
        "api key",
        r"(?:gsk_|xai-|r8_|pplx-|tvly-|ntn_|lin_api_|dapi|shp(?:at|ca|pa|ss)_|dckr_pat_|hvs\.|glsa_|sntrys_|NRAK-|PMAK-)"
        r"[\w-]{24,}",
        *"gsk_ xai- r8_ pplx- tvly- ntn_ lin_api_ dapi shpat_ shpca_ shppa_ shpss_".split(),
        *"dckr_pat_ hvs. glsa_ sntrys_ nrak- pmak-".split(),
    ),
    _token("age key", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}", "age-secret-key-1"),
    _token("jwt", r"eyJ[\w-]{8,}(?:\.[\w-]{4,}){2,4}", "eyj"),
    _Rule(
        "password",
        ("://",),
        re.compile(r"(?P<before>://(?P<user>[^\s/:@]{0,100}):)(?P<value>[^\s/@]{1,200})(?=@)"),
        _is_open_address,
    ),
    _Rule(
        "token",
        ("bearer", "authorization"),
        re.compile(
            r"(?i)(?P<before>(?:authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token)|bearer)\s+)"
            r"(?P<value>[\w.~+/=-]{12,})"
        ),
        _is_prose,
    ),
    _Rule(
        "password",
        (" -u", "--user"),
        re.compile(r"(?P<before>\s(?:-u|--user)[ =]?[\"']?[\w.@-]{1,60}:)(?P<value>[^\s\"':]{4,})"),
        lambda found: found["value"].isdigit() or _is_placeholder(found["value"]),
    ),
    _Rule(
        "password",
        ("password is", "password was", "passphrase is", "passcode is"),
        re.compile(
            r"(?i)(?P<before>\bpass(?:word|phrase|code) (?:is|was) )(?P<value>[a-z]{5,40})"
            r"(?=\s*(?:[.,;!)]?\s*\Z|[.,;!)\n](?!\w)))"
        ),
        _is_of_a_password,
    ),
    _Rule(
        "password",
        ("pass", "pwd", "pw"),
        re.compile(
            r"(?i)(?P<before>\b(?:user(?:name)?|login|account|e-?mail)\s?[:=]\s?[\"'`]?(?P<user>[^\s,;/|\"'`]{1,60})[\"'`]?"
            r"[\s,;/|]{1,6}(?:and )?(?:password|passwd|pass|pwd|pw)\s?[:=]\s?)(?P<value>[a-z]{5,40})(?![\w(.\[:=])"
        ),
        _is_of_a_password,
    ),
    _Rule("", _HINTS, _OPTION, _is_no_secret),
    _Rule("", _HINTS, _NAMED, _is_no_secret, _NAMING),
)
