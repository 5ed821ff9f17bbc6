"""What turns text into vectors: one protocol, whichever runtime serves the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .errors import EmbeddingError
from .weights import DEFAULT_MODEL, default_folder, hub_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Embed texts with one model.

    ``identity`` names the model and its weights (``all-MiniLM-L6-v2@53aa51172d14``): vectors of two embedders may be
    compared only when their identities are equal. Vectors are unit-length float32.
    """

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def passages(self, text: str) -> list[str]:
        """Cut a text into passages that each fit the model, in order; a text that fits is returned whole."""
        ...

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a passage, shape (len(passages), dimension)."""
        ...

    def embed_query(self, query: str) -> NDArray[np.float32]:
        """Return the query's vector, shape (dimension,); a query longer than the model reads is cut."""
        ...


def load_embedder(model: str | None = None) -> Embedder:
    """Load the embedder of a model: None for all-MiniLM-L6-v2, else the path of a model folder or a name on the hub.

    The default model, and every folder that BertEncoder runs exactly, is served without torch; any other model by
    sentence-transformers. Nothing is fetched that is already here. Raises EmbeddingError.
    """
    if model is None or model in (DEFAULT_MODEL, DEFAULT_MODEL.rpartition("/")[2]):
        from .encoder import BertEncoder

        return BertEncoder(default_folder(), DEFAULT_MODEL)
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _load_folder(folder)
    if folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1 or "\\" in model:
        raise EmbeddingError(f"There is no model folder {folder}. Correct the path, or give a model's name on the hub.")
    from .sentence_transformer import SentenceTransformerEmbedder, require_sentence_transformers

    require_sentence_transformers(model)  # before a download that would be of no use without it
    return SentenceTransformerEmbedder(hub_folder(model), model)


def _load_folder(folder: Path) -> Embedder:
    from .encoder import BertEncoder, UnsupportedModelError

    try:
        return BertEncoder(folder)
    except UnsupportedModelError as unsupported:
        from .sentence_transformer import SentenceTransformerEmbedder

        try:
            return SentenceTransformerEmbedder(folder)
        except EmbeddingError as error:
            raise EmbeddingError(f"{unsupported} {error}") from error
