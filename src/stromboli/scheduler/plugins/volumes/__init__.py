"""Volumes of pods and the nodes that they allow (spec 06 sections 17.7 to 17.9).

``limits`` counts the CSI volumes that a node can attach, ``zones`` holds volumes' zone labels against nodes',
``claiming`` finds volumes for claims that wait for their pod. Everything here is pure; what is common with the shell,
which binds the claims, is in ``core.volumes``.
"""
