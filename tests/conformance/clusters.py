"""From the ``input`` of a session vector to a mirror and a policy, in the order that the vectors' README gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from stromboli.api import core
from stromboli.api.core import UndecodableObject
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import ALL_OFF, SWITCH_NAMES, PluginOption, Policy, Switches
from stromboli.scheduler.core.records import HyperNode
from tests.conformance.vectors import JsonObject

T = TypeVar("T", bound=core.Object)

PLAIN: dict[str, type[core.Object]] = {
    "persistentVolumes": core.PersistentVolume,
    "persistentVolumeClaims": core.PersistentVolumeClaim,
    "storageClasses": core.StorageClass,
    "deviceClasses": core.DeviceClass,
    "resourceClaims": core.ResourceClaim,
    "resourceSlices": core.ResourceSlice,
    "podDisruptionBudgets": core.PodDisruptionBudget,
    "resourceQuotas": core.ResourceQuota,
}
"""Objects that the mirror only keeps; upstream has them before, or independently of, everything else."""


def build(case_input: JsonObject) -> Mirror:
    """A mirror of the vector's cluster."""
    mirror = Mirror(default_queue=(case_input.get("options") or {}).get("defaultQueue", "default"))
    apply(mirror, case_input.get("objects") or {})
    _hyper_nodes(mirror, case_input.get("hyperNodes") or {})
    return mirror


def apply(mirror: Mirror, objects: JsonObject) -> None:
    """Feed objects as watches would; one that cannot be read is left out."""
    for name, struct in PLAIN.items():
        for obj in _read(struct, objects.get(name) or ()):
            mirror.apply_object(obj)
    for node in _read(core.Node, objects.get("nodes") or ()):
        mirror.apply_node(node)
    for pod in _read(core.Pod, objects.get("pods") or ()):
        mirror.apply_pod(pod)
    for group in _read(core.PodGroup, objects.get("podGroups") or ()):
        mirror.apply_pod_group(group)
    for queue in _read(core.Queue, objects.get("queues") or ()):
        mirror.apply_queue(queue)
    for priority in _read(core.PriorityClass, objects.get("priorityClasses") or ()):
        mirror.apply_priority_class(priority)


def _read(struct: type[T], objects: Iterable[JsonObject]) -> Iterator[T]:
    for obj in objects:
        try:
            yield core.from_builtins(struct, obj)
        except UndecodableObject:
            continue


def _hyper_nodes(mirror: Mirror, given: JsonObject) -> None:
    if not given:
        return
    members: dict[str, list[str]] = given.get("realNodes") or {}
    by_name = {name: _hyper_node(name, info) for name, info in (given.get("infos") or {}).items()}
    for obj in given.get("objects") or ():
        parent = by_name.get(obj["metadata"]["name"])
        if parent is not None:
            _adopt(parent, obj, by_name)
    mirror.hyper_nodes.install(by_name, members, (int(tier) for tier in given.get("setByTier") or {}))


def _hyper_node(name: str, info: JsonObject) -> HyperNode:
    return HyperNode(
        name,
        int(info.get("tier") or 0),
        info.get("tierName") or "",
        info.get("parent") or "",
        set(info.get("children") or ()),
    )


def _adopt(parent: HyperNode, obj: JsonObject, by_name: dict[str, HyperNode]) -> None:
    """Exact members of type HyperNode become children, as the README says."""
    for member in obj.get("spec", {}).get("members") or ():
        child = ((member.get("selector") or {}).get("exactMatch") or {}).get("name")
        if member.get("type") == "HyperNode" and child:
            parent.children.add(child)
            if child in by_name:
                by_name[child].parent = parent.name


def policy_of(case_input: JsonObject, actions: Iterable[str] | None = None) -> Policy:
    """The vector's tiers and actions; absent switches are off, plugins that are not registered are skipped."""
    registered = set(case_input.get("registeredPlugins") or ())
    tiers = tuple(
        tuple(_option(entry) for entry in tier.get("plugins") or () if entry["name"] in registered)
        for tier in case_input.get("tiers") or ()
    )
    configurations = tuple(
        (entry["name"], entry.get("arguments") or {}) for entry in case_input.get("configurations") or ()
    )
    return Policy(tuple(actions or case_input.get("actions") or ()), tiers, configurations)


def _option(entry: JsonObject) -> PluginOption:
    switches = {**ALL_OFF, **{SWITCH_NAMES[name]: bool(on) for name, on in entry.items() if name in SWITCH_NAMES}}
    return PluginOption(entry["name"], Switches(**switches), entry.get("arguments") or {})
