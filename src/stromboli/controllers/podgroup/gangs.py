"""How big the gangs of other systems' jobs are: a table, one entry a kind. Pure.

A pod that names the scheduler and a queue belongs to the gang of the topmost of its owners that is in the table. That
owner gets one PodGroup, sized by what its kind means by "all of it". Kinds of others are found through the entry-point
group ``stromboli.podgroup.gangs``; each entry is a :class:`GangKind`, and wins over one of the same API kind here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, TypeAlias

from stromboli.api import core, kinds, quantities
from stromboli.api.core import PodSpec
from stromboli.api.kinds import Kind
from stromboli.controllers import usage
from stromboli.kube.json import JsonObject

ENTRY_POINTS: Final = "stromboli.podgroup.gangs"


@dataclass(frozen=True, slots=True)
class GangSize:
    """Pods that must run together, and what they use; None when that is so many times what one pod uses."""

    pods: int
    resources: usage.Usage | None = None


@dataclass(frozen=True, slots=True)
class GangKind:
    """A kind of owner. ``size`` reads an object as stored. ``per_leader`` makes a gang of each pod that leads others
    instead of one of the whole object."""

    kind: Kind
    size: Callable[[JsonObject], GangSize]
    per_leader: bool = False


Part: TypeAlias = tuple[int, Mapping[str, Any]]
"""A number of pods of one template."""


def together(parts: Iterable[Part]) -> GangSize:
    """The gang of several parts."""
    found = [(count, template) for count, template in parts if count > 0]
    amounts = ((count, usage.of_pod(_pod_spec(template))) for count, template in found)
    return GangSize(sum(count for count, _ in found), usage.total(amounts))


def _pod_spec(template: Mapping[str, Any]) -> PodSpec:
    return core.from_builtins(PodSpec, template.get("spec") or {})


def _spec(owner: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = owner.get("spec") or {}
    return found


def _count(given: object, default: int) -> int:
    return given if isinstance(given, int) and not isinstance(given, bool) else default


# -- Kubernetes' own jobs, JobSets and LeaderWorkerSets ----------------------------------------------------------------


def _batch_job(owner: JsonObject) -> GangSize:
    """Indexed jobs need all their indexes at once; others are happy with any pod."""
    spec = _spec(owner)
    indexed = spec.get("completionMode") == "Indexed"
    return together([(_at_once(spec) if indexed else 1, spec.get("template") or {})])


def _at_once(job: Mapping[str, Any]) -> int:
    parallel = _count(job.get("parallelism"), 1)
    return min(parallel, _count(job.get("completions"), parallel))


def _job_set(owner: JsonObject) -> GangSize:
    return together(
        (_count(each.get("replicas"), 1) * _at_once(job), job.get("template") or {})
        for each in _spec(owner).get("replicatedJobs") or ()
        for job in [(each.get("template") or {}).get("spec") or {}]
    )


def _leader_worker_set(owner: JsonObject) -> GangSize:
    both = _spec(owner).get("leaderWorkerTemplate") or {}
    worker = both.get("workerTemplate") or {}
    return together([(1, both.get("leaderTemplate") or worker), (_count(both.get("size"), 1) - 1, worker)])


# -- training jobs -----------------------------------------------------------------------------------------------------


def _training(field: str) -> Callable[[JsonObject], GangSize]:
    """Kinds with ``spec.<field>: {<role>: {replicas, template}}``; ``minAvailable`` of their policy wins."""

    def size(owner: JsonObject) -> GangSize:
        found = together(_roles(_spec(owner), field))
        policy = (_spec(owner).get("runPolicy") or {}).get("schedulingPolicy") or {}
        wanted = _count(policy.get("minAvailable"), 0)
        return GangSize(wanted) if wanted > 0 else found

    return size


def _roles(spec: Mapping[str, Any], field: str) -> Iterator[Part]:
    for role, each in (spec.get(field) or {}).items():
        if role == "Launcher" and spec.get("launcherCreationPolicy") == "WaitForWorkersReady":
            continue  # it comes when the others run, so they must not wait for it
        replicas = _count(each.get("replicas"), 1)
        fewest = _count((spec.get("elasticPolicy") or {}).get("minReplicas"), replicas)
        yield (min(replicas, fewest) if role == "Worker" else replicas), each.get("template") or {}


# -- Ray and Spark -----------------------------------------------------------------------------------------------------


def _ray_cluster(owner: JsonObject) -> GangSize:
    spec = _spec(owner)
    grows = spec.get("enableInTreeAutoscaling") is True
    parts: list[Part] = [(1, (spec.get("headGroupSpec") or {}).get("template") or {})]
    for group in spec.get("workerGroupSpecs") or ():
        fewest = _count(group.get("minReplicas"), 0)
        replicas = fewest if grows else _count(group.get("replicas"), fewest)
        if group.get("suspend") is not True:
            parts.append((replicas * _count(group.get("numOfHosts"), 1), group.get("template") or {}))
    return together(parts)


def _spark_application(owner: JsonObject) -> GangSize:
    """The driver makes its executors once it runs, so the gang is the driver; it reserves for all."""
    spec = _spec(owner)
    executors = _count((spec.get("executor") or {}).get("instances"), 1)
    return GangSize(1, usage.total([(1, _spark_pod(spec, "driver")), (executors, _spark_pod(spec, "executor"))]))


_MIB: Final = 1024 * 1024
_LEAST_OVERHEAD: Final = 384 * _MIB
_SPARK_UNITS: Final = {"k": 1024, "m": _MIB, "g": 1024 * _MIB, "t": 1024 * 1024 * _MIB}


def _spark_pod(spec: Mapping[str, Any], role: str) -> usage.Usage:
    part = spec.get(role) or {}
    cpu = quantities.parse(part.get("coreRequest") or part.get("cores") or 1)
    heap = _spark_memory(part.get("memory") or "1g")
    factor = Fraction(str(spec.get("memoryOverheadFactor") or "0.1"))
    given = part.get("memoryOverhead")
    extra = _spark_memory(given) if given else max(heap * factor, Fraction(_LEAST_OVERHEAD))
    memory = Fraction(-(-(heap + extra) // 1))
    return {"cpu": cpu, "requests.cpu": cpu, "memory": memory, "requests.memory": memory, "pods": Fraction(1)}


def _spark_memory(text: str) -> Fraction:
    """Bytes of ``512m`` or ``4g``, as Spark writes memory; a number alone is MiB."""
    number = text.lower().removesuffix("b").removesuffix("i")
    unit = _SPARK_UNITS.get(number[-1:], None)
    return Fraction(number[:-1]) * unit if unit else Fraction(number) * _MIB


# -- the table ---------------------------------------------------------------------------------------------------------


def _kubeflow(plural: str, kind: str, field: str, version: str = "v1") -> GangKind:
    return GangKind(Kind("kubeflow.org", version, plural, kind), _training(field))


SHIPPED: Final[tuple[GangKind, ...]] = (
    GangKind(kinds.BATCH_JOBS, _batch_job),
    GangKind(Kind("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"), _job_set),
    GangKind(
        Kind("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"),
        _leader_worker_set,
        per_leader=True,
    ),
    _kubeflow("pytorchjobs", "PyTorchJob", "pytorchReplicaSpecs"),
    _kubeflow("tfjobs", "TFJob", "tfReplicaSpecs"),
    _kubeflow("xgboostjobs", "XGBoostJob", "xgbReplicaSpecs"),
    _kubeflow("paddlejobs", "PaddleJob", "paddleReplicaSpecs"),
    _kubeflow("jaxjobs", "JAXJob", "jaxReplicaSpecs"),
    _kubeflow("mpijobs", "MPIJob", "mpiReplicaSpecs"),
    _kubeflow("mpijobs", "MPIJob", "mpiReplicaSpecs", "v2beta1"),
    GangKind(Kind("ray.io", "v1", "rayclusters", "RayCluster"), _ray_cluster),
    GangKind(Kind("sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication"), _spark_application),
)
"""Kinds known here. A RayJob's pods are those of its RayCluster, and of a batch Job that submits."""

STEPPING_STONES: Final[tuple[Kind, ...]] = (kinds.STATEFUL_SETS, kinds.PODS)
"""Kinds that may stand between a pod and an owner in the table."""


@cache
def table() -> Mapping[tuple[str, str], GangKind]:
    """All kinds by ``(apiVersion, kind)``."""
    found = {_key(one.kind): one for one in SHIPPED}
    for point in entry_points(group=ENTRY_POINTS):
        one = point.load()
        if not isinstance(one, GangKind):
            raise TypeError(f"entry point {point.name} of {ENTRY_POINTS} is a {type(one).__name__}, not a GangKind")
        found[_key(one.kind)] = one
    return found


def _key(kind: Kind) -> tuple[str, str]:
    return (kind.api_version, kind.kind)


def stepping_stone(api_version: str, kind: str) -> Kind | None:
    """The kind to follow to the next owner, None for one that leads nowhere."""
    return next((one for one in STEPPING_STONES if _key(one) == (api_version, kind)), None)
