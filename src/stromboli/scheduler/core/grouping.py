"""Sub-jobs: which of a job's gangs a task belongs to (spec 04 section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.api import core, selectors
from stromboli.scheduler.core.records import Job, SubJob

_LONGEST_VALUES = 128
_SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Place:
    """The sub-job that a set of labels leads to."""

    id: str
    group: str
    policy: core.SubGroupPolicy | None = None
    values: tuple[str, ...] = ()


def place_of(job: Job, labels: Mapping[str, str]) -> Place:
    """The first policy that matches, else the job's default sub-job."""
    policies = job.pod_group.spec.sub_group_policy if job.pod_group is not None else ()
    for policy in policies:
        values = _values(policy, labels)
        if values:
            group = f"{job.id}/{policy.name}"
            return Place(f"{group}-{_joined(values)}", group, policy, values)
    return Place(job.id, job.id)


def make(job: Job, place: Place) -> SubJob:
    """A new, empty sub-job of a job."""
    policy = place.policy
    if policy is None:
        sub_job = SubJob(job, place.id, place.group, 1 if job.has_sub_groups else job.min_member)
        sub_job.topology = job.topology
        return sub_job
    minimum = 1 if policy.sub_group_size is None else policy.sub_group_size
    sub_job = SubJob(job, place.id, place.group, minimum)
    sub_job.topology = policy.network_topology
    sub_job.match_index = _integer(place.values[0])
    return sub_job


def _values(policy: core.SubGroupPolicy, labels: Mapping[str, str]) -> tuple[str, ...]:
    values = tuple(labels.get(key, "") for key in policy.match_label_keys)
    if not values or not all(values):
        return ()
    return values if selectors.matches_selector(policy.label_selector, labels, absent=True) else ()


def _joined(values: tuple[str, ...]) -> str:
    joined = "-".join(values)
    return joined if len(joined) <= _LONGEST_VALUES else _safe(str(_fnv1a(joined.encode())))


def _fnv1a(data: bytes) -> int:
    digest = 0x811C9DC5
    for byte in data:
        digest = ((digest ^ byte) * 0x01000193) & 0xFFFFFFFF
    return digest


def _safe(text: str) -> str:
    """Kubernetes' safe encoding: no vowels and no lookalikes."""
    return "".join(_SAFE_ALPHABET[ord(character) % len(_SAFE_ALPHABET)] for character in text)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0
