"""What vcctl and the stand-alone commands print and do, to the letter (spec 08 sections 1 to 3)."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from stromboli.api.kinds import COMMANDS, EVENTS, JOB_FLOWS, JOB_TEMPLATES, JOBS, POD_GROUPS, PODS, QUEUES
from stromboli.kube.json import JsonObject
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually
from tests.cli.driving import Outcome, Until, drive, job, meta, pod_group, queue

HEADER = (
    "Name           Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   "
    "Failed    Unknown     RetryCount\n"
)


async def test_a_list_of_jobs(server: FakeApiServer) -> None:
    server.put(JOBS, job("training-job"))
    server.put(JOBS, job("elsewhere", "other"))
    done = await drive("vcctl job list", server)
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        HEADER
        + "training-job   2026-01-01     Running     Batch       3           2     1         2         0           "
        "0         0           0         \n"
    )


async def test_a_list_of_jobs_everywhere(server: FakeApiServer) -> None:
    server.put(JOBS, job("a"))
    server.put(JOBS, job("b", "somewhere-else"))
    header, first, second = (await drive("vcctl job list --all-namespaces", server)).out.splitlines()
    assert header.startswith("Namespace        Name   Creation       ")
    assert first.startswith("default          a      2026-01-01     ")
    assert second.startswith("somewhere-else   b      2026-01-01     ")


FILTERS = {
    "by queue, exactly": ("-q research", ["one"]),
    "by scheduler": ("--scheduler volcano", ["one", "two"]),
    "by a part of the name": ("--selector w", ["two"]),
    "by everything": ("-q default -S volcano --selector t", ["two"]),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_jobs_are_filtered(server: FakeApiServer, name: str) -> None:
    flags, want = FILTERS[name]
    server.put(JOBS, job("one", queue="research"))
    server.put(JOBS, job("two"))
    lines = (await drive(f"vcctl job list {flags}", server)).out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == want


NOTHING_FOUND = ["vcctl job list", "vcctl queue list", "vcctl pod list", "vcctl jobflow list", "vqueues", "vjobs"]


@pytest.mark.parametrize("line", NOTHING_FOUND)
async def test_an_empty_list_says_so(server: FakeApiServer, line: str) -> None:
    done = await drive(line, server)
    assert (done.code, done.out) == (0, "No resources found\n")


async def test_vjobs_prints_the_header_even_if_all_rows_are_filtered_out(server: FakeApiServer) -> None:
    server.put(JOBS, job("training-job"))
    assert (await drive("vjobs -S other", server)).out == HEADER
    assert (await drive("vcctl job list -S other", server)).out == "No resources found\n"


async def test_running_a_job_from_flags(server: FakeApiServer) -> None:
    done = await drive("vcctl job run -N sim -n default -r 3 -m 2 -R cpu=2 -L cpu=2,memory=1Gi -i alpine", server)
    assert (done.code, done.out) == (0, "run job sim successfully\n")
    assert server.get(JOBS, "sim", "default")["spec"] == {
        "minAvailable": 2,
        "schedulerName": "volcano",
        "tasks": [
            {
                "replicas": 3,
                "template": {
                    "metadata": {"name": "sim", "labels": {"job.volcano.sh": "sim"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {
                                "name": "sim",
                                "image": "alpine",
                                "imagePullPolicy": "IfNotPresent",
                                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2"}},
                            }
                        ],
                    },
                },
            }
        ],
    }


async def test_running_a_job_from_a_file(server: FakeApiServer, tmp_path: Path) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump({"apiVersion": JOBS.api_version, "kind": "Job", **job("filed", "ns")}))
    done = await drive(f"vcctl job run -f {manifest} -n ns -r 99", server)
    assert (done.code, done.out) == (0, "run job filed successfully\n")
    assert server.get(JOBS, "filed", "ns")["spec"]["tasks"][0]["replicas"] == 3


async def test_vsub_takes_defaults_from_the_environment(server: FakeApiServer) -> None:
    environment = {
        "VOLCANO_SCHEDULER_NAME": "other",
        "VOLCANO_DEFAULT_IMAGE": "alpine",
        "VOLCANO_DEFAULT_JOB_NAMESPACE": "team",
    }
    done = await drive("""vsub -n sub -c 'sh -c "sleep 5"'""", server, environment=environment)
    assert (done.code, done.out) == (0, "run job sub successfully\n")
    made = server.get(JOBS, "sub", "team")["spec"]
    assert made["schedulerName"] == "other"
    container = made["tasks"][0]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("alpine", ["sh", "-c", "sleep 5"])


ORDERS = {
    "vcctl job suspend -N j": ("AbortJob", "j-abortjob-", "default"),
    "vcctl job resume -N j": ("ResumeJob", "j-resumejob-", "default"),
    "vsuspend -n j": ("AbortJob", "j-abortjob-", "default"),
    "vresume -n j -N default": ("ResumeJob", "j-resumejob-", "default"),
    "vcctl queue operate -n q -a open": ("OpenQueue", "q-openqueue-", "default"),
    "vcctl queue operate -n q -a close": ("CloseQueue", "q-closequeue-", "default"),
}


@pytest.mark.parametrize("line", ORDERS)
async def test_orders_are_commands_owned_by_their_target(server: FakeApiServer, line: str) -> None:
    action, prefix, namespace = ORDERS[line]
    stored = {"j": server.put(JOBS, job("j")), "q": server.put(QUEUES, queue("q"))}[prefix[0]]
    done = await drive(line, server)
    assert (done.code, done.out, done.err) == (0, "", "")
    (command,) = server.objects(COMMANDS, namespace)
    owner = {
        "apiVersion": stored["apiVersion"],
        "kind": stored["kind"],
        "name": stored["metadata"]["name"],
        "uid": stored["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert command["metadata"]["name"].startswith(prefix)
    assert (command["action"], command["target"]) == (action, owner)
    assert command["metadata"]["ownerReferences"] == [owner]


DELETIONS = {
    "vcctl job delete -N j": "delete job j successfully\n",
    "vcctl job delete j": "delete job j successfully\n",
    "vcancel -n j": "cancel job j successfully\n",
}


@pytest.mark.parametrize("line", DELETIONS)
async def test_jobs_are_deleted(server: FakeApiServer, line: str) -> None:
    server.put(JOBS, job("j"))
    assert (await drive(line, server)).out == DELETIONS[line]
    assert server.objects(JOBS) == []


FAILURES = {
    "vcctl job run": "Failed to run job: job name cannot be left blank",
    "vcctl job run -N x -R cpu": "Failed to run job: invalid argument syntax cpu, expected <resource>=<value>",
    "vcctl job run -N x -R cpu=lots": "Failed to run job: invalid quantity 'lots' of cpu",
    "vcctl job run -f job.txt": "Failed to run job: only support yaml file",
    "vcctl job run -f /none/job.yaml": "Failed to run job: failed to read file, err: ",
    "vcctl job view": "Failed to view job: job name (specified by --name or -N) is mandatory to view a particular job",
    "vcctl job delete": "Failed to delete job: job name is mandatory to delete a particular job",
    "vcctl job suspend": "Failed to suspend job: job name is mandatory to suspend a particular job",
    "vcctl job resume": "Failed to resume job: job name is mandatory to resume a particular job",
    "vcctl job suspend -N none": 'Failed to suspend job: jobs "none" not found\n',
    "vcctl queue delete": "Failed to delete queue: queue name must be specified",
    "vcctl queue operate": "Failed to operate queue: queue name must be specified",
    "vcctl queue operate -n q": "Failed to operate queue: action can not be null",
    "vcctl queue operate -n q -a x": "Failed to operate queue: action x invalid, "
    "valid actions are open, close and update",
    "vcctl queue operate -n q -a update": "Failed to operate queue: when update queue q, weight must be specified, "
    "the value must be greater than 0",
    "vcctl queue get": "Failed to get queue: name is mandatory to get the particular queue details",
    "vcctl jobflow get": "Failed to get jobflow: name is mandatory to get the particular jobflow details",
    "vcctl jobtemplate get": "Failed to get jobtemplate: name is mandatory to get the particular job template details",
    "vcctl jobflow delete": "Failed to delete jobflow: jobflow name must be specified",
    "vcctl jobtemplate delete": "Failed to delete jobtemplate: job template name must be specified",
    "vcctl job list -o xml": "Failed to list job: output format 'xml' is not known; "
    "choose one of json, yaml, wide, name",
    "vcctl job run -N a --dry-run=client": "Failed to run job: --dry-run=client is not known; choose server or none",
    "vsub": "Failed to: job name cannot be left blank",
    "vcancel": "Failed to: job name is mandatory to cancel a particular job",
    "vjobs -n none": "Failed to: ",
}


@pytest.mark.parametrize("line", FAILURES)
async def test_failures_are_one_line_on_stderr_and_exit_code_255(server: FakeApiServer, line: str) -> None:
    done = await drive(line, server)
    assert (done.code, done.out) == (255, "")
    assert done.err.startswith(FAILURES[line])
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("line", ["vcctl job run -N big -R cpu=5", "vsub -n big -R cpu=5"])
async def test_a_request_above_the_limit_that_no_flag_has_set_is_told_where_it_comes_from(
    server: FakeApiServer, line: str
) -> None:
    said = 'requests: Invalid value: "5": must be less than or equal to cpu limit of 1.'
    server.faults.fail(403, verb="create", kind=JOBS, times=None, message=said)
    done = await drive(line, server)
    assert done.code == 255
    assert done.err.endswith(f"{said[:-1]}; without --limits the limit is cpu=1000m,memory=100Mi\n")
    assert (await drive(f"{line} -L cpu=2", server)).err.endswith(f"{said}\n")


async def test_an_unusable_kubeconfig_is_told_before_a_missing_name(server: FakeApiServer) -> None:
    done = await drive("vcctl job delete -k /none/kubeconfig", server)
    assert done.code == 255
    assert done.err.startswith("Failed to delete job: --kubeconfig: no such file: /none/kubeconfig")


async def test_a_server_that_is_not_there(server: FakeApiServer) -> None:
    done = await drive("vcctl job list -s http://127.0.0.1:1", server)
    assert done.code == 255
    assert done.err.startswith("Failed to list job: no answer from http://127.0.0.1:1: ")


async def test_a_view_of_a_job(server: FakeApiServer) -> None:
    server.put(JOBS, job("j"))
    event = {
        "metadata": meta("j.1"),
        "involvedObject": {"kind": "Job", "namespace": "default", "name": "j"},
        "type": "Normal",
        "reason": "ExecuteAction",
        "message": "Start to execute action AbortJob",
        "firstTimestamp": "2026-01-03T23:00:00Z",
        "lastTimestamp": "2026-01-03T23:59:00Z",
        "count": 3,
        "source": {"component": "vc-controller-manager", "host": "h"},
    }
    server.put(EVENTS, event)
    for other in ({"kind": "Job", "name": "jay"}, {"kind": "Job", "name": "j.k"}, {"kind": "Queue", "name": "j"}):
        server.put(EVENTS, {**event, "metadata": meta(f"{other['name']}.{other['kind']}"), "involvedObject": other})
    done = await drive("vcctl job view -N j", server)
    stored = server.get(JOBS, "j", "default")["metadata"]
    want = VIEW.format(version=stored["resourceVersion"], uid=stored["uid"], generation=stored.get("generation", 0))
    assert done.out == want


async def test_watches_that_end_at_once_are_not_begun_again_in_a_hurry(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append)
    monkeypatch.setattr("stromboli.cli.commanding.api.time", clock)
    screen = Until("second ")
    watching = asyncio.create_task(drive("vcctl job list -w", server, out=screen))
    await eventually(lambda: server.open_watches == 1, what="a watch")
    server.end_watches()
    await eventually(lambda: server.count("watch") == 2 and server.open_watches == 1, what="another watch")
    server.put(JOBS, job("second"))
    assert (await watching).code == 130
    assert len(pauses) == 1
    assert 0 < pauses[0] <= 1


async def test_a_view_for_somebody_who_may_not_see_events(server: FakeApiServer) -> None:
    server.put(JOBS, job("j"))
    server.faults.fail(403, verb="list", kind=EVENTS, message="not for you")
    done = await drive("vcctl job view j", server)
    assert (done.code, done.err) == (0, "events are not shown: not for you\n")
    assert done.out.startswith("Name:       \tj\n")


async def test_without_flows_there_is_nothing_to_describe(server: FakeApiServer) -> None:
    assert await drive("vcctl jobflow describe", server) == Outcome(0, "", "No resources found\n")


VIEW = """\
Name:       \tj
Namespace:  \tdefault
Labels:     \t<none>
Annotations:\t<none>
API Version:\tbatch.volcano.sh/v1alpha1
Kind:       \tJob
Metadata:
  Creation Timestamp:\t2026-01-01 00:00:00 +0000 UTC
  Generate Name:     \t
  Generation:        \t{generation}
  Resource Version:  \t{version}
  UID:               \t{uid}
