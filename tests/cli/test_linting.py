"""Policy files that contradict themselves are told so, with what to do; good ones are let alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from stromboli.cli.rehearsing.linting import Lint, lint
from stromboli.cli.rehearsing.policies import PLUGINS
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.plugins.entries import ARGUMENTS
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import drive

GOOD = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def policy(actions: str, *tiers: str) -> str:
    """A policy file; each tier is names with blanks between."""
    lines = [f'actions: "{actions}"', "tiers:"]
    lines += ["- plugins: [" + ", ".join(f"{{name: {name}}}" for name in tier.split()) + "]" for tier in tiers]
    return "\n".join(lines)


def configured(**entries: Mapping[str, object]) -> str:
    """A good policy with arguments of actions."""
    listed = [{"name": name, "arguments": dict(arguments)} for name, arguments in entries.items()]
    return GOOD + yaml.safe_dump({"configurations": listed}, sort_keys=False)


CASES: dict[str, tuple[str, list[str]]] = {
    "the policy of every handbook": (GOOD, []),
    "reclaim without a plugin that is asked": (
        policy("enqueue, allocate, reclaim", "priority predicates"),
        [
            "warning: action reclaim never evicts anybody: no plugin of the policy has a say about its victims",
            "warning: plugin gang is missing: nothing is all-or-nothing any more",
            "warning: plugin conformance is missing: pods of kube-system may be evicted",
        ],
    ),
    "conformance in an earlier tier than the fair shares": (
        policy("enqueue, allocate, reclaim", "gang conformance", "predicates proportion"),
        [
            "warning: reclaim: proportion in a later tier is asked about victims only when tier 1 (gang, conformance) "
            "allows none; put them into the same tier, or set tiersAgreeOnVictims: true, so that all must agree",
        ],
    ),
    "the same for gangs": (
        policy("enqueue, allocate, gangreclaim", "gang conformance", "predicates capacity"),
        [
            "warning: gangreclaim: capacity in a later tier is asked about victims only when tier 1 (gang, "
            "conformance) allows none; put them into the same tier, or set tiersAgreeOnVictims: true, so",
        ],
    ),
    "tiers that agree": (
        policy("enqueue, allocate, reclaim, gangreclaim", "gang conformance", "predicates capacity")
        + "\ntiersAgreeOnVictims: true",
        [],
    ),
    "agreement of an odd kind": (
        policy("enqueue, allocate, reclaim", "gang conformance", "predicates") + "\ntiersAgreeOnVictims: 1",
        ["error: tiersAgreeOnVictims: expected true or false, got 1"],
    ),
    "budgets that evict": (
        policy("enqueue, allocate, shuffle", "gang conformance predicates pdb rescheduling"),
        [
            "warning: shuffle: pdb spares nobody there but adds, whenever its tier is asked, every Running pod that no "
            "budget keeps to the victims; set enabledVictim: false for pdb (preempt and reclaim keep to budgets all "
        ],
    ),
    "gangs have a say that no switch takes away": (
        policy("enqueue, allocate, gangreclaim", "gang conformance", "predicates").replace(
            "{name: gang}, {name: conformance}",
            "{name: gang, enabledVictim: false}, {name: conformance, enabledVictim: false}",
        ),
        [],
    ),
    "all who have a say in one tier": (
        policy("enqueue, allocate, reclaim", "gang conformance proportion", "predicates"),
        [],
    ),
    "enqueue that keeps reclaim from work": (
        policy("enqueue, allocate, reclaim", "gang conformance proportion", "predicates overcommit"),
        [
            "note: enqueue with overcommit holds gangs back in a full cluster, and reclaim only serves admitted ones: "
            "only queues below their deserved or guaranteed amount get past it (set spec.deserved)",
        ],
    ),
    "nobody is admitted": (
        policy("allocate", "gang", "predicates"),
        ["warning: action enqueue is missing: PodGroups stay Pending and vcjobs never get their pods"],
    ),
    "eviction first": (
        policy("enqueue, preempt, allocate", "gang conformance", "predicates"),
        ["warning: action preempt runs before allocate: it evicts for gangs that might find room without"],
    ),
    "two that decide about shares": (
        policy("enqueue, allocate", "gang", "predicates proportion capacity"),
        [
            "warning: proportion and capacity both decide what queues deserve and contradict each other; keep one",
        ],
    ),
    "twice the same": (
        policy("enqueue, allocate", "gang", "predicates gang"),
        ["warning: plugin gang stands in the policy 2 times; keep one"],
    ),
    "no node is looked at": (
        policy("enqueue, allocate", "gang"),
        ["warning: plugin predicates is missing: taints, selectors, affinity and ports of nodes are not heeded"],
    ),
    "a slip of the pen in an argument": (
        GOOD.replace("{name: overcommit}", "{name: overcommit, arguments: {overcommit-facter: 1.5}}"),
        ["warning: overcommit: argument 'overcommit-facter' is not known; did you mean 'overcommit-factor'?"],
    ),
    "a word for a number": (
        GOOD.replace("{name: overcommit}", "{name: overcommit, arguments: {overcommit-factor: lots}}"),
        [
            "error: tiers[1].plugins[0].arguments (overcommit): overcommit-factor: "
            "Input should be a valid number, got 'lots'"
        ],
    ),
    "an argument for a plugin that takes none": (
        GOOD.replace("{name: gang}", "{name: gang, arguments: {weight: 1}}"),
        ["warning: gang: argument 'weight' has no effect: the plugin takes none"],
    ),
    "slips of the pen in entries for actions": (
        configured(
            preempt={"minCandidateNodesPercent": 5, "other": 1, "maxCandidateNodesAbsolute": 5},
            gangreclaim={"maxDomain": 3, "allowWholeBundle": "no"},
            enqueue={"weight": 1},
        ),
        [
            "warning: configurations: preempt: argument 'minCandidateNodesPercent' is not known; "
            "did you mean 'minCandidateNodesPercentage'?",
            "warning: configurations: preempt: argument 'other' is not known (known: enableTopologyAwarePreemption, "
            "maxCandidateNodesAbsolute, minCandidateNodesAbsolute, minCandidateNodesPercentage, "
            "predicateErrorCacheEnable)",
            "warning: configurations: gangreclaim: argument 'maxDomain' is not known; did you mean 'maxDomains'?",
            "warning: configurations: gangreclaim: allowWholeBundle takes true or false, got 'no', which has no effect",
            "warning: configurations: enqueue: argument 'weight' is not known; it takes none",
        ],
    ),
    "slips of the pen in an entry for a plugin": (
        configured(**{"init-params": {"useClusterInfoManger": False, "self-maintain-available-card": 1}}),
        [
            "warning: configurations: init-params: argument 'useClusterInfoManger' is not known; "
            "did you mean 'useClusterInfoManager'?",
            "warning: configurations: init-params: self-maintain-available-card takes true or false, got 1, which has",
        ],
    ),
    "values as they may be written": (
        configured(
            allocate={"predicateErrorCacheEnable": "F"},
            gangpreempt={"maxDomains": 3, "allowWholeBundle": True},
            preempt={"minCandidateNodesAbsolute": 0},
        ),
        [],
    ),
    "a number in quotes": (
        configured(gangpreempt={"maxDomains": "3"}),
        ["warning: configurations: gangpreempt: maxDomains takes a whole number, got '3', which has no effect"],
    ),
    "two entries of one name": (
        configured(allocate={}) + "- {name: allocate, arguments: {predicateErrorCacheEnable: false}}\n",
        ["warning: configurations has 2 entries allocate: only the first counts"],
    ),
    "a plugin that is not there": (
        GOOD.replace("nodeorder", "nodeordre"),
        ["error: tiers[1].plugins[4].name: plugin 'nodeordre' is not known; did you mean nodeorder?"],
    ),
    "all that is wrong at once": (
        policy("enque, allocate, reclam", "gang conformance", "predicats proportion"),
        [
            "error: failed to find Action enque; did you mean enqueue?",
            "error: failed to find Action  reclam; did you mean reclaim?",
            "error: tiers[1].plugins[0].name: plugin 'predicats' is not known; did you mean predicates?",
        ],
    ),
    "an action that is not there": (
        policy("enque", "gang"),
        ["error: failed to find Action enque; did you mean enqueue?"],
    ),
    "a switch that is not there": (
        GOOD.replace("{name: gang}", "{name: gang, enableJobOder: true}"),
        ["error: tiers[0].plugins[1].enableJobOder: unknown switch; did you mean enableJobOrder?"],
    ),
    "no YAML": ("{", ["error: not YAML: "]),
}


def test_what_plugins_read_of_configurations_is_known() -> None:
    entries = sorted({name for plugin in PLUGINS.values() for name in plugin.configuration_entries})
    assert entries
    content = GOOD + "configurations:\n" + "".join(f"- name: {name}\n" for name in entries)
    assert lint(content).findings == ()


class Asked(dict[str, object]):
    """Arguments that remember what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_asked: set[str] = set()

    def get(self, key: str, default: object = None) -> object:
        """Nothing."""
        self.keys_asked.add(key)
        return default


