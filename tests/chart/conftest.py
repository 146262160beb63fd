"""Helm, and a shortcut to what the chart renders."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from e2e.realcluster import binaries
from e2e.realcluster.rendering import Release, Values, render

from stromboli.kube.json import JsonObject
from tests.chart import matrix

Render = Callable[..., Awaitable[list[JsonObject]]]


@pytest.fixture
def helm() -> Path:
    program = binaries.helm()
    if program is None:
        pytest.skip("helm is neither built nor on PATH: python -m e2e.realcluster --build")
    return program


@pytest.fixture
def rendered(helm: Path) -> Render:
    """Objects of the chart for given ``custom`` values, or for whole values."""

    async def render_values(
        values: Values | None = None, *, release: Release = matrix.RELEASE, **custom: object
    ) -> list[JsonObject]:
        return await render(helm, release, values if values is not None else {"custom": custom}, crds=False)

    return render_values
