"""Counts and sources at work: spec 03 sections 8.1 to 8.5."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import yaml

from stromboli.api import kinds, names
from stromboli.api.phases import MemberType
from stromboli.controllers.hypernode import sources
from stromboli.controllers.hypernode.configuration import SourceSettings
from stromboli.controllers.hypernode.controller import HyperNodeController
from stromboli.controllers.hypernode.picturing import Change, Create, Delete, Painter, plan
from stromboli.controllers.hypernode.topologies import Discovered, Publish
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from tests.controllers.hypernode.fake_ufm import PASSWORD, USER, fake_ufm, port
from tests.controllers.stage import Stage, stage

SYSTEM, CONFIG_MAP = "volcano-system", "volcano-controller-configmap"
SOURCE = names.NETWORK_TOPOLOGY_SOURCE


@asynccontextmanager
async def hyper_nodes(*started: JsonObject, nodes: int = 0) -> AsyncIterator[Stage]:
    async with stage(start=False) as scene:
        for number in range(nodes):
            put_node(scene, f"n{number}", tor=f"s{number // 2}")
        for one in started:
            scene.server.put(kinds.HYPER_NODES, one)
        await scene.run(lambda informers: HyperNodeController(scene.client, informers, scene.events))
        yield scene


def put_node(scene: Stage, name: str, **labels: str) -> None:
    scene.server.put(kinds.NODES, {"metadata": {"name": name, "labels": labels}})


def hyper_node(name: str, *members: JsonObject, source: str = "") -> JsonObject:
    labels = {SOURCE: source} if source else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"tier": 1, "members": list(members)}}


def member(**selector: object) -> JsonObject:
    return {"type": "Node", "selector": selector}


def configure(scene: Stage, *entries: JsonObject) -> None:
    text = yaml.safe_dump({"networkTopologyDiscovery": list(entries)})
    meta = {"name": CONFIG_MAP, "namespace": SYSTEM}
    scene.server.put(kinds.CONFIG_MAPS, {"metadata": meta, "data": {names.CONTROLLER_CONFIG_KEY: text}})


def label_source(*keys: str) -> JsonObject:
    types = {"topo": [{"nodeLabel": key} for key in (*keys, "kubernetes.io/hostname")]}
    return {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}


def counted(scene: Stage, name: str) -> int | None:
    found: int | None = (scene.server.get(kinds.HYPER_NODES, name).get("status") or {}).get("nodeCount")
    return found


def shown(scene: Stage) -> dict[str, list[str]]:
    """Members by the value of the label that a discovered HyperNode stands for."""
    found: dict[str, list[str]] = {}
    for one in scene.server.objects(kinds.HYPER_NODES):
        if one["metadata"]["labels"].get(SOURCE) == "label":
            value = next(value for key, value in one["metadata"]["labels"].items() if key != SOURCE)
            found[value] = [each["selector"]["exactMatch"]["name"] for each in one["spec"]["members"]]
    return found


def writes(scene: Stage) -> int:
    return sum(scene.server.count(verb, kinds.HYPER_NODES) for verb in ("create", "update", "patch", "delete"))


# -- counting ----------------------------------------------------------------------------------------------------------


async def test_counts_follow_nodes_and_members() -> None:
    """Defect 18 of spec 03 section 13: a new node was not counted until the HyperNode changed."""
    async with hyper_nodes(hyper_node("h", member(regexMatch={"pattern": "^n"})), nodes=2) as scene:
        await scene.until(lambda: counted(scene, "h") == 2)
        put_node(scene, "n9")
        await scene.until(lambda: counted(scene, "h") == 3)
        scene.server.remove(kinds.NODES, "n0")
        await scene.until(lambda: counted(scene, "h") == 2)
        scene.server.put(kinds.HYPER_NODES, hyper_node("h", member(labelMatch={"matchLabels": {"zone": "z"}})))
        await scene.until(lambda: counted(scene, "h") == 0)
        put_node(scene, "n9", zone="z")
        await scene.until(lambda: counted(scene, "h") == 1)


async def test_a_right_count_is_not_written() -> None:
    right = {**hyper_node("right", member(exactMatch={"name": "x"})), "status": {"nodeCount": 1}}
    async with hyper_nodes(right, hyper_node("wrong", member(exactMatch={"name": "x"}))) as scene:
        await scene.until(lambda: counted(scene, "wrong") == 1)
        assert writes(scene) == 1


async def test_a_hyper_node_that_makes_no_sense_stops_no_other() -> None:
    odd = {"metadata": {"name": "a"}, "spec": {"tier": "high", "members": "none"}}
    async with hyper_nodes(odd, hyper_node("b", member(exactMatch={"name": "x"}))) as scene:
        await scene.until(lambda: counted(scene, "b") == 1)


# -- pictures ----------------------------------------------------------------------------------------------------------


def leaf(name: str, *nodes: str) -> Discovered:
    return Discovered(name, 1, MemberType.NODE, nodes)


async def test_a_picture_is_made_true_and_others_are_left_alone() -> None:
    async with stage(start=False) as scene:
        for name, source in (("existing-1", "ufm"), ("existing-2", "ufm"), ("existing-3", "roce"), ("by-hand", "")):
            scene.server.put(kinds.HYPER_NODES, hyper_node(name, member(exactMatch={"name": "old"}), source=source))
        painter = Painter(scene.client)
        assert await painter.paint("ufm", [leaf("existing-1", "new"), leaf("new", "n")])
        names_now = [json.key_of(one)[1] for one in scene.server.objects(kinds.HYPER_NODES)]
        assert sorted(names_now) == ["by-hand", "existing-1", "existing-3", "new"]
        changed = scene.server.get(kinds.HYPER_NODES, "existing-1")
        assert changed["spec"]["members"] == [{"type": "Node", "selector": {"exactMatch": {"name": "new"}}}]
        assert await painter.paint("ufm", [])
        names_now = [json.key_of(one)[1] for one in scene.server.objects(kinds.HYPER_NODES)]
        assert sorted(names_now) == ["by-hand", "existing-3"]


def test_what_is_there_already_is_not_written_and_what_others_added_stays() -> None:
    """Defect 19 of spec 03 section 13: each result set the count to 0."""
    stored = hyper_node("h", source="ufm")
    stored["metadata"]["labels"]["theirs"] = "x"
    stored |= {"spec": leaf("h", "n").spec(), "status": {"nodeCount": 7}}
    assert list(plan("ufm", [leaf("h", "n")], [stored])) == []
    [change] = plan("ufm", [leaf("h", "m")], [stored])
    assert isinstance(change, Change)
    assert change.patch.keys() == {"spec", "metadata"}
    assert change.patch["metadata"] == {"uid": ""}


def test_a_plan_names_identities() -> None:
    stored = hyper_node("gone", source="ufm")
    stored["metadata"]["uid"] = "the-uid"
    assert [type(one) for one in plan("ufm", [leaf("h", "n")], [stored])] == [Create, Delete]
    assert list(plan("ufm", [leaf("h", "n")], [stored]))[1] == Delete("gone", "the-uid")


async def test_one_that_cannot_be_written_does_not_keep_the_others() -> None:
    async with stage(start=False) as scene:
        scene.server.put(kinds.HYPER_NODES, hyper_node("taken"))
        assert not await Painter(scene.client).paint("ufm", [leaf("taken", "n"), leaf("free", "n")])
        assert scene.server.get(kinds.HYPER_NODES, "free")


# -- sources -----------------------------------------------------------------------------------------------------------


async def test_labels_become_hyper_nodes_with_counts() -> None:
    async with hyper_nodes(nodes=4) as scene:
        configure(scene, label_source("tor"))
        await scene.until(lambda: shown(scene) == {"s0": ["n0", "n1"], "s1": ["n2", "n3"]})
        await scene.until(lambda: all((one.get("status") or {}).get("nodeCount") == 2
                                      for one in scene.server.objects(kinds.HYPER_NODES)))  # fmt: skip


async def test_labels_are_followed() -> None:
    async with hyper_nodes(nodes=4) as scene:
        configure(scene, label_source("tor"))
        await scene.until(lambda: len(shown(scene)) == 2)
        before = {json.key_of(one)[1] for one in scene.server.objects(kinds.HYPER_NODES)}
        put_node(scene, "n0", tor="s9")
        await scene.until(lambda: shown(scene) == {"s0": ["n1"], "s1": ["n2", "n3"], "s9": ["n0"]})
        assert before < {json.key_of(one)[1] for one in scene.server.objects(kinds.HYPER_NODES)}, "names are kept"
        scene.server.remove(kinds.NODES, "n0")
        await scene.until(lambda: "s9" not in shown(scene))


async def test_a_deleted_hyper_node_comes_back() -> None:
    async with hyper_nodes(nodes=2) as scene:
        configure(scene, label_source("tor"))
        await scene.until(lambda: shown(scene) == {"s0": ["n0", "n1"]})
        [one] = scene.server.objects(kinds.HYPER_NODES)
        scene.server.remove(kinds.HYPER_NODES, one["metadata"]["name"])
        await scene.until(lambda: shown(scene) == {"s0": ["n0", "n1"]})


async def test_a_failed_look_is_not_the_last() -> None:
    """Defect 20 of spec 03 section 13: discovery waited for ever after a failure."""
    async with hyper_nodes(nodes=2) as scene:
        fault = scene.server.faults.fail(500, verb="create", kind=kinds.HYPER_NODES)
        configure(scene, label_source("tor"))
        await scene.until(lambda: fault.hits)
        put_node(scene, "n2", tor="s1")
        await scene.until(lambda: len(shown(scene)) == 2)


async def test_disabling_a_source_leaves_what_it_made_and_stops_it() -> None:
    async with hyper_nodes(nodes=2) as scene:
        configure(scene, label_source("tor"))
        await scene.until(lambda: len(shown(scene)) == 1)
        configure(scene, {**label_source("tor"), "enabled": False}, label_source("rack"))
        scene.server.put(kinds.NODES, {"metadata": {"name": "r", "labels": {"rack": "r1"}}})
        await scene.until(lambda: list(shown(scene)) == ["r1"])


async def test_a_fabric_becomes_hyper_nodes() -> None:
    async with fake_ufm(port("leaf0", "n0"), port("leaf1", "n1")) as fake, hyper_nodes() as scene:
        data = {"username": USER, "password": PASSWORD}
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        reference = {"name": "ufm", "namespace": SYSTEM}
        entry = {"source": "ufm", "enabled": True, "config": {"endpoint": fake.url},
                 "credentials": {"secretRef": reference}}  # fmt: skip
        configure(scene, entry)
        await scene.until(lambda: scene.server.count("get", kinds.SECRETS) > 1)
        assert fake.asked == 0, "the secret is not there yet"
        scene.server.put(kinds.SECRETS, {"metadata": reference, "data": encoded})
        await scene.until(lambda: len(scene.server.objects(kinds.HYPER_NODES)) == 3)
        await scene.until(lambda: counted(scene, "spine-hn") == 2)


async def test_sources_that_cannot_start_do_not_keep_the_others() -> None:
    """Defect 20 of spec 03 section 13 among them: a UFM without endpoint."""
    async with hyper_nodes(nodes=2) as scene:
        configure(scene, {"source": "roce", "enabled": True}, {"source": "ufm", "enabled": True}, label_source("tor"))
        await scene.until(lambda: len(shown(scene)) == 1)


async def test_a_configuration_that_cannot_be_read_changes_nothing() -> None:
    async with hyper_nodes(nodes=2) as scene:
        configure(scene, label_source("tor"))
        await scene.until(lambda: len(shown(scene)) == 1)
        meta = {"name": CONFIG_MAP, "namespace": SYSTEM}
        scene.server.put(kinds.CONFIG_MAPS, {"metadata": meta, "data": {names.CONTROLLER_CONFIG_KEY: "a: ["}})
        put_node(scene, "n2", tor="s1")
        await scene.until(lambda: len(shown(scene)) == 2)


async def test_another_source_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed:
        async def run(self, publish: Publish) -> None:
            found: Sequence[Discovered] = [leaf("fixed", "n0")]
            await publish(found)
            raise RuntimeError("a source that fails is isolated")

    async def make(_settings: SourceSettings, _around: sources.Surroundings) -> Fixed:
        return Fixed()

    monkeypatch.setitem(sources.SOURCES, "fixed", make)
    async with hyper_nodes(nodes=2) as scene:
        configure(scene, {"source": "fixed", "enabled": True}, label_source("tor"))
        await scene.until(lambda: len(scene.server.objects(kinds.HYPER_NODES)) == 2)


async def test_nothing_is_written_when_nothing_changed() -> None:
    async with hyper_nodes(nodes=4) as scene:
        configure(scene, label_source("tor"))
        await scene.until(lambda: len(shown(scene)) == 2)
        await scene.until(lambda: all("status" in one for one in scene.server.objects(kinds.HYPER_NODES)))
        await scene.stop()
        before, lists = writes(scene), scene.server.count("list", kinds.HYPER_NODES)
        await scene.run(lambda informers: HyperNodeController(scene.client, informers, scene.events))
        await scene.until(lambda: scene.server.count("list", kinds.HYPER_NODES) >= lists + 3)
        put_node(scene, "n4", tor="s2")
        await scene.until(lambda: shown(scene).get("s2") == ["n4"])
        await scene.until(lambda: all("status" in one for one in scene.server.objects(kinds.HYPER_NODES)))
        assert writes(scene) == before + 2, "the new one, and its count"
