"""Entry of the scheduler: ``stromboli-scheduler`` or ``python -m stromboli.scheduler``."""

from __future__ import annotations

import sys

from stromboli.process import flags, running
from stromboli.scheduler.options import PROGRAM, Options
from stromboli.scheduler.processing import serve


async def _main() -> None:
    await serve(flags.parse(Options, sys.argv[1:], program=PROGRAM))


def main() -> int:
    """Run the process; answers its exit code."""
    return running.run(PROGRAM, _main)


if __name__ == "__main__":
    sys.exit(main())
