"""Opening a cycle: HyperNodes and topologies as the session sees them (spec 04 section 24)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stromboli.api import core
from stromboli.scheduler.core.plugin import Plugin
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Job, SubJob
from stromboli.scheduler.core.statuses import ALLOCATED_STATUSES
from stromboli.scheduler.core.view import HyperNodeView


def has_topology(job: Job) -> bool:
    """Whether the job or one of its sub-jobs has a topology at all."""
    return job.topology is not None or any(sub_job.topology is not None for sub_job in job.sub_jobs.values())


def has_hard_topology(job: Job) -> bool:
    """Whether the job or one of its sub-jobs is confined in this cycle."""
    return job.hard_tier is not None or any(sub_job.hard_tier is not None for sub_job in job.sub_jobs.values())


def adjust_topology(job: Job, hyper_nodes: HyperNodeView, tiers_by_name: Mapping[str, int]) -> None:
    """Works out to which tier the job and its sub-jobs are confined in this cycle (spec 04 section 24.1)."""
    root_tier = hyper_nodes.by_name[ROOT_HYPER_NODE].tier
    job_tier = _tier(job.topology, tiers_by_name)
    if job.topology is not None and job.topology.mode == "soft":
        job_tier = root_tier
    job.hard_tier = job_tier if job.topology is not None and job.topology.mode in ("hard", "soft") else None
    for sub_job in job.sub_jobs.values():
        topology = sub_job.topology
        if topology is None:
            sub_job.hard_tier = None
        elif topology.mode == "soft":
            sub_job.hard_tier = root_tier if job_tier is None else job_tier
        else:
            sub_job.hard_tier = _tier(topology, tiers_by_name) if topology.mode == "hard" else None


def _tier(topology: core.NetworkTopology | None, tiers_by_name: Mapping[str, int]) -> int | None:
    if topology is None:
        return None
    if topology.highest_tier_allowed is not None:
        return topology.highest_tier_allowed
    return tiers_by_name.get(topology.highest_tier_name) if topology.highest_tier_name else None


def tiers_by_name(hyper_nodes: HyperNodeView) -> dict[str, int]:
    """Tier names to tiers; of a name given to several the lowest."""
    named: dict[str, int] = {}
    for known in hyper_nodes.by_name.values():
        if known.tier_name:
            named[known.tier_name] = min(known.tier, named.get(known.tier_name, known.tier))
    return named


def repair_hyper_nodes(job: Job, hyper_nodes: HyperNodeView) -> None:
    """Clears records of HyperNodes that do not hold any more and fills in missing ones (spec 04 section 24.2)."""
    _clear_stale(job, hyper_nodes)
    for sub_job in job.sub_jobs.values():
        _clear_stale(sub_job, hyper_nodes)
    if not has_topology(job):
        return
    changed = False
    for sub_job in job.sub_jobs.values():
        if sub_job.topology is not None and not sub_job.allocated_hyper_node:
            sub_job.allocated_hyper_node = _lowest_common(sub_job, hyper_nodes)
            changed = changed or bool(sub_job.allocated_hyper_node)
    if changed or not job.allocated_hyper_node:
        job.allocated_hyper_node = _common(
            [sub_job.allocated_hyper_node for sub_job in job.sub_jobs.values()], hyper_nodes
        )


def _clear_stale(owner: Job | SubJob, hyper_nodes: HyperNodeView) -> None:
    holds = any(owner.counts[status] for status in ALLOCATED_STATUSES)
    if owner.allocated_hyper_node not in hyper_nodes.by_name or not holds:
        owner.allocated_hyper_node = ""
    if owner.nominated_hyper_node not in hyper_nodes.by_name:
        owner.nominated_hyper_node = ""


def _lowest_common(sub_job: SubJob, hyper_nodes: HyperNodeView) -> str:
    rows = {
        task.node.row
        for task in sub_job.tasks.values()
        if task.status in ALLOCATED_STATUSES and task.node is not None and task.node.row >= 0
    }
    if not rows:
        return ""
    holding = [
        known
        for name, known in hyper_nodes.by_name.items()
        if name in hyper_nodes.rows and rows <= set(hyper_nodes.rows[name].tolist())
    ]
    return min(holding, key=lambda known: (known.tier, known.name)).name if holding else ""


def _common(names: Iterable[str], hyper_nodes: HyperNodeView) -> str:
    common = ""
    for name in names:
        common = hyper_nodes.lowest_common_ancestor(common, name)
        if not common:
            break
    return common


def shape_annotations(plugins: Sequence[type[Plugin]]) -> frozenset[str]:
    """All annotations that some plugin reads in node-side hooks."""
    return frozenset().union(*(plugin.shape_annotations for plugin in plugins)) if plugins else frozenset()
