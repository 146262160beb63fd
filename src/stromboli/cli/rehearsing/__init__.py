"""What would happen: the scheduler's own core over a snapshot of a cluster, offline, changing nothing."""
