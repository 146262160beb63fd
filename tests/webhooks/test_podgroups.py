import pytest

from stromboli.webhooks import podgroups
from stromboli.webhooks.context import Context
from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import cluster, decide, queue

ANNOTATED = {"scheduling.volcano.sh/queue-name": "ns-queue"}
BOTH = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously."
TWICE = {"highestTierAllowed": 1, "highestTierName": "rack"}


def group(**spec: object) -> JsonObject:
    return {"metadata": {"name": "g", "namespace": "team"}, "spec": spec}


QUEUES: dict[str, tuple[str, dict[str, str], str]] = {
    "default in an annotated namespace": ("default", ANNOTATED, "ns-queue"),
    "default in a plain namespace": ("default", {}, "default"),
    "default where the annotation is empty": ("default", {"scheduling.volcano.sh/queue-name": ""}, "default"),
    "a queue of its own": ("mine", ANNOTATED, "mine"),
}


@pytest.mark.parametrize("name", QUEUES)
def test_a_group_goes_to_the_queue_of_its_namespace(name: str) -> None:
    given, annotations, want = QUEUES[name]
    context = Context("CREATE", namespace="team", cluster=cluster(team=annotations))
    assert podgroups.default(group(queue=given), context)["spec"]["queue"] == want


def test_a_group_of_an_unknown_namespace_is_left_alone() -> None:
    given = group(queue="default")
    assert podgroups.default(given, Context("CREATE", namespace="nowhere", cluster=cluster())) == given


REFUSED = {
    "an unknown queue": (group(queue="gone"), 'unable to find queue: queue.scheduling.volcano.sh "gone" not found'),
    "a closed queue": (
        group(queue="closed"),
        "can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`. ",
    ),
    "two tiers": (group(networkTopology=TWICE), BOTH),
    "two tiers in sub-groups, the first told": (
        group(subGroupPolicy=[{"name": "a", "networkTopology": TWICE}, {"name": "b", "networkTopology": TWICE}]),
        f"in subGroupPolicy 'a': {BOTH}",
    ),
    "two tiers everywhere": (
        group(networkTopology=TWICE, subGroupPolicy=[{"name": "a", "networkTopology": TWICE}]),
        f"{BOTH} in subGroupPolicy 'a': {BOTH}",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_group_is_refused(name: str) -> None:
    obj, want = REFUSED[name]
    known = cluster(queue("closed", state="Closed"))
    verdict = decide("/podgroups/validate", obj, known=known)
    assert (verdict.allowed, verdict.message) == (False, want)


@pytest.mark.parametrize("obj", [group(), group(queue="default"), group(networkTopology={"highestTierName": "a/b"})])
def test_a_group_is_accepted(obj: JsonObject) -> None:
    assert decide("/podgroups/validate", obj).allowed


def test_root_and_queues_with_children_take_groups() -> None:
    known = cluster(queue("root"), queue("p"), queue("c", parent="p"))
    assert decide("/podgroups/validate", group(queue="root"), known=known).allowed
    assert decide("/podgroups/validate", group(queue="p"), known=known).allowed


def test_changes_are_not_served() -> None:
    assert decide("/podgroups/validate", group(), group()).message == "unsupported operation UPDATE"
