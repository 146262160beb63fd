"""Tests on real nodes: the chart installed by Helm, containers that really run. ``make e2e-node`` runs them.

They need what :mod:`e2e.realnode` builds around them, so a plain ``pytest e2e`` does not collect them.
"""
