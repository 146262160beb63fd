"""A read-only web page of the cluster: queues, jobs and why they wait, gangs, topology, starts, events.

The view is made by pure functions from lists of objects (:mod:`stromboli.dashboard.viewing`); informers keep the lists,
a small HTTP server shows them. Nothing here writes to the cluster.
"""
