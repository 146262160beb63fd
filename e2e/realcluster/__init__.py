"""A real Kubernetes control plane for the end-to-end suite: etcd, kube-apiserver, kube-controller-manager and kwok.

``python -m e2e.realcluster`` builds the binaries from their modules (once), starts them, installs what the chart
renders, and runs the suite with the three processes under their own ServiceAccounts. No root, no Docker, loopback only.
"""
