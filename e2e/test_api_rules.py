"""Rules of the API that the embedded server must keep as a real one does: found where the two once differed."""

from __future__ import annotations

import pytest

from e2e.cluster import Cluster, queue
from stromboli.api.kinds import CONFIG_MAPS, QUEUES
from stromboli.kube.errors import BadRequest


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
        await cluster.client.request("POST", QUEUES.path(), body=nameless)
    assert refused.value.message.startswith(want)


async def test_a_built_in_object_may_leave_it_to_the_path(cluster: Cluster) -> None:
    await cluster.client.request(
        "POST", CONFIG_MAPS.path(cluster.namespace), body={"metadata": {"name": "plain"}, "data": {"a": "b"}}
    )
    assert (await cluster.client.get(CONFIG_MAPS, "plain", cluster.namespace))["data"] == {"a": "b"}
