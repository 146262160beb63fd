"""A flow and everything it is judged by, as one pass sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from stromboli.api import names
from stromboli.api.batch import Job
from stromboli.api.flow import Flow, JobFlow
from stromboli.api.phases import FINISHED_JOB_PHASES
from stromboli.kube.json import JsonObject


@dataclass(frozen=True)
class View:
    """A flow, the jobs it controls by name, the templates of its namespace that it names, as stored, and jobs of
    other owners that stand where one of its own should."""

    flow: JobFlow
    jobs: Mapping[str, Job] = field(default_factory=dict)
    templates: Mapping[str, JsonObject] = field(default_factory=dict)
    strangers: frozenset[str] = frozenset()

    @cached_property
    def steps(self) -> Mapping[str, Flow]:
        """The steps by name, in order. Of two with one name the last counts, as admission has it."""
        return {step.name: step for step in self.flow.spec.flows}

    @cached_property
    def remembered(self) -> Mapping[str, str]:
        """Jobs that have finished before, by name, with the phase they finished in: they are not run again."""
        found = self.flow.status.job_status_list
        return {one.name: one.state for one in found if one.state in FINISHED_JOB_PHASES}

    def job_name(self, step: str) -> str:
        """Name of the job of a step."""
        return names.job_flow_child_name(self.flow.name, step)

    def job_of(self, step: str) -> Job | None:
        """The job of a step, if there is one."""
        return self.jobs.get(self.job_name(step))

    def phase_of(self, step: str) -> str:
        """Phase of a step's job, also of one that has finished and was deleted since; ``""`` before it is made."""
        job = self.job_of(step)
        return job.status.state.phase if job is not None else self.remembered.get(self.job_name(step), "")

    def is_made(self, step: str) -> bool:
        """Whether the step's job was made, or must not be."""
        name = self.job_name(step)
        return name in self.jobs or name in self.remembered or name in self.strangers
