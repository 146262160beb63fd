"""What the agents of MindCluster report about nodes, in config maps (spec 06 section 33.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stromboli.api import core
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.view import View

PARAMETERS = "init-params"
"""Entry of the policy's ``configurations`` with the start-up settings."""
CLUSTER_SOURCE, SELF_MAINTAINED = "useClusterInfoManager", "self-maintain-available-card"
VOLCANO_LABEL, AGENT_LABEL = "mx-consumer-volcano", "mx-consumer-cim"
DEVICES, NODES = "mindx-dl-deviceinfo-", "mindx-dl-nodeinfo-"
CLUSTER_DEVICES, CLUSTER_NODES = "cluster-info-device-", "cluster-info-node-cm"
HEALTHY = "Healthy"
_MEMORY = "deviceshare-mindcluster"


@dataclass(frozen=True, slots=True)
class Parameters:
    """Where reports come from, and who keeps the list of cards that are free."""

    cluster_source: bool = True
    self_maintained: bool = True

    @classmethod
    def read(cls, view: View) -> Parameters:
        """The settings of this cycle."""
        given = view.configurations.get(PARAMETERS, {})
        return cls(policy.boolean(given, CLUSTER_SOURCE, True), policy.boolean(given, SELF_MAINTAINED, True))


@dataclass(slots=True)
class Reports:
    """By node: lists of devices by kind, and the state of the node."""

    version: object = None
    devices: dict[str, Mapping[str, str]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    ignored: list[tuple[core.ConfigMap, str]] = field(default_factory=list)
    """Config maps that cannot be read, and why."""

    def state(self, node: str) -> str:
        """The state that the node's agent reports; healthy when there is none."""
        return self.states.get(node) or HEALTHY


def of(view: View, parameters: Parameters) -> Reports:
    """The reports as they are now, read again when a config map has changed."""
    version = (view.objects.version(core.ConfigMap), parameters)
    known = view.memory.get(_MEMORY)
    if not isinstance(known, Reports) or known.version != version:
        known = view.memory[_MEMORY] = _read(view, parameters)
        known.version = version
    for found, error in known.ignored:
        view.warn(f"ConfigMap {found.namespace}/{found.name}: it is ignored: {error}", found)
    return known


def _read(view: View, parameters: Parameters) -> Reports:
    reports = Reports()
    label = VOLCANO_LABEL if parameters.cluster_source else AGENT_LABEL
    for found in view.objects.all(core.ConfigMap).values():
        if found.metadata.labels.get(label) == "true":
            try:
                (_take_cluster if parameters.cluster_source else _take_agent)(reports, found)
            except (ValueError, TypeError, AttributeError) as error:
                reports.ignored.append((found, str(error)))
    return reports


def _take_cluster(reports: Reports, found: core.ConfigMap) -> None:
    """One map for many nodes."""
    for name, report in _entries(found.data.get(found.name, "{}")):
        if found.name.startswith(CLUSTER_DEVICES) and name.startswith(DEVICES):
            reports.devices[name.removeprefix(DEVICES)] = _device_list(report)
        elif found.name == CLUSTER_NODES and name.startswith(NODES):
            reports.states[name.removeprefix(NODES)] = str(report.get("NodeStatus", ""))


def _take_agent(reports: Reports, found: core.ConfigMap) -> None:
    """One map for one node."""
    if found.name.startswith(DEVICES):
        report = dict(_entries(found.data.get("DeviceInfoCfg", "{}"))).get("DeviceInfo", {})
        reports.devices[found.name.removeprefix(DEVICES)] = _device_list(report)
    elif found.name.startswith(NODES):
        report = dict(_entries(found.data.get("NodeInfo", "{}"))).get("NodeInfo", {})
        reports.states[found.name.removeprefix(NODES)] = str(report.get("NodeStatus", ""))


def _entries(text: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("it holds no JSON object")
    for name, entry in document.items():
        if isinstance(entry, dict):
            yield name, entry


def _device_list(report: Mapping[str, object]) -> Mapping[str, str]:
    listed = report.get("DeviceList") or {}
    return {str(kind): str(names) for kind, names in listed.items()} if isinstance(listed, dict) else {}
