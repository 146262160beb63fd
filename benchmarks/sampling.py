"""Samples of a running process, as py-spy writes them (``--format raw``), summed up by function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

IDLE = ("_worker (concurrent/futures/thread.py:81)",)
"""Where a thread is that has nothing to do and is taken for busy."""
OUTERMOST = ("_run_module_as_main", "_run_code", "<module>", "main (", "run (stromboli/process/running.py")
LINES = 40


def summary(samples: Iterable[str], title: str) -> str:
    """Shares of the samples that were taken in a function, and in it or below it.

    What the event loop does by itself (waiting included, sending, receiving, encryption) stands under ``Runner.run``.
    """
    total, own, below = 0, Counter[str](), Counter[str]()
    for line in samples:
        stack, _, times = line.rpartition(" ")
        frames = stack.split(";")
        if frames[-1] in IDLE:
            continue
        functions = [frame.rpartition(":")[0] + ")" for frame in frames if not frame.startswith(OUTERMOST)]
        total += int(times)
        own.update({functions[-1]: int(times)} if functions else {})
        below.update(dict.fromkeys(functions, int(times)))
    parts = [f"{title}: {total} samples", "", "in the function"]
    parts += [_line(name, count, total) for name, count in own.most_common(LINES)]
    parts += ["", "in it or below"]
    parts += [_line(name, count, total) for name, count in below.most_common(2 * LINES)]
    return "\n".join(parts) + "\n"


def _line(name: str, count: int, total: int) -> str:
    return f"{100 * count / max(total, 1):5.1f} % {name}"
