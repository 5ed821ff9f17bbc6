"""Runtime Memory of this source: search without the embedding of the question, whose vector is given."""

import numpy as np

from runtime_memory import MemoryStore, NewMemory, Settings


class Given:
    """The model's passages and vectors as the parent process sends them."""

    identity, dimension = "given", 384

    def __init__(self):
        self.cut, self.vectors = {}, {}

    def passages(self, text):
        return self.cut.get(text, [text])

    def embed_passages(self, passages):
        return np.stack([self.vectors[passage] for passage in passages])

    def embed_query(self, query):
        return self.vectors[query]


class Store:
    """A store; without vectors it searches by words."""

    def __init__(self, folder):
        self._folder = folder
        self._given = Given()
        self._store = None
        self._documents = {}

    def add(self, documents):
        with_vectors = documents[0]["vector"] is not None
        if self._store is None:
            settings = Settings(db=str(self._folder), embedding="local" if with_vectors else "null")
            self._store = MemoryStore(settings, embedder=self._given if with_vectors else None)
        for each in documents:
            if len(each["passages"]) > 1:
                self._given.cut[each["text"]] = [passage for passage, _ in each["passages"]]
            self._given.vectors |= {passage: np.asarray(vector) for passage, vector in each["passages"]}
        new = [NewMemory(each["text"], project=each["project"], allow_secrets=True) for each in documents]
        memories = self._store.add_many(new)  # with what looks like a secret, as all get the same texts
        for memory, each in zip(memories, documents, strict=True):
            self._documents.setdefault(memory.id, each["id"])
        self._given.vectors.clear()
        self._store.optimize()

    def search(self, query, vector, project, limit):
        self._given.vectors = {query: np.asarray(vector)} if vector is not None else {}
        found = self._store.search(query, project=project, limit=limit)
        return [self._documents[hit.memory.id] for hit in found]


open_memory = Store
