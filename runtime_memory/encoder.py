"""The forward pass of a BERT sentence encoder in NumPy, so that the default model needs no deep-learning framework.

Architecture: Devlin et al. 2019, "BERT"; mean pooling: Reimers & Gurevych 2019, "Sentence-BERT".
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from .errors import EmbeddingError
from .passages import PASSAGE_TOKENS, replace_surrogates, split_passages
from .weights import model_identity, read_json, read_recipe

__all__ = ["BertEncoder", "UnsupportedModelError"]

Array = NDArray[np.float32]

_MAX_BATCH_TOKENS = 1_024  # bounds a batch's activations to about 25 MB
_MAX_BATCH_THREADS = 4
_GELU_ROWS = 32
_LONGEST_WORD = 100  # WordPiece reads a longer word as one unknown token
_REQUIRED = {
    "model_type": ("bert",),
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
}


class UnsupportedModelError(EmbeddingError):
    """A model folder is sound, but not one that BertEncoder can run exactly."""


class BertEncoder:
    """Embed texts with a BERT sentence-encoder folder; safe to use from several threads at once.

    Vectors are unit-length float32 and equal those of sentence-transformers to about 1e-6.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        """Load a folder of safetensors weights; name, by default the folder's own, begins the identity.

        Raises UnsupportedModelError for a folder that sentence-transformers may run and this class cannot, and
        EmbeddingError for one that is incomplete or damaged.
        """
        config = read_json(folder / "config.json")
        limits = read_json(folder / "sentence_bert_config.json", {})
        _check_supported(folder, config, limits)
        positions = int(config["max_position_embeddings"])
        self.max_tokens = min(int(limits.get("max_seq_length") or positions), positions)
        self._tokenizer = _load_tokenizer(folder / "tokenizer.json")
        self._weights = _load_weights(folder / "model.safetensors", config)
        self._identity = model_identity(name or folder.name, folder)

    @property
    def identity(self) -> str:
        """Name the model and its weights."""
        return self._identity

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        return int(self._weights.words.shape[1])

    def passages(self, text: str) -> list[str]:
        """Cut a text into passages that each fit the model, in order; a text that fits is returned whole."""
        return split_passages(text, self._tokenizer, min(self.max_tokens, PASSAGE_TOKENS))

    def embed_query(self, query: str) -> Array:
        """Return the query's vector, shape (dimension,); a query longer than the model reads is cut."""
        vector: Array = self.embed_passages([query])[0]
        return vector

    def embed_passages(self, passages: Sequence[str]) -> Array:
        """Return one row a passage, shape (len(passages), dimension); a longer passage than the model reads is cut."""
        tokens = [self._token_ids(passage) for passage in passages]
        vectors = np.empty((len(tokens), self.dimension), np.float32)

        def embed(batch: Sequence[int]) -> None:
            vectors[batch] = _embed(self._weights, [tokens[index] for index in batch])

        with _single_threaded_blas:
            _for_each(embed, _batches([len(ids) for ids in tokens]))
        return vectors

    def _token_ids(self, text: str) -> list[int]:
        """Return the ids of the first max_tokens tokens without tokenizing all of a huge text."""
        text = replace_surrogates(text)
        width = 16 * self.max_tokens
        ids: list[int] = self._tokenizer.encode(text[:width]).ids
        # The window may end inside a word, which spoils at most that word's tokens.
        while width < len(text) and len(ids) < self.max_tokens + _LONGEST_WORD:
            width *= 4
            ids = self._tokenizer.encode(text[:width]).ids
        return ids if len(ids) <= self.max_tokens else [*ids[: self.max_tokens - 1], ids[-1]]


@dataclass(frozen=True)
class _Dense:
    """A linear layer, its weights cut into blocks of output columns: shape (blocks, inputs, columns)."""

    weights: Array
    bias: Array


@dataclass(frozen=True)
class _Norm:
    scale: Array
    shift: Array
    epsilon: np.float32


@dataclass(frozen=True)
class _Layer:
    query_key_value: _Dense
    attention: _Dense
    attention_norm: _Norm
    intermediate: _Dense
    output: _Dense
    output_norm: _Norm


@dataclass(frozen=True)
class _Weights:
    words: Array
    positions: Array
    norm: _Norm
    layers: tuple[_Layer, ...]
    heads: int


