"""YAML as Kubernetes reads it: several documents a text, and times stay the text they are.

PyYAML would turn ``2026-06-24T09:17:58Z`` into a datetime, which no API object holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class ManifestLoader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """A safe loader without the timestamp rule."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in rules if tag != _TIMESTAMP]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def documents(text: str) -> Iterator[Any]:
    """Every document of a text, empty ones (None) included. Raises ``yaml.YAMLError``, with the place."""
    yield from yaml.load_all(text, Loader=ManifestLoader)  # noqa: S506 - a SafeLoader


def document(text: str) -> Any:
    """The only document of a text. Raises ``yaml.YAMLError``, also when there are several."""
    return yaml.load(text, Loader=ManifestLoader)  # noqa: S506 - a SafeLoader
