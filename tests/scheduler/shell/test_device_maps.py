"""Config maps of the deviceshare plugin: which are watched, and that cycles wait for them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stromboli.api import core, kinds
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.device_maps import Selection, selections
from stromboli.testing.builders import node
from tests.scheduler.shell.stage import Stage, gang

REPORTS = Selection("mindx-dl", label_selector="mx-consumer-volcano=true")
CONFIGURATION = Selection("kube-system", field_selector="metadata.name=volcano-vgpu-device-config")


def policy(configurations: tuple[tuple[str, Mapping[str, object]], ...] = (), **arguments: object) -> Policy:
    given = {f"deviceshare.{key}": value for key, value in arguments.items()}
    tier = (PluginOption("gang"), PluginOption("deviceshare", arguments=given))
    return Policy(("enqueue", "allocate"), (tier,), configurations)


WATCHED = {
    "nothing without the plugin": (Policy((), ()), ()),
    "nothing while every device is off": (policy(), ()),
    "the configuration for cards": (policy(VGPUEnable=True), (CONFIGURATION,)),
    "the configuration that is named": (
        policy(AscendHAMiVNPUEnable=True, KnownGeometriesCMName="mine", KnownGeometriesCMNamespace="here"),
        (Selection("here", field_selector="metadata.name=mine"),),
    ),
    "reports of agents": (policy(AscendMindClusterVNPUEnable=True), (REPORTS,)),
    "reports of each node's agent": (
        policy((("init-params", {"useClusterInfoManager": "false"}),), AscendMindClusterVNPUEnable=True),
        (Selection(label_selector="mx-consumer-cim=true"),),
    ),
    "both": (policy(VGPUEnable=True, AscendMindClusterVNPUEnable=True), (CONFIGURATION, REPORTS)),
    "nothing with arguments that cannot be used": (policy(VGPUEnable=True, GPUNumberEnable=True), ()),
}


@pytest.mark.parametrize("name", WATCHED)
def test_what_a_policy_asks_for(name: str) -> None:
    given, want = WATCHED[name]
    assert selections(given) == want


def put_map(stage: Stage, name: str = "volcano-vgpu-device-config", text: str = "nvidia: {}") -> None:
    meta = core.ObjectMeta(name=name, namespace="kube-system")
    found = core.ConfigMap(metadata=meta, data={"device-config.yaml": text})
    stage.server.put(kinds.CONFIG_MAPS, dict(core.to_builtins(found, kinds.CONFIG_MAPS)))


def known(stage: Stage) -> dict[str, str]:
    assert stage.scheduler is not None
    maps = stage.scheduler.mirror.objects.all(core.ConfigMap)
    return {name: found.data["device-config.yaml"] for (_, name), found in maps.items()}


async def test_the_configuration_is_known_before_the_first_cycle_and_followed(stage: Stage) -> None:
    put_map(stage)
    put_map(stage, "of-somebody-else")
    stage.policies.current = policy(VGPUEnable=True)
    held = stage.server.faults.hold(verb="list", kind=kinds.CONFIG_MAPS)
    stage.put(node("n0").offer(cpu=4), *gang("job", 1))
    scheduler = await stage.start()
    await stage.until(lambda: held.hits, "listing")
    assert stage.binds() == {}
    held.release()
    await stage.until(lambda: stage.bound("job") == 1)
    assert scheduler.cycles >= 1
    assert known(stage) == {"volcano-vgpu-device-config": "nvidia: {}"}
    put_map(stage, text="vnpus: []")
    await stage.until(lambda: known(stage) == {"volcano-vgpu-device-config": "vnpus: []"}, "the change")


async def test_a_policy_that_does_without_leaves_nothing_behind(stage: Stage) -> None:
    put_map(stage)
    stage.policies.current = policy(VGPUEnable=True)
    await stage.start()
    await stage.until(lambda: known(stage), "the configuration")
    stage.policies.current = policy()
    await stage.until(lambda: not known(stage), "nothing left")
    stage.policies.current = policy(VGPUEnable=True)
    await stage.until(lambda: known(stage), "the configuration again")
