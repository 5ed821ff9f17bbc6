"""Recognise prompts that ask for nothing: thanks, greetings, go-aheads, emoji."""

from __future__ import annotations

from functools import cache
from itertools import islice

import regex

from indexes.analysis import fold

__all__ = ["is_small_talk"]

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}'\u2019]+")

# Words of which a prompt may consist wholly and still be small talk.
_WORDS = frozenset(
    """
    hahaha hahahaha looks to welcome
    are back best can interesting leave mean meant mind mistake moment my still stop tal tomorrow try was were why
    que جزيلا
    a again ah ahead aha alright all amazing and awesome bravo brilliant bye cheers continue cool correct course
    dear do done evening everyone everything excellent exactly fantastic fine for go good goodbye got great ha haha
    hah hehe hello help hey hi hm hmm hmmm how i idk is it just k kk later let lets lgtm lol lovely makes me mhm
    morning much nah never next nice night nm no noted nope now of oh ok okay okey on one ouch perfect please pls
    proceed really right same see sense so sorry sounds sup super sure sweet thank thanks that thats the there thing
    this thx today too ty uh understood up very wait well what whats wonderful works worries wow y ya yay yeah yep
    yes yo you your youre yup are right't im i'm it's that's you're let's what's day have a weekend mate man guys
    buddy bien bitte danke dankeschon dir guten hallo ja klar moin morgen nein prima schon super tschuss vielen
    bonjour ca d'accord merci non oui parfait salut va beaucoup tres adios bueno buenos buenas claro dias gracias
    hola muchas perfecto si vale noches tardes bom dia obrigado obrigada ola tudo bem sim nao ciao grazie buongiorno
    perfetto dank dankjewel goed hoi je wel tack hej kiitos takk да нет спасибо привет хорошо ок пока большое
    отлично понятно здравствуйте ладно dzieki dziekuje czesc tak nie merhaba tesekkurler evet hayir tamam नमस्ते
    धन्यवाद हाँ ठीक है शुक्रिया شكرا مرحبا نعم لا حسنا السلام عليكم תודה שלום כן לא
    """.split()
)
# Scripts without spaces: the whole prompt, its punctuation removed.
_PHRASES = frozenset(
    """
    谢谢 谢谢你 多谢 好 好的 好吧 是 是的 对 对的 不 不是 不用 嗯 嗯嗯 哈哈 哈哈哈 你好 您好 早 早上好
    晚安 再见 继续 可以 行 没问题 明白 明白了 知道了 太好了 太棒了
    ありがとう ありがとうございます どうも はい いいえ うん そう そうですね 了解 了解です
    わかりました こんにちは おはよう おはようございます こんばんは さようなら 続けて
    お願いします すごい いいね 大丈夫
    감사합니다 고마워 고마워요 네 넵 응 아니요 아니 안녕 안녕하세요 좋아 좋아요 알겠습니다 계속
    계속해 ㅋㅋ ㅋㅋㅋ ㅎㅎ
    ขอบคุณ ขอบคุณครับ ขอบคุณค่ะ สวัสดี สวัสดีครับ สวัสดีค่ะ ครับ ค่ะ ใช่ ไม่ โอเค ดีมาก
    """.split()
)
_LONGEST = 8
_LONGEST_WORD = 40


def is_small_talk(prompt: str) -> bool:
    """Tell whether a prompt is nothing but courtesy, assent or symbols; an empty one is."""
    found = islice(_WORD.finditer(prompt), _LONGEST + 1)
    words = [fold(match[0][:_LONGEST_WORD]).casefold() for match in found]
    if len(words) > _LONGEST:
        return False
    return "".join(words) in _folded(_PHRASES) or all(word in _folded(_WORDS) for word in words)


@cache
def _folded(words: frozenset[str]) -> frozenset[str]:
    return frozenset(fold(word).casefold() for word in words)
