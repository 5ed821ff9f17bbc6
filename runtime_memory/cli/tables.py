"""How memories look to a person: tables that fit the terminal, and text that cannot disturb it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from runtime_memory.models import Explanation, Memory, SearchMode, SearchResult, StoreStats
from runtime_memory.outcomes import FAILING_SCORE
from runtime_memory.plain_text import neutral
from runtime_memory.suspicion import suspicion

__all__ = ["MODES", "listing", "memory_details", "pairs", "plain", "reasons", "short_ids", "stats_details"]

_ID_LENGTHS = (8, 13, 18, 23)  # up to a group of the UUID
_COLUMNS = (("ID", "Created", "Score"), ("Category", "Project"))
_WIDE = 120
_PROJECT_WIDTH = 15
_CUT = "…"


def short_ids(ids: Sequence[str], is_unique: Callable[[str], bool]) -> dict[str, str]:
    """Return for each id its shortest beginning, of at least 8 characters, that fits no other one.

    ``is_unique`` tells whether a beginning fits one memory only beyond those listed.
    """
    shown = {}
    for id_ in ids:
        beginnings = (id_[:length] for length in _ID_LENGTHS)
        lone = (each for each in beginnings if sum(other.startswith(each) for other in ids) == 1 and is_unique(each))
        shown[id_] = next(lone, id_)
    return shown


def plain(text: str) -> str:
    """Return text without the characters that could steer a terminal, or hide something from a reader."""
    return neutral(text)


def listing(
    memories: Sequence[Memory],
    ids: Mapping[str, str],
    console: Console,
    *,
    scores: Mapping[str, float] | None = None,
) -> Table:
    """Return memories as a table: with their scores in place of their dates when they were searched for.

    On a wide terminal a memory is one line; on a narrow one two, with the lesser cells below the others.
    """
    successors: dict[str | None, str] = {memory.supersedes: memory.id for memory in memories if memory.supersedes}
    rows = [_cells(memory, ids, scores) for memory in memories]
    groups = [[name for name in group if any(row.get(name) for row in rows)] for group in _COLUMNS]
    columns = groups if console.width < _WIDE else [[name] for group in groups for name in group]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    room, height = console.width, max(map(len, columns))
    for names in columns:
        width = max(cell_len(text) for name in names for text in (name, *(row[name] for row in rows)))
        title = "\n".join([*names, *[""] * (height - len(names))])
        table.add_column(title, no_wrap=True, min_width=width, style="cyan" if "ID" in names else "")
        room -= width + 2
    table.add_column("Memory" + "\n" * (height - 1))
    for memory, row in zip(memories, rows, strict=True):
        content = shorten(_marked(memory, ids, successors), console, room, height)
        table.add_row(*(Text("\n".join(row[name] for name in names)) for names in columns), content)
    return table


def memory_details(memory: Memory) -> Table:
    """Return everything about a memory but its content."""
    where = f"{memory.project or 'none'} (seen {'in every' if memory.scope == 'global' else 'in this'} {_unit(memory)})"
    return pairs(
        {
            "ID": memory.id,
            "Category": memory.category.value,
            "Project": where,
            "Tags": ", ".join(memory.tags),
            "Created": local(memory.created_at),
            "Updated": local(memory.updated_at),
            "Source": memory.source.value + (f" from {memory.origin}" if memory.origin else ""),
            "User": memory.user or "",
            "Profile": memory.profile or "",
            "Session": memory.session or "",
            "Outcome": _outcome(memory),
            "Supersedes": memory.supersedes or "",
            "State": "archived, not recalled" if memory.archived else "",
            "Suspect": _suspect(memory),
            "Metadata": ", ".join(f"{key}: {value}" for key, value in memory.metadata.items()),
        }
    )


def reasons(explanation: Explanation, ids: Mapping[str, str], console: Console) -> list[Text]:
    """Return what a recall found and left out: a heading for each reason, and for each memory it and its numbers."""
    titles = ("text", "BM25", "vector", "cosine", "cover", "relev", "fused", "outcome", "score")
    shown = [Text(_NUMBERS.format(*titles), "bold")]
    listed = [*explanation.recalled, *explanation.dropped]
    for reason, results in groupby(listed, lambda result: result.dropped):
        shown.append(
            Text(f"Left out: {plain(reason)}" if reason else "Recalled", "bold yellow" if reason else "bold green")
        )
        for result in results:
            memory = result.memory
            mark = ("[suspect] " if result.suspect else "", "yellow")
            line = Text.assemble((ids[memory.id], "cyan"), f"  {memory.category}  ", mark, _flat(memory.content))
            shown += [shorten(line, console, console.width, 1), Text(_numbers(result))]
    return shown


def stats_details(stats: StoreStats) -> Table:
    """Return the counts and the health of a store."""
    archived = stats.total_memories - stats.active_memories
    reports = f"{stats.total_uses} reports, average score {signed(stats.avg_outcome_score)}"
    waiting = f"{stats.pending_embeddings} memories are found by their words only, so far"
    return pairs(
        {
            "Store": stats.path,
            "Memories": f"{stats.active_memories} active, {archived} archived",
            "Categories": ", ".join(f"{name} {count}" for name, count in stats.by_category.items()),
            "Projects": ", ".join(f"{name} {count}" for name, count in stats.by_project.items()),
            "Outcomes": reports if stats.total_uses else "none reported yet",
            "Search": MODES[stats.search_mode],
            "Note": stats.message or "",
            "Model": stats.embedding_model or "",
            "Waiting": waiting if stats.pending_embeddings else "",
        }
    )


def pairs(values: Mapping[str, str]) -> Table:
    """Return named values below one another; those without a value are left out."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values.items():
        if value:
            table.add_row(name, Text(plain(value)))
    return table


