"""Taints of devices: what their driver and rules of administrators put on them (gate ``DRADeviceTaints``).

A device with a NoSchedule or NoExecute taint goes only to requests that tolerate it. Evicting pods whose device is
tainted is the work of kube-controller-manager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from stromboli.scheduler.plugins.dra.expressions import SelectorError, matches
from stromboli.scheduler.plugins.tainting import REPELLING, tolerates

if TYPE_CHECKING:
    from stromboli.api import core
    from stromboli.scheduler.plugins.dra.taking import DeviceId

Classes: TypeAlias = "Callable[[str], core.DeviceClass | None]"
Taints: TypeAlias = "tuple[core.Taint, ...]"


class TaintRules:
    """The rules of a cluster."""

    def __init__(self, rules: Iterable[core.DeviceTaintRule], classes: Classes) -> None:
        self._rules = sorted(rules, key=lambda rule: rule.name)
        self._classes = classes

    def taints(self, id_: DeviceId, device: core.Device) -> Taints:
        """All taints of a device that keep requests away."""
        imposed = (rule.spec.taint for rule in self._rules if self._concerns(rule, id_, device))
        return tuple(taint for taint in (*device.taints, *imposed) if taint.effect in REPELLING)

    def _concerns(self, rule: core.DeviceTaintRule, id_: DeviceId, device: core.Device) -> bool:
        wanted = rule.spec.device_selector
        if wanted is None:
            return False
        named = ((wanted.driver, id_.driver), (wanted.pool, id_.pool), (wanted.device, id_.name))
        if any(name is not None and name != own for name, own in named):
            return False
        selectors = wanted.selectors
        if wanted.device_class_name is not None:
            class_ = self._classes(wanted.device_class_name)
            if class_ is None:
                return False
            selectors = (*class_.spec.selectors, *selectors)
        return all(_satisfies(selector, id_, device) for selector in selectors)


def _satisfies(selector: core.DeviceSelector, id_: DeviceId, device: core.Device) -> bool:
    """An expression that fails does not select the device."""
    try:
        return selector.cel is not None and matches(selector.cel.expression, id_.driver, device)
    except SelectorError:
        return False


def is_tolerated(taints: Taints, tolerations: Sequence[core.Toleration]) -> bool:
    """Whether a request with these tolerations may have a device with these taints."""
    return all(tolerates(tolerations, taint) for taint in taints)
