"""The order in which admission plugins see a write; it is kube-apiserver's order.

Mutating: NamespaceLifecycle, LimitRanger, ServiceAccount, Priority, DefaultTolerationSeconds, DefaultStorageClass,
webhooks. Validating: LimitRanger, webhooks, ResourceQuota. The quota comes last and does not wait for anything, so that
nothing can slip in between its count and the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from stromboli.localcluster.admission.limits import apply_limit_defaults, check_limits
from stromboli.localcluster.admission.namespaces import check_namespace
from stromboli.localcluster.admission.priorities import set_priority
from stromboli.localcluster.admission.quotas import QuotaCheck, QuotaLedger
from stromboli.localcluster.admission.serviceaccounts import set_service_account
from stromboli.localcluster.admission.storageclasses import set_storage_class
from stromboli.localcluster.admission.tolerations import add_default_tolerations
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.storage import Object, Store

Plugin = Callable[[AdmissionRequest, Store], None]
"""Changes ``request.obj`` in place (mutating) or only looks (validating); refuses by raising ``StatusError``."""

MUTATING: tuple[Plugin, ...] = (
    check_namespace,
    apply_limit_defaults,
    set_service_account,
    set_priority,
    add_default_tolerations,
    set_storage_class,
)
VALIDATING: tuple[Plugin, ...] = (check_limits,)


class Webhooks(Protocol):
    """What the chain needs of the webhook dispatcher."""

    async def mutate(self, request: AdmissionRequest) -> None:
        """Call the mutating webhooks in turn; ``request.obj`` is replaced by what they make of it."""

    async def validate(self, request: AdmissionRequest) -> None:
        """Call the validating webhooks all at once."""


class AdmissionChain:
    """The ``Admission`` of an assembled cluster."""

    def __init__(
        self,
        store: Store,
        webhooks: Webhooks,
        *,
        mutating: Sequence[Plugin] = MUTATING,
        validating: Sequence[Plugin] = VALIDATING,
    ) -> None:
        self._store = store
        self._webhooks = webhooks
        self._mutating = mutating
        self._validating = validating
        self.ledger = QuotaLedger(store)
        self._check_quotas = QuotaCheck(self.ledger)

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        """The object as the plugins and webhooks want it."""
        for plugin in self._mutating:
            plugin(request, self._store)
        await self._webhooks.mutate(request)
        return request.obj

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse, or return."""
        for plugin in self._validating:
            plugin(request, self._store)
        await self._webhooks.validate(request)
        self._check_quotas(request, self._store)
