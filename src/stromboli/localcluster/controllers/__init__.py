"""Stand-ins for the few core controllers that workloads need, running inside the server on its registry."""
