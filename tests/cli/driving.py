"""Runs command lines against the fake API server, as a user would, and keeps what they print."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.api import core
from stromboli.cli.commanding.commands import Command
from stromboli.cli.commanding.running import Terminal, run
from stromboli.cli.vc import trees
from stromboli.kube.json import JsonObject
from stromboli.testing.apiserver import FakeApiServer

BIRTH = "2026-01-01T00:00:00Z"
NOW = core.timestamp("2026-01-04T00:00:00Z")
"""Three days after everything was created."""
GUESSED = (
    "note: no --policy is given and ConfigMap volcano-system/volcano-scheduler-configmap cannot be read: "
    "this is worked out with the built-in policy, which need not be the scheduler's\n"
)
"""What is said first where nobody has told what policy the scheduler has."""

TREES: dict[str, Command] = {
    "vcctl": trees.vcctl(),
    "vsub": trees.VSUB,
    "vjobs": trees.VJOBS,
    "vqueues": trees.VQUEUES,
    "vcancel": trees.VCANCEL,
    "vsuspend": trees.VSUSPEND,
    "vresume": trees.VRESUME,
    "kubectl-create-vcjob": trees.CREATE_VCJOB,
    "kubectl-vc": trees.kubectl_vc(),
}


@dataclass(frozen=True)
class Outcome:
    """What a command line left behind."""

    code: int
    out: str
    err: str


PATIENCE_SECONDS = 15.0


class Until(io.StringIO):
    """A screen whose user presses Ctrl-C as soon as a text appears on it, and does not wait for it for ever."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        self.opened = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def write(self, text: str) -> int:
        written = super().write(text)
        self._loop.call_soon_threadsafe(self.opened.set)
        if self._text in self.getvalue():
            raise KeyboardInterrupt
        assert time.monotonic() < self._deadline, f"{self._text!r} did not appear: {self.getvalue()}"
        return written


async def drive(
    line: str, server: FakeApiServer, *, environment: Mapping[str, str] | None = None, out: io.StringIO | None = None
) -> Outcome:
    """Run ``line`` (its first word names the tool) in a thread."""
    import shlex

    tool, *words = shlex.split(line)
    terminal = Terminal(
        out=out or io.StringIO(),
        err=io.StringIO(),
        environment={"HOME": "/nonexistent", "KUBERNETES_MASTER": server.url, **(environment or {})},
        now=lambda: NOW,
    )
    code = await asyncio.to_thread(run, TREES[tool], words, terminal)
    return Outcome(code, terminal.out.getvalue(), terminal.err.getvalue())  # type: ignore[attr-defined]


def meta(name: str, namespace: str = "default", **more: object) -> JsonObject:
    """Metadata with a fixed birth."""
    return {"name": name, "namespace": namespace, "creationTimestamp": BIRTH, **more}


def job(name: str, namespace: str = "default", *, queue: str = "default", phase: str = "Running") -> JsonObject:
    """A vcjob of three pods."""
    container = {"name": "c", "image": "busybox", "command": ["sleep", "60"], "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "metadata": meta(name, namespace),
        "spec": {
            "minAvailable": 2,
            "schedulerName": "volcano",
            "queue": queue,
            "tasks": [{"name": "worker", "replicas": 3, "template": template}],
        },
        "status": {"state": {"phase": phase}, "minAvailable": 2, "running": 2, "pending": 1},
    }


def queue(name: str, state: str = "Open", parent: str = "root") -> JsonObject:
    """A queue of weight 1."""
    return {
        "metadata": {"name": name, "creationTimestamp": BIRTH},
        "spec": {"weight": 1, "parent": parent},
        "status": {"state": state},
    }


def pod_group(name: str, queue: str, phase: str, namespace: str = "default") -> JsonObject:
    """A PodGroup."""
    return {"metadata": meta(name, namespace), "spec": {"queue": queue}, "status": {"phase": phase}}
