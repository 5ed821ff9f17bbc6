"""SQLite's FTS5 with its own BM25, every vector compared, and reciprocal rank fusion with k = 60 of the 100 best."""

import re
import sqlite3
from collections import defaultdict

import numpy as np

_DEPTH, _K = 100, 60


class Database:
    """A database file; the vectors are read from it once and kept. Without vectors FTS5 alone answers."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(folder / "memories.db")
        self._database.execute(
            "CREATE VIRTUAL TABLE memories USING "
            "fts5(id UNINDEXED, project UNINDEXED, text, tokenize='porter unicode61')"
        )
        self._database.execute("CREATE TABLE vectors (id TEXT PRIMARY KEY, project TEXT, vector BLOB)")
        self._ids, self._matrix = {}, {}

    def add(self, documents):
        rows = [(each["id"], each["project"], each["text"]) for each in documents]
        vectors = [(each["id"], each["project"], each["vector"]) for each in documents if each["vector"] is not None]
        with self._database:
            self._database.executemany("INSERT INTO memories VALUES (?, ?, ?)", rows)
            self._database.executemany("INSERT INTO vectors VALUES (?, ?, ?)", vectors)
        by_project = defaultdict(list)
        for id_, project, blob in self._database.execute("SELECT id, project, vector FROM vectors"):
            by_project[project].append((id_, np.frombuffer(blob, np.float32)))
        self._ids = {project: [id_ for id_, _ in found] for project, found in by_project.items()}
        self._matrix = {project: np.stack([vector for _, vector in found]) for project, found in by_project.items()}

    def search(self, query, vector, project, limit):
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", query.lower())))
        by_text = [
            id_
            for (id_,) in self._database.execute(
                "SELECT id FROM memories WHERE memories MATCH ? AND project IS ? ORDER BY rank LIMIT ?",
                (words, project, _DEPTH if vector is not None else limit),
            )
        ]
        if vector is None:
            return by_text
        cosines = self._matrix[project] @ np.asarray(vector)
        nearest = [self._ids[project][place] for place in np.argsort(-cosines)[:_DEPTH]]
        scores = defaultdict(float)
        for ranking in (by_text, nearest):
            for rank, id_ in enumerate(ranking, start=1):
                scores[id_] += 1 / (_K + rank)
        return sorted(scores, key=scores.__getitem__, reverse=True)[:limit]


open_memory = Database
