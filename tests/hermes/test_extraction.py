"""Sessions of the real Hermes whose facts are stored when they end, by the model that the host itself uses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .harness import Hermes

FACT = "Invoices are rounded half up to the cent"


def test_a_finished_session_is_read_by_the_hosts_own_model(hermes: Hermes) -> None:
    hermes.env["RUNTIME_MEMORY_EXTRACT_ON_END"] = "true"
    proposal = {"content": FACT, "category": "convention", "tags": ["money"]}
    hermes.model.answer_when("You keep the long-term memory", json.dumps({"memories": [proposal]}))
    run = hermes.ask("for the record, we round invoices half up to the cent", "noted")
    assert (run.code, run.stdout, run.stderr) == (0, "noted\n", "")
    listed = json.loads(hermes.script("mem", "list", "--json").stdout)["memories"]
    assert [(m["content"], m["category"], m["source"]) for m in listed] == [(FACT, "convention", "extracted")]
    asking = hermes.ask("how do we round invoices?", "half up")
    assert FACT in asking.requests[0].recalled
