"""Entry of the scheduler: ``stromboli-scheduler`` or ``python -m stromboli.scheduler``."""

from __future__ import annotations

import sys

from stromboli.process.entering import enter
from stromboli.scheduler.options import PROGRAM, Options
from stromboli.scheduler.processing import serve


def main() -> int:
    """Run the process; answers its exit code."""
    return enter(PROGRAM, Options, serve)


if __name__ == "__main__":
    sys.exit(main())
