"""Which tests carry out what the reports of such systems ask for: one entry per report, by the numbers of the list.

Reports are about queues, flows and cron jobs (P25 to P39), admission, quotas and evictions (P41 to P54), caches and
binds (P55 to P60), topology (P62), explanations and rights (P64, P67), peers (P68 to P74) and inputs that stop things
(C1 to C6, and what is said beside them). Latencies of admission (P38) are measured by ``benchmarks.admission``; the
audit of rights (P67) and every situation that is explained (P64) are carried out by the end-to-end suites.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.controllers.registers import holds

ROOT = Path(__file__).parents[3]
PAINS = "tests.scheduler.pains"
QUOTAS = f"{PAINS}.test_quotas_and_evictions"
UNEXPECTED = f"{PAINS}.test_the_unexpected"
SET_ASIDE = f"{UNEXPECTED}.test_one_bad_queue_is_set_aside_and_the_others_are_scheduled"
CONVERGENCE = "tests.scheduler.plugins.test_convergence"
RUNNING = "tests.scheduler.shell.test_running"
LOST = "tests.scheduler.shell.test_lost_events"

REGISTER: dict[str, tuple[str, ...]] = {
    "P25: a failed step leaves its flow running for ever": (
        "tests.controllers.jobflow.test_progress.test_a_flow_of_two_whose_first_job_is",
        "tests.controllers.jobflow.test_progress.test_no_finished_last_job_leaves_a_flow_running",
        "tests.controllers.jobflow.test_progress.test_every_phase_of_a_job_has_a_meaning",
    ),
    "P28: a restart of the controller starts every job at once": (
        "tests.controllers.cronjob.test_passes.CASES/weekly, three days ago, controller comes back",
        "tests.controllers.cronjob.test_passes.test_every_missed_start_of_a_night_is_one_start_in_the_morning",
    ),
    "P29: a closing queue ends in a state that cannot be left": (
        "tests.controllers.queue.test_states.test_no_state_is_a_trap",
        "tests.controllers.queue.test_scenarios.test_a_closing_queue_closes_when_its_last_group_goes",
    ),
    "P30: the quota of a closing queue cannot be edited": (
        "tests.webhooks.test_queues.test_p30_a_queue_on_its_way_to_closed_can_be_edited",
    ),
    "P31: one queue that guarantees too much stops the cluster": (
        "tests.webhooks.test_queues.test_p31_children_may_not_be_guaranteed_more_than_their_parent",
        "tests.scheduler.plugins.test_capacity.BROKEN/P31: children are guaranteed more than their parent",
        f"{UNEXPECTED}.STOPPING/P31: children are guaranteed more than their parent",
        SET_ASIDE,
    ),
    "P33: a child with more than the cluster stops the session": (
        "tests.scheduler.plugins.test_capacity.BROKEN/P33: a child may have more than the cluster",
        f"{UNEXPECTED}.STOPPING/P33: a child may have more than the cluster",
    ),
    "P34: a second child is refused for the first one's pods": (
        "tests.webhooks.test_queues.test_p34_pods_of_a_first_child_do_not_forbid_a_second_one",
    ),
    "P36: two schedulers create the same queues": (
        f"{RUNNING}.test_missing_queues_are_created_once_by_two_schedulers",
        f"{RUNNING}.test_queue_created_by_somebody_else_meanwhile_is_as_good",
        "tests.controllers.queue.test_scenarios.test_losing_the_race_to_make_them_is_no_error",
    ),
    "P37: writers of queue status get in each other's way": (
        "tests.scheduler.shell.test_coalescing.test_twenty_thousand_changes_in_ten_seconds_cost_one_write_a_second",
        "tests.controllers.queue.test_scenarios.test_defect_4_many_changes_of_a_queue_are_few_passes_one_at_a_time",
    ),
    "P38: webhooks time out in a burst": (
        "tests.webhooks.test_registration.test_p38_pods_of_other_schedulers_are_not_even_sent",
        "tests.webhooks.test_asking.test_a_silent_server_holds_no_review_up",
    ),
    "P39: a legitimate tier name is refused": (
        "tests.webhooks.test_jobs.ACCEPTED/a tier named with a slash",
        "tests.webhooks.test_examples.test_a_published_manifest_is_accepted",
    ),
    "P41: what was borrowed never comes back": (
        f"{QUOTAS}.test_p41_what_was_borrowed_of_a_guarantee_comes_back_to_a_full_cluster",
        "tests.scheduler.plugins.test_overcommit_and_quotas."
        "test_p41_a_job_within_what_its_queue_is_guaranteed_enters_a_full_cluster",
    ),
    "P42: promises are one pot for all priorities": (
        f"{QUOTAS}.test_p42_fifty_jobs_that_wait_for_one_node_do_not_stop_an_important_one_for_another",
        "tests.scheduler.plugins.test_overcommit_and_quotas."
        "test_p42_promises_to_lower_priorities_that_wait_in_vain_do_not_keep_a_job_out",
    ),
    "P44: an evicted pod comes back first": (
        f"{CONVERGENCE}.test_p44_an_evicted_pod_does_not_take_back_the_room_made_for_another",
    ),
    "P45: two queues reclaim from each other for ever": (
        f"{CONVERGENCE}.test_p45_two_queues_do_not_reclaim_from_each_other_for_ever",
        "tests.scheduler.test_convergence.test_evictions_come_to_an_end_when",
    ),
    "P46: a queue that deserves only GPUs never reclaims": (
        f"{QUOTAS}.test_p46_a_queue_that_deserves_gpus_alone_reclaims_for_a_pod_that_asks_for_more",
    ),
    "P48: pods are evicted for one that does not fit": (
        f"{QUOTAS}.test_p48_nobody_goes_for_a_pod_that_its_queue_would_not_let_in_all_the_same",
        "tests.scheduler.actions.test_every_plugin.test_nobody_is_evicted_but_for_somebody_who_gets_the_place",
    ),
    "P49: one pod of each of ten gangs is taken": (
        f"{QUOTAS}.test_p49_ten_pods_cost_one_training_and_not_ten",
        f"{QUOTAS}.test_p49_pods_to_spare_go_before_any_training_is_broken",
    ),
    "P50: pods that are bound but do not start cannot be preempted": (
        f"{QUOTAS}.test_p50_pods_that_hold_a_node_but_do_not_start_may_be_preempted",
    ),
    "P52: a job without tasks ends the turn of its queue": (
        f"{QUOTAS}.test_p52_a_job_without_tasks_does_not_end_the_turn_of_its_queue",
    ),
    "P53: the order of tiers decides who is protected": (
        f"{QUOTAS}.test_p53_the_order_of_tiers_does_not_decide_who_is_protected",
    ),
    "P54: plugins are not undone when one fails": (
        f"{QUOTAS}.test_p54_a_plugin_that_fails_half_way_leaves_the_accounts_of_the_others_as_they_were",
        "tests.scheduler.actions.test_every_plugin.test_asking_changes_nothing_and_what_is_undone_has_never_been",
    ),
    "P55: events in another order end the scheduler": (
        f"{UNEXPECTED}.test_p55_things_may_arrive_in_any_order_and_a_node_may_never_come",
        "tests.scheduler.core.test_mirror.test_any_order_of_events_gives_the_same_mirror",
        f"{RUNNING}.test_objects_may_arrive_in_any_order",
        f"{LOST}.test_every_order_of_arrivals_ends_alike",
    ),
    "P58: a failed bind is forgotten, or its room given away": (
        f"{RUNNING}.test_fourth_of_ten_binds_refused_costs_only_that_pod_until_it_is_bound_again",
        f"{RUNNING}.test_slow_api_neither_doubles_binds_nor_gives_capacity_away_twice",
    ),
    "P59: series of jobs stay for ever": (
        "tests.scheduler.shell.test_metrics.test_series_count_returns_to_its_baseline_after_many_jobs_and_queues",
        "tests.scheduler.shell.test_metrics.test_job_series_tell_of_its_placement_and_end_with_it",
    ),
    "P60: a node that lost GPUs gets more pods": (
        f"{UNEXPECTED}.test_p60_a_node_that_lost_gpus_gets_no_pods_until_it_has_some_to_spare",
    ),
    "P62: a soft gang is split over racks": (
        f"{UNEXPECTED}.test_p62_a_soft_gang_is_not_split_over_two_racks_when_one_takes_it_all",
    ),
    "P64: the cause is hidden by its consequence": (
        "tests.cli.test_explaining.test_situations_are_explained",
        *(
            f"tests.cli.situations.SITUATIONS/{situation}"
            for situation in (
                "the queue may not hold so much",
                "the queue above may not hold so much",
                "the cluster is full",
                "nodes are tainted",
                "no HyperNode is large enough",
                "the queue does not exist",
                "the queue is closed",
                "there is room for a part of the gang",
            )
        ),
        "e2e.test_explain.test_the_cause_is_told",
    ),
    "P67: secrets of the whole cluster may be listed": (
        "tests.chart.test_secrets.test_nobody_may_list_or_watch_secrets",
        "tests.chart.test_auditing.test_a_verb_that_was_never_used_is_named",
        "tests.chart.test_auditing.test_a_request_that_roles_forbade_is_named_once",
    ),
    "P68: preemption without end in a tree of queues": (
        f"{CONVERGENCE}.test_p68_reclaim_between_queues_of_a_tree_comes_to_an_end",
        "tests.scheduler.test_convergence.POLICIES/reclaim in a tree of queues",
    ),
    "P69: a gang whose binds are refused starves others": (
        f"{RUNNING}.test_gang_whose_binds_are_always_refused_does_not_starve_another",
    ),
    "P70: a node that blips rewrites the recorded placement": (
        f"{UNEXPECTED}.test_p70_a_node_that_blips_leaves_the_record_of_where_a_gang_is",
    ),
    "P71: a gang that times out is started again without end": (
        "tests.controllers.job.test_incarnations."
        "test_a_gang_that_never_gets_room_is_started_again_a_bounded_number_of_times",
    ),
    "P72: a lost event parks a gang for ever": (
        f"{LOST}.test_every_gang_is_placed_once_what_a_lost_event_told_is_listed",
        f"{LOST}.test_every_gang_is_placed_though_wake_ups_are_lost",
        f"{LOST}.test_whichever_arrival_is_lost_one_listing_makes_up_for_it",
    ),
    "P73: pods of the incarnation before count": (
        f"{UNEXPECTED}.test_p73_pods_of_the_incarnation_before_that_still_end_do_not_count_as_members",
        "tests.controllers.job.test_incarnations."
        "test_pods_of_the_incarnation_before_count_as_ending_and_as_nothing_else",
    ),
    "P74: the search for victims is exponential": (
        f"{UNEXPECTED}.test_p74_the_search_for_victims_is_bounded_when_a_job_can_never_fit",
    ),
    "C1: a queue whose parent does not exist": (
        f"{UNEXPECTED}.STOPPING/C1: a parent that does not exist",
        SET_ASIDE,
        "tests.scheduler.plugins.test_capacity.test_a_broken_queue_stops_nobody_else",
    ),
    "C2: queues that are each other's parents": (
        f"{UNEXPECTED}.STOPPING/C2: queues that are each other's parents",
        f"{PAINS}.test_malformed_objects.CASES/queues that are each other's parents",
    ),
    "C4: a job in a queue that has children": (
        f"{UNEXPECTED}.STOPPING/C4: a job in a queue that has children",
        "tests.scheduler.plugins.test_capacity.BROKEN/C4: a job in a queue that has children",
    ),
    "C6: fewer weights than names in a hierarchy": (
        f"{UNEXPECTED}.STOPPING/C6: more names than weights",
        f"{UNEXPECTED}.STOPPING/C6: weights that are no numbers",
        "tests.scheduler.plugins.test_drf.PLACES/what is no number counts as 1 and is reported",
    ),
    "J: a slip in one plugin's accounts ends the process": (
        f"{QUOTAS}.test_an_accounting_slip_while_something_is_undone_ends_nothing_and_is_named_once",
    ),
    "J: which of equal pods is evicted is a matter of chance": (
        f"{UNEXPECTED}.test_of_equal_pods_the_same_is_evicted_in_whatever_order_they_arrived",
    ),
    "J: the message of a group quotes that a task was skipped": (
        f"{UNEXPECTED}.test_the_message_of_a_group_quotes_the_first_real_reason",
    ),
    "J: any other object that makes no sense": (
        f"{PAINS}.test_malformed_objects.test_a_healthy_job_is_placed_among_damaged_objects_of_every_kind",
        f"{PAINS}.test_malformed_objects.test_beside_a_healthy_job_there_may_be",
        f"{PAINS}.test_malformed_objects.test_annotations_may_say_anything",
    ),
}
NUMBERS = [25, 28, 29, 30, 31, 33, 34, 36, 37, 38, 39, 41, 42, *range(44, 47), *range(48, 51), *range(52, 56)]
NUMBERS += [*range(58, 61), 62, 64, 67, *range(68, 75)]


@pytest.mark.parametrize("entry", REGISTER)
def test_each_report_has_its_tests(entry: str) -> None:
    assert REGISTER[entry]
    for place in REGISTER[entry]:
        if place.startswith("e2e."):
            assert is_defined(place), place
        else:
            assert holds(place.removeprefix("tests."), "tests"), place


def is_defined(place: str) -> bool:
    """Whether an end-to-end test is there; its module can be imported by its own suite alone."""
    module, _, name = place.rpartition(".")
    source = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return name.startswith("test_") and name in {function.name for function in functions}


def test_the_register_has_every_report() -> None:
    numbers = [entry.partition(":")[0] for entry in REGISTER]
    assert [one for one in numbers if one[0] == "P"] == [f"P{number}" for number in NUMBERS]
    assert [one for one in numbers if one[0] == "C"] == ["C1", "C2", "C4", "C6"]
