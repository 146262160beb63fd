"""The built-in admission plugins, through the registry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.localcluster.admission.quotas import QuotaLedger
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object
from tests.localcluster.sim.simulation import Simulation, config_map, pod, simulation


async def refused(cluster: Simulation, obj: Object) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await cluster.create(obj)
    return caught.value


def priority_class(name: str, value: int, **more: Any) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


async def test_nothing_is_created_in_a_namespace_that_is_not_there() -> None:
    async with simulation() as cluster:
        error = await refused(cluster, config_map("a", namespace="nowhere"))
        assert (error.code, error.message) == (404, 'namespaces "nowhere" not found')


async def test_nothing_is_created_in_a_namespace_that_goes_away() -> None:
    async with simulation() as cluster:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
        await cluster.create(config_map("held", namespace="ns", finalizers=["example.com/held"]))
        await cluster.registry.delete(kinds.NAMESPACES, None, "ns")
        error = await refused(cluster, config_map("a", namespace="ns"))
        assert error.code == 403
        assert error.message == (
            'configmaps "a" is forbidden: unable to create new content in namespace ns because it is being terminated'
        )
        assert error.details["causes"][0]["reason"] == "NamespaceTerminating"


async def test_the_first_namespaces_are_immortal() -> None:
    async with simulation() as cluster:
        with pytest.raises(StatusError, match='namespaces "default" is forbidden: this namespace may not be deleted'):
            await cluster.registry.delete(kinds.NAMESPACES, None, "default")


async def test_pods_run_as_default() -> None:
    async with simulation() as cluster:
        made = await cluster.create(pod("p"))
        assert made["spec"]["serviceAccountName"] == made["spec"]["serviceAccount"] == "default"


async def test_an_account_that_is_not_there() -> None:
    async with simulation() as cluster:
        error = await refused(cluster, pod("p", serviceAccountName="robot"))
        assert error.message == (
            'pods "p" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found'
        )


async def test_pull_secrets_of_the_account() -> None:
    async with simulation() as cluster:
        account = cluster.find(kinds.SERVICE_ACCOUNTS, "default")
        assert account is not None
        await cluster.registry.update(kinds.SERVICE_ACCOUNTS, {**account, "imagePullSecrets": [{"name": "hub"}]})
        assert (await cluster.create(pod("p")))["spec"]["imagePullSecrets"] == [{"name": "hub"}]


async def test_a_class_becomes_a_number() -> None:
    async with simulation() as cluster:
        await cluster.create(priority_class("high", 1000, preemptionPolicy="Never"))
        spec = (await cluster.create(pod("p", priorityClassName="high")))["spec"]
        assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
        spec = (await cluster.create(pod("critical", priorityClassName="system-node-critical")))["spec"]
        assert spec["priority"] == 2000001000


async def test_without_a_class_there_is_zero_or_the_default() -> None:
    async with simulation() as cluster:
        assert (await cluster.create(pod("a")))["spec"]["priority"] == 0
        await cluster.create(priority_class("normal", 5, globalDefault=True))
        spec = (await cluster.create(pod("b")))["spec"]
        assert (spec["priority"], spec["priorityClassName"]) == (5, "normal")
        error = await refused(cluster, priority_class("other", 6, globalDefault=True))
        assert "PriorityClass normal is already marked as default. Only one default can exist" in error.message


async def test_a_class_that_is_not_there() -> None:
    async with simulation() as cluster:
        error = await refused(cluster, pod("p", priorityClassName="x"))
        assert (error.code, error.message) == (403, 'pods "p" is forbidden: no PriorityClass with name x was found')


async def test_a_priority_of_ones_own() -> None:
    async with simulation() as cluster:
        error = await refused(cluster, pod("p", priority=7))
        assert "the integer value of priority (7) must not be provided in pod spec" in error.message


async def test_default_tolerations() -> None:
    async with simulation() as cluster:
        own = {
            "key": "node.kubernetes.io/not-ready",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 5,
        }
        tolerations = (await cluster.create(pod("p", tolerations=[own])))["spec"]["tolerations"]
        assert [(one["key"], one["tolerationSeconds"]) for one in tolerations] == [
            ("node.kubernetes.io/not-ready", 5),
            ("node.kubernetes.io/unreachable", 300),
        ]
        every = (await cluster.create(pod("q", tolerations=[{"operator": "Exists"}])))["spec"]["tolerations"]
        assert len(every) == 1


def limit_range(**limits: Any) -> Object:
    spec = {"limits": [{"type": "Container", **limits}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": spec}


async def test_limit_defaults() -> None:
    async with simulation() as cluster:
        await cluster.create(limit_range(default={"cpu": "2"}, defaultRequest={"cpu": "1", "memory": "1Gi"}))
        made = await cluster.create(pod("p", resources={"requests": {"memory": "2Gi"}}))
        assert made["spec"]["containers"][0]["resources"] == {
            "limits": {"cpu": "2"},
            "requests": {"cpu": "1", "memory": "2Gi"},
        }


LIMITS = {
    "above the maximum": (
        {"max": {"cpu": "1"}},
        {"limits": {"cpu": "2"}},
        'pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
    ),
    "below the minimum": (
        {"min": {"memory": "1Gi"}},
        {"requests": {"memory": "1Mi"}},
        'pods "p" is forbidden: minimum memory usage per Container is 1Gi, but request is 1Mi',
    ),
    "no limit where one is needed": (
        {"max": {"memory": "1Gi"}},
        {},
        'pods "p" is forbidden: maximum memory usage per Container is 1Gi.  No limit is specified',
    ),
}


@pytest.mark.parametrize(("limits", "resources", "want"), LIMITS.values(), ids=LIMITS.keys())
async def test_limits(limits: Object, resources: Object, want: str) -> None:
    async with simulation() as cluster:
        item = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
        await cluster.create({**item, "spec": {"limits": [{"type": "Container", **limits}]}})
        # The defaults that a maximum implies are the API's; here the range is stored as it is.
        error = await refused(cluster, pod("p", resources=resources))
        assert error.code == 403
        assert want == error.message


def quota(hard: dict[str, str], **spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}


CPU = {"requests": {"cpu": "2", "memory": "1Gi"}}
QUOTAS = {
    "cpu requests": (
        {"requests.cpu": "3"},
        CPU,
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=2, '
        "limited: requests.cpu=3",
    ),
    "the short name": (
        {"cpu": "3"},
        CPU,
        'pods "b" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=2, limited: cpu=3',
    ),
    "several at once": (
        {"cpu": "3", "memory": "1Gi", "pods": "10"},
        CPU,
        'pods "b" is forbidden: exceeded quota: q, requested: cpu=2,memory=1Gi, used: cpu=2,memory=1Gi, '
        "limited: cpu=3,memory=1Gi",
    ),
    "number of pods": (
        {"pods": "1"},
        {},
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1',
    ),
    "count of objects": (
        {"count/pods": "1"},
        {},
        'pods "b" is forbidden: exceeded quota: q, requested: count/pods=1, used: count/pods=1, limited: count/pods=1',
    ),
    "an extended resource": (
        {"requests.nvidia.com/gpu": "4"},
        {"requests": {"nvidia.com/gpu": "3"}, "limits": {"nvidia.com/gpu": "3"}},
        'pods "b" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=3, '
        "used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4",
    ),
}


@pytest.mark.parametrize(("hard", "resources", "want"), QUOTAS.values(), ids=QUOTAS.keys())
async def test_quotas(hard: dict[str, str], resources: Object, want: str) -> None:
    async with simulation() as cluster:
        await cluster.create(quota(hard))
        await cluster.create(pod("a", resources=resources))
        error = await refused(cluster, pod("b", resources=resources))
        assert (error.code, error.message) == (403, want)


async def test_a_quota_of_requests_needs_requests() -> None:
    async with simulation() as cluster:
        await cluster.create(quota({"limits.cpu": "3", "requests.memory": "1Gi"}))
        error = await refused(cluster, pod("p"))
        assert "failed quota: q: must specify limits.cpu for: main; requests.memory for: main" in error.message


async def test_what_is_gone_or_ended_no_longer_counts() -> None:
    async with simulation() as cluster:
        await cluster.create(quota({"pods": "1"}))
        made = await cluster.create(pod("a"))
        await cluster.registry.update(kinds.PODS, {**made, "status": {"phase": "Succeeded"}}, subresource="status")
        await cluster.create(pod("b"))
        await cluster.registry.delete(kinds.PODS, "default", "b")
        await cluster.create(pod("c"))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["create", "delete", "end", "compact"]), st.integers(0, 5)), max_size=25))
async def test_the_ledger_is_what_a_count_would_say(steps: list[tuple[str, int]]) -> None:
    """Whatever happens, also behind a log that was cut: the running total equals a fresh count."""
    async with simulation() as cluster:
        made = await cluster.create(quota({"pods": "100", "requests.cpu": "100", "count/pods": "100"}))
        ledger = QuotaLedger(cluster.store)
        for action, number in steps:
            name = f"p{number}"
            present = cluster.find(kinds.PODS, name)
            if action == "create" and present is None:
                await cluster.create(pod(name, resources={"requests": {"cpu": f"{number + 1}00m"}}))
            elif action == "delete" and present is not None:
                await cluster.registry.delete(kinds.PODS, "default", name)
            elif action == "end" and present is not None:
                ended = {**present, "status": {"phase": "Succeeded"}}
                await cluster.registry.update(kinds.PODS, ended, subresource="status")
            elif action == "compact":
                cluster.store.compact()
            assert ledger.used(made, "default") == QuotaLedger(cluster.store).used(made, "default")


async def test_a_raised_quota_lets_more_in() -> None:
    async with simulation() as cluster:
        made = await cluster.create(quota({"pods": "1"}))
        await cluster.create(pod("a"))
        await refused(cluster, pod("b"))
        present = cluster.find(kinds.RESOURCE_QUOTAS, made["metadata"]["name"])
        assert present is not None
        await cluster.registry.update(kinds.RESOURCE_QUOTAS, {**present, "spec": {"hard": {"pods": "2"}}})
        await cluster.create(pod("b"))
        assert "used: pods=2, limited: pods=2" in (await refused(cluster, pod("c"))).message


async def test_quotas_of_other_objects() -> None:
    async with simulation() as cluster:
        await cluster.until(lambda: len(cluster.all(kinds.CONFIG_MAPS)) == 1)
        await cluster.create(quota({"configmaps": "2"}))
        await cluster.create(config_map("a"))
        error = await refused(cluster, config_map("b"))
        assert error.message == (
            'configmaps "b" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, '
            "limited: configmaps=2"
        )


SCOPES: dict[str, tuple[Object, Object, bool]] = {
    "best effort": ({"scopes": ["BestEffort"]}, {}, True),
    "not best effort": ({"scopes": ["BestEffort"]}, {"resources": CPU}, False),
    "has requests": ({"scopes": ["NotBestEffort"]}, {"resources": CPU}, True),
    "ends by itself": ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, True),
    "does not end by itself": ({"scopes": ["NotTerminating"]}, {}, True),
    "one scope of two": ({"scopes": ["NotTerminating", "NotBestEffort"]}, {}, False),
    "of a class": (
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
        {"priorityClassName": "high"},
        True,
    ),
    "of another class": (
        {
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]
            }
        },
        {"priorityClassName": "high"},
        False,
    ),
    "of any class": (
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}},
        {"priorityClassName": "high"},
        True,
    ),
    "of no class": (
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}},
        {"priorityClassName": "high"},
        False,
    ),
    "by a selector": (
        {"scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]}},
        {},
        True,
    ),
}


@pytest.mark.parametrize(("scope", "spec", "counts"), SCOPES.values(), ids=SCOPES.keys())
async def test_scopes(scope: Object, spec: Object, counts: bool) -> None:
    async with simulation() as cluster:
        await cluster.create(priority_class("high", 9))
        await cluster.create(quota({"pods": "0"}, **scope))
        if counts:
            assert "exceeded quota" in (await refused(cluster, pod("p", **spec))).message
        else:
            await cluster.create(pod("p", **spec))


async def test_storage_of_claims_counts() -> None:
    async with simulation() as cluster:
        await cluster.create(quota({"requests.storage": "3Gi", "persistentvolumeclaims": "5"}))
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
        claim: Object = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec}
        await cluster.create({**claim, "metadata": {"name": "a"}})
        error = await refused(cluster, {**claim, "metadata": {"name": "b"}})
        assert error.message == (
            'persistentvolumeclaims "b" is forbidden: exceeded quota: q, requested: requests.storage=2Gi, '
            "used: requests.storage=2Gi, limited: requests.storage=3Gi"
        )


async def test_the_largest_init_container_counts() -> None:
    async with simulation() as cluster:
        await cluster.create(quota({"requests.cpu": "3"}))
        init = [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "4"}}}]
        error = await refused(cluster, pod("p", resources=CPU, initContainers=init))
        assert "requested: requests.cpu=4, used: requests.cpu=0" in error.message


async def test_objects_of_any_group_can_be_counted() -> None:
    async with simulation() as cluster:
        await cluster.create(quota({"count/deployments.apps": "0"}))
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        error = await refused(
            cluster, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
        )
        assert "requested: count/deployments.apps=1" in error.message


async def test_a_dry_run_counts_for_nothing() -> None:
    from stromboli.localcluster.requests import WriteOptions

    async with simulation() as cluster:
        await cluster.create(quota({"pods": "1"}))
        await cluster.registry.create(kinds.PODS, pod("a"), "default", WriteOptions(dry_run=True))
        await cluster.create(pod("b"))
