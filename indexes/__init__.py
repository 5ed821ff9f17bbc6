"""LanceDB and Tantivy under one roof: the table of the records, and the index of their texts."""

from indexes.rest_client import defer

defer()  # before any module here imports LanceDB
