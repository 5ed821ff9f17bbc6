"""Any model that sentence-transformers runs, behind the Embedder protocol."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from .errors import EmbeddingError
from .passages import PASSAGE_TOKENS, replace_surrogates, split_passages
from .weights import model_identity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

__all__ = ["SentenceTransformerEmbedder", "require_sentence_transformers"]

_DEFAULT_MAX_TOKENS = 512  # for a model that states no limit
_MAX_TOKENS = 8_192  # a passage larger than this no longer has one meaning, whatever the model reads


class SentenceTransformerEmbedder:
    """Embed texts with sentence-transformers; safe to use from several threads, one at a time."""

    def __init__(self, folder: Path, name: str | None = None) -> None:
        """Load a model folder without any network access; name, by default the folder's own, begins the identity.

        Raises EmbeddingError.
        """
        library = require_sentence_transformers(str(folder))
        try:
            self._model = library.SentenceTransformer(str(folder), local_files_only=True)
            self._tokenizer = _plain_tokenizer(self._model)
        except EmbeddingError:
            raise
        except Exception as error:  # it raises whatever torch, transformers or the model's own code raise.
            raise EmbeddingError(f"sentence-transformers cannot load {folder} ({error}).") from error
        # A fast tokenizer keeps its truncation as state and refuses to be used by two threads at once.
        self._lock = Lock()
        self._identity = model_identity(name or folder.name, folder)
        self._dimension = int(self.embed_query("dimension").shape[0])

    @property
    def identity(self) -> str:
        """Name the model, its weights and how they are used."""
        return self._identity

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        return self._dimension

    def passages(self, text: str) -> list[str]:
        """Cut a text into passages that each fit the model, in order; a text that fits is returned whole."""
        prompt = (self._model.prompts or {}).get("document") or ""
        prompt_tokens = len(self._tokenizer.encode(prompt, add_special_tokens=False).ids)
        limit = min(self._model.max_seq_length or _DEFAULT_MAX_TOKENS, _MAX_TOKENS)
        return split_passages(text, self._tokenizer, min(limit, PASSAGE_TOKENS) - prompt_tokens)

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a passage, shape (len(passages), dimension)."""
        return self._encode(self._model.encode_document, passages).reshape(len(passages), self._dimension)

    def embed_query(self, query: str) -> NDArray[np.float32]:
        """Return the query's vector, shape (dimension,); a query longer than the model reads is cut."""
        vector: NDArray[np.float32] = self._encode(self._model.encode_query, [query])[0]
        return vector

    def _encode(self, encode: Any, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        with self._lock:
            vectors = encode(
                [replace_surrogates(text) for text in texts], normalize_embeddings=True, show_progress_bar=False
            )
        return np.asarray(vectors, np.float32)


def require_sentence_transformers(model: str) -> Any:
    """Return the module sentence_transformers; raise EmbeddingError with the install command if it is missing."""
    try:
        return importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise EmbeddingError(
            f"The model {model} needs sentence-transformers, which cannot be imported ({error}). "
            "Run: pip install 'runtime-memory[local]'"
        ) from error


def _plain_tokenizer(model: Any) -> Tokenizer:
    """Return a copy of the model's tokenizer that neither truncates nor pads."""
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EmbeddingError("The model's tokenizer has no fast (Rust) form, so passages cannot be cut to fit it.")
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
