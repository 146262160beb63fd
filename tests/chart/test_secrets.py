"""No role of the chart lets anybody look through the secrets of a cluster (pain P67)."""

from __future__ import annotations

from e2e.realcluster.rendering import of_kind

from tests.chart import matrix
from tests.chart.conftest import Render


async def test_nobody_may_list_or_watch_secrets(rendered: Render) -> None:
    for values in matrix.MATRIX.values():
        for role in of_kind(await rendered(values), "ClusterRole", "Role"):
            for rule in role["rules"]:
                if "secrets" in rule.get("resources", ()):
                    assert not {"list", "watch", "deletecollection"} & set(rule["verbs"]), role["metadata"]["name"]
