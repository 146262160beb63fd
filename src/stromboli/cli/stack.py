"""The whole system on one machine: embedded cluster, three processes and dashboard, each a process of its own.

Used by ``stromboli demo``, ``stromboli up`` and the end-to-end suite. A :class:`Stack` starts its parts in order,
waits for each to be ready, keeps one log file a part, notices when one dies, and stops them in reverse order, by
their own process ids.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp

from stromboli.localcluster.datadirectory import holder
from stromboli.process.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

READY_SECONDS = 150.0
"""How long one part may take to be ready: a busy machine needs minutes for what otherwise takes seconds."""
REMINDER_SECONDS = 15.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
CLUSTER, WEBHOOKS, CONTROLLERS, SCHEDULER = "localcluster", "webhooks", "controllers", "scheduler"
DASHBOARD = "dashboard"
PROCESSES = (WEBHOOKS, CONTROLLERS, SCHEDULER)
ADMISSIONS = (
    "/jobs/mutate,/jobs/validate,/podgroups/mutate,/podgroups/validate,/queues/mutate,/queues/validate,"
    "/pods/mutate,/pods/validate,/jobflows/validate,/cronjobs/validate,/hypernodes/validate"
)
"""On one machine everything is judged; the admission server by itself has the shorter list of the original."""


class StackError(Exception):
    """A part could not be started or has died; the text names it, the last lines of its log and where the log is."""

    for_user = True


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """What to start, and where its files go."""

    directory: Path
    nodes: int = 10
    node_capacity: str = "cpu=8,memory=32Gi,pods=110"
    port: int = 0
    state_file: Path | None = None
    scheduler_conf: Path | None = None
    plugins_dir: Path | None = None
    cluster_arguments: Sequence[str] = ()
    with_cluster: bool = True
    with_processes: bool = True
    with_dashboard: bool = False
    dashboard_port: int = 0
    kubeconfig: Path | None = None
    """Kubeconfig of an existing cluster, when ``with_cluster`` is false."""
    process_arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Arguments by process in place of those that the stack gives by itself; how health is served stays its own."""


