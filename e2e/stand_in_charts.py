"""Charts that the tests of installing start from: one shaped like Volcano's, and an older one of ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from e2e.realcluster.rendering import CHART
from stromboli.api.crds import custom_resource_definitions
from stromboli.api.kinds import CONFIG_MAPS, DEPLOYMENTS, JOBS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from stromboli.kube.json import JsonObject

NAMESPACE = "volcano-system"


def volcanos(directory: Path) -> Path:
    """A chart shaped like Volcano's where it matters: CRDs are templates that nothing keeps, names are the same."""
    chart = directory / "volcano"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: volcano\nversion: 1.15.0\n")
    (chart / "values.yaml").write_text("custom: {}\n")
    objects = [*map(_without_notes, custom_resource_definitions()), *map(_deployment, ("scheduler", "controllers"))]
    for item in [*objects, _policy(), *_webhooks()]:
        (chart / "templates" / f"{item['kind']}-{item['metadata']['name']}.yaml").write_text(yaml.safe_dump(item))
    return chart


def older(directory: Path) -> Path:
    """This chart as it might have been: its vcjobs have no column for the queue."""
    chart = Path(shutil.copytree(CHART, directory / "older"))
    file = chart / "definitions" / "batch.volcano.sh_jobs.yaml"
    crd = yaml.load(file.read_text(), yaml.CSafeLoader)
    (version,) = crd["spec"]["versions"]
    version["additionalPrinterColumns"] = [one for one in version["additionalPrinterColumns"] if one["name"] != "QUEUE"]
    file.write_text(yaml.safe_dump(crd))
    return chart


def _without_notes(crd: JsonObject) -> JsonObject:
    return {**crd, "metadata": {"name": crd["metadata"]["name"]}}


def _deployment(component: str) -> JsonObject:
    labels = {"app": {"scheduler": "volcano-scheduler", "controllers": "volcano-controller"}[component]}
    container = {"name": f"volcano-{component}", "image": f"volcanosh/vc-{component}"}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": f"volcano-{component}", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _policy() -> JsonObject:
    """The ConfigMap of the scheduler's policy file."""
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {"name": "volcano-scheduler-configmap", "namespace": NAMESPACE},
        "data": {"volcano-scheduler.conf": 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'},
    }


def _webhooks() -> list[JsonObject]:
    """Two configurations of the known names, whose failures are ignored: nobody answers here."""
    rule = {
        "apiGroups": [JOBS.group],
        "apiVersions": [JOBS.version],
        "resources": [JOBS.plural],
        "operations": ["CREATE"],
    }
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": f"volcano-admission-service-jobs-{verb}"},
            "webhooks": [
                {
                    "name": f"{verb}job.volcano.sh",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Ignore",
                    "clientConfig": {"service": {"name": "volcano-admission-service", "namespace": NAMESPACE}},
                    "rules": [rule],
                }
            ],
        }
        for verb, kind in (("mutate", MUTATING_WEBHOOKS), ("validate", VALIDATING_WEBHOOKS))
    ]
