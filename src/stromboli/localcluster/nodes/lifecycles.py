"""The life of a pod on a simulated node, as a pure step function.

``advance(pod, now, settings)`` reads the pod as it is and answers with the status it should have now and with the time
of the next change. Nothing is remembered between steps, so a cluster restarted from its state file goes on where it
was.
Annotations (all optional; append ``.CONTAINER`` to the name to mean one container only):

* ``simulation.stromboli.dev/run-seconds``: how long containers run
* ``simulation.stromboli.dev/exit-code``: how they end
* ``simulation.stromboli.dev/start-delay``: seconds between binding and start
* ``simulation.stromboli.dev/fail-image-pull``: ``true`` keeps containers waiting with ErrImagePull
* ``simulation.stromboli.dev/stop-seconds``: how long a deleted pod takes to stop, within its grace period
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from stromboli.localcluster.nodes.commands import Outcome, outcome
from stromboli.localcluster.nodes.timestamps import seconds, stamp

PREFIX = "simulation.stromboli.dev/"
FINISHED = ("Succeeded", "Failed")

JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a simulated kubelet does with pods that say nothing themselves. Times in seconds."""

    run_seconds: float = 5.0
    start_delay: float = 0.0
    stop_seconds: float = 0.0
    restart_back_off: float = 10.0
    restart_back_off_limit: float = 300.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Addresses that a started pod gets."""

    pod_ip: str
    host_ip: str


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of looking at a pod: its new status (None: as it is) and when to look again (None: no need to)."""

    status: JsonObject | None
    next_at: float | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one container runs; ``seconds`` is infinite for one that runs until it is stopped."""

    seconds: float
    exit_code: int


def advance(pod: JsonObject, now: float, settings: Settings, placement: Placement) -> Step:
    """The pod's status at ``now`` (seconds since the epoch) and the time of its next change."""
    status = pod.get("status") or {}
    if status.get("phase") in FINISHED:
        return Step(None, None)
    started = seconds(status["startTime"]) if status.get("startTime") else now
    begin = started + _number(pod, "start-delay", None, settings.start_delay)
    deadline = pod["spec"].get("activeDeadlineSeconds")
    if deadline is not None and now >= started + deadline:
        return _changed(pod, _deadline_exceeded(pod, now, started, placement), None)
    if now < begin:
        fresh = _status(pod, now, started, placement, [], _waiting(pod, "ContainerCreating", ""), "Pending")
        return _changed(pod, fresh, _earliest(begin, deadline and started + deadline))
    if _flag(pod, "fail-image-pull"):
        return _changed(pod, _image_pull_failed(pod, now, started, placement), deadline and started + deadline)
    fresh, next_at = _running(pod, now, started, begin, settings, placement)
    return _changed(pod, fresh, _earliest(next_at, deadline and started + deadline))


def stop_at(pod: JsonObject, settings: Settings) -> float | None:
    """When a pod that is being deleted has stopped; None when it is not being deleted."""
    metadata = pod["metadata"]
    if not metadata.get("deletionTimestamp"):
        return None
    grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
    asked = seconds(metadata["deletionTimestamp"]) - grace
    if (pod.get("status") or {}).get("phase") in FINISHED:
        return asked
    return asked + min(grace, _number(pod, "stop-seconds", None, settings.stop_seconds))


def output(pod: JsonObject, container: str) -> list[str]:
    """Lines that a container of the pod has printed, as far as its command tells."""
    for spec in [*pod["spec"].get("initContainers", ()), *pod["spec"].get("containers", ())]:
        if spec["name"] == container:
            known = _command(spec)
            return list(known.output) if known else []
    return []


def _running(
    pod: JsonObject, now: float, started: float, begin: float, settings: Settings, placement: Placement
) -> tuple[JsonObject, float | None]:
    """Status of a pod whose start delay is over: init containers in turn, then all containers at once."""
    policy = pod["spec"].get("restartPolicy", "Always")
    old_init = _by_name(pod, "initContainerStatuses")
    init_statuses: list[JsonObject] = []
    init_specs = pod["spec"].get("initContainers", ())
    for index, spec in enumerate(init_specs):
        sidecar = spec.get("restartPolicy") == "Always"
        plan = _init_plan(pod, spec, sidecar)
        turn, next_at = _container(spec, old_init.get(spec["name"]), plan, _init_policy(policy), begin, now, settings)
        init_statuses.append(turn)
        done = turn["state"].get("terminated")
        if sidecar:
            continue
        if done is None or done["exitCode"] != 0:
            init_statuses += [_blank(other, "PodInitializing", "") for other in init_specs[index + 1 :]]
            phase = "Failed" if done is not None else "Pending"
            waiting = _waiting(pod, "PodInitializing", "")
            return _status(pod, now, started, placement, init_statuses, waiting, phase), next_at
        begin = max(begin, seconds(done["finishedAt"]))
        init_statuses[-1]["ready"] = True
    old = _by_name(pod, "containerStatuses")
    turns = [
        _container(spec, old.get(spec["name"]), _plan(pod, spec, policy, settings), policy, begin, now, settings)
        for spec in pod["spec"]["containers"]
    ]
    statuses = [turn for turn, _ in turns]
    phase = _phase(statuses)
    next_at = None if phase in FINISHED else _earliest(*(when for _, when in turns))
    return _status(pod, now, started, placement, init_statuses, statuses, phase), next_at


