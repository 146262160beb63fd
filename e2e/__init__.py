"""End-to-end tests: a whole control plane, seen only through its API.

Without further ado they run on the embedded cluster. With ``E2E_KUBECONFIG=FILE`` the same files run on that cluster:
the three processes are started beside the suite unless ``E2E_RUNNING=1`` says that the cluster has them already. The
markers ``simulated_nodes`` and ``own_processes`` (``conftest.MARKERS``) say what cannot run on every cluster.

* ``python -m e2e.realcluster``: a control plane of our own with simulated nodes, or the cluster of ``E2E_KUBECONFIG``
* ``python -m e2e.realnode``: real kubelets in namespaces of their own
* ``python -m e2e.kind``: kind
"""