@pytest.mark.parametrize("name", ACTIONS)
def test_what_actions_read_of_configurations_is_known(name: str) -> None:
    asked = Asked()
    cycle = Cycle(Mirror(), Policy(actions=(), tiers=()), 0.0, session_id="s", plugins={}, actions={})
    ACTIONS[name](cycle, asked)
    assert asked.keys_asked == set(ARGUMENTS[name]) - {"predicateErrorCacheEnable"}


def told(found: Lint) -> list[str]:
    return [f"{finding.severity}: {finding.text}" for finding in found.findings]


@pytest.mark.parametrize("name", CASES)
def test_policies(name: str) -> None:
    content, want = CASES[name]
    found = told(lint(content))
    assert len(found) == len(want), found
    for line, start in zip(found, want, strict=True):
        assert line.startswith(start)


def test_a_silenced_hook_is_not_heard() -> None:
    content = policy("enqueue, allocate, reclaim", "gang conformance", "predicates proportion")
    loud = {name: hooks for _, name, hooks in lint(content).takes_part}
    quiet = content.replace("{name: gang}", "{name: gang, enableReclaimable: false}")
    silent = {name: hooks for _, name, hooks in lint(quiet).takes_part}
    assert set(loud["gang"]) - set(silent["gang"]) == {"reclaimable"}


