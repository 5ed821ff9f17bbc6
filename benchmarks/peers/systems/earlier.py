"""runtime-memory 3.0.0 and 4.0.1, by their engine, with its defaults."""

import asyncio

from runtime_memory.core.embeddings import EmbeddingProvider
from runtime_memory.core.engine import EngineConfig, MemoryEngine
from runtime_memory.core.models import Memory, MemoryCategory


class Given(EmbeddingProvider):
    """The model's vectors as the parent process sends them."""

    def __init__(self):
        super().__init__()
        self.vectors = {}

    model_name = "given"
    dimensions = 384

    async def _embed_texts(self, texts):
        return [self.vectors[text] for text in texts]


class Engine:
    """The engine behind synchronous calls; without vectors it is as an installation without a model has it."""

    def __init__(self, folder):
        self._loop = asyncio.new_event_loop()
        self._engine = MemoryEngine(EngineConfig(db_path=folder / "memories.db", embedding_provider="null"))
        self._loop.run_until_complete(self._engine.initialize())
        self._given = None

    def add(self, documents):
        if self._given is None and documents[0]["vector"] is not None:
            self._given = Given()
            self._engine._embedding_provider = self._engine._retriever.embedding_provider = self._given  # noqa: SLF001
        memories = [
            Memory(
                each["text"],
                MemoryCategory.CONTEXT,
                id=each["id"],
                project=each["project"],
                embedding=None if each["vector"] is None else list(each["vector"]),
            )
            for each in documents
        ]
        self._loop.run_until_complete(self._engine.add_many(memories))

    def search(self, query, vector, project, limit):
        if self._given is not None:
            self._given.vectors[query] = list(vector)
        found = self._loop.run_until_complete(self._engine.search(query, limit=limit, project=project))
        return [result.memory.id for result in found]


open_memory = Engine
