"""Keeps held gangs out of a cycle, as a plugin that the scheduler adds to the policy by itself (pain P69).

A held gang counts as not valid, so every action passes it over, and its report says why it waits and for how long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from stromboli.api.reasons import NEXT_STEPS, WaitReason
from stromboli.scheduler.backing_off import Hold
from stromboli.scheduler.core.admitting import FITS
from stromboli.scheduler.core.plugin import Hooks, Invalid, Plugin
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.view import Condition, View

NAME = "bind-backoff"
OPTION = "held-jobs"
"""Key in the options of a cycle: job id to the :class:`Hold` of the gang."""
TOLD = "nodes were found, but binds of its pods are refused"


class BindBackoff(Plugin):
    """Declares held jobs invalid."""

    name = NAME

    def open(self, view: View) -> Hooks:
        """Takes the held jobs from the options of the cycle."""
        given = view.options.get(OPTION)
        held: Mapping[str, Hold] = given if isinstance(given, Mapping) else {}

        def job_valid(job: Job) -> Invalid | None:
            hold = held.get(job.id)
            if hold is None:
                return None
            seconds = max(hold.until - view.now, 0.0)
            return Invalid("BindBackoff", f"binds of its pods were refused; the next attempt is in {seconds:.0f} s")

        def close() -> None:
            for job_id, hold in held.items():
                if job_id in view.jobs:
                    condition = Condition(FITS, WaitReason.BINDING_REFUSED, told(hold), "False")
                    view.set_condition(view.jobs[job_id], condition)

        return Hooks(job_valid=job_valid, close=close)


def told(hold: Hold) -> str:
    """Why a held gang waits, until when, and the next step.

    With the moment of the next attempt and not the time until then, so that it is written once a hold and not in every
    cycle.
    """
    said = f": {hold.error}" if hold.error else ""
    moment = datetime.fromtimestamp(hold.until, UTC)
    return f"{TOLD}{said}; they are tried again at {moment:%H:%M:%S} UTC; {NEXT_STEPS[WaitReason.BINDING_REFUSED]}"


def with_backoff(policy: Policy) -> Policy:
    """The policy with the plugin in a tier of its own, where it changes nothing else."""
    return replace(policy, tiers=((PluginOption(NAME),), *policy.tiers))
