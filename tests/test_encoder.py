"""BertEncoder equals sentence-transformers, takes any text, and refuses what it cannot run exactly."""

from __future__ import annotations

import json
import math
import random
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from runtime_memory.encoder import BertEncoder, UnsupportedModelError, _batches, _gelu
from runtime_memory.errors import EmbeddingError
from runtime_memory.weights import default_folder

_ALPHABETS = {
    "latin": "abcdefghijklmnopqrstuvwxyz",
    "accented": "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿœß",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "greek": "αβγδεζηθικλμνξοπρσςτυφχψω",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשת",
    "devanagari": "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुू",
    "thai": "กขคงจฉชซญดตถทธนบปผพฟมยรลวศสหอะาิีึืุู",
    "hangul": "가나다라마바사아자차카타파하한국어말",
    "kana": "あいうえおかきくけこさしすせそアイウエオカキクケコ",
    "han": "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去",
    "georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "digits": "0123456789.,:-/%",
}
_ENGLISH = (
    "the memory of an agent holds what worked and what failed when payment retries back off after a timeout so that "
    "next time we do not repeat the same mistake in production deploy database index query schema migration"
).split()
_CODE = (
    "def retry_backoff_ms(n: int) -> int:\n    return 2 ** n * 100  # 100, 200, 400\n",
    "for (const x of xs) { if (x?.id !== null) console.log(`${x.id}`); }\n",
    "SELECT id, \"name\" FROM memories WHERE created_at >= '2024-01-01' ORDER BY 1;\n",
    "error[E0277]: the trait bound `T: Send` is not satisfied --> src/app/main.rs:42:7\n",
)
_EMOJI = ("🙂", "🚀🔥", "👩‍👩‍👧‍👦", "🇨🇭", "✅ done", "¯\\_(ツ)_/¯")


def _word(rng: random.Random, script: str) -> str:
    if script == "english":
        return rng.choice(_ENGLISH)
    if script == "code":
        return rng.choice(_CODE)
    if script == "emoji":
        return rng.choice(_EMOJI)
    return "".join(rng.choices(_ALPHABETS[script], k=rng.randint(1, 12)))


def _many_texts(count: int) -> list[str]:
    rng = random.Random(20240101)
    scripts = ["english", "code", "emoji", *_ALPHABETS]
    texts = []
    for number in range(count):
        chosen = [scripts[number % len(scripts)]] if number % 3 else rng.sample(scripts, 4)
        words = 1 + int(599 * rng.random() ** 6)
        separators = rng.choices([" ", ", ", ". ", "\n", "\n\n"], weights=[12, 1, 1, 1, 1], k=words)
        texts.append("".join(_word(rng, rng.choice(chosen)) + separator for separator in separators))
    return texts


