"""Names with a meaning: labels, annotations, taints, gates, environment variables, well-known objects.

Each constant says what its value is and who acts on it; the full contract is spec 01 sections 17 to 20. Constants of
labels and annotations are called by their key alone, because several keys are used as both.
"""

from __future__ import annotations

from typing import Final

# --- Pods of a Job: written by the Job controller (spec 01 section 17.1) ---------------------------------------------

TASK_SPEC: Final = "volcano.sh/task-spec"
"""Label and annotation: task name. The scheduler reads the annotation first."""
TASK_INDEX: Final = "volcano.sh/task-index"
"""Label and annotation: decimal index within the task, from 0."""
JOB_NAME: Final = "volcano.sh/job-name"
"""Label and annotation: Job name."""
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
"""Label: Job namespace."""
QUEUE_NAME: Final = "volcano.sh/queue-name"
"""Label and annotation on pods of a Job: queue of the Job."""
JOB_VERSION: Final = "volcano.sh/job-version"
"""Annotation: ``status.version`` of the Job when the pod was created. Pods without it are not the controller's."""
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
"""Annotation: ``status.retryCount`` when the pod was created; informational."""
TEMPLATE_UID: Final = "volcano.sh/template-uid"
"""Annotation: ``<job>-<task>``; pods that share it share predicate results."""
PARTITION_ID: Final = "volcano.sh/partition-id"
"""Label: ``index / partitionSize``, only with a partition policy."""
NUMA_TOPOLOGY_POLICY: Final = "volcano.sh/numa-topology-policy"
"""Annotation: ``none``, ``best-effort``, ``restricted`` or ``single-numa-node``."""
JOB_FORWARDING: Final = "volcano.sh/job-forwarding"
"""Label and annotation: ``true`` when the queue has ``extendClusters``."""
HCCL_RANK_INDEX: Final = "hccl/rankIndex"
"""Annotation: rank, by the Job plugin ``hcclrank``."""

