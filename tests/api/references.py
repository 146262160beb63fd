"""Where the reference fixtures are (REFERENCE_DIR), and how tests read them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

DIRECTORY = Path(os.environ.get("REFERENCE_DIR", "../shared/reference"))

needs_references = pytest.mark.skipif(
    not DIRECTORY.is_dir(), reason=f"no reference fixtures at {DIRECTORY}; set REFERENCE_DIR"
)

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader in C reads these megabytes ten times faster."""

Json = dict[str, Any]


def reference_crds() -> dict[str, Json]:
    """Reference definitions by name."""
    found = (yaml.load(path.read_text(), LOADER) for path in sorted((DIRECTORY / "crds").glob("*.yaml")))
    return {crd["metadata"]["name"]: crd for crd in found}


def reference_objects() -> Iterator[tuple[str, Json]]:
    """Every object of the example manifests, with the file it is in."""
    for path in sorted((DIRECTORY / "examples").rglob("*.y*ml")):
        for document in yaml.load_all(path.read_text(), LOADER):
            if isinstance(document, dict) and "kind" in document:
                yield str(path.relative_to(DIRECTORY / "examples")), document
