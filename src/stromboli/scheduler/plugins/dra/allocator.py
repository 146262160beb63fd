"""The structured allocator: devices for claims on one node (spec 06 section 17.10).

A depth-first search over claims, requests and devices in their order; the first complete solution wins. Two things make
it quicker than trying everything without changing what it finds: the devices of one request are taken in ascending
order, because their order among each other means nothing, and a request that has too few devices left is given up at
once. What the search may cost is a number of steps, so that the same input always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from stromboli.api import core
from stromboli.scheduler.plugins.dra.expressions import SelectorError, matches, qualified
from stromboli.scheduler.plugins.dra.requests import MOST_RESULTS, BadClaim, ClaimNeeds, Need
from stromboli.scheduler.plugins.dra.results import Pick, allocation_of
from stromboli.scheduler.plugins.dra.sharing import Consumption, amount_of, consumption
from stromboli.scheduler.plugins.dra.tainting import is_tolerated
from stromboli.scheduler.plugins.dra.taking import Taken, is_free

if TYPE_CHECKING:
    from stromboli.scheduler.plugins.dra.inventory import Offer, Pool

STEPS_PER_SECOND = 50_000
"""What one second of a time limit is worth: about as many devices are looked at in it."""

Evaluate: TypeAlias = Callable[[str, str, core.Device], bool]
"""Expression, driver, device."""


class OutOfSteps(Exception):
    """The search was given up."""


class Steps:
    """How much more may be tried; None: anything."""

    def __init__(self, number: int | None = None) -> None:
        self.left = number

    def take(self) -> None:
        """One step. Raises OutOfSteps when none is left."""
        if self.left is not None:
            if self.left <= 0:
                raise OutOfSteps
            self.left -= 1


class Selectors:
    """Which devices satisfy expressions; every answer is worked out once for as long as the devices stay the same."""

    def __init__(self, evaluate: Evaluate = matches) -> None:
        self._evaluate = evaluate
        self._known: dict[tuple[str, int], bool | SelectorError] = {}

    def admit(self, need: Need, offer: Offer) -> bool:
        """Whether class and request take a device. Raises BadClaim where an expression fails."""
        owners = (
            (f"class {need.class_.name}", need.class_.spec.selectors),
            (f"request {need.name}", need.selectors),
        )
        for owner, selectors in owners:
            for index, selector in enumerate(selectors):
                if selector.cel is None:
                    raise BadClaim(f"{owner}: selector #{index}: CEL expression empty (unsupported selector type?)")
                try:
                    if not self._matches(selector.cel.expression, offer):
                        return False
                except SelectorError as error:
                    raise BadClaim(f"{owner}: selector #{index}: {error}") from error
        return True

    def _matches(self, expression: str, offer: Offer) -> bool:
        key = (expression, id(offer.device))
        known = self._known.get(key)
        if known is None:
            try:
                known = self._evaluate(expression, offer.id.driver, offer.device)
            except SelectorError as error:
                known = error
            self._known[key] = known
        if isinstance(known, SelectorError):
            raise known
        return known


@dataclass(slots=True)
class _Constraint:
    """What the picks of one claim must have in common, or (``distinct``) must not."""

    requests: frozenset[str]
    attribute: str
    distinct: bool
    values: list[tuple[str, object]] = field(default_factory=list)

    def concerns(self, need: Need) -> bool:
        """Whether it is about this request."""
        return not self.requests or need.name in self.requests or need.request in self.requests

    def admits(self, value: tuple[str, object] | None) -> bool:
        """Whether one more device with this value keeps it true."""
        if value is None:
            return False
        if self.distinct:
            return value not in self.values
        return not self.values or self.values[0] == value


def allocate(
    claims: Sequence[ClaimNeeds],
    node: str,
    pools: Sequence[Pool],
    taken: Taken,
    selectors: Selectors,
    steps: Steps | None = None,
) -> list[core.DeviceAllocation] | None:
    """One allocation a claim, or None when there are not the devices.

    Raises:
        BadClaim: a claim cannot be evaluated, or nothing is left but devices for which an expression cannot.
        OutOfSteps: the search was given up.
    """
    search = _Search(claims, pools, taken, selectors, steps or Steps())
    if not search.run():
        if search.broken is not None:
            raise search.broken
        return None
    return [allocation_of(needs, picks, node) for needs, picks in zip(claims, search.picks, strict=True)]


class _Search:
    def __init__(
        self,
        claims: Sequence[ClaimNeeds],
        pools: Sequence[Pool],
        taken: Taken,
        selectors: Selectors,
        steps: Steps,
    ) -> None:
        self._claims = claims
        self._pools = pools
        self._taken = taken
        self._selectors = selectors
        self._steps = steps
        self._constraints = [list(_constraints_of(needs)) for needs in claims]
        self._choices: dict[tuple[int, str], list[Offer]] = {}
        self._own = Taken({offer.id: offer.draws for pool in pools for offer in pool.offers if offer.draws})
        self.picks: list[list[Pick]] = [[] for _ in claims]
        self.broken: BadClaim | None = None
        """The first expression that failed: such a device is passed over, as long as there are others."""

    def run(self) -> bool:
        """Whether there is a solution; it is in ``picks``."""
        return all(self._has_any(index) for index in range(len(self._claims))) and self._claim(0)

    def _has_any(self, index: int) -> bool:
        """Whether every request of a claim could be served if it were alone."""
        return all(
            any(self._enough(need, self._offers(index, need)) for need in alternatives)
            for alternatives in self._claims[index].requests
        )

    @staticmethod
    def _enough(need: Need, offers: Sequence[Offer]) -> bool:
        return len(offers) >= (1 if _are_shared(offers) else max(need.count, 1))

    # The levels of the search: each goes on with the next, and says whether everything from there on worked out.

    def _claim(self, index: int) -> bool:
        return index == len(self._claims) or self._request(index, 0)

    def _request(self, index: int, position: int) -> bool:
        requests = self._claims[index].requests
        if position == len(requests):
            return self._claim(index + 1)
        for need in requests[position]:
            offers = self._offers(index, need)
            count = need.count or len(offers)
            possible = self._enough(need, offers) and len(self.picks[index]) + count <= MOST_RESULTS
            if possible and self._device(index, position, need, offers, 0, count):
                return True
        return False

    def _device(self, index: int, position: int, need: Need, offers: list[Offer], start: int, missing: int) -> bool:
        if not missing:
            return self._request(index, position + 1)
        for at in range(start, len(offers) if _are_shared(offers) else len(offers) - missing + 1):
            self._steps.take()
            offer, share = offers[at], _share(need, offers[at])
            concerned = [each for each in self._constraints[index] if each.concerns(need)]
            values = [attribute_of(offer, each.attribute) for each in concerned]
            if not self._is_free(index, need, offer, share) or not all(map(_Constraint.admits, concerned, values)):
                continue
            self._pick(index, Pick(need, offer, share), concerned)
            again = need.count and share is not None
            if self._device(index, position, need, offers, at if again else at + 1, missing - 1):
                return True
            self._unpick(index, concerned)
        return False

    def _is_free(self, index: int, need: Need, offer: Offer, share: Consumption | None) -> bool:
        if need.admin:
            return all(pick.offer.id != offer.id for pick in self.picks[index])
        return is_free(offer.id, offer.draws, share, offer.device.capacity, (self._taken, self._own))

    def _pick(self, index: int, pick: Pick, concerned: Iterable[_Constraint]) -> None:
        self.picks[index].append(pick)
        if not pick.need.admin:
            self._own.take(pick.offer.id, pick.share)
        for constraint in concerned:
            value = attribute_of(pick.offer, constraint.attribute)
            assert value is not None
            constraint.values.append(value)

    def _unpick(self, index: int, concerned: Iterable[_Constraint]) -> None:
        pick = self.picks[index].pop()
        if not pick.need.admin:
            self._own.give_back(pick.offer.id, pick.share)
        for constraint in concerned:
            constraint.values.pop()

    # What there is to choose from

    def _offers(self, index: int, need: Need) -> list[Offer]:
        """Devices that a request can have, in pool, slice and device order; for all of them: none if one is taken."""
        known = self._choices.get((index, need.name))
        if known is None:
            claim = self._claims[index].claim
            key = f"{claim.namespace}/{claim.name}"
            found = list(self._every(need, key)) if need.count == 0 else list(self._free(need))
            known = self._choices[index, need.name] = found
        return known

    def _free(self, need: Need) -> Iterator[Offer]:
        for pool in self._pools:
            if pool.usable:
                for offer in pool.offers:
                    self._steps.take()
                    if need.admin or self._is_left(need, offer):
                        try:
                            suits = self._suits(need, offer)
                        except BadClaim as error:
                            self.broken = self.broken or error
                            continue
                        if suits and is_tolerated(offer.taints, need.tolerations):
                            yield offer

    def _every(self, need: Need, claim: str) -> list[Offer]:
        found = []
        for pool in self._pools:
            if not pool.usable:
                state = "invalid" if pool.invalid else "currently being updated"
                where = f"claim {claim}, request {need.name}"
                raise BadClaim(f"{where}: asks for all devices, but resource pool {pool.driver}/{pool.name} is {state}")
            found += [offer for offer in pool.offers if self._suits(need, offer)]
        if any(not is_tolerated(offer.taints, need.tolerations) for offer in found):
            return []
        if not need.admin and not all(self._is_left(need, offer) for offer in found):
            return []
        return found

    def _is_left(self, need: Need, offer: Offer) -> bool:
        """Whether others leave enough of a device, this claim's own picks apart."""
        return is_free(offer.id, offer.draws, _share(need, offer), offer.device.capacity, (self._taken,))

    def _suits(self, need: Need, offer: Offer) -> bool:
        return self._selectors.admit(need, offer) and _has_capacity(need, offer)


