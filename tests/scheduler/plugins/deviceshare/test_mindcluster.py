"""Ascend chips under MindCluster: which nodes have some, what pods get of them, and what is written."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.plugins.deviceshare.families import Share
from stromboli.scheduler.plugins.deviceshare.mindcluster import scores
from stromboli.scheduler.plugins.deviceshare.mindcluster_chips import (
    HIGH,
    LOW,
    NO,
    NULL,
    TEMPLATES,
    YES,
    Chip,
    Holder,
    template_for,
)
from stromboli.testing.builders import pod
from tests.scheduler.core.worlds import NOW, run_cycle
from tests.scheduler.plugins.deviceshare.stage import (
    asking,
    cluster,
    devices_policy,
    member,
    opened,
    roomy,
    with_capacity,
    written,
)
from tests.scheduler.plugins.sessions import allowed_rows

ON = {"AscendMindClusterVNPUEnable": True}
CORE = "huawei.com/npu-core"
NOT_ENOUGH = {"n1": ["not enough npu resource"]}
CHIP_NAME = "node.kubernetes.io/npu.chip.name"
LABELS = {
    "accelerator": "huawei-Ascend310P",
    "servertype": "Ascend310P-8-dual",
    CHIP_NAME: "310P3",
}


def chips_node(
    name: str = "n1", chips: int = 2, *, labels: Mapping[str, str] = LABELS, base: str | None = None
) -> core.Node:
    known = json.dumps({f"Ascend310P-{index}": {} for index in range(chips)}) if base is None else base
    builder = roomy(name, **{CORE: 8 * chips}).label(**labels)
    return with_capacity(builder.annotate(baseDeviceInfos=known))


def reported(lists: Mapping[str, str] | None = None, name: str = "n1") -> core.ConfigMap:
    given = {"huawei.com/Ascend310P": "Ascend310P-0,Ascend310P-1", **(lists or {})}
    data = json.dumps({f"mindx-dl-deviceinfo-{name}": {"DeviceList": given, "UpdateTime": 1}})
    return config_map("cluster-info-device-0", "mindx-dl", data=data)


def config_map(
    name: str, namespace: str, *, label: str = "mx-consumer-volcano", key: str = "", data: str
) -> core.ConfigMap:
    meta = core.ObjectMeta(name=name, namespace=namespace, labels={label: "true"})
    return core.ConfigMap(metadata=meta, data={key or name: data})


def wanting(name: str, cores: int, *, level: str = "", dvpp: str = "", **annotations: str) -> core.Pod:
    labels = {"ring-controller.atlas": "ascend-310P", "vnpu-level": level, "vnpu-dvpp": dvpp}
    builder = member(name, **annotations).label(**{key: value for key, value in labels.items() if value})
    return asking(builder, {CORE: cores})


def running(name: str, chips: str, real: str = "Ascend310P-2c-105-0_1") -> core.Pod:
    annotations = {CORE: chips, **({"huawei.com/AscendReal": real} if real else {})}
    return asking(pod(name).annotate(**annotations).on("n1"), {CORE: 1})


def refusals(*given: core.Object) -> dict[str, list[str]]:
    return opened(cluster(*given), **ON).refusals("p")


# -- templates -----------------------------------------------------------------------------------------------------

CHOSEN = {
    "one core": (1, LOW, NULL, "vir01"),
    "two cores, low": (2, LOW, YES, "vir02_1c"),
    "two cores, high": (2, HIGH, NULL, "vir02"),
    "four cores, low": (4, LOW, NULL, "vir04_3c"),
    "four cores, high": (4, HIGH, NULL, "vir04"),
    "four cores without image processor": (4, HIGH, NO, "vir04_3c_ndvpp"),
    "four cores with image processor": (4, LOW, YES, "vir04_4c_dvpp"),
    "three cores": (3, LOW, NULL, None),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_template_follows_from_cores_level_and_image_processor(name: str) -> None:
    cores, level, dvpp, want = CHOSEN[name]
    found = template_for(cores, level, dvpp)
    assert (found.name if found else None) == want


def chip_with(*templates: str, groups: bool = True) -> Chip:
    chip = Chip(0, 8, 7)
    for number, name in enumerate(templates):
        template = TEMPLATES[name]
        share = Share("0", name, template.cpus, template.cores)
        chip.holders[f"u{number}"] = Holder(share, group=str(number) if groups else "")
    return chip


TAKES = {
    "an idle chip": ([], "vir04", True),
    "not enough cores": (["vir04", "vir04_3c"], "vir01", False),
    "three groups leave no room for four cores": (["vir01", "vir01", "vir01"], "vir04", False),
    "three groups leave room for two cores": (["vir01", "vir01", "vir01"], "vir02", True),
    "four groups leave room for one core only": (["vir01", "vir01", "vir01", "vir01"], "vir02", False),
    "the image processor is free": ([], "vir04_4c_dvpp", True),
    "the image processor is taken": (["vir04_4c_dvpp"], "vir04_4c_dvpp", False),
    "a slice that shares it comes too late": (["vir04_4c_dvpp"], "vir02", False),
    "a slice without it": (["vir04_4c_dvpp"], "vir04_3c_ndvpp", True),
    "it is shared already": (["vir02"], "vir04_4c_dvpp", False),
}


@pytest.mark.parametrize("name", TAKES)
def test_which_slices_a_chip_takes(name: str) -> None:
    templates, wanted, takes = TAKES[name]
    assert chip_with(*templates).takes_slice(TEMPLATES[wanted]) is takes


def test_a_chip_whose_device_is_being_made_takes_no_slice() -> None:
    chip = Chip(0, 8, 7)
    chip.holders["u"] = Holder(Share("0", "vir01", 1, 1), is_made=False)
    assert not chip.takes_slice(TEMPLATES["vir01"])


@given(names=st.lists(st.sampled_from(sorted(TEMPLATES)), max_size=10))
def test_slices_never_exceed_the_chip(names: list[str]) -> None:
    chip = Chip(0, 8, 7)
    for number, name in enumerate(names):
        template = TEMPLATES[name]
        if chip.takes_slice(template):
            chip.holders[str(number)] = Holder(Share("0", name, template.cpus, template.cores), group=str(number))
    assert chip.free_cores >= 0
    assert chip.free_cpus >= 0
    assert sum(holder.share.type == "vir04_4c_dvpp" for holder in chip.holders.values()) <= 1


# -- nodes ---------------------------------------------------------------------------------------------------------

INVALID: dict[str, tuple[dict[str, str | None], str | None]] = {
    "no accelerator": ({"accelerator": ""}, None),
    "an unknown chip": ({"accelerator": "huawei-Ascend999", CHIP_NAME: "999"}, None),
    "no cores in the server type": ({"servertype": "Ascend310P-dual"}, None),
    "cores that do not divide": ({"servertype": "Ascend310P-10-dual"}, None),
    "no name of the chip": ({CHIP_NAME: None}, None),
    "no base devices": ({}, ""),
    "base devices that cannot be read": ({}, "["),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_is_no_node_for_virtual_devices_is_left_to_the_resource_check(name: str) -> None:
    changed, base = INVALID[name]
    labels = {key: value for key, value in {**LABELS, **changed}.items() if value is not None}
    assert refusals(chips_node(labels=labels, base=base), reported(), wanting("p", 3)) == {}


def test_a_node_by_the_name_of_its_chip() -> None:
    labels = {
        **LABELS,
        "servertype": "910B3-20",
        "accelerator": "huawei-Ascend910",
        CHIP_NAME: "910B3",
    }
    node = with_capacity(
        roomy("n1", **{CORE: 40}).label(**labels).annotate(baseDeviceInfos='{"Ascend910-0": 1, "Ascend910-1": 1}')
    )
    assert refusals(node, wanting("p", 3)) == {"n1": ["3 AI cores are neither whole chips of 20 nor a vNPU template"]}


NEITHER = "AI cores are neither whole chips of 8 nor a vNPU template"
ODD = {"n1": [f"3 {NEITHER}"]}
REFUSED: dict[str, tuple[list[core.Object], core.Pod, dict[str, list[str]]]] = {
    "a slice": ([], wanting("p", 2), {}),
    "whole chips": ([], wanting("p", 16), {}),
    "more whole chips than there are": ([], wanting("p", 24), NOT_ENOUGH),
    "a whole chip where all are cut": ([running("a", "0-vir01"), running("b", "1-vir01")], wanting("p", 8), NOT_ENOUGH),
    "a slice where all are taken whole": ([running("a", "0,1")], wanting("p", 1), NOT_ENOUGH),
    "a chip of another scheme": (
        [asking(pod("a").annotate(**{"huawei.com/Ascend310P": "Ascend310P-0"}).on("n1"), {"cpu": 1})],
        wanting("p", 16),
        NOT_ENOUGH,
    ),
    "an odd number of cores": ([], wanting("p", 3), ODD),
    "no cores": ([], wanting("p", 0), {"n1": [f"0 {NEITHER}"]}),
    "a bad label": ([], wanting("p", 4, dvpp="maybe"), {"n1": ["err dvpp value:maybe"]}),
    "another template while devices are being made": (
        [running("a", "0-vir02", real="")],
        wanting("p", 1),
        {"n1": ["another vNPU template is being created"]},
    ),
    "a smaller slice that is also being made, where the one asked for does not fit": (
        [running("a", "0-vir04_3c", real=""), running("b", "1-vir04")],
        wanting("p", 4, level="high"),
        {},
    ),
    "a smaller slice while another is being made, where the one asked for does not fit": (
        [running("a", "0-vir04", real=""), running("b", "1-vir04")],
        wanting("p", 4, level="high"),
        {"n1": ["another vNPU template is being created"]},
    ),
    "a slice for which there is no room while another is being made": (
        [running("a", "0-vir02", real=""), running("b", "1")],
        wanting("p", 1),
        NOT_ENOUGH,
    ),
    "the same template while devices are being made": ([running("a", "0-vir01", real="")], wanting("p", 1), {}),
    "whole chips while devices are being made": ([running("a", "0-vir01", real="")], wanting("p", 8), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_node_takes(name: str) -> None:
    given, asked, want = REFUSED[name]
    assert refusals(chips_node(), reported(), *given, asked) == want


SICK = {
    "unhealthy": {"huawei.com/Ascend310P-Unhealthy": "Ascend310P-1"},
    "recovering": {"huawei.com/Ascend310P-Recovering": "Ascend310P-1"},
}


@pytest.mark.parametrize("name", SICK)
def test_sick_chips_are_not_given_out(name: str) -> None:
    assert refusals(chips_node(), reported(SICK[name]), wanting("p", 16)) == NOT_ENOUGH
    assert refusals(chips_node(), reported(SICK[name]), wanting("p", 8)) == {}


def test_pods_that_differ_in_labels_alone_are_told_apart_from_the_first_cycle_on() -> None:
    stranger = asking(member("r"), {CORE: 8})
    session = opened(cluster(chips_node(), reported(), wanting("p", 8, dvpp="odd"), wanting("q", 8), stranger), **ON)
    assert [allowed_rows(session, name) for name in ("p", "q", "r")] == [set(), {"n1"}, {"n1"}]
    session.place("r", "n1")
    assert allowed_rows(session, "q") == {"n1"}, "who does not ask the family for chips gets none"


def test_a_node_that_is_to_be_separated_takes_nothing() -> None:
    state = config_map(
        "cluster-info-node-cm", "mindx-dl", data='{"mindx-dl-nodeinfo-n1": {"NodeStatus": "PreSeparate"}}'
    )
    assert refusals(chips_node(), reported(), state, wanting("p", 1)) == {"n1": ["preCheckNodePredicate failure"]}


def test_reports_of_agents_and_lists_kept_elsewhere() -> None:
    lists = {"DeviceInfo": {"DeviceList": {"huawei.com/Ascend310P": "Ascend310P-1"}}}
    label = "mx-consumer-cim"
    devices = config_map(
        "mindx-dl-deviceinfo-n1", "kube-system", label=label, key="DeviceInfoCfg", data=json.dumps(lists)
    )
    state = config_map(
        "mindx-dl-nodeinfo-n1", "mindx-dl", label=label, key="NodeInfo", data='{"NodeInfo": {"NodeStatus": "Healthy"}}'
    )
    plan = devices_policy(**ON)
    entry = ("init-params", {"useClusterInfoManager": "false", "self-maintain-available-card": False})
    plan = type(plan)(plan.actions, plan.tiers, (entry,))
    mirror = cluster(chips_node(base=""), devices, state, wanting("p", 8), wanting("q", 8))
    assert {bind.task.name: written(bind, CORE) for bind in run_cycle(mirror, plan).binds} == {"p": "1"}


def test_a_report_that_cannot_be_read_is_named() -> None:
    broken = config_map("cluster-info-device-0", "mindx-dl", data="[]")
    session = opened(cluster(chips_node(), broken, wanting("p", 8)), **ON)
    assert session.view.warnings == ["ConfigMap mindx-dl/cluster-info-device-0: it is ignored: it holds no JSON object"]


# -- what is written -----------------------------------------------------------------------------------------------


def bound(mirror: Mirror) -> dict[str, str]:
    return {bind.task.name: written(bind, CORE) for bind in run_cycle(mirror, devices_policy(**ON)).binds}


def test_slices_and_whole_chips_are_written_differently() -> None:
    mirror = cluster(chips_node(chips=3), reported(), wanting("p", 4, level="high"), wanting("q", 16))
    result = run_cycle(mirror, devices_policy(**ON))
    assert {bind.task.name: written(bind, CORE) for bind in result.binds} == {"p": "0-vir04", "q": "1,2"}
    assert written(result.binds[0], "predicate-time") == str(int(NOW * 10**9))


def test_pods_of_one_cycle_get_different_chips() -> None:
    mirror = cluster(chips_node(), reported(), *(wanting(f"p{n}", 1) for n in range(3)))
    assert bound(mirror) == {"p0": "0-vir01", "p1": "1-vir01"}
    assert opened(mirror, **ON).refusals("p2") == NOT_ENOUGH


def test_the_fullest_chip_is_cut_first() -> None:
    mirror = cluster(chips_node(), reported(), running("a", "1-vir01"), wanting("p", 1))
    assert bound(mirror) == {"p": "1-vir01"}


def test_a_smaller_slice_is_taken_where_the_one_asked_for_does_not_fit() -> None:
    mirror = cluster(
        chips_node(chips=1),
        reported(),
        running("a", "0-vir04"),
        wanting("p", 4, level="high"),
    )
    assert bound(mirror) == {"p": "0-vir04_3c"}


# -- score ---------------------------------------------------------------------------------------------------------

WALKS = {
    "nobody downgrades: the fullest node": ([5.0, 3.0, 9.0], [0.0, 8.0, 0.0]),
    "everybody downgrades": ([-6.0, -4.0], [8.0, 8.0]),
    "up to the first that does not": ([-2.0, 3.0, 4.0, -6.0], [8.0, 16.0, 0.0, 0.0]),
    "nodes without chips": ([np.nan, 3.0], [0.0, 8.0]),
    "no node with chips": ([np.nan], [0.0]),
}


@pytest.mark.parametrize("name", WALKS)
def test_scores_follow_the_walk_over_nodes(name: str) -> None:
    found, want = WALKS[name]
    assert scores(np.array(found)).tolist() == want


def test_the_fullest_node_is_preferred() -> None:
    reports = reported()
    data = {**json.loads(reports.data["cluster-info-device-0"]), "mindx-dl-deviceinfo-n2": {"DeviceList": {}}}
    reports = msgspec.structs.replace(reports, data={"cluster-info-device-0": json.dumps(data)})
    mirror = cluster(chips_node(), chips_node("n2"), reports, running("a", "0-vir01"), wanting("p", 1))
    assert opened(mirror, ScheduleWeight=2, **ON).scores("p") == {"n1": 16.0, "n2": 0.0}