def _container(
    spec: JsonObject,
    old: JsonObject | None,
    plan: _Plan,
    policy: str,
    begin: float,
    now: float,
    settings: Settings,
) -> tuple[JsonObject, float | None]:
    """One container's status now, and when it changes next."""
    restarts = int(old.get("restartCount", 0)) if old else 0
    state = (old or {}).get("state") or {}
    last = (old or {}).get("lastState") or {}
    back_off = min(settings.restart_back_off * 2**restarts, settings.restart_back_off_limit)
    if "terminated" in state:
        if not _restarts(policy, state["terminated"]["exitCode"]):
            return _blank(spec, "", "", state=state, restarts=restarts, last=last), None
        state = {"waiting": {"reason": "CrashLoopBackOff"}}
    if state.get("waiting", {}).get("reason") == "CrashLoopBackOff" and "terminated" in last:
        again = seconds(last["terminated"]["finishedAt"]) + back_off
        if now < again:
            message = f"back-off {int(back_off)}s restarting failed container={spec['name']}"
            return _blank(spec, "CrashLoopBackOff", message, restarts=restarts, last=last), again
        restarts, begin = restarts + 1, again
    since = seconds(state["running"]["startedAt"]) if "running" in state else begin
    end = since + plan.seconds
    if now < end:
        fresh = _blank(spec, "", "", state={"running": {"startedAt": stamp(since)}}, restarts=restarts, last=last)
        return {**fresh, "ready": True, "started": True}, None if math.isinf(end) else end
    ended = {"terminated": _terminated(spec, plan.exit_code, since, end)}
    if not _restarts(policy, plan.exit_code):
        return _blank(spec, "", "", state=ended, restarts=restarts, last=last), None
    back_off = min(settings.restart_back_off * 2**restarts, settings.restart_back_off_limit)
    message = f"back-off {int(back_off)}s restarting failed container={spec['name']}"
    return _blank(spec, "CrashLoopBackOff", message, restarts=restarts, last=ended), end + back_off


