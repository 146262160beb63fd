"""Resource arithmetic and pod requests against recorded calls (CONFORMANCE_DIR)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.api import core, requests
from stromboli.api import resources as r
from stromboli.api.resources import Dimension, ResourceVector

DIRECTORY = Path(os.environ.get("CONFORMANCE_DIR", "../shared/conformance")) / "scheduler"

Json = Any


def vector(data: Json) -> ResourceVector:
    return ResourceVector(
        number(data["milliCPU"]), number(data["memory"]), data.get("scalarResources"), int(data.get("maxTaskNum", 0))
    )


def number(data: float | str) -> float:
    return r.MAX_FLOAT if data == "MaxFloat64" else float(data)


def optional(data: Json) -> ResourceVector | None:
    return None if data is None else vector(data)


def amounts(found: ResourceVector) -> dict[str, object]:
    return {"milliCPU": found.cpu, "memory": found.memory, "scalarResources": found.scalars}


def wanted(data: Json) -> dict[str, object]:
    return {"milliCPU": data["milliCPU"], "memory": data["memory"], "scalarResources": data.get("scalarResources")}


def with_default(method: Callable[[ResourceVector, ResourceVector, Dimension], object]) -> Callable[[Json], object]:
    return lambda case: method(
        vector(case["recv"]), vector(case["args"]["rr"]), Dimension(case["args"]["defaultValue"])
    )


def above(left: ResourceVector, right: ResourceVector, missing: Dimension) -> tuple[bool, list[str]]:
    found = left.names_above(right, missing)
    return not found, found


def partly_above(left: ResourceVector, right: ResourceVector, missing: Dimension) -> tuple[bool, list[str]]:
    return left.greater_partly(right, missing), left.names_above(right, missing)


def sides(case: Json) -> tuple[ResourceVector, ResourceVector, ResourceVector | None]:
    return vector(case["recv"]), vector(case["args"]["rr"]), optional(case["args"]["req"])


CALLS: dict[str, Callable[[Json], object]] = {
    "NewResource": lambda case: amounts(ResourceVector.from_list(case["args"]["rl"])),
    "Resource.IsEmpty": lambda case: vector(case["recv"]).is_empty(),
    "Resource.Sub": lambda case: amounts(vector(case["recv"]) - vector(case["args"]["rr"])),
    "Resource.Equal": lambda case: vector(case["recv"]).equal(vector(case["args"]["rr"])),
    "Resource.Less": with_default(ResourceVector.less),
    "Resource.LessEqual": with_default(ResourceVector.less_equal),
    "Resource.LessPartly": with_default(ResourceVector.less_partly),
    "Resource.LessEqualPartly": with_default(ResourceVector.less_equal_partly),
    "Resource.LessEqualWithResourcesName": with_default(above),
    "Resource.GreaterPartly": with_default(partly_above),
    "Resource.MinDimensionResource": with_default(lambda a, b, missing: amounts(a.lowered_to(b, missing))),
    "Resource.LessEqualWithDimensionAndResourcesName": lambda case: r.less_equal_for(*sides(case)),
    "Resource.LessEqualPartlyWithDimension": lambda case: r.less_equal_partly_for(*sides(case)),
    "Resource.LessEqualPartlyWithDimensionZeroFiltered": lambda case: r.less_equal_partly_for(
        *sides(case), zeros=False
    ),
    "Resource.GreaterPartlyWithDimension": lambda case: r.greater_partly_for(*sides(case)),
    "Resource.GreaterPartlyWithRelevantDimensions": lambda case: r.greater_partly_for(*sides(case), irrelevant=False),
    "Intersection": lambda case: r.common_names(vector(case["args"]["r1"]), vector(case["args"]["r2"])),
    "IntersectionWithIgnoredScalarResources": lambda case: r.common_names(
        vector(case["args"]["r1"]), vector(case["args"]["r2"]), pods=False
    ),
    "GetPodResourceRequest": lambda case: amounts(requests.pod_request(pod(case))),
    "GetPodResourceWithoutInitContainers": lambda case: amounts(requests.pod_request_without_init(pod(case))),
    "Max": lambda case: amounts(vector(case["args"]["l"]).raised_to(vector(case["args"]["r"]))),
}


def pod(case: Json) -> core.Pod:
    return core.from_builtins(core.Pod, case["args"]["pod"])


def cases() -> list[Any]:
    found = []
    for file in ("api.functions.json", "api-helpers.functions.json"):
        path = DIRECTORY / file
        if path.exists():
            found += [case for case in json.loads(path.read_text())["cases"] if case.get("fn") in CALLS]
    return [pytest.param(case, id=f"{case['fn']}-{number}") for number, case in enumerate(found)]


@pytest.mark.conformance
@pytest.mark.skipif(not DIRECTORY.is_dir(), reason=f"CONFORMANCE_DIR: {DIRECTORY} is not there")
@pytest.mark.parametrize("case", cases())
def test_recorded_calls_give_the_same_results(case: Json) -> None:
    found = CALLS[case["fn"]](case)
    if isinstance(found, tuple):
        holds, names = found
        assert (holds, sorted(names)) == (case["results"][0], sorted(case["results"][1] or []))
    elif isinstance(found, dict):
        assert found == wanted(case["result"])
    elif isinstance(found, list):
        assert sorted(found) == sorted(case["result"])
    else:
        assert found == case["result"]
