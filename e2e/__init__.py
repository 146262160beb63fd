"""End-to-end tests: a whole control plane, seen only through its API.

Without further ado they run on the embedded cluster. With ``E2E_KUBECONFIG=FILE`` the same files run on that cluster:
the three processes are started beside the suite unless ``E2E_RUNNING=1`` says that the cluster has them already.
"""
