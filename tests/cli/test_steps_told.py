"""What the scheduler has written down about waiting in vain is told on in the same words."""

from __future__ import annotations

import pytest

from stromboli.api.reasons import IN_VAIN, WaitReason, advice, next_step
from stromboli.cli.rehearsing.explaining import from_conditions
from tests.cli.situations import vcjob

CLUSTER, QUEUE = WaitReason.CLUSTER_OVERCOMMITTED, WaitReason.QUEUE_QUOTA_INSUFFICIENT
WRITTEN = {
    "the cluster is full": (CLUSTER, advice(CLUSTER), next_step(CLUSTER)),
    "the cluster is too small": (CLUSTER, advice(CLUSTER, in_vain=True), f"add nodes, or ask for less{IN_VAIN}"),
    "the queue is full": (QUEUE, advice(QUEUE), next_step(QUEUE)),
    "the queue is too small": (
        QUEUE,
        advice(QUEUE, in_vain=True),
        f"raise spec.capability, use another queue, or ask for less{IN_VAIN}",
    ),
    "no queue is to blame": (QUEUE, advice(CLUSTER, in_vain=True), f"add nodes, or ask for less{IN_VAIN}"),
}


@pytest.mark.parametrize(("reason", "written", "want"), WRITTEN.values(), ids=WRITTEN.keys())
def test_the_next_step_is_the_one_written_down(reason: WaitReason, written: str, want: str) -> None:
    condition = {
        "type": "Admitted",
        "status": "False",
        "reason": reason,
        "message": f"The group needs cpu 160; the limit is cpu 96 (1.2 times its size). {written}",
    }
    found = from_conditions(vcjob(), {"metadata": {"name": "g"}, "status": {"conditions": [condition]}})
    assert found.sentence == "ns/train waits: the group needs cpu 160; the limit is cpu 96 (1.2 times its size)."
    assert found.next_step == want
