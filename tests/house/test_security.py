"""Each sentence of what holds in SECURITY.md has tests, and each test named here is there."""

import ast
import re

import pytest

from tests.house.sources import CHECKOUT

DOCUMENT = "SECURITY.md"
# Sentence → the tests without which it would be a promise only.
HELD = {
    "handlers-only": (
        "tests/worker/test_preparing.py::test_raw_commands_run_only_where_that_is_allowed",
        "tests/worker/test_preparing.py::test_callables_run_only_from_modules_on_the_list",
        "tests/worker/test_permits.py::test_raw_commands_being_allowed_does_not_open_a_handler",
    ),
    "callable-origin": (
        "tests/runner/test_origins.py::test_what_it_only_imports_cannot",
        "tests/runner/test_runner_chunks.py::test_what_is_called_again_and_again_is_judged_as_for_a_single_call",
    ),
    "task-cwd": (
        "tests/worker/test_permits.py::test_a_task_starts_in_its_own_folder_unless_another_is_allowed",
        "tests/runner/test_entering.py::test_not_through_a_link_that_leads_out_of_it",
        "tests/runner/test_entering.py::test_a_link_that_is_moved_while_it_starts_leads_nowhere_else",
    ),
    "task-env": (
        "tests/worker/test_permits.py::test_a_task_sets_no_variable_unless_it_is_allowed_by_its_whole_name",
        "tests/worker/test_permits.py::test_the_handlers_own_directory_and_variables_always_count",
        "tests/worker/test_permits.py::test_no_variable_reaches_a_handler_but_those_that_are_allowed",
        "tests/worker/test_preparing.py::test_its_place_in_a_trace_replaces_whatever_else_is_said",
    ),
    "secrets-given": (
        "tests/worker/test_secrets.py::test_only_the_handler_that_names_it_gets_it_and_a_task_cannot_replace_it",
        "tests/worker/test_secrets.py::test_what_keeps_it_from_being_given_is_named_with_its_place_and_fix",
        "tests/worker/test_secrets.py::test_a_file_of_another_user_is_not_believed",
        "tests/worker/test_redacting.py::test_a_secret_that_is_gone_when_the_task_comes_leaves_it_to_another_worker",
    ),
    "secrets-masked": (
        "tests/e2e/test_redaction.py::test_a_planted_secret_appears_nowhere_on_the_share",
        "tests/rules/test_redaction.py::test_a_secret_is_masked_as_whatever_encoding_writes_it",
        "tests/rules/test_redaction.py::test_any_cut_into_pieces_gives_the_same",
        "tests/worker/test_redacting.py::test_the_two_ends_of_a_gap_show_no_half_of_a_secret",
    ),
    "task-stdin": (
        "tests/worker/test_permits.py::test_a_task_says_nothing_on_standard_input_unless_that_is_allowed",
        "tests/worker/test_refusals.py::test_before_anything_began",
    ),
    "task-words": (
        "tests/worker/test_handler.py::test_no_word_begins_with_a_dash_but_by_the_handlers_own_will",
        "tests/worker/test_handler.py::test_what_is_filled_in_is_never_filled_again",
        "tests/worker/test_handler.py::test_a_word_that_some_program_takes_for_more_than_an_operand_is_refused_there",
        "tests/worker/test_handler.py::test_a_value_that_some_program_runs_wherever_it_stands_is_refused_there",
        "tests/worker/test_handler.py::test_a_field_in_a_line_that_an_interpreter_runs_is_refused_before_any_task_comes",
    ),
    "task-refused": (
        "tests/worker/test_permits.py::test_a_refusal_says_which_line_to_add_where",
        "tests/worker/test_refusals.py::test_before_anything_began",
    ),
    "clean-environment": (
        "tests/worker/test_preparing.py::test_only_what_is_needed_of_the_workers_environment_is_passed_on",
        "tests/e2e/test_secrets.py::test_no_task_finds_what_is_only_in_the_environment_of_a_node",
    ),
    "no-survivors": (
        "tests/runner/test_runner_limits.py::test_what_a_finished_command_leaves_is_killed",
        "tests/runner/test_runner_death.py::test_a_killed_worker_leaves_nothing",
        "tests/e2e/test_deaths.py::test_a_killed_worker_leaves_nothing_and_its_task_runs_elsewhere",
    ),
    "silent-supervisor": (
        "tests/runner/test_runner_death.py::test_a_task_that_stops_its_supervisor_is_killed_and_its_slot_is_free_again",
    ),
    "bounded": (
        "tests/e2e/test_endings.py::test_memory_above_the_cap_is_oom_killed",
        "tests/runner/test_runner.py::test_beyond_the_cap_output_is_counted_and_dropped",
        "tests/runner/test_runner_calls.py::test_what_a_function_writes_there_without_an_end_fills_no_memory",
    ),
    "no-link-followed": (
        "tests/system/test_links.py::test_the_verbs_of_the_port_are_those_that_are_tried",
        "tests/system/test_links.py::test_nothing_outside_is_read_made_changed_or_removed",
        "tests/system/test_links.py::test_a_link_that_comes_and_goes_is_never_followed",
        "tests/e2e/test_links.py::test_a_member_with_links_reaches_nothing_outside",
    ),
    "no-hard-link-written": ("tests/system/test_links.py::test_a_hard_link_to_a_file_elsewhere_is_not_written",),
    "clearing-stays-inside": (
        "tests/master/test_links.py::test_an_old_link_in_tmp_is_removed_itself",
        "tests/master/test_links.py::test_clearing_removes_a_link_and_says_that_it_is_gone",
        "tests/e2e/test_links.py::test_an_old_link_costs_nobody_what_lies_at_its_end",
    ),
    "links-are-told": (
        "tests/master/test_links.py::test_status_names_it_and_the_fix",
        "tests/master/test_links.py::test_what_is_not_needed_for_it_goes_on",
        "tests/master/test_links.py::test_nobody_plans_as_if_it_were_empty",
        "tests/master/test_links.py::test_without_one_that_a_leader_needs_nobody_leads_and_the_first_advice_is_its_fix",
    ),
    "drops-are-judged": (
        "tests/master/test_damaged.py::test_what_is_no_file_fails_as_no_task_and_is_kept",
        "tests/system/test_filesystem_contract.py::test_reading_what_is_no_file_says_what_it_is",
        "tests/rules/test_admission.py::test_what_can_never_become_a_task_is_rejected_by_its_looks",
    ),
    "bounded-reads": (
        "tests/master/test_huge_batches.py::test_a_gibibyte_that_is_one_hole_costs_a_few_mebibytes",
        "tests/system/test_whole.py::test_a_file_larger_than_memory_is_read_in_part_and_is_damaged",
        "tests/master/test_damaged.py::test_the_highest_numbers_that_a_name_can_hold_stop_no_node",
        "tests/master/test_damaged.py::test_no_number_in_a_reason_stops_a_leader",
        "tests/master/test_leadership.py::test_a_token_after_which_no_other_has_a_name_is_none",
    ),
    "fencing": ("tests/worker/test_worker.py::test_a_worker_that_was_reaped_kills_and_leaves",),
    "results-are-written": (
        "tests/store/test_records.py::test_a_result_is_written_past_what_stands_in_its_place",
        "tests/store/test_records.py::test_a_pipe_that_somebody_reads_gets_nothing",
        "tests/master/test_closed.py::test_a_directory_under_the_name_that_an_end_gets_holds_nothing_up",
    ),
    "group-shares": (
        "tests/system/test_sharing.py::test_a_group_may_use_every_directory_and_read_every_file",
        "tests/cli/test_init.py::test_a_group_is_given_all_of_it_and_others_no_results",
        "tests/master/test_links.py::test_a_claim_that_the_leader_may_not_move_is_told_whole_with_the_fix",
        "tests/master/test_damaged.py::test_a_door_that_only_its_owner_may_empty_is_shut_all_the_same",
        "tests/master/test_damaged.py::test_a_directory_that_only_its_owner_may_list_stops_nothing_else",
        "tests/master/test_damaged.py::test_what_only_its_owner_may_list_of_a_dead_node_stops_nothing_else",
        "tests/master/test_closed.py::test_it_stops_no_node_and_no_reader",
        "tests/worker/test_claims.py::test_what_is_no_file_is_set_aside_and_is_no_attempt",
        "tests/worker/test_claims.py::test_the_leader_that_reaps_sets_them_aside_too",
    ),
    "web-let-in": (
        "tests/web/test_guard.py::test_cve_2023_48022_without_the_cookie_nothing_is_answered",
        "tests/web/test_guard.py::test_a_token_lets_in_once_and_leaves_the_url",
        "tests/web/test_guard.py::test_a_cookie_of_another_path_or_server_is_refused",
    ),
    "web-asked-from-here": (
        "tests/web/test_guard.py::test_cve_2022_30034_a_host_is_compared_as_a_whole_before_anything_is_read",
        "tests/web/test_guard.py::test_cve_2022_51020_another_site_cannot_send_a_form",
        "tests/web/test_guard.py::test_cve_2026_27482_only_three_methods_exist",
        "tests/web/test_guard.py::test_tricks_with_paths_are_refused_before_routing",
        "tests/web/test_guard.py::test_without_allow_actions_there_are_no_actions",
    ),
    "web-text": (
        "tests/web/test_guard.py::test_hostile_names_and_logs_are_text",
        "tests/web/test_guard.py::test_cve_2026_23528_no_error_page_repeats_markup",
        "tests/cli/test_terminal.py::test_a_log_on_a_terminal_keeps_its_colours_and_nothing_else",
    ),
    "web-bounded": (
        "tests/web/test_serving.py::test_a_socket_is_open_to_this_user_alone_and_is_taken_away",
        "tests/web/test_serving.py::test_other_addresses_are_refused_unless_said_twice",
        "tests/web/test_serving.py::test_a_client_that_says_nothing_is_left",
        "tests/web/test_guard.py::test_the_size_of_a_request_is_bounded",
    ),
    "results-closed": (
        "tests/system/test_sharing.py::test_what_is_private_is_closed_to_others_with_all_that_is_in_it",
        "tests/cli/test_init.py::test_without_a_group_it_is_said_that_one_user_can_use_it",
    ),
}


def claims() -> list[str]:
    """The names of the sentences, and no sentence without one."""
    text = (CHECKOUT / DOCUMENT).read_text(encoding="utf-8")
    holds = text.partition("\n## What holds\n")[2].partition("\n## ")[0]
    sentences = re.split(r"^- ", holds, flags=re.MULTILINE)[1:]
    names = [re.search(r"\[([a-z-]+)\]\s*(?:\n\n.*)?$", sentence, re.DOTALL) for sentence in sentences]
    assert all(names), [sentence for sentence, name in zip(sentences, names, strict=True) if name is None]
    return [name.group(1) for name in names if name is not None]


def test_each_sentence_has_tests_and_each_entry_a_sentence() -> None:
    found = claims()
    assert len(found) == len(set(found)) > 10
    assert set(found) == set(HELD)
    assert all(HELD.values())


@pytest.mark.parametrize("test", sorted({test for tests in HELD.values() for test in tests}))
def test_each_of_these_tests_is_there(test: str) -> None:
    path, _, name = test.partition("::")
    tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in functions, f"{path} has no {name}: {DOCUMENT} would promise what nothing holds"