def shorten(text: Text, console: Console, width: int, lines: int) -> Text:
    """Return text cut to a number of lines of this width, with a mark where it was cut."""
    room = max(width, 10)
    wrapped = list(text.wrap(console, room))
    for line in wrapped:
        line.rstrip()
    rest = Text(" ").join(wrapped[lines - 1 :])
    rest.truncate(room, overflow="ellipsis")
    return Text("\n").join([*wrapped[: lines - 1], rest])


def cut(text: str, length: int) -> str:
    """Return text cut to a length, with a mark where it was cut."""
    folded = " ".join(plain(text).split())
    return folded if len(folded) <= length else folded[: length - 1] + _CUT


def local(moment: datetime) -> str:
    """Return a time as the clock on the wall shows it."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def signed(score: float) -> str:
    """Return an outcome score with its sign."""
    return f"{score:+.2f}"


_NUMBERS = "   {:>5} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6} {:>8} {:>6}"
MODES = {
    SearchMode.HYBRID: "by words and by meaning",
    SearchMode.TEXT: "by words only",
    SearchMode.VECTOR: "by meaning only",
    SearchMode.NONE: "none",
}


def _numbers(result: SearchResult) -> str:
    return _NUMBERS.format(
        "-" if result.text_rank is None else f"#{result.text_rank}",
        "-" if result.bm25 is None else f"{result.bm25:.2f}",
        "-" if result.vector_rank is None else f"#{result.vector_rank}",
        "-" if result.cosine is None else f"{result.cosine:.2f}",
        f"{result.coverage:.2f}",
        f"{result.relevance:.2f}",
        f"{result.fused:.2f}",
        signed(result.outcome_term),
        f"{result.score:.2f}",
    )


def _cells(memory: Memory, ids: Mapping[str, str], scores: Mapping[str, float] | None) -> dict[str, str]:
    placed = {"Created": local(memory.created_at)[:10]} if scores is None else {"Score": f"{scores[memory.id]:.2f}"}
    project = cut(memory.project or "", _PROJECT_WIDTH)
    return {"ID": ids[memory.id], **placed, "Category": memory.category.value, "Project": project}


def _marked(memory: Memory, ids: Mapping[str, str], successors: Mapping[str | None, str]) -> Text:
    marks = []
    if memory.id in successors:
        marks.append(f"superseded by {ids[successors[memory.id]]}")
    elif memory.archived:
        marks.append("archived")
    if memory.outcome_score:
        score = signed(memory.outcome_score)
        marks.append(f"{'failing' if memory.outcome_score <= FAILING_SCORE else 'outcome'} {score}")
    if suspicion(memory.content):
        marks.append("suspect")
    return Text.assemble(*((f"[{mark}] ", "yellow") for mark in marks), _flat(memory.content))


def _outcome(memory: Memory) -> str:
    if not memory.uses:
        return ""
    failing = ", failing: not recalled" if memory.outcome_score <= FAILING_SCORE else ""
    return f"{signed(memory.outcome_score)} after {memory.uses} report{'s' * (memory.uses != 1)}{failing}"


def _suspect(memory: Memory) -> str:
    reason = suspicion(memory.content)
    return f"{reason}; marked where it is recalled, and ranked lower" if reason else ""


def _unit(memory: Memory) -> str:
    return "session" if memory.scope == "session" else "project"


def _flat(content: str) -> str:
    return " ".join(plain(content).split())
