"""Goal: every law that a tree can break is found, with the paths and the fix, and a sound tree is clean.

Method: one small survey a test, with exactly one thing wrong; what is found is compared as a whole.
"""

from __future__ import annotations

from dataclasses import replace

from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, LeaseName, TaskName
from spoold.rules.tree.audit import (
    SHOWN,
    Content,
    DropLease,
    Fail,
    Finding,
    MakeDirectory,
    MakeLease,
    Record,
    Relane,
    Rerun,
    SetAside,
    Severity,
    Survey,
    Token,
    audit,
    confirmed,
    counts,
    verdict,
)

LEASE = LeaseName(3, 7, "m-1")
SOUND = Survey(leases=(LEASE,))
LANE = "type=review"
NAME = TaskName(5000, "0123456789-1", "t")
CONTENT = Content("t", LANE, False, 5000)
E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


def living(state: State, name: TaskName = NAME, branch: str = LANE, content: Content | None = CONTENT) -> Token:
    """A task file in one of the directories through which tasks flow."""
    below = f"{branch}/" if branch else ""
    return Token(state, f"{state}/{below}{name.encode()}", name, branch, None, content)


def ended(state: State, name: EndedName, content: Content | None = CONTENT) -> Token:
    """A task file in completed/ or failed/."""
    return Token(state, f"{state}/{name.encode()}", name, "", state, content)


def record(name: EndedName, status: str = "success", **fields: object) -> Record:
    """The result that belongs to it."""
    sound = Record(f"results/{name.encode()}", name, True, name.id, name.attempt, status)
    return replace(sound, **fields)  # type: ignore[arg-type]


def found(survey: Survey) -> list[tuple[Severity, str, tuple[str, ...]]]:
    """What was found, without words."""
    return [(f.severity, f.law, f.paths) for f in audit(survey)]


def only(survey: Survey) -> Finding:
    """The only thing that was found."""
    (finding,) = audit(survey)
    return finding


def test_a_sound_tree_is_clean() -> None:
    done, gone = EndedName("d", 2, "w-1"), EndedName("g", 1, "w-1")
    survey = replace(
        SOUND,
        tokens=(
            living(State.WAITING),
            living(State.READY, replace(NAME, id="r", conditional=True), content=Content("r", LANE, True)),
            living(State.CLAIMED, replace(NAME, id="c"), "w-1", Content(None, LANE)),
            living(State.RETURNED, replace(NAME, id="b"), "", Content("b", LANE)),
            living(State.WAITING, replace(NAME, id="moved"), content=None),
            ended(State.COMPLETED, done, Content("d", LANE)),
            Token(State.ARCHIVE, "archive/0f/g.1.w-1.failed.json", gone, "", State.FAILED),
        ),
        results=(
            record(EndedName("d", 1, "w-1"), "failure", read=False),
            record(done),
            Record("archive/0f/g.1.w-1.result.json", gone),
        ),
        nodes=frozenset({"w-1", "m-1"}),
        workers=("w-1",),
        writers=("w-1", "m-1"),
        rejected=("bad.json", "bad.json.reason.json"),
        drops=2,
    )
    assert audit(survey) == []
    assert verdict([]) == "clean"
    once = dict.fromkeys(("ready", "claimed", "returned", "completed", "archive", "rejected"), 1)
    assert counts(survey) == {"pending": 2, "waiting": 2, "failed": 0, **once}


def test_two_tokens_of_one_id_and_the_one_further_along_stays() -> None:
    upper = replace(NAME, id="T", order="0123456780-1")
    claimed = living(State.CLAIMED, replace(NAME, attempt=2), "w-1")
    survey = replace(
        SOUND,
        nodes=frozenset({"w-1"}),
        tokens=(living(State.WAITING, upper, content=Content("T", LANE)), claimed),
    )
    finding = only(survey)
    aside = f"waiting/{LANE}/{upper.encode()}"
    assert (finding.severity, finding.law, finding.paths) == (E, "one-token", (claimed.path, aside))
    assert finding.fix == SetAside(aside, "T", claimed.path)


def test_what_was_committed_outlives_any_twin_and_older_admission_goes_first() -> None:
    name = EndedName("t", 1, "w-1")
    archived = Token(State.ARCHIVE, "archive/0f/t.1.w-1.completed.json", name, "", State.COMPLETED)
    older, younger = living(State.READY), living(State.READY, replace(NAME, order="0123456789-2"))
    failed = ended(State.FAILED, EndedName("t", 9, "w-2"))
    results = (Record("archive/0f/t.1.w-1.result.json", name), record(EndedName("t", 9, "w-2"), "failure"))
    findings = audit(replace(SOUND, tokens=(younger, failed, older, archived), results=results))
    assert {f.fix for f in findings} == {
        SetAside(path, "t", archived.path) for path in (failed.path, older.path, younger.path)
    }
    assert only(replace(SOUND, tokens=(younger, older))).fix == SetAside(younger.path, "t", older.path)


