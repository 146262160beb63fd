"""The chart's mutation policies as rendered; what they fill in is tested on a real API server (``e2e``)."""

from __future__ import annotations

import pytest
from e2e.realcluster.rendering import RenderError, of_kind

from stromboli.webhooks.endpoints import ENDPOINTS
from tests.chart.conftest import Render

POLICY, BINDING = "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"
WITHOUT_POLICY = {"pods"}
"""What pods get is said in the admission configuration file."""


async def test_there_are_no_policies_unless_asked_for(rendered: Render) -> None:
    assert list(of_kind(await rendered(vap_enable=True), POLICY, BINDING)) == []


async def test_each_policy_is_bound_and_has_volcanos_name(rendered: Render) -> None:
    objects = await rendered(map_enable=True)
    bound = {item["metadata"]["name"]: item["spec"] for item in of_kind(objects, BINDING)}
    assert bound == {
        f"volcano-{kind}-mutation-binding": {"policyName": f"volcano-{kind}-mutation-policy"}
        for kind in ("job", "podgroup", "queue")
    }
    policies = [item["metadata"]["name"] for item in of_kind(objects, POLICY)]
    assert sorted(policies) == sorted(spec["policyName"] for spec in bound.values())


async def test_policies_change_what_the_mutating_webhooks_change(rendered: Render) -> None:
    selectors = [{"key": "batch", "operator": "Exists"}]
    objects = await rendered(map_enable=True, webhooks_namespace_selector_expressions=selectors)
    rules = []
    for policy in of_kind(objects, POLICY):
        spec = policy["spec"]
        assert (spec["failurePolicy"], spec["reinvocationPolicy"]) == ("Fail", "Never")
        assert spec["matchConstraints"]["namespaceSelector"]["matchExpressions"] == [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["volcano-system", "kube-system"]},
            *selectors,
        ]
        rules += spec["matchConstraints"]["resourceRules"]
    want = [
        {
            "apiGroups": [endpoint.kind.group],
            "apiVersions": [endpoint.kind.version],
            "resources": [endpoint.kind.plural],
            "operations": [str(operation) for operation in endpoint.operations],
        }
        for endpoint in ENDPOINTS
        if endpoint.mutating and endpoint.kind.plural not in WITHOUT_POLICY
    ]
    assert sorted(rules, key=str) == sorted(want, key=str)


async def test_the_first_scheduler_is_filled_in(rendered: Render) -> None:
    objects = await rendered(map_enable=True, scheduler_name=["second", "volcano"])
    (job,) = [item for item in of_kind(objects, POLICY) if item["metadata"]["name"] == "volcano-job-mutation-policy"]
    expressions = [mutation["jsonPatch"]["expression"] for mutation in job["spec"]["mutations"]]
    (scheduler,) = [text for text in expressions if "/spec/schedulerName" in text]
    assert "value: 'second'" in scheduler


@pytest.mark.parametrize(("value", "want"), [(None, "v1beta1"), ("v1", "v1")])
async def test_the_version_of_the_policies_may_be_said(rendered: Render, value: str | None, want: str) -> None:
    objects = await rendered(map_enable=True, map_api_version=value)
    versions = {item["apiVersion"] for item in of_kind(objects, POLICY, BINDING)}
    assert versions == {f"admissionregistration.k8s.io/{want}"}


async def test_an_unknown_version_is_refused(rendered: Render) -> None:
    with pytest.raises(RenderError, match="map_api_version"):
        await rendered(map_enable=True, map_api_version="v2")
