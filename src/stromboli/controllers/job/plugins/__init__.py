"""Job plugins: what ``spec.plugins`` of a job adds to its pods, and which objects it keeps beside them.

A plugin is a class with the shape of :class:`JobPlugin`, made from its arguments. It is pure: it changes a pod that is
about to be created, and describes the objects it needs; the controller creates, refreshes and deletes them. Plugins of
others are found through the entry-point group ``stromboli.job.plugins`` (name = class); they run after the ones shipped
here, unless they say otherwise with ``order``. Spec 02 sections 21 and 22.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar, Protocol, cast

from stromboli.api import names
from stromboli.api.batch import Job, TaskSpec
from stromboli.api.kinds import Kind
from stromboli.kube.json import JsonObject

ENTRY_POINTS = names.JOB_PLUGIN_ENTRY_POINTS
_SHIPPED = {
    name: f"stromboli.controllers.job.plugins.{name}:{attribute}"
    for name, attribute in {
        "env": "Env",
        "hcclrank": "HcclRank",
        "mpi": "Mpi",
        "pytorch": "PyTorch",
        "ray": "Ray",
        "ssh": "Ssh",
        "svc": "Svc",
        "tensorflow": "TensorFlow",
    }.items()
}


class PluginError(Exception):
    """A plugin cannot do what the job asks of it; the text is one line that names the plugin."""


def _never_stale(_existing: JsonObject) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """An object that a plugin keeps beside a job, owned by the job.

    ``build`` makes it, without namespace and owner, which the controller adds; it is called only when the object has
    to be written. ``stale`` tells whether an existing one must be replaced. ``always`` asks for a look in every sync,
    not only while the job starts.
    """

    kind: Kind
    name: str
    build: Callable[[], JsonObject]
    stale: Callable[[JsonObject], bool] = _never_stale
    always: bool = False


@dataclass(frozen=True, slots=True)
class Replica:
    """The replica a pod is built for."""

    job: Job
    task: TaskSpec
    index: int


class JobPlugin(Protocol):
    """The contract of a job plugin. Instances are made as ``PluginClass(arguments)`` for every pass over a job."""

    name: ClassVar[str]
    order: ClassVar[int]
    """Plugins decorate pods in ascending order: frameworks 10, env 20, ssh 30, svc 40, hcclrank 90."""
    marked: ClassVar[bool]
    """Whether ``status.controlledResources`` carries ``plugin-<name>`` while the plugin's objects exist."""

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Change a pod that is about to be created. Raises PluginError to refuse the whole job."""
        ...

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """The objects that the job needs beside its pods."""
        ...


def configured(job: Job) -> tuple[JobPlugin, ...]:
    """The job's plugins with their arguments, in the order in which they run.

    Raises:
        PluginError: the job names a plugin that does not exist, or one that cannot be made.
    """
    made = [_make(name, arguments) for name, arguments in job.spec.plugins.items()]
    return tuple(sorted(made, key=lambda plugin: (plugin.order, plugin.name)))


def _make(name: str, arguments: list[str]) -> JobPlugin:
    point = _available().get(name)
    if point is None:
        known = ", ".join(sorted(_available()))
        raise PluginError(f"failed to get plugin {name}: spec.plugins may name {known}")
    try:
        return cast("JobPlugin", point.load()(arguments))
    except Exception as error:  # a plugin may be anybody's code: its faults are those of the jobs that name it
        raise PluginError(f"failed to get plugin {name}: {type(error).__name__}: {error}") from error


@cache
def _available() -> Mapping[str, EntryPoint]:
    """Every plugin by name, not loaded yet; what is shipped wins over an entry point of the same name."""
    shipped = {name: EntryPoint(name, path, ENTRY_POINTS) for name, path in _SHIPPED.items()}
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)} | shipped


def marker(plugin: str) -> str:
    """Key in ``status.controlledResources`` that says the plugin's objects exist."""
    return f"plugin-{plugin}"
