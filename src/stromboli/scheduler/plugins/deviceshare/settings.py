"""The plugin's arguments (spec 06 section 29.1), read anew in every cycle."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import model_validator

from stromboli.scheduler.core import policy
from stromboli.scheduler.core.policy import Arguments
from stromboli.scheduler.plugins import arguments as checked
from stromboli.scheduler.plugins.deviceshare import exclusive
from stromboli.scheduler.plugins.deviceshare.exclusive import Rule

PREFIX = "deviceshare."
NAME = PREFIX + "KnownGeometriesCMName"
NAMESPACE = PREFIX + "KnownGeometriesCMNamespace"
SHARING, NUMBER, VGPU = PREFIX + "GPUSharingEnable", PREFIX + "GPUNumberEnable", PREFIX + "VGPUEnable"
HAMI, MINDCLUSTER = PREFIX + "AscendHAMiVNPUEnable", PREFIX + "AscendMindClusterVNPUEnable"
LOCK, POLICY, WEIGHT = PREFIX + "NodeLockEnable", PREFIX + "SchedulePolicy", PREFIX + "ScheduleWeight"
DEFAULT_NAME, DEFAULT_NAMESPACE = "volcano-vgpu-device-config", "kube-system"

BOTH_MODES = "can not define true in both gpu sharing and gpu number"
SHARE_AND_VGPU = "gpu-share and vgpu can't be used together"


@dataclass(frozen=True, slots=True)
class Settings:
    """Which families are on, and how cards are chosen."""

    sharing: bool = False
    number: bool = False
    vgpu: bool = False
    hami: bool = False
    mindcluster: bool = False
    lock: bool = False
    policy: str = ""
    """``binpack``, ``spread``; with anything else no card is better than another."""
    weight: int = 0
    map_name: str = DEFAULT_NAME
    map_namespace: str = DEFAULT_NAMESPACE
    rules: tuple[Rule, ...] = ()

    @classmethod
    def read(cls, arguments: Arguments) -> Settings:
        """The settings of a policy entry. Raises ValueError for what cannot be on at the same time."""
        settings = cls(
            sharing=policy.boolean(arguments, SHARING, False),
            number=policy.boolean(arguments, NUMBER, False),
            vgpu=policy.boolean(arguments, VGPU, False),
            hami=policy.boolean(arguments, HAMI, False),
            mindcluster=policy.boolean(arguments, MINDCLUSTER, False),
            lock=policy.boolean(arguments, LOCK, False),
            policy=policy.text(arguments, POLICY, ""),
            weight=policy.integer(arguments, WEIGHT, 0),
            map_name=policy.text(arguments, NAME, DEFAULT_NAME),
            map_namespace=policy.text(arguments, NAMESPACE, DEFAULT_NAMESPACE),
            rules=exclusive.rules_of(arguments),
        )
        if settings.sharing and settings.number:
            raise ValueError(BOTH_MODES)
        if (settings.sharing or settings.number) and settings.vgpu:
            raise ValueError(SHARE_AND_VGPU)
        return settings


_Typed = checked.model(
    "DeviceShareArguments",
    **{
        key.replace(".", "__"): kind
        for kind, keys in (
            (checked.Boolean, (SHARING, NUMBER, VGPU, HAMI, MINDCLUSTER, LOCK)),
            (checked.Text, (POLICY, NAME, NAMESPACE)),
            (checked.Integer, (WEIGHT,)),
        )
        for key in keys
    },
)


class DeviceShareArguments(_Typed):  # type: ignore[valid-type, misc]  # a model made of a table of names
    """What a policy file is held against when it is loaded."""

    @model_validator(mode="after")
    def _may_be_combined(self) -> DeviceShareArguments:
        Settings.read(self.model_dump(exclude_none=True))
        return self
