"""RBAC: rules, subjects, bindings, refusals."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api import kinds
from stromboli.localcluster.auth.authorizing import AlwaysAllow, RbacAuthorizer, require
from stromboli.localcluster.auth.rules import covers, subject_matches
from stromboli.localcluster.extending import SYSTEM, Attributes, User
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Key, Object
from tests.localcluster.sim.simulation import Simulation, simulation

GET_POD = Attributes("get", resource="pods", namespace="ns", name="p")


@dataclass(frozen=True)
class Case:
    rule: Object
    attributes: Attributes
    want: bool


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Object:
    return {
        "verbs": verbs.split(","),
        "apiGroups": groups.split(","),
        "resources": resources.split(","),
        **({"resourceNames": names.split(",")} if names else {}),
    }


RULES = {
    "exactly what is asked": Case(rule("get", "", "pods"), GET_POD, True),
    "another verb": Case(rule("list", "", "pods"), GET_POD, False),
    "every verb": Case(rule("*", "", "pods"), GET_POD, True),
    "another group": Case(rule("get", "apps", "pods"), GET_POD, False),
    "every group": Case(rule("get", "*", "pods"), GET_POD, True),
    "every resource": Case(rule("get", "", "*"), GET_POD, True),
    "the name": Case(rule("get", "", "pods", "p"), GET_POD, True),
    "another name": Case(rule("get", "", "pods", "q"), GET_POD, False),
    "names do not cover a list": Case(
        rule("list", "", "pods", "p"), Attributes("list", resource="pods", namespace="ns"), False
    ),
    "the resource does not cover its subresources": Case(
        rule("get", "", "pods"), Attributes("get", resource="pods", subresource="log"), False
    ),
    "a subresource": Case(rule("get", "", "pods/log"), Attributes("get", resource="pods", subresource="log"), True),
    "a subresource does not cover the resource": Case(rule("get", "", "pods/log"), GET_POD, False),
    "one subresource of everything": Case(
        rule("update", "", "*/status"), Attributes("update", resource="nodes", subresource="status"), True
    ),
    "every resource includes subresources": Case(
        rule("get", "", "*"), Attributes("get", resource="pods", subresource="log"), True
    ),
    "a path": Case({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, Attributes("get", path="/metrics"), True),
    "a path below": Case({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]}, Attributes("get", path="/apis/x"), True),
    "another path": Case({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]}, Attributes("get", path="/api"), False),
    "resources are no paths": Case(rule("*", "*", "*"), Attributes("get", path="/metrics"), False),
    "an empty rule": Case({}, GET_POD, False),
}


@pytest.mark.parametrize("case", RULES.values(), ids=RULES.keys())
def test_rules(case: Case) -> None:
    assert covers(case.rule, case.attributes) is case.want


@pytest.mark.parametrize(
    ("subject", "want"),
    [
        ({"kind": "User", "name": "system:serviceaccount:ns:robot"}, True),
        ({"kind": "ServiceAccount", "name": "robot", "namespace": "ns"}, True),
        ({"kind": "ServiceAccount", "name": "robot"}, True),
        ({"kind": "ServiceAccount", "name": "robot", "namespace": "other"}, False),
        ({"kind": "Group", "name": "system:serviceaccounts:ns"}, True),
        ({"kind": "Group", "name": "robot"}, False),
        ({"kind": "User", "name": "robot"}, False),
        ({}, False),
    ],
)
def test_subjects(subject: Object, want: bool) -> None:
    user, groups = "system:serviceaccount:ns:robot", ("system:serviceaccounts:ns",)
    assert subject_matches(subject, user, groups, "ns") is want


def role(name: str, *rules: Object, namespace: str = "") -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(to: str, user: str, namespace: str = "", kind: str = "ClusterRole") -> Object:
    metadata = {"name": f"{to}-{user}", "namespace": namespace} if namespace else {"name": f"{to}-{user}"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


async def allowed(cluster: Simulation, user: str, attributes: Attributes) -> bool:
    return await RbacAuthorizer(cluster.store).authorize(User(user), attributes) is None


async def test_a_cluster_role_bound_in_a_namespace_holds_there() -> None:
    async with simulation() as cluster:
        await cluster.create(role("reader", rule("get,list", "", "pods")))
        await cluster.create(binding("reader", "jane", "default"))
        assert await allowed(cluster, "jane", Attributes("get", resource="pods", namespace="default", name="p"))
        assert not await allowed(cluster, "jane", Attributes("get", resource="pods", namespace="other", name="p"))
        assert not await allowed(cluster, "jane", Attributes("list", resource="pods"))
        assert not await allowed(cluster, "joe", Attributes("get", resource="pods", namespace="default"))


async def test_a_cluster_role_binding_holds_everywhere() -> None:
    async with simulation() as cluster:
        await cluster.create(role("reader", rule("list", "", "pods")))
        await cluster.create(binding("reader", "jane"))
        assert await allowed(cluster, "jane", Attributes("list", resource="pods"))
        assert await allowed(cluster, "jane", Attributes("list", resource="pods", namespace="any"))


async def test_a_change_counts_at_once() -> None:
    async with simulation() as cluster:
        await cluster.create(role("reader", rule("get", "", "pods"), namespace="default"))
        await cluster.create(binding("reader", "jane", "default", kind="Role"))
        wanted = Attributes("get", resource="pods", namespace="default")
        assert await allowed(cluster, "jane", wanted)
        await cluster.registry.delete(kinds.ROLE_BINDINGS, "default", "reader-jane")
        assert not await allowed(cluster, "jane", wanted)


async def test_roles_are_aggregated_by_label() -> None:
    async with simulation() as cluster:
        await cluster.create(binding("view", "jane", "default"))
        wanted = Attributes("get", group="batch.volcano.sh", resource="jobs", namespace="default")
        assert await allowed(cluster, "jane", Attributes("list", resource="pods", namespace="default"))
        assert not await allowed(cluster, "jane", wanted)
        extra = role("volcano-view", rule("get", "batch.volcano.sh", "jobs"))
        extra["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        await cluster.create(extra)
        assert await allowed(cluster, "jane", wanted)


async def test_view_reads_no_secrets_and_writes_nothing() -> None:
    async with simulation() as cluster:
        await cluster.create(binding("view", "jane", "default"))
        assert not await allowed(cluster, "jane", Attributes("get", resource="secrets", namespace="default"))
        assert not await allowed(cluster, "jane", Attributes("create", resource="pods", namespace="default"))


async def test_masters_may_everything_and_strangers_nothing() -> None:
    async with simulation() as cluster:
        authorizer = RbacAuthorizer(cluster.store)
        assert await authorizer.authorize(SYSTEM, Attributes("delete", resource="nodes", name="n")) is None
        assert await authorizer.authorize(User("nobody"), Attributes("get", path="/metrics")) == ""
        assert await AlwaysAllow().authorize(User("nobody"), Attributes("delete", resource="nodes")) is None


REFUSALS = {
    "a list in a namespace": (
        Attributes("list", resource="pods", namespace="x"),
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "x"',
    ),
    "one object of a group": (
        Attributes("get", group="batch.volcano.sh", resource="jobs", namespace="x", name="j"),
        'jobs.batch.volcano.sh "j" is forbidden: User "jane" cannot get resource "jobs" in API group '
        '"batch.volcano.sh" in the namespace "x"',
    ),
    "a subresource": (
        Attributes("get", resource="pods", subresource="log", namespace="x", name="p"),
        'pods "p" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "x"',
    ),
    "the whole cluster": (
        Attributes("list", resource="nodes"),
        'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
    ),
    "a path": (Attributes("get", path="/metrics"), 'forbidden: User "jane" cannot get path "/metrics"'),
}


@pytest.mark.parametrize(("attributes", "want"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_refusals_read_as_the_real_ones(attributes: Attributes, want: str) -> None:
    async with simulation() as cluster:
        with pytest.raises(StatusError) as caught:
            await require(RbacAuthorizer(cluster.store), User("jane"), attributes)
        assert (caught.value.code, caught.value.reason, caught.value.message) == (403, "Forbidden", want)


async def test_a_binding_to_a_missing_role_is_named() -> None:
    async with simulation() as cluster:
        await cluster.create(binding("gone", "jane", "default"))
        with pytest.raises(StatusError) as caught:
            await require(
                RbacAuthorizer(cluster.store), User("jane"), Attributes("list", resource="pods", namespace="default")
            )
        assert caught.value.message.endswith(
            'in the namespace "default": RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
        )


async def test_bootstrap_roles_are_there() -> None:
    async with simulation() as cluster:
        for name in ("cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user"):
            assert cluster.store.get(Key.of(kinds.CLUSTER_ROLES, None, name)) is not None
