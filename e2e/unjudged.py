"""Namespaces that our admission webhooks leave alone, as an administrator's exemption or an older webhook would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from e2e.cluster import Cluster, Json, eventually, vcjob
from stromboli.api.kinds import JOBS, MUTATING_WEBHOOKS, NAMESPACES, VALIDATING_WEBHOOKS, Kind
from stromboli.kube.errors import ApiError

LABEL = "e2e.stromboli.dev/unjudged"
NOT_LABELLED = {"key": LABEL, "operator": "DoesNotExist"}


@asynccontextmanager
async def exempt(cluster: Cluster) -> AsyncIterator[None]:
    """While the block runs, nothing in the cluster's namespace is reviewed by our webhooks; then all is as it was."""
    await cluster.patch(NAMESPACES, cluster.namespace, {"metadata": {"labels": {LABEL: "true"}}})
    stored = [
        (kind, found) for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS) for found in await _ours(cluster, kind)
    ]
    try:
        for kind, found in stored:
            webhooks = [_sparing(webhook) for webhook in found["webhooks"]]
            await cluster.patch(kind, found["metadata"]["name"], {"webhooks": webhooks})
        await eventually(lambda: _is_accepted(cluster), bool, what="an unusable job accepted")
        yield
    finally:
        for kind, found in stored:
            await cluster.patch(kind, found["metadata"]["name"], {"webhooks": found["webhooks"]})


async def _ours(cluster: Cluster, kind: Kind) -> list[Json]:
    found = await cluster.client.list(kind)
    return [one for one in found if all(webhook["name"].endswith(".volcano.sh") for webhook in one["webhooks"])]


def _sparing(webhook: Json) -> Json:
    selector = webhook.get("namespaceSelector") or {}
    return {
        **webhook,
        "namespaceSelector": {**selector, "matchExpressions": [*selector.get("matchExpressions", []), NOT_LABELLED]},
    }


async def _is_accepted(cluster: Cluster) -> bool:
    try:
        await cluster.client.create(JOBS, vcjob("probe", queue="nowhere"), cluster.namespace, dry_run=True)
    except ApiError:
        return False
    return True