# --- Pods and workloads: written by users and other components (section 17.2) ----------------------------------------

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""Annotation: PodGroup of the pod. The only key that links a pod to a PodGroup."""
GROUP_NAME_UNLINKED: Final = "scheduling.volcano.sh/group-name"
"""Annotation: looks like :data:`GROUP_NAME` but links nothing (quirk); only the vGPU spread policy falls back to it."""
POD_QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
"""Annotation on pods and namespaces: queue."""
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
"""Annotation on owners of pods: ``minMember`` of the generated PodGroup."""
GROUP_MIN_RESOURCES: Final = "scheduling.volcano.sh/group-min-resources"
"""Declared by the API, acted on by nothing."""
QUEUE_ALLOCATION_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
"""Annotation (exactly ``true``) that opts a pod in, and the name of the scheduling gate that results."""
INHERITED_PREFIX: Final = "volcano.sh/"
"""Annotations with exactly this prefix are copied from a pod's owners to its PodGroup."""
PREEMPTABLE: Final = "volcano.sh/preemptable"
"""Annotation, else label: bool-string. Absent is true for a pod and false for a PodGroup; invalid is false."""
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
"""Annotation on pods and PodGroups (``*`` or nothing); label on nodes: zone name."""
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
"""Label, else annotation: Go duration during which the pod is no victim."""
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
"""Annotation: positive integer or 1 to 99 percent. Wins over :data:`JDB_MAX_UNAVAILABLE`."""
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
"""Annotation: positive integer or 1 to 99 percent."""
NETWORK_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
"""Annotation on bare pods: ``hard`` or ``soft``; anything else is ``hard``."""
NETWORK_TOPOLOGY_HIGHEST_TIER: Final = "volcano.sh/network-topology-highest-tier"
"""Annotation on bare pods: decimal tier."""
TASK_PRIORITY: Final = "volcano.sh/task-priority"
"""Annotation: decimal 32-bit integer that overrides the task's priority."""
TOPOLOGY_DECISION: Final = "volcano.sh/topology-decision"
"""Annotation: JSON of the NUMA placement, written by the scheduler with the bind."""
RESOURCE_STRATEGY_SCORING_TYPE: Final = "volcano.sh/resource-strategy-scoring-type"
"""Annotation: ``MostAllocated`` or ``LeastAllocated``."""
RESOURCE_STRATEGY_WEIGHT: Final = "volcano.sh/resource-strategy-weight"
"""Annotation: JSON map of resource to weight."""
RESOURCE_GROUP: Final = "volcano.sh/resource-group"
"""Annotation: resource group that pod admission selects."""
CONTROLLER_OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
"""Annotation: presence marks a pod that the Job controller deletes on purpose."""
SCHEDULING_PRIORITY: Final = "volcano.sh/scheduling-priority"
"""Annotation, agent scheduler: 100, 50 or 0."""
SCHEDULING_PRIORITY_REASON: Final = "volcano.sh/scheduling-priority-reason"
"""Annotation, agent scheduler: text."""
SCHEDULING_PRIORITY_TIMESTAMP: Final = "volcano.sh/scheduling-priority-timestamp"
"""Annotation, agent scheduler: nanoseconds since the epoch."""
FORWARD_CLUSTER: Final = "volcano.sh/forward-cluster"
"""Annotation: cluster a pod or PodGroup is bound to; nothing shipped writes it."""
BURST_NAME: Final = "volcano.sh/burst-name"
"""Declared by the API, acted on by nothing."""
SILO_RESOURCE: Final = "volcano.sh/silo-resource"
"""Declared by the API, acted on by nothing."""
QOS_LEVEL: Final = "volcano.sh/qos-level"
"""Annotation, node agent: ``LC``, ``HLS``, ``LS`` or ``BE``."""
ENABLE_QUOTA_BURST: Final = "volcano.sh/enable-quota-burst"
"""Annotation, node agent: bool-string."""
QUOTA_BURST_TIME: Final = "volcano.sh/quota-burst-time"
"""Annotation, node agent: microseconds per CFS period."""
COLOCATION_CONFIG: Final = "volcano.sh/colocation-config"
"""Annotation: JSON of the colocation configuration; ``{}`` resets."""
COLOCATION_CONFIG_NAME: Final = "volcano.sh/colocation-config-name"
"""Annotation: name of the ColocationConfiguration."""
INGRESS_BANDWIDTH: Final = "kubernetes.io/ingress-bandwidth"
"""Annotation: presence makes the node agent skip network QoS."""
EGRESS_BANDWIDTH: Final = "kubernetes.io/egress-bandwidth"
"""Annotation: presence makes the node agent skip network QoS."""
MIRROR_POD: Final = "kubernetes.io/config.mirror"
"""Annotation: presence marks a static pod."""

# --- Jobs (section 17.3) ---------------------------------------------------------------------------------------------

JOB_TYPE: Final = "volcano.sh/job-type"
"""Label: free text for the CLI's list."""
CREATED_BY_JOB_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
"""Label and annotation: ``<namespace>.<template>``."""
CREATED_BY_JOB_FLOW: Final = "volcano.sh/createdByJobFlow"
"""Label and annotation: ``<namespace>.<jobflow>``."""
CRON_JOB_SCHEDULED_TIMESTAMP: Final = "volcano.sh/cronjob-scheduled-timestamp"
"""Annotation: RFC 3339 slot of a CronJob's child."""

# --- PodGroups (section 17.4) ----------------------------------------------------------------------------------------

SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"
"""Annotation: Go duration above 0."""
SLA_WAITING_TIME_LEGACY: Final = "sla-waiting-time"
"""Annotation: read when :data:`SLA_WAITING_TIME` gives nothing."""
TASK_TOPOLOGY_AFFINITY: Final = "volcano.sh/task-topology-affinity"
"""Annotation: groups separated by ``;``, task names by ``,``."""
TASK_TOPOLOGY_ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
"""Annotation: groups separated by ``;``, task names by ``,``."""
TASK_TOPOLOGY_TASK_ORDER: Final = "volcano.sh/task-topology-task-order"
"""Annotation: task names separated by ``,``."""
TASK_TOPOLOGY: Final = "volcano.sh/task-topology"
"""Declared by the API, acted on by nothing."""
JOB_ALLOCATED_HYPERNODE: Final = "volcano.sh/job-allocated-hypernode"
"""Annotation: former place of a job's domain; never written."""

