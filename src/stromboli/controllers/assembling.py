"""Putting the enabled controllers together: which exist, what each needs, and running them side by side.

A controller that cannot start (its CRD is missing, say) is reported and tried again; the others do not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from stromboli.api import names
from stromboli.controllers import selection
from stromboli.controllers.colocation.controller import ColocationController
from stromboli.controllers.cronjob.controller import CronJobController
from stromboli.controllers.garbagecollector.controller import GarbageCollector
from stromboli.controllers.hypernode.controller import HyperNodeController
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.jobflow.controller import JobFlowController
from stromboli.controllers.jobtemplate.controller import JobTemplateController
from stromboli.controllers.metrics import ControllerMetrics
from stromboli.controllers.options import Options
from stromboli.controllers.podgroup.controller import PodGroupController
from stromboli.controllers.queue.controller import QueueController
from stromboli.controllers.reporting import Events
from stromboli.controllers.sharding.configuration import BadConfiguration, parse_flags
from stromboli.controllers.sharding.controller import ShardingController
from stromboli.kube.client import Client
from stromboli.kube.errors import NotSynced

log = logging.getLogger(__name__)


class Runnable(Protocol):
    """A controller, ready to work."""

    async def run(self) -> None:
        """Work until cancelled. Raises NotSynced when its caches do not fill."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What controllers are made of."""

    options: Options
    client: Client
    informers: SharedInformers
    events: Events
    metrics: ControllerMetrics


def _job(parts: Parts) -> Runnable | None:
    if not parts.options.gate("VolcanoJobSupport"):
        return None
    return JobController(
        parts.client,
        parts.informers,
        parts.events,
        parts.metrics,
        workers=parts.options.worker_threads,
        max_requeue=parts.options.max_requeue_num,
        consume_commands=parts.options.gate("QueueCommandSync"),
        priority_classes=parts.options.gate("PriorityClass"),
        observer=parts.metrics,
    )


def _queue(parts: Parts) -> Runnable | None:
    return QueueController(
        parts.client,
        parts.informers,
        parts.events,
        parts.metrics,
        workers=parts.options.worker_threads_for_queue,
        max_requeue=parts.options.max_requeue_num,
        consume_commands=parts.options.gate("QueueCommandSync"),
        observer=parts.metrics,
    )


def _gc(parts: Parts) -> Runnable | None:
    return GarbageCollector(
        parts.client, parts.informers, workers=parts.options.worker_threads_for_gc, observer=parts.metrics
    )


def _pod_group(parts: Parts) -> Runnable | None:
    return PodGroupController(
        parts.client,
        parts.informers,
        schedulers=frozenset(parts.options.scheduler_name),
        inherit_annotations=parts.options.inherit_owner_annotations,
        workloads=parts.options.gate("WorkLoadSupport"),
        workers=parts.options.worker_threads_for_podgroup,
        observer=parts.metrics,
    )


def _cron_job(parts: Parts) -> Runnable | None:
    if not parts.options.gate("VolcanoJobSupport") or not parts.options.gate("CronVolcanoJobSupport"):
        return None
    return CronJobController(
        parts.client,
        parts.informers,
        parts.events,
        workers=parts.options.worker_threads_for_cronjob,
        observer=parts.metrics,
    )


def _job_flow(parts: Parts) -> Runnable | None:
    return JobFlowController(
        parts.client,
        parts.informers,
        parts.events,
        parts.metrics,
        max_requeue=parts.options.max_requeue_num,
        observer=parts.metrics,
    )


def _job_template(parts: Parts) -> Runnable | None:
    return JobTemplateController(
        parts.client,
        parts.informers,
        parts.events,
        max_requeue=parts.options.max_requeue_num,
        observer=parts.metrics,
    )


def _hyper_node(parts: Parts) -> Runnable | None:
    return HyperNodeController(
        parts.client,
        parts.informers,
        parts.events,
        namespace=os.environ.get(names.ENV_POD_NAMESPACE) or names.SYSTEM_NAMESPACE,
        release=os.environ.get(names.ENV_HELM_RELEASE_NAME) or names.DEFAULT_HELM_RELEASE,
        observer=parts.metrics,
    )


def _colocation(parts: Parts) -> Runnable | None:
    return ColocationController(parts.client, parts.informers, observer=parts.metrics)


def _sharding(parts: Parts) -> Runnable | None:
    options = parts.options
    try:
        shards = parse_flags(options.scheduler_configs)
    except BadConfiguration as error:
        log.error("sharding-controller does not run: --scheduler-configs: %s", error)
        return None
    return ShardingController(
        parts.client,
        parts.informers,
        shards,
        sync_period=options.shard_sync_period,
        node_events=options.enable_node_event_trigger,
        config_map=options.sharding_configmap,
        namespace=options.sharding_configmap_namespace,
        observer=parts.metrics,
    )


CONTROLLERS: Mapping[str, Callable[[Parts], Runnable | None]] = {
    "job-controller": _job,
    "queue-controller": _queue,
    "pg-controller": _pod_group,
    "gc-controller": _gc,
    "cronjob-controller": _cron_job,
    "jobflow-controller": _job_flow,
    "jobtemplate-controller": _job_template,
    "hyperNode-controller": _hyper_node,
    "colocation-config-controller": _colocation,
    "sharding-controller": _sharding,
}
"""The controllers by the names that ``--controllers`` knows. A maker answers None when a feature gate is off."""


def enabled(parts: Parts) -> dict[str, Runnable]:
    """The controllers that the options select, ready to work."""
    items = parts.options.selection
    for item in selection.unknown(items, CONTROLLERS):
        log.warning("--controllers: %r names no controller and has no effect", item)
    made = {name: make(parts) for name, make in CONTROLLERS.items() if selection.enabled(items, name)}
    return {name: controller for name, controller in made.items() if controller is not None}


async def run_all(controllers: Mapping[str, Runnable]) -> None:
    """Run controllers side by side until cancelled."""
    async with asyncio.TaskGroup() as tasks:
        for name, controller in controllers.items():
            tasks.create_task(_run_patiently(name, controller), name=name)


async def _run_patiently(name: str, controller: Runnable) -> None:
    """Run one controller; while its caches do not fill say so and wait on."""
    while True:
        try:
            await controller.run()
        except ExceptionGroup as group:
            waiting, others = group.split(NotSynced)
            if others is not None or waiting is None:
                raise
            log.error("%s does not work yet: %s", name, _first(waiting))
        except NotSynced as error:
            log.error("%s does not work yet: %s", name, error)
        else:
            return


def _first(group: BaseExceptionGroup[NotSynced]) -> BaseException:
    """The first error of a group, however deep it sits."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
