"""The ``stromboli`` command: the laptop doors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated

import typer

from stromboli import __version__
from stromboli.cli.commanding.errors import INTERRUPTED_EXIT

app = typer.Typer(
    help="Stromboli, a batch system for Kubernetes: try it on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Nodes = Annotated[int, typer.Option("--nodes", min=1, max=5000, help="number of simulated nodes")]
Capacity = Annotated[str, typer.Option("--node-capacity", help="size of each node")]
SchedulerConf = Annotated[
    Path | None,
    typer.Option("--scheduler-conf", exists=True, dir_okay=False, help="policy file of the scheduler"),
]
PluginsDir = Annotated[
    Path | None,
    typer.Option("--plugins-dir", exists=True, file_okay=False, help="folder of scheduler plugins, NAME.py"),
]
Directory = Annotated[Path, typer.Option("--dir", help="folder for kubeconfig, certificates and logs")]

DEFAULT_CAPACITY = "cpu=8,memory=32Gi,pods=110"


@app.command()
def demo(
    nodes: Nodes = 10,
    node_capacity: Capacity = DEFAULT_CAPACITY,
    directory: Directory = Path(".stromboli/demo"),
    manifests: Annotated[Path | None, typer.Option("--manifests", help="folder of manifests to submit")] = None,
) -> None:
    """Run gangs that complete, compete and wait on an embedded cluster, show it live, and stop."""
    from stromboli.cli.demo import DemoOptions, run_demo

    options = DemoOptions(directory.absolute(), nodes, node_capacity, manifests or _demo_manifests())
    sys.exit(_run(lambda: run_demo(options)))


@app.command()
def up(
    nodes: Nodes = 10,
    node_capacity: Capacity = DEFAULT_CAPACITY,
    directory: Directory = Path(".stromboli/up"),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="port of the API server; 0 takes a free one")
    ] = 0,
    keep_state: Annotated[bool, typer.Option("--keep-state/--fresh", help="keep objects between runs")] = True,
    scheduler_conf: SchedulerConf = None,
    plugins_dir: PluginsDir = None,
    dashboard_port: Annotated[
        int, typer.Option("--dashboard-port", min=0, max=65535, help="port of the dashboard; 0 takes a free one")
    ] = 0,
) -> None:
    """Start the embedded cluster, the three processes and the dashboard, and keep them running until Ctrl-C."""
    from stromboli.cli.upping import UpOptions, run_up

    options = UpOptions(
        directory.absolute(),
        nodes,
        node_capacity,
        port,
        keep_state,
        _absolute(scheduler_conf),
        _absolute(plugins_dir),
        dashboard_port,
    )
    sys.exit(_run(lambda: run_up(options)))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"stromboli {__version__}")


def _absolute(path: Path | None) -> Path | None:
    return path.absolute() if path else None


def _demo_manifests() -> Path:
    """The manifests of the source tree if run from it, else those shipped beside the package."""
    here = Path.cwd() / "examples" / "demo"
    return here if here.is_dir() else Path(__file__).resolve().parents[3] / "examples" / "demo"


def _run(main: Callable[[], Coroutine[object, object, None]]) -> int:
    """Run to the end; a signal that comes before is told from it by the exit code, as by all commands."""
    from stromboli.process.running import run

    finished = False

    async def whole() -> None:
        nonlocal finished
        await main()
        finished = True

    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    code = run("stromboli", whole)
    return code if code or finished else INTERRUPTED_EXIT
