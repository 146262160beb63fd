"""Entry of the admission server: ``stromboli-webhooks`` or ``python -m stromboli.webhooks``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from stromboli.process import flags, running
from stromboli.webhooks.options import Options
from stromboli.webhooks.processing import PROGRAM, serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process with the command line's flags, or those given; answers its exit code."""
    given = sys.argv[1:] if arguments is None else arguments

    async def parsed_and_served() -> None:
        await serve(flags.parse(Options, given, program=PROGRAM))

    return running.run(PROGRAM, parsed_and_served)


if __name__ == "__main__":
    sys.exit(main())