# --- Queues (section 17.5) -------------------------------------------------------------------------------------------

HIERARCHY: Final = "volcano.sh/hierarchy"
"""Annotation: slash path such as ``root/eng/prod``, for hierarchical DRF."""
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
"""Annotation: slash list of weights, as long as the path."""
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
"""Annotation: ``true`` when a close came down from the parent."""

# --- Nodes and HyperNodes (section 17.6) -----------------------------------------------------------------------------

NODE_GROUP_NAME: Final = "volcano.sh/nodegroup-name"
"""Node label: group of the nodegroup plugin."""
OVERSUBSCRIPTION: Final = "volcano.sh/oversubscription"
"""Node label: bool-string."""
COLOCATION: Final = "volcano.sh/colocation"
"""Node label: bool-string."""
COLOCATION_POLICY: Final = "colocation-policy"
"""Node label, node agent: text whose change reloads the configuration."""
OFFLINE_JOB_EVICTING: Final = "volcano.sh/offline-job-evicting"
"""Node annotation (bool-string) and taint key (effect ``NoSchedule``)."""
OVERSUBSCRIPTION_CPU: Final = "volcano.sh/oversubscription-cpu"
"""Node annotation: decimal milli-CPU."""
OVERSUBSCRIPTION_MEMORY: Final = "volcano.sh/oversubscription-memory"
"""Node annotation: decimal bytes."""
OVERSUBSCRIPTION_TYPES: Final = "volcano.sh/oversubscription-types"
"""Node annotation: comma list of resources."""
EVICTING_CPU_HIGH_WATERMARK: Final = "volcano.sh/evicting-cpu-high-watermark"
"""Node annotation: percent, default 80."""
EVICTING_CPU_LOW_WATERMARK: Final = "volcano.sh/evicting-cpu-low-watermark"
"""Node annotation: percent, default 30."""
EVICTING_MEMORY_HIGH_WATERMARK: Final = "volcano.sh/evicting-memory-high-watermark"
"""Node annotation: percent, default 60."""
EVICTING_MEMORY_LOW_WATERMARK: Final = "volcano.sh/evicting-memory-low-watermark"
"""Node annotation: percent, default 30."""
LEGACY_EVICTING_CPU_HIGH_WATERMARK: Final = "volcano.sh/oversubscription-evicting-cpu-high-watermark"
"""Node annotation: used when the new spelling is absent."""
LEGACY_EVICTING_CPU_LOW_WATERMARK: Final = "volcano.sh/oversubscription-evicting-cpu-low-watermark"
"""Node annotation: used when the new spelling is absent."""
LEGACY_EVICTING_MEMORY_HIGH_WATERMARK: Final = "volcano.sh/oversubscription-evicting-memory-high-watermark"
"""Node annotation: used when the new spelling is absent."""
LEGACY_EVICTING_MEMORY_LOW_WATERMARK: Final = "volcano.sh/oversubscription-evicting-memory-low-watermark"
"""Node annotation: used when the new spelling is absent."""
NETWORK_BANDWIDTH_RATE: Final = "volcano.sh/network-bandwidth-rate"
"""Node annotation: Mbps."""
NODE_WARMUP: Final = "node.volcano.sh/warmup"
"""Node label (configurable): ``true`` for warm nodes of the sharding controller."""
NETWORK_TOPOLOGY_SOURCE: Final = "volcano.sh/network-topology-source"
"""HyperNode label: discoverer that owns the object, ``ufm`` or ``label``."""
HOSTNAME: Final = "kubernetes.io/hostname"
"""Node label of Kubernetes: host name."""
ZONE: Final = "topology.kubernetes.io/zone"
"""Node label of Kubernetes: zone."""
REGION: Final = "topology.kubernetes.io/region"
"""Node label of Kubernetes: region."""
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
"""Taint of Kubernetes on cordoned nodes."""

