"""Find in what a person wrote to an agent what they told it to keep, by explicit rules. Pure.

A rule is a phrase at the beginning of a sentence that means nothing else: "remember that …", "always …", "never …",
"from now on …", in English, German, French, Spanish, Portuguese, Italian, Dutch, Russian, Chinese and Japanese. What a
rule does not find stays in the log: a wrong memory costs more than a missed one. Long messages hold pasted text, in
which these words are somebody else's, and are left alone; so are quotations, code, questions, and sentences that only
point at something ("never do that again").
"""

from __future__ import annotations

# ruff: noqa: RUF001 - the letters of other scripts are meant
import re
from collections.abc import Iterator
from typing import NamedTuple

from runtime_memory.models import MemoryCategory
from runtime_memory.spoken import spoken, strip_blocks

__all__ = ["LONGEST_MESSAGE", "Statement", "statements"]

LONGEST_MESSAGE = 1_500
_LONGEST_STATEMENT = 600
_SHORTEST, _SHORTEST_UNSPACED = 12, 5
_FEWEST_WORDS = 2

# What a host writes in the user's name.
_HOST = re.compile(
    r"\s*(?:/\w|\[(?:System\b|IMPORTANT\b|CONTEXT\b|PRIOR CONTEXT\b|Note: |Your active task list\b|Orphan recovery\b))"
)
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d+[.)])[ \t]+")
_SENTENCE = re.compile(r"[^\n。！？!?.]*(?:[.!?](?!\s|$|[\"')\]])[^\n。！？!?.]*)*[。！？!?.]*[\"')\]]*", re.DOTALL)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_QUESTION = re.compile(r"[?？][\"')\]]*\s*\Z")
_OPENING_QUOTE = "\"'«“„‘「『"

