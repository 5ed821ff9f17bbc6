"""Whether the object store that holds the tables can be reached, so that nobody waits for it again and again."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["Link", "RemoteLink", "Unreachable", "is_unreachable", "within"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_RETRY_SECONDS = 5.0
"""Between two looks at whether a store that could not be reached is back."""

_PATIENCE_SECONDS = 5.0
"""How long a look may take: one that LanceDB repeats by itself would take many times its request's timeout."""


_CLOSING_SECONDS = 1.0

_NO_ANSWER = re.compile(r"RetryError|HttpError|Generic \w+ error|error sending request|error decoding response body")


class Unreachable(ConnectionError):  # noqa: N818 - what is the matter, as in StoreUnavailableError
    """The object store does not answer, or does not let us in."""


class Link:
    """To the tables of a folder on this machine: they are always there."""

    @property
    def is_down(self) -> bool:
        """Whether the last question found no answer."""
        return False

    def ask(self, question: Callable[[], _T]) -> _T | None:
        """Return the answer to a question that the tables must be there for; None while they cannot be reached."""
        return question()

    def look(self, question: Callable[[], _T]) -> _T | None:
        """Return the answer to a short question, within a bounded time; None while the tables cannot be reached."""
        return question()

    def reaches(self, question: Callable[[], object]) -> bool:  # noqa: ARG002 - here nothing need be asked
        """Tell whether the tables can be reached, by a short question."""
        return True

    def insist(self) -> None:
        """Return when the tables can be reached. Raises Unreachable."""

    def close(self) -> None:
        """Wait, for a bounded time, for a look that is under way."""


class RemoteLink(Link):
    """To tables elsewhere. After a question without an answer none is asked until a look finds the store again.

    ``probe`` is that look: a question as short as there is.
    """

    def __init__(self, probe: Callable[[], object]) -> None:
        self._probe = probe
        self._down_since: float | None = None
        self._reason = ""
        self._thread: threading.Thread | None = None

    @property
    def is_down(self) -> bool:
        """Whether the last question found no answer."""
        return self._down_since is not None

    def ask(self, question: Callable[[], _T]) -> _T | None:
        """Return the answer; None, at once, while the store cannot be reached: that is looked at in the background."""
        if self._down_since is not None:
            self._look_again()
            return None
        return self._answer(question)

    def look(self, question: Callable[[], _T]) -> _T | None:
        """Return the answer to a short question, like ``ask``; no answer within some seconds is none."""
        return self.ask(lambda: within(question, _PATIENCE_SECONDS))

    def reaches(self, question: Callable[[], object]) -> bool:
        """Tell whether the tables can be reached, by a short question."""
        return self.look(question) is not None

    def insist(self) -> None:
        """Look now if the store is back. Raises Unreachable with the reason."""
        if self._down_since is not None:
            self._answer(lambda: within(self._probe, _PATIENCE_SECONDS))
        if self._down_since is not None:
            raise Unreachable(self._reason)

    def lost(self, error: BaseException) -> None:
        """Note that the store could not be reached."""
        if self._down_since is None:
            _log.warning("the object store cannot be reached, reading goes on from the last replica: %s", error)
        self._down_since, self._reason = time.monotonic(), str(error)

    def close(self) -> None:
        """Wait, for a bounded time, for a look that is under way."""
        if self._thread is not None:
            self._thread.join(_CLOSING_SECONDS)

    def _answer(self, question: Callable[[], _T]) -> _T | None:
        try:
            answer = question()
        except Exception as error:
            if not is_unreachable(error):
                raise
            self.lost(error)
            return None
        if self._down_since is not None:
            _log.info("the object store can be reached again")
        self._down_since = None
        return answer

    def _look_again(self) -> None:
        due = self._down_since is not None and time.monotonic() - self._down_since >= _RETRY_SECONDS
        if due and not (self._thread and self._thread.is_alive()):
            self._thread = threading.Thread(target=self._look_quietly, name="runtime-memory-link", daemon=True)
            self._thread.start()

    def _look_quietly(self) -> None:
        with suppress(Exception):  # a question of the foreground meets the same error, and tells it
            self._answer(lambda: within(self._probe, _PATIENCE_SECONDS))


def is_unreachable(error: BaseException) -> bool:
    """Tell whether an error says that the object store did not answer, or refused; LanceDB tells so in words only."""
    if isinstance(error, Unreachable):
        return True
    text = str(error)
    return _NO_ANSWER.search(text) is not None and "NotFound" not in text and "not found" not in text


def within(question: Callable[[], _T], seconds: float) -> _T:
    """Return the answer to a question. Raises Unreachable when it takes longer; a thread goes on waiting for it."""
    answers: list[_T] = []
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append(question())
        except BaseException as error:  # noqa: BLE001 - raised where it was asked
            errors.append(error)

    thread = threading.Thread(target=ask, name="runtime-memory-question", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise Unreachable(f"it did not answer within {seconds:g} seconds")
    return answers[0]
