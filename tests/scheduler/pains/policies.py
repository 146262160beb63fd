"""Policies that pains are tried under: the chart's, trees of queues, fairness in a tree, and everything at once."""

from __future__ import annotations

from pathlib import Path

from stromboli.scheduler.core.policy import DEFAULT_POLICY, PluginOption, Policy
from stromboli.scheduler.core.policy_file import parse
from stromboli.scheduler.registering import load
from tests.scheduler.plugins.sessions import option

CHART = Path(__file__).parents[3] / "charts/stromboli/config"
TREE = option("capacity", hierarchy=True)


def _tier(*plugins: str | PluginOption) -> tuple[PluginOption, ...]:
    return tuple(PluginOption(one) if isinstance(one, str) else one for one in plugins)


GUARDS = ("priority", option("gang", preemptable=False), "conformance", "sla", "pdb")
PLACES = ("predicates", "nodeorder", "binpack", "resource-strategy-fit", "usage", "network-topology-aware", "cdp")
DEVICES = (
    "numa-aware",
    option("nodegroup", {"strict": False}),
    "task-topology",
    option("deviceshare", {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "binpack"}),
)
MOVING = (option("tdm", {"tdm.revocable-zone.rz1": "0:00-23:59"}), "rescheduling")
EVICTING = "enqueue allocate backfill preempt reclaim gangpreempt gangreclaim shuffle"


def everything(queues: str | PluginOption, *, drf: PluginOption | None = None) -> Policy:
    """Every action, and every plugin that needs no service, with this one sharing between queues."""
    fair = option("drf", preemptable=False) if drf is None else drf
    shares = () if drf is not None and drf.switches.hierarchy else (queues,)
    plugins = _tier(
        "overcommit",
        "resourcequota",
        fair,
        *shares,
        *PLACES,
        *DEVICES,
        option("tdm", {"tdm.revocable-zone.rz1": "0:00-23:59"}),
        "rescheduling",
    )
    return Policy(tuple(EVICTING.split()), (_tier(*GUARDS), plugins))


def _of_the_chart(name: str) -> Policy:
    return parse((CHART / name).read_text(), load().known).policy


POLICIES = {
    "built in": DEFAULT_POLICY,
    "chart": _of_the_chart("volcano-scheduler.conf"),
    "chart, evicting": _of_the_chart("volcano-scheduler-ci.conf"),
    "capacity in a tree": Policy(
        ("enqueue", "allocate", "backfill", "preempt", "reclaim"),
        (_tier(*GUARDS), _tier("overcommit", option("drf", preemptable=False), "predicates", TREE, "nodeorder")),
    ),
    "fairness in a tree": Policy(
        ("enqueue", "allocate", "backfill", "reclaim"),
        (_tier("priority", "gang", "conformance"), _tier(option("drf", hierarchy=True), "predicates", "nodeorder")),
    ),
    "everything by weight": everything("proportion"),
    "everything by deserved": everything("capacity"),
    "everything in a tree": everything(TREE),
    "everything with fairness in a tree": everything("capacity", drf=option("drf", hierarchy=True)),
}
