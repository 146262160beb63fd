"""Who has which address in the network namespace of the nodes. Nothing outside it sees any of them."""

from __future__ import annotations

from dataclasses import dataclass

CONTROL = "10.250.0.1"
"""Of the control plane: API server and name server."""
CONTROL_BRIDGE = "control"
PODS = "10.250.0.0/16"
"""Of all pods, the control plane's address included."""
DOMAIN = "cluster.local"


@dataclass(frozen=True, slots=True)
class NodeAddresses:
    """Addresses of one node: a bridge that its pods hang on. ``number`` counts from 1."""

    number: int

    @property
    def name(self) -> str:
        """Of the node and of its bridge."""
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        """Of the node: the bridge's own, which is not loopback, so that the API server fetches logs from it."""
        return f"10.250.{self.number}.1"

    @property
    def pods(self) -> str:
        """The range of the node's pods."""
        return f"10.250.{self.number}.0/24"

    @property
    def kubelet_port(self) -> int:
        """Where the kubelet listens."""
        return 10250
