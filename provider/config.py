"""The settings of a session: the environment, above what Hermes keeps in its config.yaml, above the defaults."""

from __future__ import annotations

import functools
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime_memory.settings import Settings

__all__ = ["config_schema", "load_settings", "warn_once"]

_log = logging.getLogger(__name__)

_SECTION = re.compile(r"""runtimememory["']?\s*:""")
_KEYS = {"db_path": "db"}
_ASKED = {
    "db_path": "string",
    "recall_limit": "integer",
    "project": "string",
    "embedding": "string",
    "embedding_model": "string",
    "mirror_writes": "boolean",
    "extract_on_end": "boolean",
    "owners": "string",
    "hermes_trace": "string",
}


def load_settings(hermes_home: str | None = None) -> Settings:
    """Return the settings of a home of Hermes; a bad value keeps its default and is warned of once a process."""
    from runtime_memory.hermes_shim import default_home
    from runtime_memory.settings import ENV_PREFIX, Settings

    file = (Path(hermes_home) if hermes_home else default_home()) / "config.yaml"
    stored = {_KEYS.get(name, name): value for name, value in _section(file).items()}
    unset = {name for name in Settings.model_fields if not os.environ.get(ENV_PREFIX + name.upper())}
    settings, problems = Settings.load_valid(**{n: v for n, v in stored.items() if n in unset and v != ""})
    for problem in problems:
        warn_once(problem)
    return settings


def config_schema() -> list[dict[str, Any]]:
    """Return the settings that a person makes, as the host's set-up asks for them."""
    from runtime_memory.settings import ENV_PREFIX, Settings

    fields = []
    for key, kind in _ASKED.items():
        name = _KEYS.get(key, key)
        field = Settings.model_fields[name]
        asked = {
            "key": key,
            "description": field.description,
            "default": field.default or ("" if kind == "string" else field.default),
            "env_var": ENV_PREFIX + name.upper(),
            "type": kind,
        }
        for bound in field.metadata:
            asked |= {"minimum": bound.ge} if hasattr(bound, "ge") else {}
            asked |= {"maximum": bound.le} if hasattr(bound, "le") else {}
        fields.append(asked)
    return fields


@functools.cache
def warn_once(message: str) -> None:
    """Log a warning, unless this process has logged it before: an API server makes an agent for every request."""
    _log.warning("%s", message)


def _section(file: Path) -> dict[str, Any]:
    """Return ``memory.runtimememory`` of a config.yaml, where the host's dashboard writes."""
    try:
        status = file.stat()
        return _parsed(file, status.st_mtime_ns, status.st_size)
    except OSError:
        return {}


@functools.lru_cache(maxsize=8)
def _parsed(file: Path, _modified: int, _size: int) -> dict[str, Any]:
    text = file.read_text("utf-8", "replace")
    if not _SECTION.search(text):
        return {}  # most often: it spares the parse
    import yaml

    try:
        section = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))["memory"]["runtimememory"]  # noqa: S506 - both are safe
    except (yaml.YAMLError, ValueError, KeyError, TypeError) as error:
        warn_once(f"{file}: memory.runtimememory cannot be read and is left out: {error!r}")
        return {}
    return {str(name): value for name, value in section.items()} if isinstance(section, dict) else {}
