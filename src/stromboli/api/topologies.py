"""The network topology constraint that Jobs, partitions, PodGroups and sub-groups share (spec 01 section 3.1)."""

from __future__ import annotations

from typing import Annotated

from stromboli.api import phases
from stromboli.api.modelling import Model, Schema


class NetworkTopologySpec(Model):
    """How far apart pods may be. At most one of the two tiers should be set, which admission checks."""

    mode: Annotated[str, Schema(default="hard", enum=("hard", "soft"))] = ""
    """`hard` keeps within one domain, `soft` tries to."""
    highest_tier_allowed: Annotated[int | None, Schema(minimum=0)] = None
    """Highest HyperNode tier to span; 0 is a tier."""
    highest_tier_name: Annotated[str, Schema(max_length=253)] = ""
    """The same, by the name of the tier."""

    @property
    def hard(self) -> bool:
        """Whether the constraint is a must; it is, unless the mode says otherwise."""
        return self.mode != phases.NetworkTopologyMode.SOFT
