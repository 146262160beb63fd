"""Entry of the admission server: ``stromboli-webhooks`` or ``python -m stromboli.webhooks``."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Final

from stromboli.process.entering import enter
from stromboli.webhooks.options import Options
from stromboli.webhooks.processing import PROGRAM, serve

GARBAGE_THRESHOLDS: Final = (50_000, 20, 50)
"""Reviews are trees, not circles: looking for garbage after every 700 objects would only hold large ones up."""
CLEAN_UP_SECONDS: Final = 5.0
"""What remains to be done when the reviews in flight have had their time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process with the command line's flags, or those given; answers its exit code."""
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    return enter(
        PROGRAM,
        Options,
        serve,
        arguments,
        stop_seconds=lambda options: options.graceful_shutdown_time + CLEAN_UP_SECONDS,
    )


if __name__ == "__main__":
    sys.exit(main())
