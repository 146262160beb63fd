"""resourcequota: jobs that the quotas of their namespace would block are not admitted (spec 06 section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from stromboli.api import core, quantities
from stromboli.api.reasons import WaitReason, advice
from stromboli.scheduler.core.plugin import Hooks, Plugin, Vote

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job
    from stromboli.scheduler.core.view import View

Amounts: TypeAlias = dict[str, Fraction]
_WORD = WaitReason.RESOURCE_QUOTA_INSUFFICIENT
_USUAL = "Wait for work of the namespace to end, raise the quota, or ask for less."


class ResourceQuota(Plugin):
    """Holds minimum resources against every quota, by literal names; scopes are not looked at (quirk, kept)."""

    name: ClassVar[str] = "resourcequota"

    def open(self, view: View) -> Hooks:
        self._view = view
        self._quotas: dict[str, list[core.ResourceQuota]] = {}
        for (namespace, _), quota in view.objects.all(core.ResourceQuota).items():
            self._quotas.setdefault(namespace, []).append(quota)
        self._pending: dict[str, Amounts] = {}
        return Hooks(job_enqueueable=self._enqueueable, job_enqueued=self._enqueued)

    def _enqueueable(self, job: Job) -> Vote:
        wanted = _minimum(job)
        for quota in self._quotas.get(job.namespace, ()) if wanted else ():
            hard, used = _read(quota.spec.hard), _read(quota.status.used)
            pending = self._pending.get(job.namespace, {})
            over = [
                name
                for name, amount in wanted.items()
                if name in hard and used.get(name, 0) + pending.get(name, 0) + amount > hard[name]
            ]
            if over:
                lasting = any(wanted[name] > hard[name] for name in over)
                step = advice(_WORD, in_vain=True) if lasting else _USUAL
                self._refuse(job, quota.name, _text(wanted, over), _text(used, over), _text(hard, over), step)
                return Vote.REJECT
        return Vote.PERMIT

    def _enqueued(self, job: Job) -> None:
        pending = self._pending.setdefault(job.namespace, {})
        for name, amount in _minimum(job).items():
            pending[name] = pending.get(name, Fraction(0)) + amount

    def _refuse(self, job: Job, quota: str, wanted: str, used: str, hard: str, step: str) -> None:
        text = f"resource quota insufficient, requested: {wanted}, used: {used}, limited: {hard}"
        self._view.report(job, "Unschedulable", text)
        sentence = f"The group needs {wanted}; ResourceQuota {quota} allows {hard}, of which {used} is used. {step}"
        self._view.refuse(job, _WORD, sentence)


def _minimum(job: Job) -> Amounts:
    return _read((job.pod_group.spec.min_resources if job.pod_group else None) or {})


def _read(resources: Mapping[str, quantities.Quantity]) -> Amounts:
    """Exact amounts; what cannot be read is left out."""
    return {name: quantities.parse(amount) for name, amount in resources.items() if quantities.is_quantity(amount)}


def _text(amounts: Amounts, names: list[str]) -> str:
    return ", ".join(f"{name} {quantities.format(amounts.get(name, Fraction(0)))}" for name in names)
