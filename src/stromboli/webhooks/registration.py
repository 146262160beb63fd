"""Making the API server call us: the webhook configuration objects (spec 07 sections 2.3 and 4, spec 08 section 8).

The chart creates the objects and we only put our authority into them, unless we are told to create them ourselves: with
``--register-webhooks``, or with ``--webhook-url``, where no chart is in play.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.kube.client import Client
from stromboli.kube.errors import AlreadyExists, Conflict, NotFound
from stromboli.kube.json import JsonObject
from stromboli.webhooks.endpoints import Endpoint
from stromboli.webhooks.errors import quote

SYSTEM_NAMESPACE: Final = "kube-system"
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
ATTEMPTS: Final = 10
"""Attempts at writing one object against other writers; another replica's conflict is nothing to fail on."""


class NotRegistered(Exception):
    """A configuration object that is not there, and that is not ours to create."""


@dataclass(frozen=True, slots=True)
class Address:
    """How the API server reaches us: a URL, or a Service."""

    url: str = ""
    namespace: str = ""
    service: str = ""

    def client_config(self, path: str, authorities: str) -> JsonObject:
        """``clientConfig`` of the webhook at ``path``."""
        bundle = base64.b64encode(authorities.encode()).decode()
        if self.url:
            return {"url": self.url.rstrip("/") + path, "caBundle": bundle}
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": 443}
        return {"service": service, "caBundle": bundle}


def configuration_kind(endpoint: Endpoint) -> Kind:
    """Kind of the endpoint's configuration object."""
    return kinds.MUTATING_WEBHOOKS if endpoint.mutating else kinds.VALIDATING_WEBHOOKS


def configuration(
    endpoint: Endpoint, client_config: JsonObject, exempt: Sequence[str], schedulers: Sequence[str] = ()
) -> JsonObject:
    """The configuration object as the chart has it; objects in ``exempt`` namespaces are never reviewed.

    Pods to be judged are only sent if they are of one of ``schedulers``: a burst of foreign pods must not wait for us.
    Only main resources are matched, never ``status``: the system's own status writes need no review.
    """
    webhook: JsonObject = {
        "name": endpoint.webhook,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client_config,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "rules": [_rule(endpoint)],
        "timeoutSeconds": 10,
        **_scope(endpoint, exempt),
    }
    if endpoint.mutating:
        webhook["reinvocationPolicy"] = "Never"
    if endpoint.kind == kinds.PODS and not endpoint.mutating and schedulers:
        ours = f"object.spec.schedulerName in [{', '.join(map(quote, schedulers))}]"
        webhook["matchConditions"] = [{"name": "scheduler", "expression": ours}]
    of_kind = configuration_kind(endpoint)
    return {
        "apiVersion": of_kind.api_version,
        "kind": of_kind.kind,
        "metadata": {"name": endpoint.configuration},
        "webhooks": [webhook],
    }


def _rule(endpoint: Endpoint) -> JsonObject:
    kind = endpoint.kind
    rule: JsonObject = {
        "operations": [operation.value for operation in endpoint.operations],
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "resources": [kind.plural],
    }
    return rule if _is_plain(endpoint) else {**rule, "scope": "*"}


def _scope(endpoint: Endpoint, exempt: Sequence[str]) -> JsonObject:
    if _is_plain(endpoint):
        return {"sideEffects": "None"}
    selector = {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": list(exempt)}
    return {
        "sideEffects": "NoneOnDryRun",
        "namespaceSelector": {"matchExpressions": [selector]},
        "objectSelector": {},
    }


def _is_plain(endpoint: Endpoint) -> bool:
    """Whether the endpoint's object has neither scope nor selectors; the original's for HyperNodes is such."""
    return endpoint.kind == kinds.HYPER_NODES


@dataclass(frozen=True, slots=True)
class Registrar:
    """Keeps the configuration objects of a server in order."""

    client: Client
    address: Address
    creates: bool
    """Whether missing objects are created, and existing ones pointed at :attr:`address`."""
    schedulers: tuple[str, ...] = ()
    """Schedulers whose pods are judged; pods of others are not even sent."""

    async def register(self, endpoint: Endpoint, authorities: str) -> bool:
        """Bring one object up to date; answers whether anything was written.

        Raises :class:`NotRegistered` for an object that is missing and not ours to create, and ``KubeError``.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._attempt(endpoint, authorities)
            except (Conflict, AlreadyExists):
                continue
        return await self._attempt(endpoint, authorities)

    async def _attempt(self, endpoint: Endpoint, authorities: str) -> bool:
        kind, client_config = configuration_kind(endpoint), self.address.client_config(endpoint.path, authorities)
        try:
            found = await self.client.get(kind, endpoint.configuration)
        except NotFound as error:
            if not self.creates:
                what = "mutating" if endpoint.mutating else "validating"
                raise NotRegistered(f"failed to get {what} webhook {endpoint.configuration}: {error}") from error
            await self.client.create(kind, configuration(endpoint, client_config, self._exempt(), self.schedulers))
            return True
        changed = self._changed(found, client_config)
        if changed == found:
            return False
        await self.client.update(kind, changed)
        return True

    def _exempt(self) -> list[str]:
        return [namespace for namespace in (self.address.namespace, SYSTEM_NAMESPACE) if namespace]

    def _changed(self, found: Mapping[str, Any], client_config: JsonObject) -> JsonObject:
        """The object with our authorities in every webhook and, where it is ours, our address."""
        replaced = client_config if self.creates else {"caBundle": client_config["caBundle"]}
        webhooks = [
            {**webhook, "clientConfig": replaced if self.creates else {**webhook.get("clientConfig", {}), **replaced}}
            for webhook in found.get("webhooks") or ()
        ]
        return {**found, "webhooks": webhooks}
