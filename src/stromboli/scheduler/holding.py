"""Keeps held gangs out of a cycle, as a plugin that the scheduler adds to the policy by itself (pain P69).

A held gang counts as not valid, so every action passes it over, and its report says why it waits and for how long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stromboli.api.reasons import NEXT_STEPS, WaitReason
from stromboli.scheduler.core.admitting import FITS
from stromboli.scheduler.core.plugin import Hooks, Invalid, Plugin
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.view import Condition, View

NAME = "bind-backoff"
OPTION = "held-jobs"
"""Key in the options of a cycle: job id to the time (seconds since the epoch) until which it is held."""
TOLD = f"nodes were found, but binds of its pods are refused; {NEXT_STEPS[WaitReason.BINDING_REFUSED]}"
"""Without numbers, so that it is written once and not every cycle."""


class BindBackoff(Plugin):
    """Declares held jobs invalid."""

    name = NAME

    def open(self, view: View) -> Hooks:
        """Takes the held jobs from the options of the cycle."""
        held = view.options.get(OPTION)
        until: Mapping[str, float] = held if isinstance(held, Mapping) else {}

        def job_valid(job: Job) -> Invalid | None:
            moment = until.get(job.id)
            if moment is None:
                return None
            seconds = max(moment - view.now, 0.0)
            return Invalid("BindBackoff", f"binds of its pods were refused; the next attempt is in {seconds:.0f} s")

        def close() -> None:
            for job in (view.jobs[job_id] for job_id in until if job_id in view.jobs):
                view.set_condition(job, Condition(FITS, WaitReason.BINDING_REFUSED, TOLD, "False"))

        return Hooks(job_valid=job_valid, close=close)


def with_backoff(policy: Policy) -> Policy:
    """The policy with the plugin in a tier of its own, where it changes nothing else."""
    return replace(policy, tiers=((PluginOption(NAME),), *policy.tiers))
