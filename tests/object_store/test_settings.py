"""How a store on an object store is named, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb.remote.table import RemoteTable
from typer.testing import CliRunner

import indexes.lance
from runtime_memory import Settings
from runtime_memory.cli import app
from runtime_memory.errors import SettingsError
from runtime_memory.place import parse_options, without_secrets


@pytest.mark.parametrize("uri", ["s3://team/memories", "gs://team/a/b", "az://team/memories/"])
def test_a_bucket_has_a_cache_folder_of_its_own(uri: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = Settings.load(db=uri).place
    assert place.is_remote
    assert str(place) == place.uri == uri.rstrip("/")
    assert place.folder.parent == tmp_path / "runtime-memory"
    assert place.folder != Settings.load(db="s3://team/others").folder
    assert not place.folder.exists()


def test_a_folder_is_its_own_place(tmp_path: Path) -> None:
    place = Settings.load(db=str(tmp_path / "store")).place
    assert (place.is_remote, place.folder, str(place)) == (False, tmp_path / "store", str(tmp_path / "store"))


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("db://team", "stable row ids"),
        ("http://team/memories", "s3://"),
        ("s3://", "names no bucket"),
        ("ftp://x/y", "s3://"),
    ],
)
def test_what_is_no_usable_place_says_why(uri: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Settings.load(db=uri)


@pytest.mark.parametrize("command", [["stats"], ["add", "x"], ["doctor"]])
def test_a_table_of_lancedb_cloud_is_refused_with_what_to_do_instead(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_DB", "db://team")
    monkeypatch.setenv("HOME", str(tmp_path))
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    told = " ".join(result.output.split())
    assert "db://team" in told
    assert "LanceDB's remote API makes no tables with stable row ids" in told
    assert "name a bucket of your own (s3://...) or a folder" in told


def test_lancedb_s_remote_api_still_lacks_what_a_store_needs() -> None:
    """When this fails, a store there may have become possible."""
    database = lancedb.connect("db://team", api_key="key", region="us-east-1")
    create: Any = database.create_table
    with pytest.raises(TypeError, match="storage_options"):
        create("memories", schema=pa.schema([("id", pa.string())]), storage_options=indexes.lance._OPTIONS)
    table = RemoteTable(SimpleNamespace(name="memories"), "team")
    with pytest.warns(UserWarning, match="no-op"):
        table.optimize()
    with pytest.raises(NotImplementedError):
        table.to_arrow()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("region=eu-west-1,allow_http=true", {"region": "eu-west-1", "allow_http": "true"}),
        (" Region = eu-west-1 , token=a=b ", {"region": "eu-west-1", "token": "a=b"}),
        ('{"allow_http": true, "timeout": "5s"}', {"allow_http": "true", "timeout": "5s"}),
        ("", {}),
    ],
)
def test_storage_options_are_pairs_or_json(text: str, options: dict[str, str]) -> None:
    assert parse_options(text) == options


@pytest.mark.parametrize("text", ["geheim", "=geheim", '{"secret_access_key": "geheim"', "a=b,geheim"])
def test_storage_options_that_cannot_be_read_are_not_repeated(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_STORAGE_OPTIONS", text)
    with pytest.raises(SettingsError, match="RUNTIME_MEMORY_STORAGE_OPTIONS is not valid") as caught:
        Settings.load()
    assert "geheim" not in str(caught.value)
    settings, (problem,) = Settings.load_valid()
    assert settings.storage_options == {}
    assert "geheim" not in problem


def test_options_of_a_store_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_STORAGE_OPTIONS", "secret_access_key=geheim")
    settings = Settings.load(db="s3://team/memories")
    assert settings.place.options["secret_access_key"] == "geheim"
    assert "geheim" not in f"{settings!r} {settings.place!r}"


def test_what_is_written_to_a_client_holds_no_credentials() -> None:
    given = (
        "endpoint=https://minio,region=eu,access_key_id=a,secret_access_key=b,session_token=c,azure_storage_sas_key=d"
    )
    assert without_secrets(parse_options(given)) == {"endpoint": "https://minio", "region": "eu"}
