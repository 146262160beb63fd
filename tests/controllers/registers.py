"""Registers of what is done better than in the original: each entry names the test that holds it."""

from __future__ import annotations

import importlib


def holds(place: str, package: str) -> bool:
    """Whether ``module.test``, or ``module.TABLE/case`` for a case of a parametrised table, exists in ``package``."""
    path, _, case = place.partition("/")
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(f"{package}.{module}"), name)
    return case in found if case else callable(found) and name.startswith("test_")
