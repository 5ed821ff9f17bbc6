"""Imports are light, point one way, and leave the host's process as it was."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime_memory import MemoryStore
from tests.conftest import OpenStore

ROOT = Path(__file__).parent.parent
HEAVY = {
    *("lancedb", "pyarrow", "numpy", "torch", "tantivy", "sentence_transformers", "tokenizers", "safetensors"),
    *("mcp", "mcp_types", "starlette", "uvicorn"),
}


def loaded_after(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True
    )
    return set(done.stdout.split())


def imported(path: Path) -> Iterator[str]:
    """Yield the top-level packages that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]


@pytest.mark.parametrize(
    "module",
    [
        "provider",
        "runtime_memory",
        "runtime_memory.models",
        "runtime_memory.errors",
        "runtime_memory.cli",
        "runtime_memory.mcp.calls",
    ],
)
def test_importing_loads_nothing_heavy(module: str) -> None:  # K1, K9
    assert loaded_after(f"import {module}") & HEAVY == set()


def test_values_can_be_made_without_anything_heavy() -> None:
    statement = "from runtime_memory import NewMemory, Outcome, MemoryCategory; NewMemory('a fact', category='gotcha')"
    assert loaded_after(statement) & HEAVY == set()


def test_the_settings_can_be_read_without_anything_heavy() -> None:
    assert loaded_after("from runtime_memory import Settings; Settings.load()") & HEAVY == set()


@pytest.mark.parametrize(
    ("package", "below"),
    [
        ("indexes", {"runtime_memory", "provider", "tests", "benchmarks"}),
        ("runtime_memory", {"provider", "tests", "benchmarks"}),
    ],
)
def test_imports_point_one_way(package: str, below: set[str]) -> None:
    files = list((ROOT / package).rglob("*.py"))
    found = {(path.name, name) for path in files for name in imported(path) if name in below}
    assert files
    assert found == set()


def test_everything_that_is_offered_can_be_imported() -> None:
    import runtime_memory

    assert [name for name in runtime_memory.__all__ if getattr(runtime_memory, name, None) is None] == []
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = runtime_memory.nonsense


def test_using_a_store_changes_no_environment_variable(store: MemoryStore, open_store: OpenStore) -> None:
    before = dict(os.environ)
    store.add("a fact")
    store.recall("fact")
    open_store().search("fact")
    assert dict(os.environ) == before


def test_using_a_store_prints_nothing(store: MemoryStore, capfd: pytest.CaptureFixture[str]) -> None:
    store.add("a fact")
    store.recall("fact")
    store.close()
    assert tuple(capfd.readouterr()) == ("", "")
