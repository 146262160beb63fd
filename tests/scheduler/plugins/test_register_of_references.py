"""Every filter, score, vote on queues and jobs, and order of tasks of a built-in plugin has a slow reference.

The table says which test compares them. What is new in a plugin, and not in the table, fails here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from stromboli.scheduler import plugins
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.plugins import deviceshare
from stromboli.scheduler.plugins.deviceshare import configuration
from tests.scheduler.plugins.deviceshare.test_references import FAMILIES
from tests.scheduler.plugins.sessions import Session, option

ROOM = "tests.scheduler.plugins"
CLASSIC = f"{ROOM}.test_reference:test_answers_follow_the_placements_of_the_cycle"
NODES = f"{ROOM}.test_references_of_nodes:test_a_plugin_agrees_with_its_reference"
NETWORK = f"{ROOM}.test_references_of_topologies:test_hyper_nodes"
CARDS = f"{ROOM}.deviceshare.test_references:test_a_device_family_agrees_with_its_reference"
ADMISSION = f"{ROOM}.test_references_of_admission:test_votes_on_admission"
QUEUES = f"{ROOM}.test_references_of_queues:test_votes_about_queues"
TASKS = f"{ROOM}.test_references_of_topologies:test_task_topology"
VOLUMES = f"{ROOM}.volumes.test_references:test_volumes"

NODE_HOOKS = {
    "binpack.py Score binpack": CLASSIC,
    "claim_filters.py Filter volume limits": VOLUMES,
    "claim_filters.py Filter volume zone": VOLUMES,
    "claim_filters.py Filter volume binding": VOLUMES,
    "claim_filters.py Filter volumes to be bound": VOLUMES,
    "claim_filters.py Score volume binding": f"{ROOM}.volumes.test_references_of_storage:test_storage",
    "claim_filters.py Filter dynamic resources": f"{ROOM}.dra.test_references:test_device_claims",
    "claimants.py Filter kept resources": f"{ROOM}.test_references_of_queues:test_kept_resources",
    "deviceshare/plugin.py Filter devices": CARDS,
    "deviceshare/plugin.py Filter devices of a group": CARDS,
    "deviceshare/plugin.py Score devices": CARDS,
    "deviceshare/plugin.py Score devices of a group": CARDS,
    "deviceshare/plugin.py Score chips": f"{ROOM}.deviceshare.test_references:test_chips",
    "extender.py Filter extender": NODES,
    "extender.py Score extender": NODES,
    "network_topology_aware.py Score network topology": NETWORK,
    "nodegroup.py Filter node group": NODES,
    "nodegroup.py Score nodegroup": NODES,
    "numaaware/plugin.py Filter numa": f"{ROOM}.test_references_of_numa:test_numa_aware",
    "numaaware/plugin.py Score numa": f"{ROOM}.test_references_of_numa:test_numa_aware",
    "predicates.py Filter pod number": CLASSIC,
    "predicates.py Filter node unschedulable": CLASSIC,
    "predicates.py Filter node affinity": CLASSIC,
    "predicates.py Filter taint toleration": CLASSIC,
    "predicates.py Filter node ports": CLASSIC,
    "resource_strategy_fit.py Filter proportional": NODES,
    "resource_strategy_fit.py Score resource strategy": NODES,
    "resource_strategy_fit.py Score scarce resources": NODES,
    "task_topology.py Score task topology": TASKS,
    "tdm.py Filter revocable zone": NODES,
    "tdm.py Score tdm": NODES,
    "usage.py Filter load": NODES,
    "usage.py Score usage": NODES,
}
"""Where it is made, what it is, and its name, to the test that compares it with its reference."""

NAMED_LATER = {
    "predicates": {"pod affinity", "topology spread"},
    "nodeorder": {
        *("leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "imagelocality"),
        *("podaffinity", "podtopologyspread", "tainttoleration"),
    },
}
"""Hooks whose names are not written where they are made, by plugin; all compared by tests of ``test_reference``."""

OTHER_HOOKS = {
    "capacity.py allocatable": QUEUES,
    "capacity.py preemptive": QUEUES,
    "capacity.py queue_order": QUEUES,
    "extender.py overused": ADMISSION,
    "capacity.py job_enqueueable": ADMISSION,
    "extender.py job_enqueueable": ADMISSION,
    "overcommit.py job_enqueueable": ADMISSION,
    "proportion.py job_enqueueable": ADMISSION,
    "resourcequota.py job_enqueueable": ADMISSION,
    "sla.py job_enqueueable": ADMISSION,
    "priority.py task_order": TASKS,
    "task_topology.py task_order": TASKS,
    "network_topology_aware.py gradient": NETWORK,
    "network_topology_aware.py hyper_node_score": NETWORK,
    "proportion.py allocatable": QUEUES,
    "proportion.py overused": QUEUES,
    "proportion.py preemptive": QUEUES,
    "proportion.py queue_order": QUEUES,
}
"""Votes about queues and on admission, what is said about HyperNodes, and the order of tasks."""

DEVICE_FAMILIES = {
    "gpushare.py GpuShareFamily": f"{CARDS}[gpushare]",
    "hami.py HamiFamily": f"{CARDS}[hami]",
    "mindcluster.py MindClusterFamily": f"{ROOM}.deviceshare.test_references:test_chips",
    "vgpu.py VgpuFamily": f"{CARDS}[vgpu]",
}
"""Families of devices, to the test that plays them."""

DEVICE_FACTS = {
    "common_word": "networks",
    "custominfo": "networks",
    "gpu_memory_factor": "mig",
    "known_mig_geometries": "mig",
    "memory_allocatable": "networks",
    "memory_capacity": "networks",
    "resource_core_name": "vgpu",
    "resource_count_name": "vgpu",
    "resource_memory_name": "networks",
    "resource_memory_percentage_name": "vgpu",
    "resource_name": "networks",
    "templates": "networks",
}
"""What decides about cards and is configured, or known of some cards only, to the scene that varies it."""

VOTES = {
    *("allocatable", "preemptive", "overused", "queue_order", "job_enqueueable"),
    *("task_order", "hyper_node_score", "gradient"),
}


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Calls by this name in all modules of plugins."""
    assert plugins.__file__ is not None
    room = Path(plugins.__file__).parent
    for path in sorted(room.rglob("*.py")):
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and found.func.id == name:
                yield path.relative_to(room).as_posix(), found