def _are_shared(offers: Iterable[Offer]) -> bool:
    return any(offer.shared for offer in offers)


def _share(need: Need, offer: Offer) -> Consumption | None:
    """What a request takes of a device; None when it takes it whole, or only looks at it."""
    return consumption(offer.device, need.capacity) if offer.shared and not need.admin else None


def _has_capacity(need: Need, offer: Offer) -> bool:
    if offer.shared and not need.admin:
        return _share(need, offer) is not None
    for name, amount in need.capacity.items():
        present = offer.device.capacity.get(name)
        if present is None or amount_of(present.value) < amount_of(amount):
            return False
    return True


def _constraints_of(needs: ClaimNeeds) -> Iterator[_Constraint]:
    for constraint in needs.constraints:
        if constraint.match_attribute is not None:
            yield _Constraint(frozenset(constraint.requests), constraint.match_attribute, distinct=False)
        if constraint.distinct_attribute is not None:
            yield _Constraint(frozenset(constraint.requests), constraint.distinct_attribute, distinct=True)


def attribute_of(offer: Offer, name: str) -> tuple[str, object] | None:
    """Type and value of a device's attribute; a name without a domain is the driver's on either side."""
    wanted = qualified(name, offer.id.driver)
    for own, attribute in offer.device.attributes.items():
        if qualified(own, offer.id.driver) == wanted:
            for kind in ("int_value", "bool_value", "string", "version"):
                value = getattr(attribute, kind)
                if value is not None:
                    return kind, value
    return None
