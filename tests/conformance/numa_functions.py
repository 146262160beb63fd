"""Single calls of the numa-aware plugin's policies and its CPU provider."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api import core
from stromboli.scheduler.plugins.numaaware.assigning import assign
from stromboli.scheduler.plugins.numaaware.hints import Hint, TopologyPolicy, cpu_hints
from stromboli.scheduler.plugins.numaaware.layouts import Layout, parse_cpus
from stromboli.scheduler.plugins.numaaware.pods import whole_cpus
from tests.conformance.comparing import differ, differing_maps
from tests.conformance.domain_functions import judge
from tests.conformance.vectors import JsonObject

POLICIES = {
    "policyNone": "none",
    "policyBestEffort": "best-effort",
    "policyRestricted": "restricted",
    "policySingleNumaNode": "single-numa-node",
}


@judge("NewPolicyNone", "NewPolicyBestEffort", "NewPolicyRestricted", "NewPolicySingleNumaNode")
def _new_policy(case: JsonObject) -> Iterator[str]:
    name = POLICIES[case["fn"].replace("NewP", "p")]
    policy = TopologyPolicy(name, tuple(case["args"]["numaNodes"]))
    yield from differ("NUMA nodes", case["result"]["numaNodes"], list(policy.numa_nodes))


@judge(*(f"{name}.Predicate" for name in POLICIES))
def _predicate(case: JsonObject) -> Iterator[str]:
    policy = TopologyPolicy(POLICIES[case["fn"].partition(".")[0]], tuple(case["recv"]["numaNodes"]))
    providers = [
        {name: None if hints is None else [_hint(one) for one in hints] for name, hints in (provider or {}).items()}
        for provider in case["args"]["providersHints"]
    ]
    hint, admitted = policy.admit(providers)
    want, want_admitted = case["results"]
    yield from differ("hint", _hint(want), hint)
    yield from differ("admitted", want_admitted, admitted)


@judge("cpuMng.GetTopologyHints")
def _hints(case: JsonObject) -> Iterator[str]:
    layout, available, count = _asked(case)
    want = {name: [_hint(one) for one in hints or ()] for name, hints in (case["result"] or {}).items()}
    yield from differing_maps("hints", want, {"cpu": list(cpu_hints(layout, available, count))})


@judge("cpuMng.Allocate")
def _allocate(case: JsonObject) -> Iterator[str]:
    layout, available, count = _asked(case)
    mask = case["args"]["bestHit"].get("numaNodeAffinity")
    want = {name: parse_cpus(text) for name, text in case["result"].items()}
    yield from differing_maps("assigned", want, {"cpu": assign(layout, available, count, mask)})


def _asked(case: JsonObject) -> tuple[Layout, frozenset[int], int]:
    args = case["args"]
    details = args["topoInfo"]["cpuDetail"]
    layout = Layout(
        {
            int(cpu): core.CpuInfo(numa=place["numaNodeID"], socket=place["socketID"], core=place["coreID"])
            for cpu, place in details.items()
        }
    )
    container = core.from_builtins(core.Container, args["container"])
    return layout, parse_cpus(args["resNumaSets"]["cpu"]), whole_cpus(container)


def _hint(encoded: JsonObject) -> Hint:
    return Hint(encoded.get("numaNodeAffinity"), preferred=encoded["preferred"])