Spec:
  Min Available:     \t2
  Plugins:
    Env:\t[]
    Ssh:\t[]
  Scheduler Name:    \tvolcano
  Tasks:
    Name:\tworker
    Replicas:\t3
    Template:
      Metadata:
        Annotations:
          Cri . Cci . Io / Container - Type:          \t
          Kubernetes . Io / Availablezone:            \t
          Network . Alpha . Kubernetes . Io / Network:\t
        Creation Timestamp:\t0001-01-01 00:00:00 +0000 UTC
      Spec:
        Containers:
          Command:
            sleep
            60
          Image:\tbusybox
          Name: \tc
          Ports:
          Resources:
            Limits:
              Cpu:   \t0
              Memory:\t0
            Requests:
              Cpu:   \t1
              Memory:\t0
          Working Dir:\t
        Image Pull Secrets:
        Restart Policy:   \tNever
Status:
  Pending:      \t1
  Running:      \t2
  Min Available:\t2
  State:
    Phase:\tRunning
Events:
Type           \tReason                                  \tAge                           \tForm                                    \tMessage
-------        \t-------                                 \t-------                       \t-------                                 \t-------
Normal         \tExecuteAction                           \t60s (x3 over 60m)             \tvc-controller-manager, h                \tStart to execute action AbortJob
"""  # noqa: E501


async def test_conditions_are_shown_by_vcctl_and_not_by_vjobs(server: FakeApiServer) -> None:
    shown = job("j")
    shown["status"]["conditions"] = [{"status": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    server.put(JOBS, shown)
    part = "  Conditions:\n    Status\tTransitionTime\n    Pending \t2026-01-01 00:00:00 +0000 UTC \n"
    assert part in (await drive("vcctl job view -N j", server)).out
    assert part not in (await drive("vjobs -n j", server)).out


async def test_queues_count_pod_groups_of_the_whole_cluster(server: FakeApiServer) -> None:
    server.put(QUEUES, queue("test-queue"))
    for number, (phase, count) in enumerate(
        {"Inqueue": 1, "Pending": 2, "Running": 3, "Unknown": 4, "Completed": 5}.items()
    ):
        for copy in range(count):
            server.put(POD_GROUPS, pod_group(f"g{number}-{copy}", "test-queue", phase, namespace=f"ns{copy}"))
    server.put(POD_GROUPS, pod_group("stray", "no-such-queue", "Running"))
    want = (
        "Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed\n"
        "test-queue               1       Open    root    1       2       3       4       5       \n"
    )
    assert (await drive("vcctl queue list", server)).out == want
    assert (await drive("vcctl queue get -n test-queue", server)).out == want
    short = (
        "Name                     Weight  State   Inqueue Pending Running Unknown \n"
        "test-queue               1       Open    1       2       3       4       \n"
    )
    assert (await drive("vqueues", server)).out == short
    assert (await drive("vqueues -n test-queue", server)).out == short


async def test_queues_are_created_updated_and_deleted_silently(server: FakeApiServer) -> None:
    for line in (
        "vcctl queue create -n q -w 3",
        "vcctl queue operate -n q -a update -w 7",
    ):
        done = await drive(line, server)
        assert (done.code, done.out, done.err) == (0, "", "")
    assert server.get(QUEUES, "q")["spec"]["weight"] == 7
    assert (await drive("vcctl queue delete -n q", server)).out == ""
    assert server.objects(QUEUES) == []


async def test_a_queue_that_is_to_be_created_closed_is_closed_by_a_command(server: FakeApiServer) -> None:
    assert (await drive("vcctl queue create -n q -S Closed", server)).code == 0
    assert [command["action"] for command in server.objects(COMMANDS)] == ["CloseQueue"]


def _flow(name: str, namespace: str = "default") -> JsonObject:
    return {"metadata": meta(name, namespace), "spec": {"flows": []}, "status": {"state": {"phase": "Succeed"}}}


async def test_a_list_of_flows_and_templates(server: FakeApiServer) -> None:
    server.put(JOB_FLOWS, _flow("test-jobflow"))
    server.put(JOB_TEMPLATES, {"metadata": meta("template"), "spec": {}})
    want = "Name            Namespace    Phase      Age    \ntest-jobflow    default      Succeed    3d     \n"
    assert (await drive("vcctl jobflow list", server)).out == want
    assert (await drive("vcctl jobflow get -N test-jobflow", server)).out == want
    templates = "Name        Namespace    \ntemplate    default      \n"
    assert (await drive("vcctl jobtemplate list", server)).out == templates


async def test_one_failing_object_of_a_file_does_not_stop_the_others(server: FakeApiServer, tmp_path: Path) -> None:
    server.put(JOB_FLOWS, _flow("b"))
    file = tmp_path / "flows.yaml"
    file.write_text("".join(f"---\nmetadata: {{name: {name}, annotations: {{x: 'a --- b'}}}}\n" for name in "abc"))
    done = await drive(f"vcctl jobflow create -f {file}", server)
    first, second, third = done.out.splitlines()
    assert (first, third) == ("Created JobFlow: default/a", "Created JobFlow: default/c")
    assert second.startswith("Failed to create JobFlow: ")
    assert done.code == 255
    assert server.get(JOB_FLOWS, "a", "default")["metadata"]["annotations"] == {"x": "a --- b"}
    done = await drive(f"vcctl jobflow delete -f {file}", server)
    assert done.out == "".join(f"Deleted JobFlow: default/{name}\n" for name in "abc")


async def test_a_description_is_yaml_or_json(server: FakeApiServer) -> None:
    server.put(JOB_FLOWS, {**_flow("f"), "metadata": meta("f", managedFields=[{}]), "status": {}})
    told = yaml.safe_load((await drive("vcctl jobflow describe -N f", server)).out)
    assert (told["kind"], told["status"]) == ("JobFlow", {"state": {}})
    assert "managedFields" not in told["metadata"]
    text = (await drive("vcctl jobflow describe -N f -o json", server)).out
    assert list(json.loads(text)) == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert text.startswith('{\n  "kind": "JobFlow",')
    done = await drive("vcctl jobflow describe -N f -o xml", server)
    assert (done.code, done.out) == (0, "Unsupported format: xml\n")


def _pod(name: str, namespace: str = "default", **labels: str) -> JsonObject:
    return {
        "metadata": meta(name, namespace, labels={f"volcano.sh/{key}": value for key, value in labels.items()}),
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }


async def test_pods_of_jobs_and_queues(server: FakeApiServer) -> None:
    server.put(PODS, _pod("my-pod", **{"job-name": "j", "queue-name": "q"}))
    server.put(PODS, _pod("stray"))
    annotated = _pod("annotated")
    annotated["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "q"}
    server.put(PODS, annotated)
    want = (
        "Name          Ready      Status         Restart  Age       \n"
        "my-pod        0/1        Running        0        3d        \n"
    )
    found = (await drive("vcctl pod list", server)).out
    assert found == want
    assert (await drive("vcctl pod list -j j", server)).out == found
    names = [line.split()[0] for line in (await drive("vcctl pod list -q q", server)).out.splitlines()[1:]]
    assert names == ["annotated", "my-pod"]
    done = await drive("vcctl pod list -j j -q other", server)
    assert done.err == "Failed to list pod: the input vcjob j does not match the queue other\n"


async def test_output_formats(server: FakeApiServer) -> None:
    server.put(JOBS, job("j"))
    found = json.loads((await drive("vcctl job list -o json", server)).out)
    assert (found["kind"], [item["metadata"]["name"] for item in found["items"]]) == ("List", ["j"])
    assert yaml.safe_load((await drive("vcctl job view -N j -o yaml", server)).out)["spec"]["minAvailable"] == 2
    assert (await drive("vcctl job list -o name", server)).out == "job.batch.volcano.sh/j\n"
    header, row = (await drive("vcctl job list -o wide", server)).out.splitlines()
    assert header.split()[-3:] == ["Queue", "Scheduler", "Age"]
    assert row.split()[-3:] == ["default", "volcano", "3d"]


async def test_a_dry_run_keeps_nothing(server: FakeApiServer) -> None:
    done = await drive("vcctl job run -N j --dry-run=server", server)
    assert done.out == "run job j successfully (server dry run)\n"
    assert server.objects(JOBS) == []


async def test_watching_prints_what_changes(server: FakeApiServer) -> None:
    server.put(JOBS, job("j"))
    screen = Until("Completed")
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(drive("vcctl job list --watch", server, out=screen))
        await screen.opened.wait()
        server.put(JOBS, job("j", phase="Completed"))
    assert watching.result().code == 130
    _, before, after = screen.getvalue().splitlines()
    assert (before.split()[2], after.split()[2]) == ("Running", "Completed")


async def test_watching_queues_follows_their_pod_groups(server: FakeApiServer) -> None:
    server.put(QUEUES, queue("q"))
    server.put(QUEUES, queue("other"))
    screen = Until("q                        1       Open    root    0       1       ")
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(drive("vcctl queue list -w", server, out=screen))
        await screen.opened.wait()
        server.put(POD_GROUPS, pod_group("g", "q", "Pending"))
    assert watching.result().code == 130
    assert len(screen.getvalue().splitlines()) == 4
    await eventually(lambda: server.open_watches == 0, what="all watches are closed")


async def test_watching_pods_heeds_the_selector(server: FakeApiServer) -> None:
    server.put(PODS, _pod("mine-0", **{"job-name": "mine"}))
    screen = Until("mine-1 ")
    async with asyncio.TaskGroup() as group:
        group.create_task(drive("vcctl pod list -j mine -w", server, out=screen))
        await screen.opened.wait()
        server.put(PODS, _pod("other-0", **{"job-name": "other"}))
        server.put(PODS, _pod("mine-1", **{"job-name": "mine"}))
    assert "other-0" not in screen.getvalue()


async def test_a_watch_goes_on_after_its_version_has_expired(server: FakeApiServer) -> None:
    server.put(JOBS, job("j"))
    server.put(JOBS, job("quiet"))
    server.faults.expire_watch(kind=JOBS, after=0, times=1)
    screen = Until("Completed")
    async with asyncio.TaskGroup() as group:
        group.create_task(drive("vcctl job list -w", server, out=screen))
        await screen.opened.wait()
        server.put(JOBS, job("j", phase="Completed"))
    assert [line.split()[0] for line in screen.getvalue().splitlines()] == ["Name", "j", "quiet", "j"]
    assert server.count("list", JOBS) == 2


async def test_watching_as_json_prints_whole_objects(server: FakeApiServer) -> None:
    server.put(JOBS, job("j"))
    screen = Until("Completed")
    async with asyncio.TaskGroup() as group:
        group.create_task(drive("vcctl job list -w -o json", server, out=screen))
        await screen.opened.wait()
        server.put(JOBS, job("j", phase="Completed"))
    assert screen.getvalue().count('"kind": "Job"') == 2


async def test_watching_queues_goes_on_after_a_version_has_expired(server: FakeApiServer) -> None:
    server.put(QUEUES, queue("q"))
    server.faults.expire_watch(kind=POD_GROUPS, after=0, times=1)
    screen = Until("q                        1       Open    root    0       1       ")
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(drive("vqueues -w", server, out=Until("Open    0       1 ")))
        await asyncio.sleep(0)
        also = group.create_task(drive("vcctl queue list -w", server, out=screen))
        await screen.opened.wait()
        server.put(POD_GROUPS, pod_group("g", "q", "Pending"))
    assert (watching.result().code, also.result().code) == (130, 130)


async def test_a_watch_that_is_refused_is_a_failure(server: FakeApiServer) -> None:
    server.put(QUEUES, queue("q"))
    server.faults.fail(403, verb="watch", kind=POD_GROUPS, message="podgroups may not be watched")
    done = await drive("vcctl queue list -w", server)
    assert done.code == 255
    assert done.err.startswith("Failed to list queue: podgroups may not be watched")
    await eventually(lambda: server.open_watches == 0, what="all watches are closed")


async def test_the_version_in_six_lines(server: FakeApiServer) -> None:
    lines = (await drive("vcctl version", server)).out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "API Version", "Version", "Git SHA", "Built At", "Python Version", "Python OS/Arch",
    ]  # fmt: skip
    assert lines[0] == "API Version: v1alpha1"
    assert lines[2:4] == ["Git SHA: Not provided.", "Built At: Not provided."]


BAD_FILES = {
    "no YAML": ("{", "failed to unmarshal file, err:  "),
    "nothing": ("", "failed to unmarshal file, err:  expected one vcjob, found 0 documents"),
    "two documents": ("a: 1\n---\nb: 2", "failed to unmarshal file, err:  expected one vcjob, found 2 documents"),
    "another kind": ("apiVersion: batch/v1\nkind: Job", "expected kind Job of batch.volcano.sh/v1alpha1, found 'Job'"),
    "no name": ("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job", "metadata.name is missing"),
}


@pytest.mark.parametrize("name", BAD_FILES)
async def test_files_that_are_no_job(server: FakeApiServer, tmp_path: Path, name: str) -> None:
    content, want = BAD_FILES[name]
    file = tmp_path / "job.yaml"
    file.write_text(content)
    done = await drive(f"vcctl job run -f {file}", server)
    assert (done.code, want in done.err, done.err.count("\n")) == (255, True, 1)


FLOW_FILES = {
    "no file": ("-f /none", "/none: cannot be read: No such file or directory"),
    "no file named": ("", "a file is mandatory: give --file (-f)"),
}


@pytest.mark.parametrize("name", FLOW_FILES)
async def test_files_that_are_no_flow(server: FakeApiServer, name: str) -> None:
    flags, want = FLOW_FILES[name]
    done = await drive(f"vcctl jobflow create {flags}", server)
    assert (done.code, done.err) == (255, f"Failed to create jobflow: {want}\n")


async def test_a_template_is_got_described_and_deleted(server: FakeApiServer) -> None:
    server.put(JOB_TEMPLATES, {"metadata": meta("t"), "spec": {}})
    assert (await drive("vcctl jobtemplate get -N t", server)).out == "Name    Namespace    \nt       default      \n"
    assert yaml.safe_load((await drive("vcctl jobtemplate describe", server)).out)["kind"] == "JobTemplate"
    assert (await drive("vcctl jobtemplate delete -N t", server)).out == "Deleted JobTemplate: default/t\n"
    assert server.objects(JOB_TEMPLATES) == []


async def test_restarts_say_when_the_last_was(server: FakeApiServer) -> None:
    pod = _pod("p", **{"job-name": "j"})
    ended = {"terminated": {"finishedAt": "2026-01-03T23:50:00Z"}}
    pod["status"]["containerStatuses"] = [{"name": "c", "ready": True, "restartCount": 2, "lastState": ended}]
    server.put(PODS, pod)
    row = (await drive("vcctl pod list -o wide", server)).out.splitlines()[1]
    assert row.split()[:5] == ["p", "1/1", "Running", "2", "(10m"]


async def test_kubectl_create_vcjob(server: FakeApiServer) -> None:
    line = "kubectl-create-vcjob train --image=alpine --replicas=4 --min=2 --queue=research -n ns -- sleep 60"
    done = await drive(line, server)
    assert (done.code, done.out) == (0, "job.batch.volcano.sh/train created\n")
    spec = server.get(JOBS, "train", "ns")["spec"]
    assert (spec["minAvailable"], spec["queue"], spec["tasks"][0]["replicas"]) == (2, "research", 4)
    assert spec["tasks"][0]["template"]["spec"]["containers"][0]["command"] == ["sleep", "60"]
    again = await drive(line, server)
    assert again.code == 1
    assert again.err.startswith("error: ")
    assert (await drive("kubectl-create-vcjob", server)).err == "error: exactly one NAME is required, got 0\n"
