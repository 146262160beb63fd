"""Every built-in plugin checks its arguments when a policy is loaded, and reads leniently when it runs."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from stromboli.scheduler.core.plugin import Plugin
from stromboli.scheduler.plugins import PLUGINS
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.plugins.sessions import Session, option

MODELS = {plugin.name: model for plugin in PLUGINS if (model := getattr(plugin, "arguments_model", None)) is not None}
FIELDS = [(name, field) for name, model in MODELS.items() for field in model.model_fields]
WITHOUT_ARGUMENTS = {"cdp", "conformance", "drf", "gang", "pdb", "priority", "proportion", "resourcequota"}


def test_all_plugins_that_take_arguments_have_a_model() -> None:
    assert {plugin.name for plugin in PLUGINS} - WITHOUT_ARGUMENTS == MODELS.keys()
    assert all(issubclass(model, BaseModel) for model in MODELS.values())


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_a_value_of_the_wrong_type_is_refused_by_its_key(name: str, field: str) -> None:
    with pytest.raises(ValidationError) as error:
        MODELS[name].model_validate({field: object()})
    assert any(field in str(part) for one in error.value.errors() for part in one["loc"])


@pytest.mark.parametrize("name", MODELS)
def test_no_arguments_and_unknown_ones_are_accepted(name: str) -> None:
    MODELS[name].model_validate({})
    MODELS[name].model_validate({"something.else": {"a": 1}})


def test_windows_of_zones_are_checked_when_the_policy_is_loaded() -> None:
    model = MODELS["tdm"]
    model.model_validate({"tdm.revocable-zone.rz1": "22:00-6:00", "tdm.evict.period": "1m"})
    for wrong in ("nights", 2200):
        with pytest.raises(ValidationError, match=r"HH:MM-HH:MM"):
            model.model_validate({"tdm.revocable-zone.rz1": wrong})


STRUCTURED = {"resource-strategy-fit", "extender", "deviceshare"}


@pytest.mark.parametrize("plugin", [one for one in PLUGINS if one.name not in STRUCTURED], ids=lambda one: one.name)
def test_a_cycle_runs_with_values_that_cannot_be_read(plugin: type[Plugin]) -> None:
    model = MODELS.get(plugin.name)
    wrong = dict.fromkeys(model.model_fields if model is not None else ("x",), "none of the kind")
    opened = Session(
        [queue().build(), node("n").offer(cpu=1).build(), pod_group("g").members(1).build()],
        [pod("p").group("g").request(cpu=1).build()],
        plugins=[option(plugin.name, wrong)],
    )
    for action in ("enqueue", "allocate", "backfill"):
        opened.cycle.execute(action)
    assert not opened.cycle.close().problems
