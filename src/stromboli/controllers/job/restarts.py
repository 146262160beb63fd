"""What a targeted restart is aimed at, remembered in the job's status until the restart is over.

A restart of the whole job leaves its mark on the version, by which pods of before are told from those of after. A
targeted one does not, so a controller that dies among its victims would leave the others running, and nothing would
show that they were meant. The record lives in ``status.controlledResources`` as ``restarting: task/worker`` and
is written together with the retry it counts; pods created since then carry that retry's number.
"""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.controllers.job.phases import Scope
from stromboli.controllers.job.policies import Target

_KEY = "restarting"
_SCOPES = {"task": Scope.TASK, "pod": Scope.POD, "partition": Scope.PARTITION}
_WORDS = {scope: word for word, scope in _SCOPES.items()}


def record(controlled: dict[str, str], aimed: Target) -> None:
    """Note in ``controlled`` what is restarted."""
    parts = (_WORDS[aimed.scope], aimed.task, aimed.pod if aimed.scope is Scope.POD else aimed.partition)
    controlled[_KEY] = "/".join(filter(None, parts))


def forget(controlled: dict[str, str]) -> None:
    """The restart is over, or has become one of the whole job."""
    controlled.pop(_KEY, None)


def of(controlled: Mapping[str, str]) -> Target | None:
    """What is being restarted; None when nothing is recorded that can be read."""
    word, _, rest = controlled.get(_KEY, "").partition("/")
    task, _, part = rest.partition("/")
    match _SCOPES.get(word):
        case Scope.TASK if task:
            return Target(Scope.TASK, task=task)
        case Scope.POD if part:
            return Target(Scope.POD, task=task, pod=part)
        case Scope.PARTITION if part:
            return Target(Scope.PARTITION, task=task, partition=part)
        case _:
            return None
