"""Which optional parts of dynamic resource allocation are on: Kubernetes' own feature gates, with its defaults (spec 06
section 17).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.scheduler.core.view import View


@dataclass(frozen=True, slots=True)
class Features:
    """What is taken into account. Devices that need what is off are left out, claims that need it are refused."""

    alternatives: bool = True
    """``firstAvailable`` of requests."""
    admin_access: bool = True
    """Requests that look at devices whoever has them."""
    partitions: bool = False
    """Devices that share counters, and slices that leave it to each device from where it can be used."""
    shares: bool = False
    """Devices that several claims have at once, each with a part of the capacity."""
    taints: bool = False
    """Taints of devices, by their driver or by rules, and tolerations of requests."""


def features_of(view: View) -> Features:
    """What the feature gates of this scheduler say."""
    return Features(
        alternatives=view.feature("DRAPrioritizedList", True),
        admin_access=view.feature("DRAAdminAccess", True),
        partitions=view.feature("DRAPartitionableDevices", False),
        shares=view.feature("DRAConsumableCapacity", False),
        taints=view.feature("DRADeviceTaints", False),
    )
