"""Which tests carry out what reports about jobs and their PodGroups ask for: one entry per report, by its number.

Reports about everything else stand in the register beside the scheduler's tests.
"""

from __future__ import annotations

import pytest

from tests.controllers.registers import holds

SCENARIOS = "controllers.job.test_scenarios"
OWNERLESS = "controllers.podgroup.test_scenarios"
REGISTER: dict[str, tuple[str, ...]] = {
    "P01: conditions grow until the job cannot be written": (
        "controllers.job.test_status.test_conditions_do_not_grow",
        "controllers.job.test_status.test_conditions_hold_each_phase_once_the_last_at_the_end",
    ),
    "P02: restarting one pod gives up the gang's place": (
        f"{SCENARIOS}.test_a_targeted_restart_keeps_the_gang_and_replaces_one_pod",
    ),
    "P04: pods run on after the last retry": (f"{SCENARIOS}.test_used_up_retries_leave_only_finished_pods",),
    "P06: pods of a deleted job end the new one of its name": (
        f"{SCENARIOS}.test_pods_of_an_earlier_job_of_the_same_name_do_not_count",
        "controllers.job.test_policies.CASES/another job's pod",
    ),
    "P08: resuming counts as failing": (f"{SCENARIOS}.test_aborting_and_resuming_costs_no_retry",),
    "P10: the wrong pods are restarted": (
        f"{SCENARIOS}.test_an_evicted_pod_takes_its_partition_with_it",
        f"{SCENARIOS}.test_only_the_failed_tasks_pods_are_restarted",
        "controllers.job.test_planning.test_a_targeted_restart_that_was_interrupted_is_finished",
    ),
    "P11: an odd status ends the process": (
        f"{SCENARIOS}.test_an_odd_status_does_not_matter",
        f"{SCENARIOS}.test_a_job_that_cannot_be_read_is_set_aside_and_the_others_run",
    ),
    "P12: what has succeeded is run again": (f"{SCENARIOS}.test_a_success_once_counted_is_never_run_again",),
    "P14: the duration of a finished job grows": (
        "controllers.job.test_status.test_the_duration_is_frozen_at_the_end_and_absent_while_running",
        f"{SCENARIOS}.test_a_finished_job_lies_still",
    ),
    "P15: the time to live of aborted jobs is ignored": (
        "controllers.garbagecollector.test_expiry.test_which_phases_are_collected",
        "controllers.garbagecollector.test_expiry.test_an_expired_job_is_deleted_and_the_others_stay",
    ),
    "P16: a name too long for what is derived from it": (
        "webhooks.test_jobs.test_the_name_of_the_last_replica_must_fit",
        "controllers.job.test_bad_input.HOPELESS/a name too long for a Service",
        f"{SCENARIOS}.test_an_object_of_a_plugin_that_can_never_exist_ends_the_job_at_once",
        "controllers.job.test_derived.test_the_job_ends_at_once_with_the_remedy",
    ),
    "P17: odd arguments of plugins end the process": (
        f"{SCENARIOS}.test_a_job_that_cannot_be_read_is_set_aside_and_the_others_run",
        "controllers.job.test_plugins.ARGUMENTS/an unknown flag ends it",
    ),
    "P18: a quota is hit and nothing is said": (
        f"{SCENARIOS}.test_quota_is_waited_for_and_explained",
        "controllers.job.test_bad_input.HELPED/the quota is raised",
    ),
    "P19: a dependency that has succeeded holds up its dependents": (
        f"{SCENARIOS}.test_dependents_start_once_their_dependency_has_succeeded",
    ),
    "P20: the order of a rolling update's events matters": (
        f"{OWNERLESS}.test_the_order_of_a_rolling_updates_events_does_not_matter",
    ),
    "P22: a gang Deployment cannot roll": (f"{OWNERLESS}.test_p22_a_gang_deployment_can_roll_one_pod_at_a_time",),
    "P23: finished pods reserve a queue's room": (
        f"{OWNERLESS}.test_p23_finished_pods_reserve_nothing",
        f"{OWNERLESS}.test_p23_a_group_whose_pods_are_gone_goes_too",
    ),
    "P24: the group of an old ReplicaSet stays": (
        f"{OWNERLESS}.test_the_group_of_a_replica_set_that_was_scaled_to_zero_goes",
    ),
}
NUMBERS = [1, 2, 4, 6, 8, *range(10, 13), *range(14, 21), *range(22, 25)]


@pytest.mark.parametrize("entry", REGISTER)
def test_each_report_has_its_tests(entry: str) -> None:
    for place in REGISTER[entry]:
        assert holds(place, "tests"), place


def test_the_register_has_every_report() -> None:
    assert [entry.partition(":")[0] for entry in REGISTER] == [f"P{number:02}" for number in NUMBERS]
