"""The scheduler process: flags, policy, endpoints, leader election, and the work of the leader."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK
from stromboli.kube.errors import KubeError, LeadershipLost
from stromboli.kube.leases import LeaderElector, LeaseTiming
from stromboli.kube.retrying import Backoff
from stromboli.process.entering import connect
from stromboli.process.running import StartupError
from stromboli.process.serving import endpoints
from stromboli.scheduler import dumping, registering
from stromboli.scheduler.core import policy_file, policy_warnings
from stromboli.scheduler.core.plugin import Plugin
from stromboli.scheduler.core.policy import Policy, PolicyError
from stromboli.scheduler.debugging import LogLevelSocket, stack_routes
from stromboli.scheduler.explaining import Explanations
from stromboli.scheduler.metrics import SchedulerMetrics
from stromboli.scheduler.options import PROGRAM, Environment, Options
from stromboli.scheduler.plugins import arguments, entries
from stromboli.scheduler.policies import Policies
from stromboli.scheduler.running import CycleFailed, Scheduler
from stromboli.scheduler.snapshotting import Snapshots
from stromboli.telemetry import traces
from stromboli.telemetry.health import Health
from stromboli.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

FIRST_RESTART_SECONDS = 1.0
MAXIMUM_RESTART_SECONDS = 60.0


async def serve(options: Options) -> None:
    """Run the process until it is cancelled.

    Raises:
        StartupError, FlagError, ListenError: one line for the user.
    """
    if options.check_config:
        check_config(options)
        return
    traces.setup(PROGRAM)
    registry = registering.load(options.plugins_dir)
    policies = Policies(
        options.scheduler_conf,
        registry.known,
        strict=options.disable_default_scheduler_config,
        warnings=partial(_warnings, plugins=registry.plugins),
    )
    policies.load()
    process = Process(options, registry, policies, Environment.read())
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(await _connect(options))
        process.metrics.registry.register(client.requests)
        snapshots = Snapshots(client, lambda: policies.current, options)
        debugging = [*stack_routes(), *snapshots.routes()] if options.enable_pprof else []
        routes = [*process.explanations.routes(), *debugging]
        await stack.enter_async_context(endpoints(options, process.health, process.metrics, extra=routes))
        await stack.enter_async_context(LogLevelSocket(options.verbosity))
        await process.run(client)


def check_config(options: Options) -> None:
    """Print the effective policy of ``--check-config``; what is surprising about it goes to standard error.

    Raises:
        StartupError: the file is unusable, or something in it would be ignored; one line each.
    """
    path = options.check_config
    try:
        content = Path(path).read_bytes()
        registry = registering.load(options.plugins_dir)
        loaded = policy_file.parse(content, registry.known)
    except OSError as error:
        raise StartupError(f"{path}: cannot be read: {error.strerror or error}") from error
    except PolicyError as error:
        raise StartupError(f"{path}: {error}") from error
    for warning in _warnings(loaded.policy, registry.plugins):
        print(f"{path}: warning: {warning}", file=sys.stderr)
    if loaded.problems:
        raise StartupError("; ".join(f"{path}: {problem}" for problem in loaded.problems))
    print(policy_file.render(loaded.policy), end="")


def _warnings(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> list[str]:
    """What of a usable policy surprises: arguments that nobody reads, and what does not do what its writer expects."""
    unread = [*arguments.unknown(policy, plugins), *entries.complaints(policy)]
    return unread + policy_warnings.warnings(policy, plugins)


async def _connect(options: Options) -> Client:
    try:
        return await connect(options, PROGRAM)
    except KubeError as error:
        raise StartupError(str(error)) from error


class Process:
    """What lives as long as the process, whether it leads or stands by."""

    def __init__(
        self, options: Options, registry: registering.Registry, policies: Policies, environment: Environment
    ) -> None:
        self.metrics = Metrics(process_series=True)
        self.health = Health()
        self.explanations = Explanations()
        self._options = options
        self._registry = registry
        self._policies = policies
        self._environment = environment
        self._series = SchedulerMetrics(self.metrics)
        self._scheduler: Scheduler | None = None
        self.health.add_readiness("caches", self._missing)

    async def run(self, client: Client) -> None:
        """Lead, or wait to lead, until cancelled.

        Raises:
            StartupError: the lease was lost; the process must end so that another may take over.
        """
        self._scheduler = None
        if not self._options.leader_elect:
            await self._lead(client)
            return
        try:
            await self._elector(client).run(lambda: self._lead(client))
        except LeadershipLost as lost:
            raise StartupError(str(lost)) from lost

    def _elector(self, client: Client) -> LeaderElector:
        options = self._options
        timing = LeaseTiming(
            options.leader_elect_lease_duration, options.leader_elect_renew_deadline, options.leader_elect_retry_period
        )
        return LeaderElector(
            client, namespace=options.lease_namespace, name=options.leader_elect_resource_name, timing=timing
        )

    async def _lead(self, client: Client) -> None:
        """Schedule; after a failed cycle start over with a new mirror, later each time."""
        backoff = Backoff(first=FIRST_RESTART_SECONDS, maximum=MAXIMUM_RESTART_SECONDS)
        while True:
            try:
                await self._schedule(client)
                return
            except* CycleFailed as failed:
                log.critical("starting over from the API server", exc_info=failed)
            await SYSTEM_CLOCK.sleep(backoff.next())

    async def _schedule(self, client: Client) -> None:
        scheduler = self._scheduler = Scheduler(
            client,
            self._options,
            self._registry,
            self._policies,
            self._series,
            environment=self._environment,
            explanations=self.explanations,
        )
        with dumping.on_signals(scheduler.mirror, scheduler.feed, self._dumps()):
            await scheduler.run()

    def _dumps(self) -> dict[signal.Signals, dumping.Sink]:
        file = dumping.to_directory(Path(self._options.cache_dump_dir), SYSTEM_CLOCK.time)
        return {signal.SIGUSR1: file, signal.SIGUSR2: dumping.to_log} if self._options.cache_dumper else {}

    def _missing(self) -> str | None:
        return self._scheduler.cache.missing if self._scheduler is not None else None
