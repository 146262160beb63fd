"""The chart's admission policies as rendered; what they decide is tested on a real API server (``e2e``)."""

from __future__ import annotations

from e2e.realcluster.rendering import of_kind

from stromboli.webhooks.endpoints import ENDPOINTS
from tests.chart.conftest import Render

POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
WITHOUT_POLICY = {"cronjobs"}


async def test_there_are_no_policies_unless_asked_for(rendered: Render) -> None:
    assert list(of_kind(await rendered(), POLICY, BINDING)) == []


async def test_each_policy_is_bound_and_denies(rendered: Render) -> None:
    objects = await rendered(vap_enable=True)
    policies = [item["metadata"]["name"] for item in of_kind(objects, POLICY)]
    assert sorted(policies) == [
        f"{kind}-validation-policy" for kind in ("hypernode", "job", "jobflow", "pod", "podgroup", "queue")
    ]
    for binding in of_kind(objects, BINDING):
        assert binding["metadata"]["name"] == f"{binding['spec']['policyName']}-binding"
        assert binding["spec"]["validationActions"] == ["Deny"]
    assert sorted(binding["spec"]["policyName"] for binding in of_kind(objects, BINDING)) == sorted(policies)


async def test_policies_look_at_what_the_webhooks_look_at(rendered: Render) -> None:
    objects = await rendered(vap_enable=True, scheduler_name=["volcano", "second"])
    rules = {}
    for policy in of_kind(objects, POLICY):
        (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
        rules[rule["resources"][0]] = (rule["apiGroups"], rule["apiVersions"], rule["operations"])
        selector = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert selector == [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["volcano-system", "kube-system"]}
        ]
    assert rules == {
        endpoint.kind.plural: (
            [endpoint.kind.group],
            [endpoint.kind.version],
            [str(one) for one in endpoint.operations],
        )
        for endpoint in ENDPOINTS
        if not endpoint.mutating and endpoint.kind.plural not in WITHOUT_POLICY
    }
    (pods,) = [item for item in of_kind(objects, POLICY) if item["metadata"]["name"] == "pod-validation-policy"]
    assert "second" in pods["spec"]["matchConditions"][0]["expression"]
