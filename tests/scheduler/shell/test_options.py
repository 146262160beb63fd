"""Flags and environment of the scheduler process: defaults are contract, mistakes get one clear line."""

from __future__ import annotations

import pytest

from stromboli.process import flags
from stromboli.process.flags import FlagError
from stromboli.scheduler.options import PROGRAM, Environment, Options, Partition

DEFAULTS = {
    "master": "",
    "kubeconfig": "",
    "ca_cert_file": "",
    "tls_cert_file": "",
    "tls_private_key_file": "",
    "scheduler_name": ["volcano"],
    "scheduler_conf": "",
    "schedule_period": 1.0,
    "resync_period": 0.0,
    "default_queue": "default",
    "listen_address": ":8080",
    "healthz_address": ":11251",
    "enable_healthz": False,
    "enable_metrics": False,
    "enable_pprof": False,
    "priority_class": True,
    "kube_api_qps": 2000.0,
    "kube_api_burst": 2000,
    "minimum_feasible_nodes": 100,
    "minimum_percentage_nodes_to_find": 5,
    "percentage_nodes_to_find": 0,
    "plugins_dir": "",
    "csi_storage": False,
    "node_selector": [],
    "cache_dumper": True,
    "cache_dump_dir": "/tmp",
    "node_worker_threads": 20,
    "gate_removal_worker_num": 5,
    "ignored_provisioners": [],
    "resource_sync_timeout": 60.0,
    "disable_default_scheduler_config": False,
    "scheduler_sharding_mode": "none",
    "scheduler_sharding_name": "volcano",
    "lock_object_namespace": "",
    "leader_elect": True,
    "leader_elect_lease_duration": 15.0,
    "leader_elect_renew_deadline": 10.0,
    "leader_elect_retry_period": 2.0,
    "leader_elect_resource_lock": "leases",
    "leader_elect_resource_name": "volcano",
    "leader_elect_resource_namespace": "volcano-system",
}


def parse(*arguments: str) -> Options:
    return flags.parse(Options, arguments, program=PROGRAM)


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_those_of_the_specification(name: str) -> None:
    assert getattr(parse(), name) == DEFAULTS[name]


def test_scheduler_names_are_repeated_not_split_and_replace_the_default() -> None:
    assert parse("--scheduler-name=a,b", "--scheduler-name", "c").scheduler_name == ["a,b", "c"]


def test_lease_name_does_not_follow_the_scheduler_name() -> None:
    assert parse("--scheduler-name=blue").leader_elect_resource_name == "volcano"


@pytest.mark.parametrize(
    ("arguments", "want"), [((), "volcano"), (("a",), "a"), (("a", "b"), "volcano")], ids=["default", "one", "two"]
)
def test_events_come_from_the_single_scheduler_name(arguments: tuple[str, ...], want: str) -> None:
    assert parse(*(f"--scheduler-name={name}" for name in arguments)).component == want


def test_deprecated_lock_namespace_wins() -> None:
    assert parse("--lock-object-namespace=old").lease_namespace == "old"


INVALID = {
    "lease shorter than the renew deadline": (
        ["--leader-elect-lease-duration=5s"],
        "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline",
    ),
    "retry period of nothing": (["--leader-elect-retry-period=0"], "--leader-elect-retry-period"),
    "lease without a name": (["--leader-elect-resource-name="], "--leader-elect-resource-name must not be empty"),
    "negative period": (["--schedule-period=-1s"], "--schedule-period"),
    "told about bound pods": (["--scheduled-events=none"], "expected auto, pods or podgroups"),
    "log format nobody knows": (["--log-format=xml"], "expected text or json"),
}


@pytest.mark.parametrize(("arguments", "want"), INVALID.values(), ids=INVALID.keys())
def test_settings_that_cannot_work_are_refused_in_one_line(arguments: list[str], want: str) -> None:
    with pytest.raises(FlagError) as refused:
        parse(*arguments).check()
    assert want in str(refused.value)
    assert "\n" not in str(refused.value)


def test_election_settings_are_not_judged_when_election_is_off() -> None:
    parse("--leader-elect=false", "--leader-elect-resource-name=").check()


def test_gates_have_documented_defaults_and_can_be_switched() -> None:
    options = parse("--feature-gates=CSIStorage=true,PriorityClass=false")
    assert options.gate("CSIStorage")
    assert not options.watches_priority_classes
    assert options.gate("WorkLoadSupport")
    assert not options.gate("SchedulingGatesQueueAdmission")
    assert not options.gate("NobodyKnowsThis")


@pytest.mark.parametrize(("mode", "want"), [("none", False), ("hard", True), ("soft", True), ("typo", False)])
def test_unknown_sharding_modes_behave_as_none(mode: str, want: bool) -> None:
    assert parse(f"--scheduler-sharding-mode={mode}").shards is want


BATCHES = {"unset": (None, 1), "number": ("8", 8), "zero": ("0", 1), "negative": ("-3", 1), "word": ("many", 1)}


@pytest.mark.parametrize(("value", "want"), BATCHES.values(), ids=BATCHES.keys())
def test_unusable_bind_batch_means_one(value: str | None, want: int) -> None:
    environ = {} if value is None else {"BATCH_BIND_NUM": value}
    assert Environment.read(environ).bind_batch == want


def test_partitioning_needs_exactly_true() -> None:
    assert Partition.read({"MULTI_SCHEDULER_ENABLE": "True", "SCHEDULER_POD_NAME": "s-0"}) is None


def test_partition_members_follow_the_own_pod_name() -> None:
    partition = Partition.read(
        {"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_POD_NAME": "vol-sched-1", "SCHEDULER_NUM": "3"}
    )
    assert partition == Partition("vol-sched-1", ("vol-sched-0", "vol-sched-1", "vol-sched-2"))


def test_partitioning_without_an_ordinal_is_refused_by_name() -> None:
    with pytest.raises(FlagError, match='SCHEDULER_POD_NAME is "scheduler"'):
        Partition.read({"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_POD_NAME": "scheduler"})
