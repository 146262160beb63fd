"""Resource vectors: the tables of spec 04 sections 8 and 35, and their algebra."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import resourcenames, resources
from stromboli.api.resources import Dimension, InsufficientResource, ResourceVector

S, H = "vendor.example/s", "hugepages-2Mi"
ZERO, INFINITY = Dimension.ZERO, Dimension.INFINITY


def amounts(cpu: float = 0, memory: float = 0, **scalars: float) -> ResourceVector:
    found = {{"s": S, "h": H, "gpu": "nvidia.com/gpu"}.get(name, name): value for name, value in scalars.items()}
    return ResourceVector(cpu, memory, found or None)


def test_a_list_becomes_milli_bytes_and_milli() -> None:
    found = ResourceVector.from_list({"cpu": "4m", "memory": "2000", S: "1", H: "2", "ephemeral-storage": "3"})
    assert found == ResourceVector(4, 2000, {S: 1000, H: 2000, "ephemeral-storage": 3000})


def test_pods_are_counted_in_units_and_remembered_as_a_whole() -> None:
    found = ResourceVector.from_list({"pods": "110"})
    assert found == ResourceVector(scalars={"pods": 110}, max_tasks=110)
    assert (found - found).max_tasks == 110


@pytest.mark.parametrize("name", ["count/jobs.batch", "storage", "foo", "requests.nvidia.com/gpu", "bad domain/x"])
def test_names_that_are_no_resources_are_dropped(name: str) -> None:
    assert ResourceVector.from_list({name: "1"}) == ResourceVector()


@pytest.mark.parametrize("name", [S, H, "attachable-volumes-csi-x", "kubernetes.io/batch-cpu", "x.kubernetes.io/y"])
def test_scalar_names_are_kept_unless_ignored(name: str) -> None:
    assert ResourceVector.from_list({name: "1"}).get(name) == 1000
    assert ResourceVector.from_list({name: "1"}, ignored={name}) == ResourceVector()


def test_text_names_every_component_and_the_largest_numbers() -> None:
    assert str(ResourceVector(1000, 2048, {"nvidia.com/gpu": float(resources.MAX_INT)})) == (
        "cpu 1000.00, memory 2048.00, nvidia.com/gpu maxInt"
    )
    assert str(ResourceVector.infinite()) == "cpu maxFloat, memory maxFloat"


def test_a_vector_becomes_an_api_list() -> None:
    assert ResourceVector(1500, 2 * 1024**3, {"pods": 3, "nvidia.com/gpu": 2500}).to_list() == {
        "cpu": "1500m",
        "memory": "2Gi",
        "nvidia.com/gpu": "2500m",
        "pods": "3",
    }


def test_empty_ignores_pods_and_dust() -> None:
    assert ResourceVector(0.05, 0, {"pods": 1}).is_empty()
    assert not amounts(s=1).is_empty()


def test_zero_of_a_name() -> None:
    assert amounts(cpu=1, s=0).is_zero(S)
    assert ResourceVector().is_zero(S)
    with pytest.raises(KeyError):
        amounts(s=1).is_zero(H)


COMPARED: dict[str, tuple[bool, bool]] = {
    "nothing is not less than nothing": (ResourceVector().less(ResourceVector(), ZERO), False),
    "scalars only on the right are ignored under zero": (
        ResourceVector().less(amounts(4000, 2000, s=1000, h=2000), ZERO),
        True,
    ),
    "a scalar only on the left is skipped under infinity": (
        amounts(1000, 1000, s=1, h=2000).less(amounts(2000, 2000, h=3000), INFINITY),
        True,
    ),
    "a scalar only on the right is finite against infinite": (
        amounts(1000, 1000, h=1).less(amounts(2000, 2000, s=2, h=2), INFINITY),
        False,
    ),
    "something is not at most nothing": (amounts(4000, 2000, s=1000, h=2000).less_equal(ResourceVector(), ZERO), False),
    "infinite by absence is not at most a number": (
        ResourceVector().less_equal(amounts(4000, 2000, s=1, h=1), INFINITY),
        False,
    ),
    "any number is at most infinite by absence": (
        amounts(4000, 2000, s=1, h=1).less_equal(amounts(4000, 2000), INFINITY),
        True,
    ),
    "equality is at most": (amounts(4000, 4000, s=4000).less_equal(amounts(8000, 8000, s=4000), ZERO), True),
    "less by a hair is equal": (amounts(1000.05).less_equal(amounts(1000), ZERO), True),
    "partly, missing on the left, zero": (
        amounts(2000, 2000, h=2000).less_partly(amounts(2000, 2000, s=1000, h=2000), ZERO),
        True,
    ),
    "partly, missing on the left, infinity": (
        amounts(2000, 2000, h=2000).less_partly(amounts(2000, 2000, s=1000, h=2000), INFINITY),
        False,
    ),
    "partly, missing on the right, zero": (
        amounts(2000, 2000, s=1000, h=2000).less_partly(amounts(2000, 2000, h=2000), ZERO),
        False,
    ),
    "partly, missing on the right, infinity": (
        amounts(2000, 2000, s=1000, h=2000).less_partly(amounts(2000, 2000, h=2000), INFINITY),
        True,
    ),
    "partly, a right-only scalar of nothing counts (quirk)": (
        amounts(1, 1).less_equal_partly(amounts(0, 0, s=0), ZERO),
        True,
    ),
    "equal ignores what only the right names (quirk)": (amounts(1, 1).equal(amounts(1, 1, s=5)), True),
    "equal sees what only the left names": (amounts(1, 1, s=5).equal(amounts(1, 1)), False),
}


@pytest.mark.parametrize("name", COMPARED)
def test_comparison(name: str) -> None:
    found, want = COMPARED[name]
    assert found is want


def test_names_above() -> None:
    assert amounts(4000, 2000, s=1, h=1).names_above(ResourceVector(), ZERO) == ["cpu", "memory", H, S]
    assert ResourceVector().names_above(amounts(4000, 2000, s=1, h=1), INFINITY) == []
    assert amounts(s=8).names_above(ResourceVector(), INFINITY) == []
    assert amounts(s=8).names_above(amounts(s=4), INFINITY) == [S]


REQUESTED: dict[str, tuple[tuple[bool, list[str]], tuple[bool, list[str]]]] = {
    "a requested dimension is above": (
        resources.less_equal_for(amounts(5000), amounts(4000, 2000, s=1), amounts(1000)),
        (False, ["cpu"]),
    ),
    "nothing is requested": (
        resources.less_equal_for(amounts(5000), amounts(4000, 2000, s=1), ResourceVector()),
        (True, []),
    ),
    "a requested scalar is missing on the right": (
        resources.less_equal_for(amounts(4, 4000, gpu=1), amounts(8, 8000), amounts(4, 2000, gpu=1)),
        (False, ["nvidia.com/gpu"]),
    ),
    "scalars are not looked at without a map on the left (quirk)": (
        resources.less_equal_for(amounts(1), amounts(1, s=-1), amounts(1, s=1)),
        (True, []),
    ),
    "an absent left fits": (resources.less_equal_for(None, amounts(1), amounts(1)), (True, [])),
    "an absent right does not": (resources.less_equal_for(amounts(1, 2), None, None), (False, ["cpu", "memory"])),
    "no tolerance within a request": (
        resources.less_equal_for(amounts(1000.05), amounts(1000), amounts(1)),
        (False, ["cpu"]),
    ),
    "relevant dimensions: cpu of which the right has nothing": (
        resources.greater_partly_for(amounts(2000), ResourceVector(), amounts(1), irrelevant=False),
        (False, []),
    ),
    "some requested dimension fits": (
        resources.less_equal_partly_for(amounts(1000), amounts(2000, 0), amounts(1000, 512)),
        (True, ["cpu", "memory"]),
    ),
    "dimensions of which there is nothing do not count": (
        resources.less_equal_partly_for(amounts(1000), amounts(2000, 0), amounts(1000, 512), zeros=False),
        (True, ["cpu"]),
    ),
    "no requested dimension fits": (
        resources.less_equal_partly_for(amounts(3000), amounts(2000), amounts(4000)),
        (False, []),
    ),
    "nothing fits partly without a request": (
        resources.less_equal_partly_for(amounts(1000), amounts(2000), None),
        (False, []),
    ),
    "a requested dimension is above, strictly": (
        resources.greater_partly_for(amounts(1000.05), amounts(1000), amounts(1)),
        (True, ["cpu"]),
    ),
    "an absent right is nothing": (resources.greater_partly_for(amounts(1), None, amounts(1)), (True, ["cpu"])),
    "a scalar the right does not list is irrelevant": (
        resources.greater_partly_for(amounts(s=5), amounts(), amounts(s=1), irrelevant=False),
        (False, []),
    ),
    "a scalar the right lists is relevant": (
        resources.greater_partly_for(amounts(s=5), amounts(s=0), amounts(s=1), irrelevant=False),
        (True, [S]),
    ),
    "without a request all dimensions count, with tolerance": (
        resources.less_equal_for(amounts(1000.05, 1), amounts(1000), None),
        (False, ["memory"]),
    ),
    "pods are never requested": (
        resources.greater_partly_for(amounts(pods=5), amounts(pods=1), amounts(pods=1)),
        (False, []),
    ),
}


@pytest.mark.parametrize("name", REQUESTED)
def test_comparison_within_a_request(name: str) -> None:
    found, want = REQUESTED[name]
    assert found == want


def test_lowering() -> None:
    left, right = amounts(4000, 2000, s=1, h=2), amounts(3000, 2000, s=0)
    assert left.lowered_to(right, ZERO) == amounts(3000, 2000, s=0, h=0)
    assert left.lowered_to(right, INFINITY) == amounts(3000, 2000, s=0, h=2)
    assert amounts(4000).lowered_to(right, ZERO).scalars is None


def test_difference_under_infinity_reports_minus_one_for_the_missing_side() -> None:
    increased, decreased = amounts(1000, 2000, s=1000).difference(amounts(2000, 1000), INFINITY)
    assert increased == ResourceVector(0, 1000, {})
    assert decreased == ResourceVector(1000, 0, {S: -1})


def test_difference_reports_equal_scalars_as_decreased_by_nothing() -> None:
    assert amounts(s=5).difference(amounts(s=5), ZERO)[1].scalars == {S: 0}


def test_subtraction_without_a_map_ignores_scalars() -> None:
    assert amounts(5).minus(amounts(1, s=3)) == amounts(4)
    assert ResourceVector(5, 0, {}).minus(amounts(1, s=3)) == ResourceVector(4, 0, {S: -3})


def test_subtraction_refuses_more_than_there_is_and_says_what() -> None:
    with pytest.raises(InsufficientResource, match=r"cannot take <cpu 2.00, memory 0.00> out of <cpu 1.00"):
        amounts(1) - amounts(2)


def test_exceeding_part() -> None:
    assert resources.exceeding(amounts(3, 1), amounts(1, 2)) == ResourceVector(2, 0, {})
    assert resources.exceeding(None, amounts(1)) == ResourceVector()
    assert resources.exceeding(amounts(1), None) == amounts(1)


def test_common_names() -> None:
    found = resources.common_names(amounts(0.2, s=0, gpu=1), amounts(1, s=2, gpu=2))
    assert found == ["cpu", "nvidia.com/gpu"]
    assert resources.common_names(amounts(1, pods=1), amounts(1, pods=1), pods=False) == ["cpu"]


def test_minimum_keeps_scalars_only_when_both_have_them() -> None:
    assert resources.minimum(amounts(1, s=1), amounts(2)).scalars is None
    assert resources.minimum(amounts(1, s=1), amounts(2, s=3)) == amounts(1, s=1)


def test_multiplication() -> None:
    assert amounts(2, 3, s=4) * 0.5 == amounts(1, 1.5, s=2)
    assert (amounts(2) * 2).scalars is None


def test_raising() -> None:
    assert amounts(1, 5, s=1).raised_to(amounts(2, 2, s=0, h=3)) == amounts(2, 5, s=1, h=3)
    assert amounts(1).raised_to(amounts(s=2)) == amounts(1, s=2)


def test_share() -> None:
    assert [resources.share(1, 2), resources.share(0, 0), resources.share(1, 0)] == [0.5, 0.0, 1.0]


numbers = st.integers(0, 10**6).map(float)
vectors = st.builds(
    ResourceVector, numbers, numbers, st.none() | st.dictionaries(st.sampled_from([S, H, "pods"]), numbers)
)


@given(vectors, vectors)
def test_what_is_added_can_be_taken_away(left: ResourceVector, right: ResourceVector) -> None:
    back = (left + right) - right
    assert left.equal(back)


@given(vectors, vectors)
def test_addition_commutes(left: ResourceVector, right: ResourceVector) -> None:
    assert (left + right).equal(right + left)
    assert (right + left).equal(left + right)


@given(vectors, vectors, st.sampled_from(Dimension))
def test_lowered_is_at_most_both_and_raised_at_least(
    left: ResourceVector, right: ResourceVector, missing: Dimension
) -> None:
    lowered = left.lowered_to(right, missing)
    assert lowered.less_equal(left, Dimension.ZERO)
    assert not lowered.greater_partly(right, missing)
    assert left.less_equal(left.raised_to(right), Dimension.ZERO)
    assert right.less_equal(left.raised_to(right), Dimension.ZERO)


@given(vectors, vectors)
def test_the_two_differences_rebuild_the_left_from_the_right(left: ResourceVector, right: ResourceVector) -> None:
    increased, decreased = left.difference(right, Dimension.ZERO)
    rebuilt = (right + increased).minus(decreased)
    assert left.equal(rebuilt)


@given(vectors, vectors, vectors)
def test_at_most_and_above_within_a_request_exclude_each_other(
    left: ResourceVector, right: ResourceVector, request: ResourceVector
) -> None:
    _, above = resources.greater_partly_for(left, right, request)
    fits, refused = resources.less_equal_for(left, right, request)
    assert fits == (not refused)
    assert set(refused) <= set(above)


def test_attach_limit_names_stay_within_63_characters() -> None:
    assert resourcenames.csi_attach_limit("ebs.csi.aws.com") == "attachable-volumes-csi-ebs.csi.aws.com"
    long = resourcenames.csi_attach_limit("a-very-long-driver-name.storage.example.com")
    assert long.startswith("attachable-volumes-csi-a-very-long-driver-name")
    assert len(long) == 62
