"""The assembled cluster: API server, admission, stand-in controllers and simulated nodes in one process.

``async with LocalCluster(nodes=3) as cluster:`` serves until the block ends; ``cluster.kubeconfig`` leads to it.
Nothing is written into the data directory that a client would follow (kubeconfig, ready file) before the port is really
served.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

from stromboli.localcluster import bootstrap
from stromboli.localcluster.admission.chain import AdmissionChain
from stromboli.localcluster.admission.webhooks.calling import Caller, ServiceAddresses
from stromboli.localcluster.admission.webhooks.dispatching import WebhookDispatcher
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.auth.authenticating import ADMIN, TokenAuthenticator
from stromboli.localcluster.auth.authorizing import AlwaysAllow, RbacAuthorizer
from stromboli.localcluster.auth.reviews import Reviews
from stromboli.localcluster.auth.tokens import TokenSigner
from stromboli.localcluster.certificates import Credentials, load_or_make, write_private
from stromboli.localcluster.controllers.deployments import DeploymentController
from stromboli.localcluster.controllers.disruptions import DisruptionController
from stromboli.localcluster.controllers.endpoints import EndpointsController
from stromboli.localcluster.controllers.events import EventController
from stromboli.localcluster.controllers.garbage import GarbageCollector
from stromboli.localcluster.controllers.jobs import BatchJobController
from stromboli.localcluster.controllers.namespaces import NamespaceController
from stromboli.localcluster.controllers.quotas import QuotaController
from stromboli.localcluster.controllers.replicasets import ReplicaSetController
from stromboli.localcluster.controllers.running import Controller, ControllerRunner
from stromboli.localcluster.controllers.scheduling import DefaultScheduler
from stromboli.localcluster.controllers.statefulsets import StatefulSetController
from stromboli.localcluster.controllers.vanished import VanishedNodeController
from stromboli.localcluster.controllers.volumes import VolumeController
from stromboli.localcluster.datadirectory import DataDirectory, hold
from stromboli.localcluster.http.app import create_app
from stromboli.localcluster.kubeconfig import write_kubeconfig
from stromboli.localcluster.nodes.heartbeats import Heartbeats, create_nodes
from stromboli.localcluster.nodes.inventories import NodeGroup
from stromboli.localcluster.nodes.kubelets import Kubelets
from stromboli.localcluster.options import ClusterSettings
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statefile import StateFile
from stromboli.localcluster.storage import Object, Store
from stromboli.localcluster.subresources.assembling import add_subresources
from stromboli.telemetry.listening import Address, listening

log = logging.getLogger(__name__)

READY_SECONDS = 120.0
STOP_SECONDS = 0.5
"""How long requests in flight may take when the cluster stops; watches never end by themselves."""
NODE_VERSION = "v1.34.0"


class LocalCluster:
    """An embedded cluster as an async context manager. Settings come as a whole, or the common ones by keyword."""

    def __init__(
        self,
        settings: ClusterSettings | None = None,
        *,
        nodes: int | Sequence[Object] | None = None,
        data_dir: Path | None = None,
    ) -> None:
        settings = settings or ClusterSettings()
        if nodes is not None:
            wanted = list(NodeGroup(nodes).nodes()) if isinstance(nodes, int) else nodes
            settings = replace(settings, nodes=wanted)
        if data_dir is not None:
            settings = replace(settings, data_dir=data_dir)
        self.settings = settings
        self.store = Store()
        self.registry: Registry
        self.credentials: Credentials
        self.url = ""
        self._serving = False
        self._heartbeats: Heartbeats | None = None
        self._ready: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._directory: DataDirectory | None = None

    @property
    def directory(self) -> Path:
        """The data directory of the running cluster."""
        if self._directory is None:
            raise RuntimeError("the cluster is not running")
        return self._directory.path

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig file of the running cluster."""
        return self.directory / "kubeconfig"

    async def __aenter__(self) -> Self:
        """Start; returns when requests are served. Raises what keeps the cluster from starting."""
        self._ready = asyncio.Event()
        self._task = asyncio.create_task(self.run(self._ready), name="local cluster")
        waiting = asyncio.create_task(self._ready.wait())
        try:
            async with asyncio.timeout(READY_SECONDS):
                await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not self._ready.is_set():
                self._task.cancel()
        if self._task.done():
            await _unwrapped(self._task)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; the state file, if there is one, is written. Raises what went wrong meanwhile."""
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await _unwrapped(self._task)

    async def run(self, ready: asyncio.Event) -> None:
        """Serve until cancelled; ``ready`` is set as soon as requests are served."""
        async with contextlib.AsyncExitStack() as stack:
            directory = self._directory = stack.enter_context(hold(self.settings.data_dir))
            self.credentials = load_or_make(directory.path, _hosts(self.settings.host))
            state = self._state_file()
            if state is not None:
                state.check_writable()
                state.restore()
                # Runs after the listener has closed, so that no write comes too late.
                stack.callback(self._save, state, directory)
            application = await self._assemble(stack)
            address = Address(self.settings.host, self.settings.port)
            tls = self.credentials.server_context()
            bound = await stack.enter_async_context(listening(application, address, tls=tls, stop_seconds=STOP_SECONDS))
            self.url = f"https://{Address(_reachable(bound.host), bound.port)}"
            self._serving = True
            if state is not None:
                state.begin()
            async with asyncio.TaskGroup() as group:
                for name, work in self._background(state, directory):
                    group.create_task(work, name=name)
                stack.enter_context(self._announced(directory))
                ready.set()

    def _state_file(self) -> StateFile | None:
        path = self.settings.state_file
        return StateFile(self.store, path) if path else None

    def _save(self, state: StateFile, directory: DataDirectory) -> None:
        """Write the state of a cluster that has served; without having served, or without its directory, nothing."""
        if not self._serving or not directory.is_there:
            return
        try:
            state.save()
        except OSError as error:
            log.error("the state file was not written: %s", error)

    async def _assemble(self, stack: contextlib.AsyncExitStack) -> web.Application:
        """Everything but the listener and the background tasks, with the store filled."""
        settings, credentials = self.settings, self.credentials
        caller = Caller(ServiceAddresses(self.store, settings.service_addresses))
        stack.push_async_callback(caller.close)
        self.registry = new_registry(self.store)
        self._admission = AdmissionChain(self.store, WebhookDispatcher(self.store, caller))
        self.registry.admission = self._admission
        authorizer = RbacAuthorizer(self.store) if settings.authorization_mode == "RBAC" else AlwaysAllow()
        signer = TokenSigner(credentials.signing_key)
        tokens = {credentials.admin_token: ADMIN}
        authenticator = TokenAuthenticator(self.store, signer, authorizer, tokens)
        add_subresources(self.registry, signer, Reviews(authorizer, authenticator))
        self._heartbeats = Heartbeats(self.registry, NODE_VERSION)
        await self._fill()
        return create_app(self.registry, authenticator, authorizer)

    async def _fill(self) -> None:
        settings = self.settings
        manifests = bootstrap.read_manifests(settings.manifests) if settings.manifests else []
        await bootstrap.bootstrap(self.registry, self.credentials.ca.certificate.decode())
        if settings.crds == "builtin":
            await bootstrap.install_own_definitions(self.registry)
        elif isinstance(settings.crds, Path):
            await bootstrap.load(self.registry, bootstrap.read_manifests(settings.crds))
        await create_nodes(self.registry, settings.nodes)
        await bootstrap.load(self.registry, manifests)

    def _background(
        self, state: StateFile | None, directory: DataDirectory
    ) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        registry = self.registry
        yield "data directory", directory.watch()
        yield "kubelets", Kubelets(registry, self.settings.pods).run()
        if self._heartbeats is not None:
            yield "heartbeats", self._heartbeats.run()
        if self.settings.controllers:
            yield "garbage collector", GarbageCollector(registry).run()
        yield "controllers", ControllerRunner(registry, list(self._controllers())).run()
        if state is not None:
            yield "state file", state.keep()

    def _controllers(self) -> Iterator[Controller]:
        registry = self.registry
        yield NamespaceController(registry, self.credentials.ca.certificate.decode())
        yield EventController(registry)
        if self.settings.default_scheduler:
            yield DefaultScheduler(registry)
        if self.settings.controllers:
            yield ReplicaSetController(registry)
            yield DeploymentController(registry)
            yield StatefulSetController(registry)
            yield BatchJobController(registry)
            yield VolumeController(registry)
            yield EndpointsController(registry)
            yield DisruptionController(registry)
            yield QuotaController(registry, self._admission.ledger)
            yield VanishedNodeController(registry)

    @contextlib.contextmanager
    def _announced(self, directory: DataDirectory) -> Iterator[None]:
        """Tell clients where the cluster is, for as long as it is there."""
        path = directory.path / "kubeconfig"
        write_kubeconfig(path, self.url, self.credentials.ca.certificate, self.credentials.admin_token)
        ready = directory.path / "ready"
        write_private(ready, orjson.dumps({"server": self.url, "kubeconfig": str(path), "pid": os.getpid()}) + b"\n")
        try:
            yield
        finally:
            if directory.is_there:
                ready.unlink(missing_ok=True)


async def _unwrapped(task: asyncio.Task[None]) -> None:
    """Wait for the task; a group of one error is raised as that error."""
    try:
        await task
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group
        raise


def _hosts(host: str) -> list[str]:
    return list(dict.fromkeys(["127.0.0.1", "::1", *([host] if host not in ("0.0.0.0", "::") else [])]))


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
