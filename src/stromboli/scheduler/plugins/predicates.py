"""predicates: on which nodes a pod may run at all (spec 06 sections 16 and 17).

Whether a node has the resources is the actions' question, not asked here. Filters are given in the order in which their
reasons are reported. Each filter answers for a shape and many rows at once; a shape to which a filter does not apply
costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.api.core import Taint
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.columns import PODS
from stromboli.scheduler.core.plugin import Filter, Hooks, Plugin, Reach, Refusals
from stromboli.scheduler.core.reasons import POD_NUMBER_EXCEEDED, Code, Reason
from stromboli.scheduler.plugins import affinity, arguments, neighbours, node_facts, spreading
from stromboli.scheduler.plugins.claim_filters import ClaimFilters
from stromboli.scheduler.plugins.selecting import required_selector
from stromboli.scheduler.plugins.tainting import tolerates
from stromboli.scheduler.plugins.volumes import scoring

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.tables import Bools, Rows
    from stromboli.scheduler.core.view import View

UNSCHEDULABLE = Reason("node(s) were unschedulable", Code.UNRESOLVABLE)
AFFINITY = Reason("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)
TAINTED = Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)
PORTS = Reason("node(s) didn't have free ports for the requested pod ports", Code.UNSCHEDULABLE)
POD_NUMBER = Reason(POD_NUMBER_EXCEEDED, Code.UNSCHEDULABLE)

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
SWITCHES = (
    "NodeAffinity",
    "NodePorts",
    "TaintToleration",
    "PodAffinity",
    "NodeVolumeLimits",
    "VolumeZone",
    "PodTopologySpread",
    "VolumeBinding",
    "DynamicResourceAllocation",
    "Cache",
)
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - a wildcard in a comparison, nothing is bound


class Predicates(Plugin):
    """Composes the filters that the arguments leave on."""

    name: ClassVar[str] = "predicates"
    arguments_model = arguments.model(
        "PredicatesArguments",
        **{f"predicate__{switch}Enable": arguments.Boolean for switch in SWITCHES},
        volumebinding__bindTimeoutSeconds=arguments.Integer,
        volumebinding__weight=arguments.Integer,
        volumebinding__shape=list[scoring.Point],
        dynamicresources__filterTimeoutSeconds=arguments.Integer,
    )

    def open(self, view: View) -> Hooks:
        self._view = view
        facts = node_facts.of(view)
        self._labels, self._taints, self._cordoned = facts.labels, facts.taints, facts.cordoned
        self._neighbours, first = neighbours.of(view)
        filters = [
            Filter("pod number", [POD_NUMBER], self._pod_number, reach=Reach.STATE),
            Filter("node unschedulable", [UNSCHEDULABLE], self._unschedulable, reach=Reach.NODE),
        ]
        if self._on("NodeAffinity"):
            filters.append(Filter("node affinity", [AFFINITY], self._affinity, reach=Reach.NODE))
        if self._on("TaintToleration"):
            filters.append(Filter("taint toleration", [TAINTED], self._tainted, reach=Reach.NODE))
        if self._on("NodePorts"):
            filters.append(Filter("node ports", [PORTS], self._ports))
        self._claims = ClaimFilters(view, self._labels, self.arguments, self._on)
        self._counts_neighbours = first
        keeps_books = first or self._claims.keeps_books
        return Hooks(
            prepare=self._claims.prepare,
            filters=[*filters, *self._claims.local, *self._cluster_filters(), *self._claims.cluster],
            scores=self._claims.scores,
            on_allocate=self._placed if keeps_books else None,
            on_deallocate=self._removed if keeps_books else None,
            bind_extension=self._claims.extension if self._claims.keeps_books else None,
        )

    def _cluster_filters(self) -> list[Filter]:
        """Filters whose answer about one node depends on pods elsewhere."""
        filters = []
        if self._on("PodAffinity"):
            between = affinity.InterPodAffinity(self._view, self._neighbours)
            filters.append(_cluster("pod affinity", affinity.REASONS, between.refuse, between.constrains))
        if self._on("PodTopologySpread"):
            spread = spreading.TopologySpread(self._view, self._labels, self._taints, self._neighbours)
            filters.append(_cluster("topology spread", spreading.REASONS, spread.refuse, spread.constrains))
        return filters

    def _placed(self, task: Task, node: Node) -> None:
        self._claims.placed(task, node)
        if self._counts_neighbours:
            self._neighbours.placed(task, node)

    def _removed(self, task: Task, node: Node) -> None:
        if self._counts_neighbours:
            self._neighbours.removed(task, node)
        self._claims.removed(task, node)

    def _on(self, filter_name: str) -> bool:
        return policy.boolean(self.arguments, f"predicate.{filter_name}Enable", True)

    def _pod_number(self, _task: Task, rows: Rows) -> Refusals:
        nodes = self._view.nodes
        return _refused(nodes.allocatable[rows, PODS] <= nodes.requested[rows, PODS])

    def _unschedulable(self, task: Task, rows: Rows) -> Refusals | None:
        if self._cordoned is None or tolerates(task.shape.pod.spec.tolerations, CORDON):
            return None
        return _refused(self._cordoned[rows])

    def _affinity(self, task: Task, rows: Rows) -> Refusals | None:
        spec = task.shape.pod.spec
        if not spec.node_selector and required_selector(spec) is None:
            return None
        return _refused(~self._labels.admits(spec, rows))

    def _tainted(self, task: Task, rows: Rows) -> Refusals | None:
        if not self._taints.repel:
            return None
        return _refused(self._taints.untolerated(task.shape.pod.spec.tolerations, rows))

    def _ports(self, task: Task, rows: Rows) -> Refusals | None:
        if not task.host_ports:
            return None
        nodes = self._view.node_list
        taken = [(node := nodes[row]) is not None and ports_conflict(task.host_ports, node) for row in rows]
        return _refused(np.array(taken, dtype=bool))


def ports_conflict(wanted: tuple[tuple[str, str, int], ...], node: Node) -> bool:
    """Whether a wanted (IP, protocol, port) meets one in use: the wildcard address meets every address."""
    return any(
        protocol == used_protocol and port == used_port and (ip == used_ip or ANY_ADDRESS in (ip, used_ip))
        for ip, protocol, port in wanted
        for used_ip, used_protocol, used_port in node.ports
    )


def _cluster(
    name: str,
    reasons: Sequence[Reason],
    refuse: Callable[[Task, Rows], Refusals | None],
    concerns: Callable[[Task], bool],
) -> Filter:
    """A filter of pods elsewhere; where it aborts, earlier plain refusals are not reported (quirk, kept)."""
    return Filter(name, reasons, refuse, reach=Reach.CLUSTER, concerns=concerns, alone=True)


def _refused(where: Bools) -> Refusals:
    return where.astype(np.uint8)
