"""What is particular about single built-in kinds: defaults, server-set fields, essential checks."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.extending import Strategy
from stromboli.localcluster.storage import Store
from stromboli.localcluster.strategies import others, pods, services, workloads


def built_in_strategies(store: Store) -> dict[Kind, Strategy]:
    """One strategy for every built-in kind that has something particular."""
    return {
        kinds.PODS: pods.Pods(),
        kinds.POD_TEMPLATES: pods.PodTemplates(),
        kinds.SERVICES: services.Services(store),
        kinds.NAMESPACES: others.Namespaces(),
        kinds.SECRETS: others.Secrets(),
        kinds.CONFIG_MAPS: others.ConfigMaps(),
        kinds.ENDPOINTS: others.Endpoints(),
        kinds.PERSISTENT_VOLUME_CLAIMS: others.PersistentVolumeClaims(),
        kinds.PERSISTENT_VOLUMES: others.PersistentVolumes(),
        kinds.STORAGE_CLASSES: others.StorageClasses(),
        kinds.PRIORITY_CLASSES: others.PriorityClasses(),
        kinds.RESOURCE_QUOTAS: others.Quotas(),
        kinds.NETWORK_POLICIES: others.NetworkPolicies(),
        kinds.POD_DISRUPTION_BUDGETS: others.DisruptionBudgets(),
        kinds.ROLE_BINDINGS: others.Bindings(),
        kinds.CLUSTER_ROLE_BINDINGS: others.Bindings(),
        kinds.MUTATING_WEBHOOKS: others.Webhooks(mutating=True),
        kinds.VALIDATING_WEBHOOKS: others.Webhooks(mutating=False),
        kinds.DEPLOYMENTS: workloads.Deployments(),
        kinds.REPLICA_SETS: workloads.ReplicaSets(),
        kinds.STATEFUL_SETS: workloads.StatefulSets(),
        kinds.DAEMON_SETS: workloads.DaemonSets(),
        kinds.REPLICATION_CONTROLLERS: workloads.ReplicationControllers(),
        kinds.BATCH_JOBS: workloads.Jobs(),
        kinds.BATCH_CRON_JOBS: workloads.CronJobs(),
    }