def _check_supported(folder: Path, config: dict[str, Any], limits: dict[str, Any]) -> None:
    recipe = read_recipe(folder)
    found = [f"{key} {config.get(key)!r}" for key, allowed in _REQUIRED.items() if config.get(key) not in allowed]
    found += [f"pooling {'+'.join(recipe.pooling)!r}"] if recipe.pooling != ("mean",) else []
    found += ["prompts"] if recipe.prompts else []
    found += [f"module {name!r}" for name in recipe.further]
    found += ["do_lower_case in sentence_bert_config.json"] if limits.get("do_lower_case") else []
    found += [f"no {name}" for name in ("modules.json", "model.safetensors") if not (folder / name).is_file()]
    if found:
        raise UnsupportedModelError(f"BertEncoder cannot run the model in {folder}: {', '.join(found)}.")


def _load_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise EmbeddingError(f"The tokenizer {path} cannot be read ({error}). Fetch the model again.") from error
    # The file may bring truncation and padding of its own that are not the model's limits.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _load_weights(path: Path, config: dict[str, Any]) -> _Weights:
    try:
        with safe_open(path, framework="numpy") as file:
            prefix = "bert." if "bert.embeddings.word_embeddings.weight" in set(file.keys()) else ""

            def tensor(name: str) -> Array:
                return np.asarray(file.get_tensor(prefix + name), np.float32)

            return _build_weights(tensor, config)
    except (SafetensorError, OSError, TypeError, KeyError, ValueError) as error:
        raise EmbeddingError(f"The weights {path} cannot be read ({error}). Fetch the model again.") from error


def _build_weights(tensor: Callable[[str], Array], config: dict[str, Any]) -> _Weights:
    epsilon = np.float32(config["layer_norm_eps"])
    heads = int(config["num_attention_heads"])

    def norm(name: str) -> _Norm:
        return _Norm(tensor(f"{name}.LayerNorm.weight"), tensor(f"{name}.LayerNorm.bias"), epsilon)

    def dense(*names: str) -> _Dense:
        weights = np.concatenate([tensor(f"{name}.weight") for name in names])
        return _Dense(_column_blocks(weights), np.concatenate([tensor(f"{name}.bias") for name in names]))

    def layer(name: str) -> _Layer:
        return _Layer(
            dense(*(f"{name}.attention.self.{part}" for part in ("query", "key", "value"))),
            dense(f"{name}.attention.output.dense"),
            norm(f"{name}.attention.output"),
            dense(f"{name}.intermediate.dense"),
            dense(f"{name}.output.dense"),
            norm(f"{name}.output"),
        )

    # All tokens here are of the first segment, so its embedding is part of every position's.
    positions = tensor("embeddings.position_embeddings.weight") + tensor("embeddings.token_type_embeddings.weight")[0]
    layers = tuple(layer(f"encoder.layer.{index}") for index in range(int(config["num_hidden_layers"])))
    return _Weights(tensor("embeddings.word_embeddings.weight"), positions, norm("embeddings"), layers, heads)


