"""Names of the API kinds the system talks about, and the URL paths that follow from them.

A :class:`Kind` is only a name: it knows group, version, plural, kind and scope, never a schema.
Sources: spec 01 section 2; the Kubernetes API.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One served API kind, for example ``Kind("batch.volcano.sh", "v1alpha1", "jobs", "Job")``."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``group/version``, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """Kind of a list of these objects."""
        return f"{self.kind}List"

    @property
    def resource(self) -> str:
        """``plural.group`` as errors and CRDs spell it; the bare plural for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of a collection, an object or a subresource.

        ``namespace`` is ignored for cluster-scoped kinds; without it a namespaced kind's path means all namespaces.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/" + "/".join(parts)


# Core and friends
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Kind("", "v1", "nodes", "Node", namespaced=False)
PODS = Kind("", "v1", "pods", "Pod")
SERVICES = Kind("", "v1", "services", "Service")
ENDPOINTS = Kind("", "v1", "endpoints", "Endpoints")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
SECRETS = Kind("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS = Kind("", "v1", "events", "Event")
POD_TEMPLATES = Kind("", "v1", "podtemplates", "PodTemplate")
REPLICATION_CONTROLLERS = Kind("", "v1", "replicationcontrollers", "ReplicationController")
RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange")
PERSISTENT_VOLUMES = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
BINDINGS = Kind("", "v1", "bindings", "Binding")
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Kind("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Kind("apps", "v1", "statefulsets", "StatefulSet")
DAEMON_SETS = Kind("apps", "v1", "daemonsets", "DaemonSet")
CONTROLLER_REVISIONS = Kind("apps", "v1", "controllerrevisions", "ControllerRevision")
BATCH_JOBS = Kind("batch", "v1", "jobs", "Job")
BATCH_CRON_JOBS = Kind("batch", "v1", "cronjobs", "CronJob")
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
POD_DISRUPTION_BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CSI_NODES = Kind("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
CSI_DRIVERS = Kind("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITIES = Kind("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity")
VOLUME_ATTACHMENTS = Kind("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False)
RESOURCE_CLAIMS = Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES = Kind("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
RESOURCE_SLICES = Kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
DEVICE_CLASSES = Kind("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
DEVICE_TAINT_RULES = Kind("resource.k8s.io", "v1alpha3", "devicetaintrules", "DeviceTaintRule", namespaced=False)
ROLES = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
CUSTOM_RESOURCE_DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)

# The system's own
JOBS = Kind("batch.volcano.sh", "v1alpha1", "jobs", "Job")
CRON_JOBS = Kind("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob")
COMMANDS = Kind("bus.volcano.sh", "v1alpha1", "commands", "Command")
POD_GROUPS = Kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUES = Kind("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
JOB_FLOWS = Kind("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow")
JOB_TEMPLATES = Kind("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate")
HYPER_NODES = Kind("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", namespaced=False)
NUMATOPOLOGIES = Kind("nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "Numatopology", namespaced=False)
NODE_SHARDS = Kind("shard.volcano.sh", "v1alpha1", "nodeshards", "NodeShard", namespaced=False)
COLOCATION_CONFIGURATIONS = Kind("config.volcano.sh", "v1alpha1", "colocationconfigurations", "ColocationConfiguration")

ALL: tuple[Kind, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
"""Every kind named here, built-in and own."""

OWN: tuple[Kind, ...] = tuple(kind for kind in ALL if kind.group.endswith(".volcano.sh"))
"""The kinds that the system defines by CRD."""
