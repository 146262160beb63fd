"""Keeps Python's cycle collector from walking through the mirror again and again.

While the first lists come in nothing becomes garbage, but every few hundred new objects would start a collection over
all of them: half of the time of a cold start. What has been built then lives as long as the process, so it is set aside
(``gc.freeze``), and later collections look only at what came after. These come less often than Python does it by
itself: next to nothing of what a scheduler makes is cyclic, and every pod that arrives is a dozen objects.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 50_000
"""New objects after which a collection looks at them; a few megabytes."""


@contextmanager
def left_alone() -> Iterator[None]:
    """No collection while the block runs; what exists at its end is never looked at again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
        gc.enable()
