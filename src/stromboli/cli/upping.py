"""``stromboli up``: the stack stays up; says how to point kubectl at it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from stromboli.cli.stack import Stack, StackOptions

if TYPE_CHECKING:
    from pathlib import Path

CHECK_SECONDS = 1.0


@dataclass(frozen=True)
class UpOptions:
    """What ``stromboli up`` was asked for."""

    directory: Path
    nodes: int
    node_capacity: str
    port: int
    keep_state: bool


async def run_up(options: UpOptions) -> None:
    """Start everything and stay until a signal.

    Raises:
        StackError: a part could not start or has died.
    """
    console = Console(highlight=False)
    stack_options = StackOptions(
        directory=options.directory,
        nodes=options.nodes,
        node_capacity=options.node_capacity,
        port=options.port,
        state_file=options.directory / "state.json" if options.keep_state else None,
    )
    async with Stack(stack_options, progress=console.print) as stack:
        console.print(
            f"\n[green]Up.[/green] Point kubectl at it:\n\n"
            f"  export KUBECONFIG={stack.kubeconfig}\n"
            f"  kubectl get nodes\n"
            f"  kubectl apply -f examples/demo/10-gang.yaml\n"
            f"  kubectl get vcjob,podgroup,pod\n\n"
            f"Logs: {stack.logs}    Stop: Ctrl-C",
            soft_wrap=True,
        )
        while True:
            stack.check()
            await asyncio.sleep(CHECK_SECONDS)
