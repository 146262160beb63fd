"""How holdings are written into annotations: ``id,type,memory,cores:`` for each share."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from stromboli.scheduler.plugins.deviceshare.families import Holding, Share

BETWEEN_CONTAINERS = ";"
BETWEEN_SHARES = ":"
_FIELDS = 4
_LARGEST = 2**31 - 1


def encode(shares: Iterable[Share]) -> str:
    """The shares of one container."""
    return "".join(f"{share.device},{share.type},{share.memory},{share.cores}{BETWEEN_SHARES}" for share in shares)


def decode(text: str) -> tuple[Share, ...]:
    """The shares of one container; what is no share is dropped alone."""
    parts = (part.strip().split(",") for part in text.split(BETWEEN_SHARES))
    shares = []
    for part in parts:
        if len(part) >= _FIELDS:
            memory, cores = _amount(part[2]), _amount(part[3])
            if memory is not None and cores is not None:
                shares.append(Share(part[0], part[1], memory, cores))
    return tuple(shares)


@lru_cache(maxsize=65536)
def decode_containers(text: str) -> Holding:
    """The shares of several containers; containers without any are left out."""
    return tuple(shares for part in text.split(BETWEEN_CONTAINERS) if (shares := decode(part)))


def _amount(text: str) -> int | None:
    """A whole number of 32 bits that is not negative."""
    text = text.strip()
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text) if int(text) <= _LARGEST else None
