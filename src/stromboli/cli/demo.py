"""``stromboli demo``: the system from nothing to finished jobs, in front of the user's eyes.

Starts the stack, submits the manifests of a folder, watches until every job that can end has ended and every job that
cannot has said why, prints a table and stops. Any part that dies or any job that ends otherwise than expected makes it
fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stromboli.api import core
from stromboli.api.complaints import complaint
from stromboli.api.kinds import JOBS, NODES, POD_GROUPS, PODS, Kind
from stromboli.cli import manifests
from stromboli.cli.counting import counted, verb
from stromboli.cli.stack import Stack, StackError, StackOptions, require_free
from stromboli.kube.client import Client
from stromboli.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

DEADLINE_SECONDS = 75.0
POLL_SECONDS = 0.25
PIPED_COLUMNS = 1000
"""Where no terminal sets a width, lines are not cut or folded."""
NAMESPACE = "default"
DONE = ("Completed", "Failed", "Aborted", "Terminated")
WAITS, REFUSED = "Pending", "Refused"
EXPECT = "demo.stromboli.dev/expect"
"""Annotation on a demo manifest: the phase its job should end in (default Completed), ``Pending`` when it should wait
and say why, ``Refused`` when admission should refuse it."""


@dataclass(frozen=True)
class DemoOptions:
    """What ``stromboli demo`` was asked for."""

    directory: Path
    nodes: int
    node_capacity: str
    manifests: Path


@dataclass
class JobView:
    """What the table shows of one job."""

    name: str
    want: str = "Completed"
    phase: str = ""
    pod_group: str = ""
    running: int = 0
    succeeded: int = 0
    total: int = 0
    why: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        """Whether the job has ended, or should wait and has said why."""
        return self.phase in DONE or (self.want == WAITS and self.phase == WAITS and bool(self.why))


@dataclass
class Refusal:
    """A manifest that the API refused, as it should have been or not."""

    where: str
    message: str


class DemoFailed(Exception):
    """The demonstration did not end as it should; the text says what and where the logs are."""

    for_user = True


async def run_demo(options: DemoOptions) -> None:
    """Run the demonstration to its end.

    Raises:
        DemoFailed, StackError, ManifestError: with one text for the user.
    """
    console = new_console()
    documents = list(manifests.read(options.manifests))
    require_free(options.directory)
    shutil.rmtree(options.directory, ignore_errors=True)
    started = time.monotonic()

    def say(line: str | Text) -> None:
        console.print(Text.assemble((f"{time.monotonic() - started:5.1f}s  ", "dim"), line))

    nodes = f"{counted(options.nodes, 'node')} of {options.node_capacity}"
    say(f"an embedded cluster with {nodes}, three processes and a dashboard")
    stack_options = StackOptions(
        directory=options.directory, nodes=options.nodes, node_capacity=options.node_capacity, with_dashboard=True
    )
    async with Stack(stack_options, progress=say) as stack:
        say(f"Dashboard: {stack.dashboard_url}")
        async with await Client.connect(kubeconfig=str(stack.kubeconfig)) as client:
            try:
                await _demonstrate(client, stack, documents, console, say)
            except ApiError as error:
                raise DemoFailed(f"the API server refused a request: {error}\nlogs: {stack.logs}") from error
        say("stopping")
    console.print(
        f"\n[green]Everything went as it should[/green] in {time.monotonic() - started:.0f} s. "
        f"Logs are in {options.directory / 'logs'}.\n"
        "Next: [bold]make up[/bold] keeps such a cluster running for your own manifests and kubectl."
    )


def new_console() -> Console:
    """A console as wide as the terminal; as wide as it takes where there is none, unless COLUMNS says otherwise."""
    console = Console()
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = PIPED_COLUMNS
    return console


async def _demonstrate(
    client: Client,
    stack: Stack,
    documents: list[tuple[str, dict[str, Any]]],
    console: Console,
    say: Callable[[str | Text], None],
) -> None:
    nodes = await _until(stack, lambda: client.list(NODES), lambda found: len(found) >= stack.options.nodes)
    say(f"{counted(len(nodes), 'node')} {verb(len(nodes), 'are')} ready")
    refusals = await _submit(client, documents, say)
    jobs = [document for _, document in documents if document["kind"] == JOBS.kind]
    views = await _watch(client, stack, [JobView(job["metadata"]["name"], _wanted(job)) for job in jobs], console)
    _judge(views, refusals, documents, stack)


async def _submit(
    client: Client, documents: list[tuple[str, dict[str, Any]]], say: Callable[[str | Text], None]
) -> list[Refusal]:
    refusals = []
    for where, document in documents:
        kind = manifests.kind_of(document, where)
        label = f"{kind.kind.lower()}/{document['metadata']['name']}"
        try:
            await _create(client, kind, document)
            say(Text.assemble(("created", "green"), f"  {label}"))
        except ApiError as error:
            refusals.append(Refusal(where, error.message))
            say(Text.assemble(("refused", "yellow"), f"  {label}: {error.message}"))
    return refusals


async def _create(client: Client, kind: Kind, document: dict[str, Any]) -> None:
    namespace = document["metadata"].get("namespace", NAMESPACE) if kind.namespaced else None
    await client.create(kind, document, namespace)


def _wanted(document: dict[str, Any]) -> str:
    return str(document["metadata"].get("annotations", {}).get(EXPECT, "Completed"))


async def _watch(client: Client, stack: Stack, jobs: list[JobView], console: Console) -> list[JobView]:
    views = {view.name: view for view in jobs}
    started = time.monotonic()
    with Live(_table(views), console=console, refresh_per_second=8, transient=not console.is_terminal) as live:
        while True:
            stack.check()
            await _refresh(client, views, time.monotonic() - started)
            live.update(_table(views))
            if all(view.settled for view in views.values()):
                break
            if time.monotonic() - started > DEADLINE_SECONDS:
                break
            await asyncio.sleep(POLL_SECONDS)
    if not console.is_terminal:
        console.print(_table(views))
    return list(views.values())


async def _refresh(client: Client, views: dict[str, JobView], now: float) -> None:
    jobs, groups, pods = await asyncio.gather(
        client.list(JOBS, NAMESPACE), client.list(POD_GROUPS, NAMESPACE), client.list(PODS, NAMESPACE)
    )
    for job in jobs:
        view = views.get(job["metadata"]["name"])
        if view is None:
            continue
        status = job.get("status", {})
        view.phase = status.get("state", {}).get("phase", "Pending")
        view.seconds.setdefault(view.phase, now)
        view.total = sum(task.get("replicas", 0) for task in job["spec"].get("tasks", []))
        mine = [pod for pod in pods if _owned(pod, job)]
        view.running = sum(pod["status"].get("phase") == "Running" for pod in mine)
        view.succeeded = max(status.get("succeeded", 0), sum(p["status"].get("phase") == "Succeeded" for p in mine))
        group = next((item for item in groups if _owned(item, job)), None)
        view.pod_group, view.why = _waiting(group)


def _owned(item: dict[str, Any], job: dict[str, Any]) -> bool:
    owners = item["metadata"].get("ownerReferences", [])
    return any(owner.get("uid") == job["metadata"]["uid"] for owner in owners)


def _waiting(group: dict[str, Any] | None) -> tuple[str, str]:
    """Phase of a PodGroup, and why it waits: it was not admitted, or its pods found no room."""
    if group is None:
        return "", ""
    status = core.from_builtins(core.PodGroup, group).status
    told = complaint(status.conditions)
    return status.phase, told.message if told is not None else ""


def _table(views: dict[str, JobView]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("JOB", "PHASE", "RUNNING", "SUCCEEDED", "PODS", "STARTED", "ENDED"):
        table.add_column(column, no_wrap=True)
    table.add_column("WHY IT WAITS", overflow="fold")
    colours = {"Running": "cyan", "Completed": "green", "Pending": "yellow"}
    for view in views.values():
        ended = next((view.seconds[phase] for phase in DONE if phase in view.seconds), None)
        table.add_row(
            view.name,
            Text(view.phase or "-", style=colours.get(view.phase, "red" if view.phase in DONE else "")),
            str(view.running),
            str(view.succeeded),
            str(view.total),
            _moment(view.seconds.get("Running")),
            _moment(ended),
            view.why if view.phase == WAITS else "",
        )
    return table


def _moment(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}s"


def _judge(
    views: list[JobView], refusals: list[Refusal], documents: list[tuple[str, dict[str, Any]]], stack: Stack
) -> None:
    """Compare the outcome with what the manifests' annotations expect (default: the job completes)."""
    complaints = []
    refused = {refusal.where for refusal in refusals}
    phases = {view.name: view for view in views}
    for where, document in documents:
        want = _wanted(document)
        name = document["metadata"]["name"]
        if (where in refused) != (want == REFUSED):
            complaints.append(f"{name}: {'refused' if where in refused else 'accepted'}, expected {want}")
        elif document["kind"] == JOBS.kind and want != REFUSED and phases[name].phase != want:
            complaints.append(f"{name}: {phases[name].phase or 'no status'}, expected {want} {phases[name].why}")
    if complaints:
        raise DemoFailed("\n".join([*complaints, f"logs: {stack.logs}"]))


async def _until(
    stack: Stack, ask: Callable[[], Awaitable[list[dict[str, Any]]]], enough: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                stack.check()
                found = await ask()
                if enough(found):
                    return found
                await asyncio.sleep(POLL_SECONDS)
    raise StackError(f"nodes did not become ready within {DEADLINE_SECONDS:.0f} s; logs: {stack.logs}")
