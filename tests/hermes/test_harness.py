"""The harness itself: a throw-away provider in the real Hermes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scripted_server import ToolCall

if TYPE_CHECKING:
    from .harness import Hermes

PLUGIN = """
import json, os
from agent.memory_provider import MemoryProvider

class Tiny(MemoryProvider):
    name = "tiny"
    def is_available(self):
        return True
    def initialize(self, session_id, **options):
        self.user = options.get("user_id", "nobody")
    def system_prompt_block(self):
        return "TINY BLOCK"
    def prefetch(self, query, *, session_id=""):
        return f"- recalled for {query} by {self.user}"
    def get_tool_schemas(self):
        return [{"name": "tiny_echo", "description": "Echo.", "parameters": {"type": "object", "properties": {}}}]
    def handle_tool_call(self, tool_name, args, **options):
        return json.dumps({"echo": args, "by": tool_name})

def register(ctx):
    ctx.register_memory_provider(Tiny())
"""


def test_one_shot_reaches_prefetch_and_tools(bare_hermes: Hermes) -> None:
    bare_hermes.add_plugin("tiny", PLUGIN)
    bare_hermes.configure("tiny")
    run = bare_hermes.ask("which port?", ToolCall("tiny_echo", {"a": 1}), "it is 5433")
    assert (run.code, run.stdout, run.stderr) == (0, "it is 5433\n", "")
    first, second = run.requests
    assert first.recalled == "- recalled for which port? by nobody"
    assert first.last_user.startswith("which port?\n\n<memory-context>\n")
    assert first.tool_names == ["memory", "tiny_echo"]
    assert "TINY BLOCK" in first.system
    assert second.tool_results == ['{"echo": {"a": 1}, "by": "tiny_echo"}']
    assert bare_hermes.model.remaining == 0


def test_agents_of_two_users_in_one_process(bare_hermes: Hermes) -> None:
    bare_hermes.add_plugin("tiny", PLUGIN)
    bare_hermes.configure("tiny")
    code = """
from inside import agent, ask, provider, report
for user in ("anna", "ben"):
    one = agent(user_id=user, platform="telegram", session_id="s-" + user)
    report([provider(one).user, ask(one, "hello")["final_response"]])
"""
    run = bare_hermes.python(code, "hi anna", "hi ben")
    assert run.reports == [["anna", "hi anna"], ["ben", "hi ben"]], run.stderr
    assert [request.recalled for request in run.requests] == [
        "- recalled for hello by anna",
        "- recalled for hello by ben",
    ]


def test_titles_do_not_consume_the_script(bare_hermes: Hermes) -> None:
    code = """
from inside import report
from agent.title_generator import generate_title
report(generate_title("question", "answer"))
"""
    run = bare_hermes.python(code, "kept for the conversation")
    assert run.reports == ["Scripted title"], run.stderr
    assert (run.requests, bare_hermes.model.remaining) == ([], 1)


def test_commands_see_the_provider(bare_hermes: Hermes) -> None:
    bare_hermes.add_plugin("tiny", PLUGIN)
    assert bare_hermes.command("config", "set", "memory.provider", "tiny").code == 0
    status = bare_hermes.command("memory", "status").stdout
    assert "Provider:  tiny" in status
    assert "available ✓" in status
