"""numa-aware: nodes on which the kubelet would admit a Guaranteed pod, fewest NUMA nodes first (spec 06 section 26)."""

from stromboli.scheduler.plugins.numaaware.plugin import NumaAware

__all__ = ["NumaAware"]
