"""Jobs for real nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from e2e.cluster import Json, vcjob


@dataclass(frozen=True, slots=True)
class Workloads:
    """Makes jobs whose containers have ``image``: a shell, busybox's commands, ssh and sshd."""

    image: str

    def job(self, name: str, **arguments: Any) -> Json:
        """What :func:`e2e.cluster.vcjob` makes, with the image."""
        return self.on(vcjob(name, **arguments))

    def on(self, job: Json) -> Json:
        """The job with the image in all its containers."""
        for task in job["spec"]["tasks"]:
            spec = task["template"]["spec"]
            for container in (*spec["containers"], *spec.get("initContainers", ())):
                container["image"] = self.image
        return job