async def test_the_command_needs_no_cluster(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD)
    done = await drive(f"vcctl policy lint {file}", server)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        "Actions, in this order:\n  enqueue     admits PodGroups, from Pending to Inqueue\n  allocate    gives "
    )
    assert done.out.endswith("\nNo findings.\n")
    assert server.calls == []
    told = json.loads((await drive(f"vcctl policy lint {file} -o json", server)).out)
    assert [action["name"] for action in told["actions"]] == ["enqueue", "allocate", "backfill"]


async def test_the_command_shows_that_tiers_agree(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD + "tiersAgreeOnVictims: true\n")
    assert (
        "\nNobody is evicted whom a plugin of any tier would spare (tiersAgreeOnVictims).\n"
        in (await drive(f"vcctl policy lint {file}", server)).out
    )
    assert json.loads((await drive(f"vcctl policy lint {file} -o json", server)).out)["tiersAgreeOnVictims"] is True


async def test_errors_give_an_exit_code(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("actions: enque")
    done = await drive(f"vcctl policy lint {file}", server)
    assert done.code == 255
    assert done.out.startswith("error: failed to find Action enque")
    assert done.err == f"Failed to lint policy: {file} has 1 error: the scheduler would refuse it at start\n"


def config_map(**data: str) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "policy"}, "data": data})


async def test_a_policy_may_stand_in_its_config_map(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "configmap.yaml"
    file.write_text(config_map(**{"volcano-scheduler.conf": GOOD, "README": "x"}))
    done = await drive(f"vcctl policy lint {file}", server)
    assert (done.code, done.out.startswith("Actions, in this order:")) == (0, True)


OTHER_OBJECTS = {
    "a job": ("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n", "is a Job of batch.volcano.sh/v1alpha1"),
    "a ConfigMap without a policy": (config_map(readme="x"), "is a ConfigMap of v1"),
    "a ConfigMap with two": (config_map(**{"a.conf": GOOD, "b.conf": GOOD}), "is a ConfigMap of v1"),
}


@pytest.mark.parametrize("name", OTHER_OBJECTS)
async def test_other_objects_are_no_policy(server: FakeApiServer, tmp_path: Path, name: str) -> None:
    content, want = OTHER_OBJECTS[name]
    file = tmp_path / "object.yaml"
    file.write_text(content)
    done = await drive(f"vcctl policy lint {file}", server)
    assert (done.code, done.out) == (255, "")
    assert done.err == (
        f"Failed to lint policy: {file}: {want}; expected a policy file, or a ConfigMap with one in a key that ends "
        "with .conf\n"
    )


PLUGIN = """{docstring}
from stromboli.scheduler.core.plugin import Hooks, Plugin


class Mine(Plugin):
    name = "mine"

    def open(self, view):
        return Hooks()
"""
DOCSTRINGS = {"described": ('"""mine: looks at the moon."""', "looks at the moon"), "not described": ("", "")}


@pytest.mark.parametrize("name", DOCSTRINGS)
async def test_plugins_of_a_folder_are_known(server: FakeApiServer, tmp_path: Path, name: str) -> None:
    docstring, purpose = DOCSTRINGS[name]
    (tmp_path / "mine.py").write_text(PLUGIN.format(docstring=docstring))
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD.replace("{name: nodeorder}", "{name: mine}"))
    unknown = await drive(f"vcctl policy lint {file}", server)
    assert (
        unknown.out.rstrip().splitlines()[-1].startswith("error: tiers[1].plugins[4].name: plugin 'mine' is not known")
    )
    done = await drive(f"vcctl policy lint {file} --plugins-dir {tmp_path}", server)
    assert (done.code, done.err) == (0, "")
    assert f"  {'mine':<24}{purpose}\n" in done.out


async def test_a_folder_that_cannot_be_used_is_named(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD)
    done = await drive(f"vcctl policy lint {file} --plugins-dir {tmp_path}/none", server)
    assert (done.code, done.err) == (255, f"Failed to lint policy: --plugins-dir={tmp_path}/none: no such directory\n")
