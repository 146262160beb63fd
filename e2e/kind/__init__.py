"""The end-to-end suite on kind: the chart installed by Helm, pods in real containers, on a machine with Docker.

``python -m e2e.kind`` makes a cluster, loads the image, installs the chart, runs the suite and takes the cluster away.
"""
