"""Rules of the API that the embedded server must keep as a real one does: found where the two once differed."""

from __future__ import annotations

import pytest

from e2e.cluster import Cluster, queue
from stromboli.api.kinds import CONFIG_MAPS, NODES, PODS, QUEUES, SECRETS, Kind
from stromboli.kube.errors import ApiError, BadRequest


@pytest.mark.parametrize(
    ("field", "want"),
    [
        ("kind", "the object provided is unrecognized (must be of type Queue): Object 'Kind' is missing in '"),
        (
            "apiVersion",
            f"the API version in the data () does not match the expected API version ({QUEUES.api_version})",
        ),
    ],
    ids=["no kind", "no API version"],
)
async def test_a_custom_object_that_does_not_say_what_it_is_is_refused(cluster: Cluster, field: str, want: str) -> None:
    nameless = queue(f"{cluster.namespace}-nameless")
    del nameless[field]
    with pytest.raises(BadRequest) as refused:
        await cluster.client.request("POST", QUEUES.path(), query={"fieldValidation": "Warn"}, body=nameless)
    assert refused.value.message.startswith(want)


async def test_a_built_in_object_may_leave_it_to_the_path(cluster: Cluster) -> None:
    await cluster.client.request(
        "POST", CONFIG_MAPS.path(cluster.namespace), body={"metadata": {"name": "plain"}, "data": {"a": "b"}}
    )
    assert (await cluster.client.get(CONFIG_MAPS, "plain", cluster.namespace))["data"] == {"a": "b"}


async def refusal(cluster: Cluster, method: str, path: str, query: dict[str, str], body: object = None) -> ApiError:
    """How a request is refused."""
    with pytest.raises(ApiError) as refused:
        await cluster.client.request(method, path, query=query, body=body)
    return refused.value


ODD_QUERIES = {
    "no number of seconds": ({"timeoutSeconds": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    "no limit": ({"limit": "many"}, 400, 'strconv.ParseInt: parsing "many": invalid syntax'),
    "a limit of more than 64 bits": (
        {"limit": "99999999999999999999"},
        400,
        'strconv.ParseInt: parsing "99999999999999999999": value out of range',
    ),
    "no revision": (
        {"resourceVersion": "abc"},
        400,
        'invalid resource version: resourceVersion: Invalid value: "abc": '
        'strconv.ParseUint: parsing "abc": invalid syntax',
    ),
    "a match without a revision": (
        {"resourceVersionMatch": "Exact"},
        422,
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
        "resourceVersionMatch is forbidden unless resourceVersion is provided",
    ),
    "an unknown match": (
        {"resourceVersionMatch": "Foo", "resourceVersion": "1"},
        422,
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Foo": '
        'supported values: "Exact", "NotOlderThan", ""',
    ),
    "initial events of a list": (
        {"sendInitialEvents": "true"},
        422,
        'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
    ),
    "half a label selector": ({"labelSelector": "a in ("}, 400, "unable to parse requirement: "),
    "a label that cannot be": (
        {"labelSelector": "-bad-"},
        400,
        'unable to parse requirement: <nil>: Invalid value: "-bad-": name part must consist of alphanumeric characters',
    ),
    "a label's value that cannot be": (
        {"labelSelector": f"a={'v' * 70}"},
        400,
        f'unable to parse requirement: values[0][a]: Invalid value: "{"v" * 70}": must be no more than 63 characters',
    ),
    "half a field selector": ({"fieldSelector": "foo"}, 400, "invalid selector: 'foo'; "),
    "a field that is not selected by": (
        {"fieldSelector": "data.a=1"},
        400,
        '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
}


@pytest.mark.parametrize(("query", "code", "message"), ODD_QUERIES.values(), ids=ODD_QUERIES.keys())
async def test_odd_values_in_queries_are_refused(
    cluster: Cluster, query: dict[str, str], code: int, message: str
) -> None:
    refused = await refusal(cluster, "GET", CONFIG_MAPS.path(cluster.namespace), query)
    assert (refused.code, refused.message[: len(message)]) == (code, message)


async def test_a_negative_limit_is_none(cluster: Cluster) -> None:
    await cluster.client.request("GET", CONFIG_MAPS.path(cluster.namespace), query={"limit": "-1"})


@pytest.mark.parametrize(
    ("method", "kind", "everywhere"),
    [
        ("PUT", CONFIG_MAPS, False),
        ("PATCH", CONFIG_MAPS, False),
        ("PUT", CONFIG_MAPS, True),
        ("POST", CONFIG_MAPS, True),
        ("DELETE", CONFIG_MAPS, True),
        ("PUT", NODES, True),
    ],
    ids=lambda value: value.plural if isinstance(value, Kind) else str(value),
)
async def test_what_a_collection_does_not_do_is_refused(
    cluster: Cluster, method: str, kind: Kind, everywhere: bool
) -> None:
    body = {"apiVersion": "v1", "kind": kind.kind, "metadata": {"name": "a"}}
    path = kind.path(None if everywhere else cluster.namespace)
    refused = await refusal(cluster, method, path, {}, None if method == "DELETE" else body)
    assert (refused.code, refused.reason, refused.message) == (
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )


MIB = 1024 * 1024
TOO_LARGE = {
    "a ConfigMap": (
        CONFIG_MAPS,
        {"data": {"a": "x" * (MIB + 1)}},
        422,
        'ConfigMap "large" is invalid: []: Too long: may not be more than 1048576 bytes',
    ),
    "a Secret": (
        SECRETS,
        {"stringData": {"a": "x" * (MIB + 1)}},
        422,
        'Secret "large" is invalid: data: Too long: may not be more than 1048576 bytes',
    ),
    "anything": (
        PODS,
        {"spec": {"containers": [{"name": "main", "image": "busybox", "args": ["x" * 1_700_000]}]}},
        500,
        "etcdserver: request is too large",
    ),
    "a request": (
        CONFIG_MAPS,
        {"data": {"a": "x" * 3 * MIB}},
        413,
        "Request entity too large: limit is 3145728",
    ),
}


@pytest.mark.parametrize(("kind", "content", "code", "message"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
async def test_objects_have_a_largest_size(
    cluster: Cluster, kind: Kind, content: dict[str, object], code: int, message: str
) -> None:
    body = {"apiVersion": "v1", "kind": kind.kind, "metadata": {"name": "large"}, **content}
    refused = await refusal(cluster, "POST", kind.path(cluster.namespace), {}, body)
    assert (refused.code, refused.message) == (code, message)


async def test_a_config_map_of_one_mebibyte_is_not_too_large(cluster: Cluster) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "full"}, "data": {"a": "x" * MIB}}
    await cluster.client.request("POST", CONFIG_MAPS.path(cluster.namespace), body=body)


async def test_options_that_contradict_each_other_are_refused(cluster: Cluster) -> None:
    path = CONFIG_MAPS.path(cluster.namespace)
    query = {"orphanDependents": "true", "propagationPolicy": "Background"}
    refused = await refusal(cluster, "DELETE", f"{path}/kube-root-ca.crt", query)
    assert (refused.code, refused.message) == (
        422,
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Background": '
        "orphanDependents and deletionPropagation cannot be both set",
    )
    refused = await refusal(cluster, "POST", path, {"dryRun": "yes"}, {"metadata": {"name": "a"}})
    assert (refused.code, refused.message) == (
        422,
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["yes"]: supported values: "All"',
    )
