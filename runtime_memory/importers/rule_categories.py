"""Which category an instruction for agents is of, by simple cues: its headings first, then its own words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runtime_memory.models import MemoryCategory

__all__ = ["categorize"]

# The first that matches counts, so what is more telling stands first. Words match at their beginning.
_HEADINGS = tuple(
    (MemoryCategory(name), re.compile(rf"\b(?:{words})", re.IGNORECASE))
    for name, words in {
        "gotcha": r"gotcha|pitfall|caveat|warning|watch out|common mistake|known issue|quirk",
        "workaround": "workaround",
        "troubleshooting": "troubleshoot|debug|faq|when things go wrong",
        "todo": r"to-?dos?\b|roadmap|next steps|backlog|open questions",
        "decision": r"decision|adrs?\b|trade-?off",
        "command": r"command|script|cheat ?sheet|build\b|running\b|usage|quick ?start",
        "coding_style": r"cod(?:e|ing) (?:style|standard|guideline|convention)|style|format|naming|lint|idiom|typing",
        "tool_preference": r"tool|package manager|editor\b|ide\b",
        "architecture": r"architect|structure|layout|overview|design|director|module|component|data model|codebase",
        "pattern": r"pattern|example|recipe|template",
        "dependency": r"dependenc|stack\b|librar|packages?\b|versions?\b|tech",
        "environment": r"environment|set-?up|install|configur|requirement|prerequisite|deploy|ports?\b|secrets?\b",
        "preference": r"prefer|communicat|tone\b|respon|answer|collaborat|about me|personal|language\b",
        "convention": r"convention|rule|guideline|git\b|commit|pull request|prs?\b|branch|workflow|process|test"
        r"|boundar|polic|review|releas|always|never|do not|don'?t",
    }.items()
)
_WORDS = tuple(
    (MemoryCategory(name), re.compile(pattern, re.IGNORECASE))
    for name, pattern in {
        "todo": r"\[[ x]\]|todo\b",
        "command": r"\$ \w|(?:run|execute|start|build|test)(?: it)?(?: with| by| using)?:? ?`",
        "preference": r"(?:(?:the )?user|i) (?:prefer|want|like|hate|dislike)|prefer\b",
        "gotcha": r"(?:gotcha|careful|beware|caution|warning)\b",
    }.items()
)
# A shell's code, or a span of code with an argument: what one types.
_TYPED = re.compile(
    r"[ \t]*(?:`{3,}|~{3,})[ \t]*(?:bash|sh|shell|zsh|console|terminal|fish|powershell)\b|"
    r"(?:\*\*)?`[a-z][\w.-]* [^`\n]+`",
    re.IGNORECASE,
)


def categorize(headings: Sequence[str], text: str, default: MemoryCategory) -> MemoryCategory:
    """Return the category of an instruction.

    A text that begins with what one types is a command. Else the nearest heading that gives a cue decides, then how the
    text begins, then ``default``.
    """
    if _TYPED.match(text):
        return MemoryCategory.COMMAND
    for heading in reversed(headings):
        for category, cue in _HEADINGS:
            if cue.search(heading):
                return category
    return next((category for category, cue in _WORDS if cue.match(text)), default)