def test_a_token_in_the_wrong_lane_or_with_the_wrong_flag_goes_where_its_content_says() -> None:
    conditional = replace(CONTENT, conditional=True)
    flagged = replace(NAME, conditional=True)
    for token, right in (
        (living(State.WAITING, branch="type=other"), NAME),
        (living(State.READY, content=conditional), flagged),
        (living(State.RETURNED, flagged, ""), NAME),
    ):
        finding = only(replace(SOUND, tokens=(token,)))
        assert (finding.severity, finding.law, finding.paths) == (E, "lane", (token.path,))
        assert finding.fix == Relane(token.path, LANE, right)
    both = only(replace(SOUND, tokens=(living(State.READY, branch="type=other", content=conditional),)))
    assert both.problem == (
        "its lane is type=other, its content asks for type=review; "
        "its content names conditions, its name says otherwise"
    )


def test_a_claimed_token_with_a_wrong_flag_is_left_to_its_worker() -> None:
    token = living(State.CLAIMED, branch="w-1", content=replace(CONTENT, conditional=True))
    finding = only(replace(SOUND, tokens=(token,), nodes=frozenset({"w-1"})))
    assert (finding.severity, finding.law, finding.fix) == (W, "lane", None)


def test_content_that_is_no_task_fails_while_it_lives_and_is_only_reported_once_it_ended() -> None:
    broken = Content(problem="is empty.")
    token = living(State.READY, content=broken)
    finding = only(replace(SOUND, tokens=(token,)))
    assert (finding.severity, finding.law) == (E, "content")
    assert finding.fix == Fail(token.path, NAME, "its content is no task: is empty.")
    name = EndedName("t", 1, "w-1")
    late = only(replace(SOUND, tokens=(ended(State.FAILED, name, broken),), results=(record(name, "failure"),)))
    assert (late.severity, late.law, late.fix) == (E, "content", None)


def test_a_name_that_says_another_id_than_the_content() -> None:
    finding = only(replace(SOUND, tokens=(living(State.READY, content=Content("other", LANE)),)))
    assert (finding.severity, finding.law, finding.fix) == (E, "content", None)
    assert finding.problem == "its name says t, its content says other"


def test_what_completed_without_a_sound_result_runs_again() -> None:
    name = EndedName("t", 3, "w-1")
    token = ended(State.COMPLETED, name)
    for results, problem in (
        ((), "it ended, but its result is missing"),
        ((record(EndedName("t", 3, "w-2")),), "it ended, but its result is missing"),
        ((record(name, problem="is empty."),), "its result is damaged: is empty."),
        ((record(name, task_id="u"),), "its result is that of u, attempt 3"),
        ((record(name, attempt=2),), "its result is that of t, attempt 2"),
        ((record(name, status="failure"),), "it completed, but its result says failure"),
    ):
        finding = only(replace(SOUND, tokens=(token,), results=results))
        assert (finding.severity, finding.law, finding.problem) == (E, "result", problem)
        assert finding.paths == (token.path, "results/t.3.w-1.json")
        assert finding.fix == Rerun(token.path, LANE, 5000, False, name)


def test_a_status_of_a_later_release_makes_no_task_run_again() -> None:
    name = EndedName("t", 3, "w-1")
    survey = replace(SOUND, tokens=(ended(State.COMPLETED, name),), results=(record(name, status="accepted"),))
    finding = only(survey)
    assert (finding.severity, finding.law, finding.fix) == (W, "result", None)
    assert finding.problem == "its result has a status that this release does not know: accepted"
    assert audit(replace(survey, tokens=(ended(State.FAILED, name),))) == []


def test_a_task_that_failed_with_a_success_was_moved_there_by_somebody() -> None:
    name = EndedName("t", 3, "w-1")
    survey = replace(SOUND, tokens=(ended(State.FAILED, name),), results=(record(name),))
    finding = only(survey)
    assert (finding.severity, finding.law, finding.fix) == (E, "result", None)
    assert finding.problem == "it failed, but its result says success"
    assert finding.mend.startswith("if it was moved here by hand, move it back to completed/; else `spool retry t`")
    assert audit(replace(survey, results=(record(name, "timeout"),))) == []


def test_a_lost_result_is_only_reported_where_nothing_can_be_run_or_nobody_asked() -> None:
    name = EndedName("t", 3, "w-1")
    failed = only(replace(SOUND, tokens=(ended(State.FAILED, name),)))
    assert (failed.severity, failed.fix) == (E, None)
    assert "spool retry t" in failed.mend
    unread = only(replace(SOUND, tokens=(ended(State.COMPLETED, name, None),)))
    assert (unread.severity, unread.fix) == (E, None)
    damaged = audit(replace(SOUND, tokens=(ended(State.COMPLETED, name, Content(problem="is empty.")),)))
    assert [(f.law, f.fix) for f in damaged] == [("content", None), ("result", None)]
    archived = Token(State.ARCHIVE, "archive/0f/t.3.w-1.completed.json", name, "", State.COMPLETED)
    assert found(replace(SOUND, tokens=(archived,))) == [(W, "result", (archived.path,))]


def test_a_result_that_could_not_be_read_just_now_proves_nothing() -> None:
    name = EndedName("t", 3, "w-1")
    survey = replace(SOUND, tokens=(ended(State.COMPLETED, name),), results=(record(name, read=False),))
    assert audit(survey) == []


