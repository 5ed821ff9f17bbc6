"""What LanceDB loads and no store needs stays unloaded, and is there for whoever asks for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CLIENT = "lance_namespace_urllib3_client"


def run(code: str) -> str:
    """Return what some code prints in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True
    )
    return done.stdout.strip()


def test_opening_lancedb_does_not_load_the_client_of_its_namespaces() -> None:
    code = f"import sys, indexes.lance, lancedb; print('{CLIENT}.api' in sys.modules, '{CLIENT}.models' in sys.modules)"
    assert run(code) == "False True"


def test_who_asks_for_the_client_gets_it() -> None:
    code = f"""
import indexes.lance, sys
import {CLIENT} as client
from {CLIENT} import ApiClient, TableApi
print(client.TableApi is TableApi, ApiClient.__module__, bool(client.__version__), hasattr(client, "nothing"))
"""
    assert run(code) == f"True {CLIENT}.api_client True False"


def test_a_client_that_is_loaded_already_is_left_alone() -> None:
    code = f"import {CLIENT} as client, indexes.lance, sys; print(sys.modules['{CLIENT}'] is client, client.TableApi)"
    assert run(code).startswith("True <class")


def test_a_package_that_is_not_there_is_no_fault() -> None:
    code = (
        "import sys; from indexes.rest_client import defer; defer('nothing_here'); print('nothing_here' in sys.modules)"
    )
    assert run(code) == "False"