# --- Device sharing (section 17.7) -----------------------------------------------------------------------------------

GPU_INDEX: Final = "volcano.sh/gpu-index"
"""Pod annotation, gpushare: comma list of card ids."""
PREDICATE_TIME: Final = "volcano.sh/predicate-time"
"""Pod annotation, gpushare: nanoseconds since the epoch."""
GPU_UNHEALTHY_IDS: Final = "volcano.sh/gpu-unhealthy-ids"
"""Node annotation, gpushare: comma list of card ids."""
NODE_VGPU_REGISTER: Final = "volcano.sh/node-vgpu-register"
"""Node annotation, vgpu: cards of the node."""
VGPU_NODE: Final = "volcano.sh/vgpu-node"
"""Pod annotation, vgpu: node name."""
VGPU_TIME: Final = "volcano.sh/vgpu-time"
"""Pod annotation, vgpu: seconds since the epoch."""
BIND_TIME: Final = "volcano.sh/bind-time"
"""Pod annotation, vgpu: seconds since the epoch."""
VGPU_IDS: Final = "volcano.sh/vgpu-ids-new"
"""Pod annotation, vgpu: devices per container."""
DEVICES_TO_ALLOCATE: Final = "volcano.sh/devices-to-allocate"
"""Pod annotation, vgpu: devices per container that are still to be handed over."""
BIND_PHASE: Final = "volcano.sh/bind-phase"
"""Pod annotation, vgpu: ``allocating``, then ``success`` or ``failed``."""
VGPU_MODE: Final = "volcano.sh/vgpu-mode"
"""Pod annotation, vgpu: ``hami-core``, ``mig`` or ``mps``."""
VGPU_PODGROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"
"""Pod annotation, vgpu: ``spread``."""
USE_GPU_TYPE: Final = "nvidia.com/use-gputype"
"""Pod annotation, vgpu: comma list of accepted card types."""
NO_USE_GPU_TYPE: Final = "nvidia.com/nouse-gputype"
"""Pod annotation, vgpu: comma list of refused card types."""
GPU_SHARE_NODE_LOCK: Final = "gpu"
"""Node annotation (no prefix: quirk): RFC 3339 time of a gpushare lock."""
VGPU_NODE_LOCK: Final = "hamivgpu"
"""Node annotation (no prefix: quirk): RFC 3339 time of a vgpu lock."""

# --- Resources with a meaning (section 18) ---------------------------------------------------------------------------

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
NVIDIA_GPU: Final = "nvidia.com/gpu"
"""Default GPU resource."""
GPU_MEMORY: Final = "volcano.sh/gpu-memory"
GPU_NUMBER: Final = "volcano.sh/gpu-number"
VGPU_NUMBER: Final = "volcano.sh/vgpu-number"
VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"
"""In MiB."""
VGPU_MEMORY_PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"
VGPU_CORES: Final = "volcano.sh/vgpu-cores"
"""In percent."""
BATCH_CPU: Final = "kubernetes.io/batch-cpu"
"""Oversubscribed CPU that the node agent publishes."""
BATCH_MEMORY: Final = "kubernetes.io/batch-memory"
"""Oversubscribed memory that the node agent publishes."""
DEVICE_CLASS_PREFIX: Final = "deviceclass/"
"""Queue quota keys for device classes: ``deviceclass/<class>`` and ``<dimension>.deviceclass/<class>``."""

# --- Environment of Job pods (section 19.1) --------------------------------------------------------------------------

ENV_TASK_INDEX: Final = "VC_TASK_INDEX"
ENV_TASK_INDEX_LEGACY: Final = "VK_TASK_INDEX"
ENV_MPI_HOST: Final = "MPI_HOST"
ENV_MASTER_ADDR: Final = "MASTER_ADDR"
ENV_MASTER_PORT: Final = "MASTER_PORT"
ENV_WORLD_SIZE: Final = "WORLD_SIZE"
ENV_RANK: Final = "RANK"
ENV_TF_CONFIG: Final = "TF_CONFIG"
SVC_MOUNT_PATH: Final = "/etc/volcano"
"""Where the ``svc`` plugin mounts its ConfigMap."""

