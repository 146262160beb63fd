"""What the conditions of a PodGroup complain about, as everybody tells it: job events, command line and web page.

One rule: the cause wins over the consequence (pain P64). ``Unschedulable`` says that a gang waits; the system's own
conditions ``Admitted`` and ``Fits`` say why, with numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stromboli.api.core import PodGroupCondition, timestamp
from stromboli.api.phases import PodGroupConditionType as Type

_CAUSES: Final = frozenset({Type.ADMITTED, Type.FITS})
_SETTLED: Final = frozenset({Type.SCHEDULED, Type.FITS})


def complaint(conditions: Iterable[PodGroupCondition]) -> PodGroupCondition | None:
    """The condition that says why the gang waits, or None when it says that all is scheduled, or nothing.

    The latest condition decides whether there is something to complain about (spec 02 section 18). If there is, the
    latest that names the cause is told, however old it is: it stays until the cause is gone. That a gang was admitted
    settles nothing.
    """
    telling = [one for one in conditions if names_cause(one) or _is_told(one)]
    # Times are whole seconds, and a refused bind comes in the second in which the group was placed.
    latest = max(telling, key=lambda one: (_when(one), names_cause(one)), default=None)
    if latest is None or (latest.type in _SETTLED and not names_cause(latest)):
        return None
    return max(filter(names_cause, telling), key=_when, default=latest)


def names_cause(condition: PodGroupCondition) -> bool:
    """Whether it says what a gang waits for, not only that it waits; its message ends with what can be done."""
    return condition.type in _CAUSES and condition.status == "False"


def _is_told(condition: PodGroupCondition) -> bool:
    return condition.status == "True" and condition.type != Type.ADMITTED


def _when(condition: PodGroupCondition) -> float:
    try:
        return timestamp(condition.last_transition_time)
    except ValueError:  # somebody else's: it must not hide what the others say
        return 0.0
