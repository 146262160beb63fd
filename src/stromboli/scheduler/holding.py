"""Keeps held gangs out of a cycle, as a plugin that the scheduler adds to the policy by itself (pain P69).

A held gang counts as not valid, so every action passes it over, and its report says why it waits and for how long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stromboli.scheduler.core.plugin import Hooks, Invalid, Plugin
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.view import View

NAME = "bind-backoff"
OPTION = "held-jobs"
"""Key in the options of a cycle: job id to the time (seconds since the epoch) until which it is held."""


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

        return Hooks(job_valid=job_valid)


def with_backoff(policy: Policy) -> Policy:
    """The policy with the plugin in a tier of its own, where it changes nothing else."""
    return replace(policy, tiers=((PluginOption(NAME),), *policy.tiers))
