"""S9: a scheduler that starts in a full cluster: lists decoded and mirrored as its informers do it, then a decision.

5,000 nodes, 150,000 running pods (30 a node, one PodGroup a node) and a gang of ten that waits. Lists come in pages of
500 as the API server writes them, managed fields, volumes and conditions included. Making the pages is not counted.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from typing import Any

import orjson

from benchmarks import calibrating
from benchmarks.scenarios import bench_policy
from stromboli.api import core
from stromboli.kube.paging import Page
from stromboli.kube.stores import Identity, Store
from stromboli.scheduler.accepting import Acceptance
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.cache import SlimStore, Source, required_sources
from stromboli.scheduler.core.cycle import run
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.garbage import left_alone
from stromboli.scheduler.plugins import built_in

Json = dict[str, Any]
NODES, PODS_PER_NODE, GANG = 5_000, 30, 10
PAGE = 500
NOW = core.timestamp("2026-01-02T00:00:00Z")
BORN = "2026-01-01T00:00:00Z"


def cold_start() -> dict[str, object]:
    """The figures, in the form of all scenarios."""
    mirror = Mirror()
    sources = {source.kind.plural: source for source in required_sources(mirror, Acceptance(["volcano"]))}
    seconds: dict[str, float] = {}
    stores: list[Store[core.Object]] = []
    spent = 0.0
    with left_alone():
        for name, objects in _lists():
            store: Store[core.Object] = _store(sources[name])
            stores.append(store)
            seconds[name], cpu = _take_in(sources[name], store, objects)
            spent += cpu
    before, started, cpu = len(mirror.tasks), time.perf_counter(), time.process_time()
    result = run(
        mirror,
        bench_policy(),
        NOW,
        session_id="first",
        plugins=built_in().factories,
        actions=ACTIONS,
        clock=time.perf_counter,
    )
    seconds["first cycle"] = time.perf_counter() - started
    spent += time.process_time() - cpu
    if len(result.binds) != GANG or before != NODES * PODS_PER_NODE + GANG:
        raise SystemExit(f"S9: {before} tasks, {len(result.binds)} binds: {result.problems}")
    return {
        "scenario": "S9",
        "seconds": round(sum(seconds.values()), 3),
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "binds": len(result.binds),
        "nodes": NODES,
        "tasks": before,
        "calibration": calibrating.wall(),
        "detail": {
            "calibration cpu": calibrating.cpu(),
            "cpu": round(spent, 3),
            **{name: round(value, 3) for name, value in seconds.items()},
        },
    }


MEASUREMENTS = {"S9": cold_start}


def _store(source: Source[core.Object]) -> Store[core.Object]:
    return Store() if source.keep is None else SlimStore(source.keep)


def _take_in(source: Source[core.Object], store: Store[core.Object], objects: Iterator[Json]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of decoding, storing and mirroring one list, page by page."""
    seconds = spent = 0.0
    for raw in _pages(objects):
        started, cpu = time.perf_counter(), time.process_time()
        for item in Page.parse(raw).items:
            obj = core.decode(source.struct, item)
            if source.accept is None or source.accept(obj):
                meta = obj.metadata
                store.put(Identity(meta.namespace, meta.name, meta.uid, meta.resource_version), obj)
                source.apply(obj)
        seconds += time.perf_counter() - started
        spent += time.process_time() - cpu
    return seconds, spent


def _pages(objects: Iterator[Json]) -> Iterator[bytes]:
    page: list[Json] = []
    for obj in objects:
        page.append(obj)
        if len(page) == PAGE:
            yield _list(page)
            page = []
    if page:
        yield _list(page)


def _list(items: list[Json]) -> bytes:
    return orjson.dumps({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})


def _lists() -> Iterator[tuple[str, Iterator[Json]]]:
    yield "nodes", (_node(index) for index in range(NODES))
    yield "queues", iter([{"metadata": _meta("default", ""), "spec": {"weight": 1}, "status": {"state": "Open"}}])
    yield "podgroups", _groups()
    yield "pods", _pods()


def _meta(name: str, namespace: str = "ns", **more: object) -> Json:
    managed: list[Json] = [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": BORN,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {f"f:field{number}": {} for number in range(24)}},
        }
        for manager in ("stromboli-controllers", "kubelet")
    ]
    return {
        "name": name,
        "namespace": namespace,
        "uid": f"00000000-0000-0000-0000-{name}",
        "resourceVersion": "1",
        "creationTimestamp": BORN,
        "managedFields": managed,
        **more,
    }


def _node(index: int) -> Json:
    name = f"n{index:05}"
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    labels = {"zone": f"z{index % 4}", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    images = [{"names": [f"registry.example/app{number}:1"], "sizeBytes": 50_000_000} for number in range(20)]
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": BORN, "reason": "KubeletReady"}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions, "images": images}
    return {"metadata": _meta(name, "", labels=labels), "spec": {}, "status": status}


def _groups() -> Iterator[Json]:
    for index in range(NODES):
        spec = {"minMember": PODS_PER_NODE, "queue": "default"}
        yield {"metadata": _meta(f"running-{index:05}"), "spec": spec, "status": {"phase": "Running"}}
    waiting = {"minMember": GANG, "queue": "default", "minResources": {"cpu": str(GANG), "memory": f"{GANG}Gi"}}
    yield {"metadata": _meta("gang"), "spec": waiting, "status": {"phase": "Pending"}}


def _pods() -> Iterator[Json]:
    for index in range(NODES):
        for member in range(PODS_PER_NODE):
            yield _pod(f"running-{index:05}", member, f"n{index:05}")
    for member in range(GANG):
        yield _pod("gang", member, "")


def _pod(group: str, member: int, node: str) -> Json:
    token = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607}}]}}
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "command": ["/bin/worker", "--rank", str(member)],
        "env": [{"name": f"VC_{number}", "value": str(number)} for number in range(8)],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
    }
    spec = {
        "schedulerName": "volcano",
        "containers": [container],
        "volumes": [token],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        **({"nodeName": node} if node else {}),
    }
    kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": BORN} for kind in kinds] if node else []
    status = {"phase": "Running" if node else "Pending", "conditions": conditions, "startTime": BORN}
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": group, "uid": group, "controller": True}
    notes = {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": "worker"}
    labels = {"volcano.sh/job-name": group, "volcano.sh/task-spec": "worker"}
    metadata = _meta(f"{group}-worker-{member}", annotations=notes, labels=labels, ownerReferences=[owner])
    return {"metadata": metadata, "spec": spec, "status": status}
