"""The columns of pods; STATUS tells the most interesting thing about the containers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stromboli.localcluster.storage import Object
from stromboli.localcluster.tables.columns import Cell, TableColumn, columns
from stromboli.localcluster.tables.times import age


def _statuses(obj: Object, field: str = "containerStatuses") -> list[dict[str, Any]]:
    return (obj.get("status") or {}).get(field) or []


def _ready(obj: Object, now: datetime) -> Cell:
    ready = sum(bool(one.get("ready")) for one in _statuses(obj))
    sidecars = _sidecars(obj)
    ready += sum(
        bool(one.get("ready")) for one in _statuses(obj, "initContainerStatuses") if one.get("name") in sidecars
    )
    return f"{ready}/{len(obj['spec'].get('containers') or ()) + len(sidecars)}"


def _sidecars(obj: Object) -> set[str]:
    containers = obj["spec"].get("initContainers") or ()
    return {one["name"] for one in containers if one.get("restartPolicy") == "Always"}


def status(obj: Object, now: datetime) -> str:
    """What STATUS shows: a reason rather than the phase where there is one."""
    found = obj.get("status") or {}
    reason = found.get("reason") or found.get("phase") or ""
    if any(one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated"
           for one in found.get("conditions") or ()):  # fmt: skip
        reason = "SchedulingGated"
    initial = _initial_reason(obj)
    reason = initial or _container_reason(obj, reason)
    if obj["metadata"].get("deletionTimestamp"):
        return "Unknown" if found.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _initial_reason(obj: Object) -> str:
    containers = obj["spec"].get("initContainers") or ()
    for index, one in enumerate(_statuses(obj, "initContainerStatuses")):
        state = one.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated and terminated.get("exitCode", 0) == 0:
            continue
        if one.get("name") in _sidecars(obj) and one.get("started"):
            continue
        if terminated:
            return "Init:" + _ended(terminated)
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(containers)}"
    return ""


def _container_reason(obj: Object, reason: str) -> str:
    is_running = False
    for one in reversed(_statuses(obj)):
        state = one.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated:
            reason = _ended(terminated)
        elif one.get("ready") and state.get("running") is not None:
            is_running = True
    if reason == "Completed" and is_running:
        ready = any(one.get("type") == "Ready" and one.get("status") == "True"
                    for one in obj["status"].get("conditions") or ())  # fmt: skip
        return "Running" if ready else "NotReady"
    return reason


def _ended(terminated: dict[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(obj: Object, now: datetime) -> Cell:
    statuses = _statuses(obj)
    count = sum(one.get("restartCount") or 0 for one in statuses)
    ends = [
        terminated["finishedAt"]
        for one in statuses
        if (terminated := (one.get("lastState") or {}).get("terminated")) and terminated.get("finishedAt")
    ]
    return f"{count} ({age(max(ends), now)} ago)" if count and ends else count


def _gates(obj: Object, now: datetime) -> Cell:
    gates = obj["spec"].get("readinessGates") or ()
    if not gates:
        return "<none>"
    true = {one.get("type") for one in (obj.get("status") or {}).get("conditions") or () if one.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


COLUMNS = columns(
    TableColumn("Ready", _ready, description="The aggregate readiness state of this pod for accepting traffic."),
    TableColumn("Status", status, description="The aggregate status of the containers in this pod."),
    TableColumn("Restarts", _restarts, description="How often containers in this pod have been restarted."),
    last=(
        TableColumn("IP", lambda obj, now: (obj.get("status") or {}).get("podIP") or "<none>", wide=True),
        TableColumn("Node", lambda obj, now: obj["spec"].get("nodeName") or "<none>", wide=True),
        TableColumn(
            "Nominated Node", lambda obj, now: (obj.get("status") or {}).get("nominatedNodeName") or "<none>", wide=True
        ),
        TableColumn("Readiness Gates", _gates, wide=True),
    ),
)
