"""Who has been given what by now: the story of the pods is gone through, and what each gets depends on those before.

Two kinds of things are given. *Claims* are objects of their own that several pods may use: what one has been promised
stays promised for as long as some pod relies on it. *Holdings* are a pod's own, on the node it is on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Told

T = TypeVar("T")


def promises(
    told: Told, plan: Callable[[core.Pod, core.Node, Mapping[str, T]], Mapping[str, T] | None]
) -> dict[str, T]:
    """By claim, what pods that were placed since have been promised.

    ``plan`` tells for a pod that comes to a node what each of its claims gets that waited, or was promised before.
    """
    found: dict[str, T] = {}
    users: dict[str, set[str]] = {}
    for name, node in told.moves():
        if node:
            planned = plan(told.pod(name), told.nodes[node], found)
            assert planned is not None, f"{name} should not have come to {node}"
            found = {**planned, **found}
            for claim in planned:
                users.setdefault(claim, set()).add(name)
        else:
            for claim in [claim for claim, pods in users.items() if name in pods]:
                users[claim].discard(name)
                if not users[claim]:
                    del users[claim], found[claim]
    return found


def holdings(
    told: Told,
    node: core.Node,
    recorded: Callable[[core.Pod], Sequence[T]],
    chosen: Callable[[core.Pod, Mapping[str, Sequence[T]]], Sequence[T]],
) -> dict[str, Sequence[T]]:
    """What each pod holds on a node: as its object says, or what was chosen for it with what others held then."""
    found: dict[str, Sequence[T]] = {}
    for name, pod in [*told.pods.items(), *told.gone.items()]:
        if pod.spec.node_name == node.name and not pod.deleting:
            found[name] = recorded(pod)
    for name, where in told.moves():
        if not where:
            found.pop(name, None)
        elif where == node.name:
            found[name] = chosen(told.pod(name), found)
    return found
