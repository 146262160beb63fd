"""JobFlows: order, failing branches, patches, probes and retention."""

from __future__ import annotations

from e2e.cluster import COMPLETE, Cluster, Json, eventually, vcjob
from stromboli.api.kinds import JOB_FLOWS, JOB_TEMPLATES, JOBS


async def template(cluster: Cluster, name: str, command: str = "sleep 1", **spec: object) -> None:
    wire = {
        "apiVersion": JOB_TEMPLATES.api_version,
        "kind": JOB_TEMPLATES.kind,
        "metadata": {"name": name},
        "spec": vcjob("x", replicas=1, command=command, **spec)["spec"],  # type: ignore[arg-type]
    }
    await cluster.create(JOB_TEMPLATES, wire)


async def flow(cluster: Cluster, name: str, *steps: Json, **spec: object) -> None:
    wire = {
        "apiVersion": JOB_FLOWS.api_version,
        "kind": JOB_FLOWS.kind,
        "metadata": {"name": name},
        "spec": {"flows": list(steps), **spec},
    }
    await cluster.create(JOB_FLOWS, wire)


def step(name: str, *targets: str, **more: object) -> Json:
    depends = {"dependsOn": {"targets": list(targets), **more}} if targets else {}
    return {"name": name, **depends}


async def status(cluster: Cluster, name: str) -> Json:
    found: Json = (await cluster.client.get(JOB_FLOWS, name, cluster.namespace)).get("status") or {}
    return found


async def phase_is(cluster: Cluster, name: str, phase: str) -> Json:
    return await eventually(
        lambda: status(cluster, name), lambda found: found.get("state", {}).get("phase") == phase, what=f"flow {phase}"
    )


async def jobs(cluster: Cluster) -> list[str]:
    return sorted(job["metadata"]["name"] for job in await cluster.client.list(JOBS, cluster.namespace))


async def test_five_steps_run_in_the_order_of_their_dependencies(cluster: Cluster) -> None:
    for name in "abcde":
        await template(cluster, name)
    await flow(cluster, "f", step("a"), step("b", "a"), step("c", "b"), step("d", "b"), step("e", "c", "d"))
    found = await phase_is(cluster, "f", "Succeed")
    assert found["completedJobs"] == [f"f-{name}" for name in "abcde"]
    made = {job["metadata"]["name"]: job for job in await cluster.client.list(JOBS, cluster.namespace)}
    created = {name: made[f"f-{name}"]["metadata"]["creationTimestamp"] for name in "abcde"}
    ended = {name: made[f"f-{name}"]["status"]["state"]["lastTransitionTime"] for name in "abcde"}
    for before, after in ("ab", "bc", "bd", "ce", "de"):
        assert ended[before] <= created[after]
    templates = await cluster.client.list(JOB_TEMPLATES, cluster.namespace)
    assert [one["status"]["jobDependsOnList"] for one in templates] == [[f"f-{name}"] for name in "abcde"]


async def test_a_failing_branch_fails_the_flow(cluster: Cluster) -> None:
    fails = [{"event": "PodFailed", "action": "TerminateJob"}]
    for name in "abde":
        await template(cluster, name)
    await template(cluster, "c", "exit 1", policies=fails)
    await flow(cluster, "f", step("a"), step("b", "a"), step("c", "a"), step("d", "b"), step("e", "c", "d"))
    await phase_is(cluster, "f", "Failed")
    assert "f-e" not in await jobs(cluster)


async def test_a_step_can_change_its_template_and_jobs_may_go_after_success(cluster: Cluster) -> None:
    await template(cluster, "a", "sleep 600")
    container = {"name": "worker", "command": ["sh", "-c", "sleep 1"]}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    patched = {**step("a"), "patch": {"jobSpec": {"minAvailable": 2, "tasks": [task]}}}
    await flow(cluster, "f", patched, jobRetainPolicy="delete")
    found = await phase_is(cluster, "f", "Succeed")
    assert found["conditions"]["f-a"]["taskStatusCount"] == {"worker": {"phase": {"Succeeded": 2}}}
    await eventually(lambda: jobs(cluster), lambda left: not left)


async def test_a_step_can_wait_for_another_to_run(cluster: Cluster) -> None:
    await template(cluster, "server", "sleep 600", task_policies=[COMPLETE])
    await template(cluster, "client")
    probe = {"taskStatusList": [{"taskName": "worker", "phase": "Running"}]}
    await flow(cluster, "f", step("server"), step("client", "server", probe=probe))
    await cluster.phase_is("f-client", "Completed")
    found = await eventually(lambda: status(cluster, "f"), lambda seen: seen.get("completedJobs") == ["f-client"])
    assert (found["runningJobs"], found["state"]["phase"]) == (["f-server"], "Running")


async def test_a_template_that_comes_later_lets_the_flow_go_on(cluster: Cluster) -> None:
    await flow(cluster, "f", step("late"))
    await eventually(
        lambda: cluster.events("f"), lambda found: any(event["reason"] == "JobTemplateNotFound" for event in found)
    )
    await template(cluster, "late")
    await phase_is(cluster, "f", "Succeed")


async def test_deleting_a_flow_takes_its_jobs_along(cluster: Cluster) -> None:
    await template(cluster, "a", "sleep 600")
    await flow(cluster, "f", step("a"))
    await cluster.phase_is("f-a", "Running")
    await cluster.delete(JOB_FLOWS, "f")
    await cluster.gone(JOBS, "f-a")
