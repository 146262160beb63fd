"""Puts the core together: a store, the built-in kinds, and a registry that follows the CRDs in the store."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.localcluster.catalog import Catalog, built_in_kinds
from stromboli.localcluster.crds.definitions import Definitions
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.schemas.reflection import schema_of
from stromboli.localcluster.storage import Store
from stromboli.localcluster.strategies import built_in_strategies


def new_registry(store: Store | None = None) -> Registry:
    """A registry of all built-in kinds and of the CRDs that ``store`` already has; nothing else is plugged in."""
    store = Store() if store is None else store
    strategies = {**built_in_strategies(store), kinds.CUSTOM_RESOURCE_DEFINITIONS: Definitions()}
    registry = Registry(store, Catalog(built_in_kinds(schema_of, strategies)))
    registry.publish_definitions()
    return registry
