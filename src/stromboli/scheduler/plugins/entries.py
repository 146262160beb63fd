"""The policy's ``configurations``: arguments that nobody would read, and values that nobody would take (spec 05, 06).

The scheduler reads arguments of actions leniently and complains of none, so a slip of the pen has no effect at all.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from stromboli.scheduler.core.policy import Arguments, Policy, boolean, integer
from stromboli.scheduler.plugins.deviceshare.mindcluster_reports import CLUSTER_SOURCE, PARAMETERS, SELF_MAINTAINED

_CACHE = {"predicateErrorCacheEnable": bool}
"""Of Volcano; taken, and of no effect here, where nodes are not asked one by one."""
_BUNDLES = {"maxDomains": int, "allowWholeBundle": bool}

ARGUMENTS: Mapping[str, Mapping[str, type]] = {
    "enqueue": {},
    "allocate": _CACHE,
    "backfill": _CACHE,
    "preempt": {
        **_CACHE,
        "enableTopologyAwarePreemption": bool,
        "minCandidateNodesPercentage": int,
        "minCandidateNodesAbsolute": int,
        "maxCandidateNodesAbsolute": int,
    },
    "reclaim": _CACHE,
    "gangpreempt": _BUNDLES,
    "gangreclaim": _BUNDLES,
    "shuffle": {},
    PARAMETERS: {CLUSTER_SOURCE: bool, SELF_MAINTAINED: bool},
}
"""What the entries take, by name; entries of other people's plugins and actions are not known here."""
_WANTED = {bool: "true or false", int: "a whole number"}


def complaints(policy: Policy) -> Iterator[str]:
    """What of the entries has no effect."""
    counts = Counter(name for name, _ in policy.configurations)
    for name, count in counts.items():
        if count > 1:
            yield f"configurations has {count} entries {name}: only the first counts"
    for name in counts:
        if name in ARGUMENTS:
            yield from _of_entry(name, policy.arguments_of(name), ARGUMENTS[name])


def _of_entry(name: str, given: Arguments, taken: Mapping[str, type]) -> Iterator[str]:
    for key, value in given.items():
        if key not in taken:
            yield f"configurations: {name}: argument {key!r} is not known{_instead(key, taken)}"
        elif not _is_taken(key, value, taken[key]):
            yield f"configurations: {name}: {key} takes {_WANTED[taken[key]]}, got {value!r}, which has no effect"


def _instead(key: str, taken: Collection[str]) -> str:
    near = difflib.get_close_matches(key, taken, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f" (known: {', '.join(sorted(taken))})" if taken else "; it takes none"


def _is_taken(key: str, value: object, kind: type) -> bool:
    """Whether the scheduler's lenient readers take the value, whatever the default is."""
    given = {key: value}
    if kind is bool:
        return boolean(given, key, True) == boolean(given, key, False)
    return integer(given, key, 0) == integer(given, key, 1)
