"""``stromboli-localcluster``: run the embedded cluster until it is told to stop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from stromboli.localcluster.options import PROGRAM, parse, settings
from stromboli.process.flags import FlagError
from stromboli.process.running import run
from stromboli.telemetry import logs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process; the exit code is 1 for anything that keeps it from starting or running."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        wanted = settings(options)
    except (FlagError, ValueError) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 1
    logs.setup(options.verbosity, "json" if options.log_format == "json" else "text")

    async def serve() -> None:
        from stromboli.localcluster.server import LocalCluster

        cluster = LocalCluster(wanted)
        ready = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(cluster.run(ready))
            await ready.wait()
            print(f"ready: {cluster.url} KUBECONFIG={cluster.kubeconfig}", flush=True)

    return run(PROGRAM, serve)


if __name__ == "__main__":
    sys.exit(main())
