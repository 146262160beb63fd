"""Where the original is wrong we are not: every "defect: do better" of the contract, and the test that holds it.

The register names the section of the contract, what goes wrong in the original, and where the better behaviour is
tested; tests of parametrised tables are named with the case. What had no test of its own has one below.
"""

from __future__ import annotations

import asyncio
import importlib
import zoneinfo

import aiohttp
import pytest

from stromboli.api import kinds
from stromboli.process.ports import free_port
from stromboli.testing.apiserver import FakeApiServer
from stromboli.webhooks.context import Settings
from stromboli.webhooks.processing import serve
from tests.webhooks.building import cluster, container, decide, eventually, job, queue, task, template
from tests.webhooks.test_processing import options

REGISTER = {
    "1.2: a path given twice crashes the process": "test_options.PATHS/a path given twice is served once",
    "1.2: health answers before the server can be called": (
        "test_defects.test_readiness_waits_for_the_first_possible_call"
    ),
    "2.1: certificates are read once": "test_keeping.test_mounted_certificates_are_taken_up_when_they_change",
    "2.3: a conflict on the webhook configuration ends the process": (
        "test_registration.test_conflicts_between_replicas_are_tried_again"
    ),
    "3: a wrong content type gets an empty answer": "test_serving.test_another_content_type_is_refused",
    "3: what is no review drops the connection": (
        "test_serving.test_what_is_no_review_is_refused_and_the_connection_lives_on"
    ),
    "3: answers are text/plain": "test_serving.test_a_review_is_answered_as_json",
    "7: a job without spec fails with HTTP 500": "test_jobs.test_a_job_without_spec_is_left_to_validation",
    "8: pod names are tested with the number of the task": "test_jobs.test_the_name_of_the_last_replica_must_fit",
    "8, 8.1: lists stand in random order": "test_defects.test_lists_in_messages_are_sorted",
    "9.4: templates are refused that the API server accepts": (
        "test_defects.test_what_a_current_server_accepts_is_accepted_in_a_job"
    ),
    "11: an empty annotation makes an empty queue": ("test_podgroups.QUEUES/default where the annotation is empty"),
    "14.1: queues on their way to Closed cannot be edited": (
        "test_queues.test_p30_a_queue_on_its_way_to_closed_can_be_edited"
    ),
    "14.1: weights without end or that are no number pass": "test_defects.test_a_weight_is_a_finite_number",
    "14.3: depth does not count what is moved along": "test_queues.test_depth_counts_what_is_moved_along",
    "14.3: a queue may be placed below its own descendant": (
        "test_queues.test_a_queue_cannot_be_placed_below_its_own_descendant"
    ),
    "14.3: a cycle never ends the walk": "test_queues.test_a_cycle_that_is_already_stored_ends_every_walk",
    "15.1: tolerationSeconds is ignored": "test_pods.test_toleration_seconds_are_read_in_both_spellings",
    "15.3: pods of other schedulers are gated for ever": "test_defects.test_pods_of_other_schedulers_are_not_gated",
    "15.4: a first load that fails is final": "test_configuration_file.test_a_file_that_comes_late_is_taken_up",
    "17: the search in dense graphs is exponential": "test_jobflows.test_a_dense_graph_is_judged_in_linear_time",
    "18: there is no zone data": "test_defects.test_zones_are_known_without_a_zone_database",
}


@pytest.mark.parametrize("defect", REGISTER)
def test_each_defect_has_its_test(defect: str) -> None:
    place, _, case = REGISTER[defect].partition("/")
    module, _, name = place.partition(".")
    found = getattr(importlib.import_module(f"tests.webhooks.{module}"), name)
    assert case in found if case else callable(found)


async def test_readiness_waits_for_the_first_possible_call() -> None:
    port, health = free_port(), free_port()
    async with FakeApiServer() as api, aiohttp.ClientSession() as session:
        api.put(kinds.QUEUES, queue("default"))
        held = api.faults.hold(verb="create", kind=kinds.VALIDATING_WEBHOOKS)
        flags = ("--enable-healthz", f"--healthz-address=127.0.0.1:{health}")
        running = asyncio.create_task(serve(options(api, port, *flags)))

        async def status(path: str) -> int:
            try:
                async with session.get(f"https://127.0.0.1:{health}{path}", ssl=False) as answer:
                    return answer.status
            except aiohttp.ClientError:
                return 0

        async def alive() -> bool:
            return await status("/livez") == 200

        async def ready() -> bool:
            return await status("/readyz") == 200

        async def registering() -> int:
            return api.count("create", kinds.VALIDATING_WEBHOOKS)

        try:
            await eventually(registering)
            assert await alive()
            assert not await ready()
            held.release()
            await eventually(ready)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_lists_in_messages_are_sorted() -> None:
    message = decide(
        "/jobs/validate", job(plugins={"z": [], "a": []}, policies=[{"event": "x", "action": "y"}])
    ).message
    assert "plugin: a; unable to find job plugin: z;" in message
    events, actions = (part.split("]")[0].split() for part in message.split("[")[1:3])
    assert events == sorted(events)
    assert actions == sorted(actions)


ACCEPTED_BY_THE_SERVER = {
    "a restart policy of an ordinary container": template(containers=[container(restartPolicy="Never")]),
    "a variable that begins with a digit": template(containers=[container(env=[{"name": "1A", "value": "x"}])]),
    "a resize policy of an init container": template(
        initContainers=[container("init", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}])]
    ),
    "a pause of no seconds before the end": template(
        containers=[container(lifecycle={"preStop": {"sleep": {"seconds": 0}}})]
    ),
    "an underscore in a search domain": template(dnsConfig={"searches": ["my_company.example.com"]}),
}


@pytest.mark.parametrize("name", ACCEPTED_BY_THE_SERVER)
def test_what_a_current_server_accepts_is_accepted_in_a_job(name: str) -> None:
    verdict = decide("/jobs/validate", job(task(template=ACCEPTED_BY_THE_SERVER[name])))
    assert (verdict.allowed, verdict.message) == (True, "")


@pytest.mark.parametrize("weight", ["inf", "-inf", "Infinity", "nan", "1e999"])
def test_a_weight_is_a_finite_number(weight: str) -> None:
    annotations = {"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": f"1/{weight}"}
    verdict = decide("/queues/validate", {"metadata": {"name": "q", "annotations": annotations}, "spec": {"weight": 1}})
    assert "must be a finite number" in verdict.message


@pytest.mark.parametrize("zone", ["Africa/Ouagadougou", "America/Argentina/Jujuy", "Etc/GMT+7"])
def test_zones_are_known_without_a_zone_database(zone: str) -> None:
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[])
    try:
        spec = {"schedule": "0 3 * * *", "timeZone": zone}
        assert decide("/cronjobs/validate", {"metadata": {"name": "c"}, "spec": spec}).allowed
    finally:
        zoneinfo.reset_tzpath(to=before)


def test_pods_of_other_schedulers_are_not_gated() -> None:
    gate = {"scheduling.volcano.sh/queue-allocation-gate": "true"}
    for scheduler, want in (("default-scheduler", False), ("volcano", True)):
        pod = {"metadata": {"name": "p", "annotations": gate}, "spec": {"schedulerName": scheduler}}
        settings = Settings(scheduling_gates_queue_admission=True)
        verdict = decide("/pods/mutate", pod, settings=settings, groups=[], known=cluster())
        assert bool(verdict.patch) is want