@pytest.fixture(scope="module")
def encoder() -> BertEncoder:
    return BertEncoder(default_folder())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder of its own, whose weights are a link to the real ones."""
    source, target = default_folder(), tmp_path / "copy"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.safetensors", "README.md", "vocab.txt"))
    (target / "model.safetensors").symlink_to(source / "model.safetensors")
    return target


def _change(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.timeout(900)
def test_equals_sentence_transformers_in_many_languages_and_lengths(encoder: BertEncoder) -> None:
    library = pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # its threads spin for minutes when other processes have the cores
    texts = _many_texts(1_000)
    reference = library.SentenceTransformer(str(default_folder()), device="cpu", local_files_only=True)
    expected = reference.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    difference = float(np.abs(encoder.embed_passages(texts) - expected).max())
    print(f"largest difference {difference:.2e}")
    assert difference < 1e-5


def test_vectors_are_unit_length_float32_rows(encoder: BertEncoder) -> None:
    vectors = encoder.embed_passages(_many_texts(20))
    assert vectors.shape == (20, encoder.dimension) == (20, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_no_passages_give_no_rows(encoder: BertEncoder) -> None:
    assert encoder.embed_passages([]).shape == (0, 384)


def test_related_texts_are_closer_than_unrelated_ones(encoder: BertEncoder) -> None:
    query = encoder.embed_query("How long do we wait before a payment is tried again?")
    related, unrelated = encoder.embed_passages(["Payment retries back off for 30 seconds.", "The cat sleeps all day."])
    assert query @ related > query @ unrelated + 0.3


def test_results_keep_the_callers_order_and_do_not_depend_on_the_batch(encoder: BertEncoder) -> None:
    texts = _many_texts(40)
    alone = np.stack([encoder.embed_query(text) for text in texts])
    np.testing.assert_allclose(encoder.embed_passages(texts), alone, atol=2e-6)


def test_several_threads_get_the_vectors_of_one(encoder: BertEncoder) -> None:
    texts = _many_texts(40)
    expected = [encoder.embed_query(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(encoder.embed_query, texts))
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "\0", "a\0b", "\ud800", "x\udfffy \ud83d", "🙂" * 300, "\u200d", "\u0301" * 50, "[SEP] [CLS] [PAD]"],
    ids=ascii,
)
def test_any_text_gives_a_finite_unit_vector(encoder: BertEncoder, text: str) -> None:
    assert np.linalg.norm(encoder.embed_query(text)) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("unit", ["a", "word ", "漢", "ก", "\n", "a" * 150 + " "], ids=ascii)
def test_two_megabytes_are_cut_to_what_the_model_reads(encoder: BertEncoder, unit: str) -> None:
    text = unit * (2_000_000 // len(unit.encode()))
    expected = encoder._tokenizer.encode(text).ids
    found = encoder._token_ids(text)
    assert found == (expected if len(expected) <= 256 else [*expected[:255], expected[-1]])


def test_the_tokenizer_files_own_truncation_is_off(encoder: BertEncoder) -> None:
    text = " ".join(["river"] * 200)
    assert len(encoder._token_ids(text)) == 202
    assert abs(encoder.embed_query(text) @ encoder.embed_query(text[: 126 * 6])) < 1 - 1e-6


def test_batches_hold_every_text_once_within_the_token_limit() -> None:
    lengths = random.Random(1).choices(range(2, 257), k=500)
    batches = _batches(lengths)
    assert sorted(index for batch in batches for index in batch) == list(range(500))
    assert max(max(lengths[index] for index in batch) * len(batch) for batch in batches) <= 1_024


def test_gelu_is_exact_to_float32() -> None:
    x = np.linspace(-12, 12, 100_001, dtype=np.float32)
    exact = np.array([value * 0.5 * math.erfc(-value / math.sqrt(2)) for value in x.astype(float)])
    _gelu(x)
    assert np.abs(x - exact).max() < 5e-7


def test_embedding_neither_warns_nor_marks_the_tokenizers_parallelism_as_used(encoder: BertEncoder) -> None:
    import multiprocessing

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.embed_passages(_many_texts(30))
    child = multiprocessing.get_context("spawn").Process(target=_embed_then_fork)
    child.start()
    child.join(60)
    assert child.exitcode == 0


def _embed_then_fork() -> None:
    import os
    import tempfile

    encoder = BertEncoder(default_folder())
    encoder.embed_passages(["one", "two", "three"] * 10)
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 2)
        if (pid := os.fork()) == 0:
            encoder._tokenizer.encode("in the child")
            os._exit(0)
        os.waitpid(pid, 0)
        captured.seek(0)
        os._exit(1 if captured.read() else 0)


def test_the_threads_of_blas_are_restored(encoder: BertEncoder) -> None:
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    before = threadpool_info()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(encoder.embed_query, ["some text"] * 40))
    assert threadpool_info() == before


@pytest.mark.parametrize(
    ("file", "values", "named"),
    [
        ("config.json", {"model_type": "roberta"}, "model_type 'roberta'"),
        ("config.json", {"hidden_act": "gelu_new"}, "hidden_act 'gelu_new'"),
        ("config.json", {"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key'"),
        ("config.json", {"is_decoder": True}, "is_decoder True"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "pooling 'cls'"),
        ("1_Pooling/config.json", {"pooling_mode": "max"}, "pooling 'max'"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
        ("config_sentence_transformers.json", {"prompts": {"query": "query: "}}, "prompts"),
    ],
)
def test_refuses_what_it_cannot_run_exactly_and_names_it(
    folder: Path, file: str, values: dict[str, object], named: str
) -> None:
    _change(folder / file, **values)
    with pytest.raises(UnsupportedModelError, match=named):
        BertEncoder(folder)


def test_refuses_a_further_module(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 3, "name": "3", "path": "3_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(UnsupportedModelError, match="Dense"):
        BertEncoder(folder)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_damaged_folder_is_an_embedding_error(folder: Path, file: str) -> None:
    (folder / file).unlink()
    (folder / file).write_bytes(b"\x10\0\0\0\0\0\0\0{not json")
    with pytest.raises(EmbeddingError, match=file):
        BertEncoder(folder)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "modules.json", "model.safetensors"])
def test_an_incomplete_folder_is_an_embedding_error(folder: Path, file: str) -> None:
    (folder / file).unlink()
    with pytest.raises(EmbeddingError, match=file):
        BertEncoder(folder)
