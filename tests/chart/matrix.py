"""The combinations of values that goldens are kept of. ``python -m tests.chart.matrix`` writes the goldens anew."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import yaml
from e2e.realcluster import binaries
from e2e.realcluster.rendering import Release, Values, render

GOLDENS = Path(__file__).with_name("goldens")
RELEASE = Release("volcano", "volcano-system")

MATRIX: dict[str, Values] = {
    "defaults": {},
    "scheduler-only": {"custom": {"admission_enable": False, "controller_enable": False}},
    "highly-available": {
        "custom": {"admission_replicas": 2, "controller_replicas": 2, "scheduler_replicas": 2, "log_format": "json"}
    },
    "cert-manager": {
        "custom": {"admission_certificates": "cert-manager", "controller_enable": False, "scheduler_enable": False}
    },
    "cert-manager-with-own-issuer": {
        "custom": {
            "admission_certificates": "cert-manager",
            "admission_cert_manager_issuer": {"name": "company", "kind": "ClusterIssuer"},
            "controller_enable": False,
            "scheduler_enable": False,
        }
    },
    "given-secret": {
        "basic": {"admission_secret_name": "my-certificates", "admission_port": 9443},
        "custom": {
            "admission_certificates": "secret",
            "controller_enable": False,
            "scheduler_enable": False,
            "enabled_admissions": "/pods/mutate, /pods/validate,/podgroups/mutate,/jobflows/validate",
            "scheduler_name": ["volcano", "second"],
            "webhooks_namespace_selector_expressions": [{"key": "batch", "operator": "Exists"}],
        },
    },
    "dashboard": {
        "custom": {
            "dashboard_enable": True,
            **{f"{part}_enable": False for part in ("admission", "controller", "scheduler")},
        }
    },
    "dashboard-behind-a-proxy": {
        "custom": {
            "dashboard_enable": True,
            "dashboard_service_enable": True,
            "dashboard_metrics_enable": False,
            "dashboard_allowed_hosts": ["batch.example", "dashboard.example"],
            "dashboard_replicas": 2,
            "scheduler_name": "other",
            **{f"{part}_enable": False for part in ("admission", "controller", "scheduler")},
        }
    },
    "policies-instead-of-webhooks": {
        "custom": {
            "vap_enable": True,
            "map_enable": True,
            "map_api_version": "v1beta1",
            "enabled_admissions": "",
            "controller_enable": False,
            "scheduler_enable": False,
        }
    },
    "monitoring": {
        "custom": {
            "metrics_enable": True,
            "prometheus_rule_enable": True,
            "prometheus_rule_labels": {"release": "prometheus"},
            "kube_state_metrics_ns": {"node": "monitoring"},
            "admission_enable": False,
            "controller_enable": False,
            "scheduler_enable": False,
        }
    },
    "everything-said": {
        "basic": {
            "image_registry": "registry.example",
            "image_tag_version": "v1",
            "scheduler_image_tag_version": "v2",
            "image_pull_secret": "pull",
            "image_pull_policy": "Always",
        },
        "service": {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"]},
        "custom": {
            "leader_elect_enable": True,
            "pod_disruption_budget_enable": False,
            "service_monitor_enable": True,
            "service_monitor_labels": {"release": "prometheus"},
            "scheduler_pprof_enable": True,
            "scheduler_plugins_dir": "/plugins",
            "scheduler_percentage_nodes_to_find": 0,
            "scheduler_feature_gates": "CSIStorage=true",
            "admission_feature_gates": "SchedulingGatesQueueAdmission=true",
            "admission_max_queue_depth": 7,
            "admission_queue_allocated_pods_check_enable": True,
            "admission_root_queue_protection_enable": False,
            "ignored_provisioners": "a.example,b.example",
            "scheduler_sharding_mode": "soft",
            "scheduler_sharding_name": "mine",
            "controller_enabled_controllers": "*,-gc-controller",
            "scheduler_name": "other",
            "scheduler_config_override": 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n',
            "admission_config_override": "resourceGroups: []\n",
            "controller_config_override": {"networkTopologyDiscovery": []},
            "sharding_configmap_data": "schedulerConfigs: []\n",
            "common_labels": {"team": "batch", "tier": "common"},
            "scheduler_labels": {"tier": "scheduler"},
            "scheduler_podLabels": {"pod": "scheduler"},
            "aggregationRule_labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"},
            "default_tolerations": [{"key": "control-plane", "operator": "Exists"}],
            "scheduler_tolerations": [{"key": "scheduler", "operator": "Exists"}],
            "default_ns": {"kubernetes.io/os": "linux"},
            "default_affinity": {"podAntiAffinity": {}},
            "scheduler_resources": {"limits": {"memory": "1Gi"}},
            "scheduler_main_csc": {
                "runAsNonRoot": True,
                "runAsUser": 2000,
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
            "scheduler_extra_volumes": [{"name": "plugins", "configMap": {"name": "my-plugins"}}],
            "scheduler_extra_volume_mounts": [{"name": "plugins", "mountPath": "/plugins"}],
            "scheduler_extra_env": [{"name": "BATCH_BIND_NUM", "value": "10"}],
            "scheduler_extra_args": ["--default-queue=team"],
        },
    },
}


async def golden(program: Path, name: str) -> str:
    """What the golden of that combination should hold: the objects, CRDs left out."""
    objects = await render(program, RELEASE, MATRIX[name], crds=False)
    return "---\n".join(yaml.safe_dump(item, sort_keys=True, width=120) for item in objects)


async def _write(program: Path) -> None:
    for name in MATRIX:
        (GOLDENS / f"{name}.yaml").write_text(await golden(program, name))


if __name__ == "__main__":
    found = binaries.helm()
    sys.exit("no helm: run 'python -m e2e.realcluster --build' first") if found is None else asyncio.run(_write(found))