def test_every_filter_and_score_has_a_reference() -> None:
    named, unnamed = set(), set()
    for kind in ("Filter", "Score"):
        for module, call in calls(kind):
            first = call.args[0]
            if isinstance(first, ast.Constant):
                named.add(f"{module} {kind} {first.value!s}")
            else:
                unnamed.add(module)
    assert named - {"nodeorder.py Score tainttoleration"} == NODE_HOOKS.keys()
    assert unnamed == {"predicates.py", "nodeorder.py"}


def test_every_vote_on_queues_and_jobs_and_every_order_of_tasks_has_a_reference() -> None:
    made = {f"{module} {given.arg}" for module, call in calls("Hooks") for given in call.keywords if given.arg in VOTES}
    assert made == OTHER_HOOKS.keys()


@pytest.mark.parametrize("name", NAMED_LATER)
def test_hooks_that_are_named_later(name: str) -> None:
    weights = {f"{each}.weight": 1 for each in NAMED_LATER["nodeorder"]}
    session = Session(mirror=Mirror(), plugins=[option(name, dict(weights))])
    found = {score.name for score in session.combination.scores}
    found |= {filter_.name for _, filters in session.combination.filters for filter_ in filters}
    written = {key.rpartition(" Filter ")[2] for key in NODE_HOOKS if " Filter " in key}
    assert found - written == NAMED_LATER[name]


def device_modules() -> Iterator[tuple[str, ast.Module]]:
    """Modules about devices, but for the one that says what can be configured."""
    for path in sorted(Path(deviceshare.__path__[0]).glob("*.py")):
        if path.name != "configuration.py":
            yield path.name, ast.parse(path.read_text())


def test_every_family_of_devices_has_a_reference() -> None:
    made = {
        f"{module} {found.name}"
        for module, tree in device_modules()
        for found in tree.body
        if isinstance(found, ast.ClassDef) and found.name.endswith("Family") and found.name != "Family"
    }
    assert made == DEVICE_FAMILIES.keys()


def test_everything_that_is_configured_of_devices_is_varied_by_a_scene() -> None:
    known = {*configuration.Nvidia.model_fields, *configuration.Vnpu.model_fields, "custominfo"}
    read = {found.attr for _, tree in device_modules() for found in ast.walk(tree) if isinstance(found, ast.Attribute)}
    assert read & known == DEVICE_FACTS.keys()
    assert set(DEVICE_FACTS.values()) <= FAMILIES.keys()


@pytest.mark.parametrize("where", sorted({*NODE_HOOKS.values(), *OTHER_HOOKS.values(), *DEVICE_FAMILIES.values()}))
def test_what_the_table_names_is_there(where: str) -> None:
    module, _, test = where.partition(":")
    name, _, scene = test.rstrip("]").partition("[")
    assert callable(getattr(import_module(module), name))
    assert not scene or scene in FAMILIES
