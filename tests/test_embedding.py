"""load_embedder picks the runtime that serves a model, with one identity for the same weights."""

from __future__ import annotations

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from runtime_memory.embedding import Embedder, load_embedder
from runtime_memory.encoder import BertEncoder
from runtime_memory.errors import EmbeddingError
from runtime_memory.weights import default_folder


@pytest.fixture
def asymmetric(tmp_path: Path) -> Path:
    """A folder of the default weights with prompts, which only sentence-transformers runs."""
    source, target = default_folder(), tmp_path / "asymmetric"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.safetensors"))
    (target / "model.safetensors").symlink_to(source / "model.safetensors")
    prompts = {"query": "search query: ", "document": "a passage to be found: "}
    (target / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return target


@pytest.mark.parametrize("name", [None, "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_the_default_model_is_served_by_our_encoder(name: str | None) -> None:
    embedder = load_embedder(name)
    assert isinstance(embedder, BertEncoder)
    assert embedder.identity == "all-MiniLM-L6-v2@53aa51172d14"
    assert embedder.dimension == 384


def test_a_folder_our_encoder_can_run_is_served_by_it() -> None:
    embedder = load_embedder(str(default_folder()))
    assert isinstance(embedder, BertEncoder)
    assert embedder.identity == load_embedder().identity


@pytest.mark.parametrize("path", ["/no/such/folder", "./no-such-folder", "~/no-such-folder", "no/such/folder"])
def test_a_path_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(EmbeddingError, match=r"no model folder .*no.such.folder"):
        load_embedder(path)


def test_a_missing_sentence_transformers_names_the_install_command(
    asymmetric: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbeddingError, match=r"pip install 'runtime-memory\[local\]'"):
        load_embedder("someone/some-model")
    with pytest.raises(EmbeddingError, match=r"prompts.*pip install 'runtime-memory\[local\]'"):
        load_embedder(str(asymmetric))


def test_passages_of_a_long_text_are_embedded_whole() -> None:
    embedder = load_embedder()
    fact = "The deploy key of the shop lies in the blue vault."
    passages = embedder.passages("Nothing of interest happened on this day. " * 400 + fact)
    scores = embedder.embed_passages(passages) @ embedder.embed_query("Where is the shop's deploy key?")
    assert fact in passages[int(scores.argmax())]


def test_the_same_weights_have_the_same_identity_and_vectors_in_both_runtimes() -> None:
    pytest.importorskip("sentence_transformers")
    from runtime_memory.sentence_transformer import SentenceTransformerEmbedder

    ours, theirs = load_embedder(), SentenceTransformerEmbedder(default_folder())
    texts = ["How do retries back off?", "", "\ud800 lone", "x" * 5_000, "많은 언어 " * 400]
    assert (ours.identity, ours.dimension) == (theirs.identity, theirs.dimension)
    np.testing.assert_allclose(ours.embed_passages(texts), theirs.embed_passages(texts), atol=1e-5)
    np.testing.assert_allclose(ours.embed_query(texts[0]), theirs.embed_query(texts[0]), atol=1e-5)
    assert ours.passages(texts[-1]) == theirs.passages(texts[-1])
    assert theirs.embed_passages([]).shape == (0, 384)


def test_prompts_are_used_counted_and_part_of_the_identity(asymmetric: Path) -> None:
    pytest.importorskip("sentence_transformers")
    embedder, plain = load_embedder(str(asymmetric)), load_embedder()
    assert not isinstance(embedder, BertEncoder)
    assert embedder.identity.startswith("all-MiniLM-L6-v2@53aa51172d14+")
    text = "payments are tried again"
    np.testing.assert_allclose(embedder.embed_query(text), plain.embed_query("search query: " + text), atol=1e-5)
    prompted = plain.embed_passages(["a passage to be found: " + text])
    np.testing.assert_allclose(embedder.embed_passages([text]), prompted, atol=1e-5)
    for passage in embedder.passages("word " * 2_000):
        assert plain.passages("a passage to be found: " + passage) == ["a passage to be found: " + passage]


def test_sentence_transformers_serves_several_threads(asymmetric: Path) -> None:
    pytest.importorskip("sentence_transformers")
    embedder: Embedder = load_embedder(str(asymmetric))
    texts = [f"text {number} " * (number + 1) for number in range(24)]
    expected = embedder.embed_passages(texts)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda text: embedder.embed_passages([text])[0], texts))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_folder_that_nothing_can_load_is_an_embedding_error(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    (tmp_path / "config.json").write_text('{"model_type": "no such architecture"}')
    with pytest.raises(EmbeddingError, match=r"cannot run .* cannot load"):
        load_embedder(str(tmp_path))
