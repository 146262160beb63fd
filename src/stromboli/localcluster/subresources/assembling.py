"""Puts the subresources, and the kinds that are answered but not stored, into a registry."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.auth.reviews import Reviews
from stromboli.localcluster.auth.tokens import TokenSigner
from stromboli.localcluster.extending import Subresource
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.subresources.binding import Bindings
from stromboli.localcluster.subresources.eviction import Evictions
from stromboli.localcluster.subresources.logs import Logs
from stromboli.localcluster.subresources.tokens import TOKEN_REQUESTS, TokenRequests

EVICTIONS = Kind("policy", "v1", "evictions", "Eviction")


def add_subresources(registry: Registry, signer: TokenSigner, reviews: Reviews) -> None:
    """Serve everything of this package and the review kinds."""
    bindings = Bindings(registry)
    registry.add_subresource(kinds.PODS, "binding", Subresource(bindings, kinds.BINDINGS, ("create",)))
    registry.add_subresource(kinds.PODS, "eviction", Subresource(Evictions(registry), EVICTIONS, ("create",)))
    registry.add_subresource(kinds.PODS, "log", Subresource(Logs(registry), kinds.PODS, ("get",)))
    tokens = Subresource(TokenRequests(registry, signer), TOKEN_REQUESTS, ("create",))
    registry.add_subresource(kinds.SERVICE_ACCOUNTS, "token", tokens)
    registry.add_handled_kind(kinds.BINDINGS, bindings)
    for kind, handler in reviews.handlers().items():
        registry.add_handled_kind(kind, handler)