def _restarts(policy: str, exit_code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _init_policy(policy: str) -> str:
    """Init containers end when they succeed, whatever the pod's policy, and are tried again unless it is Never."""
    return "Never" if policy == "Never" else "OnFailure"


def _phase(statuses: Sequence[JsonObject]) -> str:
    codes = [status["state"]["terminated"]["exitCode"] for status in statuses if "terminated" in status["state"]]
    if len(codes) < len(statuses):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def _plan(pod: JsonObject, spec: JsonObject, policy: str, settings: Settings) -> _Plan:
    name = spec["name"]
    forever = policy == "Always"
    known = None if forever else _command(spec)
    default = math.inf if forever else (known.seconds if known else settings.run_seconds)
    code = _number(pod, "exit-code", name, known.exit_code if known else 0)
    return _Plan(_number(pod, "run-seconds", name, default if default >= 0 else math.inf), int(code))


def _init_plan(pod: JsonObject, spec: JsonObject, sidecar: bool) -> _Plan:
    """Init containers listen only to annotations of their own, so that ``run-seconds`` alone means the containers."""
    if sidecar:
        return _Plan(math.inf, 0)
    known = _command(spec)
    annotations = pod["metadata"].get("annotations") or {}
    run, code = (f"{PREFIX}{key}.{spec['name']}" for key in ("run-seconds", "exit-code"))
    return _Plan(
        _parsed(annotations.get(run), known.seconds if known else 0.0),
        int(_parsed(annotations.get(code), known.exit_code if known else 0)),
    )


def _command(spec: JsonObject) -> Outcome | None:
    return outcome([*spec.get("command", ()), *spec.get("args", ())])


def _number(pod: JsonObject, key: str, container: str | None, default: float) -> float:
    """An annotation's number: the container's own before the pod's before the default; nonsense counts as absent."""
    annotations = pod["metadata"].get("annotations") or {}
    value = _parsed(annotations.get(PREFIX + key), default)
    return _parsed(annotations.get(f"{PREFIX}{key}.{container}"), value) if container else value


def _parsed(text: object, default: float) -> float:
    try:
        value = float(str(text))
    except ValueError:
        return default
    return default if math.isnan(value) or value < 0 else value


def _flag(pod: JsonObject, key: str) -> bool:
    return str((pod["metadata"].get("annotations") or {}).get(PREFIX + key, "")).lower() in ("true", "1", "yes")


def _by_name(pod: JsonObject, field: str) -> dict[str, JsonObject]:
    return {status["name"]: status for status in (pod.get("status") or {}).get(field) or ()}


def _blank(
    spec: JsonObject,
    reason: str,
    message: str,
    *,
    state: JsonObject | None = None,
    restarts: int = 0,
    last: JsonObject | None = None,
) -> JsonObject:
    """A container status that is not ready; waiting for ``reason`` unless a state is given."""
    waiting: JsonObject = {"reason": reason}
    if message:
        waiting["message"] = message
    fresh: JsonObject = {
        "name": spec["name"],
        "image": spec.get("image", ""),
        "imageID": "",
        "lastState": last or {},
        "ready": False,
        "restartCount": restarts,
        "started": False,
        "state": state or {"waiting": waiting},
    }
    if "waiting" not in fresh["state"]:
        fresh["imageID"] = f"simulated://{spec.get('image', '')}"
        fresh["containerID"] = f"simulated://{spec['name']}-{restarts}"
    return fresh


def _waiting(pod: JsonObject, reason: str, message: str) -> list[JsonObject]:
    return [_blank(spec, reason, message) for spec in pod["spec"]["containers"]]


def _terminated(spec: JsonObject, code: int, since: float, end: float) -> JsonObject:
    return {
        "containerID": f"simulated://{spec['name']}",
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "startedAt": stamp(since),
        "finishedAt": stamp(end),
    }


def _status(
    pod: JsonObject,
    now: float,
    started: float,
    placement: Placement,
    init_statuses: list[JsonObject],
    statuses: list[JsonObject],
    phase: str,
) -> JsonObject:
    initialized = phase != "Pending" or (
        bool(init_statuses) and all(status["ready"] or status.get("started") for status in init_statuses)
    )
    ready = phase == "Running" and all(status["ready"] for status in statuses)
    unready = "PodCompleted" if phase in FINISHED else "ContainersNotReady"
    fresh = {
        **(pod.get("status") or {}),
        "phase": phase,
        "startTime": stamp(started),
        "hostIP": placement.host_ip,
        "hostIPs": [{"ip": placement.host_ip}],
        "containerStatuses": statuses,
    }
    if init_statuses:
        fresh["initContainerStatuses"] = init_statuses
    if phase != "Pending":
        fresh["podIP"] = placement.pod_ip
        fresh["podIPs"] = [{"ip": placement.pod_ip}]
    fresh["conditions"] = _conditions(
        fresh.get("conditions") or (),
        now,
        {
            "Initialized": (initialized, "" if initialized else "ContainersNotInitialized"),
            "Ready": (ready, "" if ready else unready),
            "ContainersReady": (ready, "" if ready else unready),
            "PodScheduled": (True, ""),
        },
    )
    return fresh


def _conditions(old: Sequence[JsonObject], now: float, wanted: Mapping[str, tuple[bool, str]]) -> list[JsonObject]:
    """Conditions as wanted; transition times move only with the status; foreign conditions stay."""
    before = {condition["type"]: condition for condition in old}
    conditions = []
    for kind, (truth, reason) in wanted.items():
        status = "True" if truth else "False"
        earlier = before.pop(kind, None)
        moved = earlier is None or earlier.get("status") != status
        condition: JsonObject = {
            "type": kind,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": stamp(now) if moved or earlier is None else earlier.get("lastTransitionTime"),
        }
        if reason:
            condition["reason"] = reason
        conditions.append(condition)
    return conditions + list(before.values())


def _deadline_exceeded(pod: JsonObject, now: float, started: float, placement: Placement) -> JsonObject:
    statuses = []
    old = _by_name(pod, "containerStatuses")
    for spec in pod["spec"]["containers"]:
        known = old.get(spec["name"])
        state = (known or {}).get("state") or {}
        if known and "running" in state:
            since = seconds(state["running"]["startedAt"])
            state = {"terminated": {**_terminated(spec, 137, since, now), "reason": "Error"}}
            known = {**known, "state": state, "ready": False, "started": False}
        statuses.append(known or _blank(spec, "ContainerCreating", ""))
    fresh = _status(pod, now, started, placement, [], statuses, "Failed")
    fresh["reason"] = "DeadlineExceeded"
    fresh["message"] = "Pod was active on the node longer than the specified deadline"
    return fresh


def _image_pull_failed(pod: JsonObject, now: float, started: float, placement: Placement) -> JsonObject:
    statuses = [
        _blank(spec, "ErrImagePull", f'failed to pull image "{spec.get("image", "")}": simulated failure')
        for spec in pod["spec"]["containers"]
    ]
    return _status(pod, now, started, placement, [], statuses, "Pending")


def _changed(pod: JsonObject, fresh: JsonObject, next_at: float | None) -> Step:
    return Step(None if fresh == pod.get("status") else fresh, next_at)


def _earliest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)