# --- Environment of the components (section 19.2) --------------------------------------------------------------------

ENV_POD_NAMESPACE: Final = "KUBE_POD_NAMESPACE"
ENV_HELM_RELEASE_NAME: Final = "HELM_RELEASE_NAME"
ENV_MULTI_SCHEDULER_ENABLE: Final = "MULTI_SCHEDULER_ENABLE"
ENV_SCHEDULER_NUM: Final = "SCHEDULER_NUM"
ENV_SCHEDULER_POD_NAME: Final = "SCHEDULER_POD_NAME"
ENV_BATCH_BIND_NUM: Final = "BATCH_BIND_NUM"
ENV_SUBMIT_SCHEDULER_NAME: Final = "VOLCANO_SCHEDULER_NAME"
ENV_SUBMIT_IMAGE: Final = "VOLCANO_DEFAULT_IMAGE"
ENV_SUBMIT_NAMESPACE: Final = "VOLCANO_DEFAULT_JOB_NAMESPACE"

# --- Well-known objects and identities (section 20). No component uses finalizers. -----------------------------------

DEFAULT_QUEUE: Final = "default"
ROOT_QUEUE: Final = "root"
DEFAULT_SCHEDULER: Final = "volcano"
AGENT_SCHEDULER: Final = "agent-scheduler"
SYSTEM_NAMESPACE: Final = "volcano-system"
DEFAULT_TASK: Final = "default"
"""Task name where a template has none; admission appends the index."""
SHARDING_CONFIG_MAP: Final = "volcano-sharding-configmap"
SHARDING_CONFIG_KEY: Final = "sharding.yaml"
DEFAULT_HELM_RELEASE: Final = "volcano"
CONTROLLER_CONFIG_MAP_SUFFIX: Final = "-controller-configmap"
"""Appended to the Helm release name."""
CONTROLLER_CONFIG_KEY: Final = "volcano-controller.conf"
QUEUE_FIELD_MANAGER: Final = "queue-controller"
CONTROLLER_EVENT_SOURCE: Final = "vc-controller-manager"
"""Event source component of all controllers."""
JOB_PLUGIN_ENTRY_POINTS: Final = "stromboli.job.plugins"
"""Group of entry points by which packages bring job plugins of their own."""


def job_pod_name(job: str, task: str, index: int) -> str:
    """Name of the pod of a Job's task."""
    return f"{job}-{task}-{index}"


def job_pod_group_name(job: str, uid: str) -> str:
    """Name of a Job's PodGroup. On look-up a PodGroup named just like the Job is accepted too."""
    return f"{job}-{uid}"


def bare_pod_group_name(owner_uid: str) -> str:
    """Name of the PodGroup of pods without a Job; ``owner_uid`` is the controller's UID, else the pod's."""
    return f"podgroup-{owner_uid}"


def cron_job_child_name(cron_job: str, scheduled_seconds: int) -> str:
    """Name of the Job that a CronJob makes for a slot, given in seconds since the epoch."""
    return f"{cron_job}-{scheduled_seconds // 60}"


def job_flow_child_name(job_flow: str, template: str) -> str:
    """Name of the Job that a JobFlow makes from a template."""
    return f"{job_flow}-{template}"


def command_name_prefix(target: str, action: str) -> str:
    """``generateName`` of a Command."""
    return f"{target}-{action.lower()}-"


def qualified(namespace: str, name: str) -> str:
    """``<namespace>.<name>``, the value of :data:`CREATED_BY_JOB_TEMPLATE` and :data:`CREATED_BY_JOB_FLOW`."""
    return f"{namespace}.{name}"


def unqualified(value: str) -> tuple[str, str] | None:
    """Namespace and name of a :func:`qualified` value; None unless there are exactly two parts."""
    parts = value.split(".")
    return (parts[0], parts[1]) if len(parts) == 2 else None
