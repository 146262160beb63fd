"""Entry of the admission server: ``stromboli-webhooks`` or ``python -m stromboli.webhooks``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from stromboli.process import flags, running
from stromboli.webhooks.options import Options
from stromboli.webhooks.processing import PROGRAM, serve

CLEAN_UP_SECONDS: Final = 5.0
"""What remains to be done when the reviews in flight have had their time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process with the command line's flags, or those given; answers its exit code."""
    try:
        options = flags.parse(Options, sys.argv[1:] if arguments is None else arguments, program=PROGRAM)
        options.check()
    except flags.FlagError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 1
    stop_seconds = options.graceful_shutdown_time + CLEAN_UP_SECONDS
    return running.run(PROGRAM, lambda: serve(options), stop_seconds=stop_seconds)


if __name__ == "__main__":
    sys.exit(main())
