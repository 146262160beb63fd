"""What the allocator has found, as the status of a claim (spec 06 section 17.10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from stromboli.api import core, quantities

if TYPE_CHECKING:
    from stromboli.scheduler.plugins.dra.inventory import Offer
    from stromboli.scheduler.plugins.dra.requests import ClaimNeeds, Need
    from stromboli.scheduler.plugins.dra.sharing import Consumption

NAME_FIELD = "metadata.name"
_SHARES = UUID("6f1d6c1e-6d0b-4c52-9d43-0f8e3c7a51b4")
"""Identities of shares are derived from this one."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A device for an alternative of a request, or a share of it."""

    need: Need
    offer: Offer
    share: Consumption | None = None


def allocation_of(needs: ClaimNeeds, picks: Sequence[Pick], node: str) -> core.DeviceAllocation:
    """What is written into the status of a claim that was given these devices on a node."""
    results = tuple(_result(needs.claim, pick, number) for number, pick in enumerate(picks))
    return core.DeviceAllocation(
        devices=core.DeviceResults(results=results, config=tuple(_configuration(needs, picks))),
        node_selector=_node_selector(picks, node),
    )


def _result(claim: core.ResourceClaim, pick: Pick, number: int) -> core.AllocatedDevice:
    id_, shared = pick.offer.id, pick.share is not None
    return core.AllocatedDevice(
        request=pick.need.name,
        driver=id_.driver,
        pool=id_.pool,
        device=id_.name,
        admin_access=True if pick.need.admin else None,
        share_id=_share_id(claim, number) if shared else None,
        consumed_capacity={name: _written(pick, name, amount) for name, amount in (pick.share or {}).items()},
        tolerations=pick.need.tolerations,
    )


def _share_id(claim: core.ResourceClaim, number: int) -> str:
    """Another for every share, and the same whenever the same is decided: a cycle can be replayed."""
    return str(uuid5(_SHARES, f"{claim.uid or f'{claim.namespace}/{claim.name}'}/{number}"))


def _written(pick: Pick, name: str, amount: Fraction) -> str:
    return quantities.format(amount, quantities.style_of(str(pick.offer.device.capacity[name].value)))


def _configuration(needs: ClaimNeeds, picks: Sequence[Pick]) -> Iterator[core.AllocatedConfiguration]:
    """Configuration of the classes that were chosen, for their requests, then that of the claim."""
    chosen = dict.fromkeys(pick.need.name for pick in picks)
    classes = {pick.need.name: pick.need.class_ for pick in picks}
    for name in chosen:
        for config in classes[name].spec.config:
            yield core.AllocatedConfiguration(source="FromClass", requests=(name,), opaque=config.opaque)
    requests = {name.partition("/")[0] for name in chosen}
    for config in needs.claim.spec.devices.config:
        named = tuple(name for name in config.requests if name in chosen or name in requests)
        if named or not config.requests:
            yield core.AllocatedConfiguration(source="FromClaim", requests=named, opaque=config.opaque)


def _node_selector(picks: Sequence[Pick], node: str) -> core.NodeSelector | None:
    """Where the devices can be used: on the node if one of them is local, else where all can be reached."""
    if any(pick.offer.place.node_name for pick in picks):
        here = core.Requirement(key=NAME_FIELD, operator="In", values=(node,))
        return core.NodeSelector(node_selector_terms=(core.NodeSelectorTerm(match_fields=(here,)),))
    expressions: dict[core.Requirement, None] = {}
    fields: dict[core.Requirement, None] = {}
    for pick in picks:
        selector = pick.offer.place.node_selector
        for term in selector.node_selector_terms if selector is not None else ():
            expressions.update(dict.fromkeys(term.match_expressions))
            fields.update(dict.fromkeys(term.match_fields))
    if not expressions and not fields:
        return None
    term = core.NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return core.NodeSelector(node_selector_terms=(term,))
