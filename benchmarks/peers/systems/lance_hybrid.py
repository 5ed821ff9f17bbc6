"""LanceDB's own hybrid query: its full-text index, its vectors, its reciprocal rank fusion."""

import lancedb
import pyarrow as pa
from lancedb.rerankers import RRFReranker


class Table:
    """A table with a full-text index; without vectors the full-text search alone is asked."""

    def __init__(self, folder):
        self._database = lancedb.connect(str(folder))
        self._reranker = RRFReranker()
        self._table = None

    def add(self, documents):
        columns = {name: [each[name] for each in documents] for name in ("id", "text", "project")}
        fields = [pa.field(name, pa.string()) for name in columns]
        if documents[0]["vector"] is not None:
            columns["vector"] = [list(each["vector"]) for each in documents]
            fields.append(pa.field("vector", pa.list_(pa.float32(), len(documents[0]["vector"]))))
        rows = pa.table(columns, pa.schema(fields))
        if self._table is not None:
            self._table.add(rows)
        else:
            self._table = self._database.create_table("memories", rows)
            self._table.create_fts_index("text", replace=True)
            self._table.create_scalar_index("project")
        self._table.optimize()

    def search(self, query, vector, project, limit):
        if vector is None:
            asked = self._table.search(query, query_type="fts")
        else:
            asked = self._table.search(query_type="hybrid").vector(list(vector)).text(query).rerank(self._reranker)
        if project is not None:
            escaped = project.replace("'", "''")
            asked = asked.where(f"project = '{escaped}'", prefilter=True)
        return [row["id"] for row in asked.limit(limit).to_list()]


open_memory = Table
