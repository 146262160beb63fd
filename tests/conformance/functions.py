"""Single calls of upstream functions, for those that have a counterpart here.

A counterpart is a function from the vector's ``recv`` and ``args`` to the result in the vector's encoding. Functions of
upstream's inner structure (work queues, object methods that build a session) have none: they are not applicable, by
name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from stromboli.api import core, requests
from stromboli.api import resources as vectors
from stromboli.api.resources import Dimension, ResourceVector
from stromboli.scheduler.core import policy
from tests.conformance import (
    accounting_functions,
    claim_functions,
    device_functions,
    domain_functions,
    numa_functions,
    plugin_functions,
)
from tests.conformance.vectors import JsonObject
from tests.conformance.verdicts import NotApplicable

Counterpart = Callable[[Any, JsonObject], Any]
JUDGED_ELSEWHERE = (accounting_functions, claim_functions, device_functions, numa_functions, plugin_functions)
"""Modules that register judges with ``domain_functions``."""
COUNTERPARTS: dict[str, Counterpart] = {}


def differences(case: JsonObject) -> list[str]:
    """What differs between the vector and our answer."""
    judged = domain_functions.differences(case)
    if judged is not None:
        return judged
    counterpart = COUNTERPARTS.get(case.get("fn", ""))
    if counterpart is None:
        name = case.get("fn") or "vectors of " + case["source"]["func"]
        raise NotApplicable(f"no counterpart of {name}")
    if case.get("opaque"):
        raise NotApplicable("the call takes a Go callback")
    want = case["results"] if "results" in case else case.get("result")
    if case["fn"].startswith("Arguments."):
        want = (case.get("argsAfter") or case["args"]).get("ptr")
    got = counterpart(case.get("recv"), case["args"])
    return [] if same(want, got) else [f"{case['fn']}: want {want}, got {got}"]


def same(want: Any, got: Any) -> bool:
    """Equality that forgives float rounding, an empty scalar map for an absent one, and the order of names."""
    if isinstance(want, dict) and isinstance(got, dict):
        keys = {key for key in {*want, *got} if want.get(key) not in ({}, None) or got.get(key) not in ({}, None)}
        return all(same(want.get(key), got.get(key)) for key in keys)
    if isinstance(want, list) and all(isinstance(name, str) for name in want) and isinstance(got, list):
        return sorted(want) == sorted(got)  # lists of resource names have no defined order
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(same(left, right) for left, right in zip(want, got, strict=True))
    if isinstance(want, int | float) and isinstance(got, int | float):
        return math.isclose(want, got, rel_tol=1e-9, abs_tol=1e-6)
    return bool(want == got)


def counterpart(*names: str) -> Callable[[Counterpart], Counterpart]:
    """Registers a function as the counterpart of upstream functions."""

    def register(function: Counterpart) -> Counterpart:
        for name in names:
            COUNTERPARTS[name] = function
        return function

    return register


# -- encodings -----------------------------------------------------------------------------------------------------

_NUMBERS = {"MaxFloat64": vectors.MAX_FLOAT, "-MaxFloat64": -vectors.MAX_FLOAT, "+Inf": math.inf, "-Inf": -math.inf}


def number(value: Any) -> float:
    """A float of the vectors' encoding."""
    return _NUMBERS[value] if isinstance(value, str) else float(value)


def vector(encoded: JsonObject | None) -> ResourceVector | None:
    """A ``Resource`` of the vectors' encoding; null stays null."""
    if encoded is None:
        return None
    scalars = encoded.get("scalarResources")
    return ResourceVector(
        number(encoded.get("milliCPU", 0)),
        number(encoded.get("memory", 0)),
        None if scalars is None else {name: number(amount) for name, amount in scalars.items()},
        int(encoded.get("maxTaskNum", 0)),
    )


def encoded(amount: ResourceVector) -> JsonObject:
    """The vectors' encoding of a ``Resource``."""
    document: JsonObject = {"milliCPU": amount.cpu, "memory": amount.memory}
    if amount.scalars:
        document["scalarResources"] = dict(amount.scalars)
    if amount.max_tasks:
        document["maxTaskNum"] = amount.max_tasks
    return document


def given(encoded_vector: JsonObject | None) -> ResourceVector:
    """A ``Resource`` that the call needs."""
    found = vector(encoded_vector)
    assert found is not None
    return found


def missing(args: JsonObject) -> Dimension:
    """The default for missing dimensions."""
    return Dimension(args["defaultValue"])


# -- resources -----------------------------------------------------------------------------------------------------


@counterpart("NewResource")
def _new(_recv: Any, args: JsonObject) -> JsonObject:
    return encoded(ResourceVector.from_list(args["rl"] or {}))


@counterpart("Resource.IsEmpty")
def _is_empty(recv: Any, _args: JsonObject) -> bool:
    return given(recv).is_empty()


