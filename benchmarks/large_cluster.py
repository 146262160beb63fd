"""The end-to-end suite's control plane for very many nodes. Imported only where the suite's programs are there."""

from __future__ import annotations

from e2e.realcluster import binaries
from e2e.realcluster.cluster import NEEDED, RealCluster
from e2e.realcluster.installing import create_definitions

__all__ = ["NEEDED", "LargeCluster", "binaries", "create_definitions"]


class LargeCluster(RealCluster):
    """A cluster whose controller manager takes its taints off hundreds of new nodes in seconds, not minutes."""

    def _controller_manager(self) -> list[str]:
        return [*super()._controller_manager(), "--kube-api-qps=1000", "--kube-api-burst=1000"]
