"""Write docs/api.md, the reference of the library's face, from its docstrings: ``python -m tests.api_reference``."""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import runtime_memory
from runtime_memory import errors
from runtime_memory.settings import ENV_PREFIX, Settings

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
HEAD = """\
# The library

What `from runtime_memory import ...` offers. This page is made from the docstrings; `python -m tests.api_reference`
writes it anew.
"""


def reference() -> str:
    """Return the page."""
    parts = [HEAD]
    for name in sorted(runtime_memory.__all__):
        value = getattr(runtime_memory, name)
        if inspect.isclass(value) and not issubclass(value, Exception):
            parts += [f"## {name}\n", *_class(value)]
        elif inspect.isfunction(value):
            parts += [f"## {name}\n", _code(f"{name}{_signature(value)}"), _text(value)]
    parts += ["## Errors\n", "All of them are in `runtime_memory.errors`.\n", _code(_tree())]
    return "\n".join(parts)


def _class(kind: type) -> Iterator[str]:
    if issubclass(kind, Settings):
        yield _text(kind)
        yield _settings(kind)
    elif issubclass(kind, enum.Enum):
        yield _text(kind)
        yield "Its values: " + ", ".join(f"`{member.value}`" for member in kind) + ".\n"
    elif is_dataclass(kind):
        yield _code("\n".join([kind.__name__, *(f"    {line}" for line in _fields(kind))]))
        yield _text(kind)
    elif issubclass(kind, tuple):
        shown = {name: getattr(hint, "__forward_arg__", hint) for name, hint in inspect.get_annotations(kind).items()}
        yield _code("\n".join([kind.__name__, *(f"    {name}: {hint}" for name, hint in shown.items())]))
        yield _text(kind)
        return
    else:
        yield _code(f"{kind.__name__}{_signature(kind.__init__).removesuffix(' -> None')}")  # type: ignore[misc]
        yield _text(kind)
    for name, member in vars(kind).items():
        if name.startswith("_") or issubclass(kind, enum.Enum):
            continue
        if isinstance(member, property):
            yield f"### {kind.__name__}.{name}\n"
            yield _text(member)
        elif inspect.isfunction(unwrapped := getattr(member, "__func__", member)) and unwrapped.__doc__:
            yield f"### {kind.__name__}.{name}\n"
            yield _code(f"{name}{_signature(unwrapped)}")
            yield _text(unwrapped)


def _fields(kind: Any) -> Iterator[str]:
    for field in fields(kind):
        factory = field.default_factory is not MISSING
        default = f" = {field.default_factory.__name__}()" if factory else ""  # type: ignore[union-attr]
        default = f" = {_value(field.default)}" if field.default is not MISSING else default
        yield f"{field.name}: {field.type}{default}"


def _settings(kind: type[Settings]) -> str:
    rows = [
        f"| `{name}` | `{ENV_PREFIX}{name.upper()}` | `{field.default!r}` | {field.description} |"
        for name, field in kind.model_fields.items()
    ]
    return "\n".join(["| field | variable | default | |", "|---|---|---|---|", *rows]) + "\n"


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    shown, separated = [], False
    for parameter in list(signature.parameters.values()):
        if parameter.name in {"self", "cls"}:
            continue
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and not separated:
            shown.append("*")
            separated = True
        kind = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
        shown.append(f"{stars}{parameter.name}{kind}{default}")
    returned = "" if signature.return_annotation is signature.empty else f" -> {signature.return_annotation}"
    line = f"({', '.join(shown)}){returned}".replace("builtins.", "")
    if len(line) <= 90:
        return line
    inner = "".join(f"    {each},\n" if each != "*" else "    *,\n" for each in shown)
    return f"(\n{inner}){returned}".replace("builtins.", "")


def _value(value: Any) -> str:
    if type(value) is object:
        return "..."  # a mark for what was not given
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return value.__name__.strip("_") if inspect.isfunction(value) else repr(value)


def _tree() -> str:
    lines = inspect.cleandoc(errors.__doc__ or "").splitlines()
    return "\n".join(line for line in lines if "Error" in line and not line.startswith("Every"))


def _text(value: Any) -> str:
    return (inspect.getdoc(value) or "").replace("``", "`") + "\n"


def _code(text: str) -> str:
    return f"```\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")
    sys.stdout.write(f"{PAGE}\n")
