"""Talking to a Kubernetes API server: client, informers, work queues, leases, events."""
