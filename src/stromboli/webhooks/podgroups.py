"""PodGroups: the queue of their namespace, and which are accepted (spec 07 sections 11 and 12)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from stromboli.api.names import POD_QUEUE_NAME
from stromboli.webhooks.context import Context
from stromboli.webhooks.errors import FieldError, Reason, first_said, sentence, some
from stromboli.webhooks.queue_tree import missing
from stromboli.webhooks.shapes import JsonObject, PodGroup, PodGroupSpec, read
from stromboli.webhooks.topologies import BOTH_TIERS, names_both_tiers


def default(obj: JsonObject, context: Context) -> JsonObject:
    """A group in queue ``default`` goes to the queue that its namespace names, if it names one."""
    if read(PodGroup, obj).spec.queue != "default":
        return obj
    annotations = context.cluster.namespace_annotations(context.namespace) or {}
    queue = annotations.get(POD_QUEUE_NAME)
    return {**obj, "spec": {**obj["spec"], "queue": queue}} if queue else obj


def validate(obj: JsonObject | None, old: JsonObject | None, context: Context) -> list[FieldError]:
    """The faults of a new PodGroup; without a queue nothing is asked about queues."""
    spec = read(PodGroup, obj).spec
    return some(chain(_queue_faults(spec.queue, context), _topology_faults(spec)))


def _queue_faults(name: str, context: Context) -> Iterator[FieldError]:
    if not name:
        return
    queue = context.cluster.queue(name)
    if queue is None:
        yield sentence("spec.queue", f"unable to find queue: {missing(name)}", Reason.NOT_FOUND)
    elif (state := queue.status.state) != "Open":
        text = f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{state}`. "
        yield sentence("spec.queue", text)


def _topology_faults(spec: PodGroupSpec) -> Iterator[FieldError]:
    whole = names_both_tiers(spec.network_topology)
    if whole:
        yield sentence("spec.networkTopology", f"{BOTH_TIERS}.")
    yield from first_said(_sub_group_faults(spec, " " if whole else ""))


def _sub_group_faults(spec: PodGroupSpec, separator: str) -> Iterator[FieldError]:
    for index, policy in enumerate(spec.sub_group_policy):
        if names_both_tiers(policy.network_topology):
            text = f"{separator}in subGroupPolicy '{policy.name}': {BOTH_TIERS}."
            yield sentence(f"spec.subGroupPolicy[{index}].networkTopology", text)
