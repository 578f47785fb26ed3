"""Each numbered requirement of spool_layout.md has tests, and each test named here is there."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.house.sources import CHECKOUT

DOCUMENT = "spool_layout.md"
LINES_MAX = 900
# Requirement → the tests that are red where a node breaks it. `tests/sim/laws.py` watches every change of a simulated
# share, so test_every_law_holds stands for those that are a law there.
LAWS = "tests/sim/test_sim.py::test_every_law_holds"
HELD: dict[str, tuple[str, ...]] = {
    "M1": (
        "tests/master/test_calls_per_task.py::test_a_new_leader_lists_each_name_once_and_opens_only_what_has_conditions",
        "tests/master/test_takeover.py::test_the_deadline_of_what_others_admitted_is_known_again",
    ),
    "M2": (
        "tests/master/test_slow_writers.py::test_a_batch_whose_writer_is_there_waits_and_says_so",
        "tests/master/test_slow_writers.py::test_every_line_of_a_slow_writer_becomes_a_task_once",
    ),
    "M3": ("tests/master/test_drops.py::test_only_a_promise_for_its_own_id_spares_a_drop_the_door",),
    "M4": ("tests/cli/test_fsck.py::test_a_spool_in_use_is_only_repaired_by_force",),
    "M5": (
        "tests/protocol/test_codec.py::test_the_deepest_that_is_read_can_be_compared_and_written",
        "tests/protocol/test_codec.py::test_integers_of_more_than_64_bits_are_refused_and_not_made_others",
        "tests/house/test_readers.py::test_more_lists_than_fit_into_a_step_are_not_read",
    ),
    "M6": (
        "tests/rules/test_accounts.py::test_no_sum_is_more_than_an_amount",
        "tests/worker/test_settling.py::test_a_cost_that_is_no_amount_is_unknown_and_told",
    ),
    "M7": (
        "tests/house/test_readers.py::test_a_record_of_an_old_release_is_cut_and_counted",
        "tests/cli/test_verbs.py::test_a_record_of_an_old_release_shows_the_nearest_amount",
    ),
    "M8": (
        "tests/protocol/test_layout_document.py::test_what_must_be_there_is_what_readers_insist_on",
        "tests/worker/test_settling.py::test_a_result_has_every_field",
    ),
    "M9": (
        "tests/protocol/test_codec.py::test_words_of_a_later_release_are_read_as_they_stand",
        "tests/rules/test_audit.py::test_a_status_of_a_later_release_makes_no_task_run_again",
        "tests/protocol/test_requirements.py::test_a_field_that_a_later_release_adds_is_no_error",
    ),
    "M10": ("tests/store/test_beats.py::test_who_has_nothing_new_to_say_renames_the_beat_before",),
    "M11": (
        "tests/protocol/test_codec.py::test_nothing_that_stands_in_a_beat_hides_its_node",
        "tests/protocol/test_codec.py::test_a_beat_is_read_as_far_as_it_can_be",
    ),
    "M12": ("tests/protocol/test_codec.py::test_a_figure_of_no_machine_is_passed_over_and_said",),
    "M13": (
        "tests/e2e/test_control.py::test_cancel_ends_what_runs_and_frees_its_slot",
        "tests/e2e/test_control.py::test_halt_kills_what_runs_and_resume_runs_it_again_uncharged",
        "tests/worker/test_worker.py::test_a_drained_worker_takes_nothing_new_and_leaves_when_it_is_done",
        "tests/master/test_limits.py::test_a_worker_hands_back_at_a_limit_that_closed_behind_the_leader_and_charges_nothing",
        "tests/master/test_limits.py::test_a_task_of_a_closed_limit_that_stands_ready_is_not_even_claimed",
    ),
    "M14": (
        "tests/master/test_requests.py::test_a_retry_that_cannot_be_removed_is_carried_out_once",
        "tests/master/test_requests.py::test_on_a_share_a_retry_is_carried_out_once_however_quickly_the_task_fails_again",
    ),
    "M15": ("tests/store/test_claim_strategies.py::test_a_strategy_that_is_not_known_is_refused",),
    "M16": (
        "tests/client/view/test_view.py::test_a_snapshot_of_an_earlier_epoch_than_one_that_was_seen_is_passed_over",
    ),
    "M17": (
        "tests/rules/test_gates.py::test_a_task_passes_exactly_when_nothing_stands_in_its_way",
        "tests/rules/test_backlog.py::test_a_plan_keeps_every_limit_and_is_done_when_it_is_applied",
        LAWS,
    ),
    "M18": ("tests/sim/test_sim.py::test_the_witness_sees_what_no_node_may_do", LAWS),
    "M19": (
        "tests/foreign/test_foreign.py::test_taken_for_dead_it_throws_away_what_it_did_and_begins_again",
        "tests/e2e/test_deaths.py::test_a_worker_that_was_stopped_past_its_reaping_is_fenced_out",
    ),
    "M20": (
        "tests/protocol/test_requirements.py::test_wherever_two_nodes_could_move_one_token_each_has_a_destination_of_its_own",
        LAWS,
    ),
    "M21": ("tests/worker/test_settling.py::test_the_result_is_out_before_the_task_is_committed", LAWS),
    "M22": (
        "tests/protocol/test_requirements.py::test_nobody_can_ask_for_a_name_without_an_error_where_it_is_absent",
        "tests/sim/test_mount.py::test_negative",
        LAWS,
    ),
    "M23": (
        "tests/master/test_contained.py::test_whatever_file_cannot_be_handled_nodes_live_and_all_other_tasks_end",
        "tests/master/test_strangers.py::test_no_value_in_any_field_ends_a_node",
    ),
    "M24": (
        "tests/sim/test_steps.py::test_no_kind_of_thing_keeps_a_beat_waiting",
        "tests/sim/test_steps.py::test_no_mixture_keeps_a_beat_waiting",
    ),
    "M25": (
        "tests/store/test_store.py::test_publishing_that_fails_leaves_nothing_behind",
        "tests/store/test_store.py::test_what_is_published_is_on_disk_first_where_that_is_asked_for",
    ),
    "M26": (
        "tests/system/test_filesystem_contract.py::test_nobody_has_a_file_open_that_was_written_whole",
        "tests/system/test_filesystem_contract.py::test_nothing_stays_open",
    ),
    "M27": (
        "tests/system/test_filesystem_contract.py::test_an_error_of_fsync_or_close_removes_the_file",
        "tests/system/test_filesystem_contract.py::test_a_write_cut_short_leaves_no_file",
    ),
    "M28": (
        "tests/store/test_store.py::test_what_is_published_is_on_disk_first_where_that_is_asked_for",
        "tests/worker/test_settling.py::test_a_result_that_cannot_be_written_is_tried_again_before_anything_else",
        LAWS,
    ),
    "M29": (
        "tests/store/test_survey.py::test_what_has_moved_on_is_seen_without_content",
        "tests/client/view/test_view.py::test_a_file_that_moved_on_before_it_was_read_is_wanted_again",
    ),
    "M30": (
        "tests/system/test_filesystem_contract.py::test_reading_what_is_no_file_says_what_it_is",
        "tests/system/test_filesystem_contract.py::test_a_limit_bounds_what_is_read",
    ),
    "M31": ("tests/store/test_store.py::test_a_writer_whose_tmp_is_gone_is_shut_out",),
    "M32": (
        "tests/worker/test_worker.py::test_a_worker_that_was_reaped_kills_and_leaves",
        "tests/master/test_leadership.py::test_a_leader_taken_for_dead_is_shut_out",
        "tests/foreign/test_foreign.py::test_taken_for_dead_it_throws_away_what_it_did_and_begins_again",
    ),
    "M33": (
        "tests/system/test_links.py::test_nothing_outside_is_read_made_changed_or_removed",
        "tests/system/test_links.py::test_a_link_that_comes_and_goes_is_never_followed",
    ),
    "M34": (
        "tests/system/test_links.py::test_a_hard_link_to_a_file_elsewhere_is_not_written",
        "tests/store/test_records.py::test_a_pipe_that_somebody_reads_gets_nothing",
    ),
    "M35": ("tests/store/test_records.py::test_a_result_is_written_past_what_stands_in_its_place",),
    "M36": ("tests/worker/test_claims.py::test_what_is_no_file_is_set_aside_and_is_no_attempt",),
    "M37": ("tests/worker/test_claims.py::test_the_leader_that_reaps_sets_them_aside_too",),
    "M38": ("tests/system/test_sharing.py::test_a_group_may_use_every_directory_and_read_every_file",),
    "M39": ("tests/system/test_sharing.py::test_what_is_private_is_closed_to_others_with_all_that_is_in_it",),
    "M40": (
        "tests/master/test_closed.py::test_it_stops_no_node_and_no_reader",
        "tests/master/test_closed.py::test_a_worker_passes_over_a_lane_that_it_may_not_list_and_says_so",
    ),
    "M41": ("tests/master/test_requirements.py::test_the_reason_is_there_before_the_drop_is_in_rejected",),
    "M42": (
        "tests/master/test_slow_writers.py::test_a_copied_drop_is_made_durable_after_it_was_read_and_before_it_is_admitted",
        "tests/master/test_slow_writers.py::test_what_was_submitted_costs_nothing_more",
    ),
    "M43": (
        "tests/master/test_drops.py::test_only_a_promise_for_its_own_id_spares_a_drop_the_door",
        "tests/master/test_requirements.py::test_a_batch_goes_through_the_door_before_any_line_of_it_is_a_task",
    ),
    "M44": ("tests/master/test_in_the_door.py::test_what_is_no_file_goes_and_nothing_waits_for_it",),
    "M45": (
        "tests/rules/test_batch.py::test_all_lines_or_none",
        "tests/rules/test_batch.py::test_an_id_stands_in_one_line_only_whatever_its_case",
        "tests/rules/test_batch.py::test_tasks_that_wait_for_each_other_are_rejected_with_their_names",
    ),
    "M46": (
        "tests/worker/test_claiming.py::test_lanes_that_it_cannot_serve_are_not_even_listed",
        "tests/worker/test_claiming.py::test_the_most_urgent_first_over_all_lanes_and_the_older_of_equals",
    ),
    "M47": (
        "tests/worker/test_claiming.py::test_a_claim_whose_reply_was_lost_is_looked_for_in_its_own_directory_alone",
    ),
    "M48": (
        "tests/worker/test_claiming.py::test_who_loses_a_race_takes_another_task",
        "tests/worker/test_claiming.py::test_a_claim_whose_reply_was_lost_is_looked_for_in_its_own_directory_alone",
    ),
    "M49": (
        "tests/worker/test_resuming.py::test_a_claim_that_the_network_carries_out_late_begins_under_a_name_that_nobody_takes_late",
        "tests/worker/test_resuming.py::test_without_a_claim_it_is_killed",
    ),
    "M50": (
        "tests/worker/test_resuming.py::test_without_a_claim_it_is_killed",
        "tests/worker/test_preparation.py::test_it_is_dropped_when_its_claim_was_taken_away",
    ),
    "M51": (
        "tests/worker/test_claims.py::test_a_token_that_anybody_makes_for_an_attempt_with_a_record_overwrites_nothing",
        "tests/master/test_damaged.py::test_a_claim_restored_from_a_copy_neither_runs_nor_harms_what_was_committed",
    ),
    "M52": ("tests/master/test_twins.py::test_leadership_is_exclusive_though_the_token_names_both",),
    "M53": (
        "tests/master/test_leadership.py::test_a_leader_whose_renewal_is_unverified_plans_nothing",
        "tests/master/test_scale.py::test_a_leader_that_lost_its_token_while_it_read_plans_nothing",
    ),
    "M54": (
        "tests/master/test_requirements.py::test_a_new_leader_makes_its_door_shuts_the_others_and_lists_waiting_last",
        "tests/master/test_takeover.py::test_a_new_leader_goes_on_from_any_state",
    ),
    "M55": ("tests/master/test_takeover.py::test_a_move_by_the_leader_before_is_seen_once_its_lease_is_over",),
    "M56": (
        "tests/rules/test_liveness.py::test_an_observer_that_was_asleep_has_proved_nothing",
        "tests/rules/test_liveness.py::test_a_look_that_failed_proves_nothing",
    ),
    "M57": (
        "tests/rules/test_liveness.py::test_after_a_silence_of_the_share_a_node_has_as_long_again_to_come_back",
        "tests/master/test_reaping.py::test_after_a_silence_of_the_share_the_leader_waits_as_long_again_and_says_for_whom",
    ),
    "M58": (
        "tests/runner/test_runner_death.py::test_a_worker_that_hangs_loses_its_lease_and_its_jobs",
        "tests/worker/test_worker.py::test_a_suspended_worker_freezes_its_tasks_when_it_wakes",
        LAWS,
    ),
    "M59": (
        "tests/worker/test_preparation.py::test_it_never_starts_under_another_lease_than_that_of_its_claim",
        "tests/runner/test_runner_death.py::test_a_job_started_after_the_lease_ran_out_is_fenced",
    ),
    "M60": (
        "tests/worker/test_resuming.py::test_a_leader_that_lists_the_new_name_looks_at_the_beats_again_before_it_takes_it",
    ),
    "M61": (
        "tests/master/test_reaping.py::test_a_claim_that_comes_late_is_taken_back_too",
        "tests/master/test_reaping.py::test_reaping_that_fails_is_gone_on_with",
    ),
    "M62": ("tests/worker/test_worker.py::test_an_unmounted_share_is_not_taken_for_a_reaping",),
    "M63": (
        "tests/store/test_locked.py::test_every_move_of_a_token_is_made_under_the_lock",
        "tests/store/test_locked.py::test_doors_are_made_and_shut_under_the_lock",
        "tests/store/test_locked.py::test_what_only_its_writer_moves_needs_no_lock",
    ),
    "M64": ("tests/system/test_locks.py::test_a_lock_file_that_is_missing_is_never_made",),
    "M65": (
        "tests/store/test_locked.py::test_a_source_that_is_not_listed_is_lost_whatever_the_server_would_say",
        "tests/store/test_locked.py::test_nothing_comes_into_a_door_that_was_removed_or_onto_a_name_in_it",
        "tests/store/test_locked.py::test_a_door_with_something_in_it_is_not_shut_whatever_the_server_would_say",
    ),
    "M66": ("tests/store/test_locked.py::test_whoever_leads_no_more_makes_no_last_move",),
    "M67": (
        "tests/system/test_locks.py::test_the_wait_has_an_end_and_is_an_error_that_is_tried_again",
        "tests/store/test_locked.py::test_who_waited_in_vain_asks_only_once_until_he_gets_it",
    ),
    "M68": ("tests/store/test_locked.py::test_a_holder_that_slept_does_not_count_on_the_lock_any_more",),
    "M69": (
        "tests/master/test_requirements.py::test_a_leader_that_the_server_has_not_told_its_time_judges_no_deadline",
        "tests/worker/test_deadlines.py::test_a_worker_that_the_server_has_not_told_its_time_ends_nothing_by_its_own_date",
    ),
    "M70": ("tests/store/test_store.py::test_a_newer_format_is_refused_and_settings_may_be_missing",),
    "M71": ("tests/protocol/test_requirements.py::test_a_field_that_a_later_release_adds_is_no_error",),
    "M72": (
        "tests/protocol/test_vectors.py::test_every_name_is_read",
        "tests/protocol/test_vectors.py::test_every_file_is_read",
    ),
    "M73": (
        "tests/sim/test_unfit.py::test_where_a_server_forgets_what_it_answered_for_nothing_is_lost_and_nothing_doubled",
        "tests/master/test_damaged.py::test_a_commit_that_the_server_forgot_with_its_power_is_made_up_for",
        "tests/master/test_undone.py::test_no_child_fails_for_a_failure_that_the_server_forgot",
    ),
}


@cache
def _prose() -> str:
    """The document without its examples, what it says of itself, and its headings."""
    text = (CHECKOUT / DOCUMENT).read_text(encoding="utf-8").partition("\n## Terms\n")[2]
    return re.sub(r"^#.*$", "", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), flags=re.MULTILINE)


def _functions(path: str) -> set[str]:
    tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_it_can_be_read_at_a_sitting() -> None:
    assert (CHECKOUT / DOCUMENT).read_text(encoding="utf-8").count("\n") <= LINES_MAX


def test_each_requirement_has_one_number_and_each_number_one_requirement() -> None:
    """From a number to the end of its sentence there is a `must`, and there is none elsewhere."""
    parts = re.split(r"\*\*\[(M\d+)\]\*\*", _prose())
    numbers = parts[1::2]
    assert len(numbers) == len(set(numbers)) > 60
    assert "must" not in parts[0]
    for number, said in zip(numbers, parts[2::2], strict=True):
        first, *later = re.split(r"(?<=[.:;])\s+(?=[A-Z`*\[])|\n\n|\n- | \| |\n\|", said.strip())
        assert re.search(r"\bmust\b", first), f"{number} requires nothing: {first}"
        loose = [one for one in later if re.search(r"\bmust\b", one)]
        assert not loose, f"{DOCUMENT} requires without a number: {loose[0]}"


def test_it_is_said_of_each_requirement_whom_it_binds() -> None:
    table = (CHECKOUT / "docs/spec/index.md").read_text(encoding="utf-8").partition("\n| bound by them |")[2]
    spans = re.findall(r"\bM(\d+)(?:–M(\d+))?", table.partition("\n\n")[0])
    bound = {f"M{number}" for first, last in spans for number in range(int(first), int(last or first) + 1)}
    assert bound == set(HELD)


def test_each_requirement_has_tests_and_each_entry_a_requirement() -> None:
    assert set(re.findall(r"\*\*\[(M\d+)\]\*\*", _prose())) == set(HELD)
    assert all(HELD.values())


@pytest.mark.parametrize("test", sorted({test for tests in HELD.values() for test in tests}))
def test_each_of_these_tests_is_there(test: str) -> None:
    path, _, name = test.partition("::")
    assert name in _functions(path), f"{path} has no {name}: {DOCUMENT} would require what nothing holds"
