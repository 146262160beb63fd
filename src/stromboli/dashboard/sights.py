"""One look at the cluster: the objects that the view is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stromboli.api import core
from stromboli.dashboard.objects import Job, PodSight


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Everything that was there at one moment, in no particular order."""

    queues: Sequence[core.Queue] = ()
    groups: Sequence[core.PodGroup] = ()
    jobs: Sequence[Job] = ()
    pods: Sequence[PodSight] = ()
    nodes: Sequence[core.Node] = ()
    hyper_nodes: Sequence[core.HyperNode] = ()
    events: Sequence[core.Event] = ()
