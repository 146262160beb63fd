"""``GET /debug/snapshot``: what scheduling reads of the cluster now and the policy in force, for ``vcctl simulate``.

Served on the metrics address with ``--enable-pprof``. The objects are listed anew: the mirror does not keep them whole.
An addition of ours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from aiohttp import web

from stromboli.api import core
from stromboli.api.kinds import Kind
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import ApiError, KubeError
from stromboli.kube.wire import metadata
from stromboli.scheduler.core import policy_file
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.snapshots import STRUCTS, Snapshot, reduced

log = logging.getLogger(__name__)


class Snapshots:
    """Takes snapshots on request."""

    def __init__(
        self,
        client: Client,
        policy: Callable[[], Policy],
        scheduler_names: tuple[str, ...],
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._policy = policy
        self._scheduler_names = scheduler_names
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the metrics server."""
        return [web.get("/debug/snapshot", self._answer)]

    async def take(self) -> Snapshot:
        """A snapshot; kinds that are not served or may not be listed are named in ``missing``."""
        objects: list[core.Object] = []
        missing: list[str] = []
        for kind, struct in STRUCTS.items():
            try:
                await self._collect(kind, struct, objects, missing)
            except ApiError as error:
                missing.append(f"{kind.resource}: {error.message}")
        return Snapshot(
            self._clock.time(),
            tuple(objects),
            policy=policy_file.render(self._policy()),
            scheduler_names=self._scheduler_names,
            missing=tuple(missing),
        )

    async def _collect(
        self, kind: Kind, struct: type[core.Object], objects: list[core.Object], missing: list[str]
    ) -> None:
        async for page in self._client.pages(kind):
            for raw in page.items:
                try:
                    objects.append(reduced(core.decode(struct, raw)))
                except core.UndecodableObject as error:
                    who = metadata(raw)
                    missing.append(f"{kind.resource} {who.namespace}/{who.name}: {error}")

    async def _answer(self, _request: web.Request) -> web.Response:
        try:
            snapshot = await self.take()
        except KubeError as error:
            log.warning("no snapshot could be taken: %s", error)
            return web.Response(status=503, text=f"no snapshot could be taken: {error}\n")
        return web.Response(body=snapshot.encode(), content_type="application/json")
