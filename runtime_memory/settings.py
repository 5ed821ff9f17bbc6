"""Settings, read from environment variables with the prefix RUNTIME_MEMORY_."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from runtime_memory.errors import SettingsError
from runtime_memory.place import SCHEMES, Place, parse_options

__all__ = ["ENV_PREFIX", "Settings"]

ENV_PREFIX = "RUNTIME_MEMORY_"


class Settings(BaseSettings):
    """What a person can set; every field is an environment variable, ``recall_limit`` is RUNTIME_MEMORY_RECALL_LIMIT.

    Raises SettingsError from ``load``, which names the variable, its value and what is valid.
    """

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", frozen=True, env_ignore_empty=True)

    db: str = Field("~/.runtime-memory", description="Folder of the store, or s3://, gs:// or az://BUCKET/PREFIX.")
    storage_options: Annotated[Mapping[str, str], NoDecode] = Field(
        default_factory=dict,
        repr=False,
        description="For an object store: LanceDB's storage options, as JSON or as key=value with commas.",
    )
    embedding: Literal["local", "null"] = Field(
        "local", description="'local' embeds with a model on this machine, 'null' searches by keywords only."
    )
    embedding_model: str | None = Field(
        None, description="A sentence-transformers name or path; the bundled all-MiniLM-L6-v2 when unset."
    )
    recall_limit: int = Field(8, ge=1, le=50, description="Memories injected per turn.")
    min_score: float = Field(0.0, ge=0.0, le=1.0, description="Least fused score, before outcomes.")
    project: str | None = Field(None, description="Project scope; 'auto' is the git repository around you.")
    mirror_writes: bool = Field(default=True, description="Mirror the host's built-in notes into the store.")
    extract_on_end: bool = Field(default=False, description="Let an LLM propose memories when a session ends.")
    extract_model: str | None = Field(None, description="The model that proposes memories, outside the host.")
    owners: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Gateway user ids that are the owner's own, separated by commas; '*' for everyone."
    )
    profile: str | None = Field(None, description="A Hermes profile whose memories to see from outside it.")
    profiles: Literal["separate", "shared"] = Field(
        "separate", description="'shared' lets every Hermes profile see every memory."
    )
    hermes_trace: str | None = Field(None, description="Path of a JSONL trace; unset for none.")
    mcp_token: SecretStr | None = Field(None, description="The bearer token of the MCP server over HTTP.")
    lock_timeout: float = Field(30.0, gt=0, le=3600, description="Seconds to wait for another writer.")

    @field_validator("owners", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("db")
    @classmethod
    def _is_folder(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it is empty; name a folder")
        if "://" in value:
            return _object_store(value.strip())
        try:
            Path(value).expanduser()
        except RuntimeError as error:
            raise ValueError(str(error)) from error
        return value

    @field_validator("storage_options", mode="before")
    @classmethod
    def _options(cls, value: Any) -> Any:
        return parse_options(value) if isinstance(value, str) else value

    @property
    def place(self) -> Place:
        """Where the store is, with ``~`` expanded."""
        return Place.of(self.db, self.storage_options)

    @property
    def folder(self) -> Path:
        """The store's folder; of a store on an object store, the folder that caches it on this machine."""
        return self.place.folder

    @classmethod
    def load(cls, **values: Any) -> Settings:
        """Return the settings from the environment; ``values`` take precedence, None among them counts as unset."""
        given = {name: value for name, value in values.items() if value is not None}
        try:
            return cls(**given)
        except ValidationError as error:
            raise SettingsError("; ".join(_problem(item, given) for item in error.errors())) from error

    @classmethod
    def load_valid(cls, **values: Any) -> tuple[Settings, list[str]]:
        """Return the settings with every bad value replaced by its default, and what was wrong with those."""
        given = {name: value for name, value in values.items() if value is not None}
        try:
            return cls(**given), []
        except ValidationError as error:
            bad = {str(item["loc"][0]) for item in error.errors()}
            problems = [f"{_problem(item, given)}; the default is used" for item in error.errors()]
        defaults = {name: cls.model_fields[name].get_default(call_default_factory=True) for name in bad}
        return cls(**{**given, **defaults}), problems


def _object_store(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    if scheme == "db":
        raise ValueError(
            "LanceDB Cloud and Enterprise (db://) cannot be used, as LanceDB's remote API makes no tables with stable "
            "row ids, by which replicas and outcomes are kept current; name a bucket of your own (s3://...) or a folder"
        )
    if scheme not in SCHEMES:
        raise ValueError(f"name a folder, or a bucket with one of {', '.join(f'{each}://' for each in SCHEMES)}")
    if not rest.strip("/"):
        raise ValueError("it names no bucket; give s3://BUCKET/PREFIX")
    return uri


def _problem(item: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    name = str(item["loc"][0])
    variable = name if name in given else ENV_PREFIX + name.upper()
    value = given.get(name, os.environ.get(ENV_PREFIX + name.upper(), item.get("input")))
    message = str(item["msg"])  # "Input should be ...", or "Value error, " before one of ours
    reason = message.removeprefix("Value error, ") if item["type"] == "value_error" else message.lower()
    if name == "storage_options":  # there may be a secret in it
        return f"{variable} is not valid: {reason}"
    return f"{variable}={value!r} is not valid: {reason}"
