"""Where the original's other controllers are wrong ours are not: the entries "do better" of spec 03 section 13.

The register names the entry, what goes wrong in the original, and the test of the better behaviour.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from stromboli.api import kinds
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually
from tests.controllers.registers import holds

REGISTER = {
    "spec_03_13_2: one missing CRD stalls all controllers": (
        "test_process.test_a_missing_kind_holds_up_only_who_needs_it"
    ),
    "spec_03_13_3: a clean stop is a failure and keeps the lease": (
        "test_defects.test_spec_03_13_3_a_clean_stop_is_no_failure_and_frees_the_lease"
    ),
    "spec_03_13_4: every change of a queue is a pass, several at a time": (
        "queue.test_scenarios.test_defect_4_many_changes_of_a_queue_are_few_passes_one_at_a_time"
    ),
    "spec_03_13_5: a StatefulSet has pods of other namespaces": (
        "podgroup.test_scenarios.test_defect_5_a_stateful_set_has_pods_in_its_own_namespace_only"
    ),
    "spec_03_13_6: a PodGroup is overwritten as a whole": (
        "podgroup.test_scenarios.test_defect_6_what_others_wrote_into_a_group_stays_and_nothing_is_written_twice"
    ),
    "spec_03_13_7: expressions in selectors are ignored": (
        "podgroup.test_scenarios.test_defect_7_a_selector_of_expressions_is_no_obstacle"
    ),
    "spec_03_13_11: a flow that succeeded never hears of it": "jobflow.test_progress.test_the_last_change_is_enough",
    "spec_03_13_12: finished jobs that were deleted are run again": (
        "jobflow.test_planning.test_a_finished_job_that_was_deleted_is_not_run_again"
    ),
    "spec_03_13_13: a template that comes later wakes nobody": (
        "jobflow.test_scenarios.test_a_template_that_comes_later_wakes_the_flow"
    ),
    "spec_03_13_14 (list): the list of a template's jobs is never emptied": (
        "jobtemplate.test_scenarios.test_the_list_shrinks_and_is_emptied"
    ),
    "spec_03_13_14 (dots): names with dots are ignored": (
        "jobtemplate.test_scenarios.test_a_template_whose_name_has_dots"
    ),
    "spec_03_13_14 (reason): the event has no reason": "jobtemplate.test_scenarios.test_giving_up_has_a_reason",
    "spec_03_13_16 (status): a status that was not written is forgotten": (
        "cronjob.test_passes.test_a_status_that_was_not_written_is_written_in_the_end_and_nothing_starts_twice"
    ),
    "spec_03_13_16 (list): a list shrinks while it is walked": (
        "cronjob.test_passes.test_replacing_ends_every_active_job_once"
    ),
    "spec_03_13_16 (copy): changes after reading again are lost": (
        "cronjob.test_passes.test_an_orphan_that_another_pass_has_recorded_is_none_and_changes_go_to_the_fresh_copy"
    ),
    "spec_03_13_17: TZ= without a blank crashes": (
        "cronjob.test_passes.test_what_makes_no_sense_is_told_and_not_tried_for_ever"
    ),
    "spec_03_13_18: new nodes are not counted": "hypernode.test_scenarios.test_counts_follow_nodes_and_members",
    "spec_03_13_19 (count): an update sets the count to 0": (
        "hypernode.test_scenarios.test_what_is_there_already_is_not_written_and_what_others_added_stays"
    ),
    "spec_03_13_19 (empty): one empty answer wipes out the topology": (
        "hypernode.test_fabric.test_an_empty_answer_is_believed_only_after_a_while"
    ),
    "spec_03_13_20 (endpoint): a missing endpoint crashes": (
        "hypernode.test_fabric.test_settings_that_cannot_work_are_an_error_and_no_crash"
    ),
    "spec_03_13_20 (waiting): discovery waits for ever after a failure": (
        "hypernode.test_scenarios.test_a_failed_look_is_not_the_last"
    ),
    "spec_03_13_21: an empty configuration deletes every shard": (
        "sharding.test_scenarios.test_an_empty_or_bad_configuration_leaves_the_flags_in_force"
    ),
    "spec_03_13_22 (limit): a limit holds for each batch": (
        "sharding.test_assigning.test_a_limit_holds_for_all_nodes_together"
    ),
    "spec_03_13_22 (policy): an unknown policy gets every node": (
        "sharding.test_configuration.test_an_unknown_policy_is_refused"
    ),
    "spec_03_13_22 (rate): without a highest rate no node passes": (
        "sharding.test_assigning.test_without_a_highest_rate_all_nodes_pass"
    ),
    "spec_03_13_23: the status is sent with the spec and lost": (
        "sharding.test_scenarios.test_the_status_is_left_to_the_scheduler"
    ),
    "spec_03_13_25: the whole pod is written": (
        "colocation.test_colocation.test_only_the_two_annotations_are_written_and_conflicts_do_no_harm"
    ),
}
DO_BETTER = {*range(2, 8), *range(11, 15), *range(16, 24), 25}


@pytest.mark.parametrize("defect", REGISTER)
def test_each_defect_has_its_test(defect: str) -> None:
    assert holds(REGISTER[defect], "tests.controllers")


def test_the_register_has_every_entry() -> None:
    entries = [entry.removeprefix("spec_03_13_") for entry in REGISTER]
    assert {int(entry.split(":")[0].split()[0]) for entry in entries} == DO_BETTER


async def test_spec_03_13_3_a_clean_stop_is_no_failure_and_frees_the_lease() -> None:
    async with FakeApiServer() as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "stromboli.controllers", f"--master={server.url}", stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await eventually(lambda: server.objects(kinds.LEASES), timeout=30, what="a lease")
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
        [lease] = server.objects(kinds.LEASES)
        assert lease["spec"]["holderIdentity"] == ""
