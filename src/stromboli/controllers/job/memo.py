"""What has been worked out from objects that nobody changes, kept for those that were asked about last.

A job is looked at several times in a row and most of it stays the same: its spec from one status to the next, its
status from one pass to the next. Answers are by identity, and the object is held as long as its answer, so an answer
is never given for another object. Bounded, because ten thousand jobs must not stay in memory twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST = 256
"""Objects whose answers are kept: those of the jobs that are worked on in a few seconds."""


class Memo(Generic[T]):
    """Answers about objects. Neither the objects nor the answers may be changed by anybody."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._answers: OrderedDict[int, tuple[object, object, T]] = OrderedDict()

    def of(self, source: object, work_out: Callable[[], T], *, given: object = None) -> T:
        """The answer about ``source``, worked out if it is not known, or if it was for something else ``given``."""
        known = self._answers.get(id(source))
        if known is not None and known[0] is source and known[1] == given:
            self._answers.move_to_end(id(source))
            return known[2]
        answer = work_out()
        self._answers[id(source)] = (source, given, answer)
        self._answers.move_to_end(id(source))
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return answer

    def __len__(self) -> int:
        """Answers that are kept."""
        return len(self._answers)
