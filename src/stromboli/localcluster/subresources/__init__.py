"""Subresources that do more than write a part of their object: binding, eviction, logs and tokens."""
