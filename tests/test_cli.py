"""The command line as a person or a script uses it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner, Result

from runtime_memory.cli import app, memories, tables
from runtime_memory.errors import InvalidInputError
from tests.tiny_embedder import TinyEmbedder

FACT = "decimal.Decimal for money, floats lost a cent"
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "null")
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(folder))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def with_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "local")
    monkeypatch.setattr("runtime_memory.embedding.load_embedder", lambda model: TinyEmbedder())


def mem(*args: str, stdin: str = "", code: int = 0) -> Result:
    """Run a command in this process, and check its exit code."""
    result = CliRunner().invoke(app, list(args), input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def as_json(*args: str, **options: Any) -> Any:
    return json.loads(mem(*args, "--json", **options).stdout)


def added(*args: str) -> str:
    return mem("add", *args).stdout.strip()


def process(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    code = "from runtime_memory.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=120, check=False, **options
    )


# Adding


def test_add_prints_the_id_and_nothing_else() -> None:
    result = mem("add", FACT, "-c", "gotcha", "-p", "shop", "-t", "money", "-t", "python")
    assert ID.fullmatch(result.stdout.strip())
    assert result.stderr == ""
    memory = as_json("show", result.stdout.strip())
    assert (memory["content"], memory["category"], memory["project"]) == (FACT, "gotcha", "shop")
    assert (memory["tags"], memory["source"], memory["scope"]) == (["money", "python"], "explicit", "project")


def test_words_without_quotes_are_one_text() -> None:
    assert as_json("add", "floats", "lost", "a", "cent")["content"] == "floats lost a cent"


@pytest.mark.parametrize("args", [(), ("-",)])
def test_add_reads_a_pipe(args: tuple[str, ...]) -> None:
    assert as_json("add", *args, stdin="two\nlines é\n")["content"] == "two\nlines é"


def test_a_pipe_that_is_no_utf8_is_still_stored() -> None:
    result = CliRunner().invoke(app, ["add", "--json"], input=b"caf\xe9 noir")
    assert json.loads(result.stdout)["content"] == "caf� noir"


def test_a_duplicate_is_said_and_keeps_its_id() -> None:
    first = added(FACT)
    again = mem("add", FACT)
    assert again.stdout.strip() == first
    assert "before" in again.stderr
    assert as_json("add", FACT)["duplicate"] is True
    assert as_json("add", "something else")["duplicate"] is False


def test_a_correction_retires_the_memory_it_names_by_its_beginning() -> None:
    old = added("the ssh port is 22")
    new = added("the ssh port is 49222", "--supersedes", old[:18])
    assert [m["id"] for m in as_json("list")["memories"]] == [new]
    assert re.search(r"\[superseded by [0-9a-f-]+\]", mem("list", "--all").stdout.replace("\n", " "))


def test_an_empty_text_is_refused_in_one_line() -> None:
    result = mem("add", "  ", code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("mem: content is empty")
    assert result.stderr.count("\n") == 1


def test_an_unknown_category_is_a_usage_error_that_names_the_valid_ones() -> None:
    result = mem("add", FACT, "-c", "nonsense", code=2)
    assert "troubleshooting" in result.stderr


# Finding


def test_search_finds_by_words_of_the_query_and_prints_scores() -> None:
    added(FACT)
    added("the staging database listens on port 6432")
    result = mem("search", "staging", "port")
    assert "6432" in result.stdout
    assert "1.00" in result.stdout
    found = as_json("search", "staging port")
    assert found["count"] == len(found["memories"]) == 1
    assert found["memories"][0]["score"] == 1.0


def test_a_query_that_looks_like_syntax_finds_and_harms_nothing() -> None:
    added("it's -x a:b [bold]markup[/bold] 100% *")
    for query in ("it's", "a:b", "*", "[bold]", "AND OR", "'", "\\"):
        mem("search", "--", query)
    assert "[bold]markup[/bold]" in mem("search", "markup").stdout


def test_project_category_tag_and_limit_narrow_a_search_and_a_list() -> None:
    added("port of shop", "-p", "shop", "-c", "environment", "-t", "net")
    added("port of garden", "-p", "garden")
    added("port of all", "-t", "net", "-t", "all")

    def contents(*args: str) -> set[str]:
        listed, found = as_json("list", *args), as_json("search", "port", *args)
        assert {m["id"] for m in listed["memories"]} == {m["id"] for m in found["memories"]}
        return {m["content"].removeprefix("port of ") for m in listed["memories"]}

    assert contents() == {"shop", "garden", "all"}
    assert contents("-p", "shop") == {"shop", "all"}
    assert contents("-c", "environment") == {"shop"}
    assert contents("-t", "net") == {"shop", "all"}
    assert contents("-t", "net", "-t", "all") == {"all"}
    assert as_json("list", "-l", "1")["memories"][0]["content"] == "port of all"
    assert as_json("search", "port", "-l", "2")["count"] == 2


def test_the_project_of_the_settings_is_the_default_unless_it_is_automatic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "shop")
    added("in the shop")
    assert as_json("add", "anywhere", "-p", "")["project"] is None
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "auto")
    assert as_json("add", "outside")["project"] is None
    assert as_json("search", "shop")["memories"][0]["project"] == "shop"


@pytest.mark.usefixtures("with_vectors")
def test_why_shows_both_arms_the_threshold_and_the_reason_of_each_drop() -> None:
    for text in (FACT, f"{FACT}!", "the cat sleeps on the warm stove", "money"):
        added(text)
    other = added("money and floats in another place", "-p", "garden")
    shown = mem("why", "why do floats lose money?", "-p", "shop").stdout
    assert {"text", "BM25", "vector", "cosine", "cover", "relev", "fused", "outcome", "score"} <= set(shown.split())
    assert re.search(r"#1 +\d+\.\d\d +#\d +\d\.\d\d", shown)
    assert "Threshold" in shown
    assert "says the same as" in shown
    assert "in another project: garden" in shown
    reasons = as_json("why", "why do floats lose money?", "-p", "shop")
    assert reasons["search_mode"] == "hybrid"
    assert next(each for each in reasons["dropped"] if each["id"] == other)["dropped"] == "in another project: garden"


def test_why_changes_nothing() -> None:
    added(FACT)
    before = as_json("list")
    mem("why", "floats and money")
    assert as_json("list") == before


def test_why_says_that_small_talk_recalls_nothing() -> None:
    result = mem("why", "thanks!")
    assert result.stdout == ""
    assert "small talk" in result.stderr


# Showing


def test_show_prints_the_content_as_it_is_below_its_details() -> None:
    text = "# Title\n\n- a list\n  with [brackets] and :smile:\n"
    id_ = added(text, "-t", "a", "-t", "b")
    shown = mem("show", id_).stdout
    assert shown.endswith(text.rstrip("\n") + "\n") or text.strip() in shown
    assert "a, b" in shown
    assert id_ in shown


def test_the_ids_of_a_listing_can_be_given_to_other_commands() -> None:
    for number in range(12):
        added(f"fact number {number}")
    shown = [line.split()[0] for line in mem("list").stdout.splitlines() if re.match(r"[0-9a-f]{8}", line)]
    ids = [line for line in shown if not re.fullmatch(r"\d{4}-\d\d-\d\d", line)]
    assert len(set(ids)) == 12
    for id_ in ids:
        assert as_json("show", id_)["id"].startswith(id_)


def test_a_listing_fits_80_columns_and_marks_what_it_cut() -> None:
    added("word " * 100, "-c", "troubleshooting", "-p", "a-project-with-a-very-long-name-indeed")
    added("価格" * 60)
    lines = mem("list").stdout.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert [line.count("…") for line in lines[2:]] == [0, 1, 0, 2]


def test_what_is_piped_has_one_line_a_memory_and_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    added("several\nlines\nof text", "-p", "shop")
    header, line = mem("list").stdout.splitlines()
    assert header.split() == ["ID", "Created", "Category", "Project", "Memory"]
    assert line.rstrip().endswith("several lines of text")
    assert "\x1b" not in line


def test_control_characters_of_a_memory_do_not_reach_the_terminal() -> None:
    id_ = added("red \x1b[31malert\x07 \x9b31m")
    for shown in (mem("list"), mem("show", id_), mem("why", "red alert"), mem("search", "alert")):
        assert not set("\x1b\x07\x9b") & set(shown.stdout)
    assert as_json("show", id_)["content"] == "red \x1b[31malert\x07 \x9b31m"


def test_dates_are_those_of_the_local_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "n.md").write_text("---\ndate: 2024-05-01T23:30:00Z\n---\nnoted late")
    mem("import", str(tmp_path / "n.md"))
    shown = process("list", env={**os.environ, "TZ": "Asia/Tokyo"}).stdout
    assert "2024-05-02" in shown
    assert as_json("list")["memories"][0]["created_at"] == "2024-05-01T23:30:00Z"


def test_a_listing_says_when_there_is_more() -> None:
    for number in range(3):
        added(f"fact {number}")
    assert "--limit 0" in mem("list", "-l", "2").stderr
    assert mem("list", "-l", "3").stderr == ""
    assert as_json("list", "-l", "0")["count"] == 3


def test_empty_results_say_what_to_do_next_and_are_no_failure() -> None:
    for args in (("list",), ("search", "anything"), ("why", "what about the anything?")):
        result = mem(*args)
        assert "mem " in result.stderr
    assert as_json("list") == {"count": 0, "memories": []}
    assert as_json("search", "anything") == {"count": 0, "memories": []}
    added(FACT)
    assert "filters" in mem("list", "-t", "nowhere").stderr


def test_stats_count_and_say_why_vectors_are_not_used() -> None:
    added(FACT, "-c", "gotcha", "-p", "shop")
    shown = mem("stats").stdout
    assert "1 active, 0 archived" in shown
    assert "gotcha 1" in shown
    assert "RUNTIME_MEMORY_EMBEDDING is 'null'" in shown.replace("\n", " ")
    assert as_json("stats")["by_category"] == {"gotcha": 1}


# Changing


def test_edit_changes_what_is_given_and_keeps_the_rest() -> None:
    id_ = added(FACT, "-t", "money")
    assert mem("edit", id_, "integers", "of cents").stdout.strip() == id_
    assert as_json("edit", id_, "-c", "decision", "-t", "cents")["content"] == "integers of cents"
    memory = as_json("show", id_)
    assert (memory["category"], memory["tags"]) == ("decision", ["cents"])
    assert as_json("edit", id_, "-t", "")["tags"] == []
    assert as_json("edit", id_, "-", stdin="from a pipe\n")["content"] == "from a pipe"


@pytest.mark.skipif(os.name == "nt", reason="commands of POSIX")
def test_the_editor_of_the_environment_is_used_and_its_failure_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("VISUAL", f"{sys.executable} -c \"import sys; open(sys.argv[1], 'a').write(' more\\n')\"")
    assert memories._edited("text") == "text more"
    monkeypatch.setenv("VISUAL", "false")
    with pytest.raises(InvalidInputError, match="nothing was changed"):
        memories._edited("text")


def test_edit_without_a_change_is_a_usage_error_where_there_is_no_terminal() -> None:
    mem("edit", added(FACT), code=2)


def test_archive_takes_out_of_recall_and_undo_brings_back() -> None:
    id_ = added(FACT)
    assert "[archived]" in mem("archive", id_).stdout
    assert as_json("search", "money")["count"] == 0
    assert as_json("search", "money", "--all")["count"] == 1
    assert as_json("archive", id_, "--undo")["memories"][0]["archived"] is False
    assert as_json("search", "money")["count"] == 1


def test_forget_asks_on_standard_error_and_takes_only_yes() -> None:
    id_ = added(FACT)
    for answer in ("", "\n", "n\n", "what\n"):
        refused = mem("forget", id_, stdin=answer, code=1)
        assert refused.stdout == ""
        assert "[y/N]" in refused.stderr
        assert "nothing was forgotten" in refused.stderr
    assert mem("forget", id_, stdin="y\n").stdout.strip() == id_
    assert as_json("list")["count"] == 0


def test_forget_with_yes_does_not_ask_and_wipes_nothing_when_one_id_is_unknown() -> None:
    first, second = added(FACT), added("another")
    mem("forget", first, "ffffffff", "--yes", code=1)
    assert as_json("list")["count"] == 2
    assert as_json("forget", first, second, first, "--yes")["count"] == 2


def test_outcomes_move_scores_and_failing_memories_are_marked() -> None:
    good, bad = added(FACT), added("another fact")
    assert "+0.20" in mem("outcome", "worked", good).stdout
    done = as_json("outcome", "failed", bad)
    assert done == {"recorded": True, "outcome": "failed", "updated": [{"id": bad, "outcome_score": -0.3}]}
    for _ in range(3):
        mem("outcome", "failed", bad)
    assert "[failing -0.6" in mem("list").stdout
    assert "not recalled" in mem("show", bad).stdout
    mem("outcome", "splendid", good, code=2)


def test_a_named_profile_has_memories_of_its_own() -> None:
    added("of the default")
    assert as_json("add", "of work", "--profile", "work")["profile"] == "work"
    assert [m["content"] for m in as_json("list")["memories"]] == ["of the default"]
    assert as_json("list", "--profile", "work")["count"] == 2


def test_db_names_another_store(tmp_path: Path) -> None:
    mem("add", FACT, "--db", str(tmp_path / "other"))
    assert as_json("list")["count"] == 0
    assert as_json("list", "--db", str(tmp_path / "other"))["count"] == 1


# Importing


def notes_in(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def by_file() -> dict[str, Any]:
    return {Path(m["origin"].partition("#")[0]).stem: m for m in as_json("list", "-p", "")["memories"]}


def test_import_stores_a_folder_once_and_sums_up(tmp_path: Path) -> None:
    notes = notes_in(tmp_path / "n", a="---\nproject: garden\ntags: [x]\n---\nWater tomatoes", b="Rest", empty="")
    summary = as_json("import", str(notes), "-t", "new")
    counts = {name: value for name, value in summary.items() if value and name not in ("skipped", "notices")}
    assert counts == {"read": 2, "added": 2}
    assert summary["skipped"] == [{"file": str(notes / "empty.md"), "reason": "empty", "fault": False}]
    listed = by_file()
    assert (listed["a"]["project"], listed["a"]["tags"]) == ("garden", ["x", "new"])
    assert (listed["b"]["project"], listed["b"]["source"]) == (None, "imported")
    again = mem("import", str(notes), "-t", "new")
    assert "Unchanged   2" in again.stdout
    assert "Skipped     1" in again.stdout
    assert as_json("list")["count"] == 2


def test_a_changed_note_is_updated_and_a_removed_one_archived_with_prune(tmp_path: Path) -> None:
    notes = notes_in(tmp_path / "n", a="The port is 5432", b="Rest on Sundays")
    mem("import", str(notes))
    before = by_file()
    notes_in(notes, a="The port is 5433")
    (notes / "b.md").unlink()
    result = mem("import", str(notes))
    assert "Updated     1" in result.stdout
    assert "Vanished    1" in result.stdout
    assert "--prune" in result.stderr
    assert by_file()["a"]["id"] == before["a"]["id"]
    assert "5433" in by_file()["a"]["content"]
    assert as_json("import", str(notes), "--prune")["archived"] == 1
    assert set(by_file()) == {"a"}


def test_the_project_of_the_command_is_stronger_than_a_notes_and_that_of_the_settings_weaker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = notes_in(tmp_path / "n", own="---\nproject: garden\n---\nOwn", none="None")
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "shop")
    mem("import", str(notes))
    assert {name: m["project"] for name, m in by_file().items()} == {"own": "garden", "none": "shop"}
    mem("import", str(notes / "own.md"), "-p", "attic")
    assert {name: m["project"] for name, m in by_file().items()} == {"own": "attic", "none": "shop"}


def test_an_options_category_and_format_are_taken(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text('{"note": "The port is 5433", "when": "2024-05-01"}\n')
    mem("import", str(tmp_path / "log.txt"), "--as", "jsonl", "--map", "content=note,created_at=when", "-c", "gotcha")
    [memory] = as_json("list")["memories"]
    assert (memory["content"], memory["category"]) == ("The port is 5433", "gotcha")
    assert memory["created_at"].startswith("2024-05-01")
    assert "valid are" in mem("import", str(tmp_path), "--as", "word", code=1).stderr
    refused = mem("import", str(tmp_path / "log.txt"), "--as", "text", "--map", "content=note", code=1)
    assert "no fields to map" in refused.stderr


def test_a_dry_run_tells_what_would_happen_and_stores_nothing(tmp_path: Path, folder: Path) -> None:
    notes = notes_in(tmp_path / "n", a="A fact")
    assert re.search(r"Would be added +1\n", mem("import", str(notes), "--dry-run").stdout)
    assert not folder.exists()
    mem("import", str(notes))
    assert as_json("import", str(notes), "--dry-run")["unchanged"] == 1


def test_a_file_with_a_fault_stops_nothing_and_gives_exit_code_1(tmp_path: Path) -> None:
    notes = notes_in(tmp_path / "n", good="A fact")
    (notes / "bad.md").write_bytes(b"\x00\x01\x02")
    summary = as_json("import", str(notes), code=1)
    assert summary["added"] == 1
    assert summary["skipped"] == [{"file": str(notes / "bad.md"), "reason": "not a text file", "fault": True}]


def test_a_path_that_is_not_there_is_said_and_the_others_are_imported(tmp_path: Path) -> None:
    summary = as_json("import", str(tmp_path / "nowhere"), str(notes_in(tmp_path / "n", a="A fact")), code=1)
    assert "no such file" in summary["skipped"][0]["reason"]
    assert set(by_file()) == {"a"}


def test_masked_secrets_are_noticed_and_kept_on_request(tmp_path: Path) -> None:
    notes = notes_in(tmp_path / "n", a="The password is hunter2-Abc9!")
    assert "masked: password" in mem("import", str(notes)).stderr
    assert "hunter2" not in by_file()["a"]["content"]
    (notes / "a.md").touch()
    mem("import", str(notes), "--allow-secrets")
    assert "hunter2" in by_file()["a"]["content"]


def test_an_export_is_imported_into_another_store_as_it_was(tmp_path: Path) -> None:
    first = added(FACT, "-p", "shop")
    mem("outcome", "worked", first)
    mem("archive", added("of old"))
    file = tmp_path / "all.jsonl"
    assert "2 memories exported" in mem("export", "-o", str(file), "--include-archived").stderr
    other = ("--db", str(tmp_path / "other"))
    assert as_json("import", str(file), *other)["added"] == 2
    assert as_json("list", "--all", *other) == as_json("list", "--all")
    assert len(mem("export").stdout.splitlines()) == 1


def test_what_was_imported_by_way_of_an_export_is_known_when_its_files_are_imported(tmp_path: Path) -> None:
    notes = notes_in(tmp_path / "n", a="The port is 5432", b="Rest on Sundays")
    mem("import", str(notes))
    mem("edit", by_file()["a"]["id"], "The port is 5433, by hand")
    mem("archive", by_file()["b"]["id"])
    file, other = tmp_path / "all.jsonl", ("--db", str(tmp_path / "other"))
    mem("export", "-o", str(file), "--include-archived")
    mem("import", str(file), *other)
    assert as_json("import", str(notes), *other)["unchanged"] == 2
    assert as_json("list", "--all", *other) == as_json("list", "--all")


def test_an_import_that_is_stopped_keeps_what_it_counted(tmp_path: Path) -> None:
    notes = notes_in(tmp_path / "n", **{f"n{number}": f"Fact number {number}" for number in range(6_000)})
    db = tmp_path / "db"
    command = [sys.executable, "-m", "runtime_memory", "import", str(notes), "--db", str(db)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (db / "manifest.json").exists():
            time.sleep(0.02)
        time.sleep(0.3)
        process.terminate()
        output, errors = process.communicate(timeout=60)
    if process.returncode == 130:  # else it was done before the signal came
        assert "the same command again" in errors
    counted = int(re.search(r"Added +(\d+)", output)[1])  # type: ignore[index]
    assert as_json("stats", "--db", str(db))["total_memories"] == counted
    assert as_json("import", str(notes), "--db", str(db))["added"] == 6_000 - counted


def test_an_export_as_markdown_is_a_note_a_memory(tmp_path: Path) -> None:
    added(FACT, "-c", "gotcha")
    mem("export", "--format", "markdown", "-o", str(tmp_path / "out"))
    [note] = (tmp_path / "out").iterdir()
    assert FACT in note.read_text()
    assert mem("export", "--format", "markdown").stdout == note.read_text()


# Failures and the world outside


def test_an_unknown_id_is_one_line_on_standard_error_and_with_json_an_object_on_standard_output() -> None:
    added(FACT)
    for args in (("show",), ("edit", "--category", "todo"), ("archive",), ("forget", "--yes"), ("outcome", "worked")):
        result = mem(args[0], *args[1:], "ffffffff", code=1)
        assert result.stdout == ""
        assert result.stderr.startswith("mem: there is no memory 'ffffffff'")
        assert result.stderr.count("\n") == 1
    result = mem("show", "ffffffff", "--json", code=1)
    assert json.loads(result.stdout) == {"error": result.stderr.removeprefix("mem: ").strip()}


def test_a_store_that_cannot_be_used_is_named_without_a_traceback(folder: Path) -> None:
    folder.write_text("a file")
    result = mem("list", code=1)
    assert str(folder) in result.stderr
    assert "Traceback" not in result.output


def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_RECALL_LIMIT", "many")
    assert "RUNTIME_MEMORY_RECALL_LIMIT='many'" in mem("list", code=1).stderr


def test_no_command_and_unknown_commands_are_usage_errors() -> None:
    assert process("frobnicate").returncode == 2
    assert process("list", "--frobnicate").returncode == 2


def test_every_command_has_help_with_examples() -> None:
    overview = mem("--help").stdout
    names = [
        "add",
        "search",
        "why",
        "show",
        "list",
        "edit",
        "archive",
        "forget",
        "outcome",
        "stats",
        "import",
        "hermes",
    ]
    for name in names:
        assert re.search(rf"^\W*{name}\b", overview, re.MULTILINE)
    commands = [(name,) for name in names if name != "hermes"]
    for command in [*commands, *(("hermes", name) for name in ("install", "uninstall", "status"))]:
        assert f"mem {' '.join(command)}" in mem(*command, "--help").stdout.split("Examples:")[1]


def test_the_version_is_that_of_the_package() -> None:
    assert re.fullmatch(r"mem \d+\.\d+\.\d+\n", mem("--version").stdout)


def test_help_imports_nothing_heavy_and_a_listing_no_torch() -> None:
    heavy = ("torch", "lancedb", "pyarrow", "numpy", "pydantic_settings", "tantivy")
    code = (
        "import sys, runtime_memory.cli as c\n"
        "try: c.app(sys.argv[1:])\n"
        f"finally: print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )

    def imported(*args: str) -> str:
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)
        return done.stderr

    assert imported("--help").endswith("[]\n")
    assert imported("search", "--help").endswith("[]\n")
    assert "torch" not in imported("list")


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes of POSIX")
def test_control_c_ends_a_question_without_a_word() -> None:
    id_ = added(FACT)
    code = "from runtime_memory.cli import main; main()"
    asking = subprocess.Popen(
        [sys.executable, "-c", code, "forget", id_],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert asking.stderr is not None
    shown = b""
    while b"[y/N] " not in shown:
        shown += os.read(asking.stderr.fileno(), 1000)
    asking.send_signal(signal.SIGINT)
    out, err = asking.communicate(timeout=60)
    assert (asking.returncode, out, err.strip()) == (130, b"", b"")
    assert as_json("list")["count"] == 1


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes of POSIX")
@pytest.mark.parametrize("args", [("list", "-l", "0"), ("list", "-l", "0", "--json"), ("list", "--help")])
def test_a_reader_that_goes_away_is_no_error_to_speak_of(args: tuple[str, ...]) -> None:
    for number in range(5):
        added(f"fact {number} " + "x" * 100)
    read, write = os.pipe()
    os.close(read)
    code = "from runtime_memory.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *args], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(write)
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_a_failure() -> None:
    added(FACT)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from runtime_memory.cli import main; main()", "list", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_ascii_terminal_gets_valid_json_and_a_listing() -> None:
    added("naïve café 価格")
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert json.loads(process("list", "--json", env=env).stdout)["memories"][0]["content"] == "naïve café 価格"
    assert process("list", env=env).returncode == 0


# The pieces of a table


def test_short_ids_are_as_long_as_they_must_be() -> None:
    ids = ["01234567-aaaa-7000-8000-000000000001", "01234567-aaaa-7000-8000-000000000002", "89abcdef-aaaa-7000-8000-1"]
    shown = tables.short_ids(ids, lambda _: True)
    assert shown == {ids[0]: ids[0], ids[1]: ids[1], ids[2]: "89abcdef"}
    assert tables.short_ids(ids[2:], lambda beginning: len(beginning) > 8) == {ids[2]: "89abcdef-aaaa"}
