"""The main job from end to end, on the sample notes: import, ask, get the block, report, see what changed and why."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from provider import RuntimeMemoryProvider

STORE = Path(".demo")
NOTES = Path(__file__).parent / "sample" / "notes"
console = Console(highlight=False)

QUESTION = "which port does the staging database listen on?"
UNASKED = "suggest a thai curry for sunday lunch with the whole family"
DEEP = "I want to dig holes for the fence posts on saturday. What depth should they be, and where is the water pipe?"
FOREIGN = "who won the chess olympiad in 2022?"


def main() -> None:
    """Run the demo in a store of its own."""
    shutil.rmtree(STORE, ignore_errors=True)
    os.environ["RUNTIME_MEMORY_DB"] = str(STORE.resolve())
    say("1. Bring in the notes of two projects")
    for project in ("shop", "garden"):
        mem("import", str(NOTES / project), "-p", project)
    say("2. What an agent is told before it answers")
    shop, garden = agent("shop"), agent("garden")
    told = ask(shop, QUESTION)
    ask(garden, UNASKED)
    ask(garden, DEEP)
    say("   and nothing where no note matters")
    ask(shop, FOREIGN)
    ask(shop, "thanks!")
    say("3. The agent reports, in two sessions, that the old address failed and that the new one worked")
    for outcome, mark in 2 * (("failed", "5433, database"), ("worked", "6432")):
        report(shop, outcome, next(line for line in told.splitlines() if mark in line))
    ask(shop, QUESTION)
    say("4. Why: what worked has risen, what failed has sunk")
    mem("why", QUESTION, "-p", "shop", "-l", "3")
    say("5. A correction retires a fact for good, and nothing is lost")
    corrected = {
        "content": "Staging Postgres: db.staging.internal, port 6432 through PgBouncer, database shop_stg",
        "category": "environment",
        "supersedes": identifier(next(line for line in told.splitlines() if "5433, database" in line)),
    }
    print(shop.handle_tool_call("runtimememory_remember", corrected))
    ask(shop, QUESTION)
    mem("stats")
    say(f"The store is in {STORE}/. Look around: {Path(sys.executable).parent}/mem list --db {STORE}")


def agent(project: str) -> RuntimeMemoryProvider:
    """Return what Hermes loads for a session in a project, its model ready."""
    provider = RuntimeMemoryProvider()
    provider.initialize("demo", agent_workspace=project)
    for _ in range(1_200):
        health = provider.handle_tool_call("runtimememory_stats", {})
        if '"search_mode": "hybrid"' in health:
            return provider
        time.sleep(0.05)
    sys.exit(f"The model was not ready within a minute: {health}")


def ask(provider: RuntimeMemoryProvider, question: str) -> str:
    """Print a question and the block that goes with it into the prompt."""
    console.print(f"> {question}", style="bold green", markup=False)
    block = provider.prefetch(question)
    print(block or "(nothing)")
    print()
    return block


def report(provider: RuntimeMemoryProvider, outcome: str, line: str) -> None:
    """Report an outcome as the model does, by its tool."""
    print(provider.handle_tool_call("runtimememory_outcome", {"outcome": outcome, "memory_ids": [identifier(line)]}))


def identifier(line: str) -> str:
    """Return the id at the end of a block's line."""
    return line.rstrip("`").rpartition("`")[2]


def mem(*arguments: str) -> None:
    """Run the command line, and show what was run."""
    console.print(f"$ mem {shlex.join(arguments)}", style="bold green", markup=False)
    subprocess.run([Path(sys.executable).parent / "mem", *arguments], check=True)  # noqa: S603 - our own program
    print()


def say(text: str) -> None:
    """Print a heading."""
    console.print(f"\n{text}\n", style="bold cyan", markup=False)


if __name__ == "__main__":
    main()