def test_results_of_no_task_are_information_and_told_together() -> None:
    orphans = tuple(record(EndedName(f"o{n}", 1, "w-1")) for n in range(SHOWN + 2))
    finding = only(replace(SOUND, results=orphans))
    assert (finding.severity, finding.law) == (I, "orphans")
    assert finding.problem == "7 results of tasks that are not here"
    assert finding.paths == tuple(orphan.path for orphan in orphans[:SHOWN])


def test_leadership_has_exactly_one_token() -> None:
    missing = only(replace(SOUND, leases=(), epoch=8))
    assert (missing.severity, missing.law, missing.fix) == (E, "leadership", MakeLease(8))
    second = only(replace(SOUND, leases=(LEASE, LeaseName(2, 99, "m-0"))))
    assert (second.severity, second.fix) == (E, DropLease("master/2.m-0.99"))


def test_missing_directories_and_unreadable_files() -> None:
    survey = replace(SOUND, missing=("results",), unreadable=(("ready/type=x", "Permission denied"),))
    assert found(survey) == [(E, "readable", ("ready/type=x",)), (E, "tree", ("results",))]
    assert audit(survey)[1].fix == MakeDirectory("results")


def test_claims_of_a_worker_without_a_heartbeat() -> None:
    survey = replace(SOUND, workers=("w-1", "w-2"), tokens=(living(State.CLAIMED, branch="w-1"),))
    assert found(survey) == [(W, "claims", ("claimed/w-1",)), (I, "claims", ("claimed/w-2",))]
    assert audit(survey)[0].problem == "worker w-1 has no heartbeat and holds 1 task"


def test_rejections_have_their_reasons() -> None:
    survey = replace(SOUND, rejected=("a.json", "b.json.reason.json"))
    assert found(survey) == [
        (W, "rejected", ("rejected/a.json",)),
        (I, "rejected", ("rejected/b.json.reason.json",)),
    ]


def test_what_is_left_over_is_no_error() -> None:
    survey = replace(
        SOUND,
        writers=("cli-x",),
        standing=("admitting/1.m-1/0123456789-1.b.jsonl",),
        foreign=("lost+found", "logs/.nfs01", "logs/notes.txt"),
    )
    assert found(survey) == [
        (W, "names", ("logs/notes.txt",)),
        (I, "admitting", ("admitting/1.m-1/0123456789-1.b.jsonl",)),
        (I, "names", ("logs/.nfs01",)),
        (I, "names", ("lost+found",)),
        (I, "tmp", ("tmp/cli-x",)),
    ]


def test_a_task_file_in_the_wrong_place_says_which_task_and_how_to_get_it_back() -> None:
    again = "drop its content into pending/ to run it again"
    for name in (NAME.encode(), NAME.encode_returned("w-1")):
        for path in (f"ready/{name}", f"completed/{name}", name):
            finding = only(replace(SOUND, foreign=(path,)))
            assert (finding.severity, finding.law, finding.paths) == (W, "names", (path,))
            assert (finding.problem, finding.mend) == ("a task file in the wrong place (id t)", again)
    done = EndedName("t", 1, "w-1")
    for name in (done.encode(), done.archived("failed")):
        finding = only(replace(SOUND, foreign=(f"ready/{LANE}/{name}",)))
        assert finding.problem == "a task file or a result in the wrong place (id t)"
        assert finding.mend == f"{again}; a result belongs into results/"


def test_a_stray_task_file_whose_id_another_token_has_is_not_to_be_dropped_again() -> None:
    upper = replace(NAME, id="T")
    survey = replace(SOUND, tokens=(living(State.READY),), foreign=(f"waiting/{upper.encode()}",))
    assert only(survey).mend == f"ready/{LANE}/{NAME.encode()} is that task: move this one away"


def test_the_verdict_counts_what_matters() -> None:
    survey = replace(SOUND, missing=("logs", "results"), rejected=("a.json",), writers=("cli-x",))
    assert verdict(audit(survey)) == "2 errors, 1 warning"
    assert verdict(audit(replace(SOUND, writers=("cli-x",)))) == "clean"


def test_only_what_two_looks_show_is_believed() -> None:
    twins = replace(SOUND, tokens=(living(State.WAITING), living(State.READY)))
    before, moved = audit(twins), audit(replace(SOUND, writers=("cli-x",)))
    assert confirmed(before, moved) == moved
    assert confirmed(before, before) == before
    elsewhere = replace(SOUND, tokens=(living(State.READY), living(State.CLAIMED, branch="w-1")), workers=("w-1",))
    assert confirmed(before, audit(elsewhere)) == []


def test_a_link_in_the_place_of_a_directory_is_an_error_with_its_fix() -> None:
    survey = Survey(blocked=(("completed", "completed is a link; replace it"),))
    (finding,) = [found for found in audit(survey) if found.paths == ("completed",)]
    assert (finding.severity, finding.problem, finding.fix) == (
        Severity.ERROR,
        "completed is a link; replace it",
        None,
    )
