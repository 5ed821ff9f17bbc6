"""The text arm of this source alone: BM25 with nothing fused and no outcomes."""

import numpy as np
from own import Store


class Text(Store):
    """What the text arm finds."""

    arm = "text"

    def search(self, query, vector, project, limit):
        self._given.vectors = {query: np.asarray(vector)}
        found = getattr(self._store.candidates(query, project=project, limit=limit), self.arm)
        return [self._documents[id_] for id_, _ in found[:limit]]


open_memory = Text
