"""Core validation by the API server (spec 07 section 9.2)."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.kube.errors import BadRequest, Forbidden, Invalid, KubeError, Unreachable
from stromboli.webhooks.podtemplates import LocalTemplates, asking
from stromboli.webhooks.podtemplates.asking import AskedTemplates
from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import template


class Server:
    """Answers every creation with the next of ``answers``; the last one is repeated."""

    def __init__(self, *answers: KubeError | None) -> None:
        self.answers = list(answers)
        self.asked: list[JsonObject] = []

    async def create(self, kind: Kind, obj: JsonObject, *, dry_run: bool) -> JsonObject:
        assert (kind, dry_run) == (kinds.POD_TEMPLATES, True)
        self.asked.append(obj)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer
        return obj


class Silent:
    """Never answers."""

    async def create(self, kind: Kind, obj: JsonObject, *, dry_run: bool) -> JsonObject:
        await asyncio.Event().wait()
        raise AssertionError


def invalid(*causes: tuple[str, str]) -> Invalid:
    listed = [{"field": field, "message": message, "reason": "FieldValueInvalid"} for field, message in causes]
    return Invalid(422, {"message": "invalid", "details": {"causes": listed}})


async def judged(server: Server | Silent, obj: JsonObject) -> list[str]:
    templates = AskedTemplates(server, LocalTemplates())
    await templates.ask("team", [obj])
    return [fault.text for fault in templates.faults("worker", "team", obj)]


async def test_the_servers_faults_are_told_as_they_are() -> None:
    field = "template.spec.os.name"
    server = Server(invalid((field, 'Unsupported value: "x"'), ("metadata.namespace", "not the user's fault")))
    assert await judged(server, template()) == [f'{field}: Unsupported value: "x"']


async def test_what_the_server_accepts_is_accepted() -> None:
    assert await judged(Server(None), template()) == []


async def test_the_same_template_is_asked_about_once() -> None:
    server = Server(None)
    templates = AskedTemplates(server, LocalTemplates())
    same = {"spec": dict(reversed(template()["spec"].items()))}
    for _ in range(3):
        await templates.ask("team", [template(), same, template(nodeName="a")])
    assert len(server.asked) == 2
    assert server.asked[0]["metadata"]["namespace"] == "team"


async def test_a_template_that_fails_here_already_is_not_sent() -> None:
    server = Server(None)
    assert await judged(server, template(containers=[])) == ["template.spec.containers: Required value"]
    assert server.asked == []


async def test_a_template_the_server_cannot_read_is_refused() -> None:
    unreadable = BadRequest(400, {"message": "cannot unmarshal string into Go struct field"})
    (text,) = await judged(Server(unreadable), template())
    assert text.startswith("template: ") and "cannot unmarshal" in text


@pytest.mark.parametrize("failure", [Forbidden(403, {"message": "no"}), Unreachable("gone")])
async def test_a_server_that_says_nothing_is_asked_again_next_time(failure: KubeError) -> None:
    server = Server(failure, None)
    templates = AskedTemplates(server, LocalTemplates())
    for _ in range(3):
        await templates.ask("team", [template()])
        assert templates.faults("worker", "team", template()) == []
    assert len(server.asked) == 2


async def test_a_silent_server_holds_no_review_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "DEADLINE_SECONDS", 0.01)
    assert await judged(Silent(), template()) == []


async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "REMEMBERED", 2)
    server = Server(None)
    templates = AskedTemplates(server, LocalTemplates())
    for node in ("a", "b", "c", "a"):
        await templates.ask("team", [template(nodeName=node)])
    assert [obj["template"]["spec"]["nodeName"] for obj in server.asked] == ["a", "b", "c", "a"]


async def test_a_job_of_very_many_templates_is_asked_about_in_part() -> None:
    server = Server(None)
    await AskedTemplates(server, LocalTemplates()).ask("team", [template(nodeName=f"n{n}") for n in range(500)])
    assert len(server.asked) == asking.MOST_TEMPLATES
