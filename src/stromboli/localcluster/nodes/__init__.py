"""Simulated nodes: their objects, their heartbeats, and the life of the pods bound to them."""