def _column_blocks(weights: Array) -> Array:
    """Lay out weights of shape (outputs, inputs) in narrow blocks of output columns.

    OpenBLAS multiplies a few rows by a narrow block without repacking the weights first: a short question then takes
    less than half the time, and long texts take about the same.
    """
    outputs, inputs = weights.shape
    columns = math.gcd(outputs, 64 if inputs <= 512 else 32)
    return np.ascontiguousarray(weights.reshape(outputs // columns, columns, inputs).transpose(0, 2, 1))


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Group indexes of texts of similar length, so that no batch has more than _MAX_BATCH_TOKENS with its padding."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if batches and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= _MAX_BATCH_TOKENS:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def _for_each(embed: Callable[[list[int]], None], batches: list[list[int]]) -> None:
    workers = min(len(batches), os.cpu_count() or 1, _MAX_BATCH_THREADS)
    if workers <= 1:
        for batch in batches:
            embed(batch)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(embed, batches))


class _SingleThreadedBlas:
    """Keep BLAS to the calling thread while anyone is in this context, then restore what the process had.

    OpenBLAS's threads wait for each other by spinning: when another process has the cores, one question was seen to
    take 300 ms instead of 8. Batches in threads of our own scale as well and degrade gracefully.
    """

    def __init__(self) -> None:
        self._controller = ThreadpoolController().select(user_api="blas")
        self._lock = Lock()
        self._users = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = self._controller.limit(limits=1)
            self._users += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


_single_threaded_blas = _SingleThreadedBlas()


def _embed(weights: _Weights, tokens: list[list[int]]) -> Array:
    """Return the unit mean-pooled vectors of one batch of token ids, shape (len(tokens), dimension)."""
    lengths = np.array([len(ids) for ids in tokens])
    longest = int(lengths.max())
    padding = np.arange(longest) >= lengths[:, None]
    ids = np.zeros(padding.shape, np.int64)
    ids[~padding] = np.concatenate(tokens)
    mask = np.where(padding, np.finfo(np.float32).min, np.float32(0))[:, None, None, :] if padding.any() else None

    hidden = weights.words[ids]
    hidden += weights.positions[:longest]
    states = hidden.reshape(ids.size, -1)
    _normalise(states, weights.norm)
    for layer in weights.layers:
        states = _layer(states, layer, mask, len(tokens), weights.heads)
    hidden = states.reshape(*ids.shape, -1)
    hidden[padding] = 0
    pooled: Array = hidden.sum(axis=1) / lengths[:, None].astype(np.float32)
    pooled /= np.maximum(np.sqrt((pooled * pooled).sum(axis=1, keepdims=True)), np.float32(1e-12))
    return pooled


def _layer(states: Array, layer: _Layer, mask: Array | None, batch: int, heads: int) -> Array:
    """Apply one transformer layer to states of shape (batch * length, hidden)."""
    attended = _apply(_attend(_apply(states, layer.query_key_value), mask, batch, heads), layer.attention)
    attended += states
    _normalise(attended, layer.attention_norm)
    inner = _apply(attended, layer.intermediate)
    for start in range(0, len(inner), _GELU_ROWS):
        _gelu(inner[start : start + _GELU_ROWS])
    result = _apply(inner, layer.output)
    result += attended
    _normalise(result, layer.output_norm)
    return result


def _attend(query_key_value: Array, mask: Array | None, batch: int, heads: int) -> Array:
    """Return the heads' concatenated outputs, shape (batch * length, hidden)."""
    rows = len(query_key_value)
    parts = query_key_value.reshape(batch, rows // batch, 3, heads, -1)
    query, key, value = parts.transpose(2, 0, 3, 1, 4)
    query *= np.float32(1 / math.sqrt(query.shape[-1]))
    scores = query @ key.swapaxes(-1, -2)
    if mask is not None:
        scores += mask
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    context = np.empty((batch, rows // batch, heads, query.shape[-1]), np.float32)
    np.matmul(scores, value, out=context.transpose(0, 2, 1, 3))
    return context.reshape(rows, -1)


def _apply(states: Array, dense: _Dense) -> Array:
    blocks, _, columns = dense.weights.shape
    result = np.empty((len(states), blocks * columns), np.float32)
    np.matmul(states, dense.weights, out=result.reshape(-1, blocks, columns).transpose(1, 0, 2))
    result += dense.bias
    return result


def _normalise(states: Array, norm: _Norm) -> None:
    share = np.float32(1 / states.shape[1])
    states -= states.sum(axis=1, keepdims=True) * share
    variance = np.einsum("ij,ij->i", states, states)[:, None] * share
    states /= np.sqrt(variance + norm.epsilon)
    states *= norm.scale
    states += norm.shift


# erf by Abramowitz & Stegun 1964, formula 7.1.26, with x / sqrt(2) and the factor 1/2 folded into its constants.
_ERF_P = np.float32(0.3275911 / math.sqrt(2))
_ERF_A = tuple(np.float32(a / 2) for a in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592))


def _gelu(x: Array) -> None:
    """Apply the exact GELU in place, as max(x, 0) - |x| * erfc(|x| / sqrt(2)) / 2, to within 4e-7.

    This form has no cancellation, unlike 1 + erf. GELU: Hendrycks & Gimpel 2016.
    """
    magnitude = np.abs(x)
    t = magnitude * _ERF_P
    t += np.float32(1)
    np.reciprocal(t, out=t)
    tail = t * _ERF_A[0]
    for coefficient in _ERF_A[1:]:
        tail += coefficient
        tail *= t
    np.multiply(magnitude, magnitude, out=t)
    t *= np.float32(-0.5)
    np.exp(t, out=t)
    tail *= t
    tail *= magnitude
    np.maximum(x, np.float32(0), out=x)
    x -= tail
