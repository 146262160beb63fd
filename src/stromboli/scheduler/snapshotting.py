"""``GET /debug/snapshot``: what scheduling reads of the cluster now and the policy in force, for ``vcctl simulate``.

Served on the metrics address with ``--enable-pprof``. The objects are listed anew: the mirror does not keep them whole.
An addition of ours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from aiohttp import web

from stromboli.api import core, kinds
from stromboli.api.kinds import Kind
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import ApiError, KubeError, NotFound
from stromboli.kube.wire import metadata
from stromboli.scheduler.cache import plain_kinds
from stromboli.scheduler.core import policy_file
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.snapshots import STRUCTS, Snapshot, reduced
from stromboli.scheduler.options import Options

log = logging.getLogger(__name__)


_ALWAYS = (kinds.NODES, kinds.QUEUES, kinds.POD_GROUPS, kinds.PODS, kinds.HYPER_NODES)


def kinds_of(options: Options) -> list[Kind]:
    """Kinds of a snapshot: those that a scheduler with these options watches, and so may list."""
    watched = {*_ALWAYS, *(kind for kind, _ in plain_kinds(options))}
    if options.watches_priority_classes:
        watched.add(kinds.PRIORITY_CLASSES)
    return [kind for kind in STRUCTS if kind in watched]


class Snapshots:
    """Takes snapshots on request."""

    def __init__(
        self, client: Client, policy: Callable[[], Policy], options: Options, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._client = client
        self._policy = policy
        self._options = options
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the metrics server."""
        return [web.get("/debug/snapshot", self._answer)]

    async def take(self) -> Snapshot:
        """A snapshot; kinds that may not be listed are named in ``missing``; not those that are not served."""
        objects: list[core.Object] = []
        missing: list[str] = []
        for kind in kinds_of(self._options):
            try:
                await self._collect(kind, STRUCTS[kind], objects, missing)
            except NotFound:
                continue
            except ApiError as error:
                missing.append(f"{kind.resource}: {error.message}")
        return Snapshot(
            self._clock.time(),
            tuple(objects),
            policy=policy_file.render(self._policy()),
            scheduler_names=tuple(self._options.scheduler_name),
            options=self._options.of_snapshots,
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
