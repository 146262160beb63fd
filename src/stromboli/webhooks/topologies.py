"""Network topology and partition rules that Jobs and PodGroups share (spec 07 sections 8, 8.3 and 12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stromboli.webhooks.errors import FieldError, sentence
from stromboli.webhooks.shapes import NetworkTopology, PartitionPolicy, Task

BOTH_TIERS: Final = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"


def names_both_tiers(topology: NetworkTopology | None) -> bool:
    """Whether the highest tier is given twice, by number (0 counts) and by name."""
    return topology is not None and topology.highest_tier_allowed is not None and bool(topology.highest_tier_name)


def tier_faults(topology: NetworkTopology | None, field: str) -> Iterator[FieldError]:
    """The fault of naming the highest tier twice."""
    if names_both_tiers(topology):
        yield sentence(field, BOTH_TIERS)


def partition_faults(task: Task, field: str, job: str) -> Iterator[FieldError]:
    """The first fault of the task's partition policy, then that of the policy's own network topology."""
    policy = task.partition_policy
    if policy is None:
        return
    if found := _partition_fault(task, policy):
        member, what = found
        yield sentence(f"{field}.{member}", f"{what} in task: {task.name}, job: {job}")
    yield from tier_faults(policy.network_topology, f"{field}.partitionPolicy.networkTopology")


def _partition_fault(task: Task, policy: PartitionPolicy) -> tuple[str, str] | None:
    if policy.total_partitions <= 0:
        return "partitionPolicy.totalPartitions", "'TotalPartitions' must be greater than 0"
    if policy.partition_size <= 0:
        return "partitionPolicy.partitionSize", "'PartitionSize' must be greater than 0"
    if task.replicas != policy.total_partitions * policy.partition_size:
        return "replicas", "'Replicas' are not equal to TotalPartitions*PartitionSize"
    least = policy.min_partitions * policy.partition_size
    if task.min_available is not None and policy.min_partitions > 0 and least != task.min_available:
        return "minAvailable", "'MinAvailable' is not equal to MinPartitions*PartitionSize"
    return None