@dataclass
class Part:
    """One running process of the stack."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    health: str | None = field(default=None)
    log_start: int = 0
    """Size of the log, in bytes, when this process began to write to it."""

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self.process.returncode is None

    def tail(self, lines: int = 12) -> str:
        """The last lines of the log that are of this process, not of an earlier run."""
        try:
            text = self.log.read_bytes()[self.log_start :].decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


class Stack:
    """Starts, watches and stops the parts. Use as ``async with Stack(options) as stack``."""

    def __init__(self, options: StackOptions, *, progress: Callable[[str], None] = lambda _line: None) -> None:
        self.options = options
        self.parts: dict[str, Part] = {}
        self.dashboard_url: str | None = None
        """Address of the page, once it has been started; a new start has the same."""
        self._progress = progress

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the cluster in use."""
        return self.options.kubeconfig or self.options.directory / "kubeconfig"

    @property
    def logs(self) -> Path:
        """The folder of the log files."""
        return self.options.directory / "logs"

    async def __aenter__(self) -> Stack:
        if self.options.with_cluster:
            require_free(self.options.directory)
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StackError(
                f"{self.options.directory} cannot be used: {error.strerror}; give another --dir"
            ) from error
        try:
            if self.options.with_cluster:
                await self.start_cluster()
            for name in PROCESSES if self.options.with_processes else ():
                await self.start(name)
            if self.options.with_dashboard:
                await self.start(DASHBOARD)
        except BaseException:
            await self.stop_all()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_all()

    async def start_cluster(self) -> None:
        """Start the embedded cluster and wait until its API answers."""
        options = self.options
        arguments = [
            f"--listen=127.0.0.1:{options.port}",
            f"--data-dir={options.directory}",
            f"--nodes={options.nodes}",
            f"--node-capacity={options.node_capacity}",
            *([f"--state-file={options.state_file}"] if options.state_file else []),
            *options.cluster_arguments,
        ]
        part = await self._spawn(CLUSTER, arguments)
        ready = options.directory / "ready"
        await self._until(part, lambda: announces(ready, part.process.pid), f"its file {ready}")

    async def start(self, name: str) -> None:
        """Start one of the three processes, or the dashboard, and wait until it says it is ready."""
        health = free_port()
        arguments = self.options.process_arguments.get(name) or self._arguments(name)
        part = await self._spawn(name, [*self._common(health), *arguments])
        part.health = f"http{'s' if name == WEBHOOKS else ''}://127.0.0.1:{health}/readyz"
        await self._until(part, lambda: answers(part.health or ""), part.health)

    async def revive(self) -> list[str]:
        """Start again what has ended by itself, as a supervisor does (a leader that loses its lease must end)."""
        ended = [name for name, part in self.parts.items() if not part.alive]
        for name in ended:
            await self.stop(name)
            await (self.start_cluster() if name == CLUSTER else self.start(name))
        return ended

    def kill(self, name: str) -> Part:
        """Kill a part at once (SIGKILL), as a crash would."""
        part = self.parts[name]
        if part.alive:
            part.process.kill()
        return part

    async def stop(self, name: str) -> None:
        """Stop a part and wait for its end."""
        part = self.parts.pop(name, None)
        if part is None:
            return
        if part.alive:
            part.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(part.process.wait(), STOP_SECONDS)
        except TimeoutError:
            part.process.kill()
            await part.process.wait()

    async def stop_all(self) -> None:
        """Stop what runs, last started first."""
        for name in reversed(list(self.parts)):
            await self.stop(name)

    def check(self) -> None:
        """Raises StackError when a part has ended by itself, or the directory has vanished."""
        if not self.options.directory.is_dir():
            raise StackError(f"{self.options.directory} is gone: stopping, and its state is not written back")
        for part in self.parts.values():
            if not part.alive:
                raise StackError(self._obituary(part))

    def _common(self, health: int) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            "--enable-healthz",
            f"--healthz-address=127.0.0.1:{health}",
        ]

    def _arguments(self, name: str) -> list[str]:
        if name == WEBHOOKS:
            port = free_port()
            return [
                "--listen-address=127.0.0.1",
                f"--port={port}",
                f"--webhook-url=https://127.0.0.1:{port}",
                f"--certificate-dir={self.options.directory / 'webhook-certificates'}",
                f"--enabled-admission={ADMISSIONS}",
            ]
        if name == DASHBOARD:
            self.dashboard_url = self.dashboard_url or f"http://127.0.0.1:{self.options.dashboard_port or free_port()}/"
            return [f"--listen-address={urlsplit(self.dashboard_url).netloc}"]
        arguments = ["--leader-elect=false", "--enable-metrics", f"--listen-address=127.0.0.1:{free_port()}"]
        if name == SCHEDULER:
            arguments += ["--schedule-period=200ms"]
            if self.options.scheduler_conf:
                arguments += [f"--scheduler-conf={self.options.scheduler_conf}"]
            if self.options.plugins_dir:
                arguments += [f"--plugins-dir={self.options.plugins_dir}"]
        return arguments

    async def _spawn(self, name: str, arguments: Sequence[str]) -> Part:
        self._progress(f"starting {name}")
        path = self.logs / f"{name}.log"
        with path.open("ab") as log:
            log_start = log.tell()
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                f"stromboli.{name}",
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        part = self.parts[name] = Part(name, process, path, log_start=log_start)
        return part

    async def _until(self, part: Part, condition: Callable[[], object], what: str) -> None:
        """Wait until ``condition`` holds; says now and then that it is ``what`` that is waited for."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        reminder = started + REMINDER_SECONDS
        while True:
            outcome = condition()
            if await outcome if asyncio.iscoroutine(outcome) else outcome:
                return
            if not part.alive:
                raise StackError(self._obituary(part))
            if loop.time() >= started + READY_SECONDS:
                text = f"{part.name} was not ready after {READY_SECONDS:.0f} s (waited for {what})"
                raise StackError(f"{text}\n{self._where(part)}")
            if loop.time() >= reminder:
                reminder = loop.time() + REMINDER_SECONDS
                self._progress(f"still waiting for {part.name} to be ready ({what})")
            await asyncio.sleep(POLL_SECONDS)

    def _obituary(self, part: Part) -> str:
        return f"{part.name} ended with exit code {part.process.returncode}\n{self._where(part)}"

    def _where(self, part: Part) -> str:
        return f"{part.tail()}\nlog: {part.log}".lstrip("\n")


def require_free(directory: Path) -> None:
    """Raises StackError, with nothing touched, when a cluster runs in ``directory``."""
    pid = holder(directory)
    if pid is not None:
        raise StackError(
            f"already up (pid {pid}): export KUBECONFIG={directory / 'kubeconfig'}; "
            "stop it with Ctrl-C, or use another --dir"
        )


def announces(ready: Path, pid: int) -> bool:
    """Whether the file says that the process ``pid`` is ready; one that an earlier run has left does not count."""
    try:
        return bool(json.loads(ready.read_bytes()).get("pid") == pid)
    except (OSError, ValueError):
        return False


async def answers(url: str, seconds: float = 2.0) -> bool:
    """Whether ``url`` answers 200 in that time (certificates are not checked: it is a probe on loopback)."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, ssl=False) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False