@counterpart("Resource.Equal")
def _equal(recv: Any, args: JsonObject) -> bool:
    return given(recv).equal(given(args["rr"]))


@counterpart("Resource.Sub")
def _sub(recv: Any, args: JsonObject) -> JsonObject:
    return encoded(given(recv) - given(args["rr"]))


@counterpart("Resource.Less")
def _less(recv: Any, args: JsonObject) -> bool:
    return given(recv).less(given(args["rr"]), missing(args))


@counterpart("Resource.LessEqual")
def _less_equal(recv: Any, args: JsonObject) -> bool:
    return given(recv).less_equal(given(args["rr"]), missing(args))


@counterpart("Resource.LessPartly")
def _less_partly(recv: Any, args: JsonObject) -> bool:
    return given(recv).less_partly(given(args["rr"]), missing(args))


@counterpart("Resource.LessEqualPartly")
def _less_equal_partly(recv: Any, args: JsonObject) -> bool:
    return given(recv).less_equal_partly(given(args["rr"]), missing(args))


@counterpart("Resource.LessEqualWithResourcesName")
def _less_equal_names(recv: Any, args: JsonObject) -> list[Any]:
    above = given(recv).names_above(given(args["rr"]), missing(args))
    return [not above, above]


@counterpart("Resource.GreaterPartly")
def _greater_partly(recv: Any, args: JsonObject) -> list[Any]:
    above = given(recv).names_above(given(args["rr"]), missing(args))
    return [bool(above), above]


@counterpart("Resource.MinDimensionResource")
def _lowered(recv: Any, args: JsonObject) -> JsonObject:
    return encoded(given(recv).lowered_to(given(args["rr"]), missing(args)))


@counterpart("Resource.LessEqualWithDimensionAndResourcesName")
def _less_equal_for(recv: Any, args: JsonObject) -> list[Any]:
    return list(vectors.less_equal_for(vector(recv), vector(args["rr"]), vector(args["req"])))


@counterpart("Resource.LessEqualPartlyWithDimension")
def _partly_for(recv: Any, args: JsonObject) -> list[Any]:
    return list(vectors.less_equal_partly_for(given(recv), given(args["rr"]), vector(args["req"])))


@counterpart("Resource.LessEqualPartlyWithDimensionZeroFiltered")
def _partly_for_filtered(recv: Any, args: JsonObject) -> list[Any]:
    return list(vectors.less_equal_partly_for(given(recv), given(args["rr"]), vector(args["req"]), zeros=False))


@counterpart("Resource.GreaterPartlyWithDimension")
def _greater_for(recv: Any, args: JsonObject) -> list[Any]:
    return list(vectors.greater_partly_for(given(recv), vector(args["rr"]), vector(args["req"])))


@counterpart("Resource.GreaterPartlyWithRelevantDimensions")
def _greater_for_relevant(recv: Any, args: JsonObject) -> list[Any]:
    return list(vectors.greater_partly_for(given(recv), vector(args["rr"]), vector(args["req"]), irrelevant=False))


@counterpart("Intersection")
def _common(_recv: Any, args: JsonObject) -> list[str]:
    return vectors.common_names(given(args["r1"]), given(args["r2"]))


@counterpart("IntersectionWithIgnoredScalarResources")
def _common_without_pods(_recv: Any, args: JsonObject) -> list[str]:
    return vectors.common_names(given(args["r1"]), given(args["r2"]), pods=False)


@counterpart("GetPodResourceRequest")
def _request(_recv: Any, args: JsonObject) -> JsonObject:
    return encoded(requests.pod_request(core.from_builtins(core.Pod, args["pod"])))


@counterpart("GetPodResourceWithoutInitContainers")
def _request_without_init(_recv: Any, args: JsonObject) -> JsonObject:
    return encoded(requests.pod_request_without_init(core.from_builtins(core.Pod, args["pod"])))


@counterpart("Max")
def _max(_recv: Any, args: JsonObject) -> JsonObject:
    left, right = (given(args[name]) for name in args)
    return encoded(left.raised_to(right))


# -- policy --------------------------------------------------------------------------------------------------------


def _reader(read: Callable[[Mapping[str, object], str, Any], Any]) -> Counterpart:
    def call(recv: Any, args: JsonObject) -> Any:
        return None if args.get("ptr") is None else read(recv or {}, args["key"], args["ptr"])

    return call


COUNTERPARTS |= {
    "Arguments.GetInt": _reader(policy.integer),
    "Arguments.GetFloat64": _reader(policy.number),
    "Arguments.GetBool": _reader(policy.boolean),
    "Arguments.GetString": _reader(policy.text),
}


@counterpart("GetArgOfActionFromConf")
def _arguments_of(_recv: Any, args: JsonObject) -> Any:
    entries = tuple((entry["name"], entry.get("arguments") or {}) for entry in args["configurations"] or ())
    return dict(policy.Policy((), (), entries).arguments_of(args["actionName"])) or None
