"""The chart on real nodes: kubelets with containerd and runc, images built offline, ``helm install``.

``python -m e2e.realnode`` provides what is missing (:mod:`prerequisites`, the binaries of :mod:`e2e.realcluster`,
:mod:`images`), enters namespaces of its own (:mod:`confinement`), and there starts a control plane with two nodes,
installs the chart and runs ``e2e/node`` (:mod:`inside`). Whatever happens, the namespaces end with it, and with them
all processes, mounts, networks and rules; what no namespace holds is taken away and looked for (:mod:`leftovers`).
"""
