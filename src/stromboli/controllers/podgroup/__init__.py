"""PodGroups for pods that come without one: bare pods and those of ordinary workloads (spec 03 section 3)."""
