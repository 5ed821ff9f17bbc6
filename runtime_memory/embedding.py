"""What turns text into vectors: one protocol, whichever runtime serves the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

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
