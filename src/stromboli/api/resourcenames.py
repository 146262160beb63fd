"""Which resource names the scheduler counts, and in what unit (spec 04 section 8.1; Kubernetes' rules of names)."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

HUGEPAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
COUNT_PREFIX = "count/"

_NATIVE = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_CSI_PREFIX = ATTACHABLE_VOLUMES_PREFIX + "csi-"
_NAME_LIMIT = 63
_SUBDOMAIN_LIMIT = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether Kubernetes regards the name as a scalar resource: extended, huge pages, volumes or ``kubernetes.io/``."""
    return name.startswith((HUGEPAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX)) or _NATIVE in name or is_extended(name)


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """Whether the name is an extended resource: a valid ``domain/name`` outside ``kubernetes.io/``."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA_PREFIX):
        return False
    # Kubernetes asks that the name is still valid as a quota key, which is longer.
    domain, _, rest = (_QUOTA_PREFIX + name).partition("/")
    return (
        len(domain) <= _SUBDOMAIN_LIMIT
        and _SUBDOMAIN.fullmatch(domain) is not None
        and len(rest) <= _NAME_LIMIT
        and _QUALIFIED.fullmatch(rest) is not None
    )


def csi_attach_limit(driver: str) -> str:
    """The scalar that counts volumes of a CSI driver on a node; long driver names are shortened with a hash."""
    key = _CSI_PREFIX + driver
    if len(key) < _NAME_LIMIT:
        return key
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{_CSI_PREFIX}{driver[:23]}{digest[:16]}"
