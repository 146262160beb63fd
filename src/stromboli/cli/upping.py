"""``stromboli up``: the stack stays up; says how to point kubectl at it."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from stromboli.cli.publishing import NAMED, Publisher
from stromboli.cli.stack import Stack, StackOptions

CHECK_SECONDS = 1.0


@dataclass(frozen=True)
class UpOptions:
    """What ``stromboli up`` was asked for."""

    directory: Path
    nodes: int
    node_capacity: str
    port: int
    keep_state: bool
    scheduler_conf: Path | None = None
    plugins_dir: Path | None = None
    dashboard_port: int = 0


async def run_up(options: UpOptions) -> None:
    """Start everything and stay until a signal, which is the orderly end of it.

    Raises:
        CancelledError: the signal came before everything was up.
        StackError: a part could not start or has died.
    """
    console = Console(highlight=False, soft_wrap=True)
    async with Stack(stack_options(options), progress=console.print) as stack:
        publisher = Publisher(stack.kubeconfig, options.scheduler_conf)
        await _publish(publisher, console)
        console.print("\n[green]Up.[/green] Point kubectl at it:\n")
        console.print(banner(stack), markup=False)
        try:
            while True:
                stack.check()
                await asyncio.sleep(CHECK_SECONDS)
                await _publish(publisher, console)
        except asyncio.CancelledError:
            kept = stack.options.state_file
            console.print(f"stopping; state kept in {kept}" if kept else "stopping", markup=False)


async def _publish(publisher: Publisher, console: Console) -> None:
    problem = await publisher.publish()
    if problem:
        console.print(problem, markup=False)


def stack_options(options: UpOptions) -> StackOptions:
    """The stack that was asked for."""
    return StackOptions(
        directory=options.directory,
        nodes=options.nodes,
        node_capacity=options.node_capacity,
        port=options.port,
        state_file=options.directory / "state.json" if options.keep_state else None,
        scheduler_conf=options.scheduler_conf,
        plugins_dir=options.plugins_dir,
        with_dashboard=True,
        dashboard_port=options.dashboard_port,
    )


def banner(stack: Stack) -> str:
    """What to type next, in another terminal."""
    policy = stack.options.scheduler_conf
    lines = [
        f"  export KUBECONFIG={stack.kubeconfig}",
        f"  export PATH={Path(sys.executable).parent}:$PATH  # vcctl, kubectl vc",
        "  kubectl get nodes",
        "  kubectl apply -f examples/demo/10-gang.yaml",
        "  kubectl get vcjob,podgroup,pod",
        "  vcctl job explain gang",
        "",
        *([f"Policy: {policy}; vcctl finds it, as it is now, in ConfigMap {NAMED}"] if policy else []),
        *([f"Dashboard: {stack.dashboard_url}"] if stack.dashboard_url else []),
        f"Logs: {stack.logs}    Stop: Ctrl-C",
    ]
    return "\n".join(lines)