_POLITE = (
    r"(?:(?:please|pls|also|and|ok(?:ay)?|so|hey|bitte|und|auch|also|s'il te pla[iî]t|s'il vous pla[iî]t|por favor"
    r"|per favore|alsjeblieft|пожалуйста|и|请|請)[,，]?\s*)*"
)
# The fact comes after these phrases.
_REMEMBER = re.compile(
    _POLITE
    + r"""(?:
    (?:do\s+)?remember\s*(?:that\b|this\s*[:,]|the\s+following\s*:|[:,]|to\b(?=\s+(?:always|never|use|run|add|put|keep)\b))
    | (?:don['’]?t|do\s+not|never)\s+forget\s*(?:that\b|[:,])
    | keep\s+in\s+mind\s*(?:that\b|[:,])
    | for\s+(?:the\s+record|future\s+reference)\s*[:,]
    | (?:merk|merke)\s+(?:dir|euch)\s*(?:bitte\s*)?(?:[:,]\s*(?:dass\b)?|dass\b)
    | (?:vergiss|vergesst)\s+nicht\s*[:,]\s*dass\b
    | denk(?:e|t)?\s+(?:bitte\s+)?daran\s*[:,]\s*(?:dass\b)?
    | (?:(?:souviens|rappelle)[- ]toi|(?:souvenez|rappelez)[- ]vous|retiens|retenez)\s*(?:bien\s+)?(?:que\b|qu['’]|:)
    | n['’]oublie[sz]?\s+pas\s+(?:que\b|qu['’])
    | (?:recuerda|recuerde|acu[eé]rdate\s+de|ten\s+en\s+cuenta)\s+que\b | recuerda\s*:
    | no\s+(?:olvides|olvide)\s+que\b
    | (?:lembre[- ]se|lembra[- ]te|lembre)\s+(?:de\s+)?que\b | n[aã]o\s+(?:se\s+)?esque[cç]a\s+(?:de\s+)?que\b
    | (?:ricorda(?:ti)?|tieni\s+presente)\s+che\b | ricorda(?:ti)?\s*: | non\s+dimenticare\s+che\b
    | (?:onthoud|bedenk)\s+(?:dat\b|:) | onthoud\s*: | vergeet\s+niet\s+dat\b
    | (?:запомни(?:те)?|имей(?:те)?\s+в\s+виду)\s*(?:[:,]\s*(?:что\b)?) | не\s+забудь(?:те)?\s*,\s*что\b
    | (?:请|請)?(?:你)?(?:记住|記住|记得|記得|记一下|記一下)[了：:,，\s]*
    | (?:别|別|不要)忘(?:了|记|記)[：:,，\s]*
    )\s*""",
    re.IGNORECASE | re.VERBOSE,
)
# These phrases are part of the rule that they open.
_RULE = re.compile(
    _POLITE
    + r"""(?P<rule>
    (?:from\s+now\s+on|going\s+forward|from\s+here\s+on|henceforth|in\s+(?:the\s+)?future)\b\s*,?
    | (?:always|never)\s+(?!\w*[^su]s\b|(?:nice|good|great|fun|an?|the|so|been|had|was|will|wanted|thought)\b)
      (?!(?:mind|heard|seen|knew|again|ever)\b)(?=[a-z])
    | (?:ab\s+(?:jetzt|sofort|heute)|von\s+nun\s+an|k[uü]nftig|in\s+zukunft)\b
    | (?:immer|niemals)\s+(?!wieder\b|noch\b|mehr\b|diese)(?=\w+.*\w) | nie\s+(?=\w+.*(?:en|ern|eln)\b)
    | (?:[aà]\s+partir\s+de\s+maintenant|d[eé]sormais|dor[eé]navant)\b | toujours\s+(?=\w+(?:er|ir|re)\b)
    | ne\s+(?:jamais\s+\w+|\w+\s+jamais\b) | n['’]\w+\s+jamais\b
    | (?:a\s+partir\s+de\s+ahora|de\s+ahora\s+en\s+adelante|en\s+adelante)\b
    | (?:a\s+partir\s+de\s+agora|de\s+agora\s+em\s+diante|daqui\s+em\s+diante)\b
    | (?:d['’]ora\s+in\s+(?:poi|avanti)|da\s+ora\s+in\s+poi)\b | non\s+\w+\s+mai\b
    | (?:siempre|sempre)\s+(?=\w{4,}) | (?:nunca|jam[aá]s)\s+(?=\w{3,})
    | (?:vanaf\s+nu|voortaan)\b | (?:altijd|nooit)\s+(?=\w+.*\w)
    | (?:с\s+этого\s+момента|отныне|впредь|с\s+сегодняшнего\s+дня)\b | всегда\s+(?=\w) | никогда\s+не\s+(?=\w)
    | (?:从现在(?:开始|起)|從現在(?:開始|起)|从今以后|今后|今後|以后(?=[都请別别不要你，,])|以後(?=[都請別不要你，,]))
    | (?:永远|永遠|总是|總是|绝对不要|絕對不要|绝不要|千万不要|千萬不要|务必|務必)
    | (?:これからは|今後は|以後は|必ず|常に|絶対に)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# Japanese says it at the end: "…を覚えておいて".
_REMEMBER_THIS = re.compile(
    r"(?:と(?:いうこと|言うこと)?を?|こと?を|を|、)?(?:覚え|おぼえ)(?:て|てお|とい)(?:いて|て)?(?:ください|下さい|ね|くれ)*[。！!]*\s*\Z"
)
_POINTS = re.compile(
    r"(?:this|that|it|these|those|so|do|did|done|say|use|again|to|please|ever|me|das|dies(?:es)?|es|ça|cela|eso|esto|isso"
    r"|это|так|wieder)",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """What a person told an agent to keep."""

    content: str
    category: MemoryCategory


def statements(message: str) -> Iterator[Statement]:
    """Yield what one message of a user tells to keep, without injected blocks and the envelopes of a gateway."""
    if _HOST.match(strip_blocks(message)):
        return
    said = _CODE.sub("\n", spoken(message))
    if len(said) > LONGEST_MESSAGE:
        return
    for line in _QUOTED_LINE.sub("", said).split("\n"):
        for sentence in _SENTENCE.findall(_BULLET.sub("", line)):
            if found := _statement(sentence.strip()):
                yield found


def _statement(sentence: str) -> Statement | None:
    if (
        not sentence
        or len(sentence) > _LONGEST_STATEMENT
        or sentence[0] in _OPENING_QUOTE
        or _QUESTION.search(sentence)
    ):
        return None
    if (told := _REMEMBER.match(sentence)) and _stands_alone(rest := sentence[told.end() :].strip()):
        return Statement(_opened(rest), MemoryCategory.PREFERENCE if _RULE.match(rest) else MemoryCategory.CONTEXT)
    if (told := _REMEMBER_THIS.search(sentence)) and _stands_alone(rest := sentence[: told.start()].strip()):
        return Statement(rest, MemoryCategory.CONTEXT)
    if (told := _RULE.match(sentence)) and _stands_alone(sentence[told.end() :]):
        return Statement(_opened(sentence[told.start("rule") :]), MemoryCategory.PREFERENCE)
    return None


def _stands_alone(rest: str) -> bool:
    """Tell whether what follows the phrase says something by itself."""
    words = re.findall(r"[\w'’-]+", rest)
    if _UNSPACED.search(rest):
        return len("".join(words)) >= _SHORTEST_UNSPACED
    telling = [word for word in words if not _POINTS.fullmatch(word)]
    return len(rest) >= _SHORTEST and len(telling) >= _FEWEST_WORDS


def _opened(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
