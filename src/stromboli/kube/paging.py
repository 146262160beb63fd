"""One page of a list answer, split into its items without decoding them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from stromboli.kube.errors import MalformedAnswer


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_DECODER = msgspec.json.Decoder(_List)


@dataclass(frozen=True, slots=True)
class Page:
    """Items as raw bytes, and what is needed to go on: a continue token, or a resource version to watch from."""

    raw_items: tuple[msgspec.Raw, ...]
    resource_version: str
    continue_token: str
    remaining: int | None = None

    @classmethod
    def parse(cls, raw: bytes) -> Page:
        """Split a list answer. Raises :class:`MalformedAnswer`."""
        try:
            found = _DECODER.decode(raw)
        except msgspec.DecodeError as error:  # a ValidationError is one
            raise MalformedAnswer(f"the answer is not a list: {error}") from error
        meta = found.metadata
        return cls(tuple(found.items or ()), meta.resource_version, meta.continue_, meta.remaining_item_count)

    @property
    def items(self) -> Iterator[bytes]:
        """Each item's bytes, copied one at a time, so that keeping one does not keep the page."""
        return (bytes(item) for item in self.raw_items)
