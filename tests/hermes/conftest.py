"""Fixtures for tests against the real Hermes Agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .harness import VENV_VARIABLE, Hermes, HermesVenv, UnpreparedError, find_or_create_venv
from .scripted_server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

PROVIDER = "runtimememory"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of this folder."""
    config.addinivalue_line("markers", "hermes: runs the real Hermes Agent (slow, makes its own environment)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and give the first one time to make the environment."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("hermes")
            if config.pluginmanager.hasplugin("timeout") and not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(1500))


@pytest.fixture(scope="session")
def hermes_venv() -> HermesVenv:
    """Return an environment with Hermes; skip without one, unless it is required."""
    try:
        return find_or_create_venv()
    except UnpreparedError as error:
        if os.environ.get("RUNTIME_MEMORY_REQUIRE_HERMES"):
            raise
        pytest.skip(f"no Hermes environment: {error}")


@pytest.fixture(scope="session")
def equipped_venv(hermes_venv: HermesVenv) -> HermesVenv:
    """Return the environment once our package is known to be in it."""
    if not (hermes_venv.has("runtime_memory") and hermes_venv.has("provider")):
        pytest.fail(f"runtime-memory is not installed in the environment named by {VENV_VARIABLE}, or has no build yet")
    return hermes_venv


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    """Serve a scripted model for one test."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def bare_hermes(hermes_venv: HermesVenv, model: ScriptedServer, tmp_path: Path) -> Hermes:
    """Return a Hermes installation without a memory provider."""
    hermes = Hermes(hermes_venv, tmp_path, model)
    hermes.configure("")
    return hermes


@pytest.fixture
def hermes(equipped_venv: HermesVenv, model: ScriptedServer, tmp_path: Path) -> Hermes:
    """Return a Hermes installation with our provider, installed by our own command."""
    hermes = Hermes(equipped_venv, tmp_path, model)
    hermes.configure(PROVIDER)
    done = hermes.script("mem", "hermes", "install")
    assert done.code == 0, done.stdout + done.stderr
    return hermes
