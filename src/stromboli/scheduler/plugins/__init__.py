"""The plugins that come with the scheduler, one module each; others are found through entry points."""

from __future__ import annotations

from stromboli.scheduler.core.plugin import Plugin, PluginTable
from stromboli.scheduler.plugins.binpack import Binpack
from stromboli.scheduler.plugins.capacity import Capacity
from stromboli.scheduler.plugins.cdp import CooldownProtection
from stromboli.scheduler.plugins.conformance import Conformance
from stromboli.scheduler.plugins.deviceshare import DeviceShare
from stromboli.scheduler.plugins.drf import Drf
from stromboli.scheduler.plugins.extender import Extender
from stromboli.scheduler.plugins.gang import Gang
from stromboli.scheduler.plugins.network_topology_aware import NetworkTopologyAware
from stromboli.scheduler.plugins.nodegroup import NodeGroup
from stromboli.scheduler.plugins.nodeorder import NodeOrder
from stromboli.scheduler.plugins.numaaware import NumaAware
from stromboli.scheduler.plugins.overcommit import Overcommit
from stromboli.scheduler.plugins.pdb import DisruptionBudgets
from stromboli.scheduler.plugins.predicates import Predicates
from stromboli.scheduler.plugins.priority import Priority
from stromboli.scheduler.plugins.proportion import Proportion
from stromboli.scheduler.plugins.rescheduling import Rescheduling
from stromboli.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit
from stromboli.scheduler.plugins.resourcequota import ResourceQuota
from stromboli.scheduler.plugins.sla import Sla
from stromboli.scheduler.plugins.task_topology import TaskTopologyPlugin
from stromboli.scheduler.plugins.tdm import TimeDivision
from stromboli.scheduler.plugins.usage import Usage

PLUGINS: tuple[type[Plugin], ...] = (
    Binpack,
    Capacity,
    Conformance,
    CooldownProtection,
    DeviceShare,
    DisruptionBudgets,
    Drf,
    Extender,
    Gang,
    NetworkTopologyAware,
    NodeGroup,
    NodeOrder,
    NumaAware,
    Overcommit,
    Predicates,
    Priority,
    Proportion,
    Rescheduling,
    ResourceQuota,
    ResourceStrategyFit,
    Sla,
    TaskTopologyPlugin,
    TimeDivision,
    Usage,
)


def built_in() -> PluginTable:
    """A new table of all plugins in this package."""
    table = PluginTable()
    for plugin in PLUGINS:
        table.add(plugin)
    return table
