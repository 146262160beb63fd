"""Pod templates of tasks (spec 07 section 9).

Core validation is the API server's own work: :mod:`~stromboli.webhooks.podtemplates.asking` shows it each template
in a dry run. The rules here are the ones most users hit, so that they get an answer at once, and so that an API server
that judges no templates (or none at all) still leaves a minimum in place. They refuse nothing that a current server
accepts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from stromboli.webhooks.errors import FieldError, invalid, required, some
from stromboli.webhooks.naming import dns_subdomain_faults
from stromboli.webhooks.podtemplates import containers, pods
from stromboli.webhooks.podtemplates.shapes import PodTemplate
from stromboli.webhooks.shapes import JsonObject, Malformed, read


@dataclass(frozen=True, slots=True)
class LocalTemplates:
    """Judges templates by the local rules only."""

    pod_level_resources: bool = True

    def faults(self, name: str, namespace: str, template: JsonObject) -> list[FieldError]:
        """What is wrong with the template of task ``name``; wrong types are then all that is reported."""
        try:
            pod_template = read(PodTemplate, template, "template")
        except Malformed as error:
            return list(error.errors)
        return some(chain(_identity_faults(name, namespace), self._template_faults(pod_template)))

    def _template_faults(self, template: PodTemplate) -> Iterator[FieldError]:
        yield from pods.label_faults(template.metadata.labels, "template.labels")
        yield from pods.annotation_faults(template.metadata.annotations, "template.annotations")
        yield from containers.all_faults(template.spec, "template.spec")
        yield from pods.spec_faults(template.spec, "template.spec", pod_level_resources=self.pod_level_resources)


def _identity_faults(name: str, namespace: str) -> Iterator[FieldError]:
    """Faults of the pseudo object that carries the template: named like the task, in the job's namespace."""
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from (invalid("metadata.name", name, fault) for fault in dns_subdomain_faults(name))
    if not namespace:
        yield required("metadata.namespace")
