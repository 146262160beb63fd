"""Configuration files of what runs on a node: pure functions from names and addresses to content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from e2e.realnode.addresses import CONTROL, DOMAIN, PODS, NodeAddresses
from stromboli.kube.json import JsonObject

CNI_PLUGINS = Path("/usr/lib/cni")
NAMES_READY_PORT = 8181
PROXY_HEALTH_PORT = 10256
KEEP_FREE: Mapping[str, str] = {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"}


def containerd(directory: Path, *, sandbox_image: str, plugins: Path = CNI_PLUGINS) -> str:
    """containerd's configuration; everything it writes is below ``directory``."""
    return f"""\
version = 2
root = "{directory}/root"
state = "{directory}/state"

[grpc]
address = "{directory}/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{sandbox_image}"
stream_server_address = "127.0.0.1"
stream_server_port = "0"
# Virtual machines of build services lack CAP_SYS_RESOURCE, without which nobody lowers a score.
restrict_oom_score_adj = true
disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{directory}/cni"
"""


def network(node: NodeAddresses) -> JsonObject:
    """The CNI configuration of a node: pods on one bridge, addresses from one range, routes to everywhere."""
    bridge = {
        "type": "bridge",
        "bridge": node.name,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": node.pods, "gateway": node.address}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": node.name, "plugins": [bridge, portmap]}


def kubelet(node: NodeAddresses, directory: Path, *, logs: Path, cgroup: str) -> JsonObject:
    """The kubelet's configuration. All containers are below the control group ``cgroup``, which must exist."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "port": node.kubelet_port,
        "healthzPort": 0,
        "containerRuntimeEndpoint": f"unix://{directory}/containerd.sock",
        # Nobody but this network namespace reaches it.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "clusterDNS": [CONTROL],
        "clusterDomain": DOMAIN,
        "resolvConf": "",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        # Pods' own groups need controllers that not every machine hands out.
        "cgroupsPerQOS": False,
        # Kubernetes 1.34's kubelet crashes when it resizes a pod that has no group of its own.
        "featureGates": {"InPlacePodVerticalScaling": False},
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "failCgroupV1": False,
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(logs),
        "volumePluginDir": f"{directory}/volume-plugins",
        "registerNode": True,
        # A full disk is no reason to throw away images that cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": dict(KEEP_FREE),
        # The machine's settings are shown as the kubelet wants them, and nothing may be written: see confinement.
        "protectKernelDefaults": True,
        "nodeStatusUpdateFrequency": "5s",
    }


def proxy(kubeconfig: Path) -> JsonObject:
    """kube-proxy's configuration: Services by rules, and nothing of the machine outside the namespace touched."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "mode": "iptables",
        "clusterCIDR": PODS,
        "healthzBindAddress": f"127.0.0.1:{PROXY_HEALTH_PORT}",
        "metricsBindAddress": "127.0.0.1:10249",
        # Answers come back the way the request went, also between pods of one bridge.
        "iptables": {"masqueradeAll": True, "minSyncPeriod": "0s", "syncPeriod": "30s"},
        # The size of the table is the machine's.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def names(kubeconfig: Path) -> str:
    """The Corefile: names of Services and of pods behind headless ones; nothing else is known here."""
    return f"""\
{DOMAIN} 250.10.in-addr.arpa 96.10.in-addr.arpa {{
    bind {CONTROL}
    errors
    kubernetes {DOMAIN} 250.10.in-addr.arpa 96.10.in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
    ready {CONTROL}:{NAMES_READY_PORT}
}}
"""
