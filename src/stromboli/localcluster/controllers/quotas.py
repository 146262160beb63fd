"""ResourceQuota status: what admission counts, written where users look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.admission.quotas import QuotaLedger, hard_limits, rendered
from stromboli.localcluster.controllers.pods import write_status
from stromboli.localcluster.controllers.running import Mapper, itself
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object

_WATCHED = (
    kinds.PODS, kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES, kinds.PERSISTENT_VOLUME_CLAIMS,
)  # fmt: skip


class QuotaController:
    """Keeps ``status.used``. Objects of other kinds are counted when the quota is looked at next."""

    name = "resourcequota"

    def __init__(self, registry: Registry, ledger: QuotaLedger | None = None) -> None:
        self._registry = registry
        self._ledger = ledger or QuotaLedger(registry.store)

    def sources(self) -> Mapping[Kind, Mapper]:
        """Quotas, and what is counted most."""
        return {kinds.RESOURCE_QUOTAS: itself, **dict.fromkeys(_WATCHED, self._quotas_of)}

    def _quotas_of(self, obj: Object) -> Iterable[tuple[str, str]]:
        namespace = obj["metadata"]["namespace"]
        for stored in self._registry.store.list(kinds.RESOURCE_QUOTAS, namespace):
            yield namespace, stored.key.name

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Write one quota's status if it changed."""
        stored = self._registry.store.get(Key.of(kinds.RESOURCE_QUOTAS, namespace, name))
        if stored is None:
            return None
        quota = stored.object
        used = self._ledger.used(quota, namespace)
        status: Object = {
            "hard": dict(hard_limits(quota)),
            "used": {resource: rendered(resource, amount) for resource, amount in used.items()},
        }
        await write_status(self._registry, kinds.RESOURCE_QUOTAS, quota, status)
        return None
