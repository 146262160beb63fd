"""Flags of the controller manager and the ``--controllers`` list: spec 03 section 1.2, spec 08 section 13.2."""

from __future__ import annotations

import pytest

from stromboli.controllers import selection
from stromboli.controllers.__main__ import main
from stromboli.controllers.assembling import CONTROLLERS
from stromboli.controllers.options import PROGRAM, Options
from stromboli.process import flags

ALL = list(CONTROLLERS)


def parsed(*arguments: str) -> Options:
    options = flags.parse(Options, arguments, program=PROGRAM)
    options.check()
    return options


def test_defaults() -> None:
    options = parsed()
    assert (options.worker_threads, options.worker_threads_for_podgroup, options.worker_threads_for_gc) == (3, 5, 1)
    assert (options.worker_threads_for_queue, options.worker_threads_for_cronjob) == (5, 3)
    assert (options.kube_api_qps, options.kube_api_burst, options.max_requeue_num) == (50, 100, 15)
    assert (options.listen_address, options.healthz_address) == (":8081", ":11251")
    assert (options.enable_metrics, options.enable_healthz, options.leader_elect) == (False, False, True)
    assert (options.leader_elect_resource_name, options.lease_namespace) == ("vc-controller-manager", "volcano-system")
    assert (options.scheduler_name, options.inherit_owner_annotations) == (["volcano"], True)
    assert options.selection == ["*", "-sharding-controller"]
    assert options.gate("VolcanoJobSupport")
    assert not options.gate("CSIStorage")


def test_giving_the_list_replaces_the_default() -> None:
    assert parsed("--controllers=+gc-controller,job-controller").selection == ["+gc-controller", "job-controller"]
    assert parsed("--controllers=*", "--controllers=-gc-controller").selection == ["*", "-gc-controller"]


SELECTIONS: dict[str, tuple[list[str], str, bool]] = {
    "everything": (["*"], "job-controller", True),
    "an item with a blank matches nothing": (["*, -job-controller"], "job-controller", False),
    "a blank after a comma": (["*", " -job-controller"], "job-controller", True),
    "excluded": (["-gc-controller", "+jobtemplate-controller"], "gc-controller", False),
    "listed plainly": (ALL, "job-controller", True),
    "not among the included": (["+gc-controller", "+jobflow-controller"], "job-controller", False),
    "nothing but exclusions": (["-job-controller"], "queue-controller", False),
    "an empty list": ([], "sharding-controller", True),
    "the default": (["*", "-sharding-controller"], "sharding-controller", False),
}


@pytest.mark.parametrize(("items", "controller", "want"), SELECTIONS.values(), ids=SELECTIONS.keys())
def test_which_controllers_run(items: list[str], controller: str, want: bool) -> None:
    assert selection.enabled(items, controller) is want


@pytest.mark.parametrize(
    ("items", "named"),
    [
        ("+gc-controller,+job-controller,-job-controller", "-job-controller"),
        ("+job-controller,job-controller", "job-controller"),
    ],
)
def test_a_controller_named_twice_is_refused(items: str, named: str) -> None:
    with pytest.raises(flags.FlagError) as caught:
        parsed(f"--controllers={items}")
    assert str(caught.value) == f"controllers option {named} cannot have both '-' and '+' prefixes"


def test_a_star_may_stand_anywhere() -> None:
    selection.validate(["-sharding-controller", "*", "-job-controller", "*"])


def test_unknown_names_are_found() -> None:
    assert selection.unknown(["*", "-job-controler", "+gc-controller"], ALL) == ["-job-controler"]


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("--worker-threads=0", "--worker-threads is 0"),
        ("--worker-threads-for-gc=-1", "--worker-threads-for-gc is -1"),
        ("--leader-elect-lease-duration=5s", "--leader-elect-lease-duration"),
        ("--log-format=xml", "--log-format"),
        ("--no-such-flag", "--no-such-flag"),
    ],
)
def test_a_bad_command_line_is_one_line_and_exit_code_1(
    argument: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert named in lines[0]
