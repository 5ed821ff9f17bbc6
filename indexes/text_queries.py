"""Build Tantivy's queries: of typed terms, so that no text of a user is ever parsed."""

from __future__ import annotations

from collections.abc import Sequence

import tantivy

from indexes.filters import All, AnyOf, Filter, In

__all__ = ["compile_filter", "keyword", "must", "should"]


def compile_filter(where: Filter, schema: tantivy.Schema) -> tantivy.Query:
    """Return the query for what passes a filter."""
    match where:
        case In(column, values):
            return should([tantivy.Query.term_query(schema, column, keyword(value), "basic") for value in values])
        case All(clauses):
            return (
                must(*(compile_filter(clause, schema) for clause in clauses)) if clauses else tantivy.Query.all_query()
            )
        case AnyOf(clauses):
            return should([compile_filter(clause, schema) for clause in clauses])


def must(*queries: tantivy.Query) -> tantivy.Query:
    """Return the query for what all of these find."""
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in queries])


def should(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Return the query for what any of these finds."""
    if not queries:
        return tantivy.Query.empty_query()
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def keyword(value: str | bool) -> str:  # noqa: FBT001 - a value of a column, not a switch
    """Return the term under which a column's value is indexed."""
    return value if isinstance(value, str) else str(value).lower()
