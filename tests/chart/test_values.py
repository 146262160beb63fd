"""What values the chart takes, and how it says no."""

from __future__ import annotations

import json

import pytest
import yaml
from e2e.realcluster.rendering import CHART, RenderError

from stromboli.kube.json import JsonObject
from tests.chart.conftest import Render

REFUSED: dict[str, tuple[JsonObject, str]] = {
    "a misspelt name": ({"custom": {"scheduler_replica": 2}}, "scheduler_replica"),
    "a number as text": ({"custom": {"scheduler_replicas": "two"}}, "/custom/scheduler_replicas"),
    "a period that is none": ({"custom": {"scheduler_schedule_period": "often"}}, "/custom/scheduler_schedule_period"),
    "an unknown source of certificates": ({"custom": {"admission_certificates": "vault"}}, "admission_certificates"),
    "a path that nobody serves": ({"custom": {"enabled_admissions": "/job/validate"}}, "/job/validate is not a path"),
    "a part of Volcano's chart that is not here": ({"custom": {"colocation_enable": True}}, "custom.colocation_enable"),
    "an image of Volcano's": (
        {"basic": {"scheduler_image_name": "volcanosh/vc-scheduler"}},
        "basic.scheduler_image_name: volcanosh/vc-scheduler is an image of Volcano's",
    ),
    "a port of nodes out of range": ({"custom": {"grafana_node_port": 0}}, "/custom/grafana_node_port"),
    "a file that the chart does not have": (
        {"basic": {"scheduler_config_file": "my.conf"}},
        "basic.scheduler_config_file: the chart has no file my.conf; use custom.scheduler_config_override",
    ),
    "queues without any level": ({"custom": {"admission_max_queue_depth": 0}}, "/custom/admission_max_queue_depth"),
    "a port out of range": ({"basic": {"admission_port": 70000}}, "/basic/admission_port"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_values_that_cannot_work_are_refused_by_name(rendered: Render, name: str) -> None:
    values, want = REFUSED[name]
    with pytest.raises(RenderError) as refused:
        await rendered(values)
    assert want in str(refused.value)


async def test_a_values_file_of_volcanos_chart_is_taken(rendered: Render) -> None:
    await rendered(
        {
            "basic": {"controller_image_name": "x/y", "agent_scheduler_image_name": "volcanosh/vc-agent-scheduler"},
            "custom": {
                "metrics_enable": True,
                "kube_state_metrics_ns": None,
                "agent_scheduler_enable": False,
                "agent_scheduler_name": "agent-scheduler",
                "go_memlimit_enable": True,
                "admission_init_csc": None,
                "scheduler_percentage_nodes_to_find": None,
            },
        }
    )


def test_the_schema_knows_every_value_and_nothing_takes_unknown_ones() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for section, content in values.items():
        known = schema["properties"][section]
        assert known["additionalProperties"] is False
        assert set(content) <= set(known["properties"])
