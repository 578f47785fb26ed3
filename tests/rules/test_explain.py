"""Goal: an explanation says what the leader and the workers would decide, in order, each with what would change it.

Method: one case a test, as a client would gather it; the sentences of gates are taken from the gates themselves.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.protocol.lifecycle import State
from spoold.protocol.request import Request, Verb
from spoold.protocol.task import Task
from spoold.rules.answers.task_facts import Case, Claim, EndedAttempt, Explanation, Seen
from spoold.rules.answers.why_failed import began, silence, still_failed, unretried
from spoold.rules.answers.why_not_running import explain
from spoold.rules.answers.why_waiting import starter
from spoold.rules.attempts.end_conditions import UNKNOWN_FOR_S
from spoold.rules.gates.facts import Conditions, Parent, TypeFacts
from spoold.rules.gates.registry import conditions_of
from spoold.rules.gates.standing_requests import Requested
from spoold.rules.share.free_space import Room
from tests.rules.strategies import limited

NOW = 1_760_000_000.0
LANE = Lane("review")
CAN = Capabilities(cpus=4, mem_mb=8192, handlers=("review",))
WORKER = Seen("w-1", CAN, slots=2)
WAITING = Case("t", State.WAITING, NOW, attempt=1, leader="m-1", lane=LANE, workers=(WORKER,))
READY = replace(WAITING, state=State.READY)
PROBLEM = BadFile("a.json", "", "is not JSON: end of data.", "check it.")


def gates(answer: Explanation) -> list[str]:
    """The gates that an explanation names, in its order."""
    return [reason.gate for reason in answer.reasons]


def test_nothing_in_the_way_is_said_too() -> None:
    waiting, ready = explain(WAITING), explain(READY)
    assert waiting.reasons == ready.reasons == ()
    assert waiting.verdict == "nothing stands in its way: m-1 moves it to ready/ within moments"
    assert ready.verdict == "it is ready: a worker takes it within moments"
    assert (waiting.id, waiting.state, waiting.attempt) == ("t", "waiting", 1)


@pytest.mark.parametrize("case", [WAITING, READY])
def test_a_file_that_may_not_be_read_is_the_first_reason(case: Case) -> None:
    wrong = BadFile("ready/x.json", "", "may not be read by this user.", "chmod it.")
    (reason,) = explain(replace(case, problem=wrong)).reasons
    assert (reason.gate, reason.change) == ("file", "chmod it.")
    assert "may not be read by this user" in explain(replace(case, problem=wrong)).verdict


@pytest.mark.parametrize("case", [WAITING, READY])
def test_an_attempt_that_was_handed_back_is_said_after_what_stands_in_the_way_now(case: Case) -> None:
    back = EndedAttempt(1, "handed_back", "w-9", code="HANDED_BACK", message="its worker was drained")
    answer = explain(replace(case, attempt=2, last=back))
    assert answer.verdict == explain(case).verdict
    (reason,) = answer.reasons
    assert reason.gate == "handed_back"
    assert reason.reason == "attempt 1 was handed back by w-9: its worker was drained"
    assert reason.change == "nothing: that charged nothing, and the next attempt begins anew"
    silent = explain(replace(case, attempt=2, last=replace(back, message="")))
    assert silent.reasons[0].reason == "attempt 1 was handed back by w-9"
    assert gates(explain(replace(case, attempt=2, last=back, workers=()))) == ["workers", "handed_back"]
    assert explain(replace(case, attempt=2, last=replace(back, status="failure"))).reasons == ()


def test_an_attempt_that_was_handed_back_and_rests_is_told_once() -> None:
    back = EndedAttempt(1, "handed_back", "w-9", code="HANDED_BACK", message="no process could be started")
    answer = explain(replace(WAITING, attempt=2, rest_s=7, last=back))
    assert gates(answer) == ["retry_delay"]
    assert answer.verdict.endswith("attempt 1 ended as HANDED_BACK: no process could be started")


def test_workers_that_leave_the_task_to_others_are_no_help() -> None:
    away = replace(WORKER, avoids={"t": "exit code 127 (program not found)"})
    answer = explain(replace(READY, workers=(away,)))
    assert gates(answer) == ["left"]
    assert answer.verdict == (
        "every worker that can run it leaves it to others for now: w-1: exit code 127 (program not found)"
    )
    shy = replace(WORKER, node="w-2", capabilities=CAN.model_copy(update={"shuns": {"review": "it broke"}}))
    assert explain(replace(READY, workers=(away, shy))).verdict.endswith("(program not found), w-2: it broke")
    other = replace(away, node="w-3", avoids={"another": "why"})
    assert explain(replace(READY, workers=(away, other))).reasons == ()


def test_a_busy_worker_is_named_and_one_that_leaves_the_task_to_it_is_not() -> None:
    away, busy = replace(WORKER, node="w-0", avoids={"t": "why"}), replace(WORKER, running=2)
    answer = explain(replace(READY, workers=(away, busy)))
    assert answer.verdict == "every worker that can run it is busy: w-1 (2 of 2 slots)"


def test_a_worker_without_the_program_says_so() -> None:
    lacking = CAN.model_copy(update={"handlers": (), "lacks": {"review": "it lacks the program codex"}})
    answer = explain(replace(READY, workers=(replace(WORKER, capabilities=lacking),)))
    assert answer.verdict == "no worker alive can run it: w-1: it lacks the program codex"


def test_a_returned_task_is_shown_as_waiting() -> None:
    assert explain(replace(WAITING, state=State.RETURNED)).state == "waiting"


def test_an_unknown_dependency_is_named_and_an_open_one_says_where_it_is() -> None:
    case = replace(
        WAITING,
        conditions=Conditions(needs=("ghost", "busy", "done"), needs_ended=("late", "lost")),
        parents={"busy": Parent.OPEN, "done": Parent.COMPLETED, "late": Parent.OPEN, "lost": Parent.UNKNOWN},
        places={"busy": "claimed by w-9", "lost": "rejected"},
    )
    answer = explain(case)
    assert answer.verdict == "it waits for ghost, which this spool does not know"
    assert [(r.gate, r.reason, r.change) for r in answer.reasons] == [
        (
            "dependencies",
            "it waits for ghost, which this spool does not know",
            "submit ghost, or cancel this task and submit it without",
        ),
        ("dependencies", "it waits for busy to complete", "busy is claimed by w-9 (`spool explain busy`)"),
        (
            "after_any",
            "it waits for lost, which this spool does not know",
            "submit lost (it was rejected), or cancel this task and submit it without",
        ),
        ("after_any", "it waits for late to end", "late is open (`spool explain late`)"),
    ]


def test_what_the_leader_will_refuse_is_said_before_anything_else() -> None:
    case = replace(
        WAITING,
        conditions=Conditions(needs=("bad", "ghost"), deadline=NOW + 5),
        parents={"bad": Parent.FAILED},
        rest_s=3,
    )
    answer = explain(case)
    assert answer.verdict == "dependency bad failed"
    assert answer.reasons[0].change == (
        "the leader fails it as DEPENDENCY_FAILED; fix the cause, then `spool retry t`"
    )
    assert gates(answer) == ["dependencies", "dependencies", "retry_delay"]


def test_a_deadline_that_is_over_refuses_a_waiting_and_a_ready_task() -> None:
    for case in (WAITING, READY):
        answer = explain(replace(case, conditions=Conditions(deadline=NOW)))
        assert (answer.verdict, gates(answer)) == ("its deadline is over", ["deadline"])
        assert answer.reasons[0].change.endswith("as DEADLINE; submit t again, corrected and under another id")


def test_a_retry_delay_says_until_when_and_how_the_last_attempt_ended() -> None:
    last = EndedAttempt(1, "failure", "w-1", code="EXIT_NONZERO", message="exit code 1")
    (reason,) = explain(replace(WAITING, rest_s=7, last=last)).reasons
    assert reason.until == NOW + 7
    assert reason.reason == (
        "it rests before its next attempt: 7 s more, until 2025-10-09T08:53:27Z; "
        "attempt 1 ended as EXIT_NONZERO: exit code 1"
    )
    (unknown,) = explain(replace(WAITING, rest_s=7)).reasons
    assert unknown.reason == "it rests before its next attempt: 7 s more, until 2025-10-09T08:53:27Z"


def test_a_moment_that_has_not_come_yet() -> None:
    (reason,) = explain(replace(WAITING, conditions=Conditions(not_before=NOW + 60))).reasons
    assert (reason.gate, reason.until) == ("not_before", NOW + 60)
    assert reason.reason == "its not_before has not come yet: 1 m more, until 2025-10-09T08:54:20Z"
    (far,) = explain(replace(WAITING, conditions=Conditions(not_before=NOW + 40 * 86400 + 7200))).reasons
    assert far.reason == "its not_before has not come yet: 40 d 2 h more, until 2025-11-18T10:53:20Z"


def test_a_moment_beyond_what_can_be_written_in_utc() -> None:
    task = Task.model_validate({"command": "x", "not_before": "9999-12-31T23:00:00-05:00"})
    (reason,) = explain(replace(WAITING, conditions=conditions_of(task))).reasons
    assert reason.reason.endswith("until 9999-12-31T23:59:59Z")
    assert reason.until == conditions_of(task).not_before


def test_a_pause_says_who_asked_for_it_and_why() -> None:
    asked = {
        ("pause", "review"): "asked for by ada: quota",
        ("pause", "+all"): "asked for by bob",
        ("halt", "+all"): "h",
    }
    for facts, told in (
        (TypeFacts(dict.fromkeys({"review"})), "; asked for by ada: quota"),
        (TypeFacts(dict.fromkeys({"review", "+all"})), "; asked for by bob"),
        (TypeFacts(halted=True), "; h"),
        (limited("review", 1, 1), "max_concurrent = 1"),
    ):
        assert explain(replace(WAITING, type=facts, asked=asked)).verdict.endswith(told)


@pytest.mark.parametrize(
    ("facts", "gate", "what", "resume"),
    [
        (TypeFacts(dict.fromkeys({"review"})), "pause", "type review is paused", "`spool resume review`"),
        (TypeFacts(dict.fromkeys({"+all"})), "pause", "the whole spool is paused", "`spool resume`"),
        (TypeFacts(dict.fromkeys({"+all", "review"})), "pause", "the whole spool is paused", "`spool resume`"),
        (TypeFacts(halted=True), "halt", "the spool is halted", "`spool resume`"),
    ],
)
def test_a_pause_or_a_halt_holds_waiting_and_ready_tasks(facts: TypeFacts, gate: str, what: str, resume: str) -> None:
    for case in (WAITING, READY):
        answer = explain(replace(case, type=facts))
        assert (answer.verdict, gates(answer)) == (f"{what}; {resume} lets it go on", [gate])
        assert answer.reasons[0].change == resume


def test_a_limit_holds_a_waiting_task_and_not_one_that_is_counted_in_it() -> None:
    facts = limited("review", 2, 2)
    (reason,) = explain(replace(WAITING, type=facts)).reasons
    assert reason.reason == "type review runs at its limit: 2 of [types.review] max_concurrent = 2"
    assert (
        reason.change
        == "it goes on when one of them ends; or raise it: `spool config set types.review.max_concurrent …`"
    )
    assert explain(replace(READY, type=facts)).reasons == ()


def test_a_limit_that_a_task_in_doubt_fills_says_so() -> None:
    (reason,) = explain(replace(WAITING, type=limited("review", 2, 1, 1))).reasons
    assert reason.gate == "limit"
    assert reason.reason.endswith("1 of [types.review] max_concurrent = 2; tasks in doubt count as well: 1")


def test_without_a_leader_what_waits_or_is_dropped_stays_and_what_is_ready_runs() -> None:
    assert gates(explain(replace(WAITING, leader=None))) == ["leader"]
    assert gates(explain(replace(WAITING, state=State.PENDING, leader=None))) == ["leader"]
    assert explain(replace(READY, leader=None)).reasons == ()


def test_a_spool_without_its_token_is_not_mended_by_another_master() -> None:
    (reason,) = explain(replace(WAITING, leader=None, token=False)).reasons
    assert (
        reason.reason == "master/ has no token, so no master can lead, and nothing is admitted, retried or taken back"
    )
    assert (reason.gate, reason.change) == ("leader", "stop all nodes and run `spool fsck --repair`")


def test_a_full_lane_says_what_stands_before_the_task() -> None:
    (reason,) = explain(replace(WAITING, standing=256, ahead=9)).reasons
    assert (reason.gate, reason.reason) == ("window", "its lane is full: 256 stand ready there, 9 wait before it")


def test_a_task_whose_lane_nobody_knows_is_not_blamed_on_workers() -> None:
    assert explain(replace(WAITING, lane=None)).reasons == ()
    assert explain(replace(READY, lane=None, type=TypeFacts(halted=True))).reasons == ()


def test_no_worker_alive() -> None:
    for workers in ((), (replace(WORKER, alive=False),)):
        (reason,) = explain(replace(READY, workers=workers)).reasons
        assert (reason.gate, reason.reason) == ("workers", "no worker is alive")
        assert reason.change == starter(LANE)


@pytest.mark.parametrize(
    ("lane", "words"),
    [
        (Lane("command", run="command"), "start a worker: `spool worker --allow-command`"),
        (
            Lane("command", run="command", need=("node", "docker")),
            "start a worker: `spool worker --allow-command --labels docker,node`",
        ),
        (
            Lane("command", run="command", cpus=0.5, gpus=2),
            (
                "start a worker on a machine with 2 gpus: `spool worker --allow-command`; if it does not find that "
                "by itself, put `gpus = 2` into worker.toml, and add `--config worker.toml`"
            ),
        ),
        (
            Lane("a.b", pool="lab", need=("x",), cpus=2.5, mem_mb=4096),
            (
                "start a worker on a machine with 3 cpus and 4096 MiB of memory: "
                '`spool worker --labels x --config worker.toml`, with `pools = ["lab"]` and `[handlers."a.b"]` and '
                'its `command = ["PROGRAM"]` (of an agent `[agents."a.b"]` and its `cli`) in worker.toml; '
                "if it does not find that by itself, put `cpus = 3` and `mem_mb = 4096` there, too"
            ),
        ),
        (
            Lane("python", run="python", module="pkg.jobs"),
            (
                "start a worker: `spool worker --config worker.toml`, "
                'with `[python]` and its `allow = ["pkg.jobs"]` in worker.toml'
            ),
        ),
    ],
    ids=lambda value: value.encode() if isinstance(value, Lane) else "",
)
def test_the_worker_that_is_missing_is_a_command_to_type(lane: Lane, words: str) -> None:
    assert starter(lane) == words


def test_a_merge_that_no_worker_serves_is_a_table_of_its_own_with_its_repository() -> None:
    told = explain(replace(READY, lane=Lane("merge"), repo="/srv/git/r.git"))
    (reason,) = told.reasons
    assert reason.reason.endswith("it has no handler for type merge ([merge] in its configuration)")
    start = "start a worker: `spool worker --config worker.toml`, with `[merge]` and its"
    assert reason.change == f'{start} `repos = ["/srv/git/r.git"]` in worker.toml'
    assert starter(Lane("merge")) == f'{start} `repos = ["/srv/git/app.git"]` in worker.toml'


def test_a_worker_that_does_not_say_what_it_can_run_is_named_and_alive() -> None:
    (reason,) = explain(replace(READY, workers=(), mute=("w-9",))).reasons
    said = "w-9: its heartbeat does not say what it can run (`capabilities`)"
    assert (reason.gate, reason.reason) == ("capability", f"no worker alive can run it: {said}")
    assert explain(replace(READY, mute=("w-9",))).reasons == ()


def test_no_worker_with_a_gpu_names_every_worker_and_groups_what_is_alike() -> None:
    many = tuple(Seen(f"w-{n}", CAN) for n in range(7))
    other = Seen("x-1", Capabilities(cpus=4, mem_mb=8192, gpus=1))
    case = replace(READY, lane=Lane("review", gpus=1), workers=(*many, other))
    (reason,) = explain(case).reasons
    assert reason.gate == "capability"
    assert reason.reason == (
        "no worker alive can run it: w-0, w-1, w-2, w-3, w-4 and 2 more: it has 0 gpus, the task requires 1; "
        "x-1: it has no handler for type review ([handlers.review] or [agents.review] in its configuration)"
    )
    assert reason.change == f"{starter(Lane('review', gpus=1))}; or change what the task requires"
    assert gates(explain(replace(case, state=State.WAITING))) == ["capability"]


def test_workers_that_could_and_do_not() -> None:
    unfit = Seen("x-1", Capabilities(cpus=1, mem_mb=1))

    def verdict(worker: Seen, **fields: object) -> tuple[str, str]:
        case = replace(READY, workers=(worker, unfit), **fields)  # type: ignore[arg-type]
        (reason,) = explain(case).reasons
        return reason.gate, reason.reason

    assert verdict(replace(WORKER, draining=True)) == ("drain", "every worker that can run it is draining: w-1")
    assert verdict(WORKER, disk=Room.FULL) == ("disk", "the share is full, so workers start nothing")
    assert verdict(WORKER, disk=Room.NO_FILES) == ("disk", "the share is out of inodes, so workers start nothing")
    busy = "every worker that can run it is busy: w-1 (2 of 2 slots)"
    assert verdict(replace(WORKER, running=2)) == ("busy", busy)
    assert verdict(replace(WORKER, running=2), ahead=3) == ("busy", f"{busy}; 3 tasks before it")
    taken = replace(WORKER, running=1, lanes=(Lane("review", cpus=3),))
    hungry = Lane("review", cpus=2)
    assert verdict(taken, lane=hungry) == ("room", "no worker has type=review cpu=2 free just now: w-1")
    assert verdict(replace(WORKER, notes=("share is slow",))) == ("notes", "its workers say: share is slow")
    assert verdict(WORKER, ahead=4) == ("queue", "4 more urgent or older tasks before it in its lane")


def test_a_worker_that_is_only_busy_does_not_trouble_a_waiting_task() -> None:
    assert explain(replace(WAITING, workers=(replace(WORKER, running=2),))).reasons == ()


def test_a_task_that_spoold_failed_on_says_so_and_whose_fault_it_is() -> None:
    told = explain(replace(WAITING, fault="judging it failed: ValueError: a bug"))
    assert told.reasons[-1].reason == "judging it failed: ValueError: a bug"
    assert "report it as a bug" in told.reasons[-1].change
    last = EndedAttempt(0, "failure", "m-1", code="INVALID_TASK", started=False)
    refused = replace(WAITING, state=State.FAILED, last=last, fault="judging it failed: ValueError: a bug")
    assert gates(explain(refused)) == ["fault"], "there is nothing to mend in the task"
    assert gates(explain(replace(refused, last=replace(last, code="EXIT_CODE")))) == ["failed", "fault"]


def test_a_drop_that_is_young_wrong_or_well() -> None:
    pending = Case("a.json", State.PENDING, NOW, leader="m-1")
    well = explain(pending)
    assert (well.verdict, well.reasons) == ("nothing stands in its way: m-1 admits it within moments", ())
    young = explain(replace(pending, problem=PROBLEM, young=True))
    assert young.verdict == "it may still be on its way; so far the drop is not JSON: end of data."
    assert young.reasons[0].change == "check it. It is rejected once it has been still for 10 s."
    wrong = explain(replace(pending, problem=BadFile("a.json", "tpye", "unknown field.", "did you mean 'type'?")))
    assert wrong.verdict == "it will be rejected: the drop tpye: unknown field."
    assert wrong.reasons[0].change == "did you mean 'type'?"


def test_a_drop_that_this_user_may_not_read_is_called_so_and_not_judged() -> None:
    hidden = BadFile("pending/a.json", "", "may not be read by this user.", "let the group read it")
    told = explain(Case("a.json", State.PENDING, NOW, leader="m-1", hidden=hidden))
    assert gates(told) == ["hidden"]
    assert told.verdict.startswith("the drop pending/a.json: may not be read by this user.")
    assert told.reasons[0].change == "let the group read it"


def test_a_drop_that_a_program_has_open_waits_for_that_program() -> None:
    pending = Case("a.json", State.PENDING, NOW, leader="m-1", held=True)
    whole = explain(pending)
    assert whole.verdict == "a program has the file open for writing"
    young = explain(replace(pending, problem=PROBLEM, young=True))
    assert gates(young) == ["writer", "young"]
    assert young.reasons[1].change == "check it."


def test_an_unfinished_drop_that_was_rejected_may_yet_become_a_task() -> None:
    answer = explain(Case("a.json", State.REJECTED, NOW, problem=PROBLEM, young=True))
    assert gates(answer) == ["rejected", "unfinished"]
    assert "judges it again" in answer.reasons[1].change


def test_a_rejection_gives_its_reason_and_its_mend() -> None:
    rejected = Case("a.json", State.REJECTED, NOW)
    for problem, verdict in (
        (PROBLEM, "it was rejected: is not JSON: end of data."),
        (BadFile("a.json", "id", "is taken.", "m"), "it was rejected: id: is taken."),
        (BadFile("b.jsonl line 2", "id", "is taken.", "m"), "it was rejected: b.jsonl line 2: id: is taken."),
        (None, "it was rejected, and no reason is beside it"),
    ):
        answer = explain(replace(rejected, problem=problem))
        assert (answer.verdict, gates(answer)) == (verdict, ["rejected"])


def test_a_claim_says_who_since_when_and_how_far() -> None:
    case = replace(WAITING, state=State.CLAIMED)
    assert explain(case).verdict == "it runs"
    claim = Claim(
        "w-1", since="2025-10-09T08:00:00Z", progress={"done": 3, "of": 10, "files": ["a.py", None]}, cancel=True
    )
    answer = explain(replace(case, claim=claim))
    assert answer.verdict == "it runs on w-1 since 2025-10-09T08:00:00Z, attempt 1"
    assert [reason.reason for reason in answer.reasons] == [
        'it last reported: done 3, of 10, files ["a.py", null]',
        "a user asked to cancel it, and w-1 has not stopped it yet",
    ]


def test_a_worker_that_is_silent_for_longer_than_its_lease_is_not_said_to_run_it() -> None:
    """Where the share can be read but not written, nobody knows more."""
    case = replace(WAITING, state=State.CLAIMED, attempt=2, claim=Claim("w-1", silent_s=25.4))
    answer = explain(case)
    assert answer.verdict == (
        "w-1 holds it, attempt 2, and was last heard of 25 s ago; the task is frozen there if its lease is over"
    )
    assert gates(answer) == ["silent"]
    assert "it goes on as the same attempt once w-1 reaches the share again" in answer.reasons[0].change
    dead = explain(replace(case, claim=Claim("w-1", alive=False, silent_s=25.4)))
    assert dead.verdict.endswith("has not been heard of lately; the task is frozen there if its lease is over")


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED])
def test_what_has_ended_says_for_how_long_it_was_frozen(state: State) -> None:
    last = EndedAttempt(1, "success", "w-1", frozen_s=41.5)
    frozen = "(frozen for 42 s of it, while its worker had no lease)"
    assert frozen in explain(replace(WAITING, state=state, last=last)).verdict
    assert "frozen" not in explain(replace(WAITING, state=state, last=replace(last, frozen_s=0.0))).verdict


def test_what_was_frozen_says_for_how_long() -> None:
    case = replace(WAITING, state=State.CLAIMED, claim=Claim("w-1", frozen_s=41.5))
    answer = explain(case)
    assert gates(answer) == ["frozen"]
    assert answer.reasons[0].reason == "it was frozen for 42 s, while its worker had no lease"


def test_a_claim_on_a_full_share_may_have_ended_long_ago() -> None:
    case = replace(WAITING, state=State.CLAIMED, claim=Claim("w-1", progress=3), disk=Room.FULL)
    answer = explain(case)
    assert answer.verdict == (
        "it runs on w-1, attempt 1, or has ended and cannot say so: the share is full, so no result can be written"
    )
    assert gates(answer) == ["disk", "progress"]
    assert answer.reasons[0].change.startswith("free some room")
    assert gates(explain(replace(case, disk=Room.LITTLE))) == ["progress"]


def test_a_task_that_asked_and_lends_its_slot_may_wait_for_the_answer() -> None:
    asked = Requested(Request(Verb.ASK, "t", "1"), ask="Which?", attempt=1)
    case = replace(WAITING, state=State.CLAIMED, claim=Claim("w-1", lent=True))
    assert "waits for other tasks, and w-1 has" in explain(case).reasons[0].reason
    lent = next(one for one in explain(replace(case, requested=(asked,))).reasons if one.gate == "lent")
    assert lent.reason.startswith("it waits for an answer, or for other tasks, and w-1 has given its slot")
    assert lent.change.startswith("it goes on when it has the answer, or those have ended, and a slot is free")


def test_a_task_that_a_leader_refused_never_started() -> None:
    for code in ("BUDGET_EXCEEDED", "REJECTED", "CANCELLED"):
        assert not began(code, None)
        assert began(code, "2026-01-01T00:00:00Z")


def test_a_claim_of_a_silent_worker_says_when_it_is_taken_back_and_by_whom() -> None:
    claim = Claim("w-1", alive=False)
    case = replace(WAITING, state=State.CLAIMED, claim=claim, dead_after_s=15)
    answer = explain(case)
    assert answer.verdict == "worker w-1 holds it and has not been heard of lately"
    assert "after 15 s of silence" in answer.reasons[0].change
    assert gates(explain(replace(case, leader=None))) == ["silent", "leader"]


def test_a_claim_that_the_leader_may_not_move_is_not_promised_back() -> None:
    claim = Claim("w-1", alive=False, stuck="claimed/w-1/x cannot be moved: run `chmod g+rwx claimed/w-1`")
    answer = explain(replace(WAITING, state=State.CLAIMED, claim=claim, dead_after_s=15))
    assert "`chmod g+rwx claimed/w-1`" in answer.verdict
    assert gates(answer) == ["denied"]
    assert "when that is fixed" in answer.reasons[0].change


def test_what_ended_says_how() -> None:
    done = replace(WAITING, state=State.COMPLETED, last=EndedAttempt(1, "success", "w-1", "2025-10-09T08:00:00Z"))
    assert explain(done).verdict == "it completed on w-1 at 2025-10-09T08:00:00Z, attempt 1"
    assert explain(replace(done, last=None)).verdict == "it completed, attempt 1"
    failed = replace(
        WAITING, state=State.FAILED, last=EndedAttempt(1, "timeout", "w-1", code="TIMEOUT", message="5 s")
    )
    answer = explain(failed)
    assert answer.verdict == "it failed on w-1, attempt 1: TIMEOUT: 5 s"
    assert answer.reasons[0].change == "fix the cause, then `spool retry t`"
    refused = replace(failed, last=EndedAttempt(1, "failure", "w-1", code="SPAWN_FAILED", message="add allow_cwd"))
    assert explain(refused).reasons[0].change == (
        "fix the cause, then `spool retry t`; or submit t again, corrected and under another id"
    )
    assert (
        explain(replace(failed, last=EndedAttempt(1, "failure", "w-1"))).verdict
        == "it failed on w-1, attempt 1: failure"
    )
    assert explain(replace(failed, last=None)).reasons[0].change == "`spool fsck` says more"


@pytest.mark.parametrize("code", ["EXIT_NONZERO", "MAX_RETRIES", "TIMEOUT", "STALLED", "OOM_KILLED", "SIGNALED"])
def test_a_program_that_ended_badly_is_asked_for_the_cause_before_a_retry(code: str) -> None:
    last = EndedAttempt(4, "failure", "w-1", code=code, wrote=True, last_line="no such file")
    failed = replace(WAITING, state=State.FAILED, attempt=4, last=last)
    answer = explain(failed)
    assert answer.last_line == "no such file"
    assert answer.reasons[0].change == "`spool logs t` has all it wrote; fix the cause, then `spool retry t`"
    silent = explain(replace(failed, last=replace(last, wrote=False, last_line="")))
    assert (silent.last_line, silent.reasons[0].change) == ("", "fix the cause, then `spool retry t`")
    died = explain(replace(failed, last=replace(last, code="WORKER_DIED", last_line="")))
    assert died.reasons[0].change == "`spool retry t` gives it a fresh budget"


def test_a_program_that_was_not_found_is_looked_for_in_its_log_too() -> None:
    last = EndedAttempt(1, "failure", "w-1", code="SPAWN_FAILED", wrote=True, last_line="sh: nosuch: not found")
    (reason,) = explain(replace(WAITING, state=State.FAILED, last=last)).reasons
    assert reason.change.startswith("`spool logs t` has all it wrote; fix the cause, then `spool retry t`; or ")


def test_the_last_line_of_an_attempt_before_is_not_that_of_the_next() -> None:
    last = EndedAttempt(1, "failure", "w-1", code="EXIT_NONZERO", wrote=True, last_line="x")
    assert explain(replace(WAITING, attempt=2, last=last)).last_line == ""


@pytest.mark.parametrize("code", ["DEADLINE", "INVALID_TASK"])
def test_what_can_only_fail_again_is_to_be_submitted_anew(code: str) -> None:
    failed = replace(WAITING, state=State.FAILED, last=EndedAttempt(1, "failure", "m-1", code=code))
    change = "submit t again, corrected and under another id, since a retry would fail as well"
    assert explain(failed).reasons[0].change == change


def test_the_dependency_with_which_it_began_is_to_be_mended_first() -> None:
    failed = replace(
        WAITING,
        state=State.FAILED,
        last=EndedAttempt(1, "failure", "m-1", code="DEPENDENCY_FAILED", message="dependency bad failed"),
        conditions=Conditions(needs=("good", "bad", "worse")),
    )

    def change(origins: dict[str, str]) -> str:
        return explain(replace(failed, origins=origins)).reasons[0].change

    assert change({"bad": "EXIT_NONZERO"}) == "fix the cause (`spool explain bad`), then `spool retry bad t`"
    both = "fix the cause (`spool explain bad`, `spool explain worse`), then `spool retry bad worse t`"
    assert change({"bad": "", "worse": "TIMEOUT"}) == both
    assert change({"root": "TIMEOUT"}) == (
        "fix the cause (`spool explain root`), then retry root, the tasks that failed because of that and t "
        "by one command: `spool retry root … t`; `spool retry --state failed` retries every failed task"
    )
    assert change({"bad": "DEADLINE"}) == (
        "submit bad again, corrected and under another id; "
        "then this one, under another id too, with the new one among its dependencies"
    )
    assert change({}) == "fix its dependencies, then `spool retry t`"


def test_a_task_that_failed_with_its_dependency_never_started_and_may_go_on_when_that_is_well() -> None:
    last = EndedAttempt(1, "failure", "m-1", "2025-10-09T08:00:00Z", "DEPENDENCY_FAILED", "dependency bad failed")
    failed = replace(WAITING, state=State.FAILED, last=replace(last, started=False))
    assert explain(failed).verdict == "it never started: DEPENDENCY_FAILED: dependency bad failed"
    second = explain(replace(failed, attempt=2, last=replace(last, number=2, started=False)))
    assert second.verdict == "attempt 2 never started: DEPENDENCY_FAILED: dependency bad failed"

    def change(**parents: Parent) -> str:
        case = replace(failed, conditions=Conditions(needs=tuple(parents)), parents=parents)
        return explain(case).reasons[0].change

    assert change(bad=Parent.COMPLETED) == "bad has completed since: `spool retry t`"
    both = change(good=Parent.COMPLETED, bad=Parent.COMPLETED)
    assert both == "all its dependencies have completed: `spool retry t`"
    again = change(good=Parent.COMPLETED, bad=Parent.OPEN)
    assert again == "bad has not ended yet: `spool retry t`, and it waits for that"
    assert change(a=Parent.OPEN, b=Parent.OPEN).startswith("a, b have not ended yet: ")
    assert change(bad=Parent.UNKNOWN) == "fix its dependencies, then `spool retry t`"


def test_a_retry_that_stands_says_what_it_waits_for() -> None:
    last = EndedAttempt(1, "failure", "m-1", code="DEPENDENCY_FAILED", message="dependency bad failed", started=False)
    parents = {"bad": Parent.FAILED, "good": Parent.COMPLETED, "worse": Parent.FAILED}
    asked = replace(WAITING, state=State.FAILED, last=last, retried=True)
    held = explain(replace(asked, conditions=Conditions(needs=("bad", "good", "worse")), parents=parents))
    assert held.verdict == "it never started: DEPENDENCY_FAILED: dependency bad failed"
    assert [(reason.gate, reason.reason, reason.change) for reason in held.reasons] == [
        (
            "retry",
            "a retry was asked for, and waits for a retry of bad, worse",
            f"`spool retry bad worse` within {UNKNOWN_FOR_S:g} s, or t fails again",
        )
    ]
    assert explain(asked).reasons[0].reason == "a retry was asked for"
    assert gates(explain(replace(asked, leader=None))) == ["retry", "leader"]


def test_a_warning_of_a_retry_names_the_dependencies_that_nobody_retries() -> None:
    parents = {"bad": Parent.FAILED, "Worse": Parent.FAILED, "good": Parent.COMPLETED}
    assert unretried(("bad", "Worse", "good", "ghost"), parents) == ["bad", "Worse"]
    assert unretried(("bad", "Worse", "good"), parents, {"worse"}) == ["bad"]
    one = "its dependency bad is still failed: `spool retry bad` within 10 s, or t fails again"
    assert still_failed("t", ["bad"]) == one
    many = still_failed("t", [f"p{number}" for number in range(9)])
    assert many.startswith("its dependencies p0, p1, p2, p3, p4 and 4 more are still failed: ")
    assert "`spool retry p0 p1 p2 p3 p4 …`" in many


def test_a_task_that_did_not_begin_is_silent_for_that_reason() -> None:
    for state in (State.PENDING, State.WAITING, State.READY):
        assert silence("t", state, None) == "t has not begun; `spool explain t` says why"
    last = EndedAttempt(1, "cancelled", "m-1", code="CANCELLED", message="asked for by ada", started=False)
    assert silence("t", State.FAILED, last) == "it never started: CANCELLED: asked for by ada"
    assert silence("t", State.FAILED, replace(last, started=True)) == ""
    assert silence("t", State.FAILED, None) == silence("t", State.CLAIMED, None) == ""


@pytest.mark.parametrize(
    ("code", "started_at", "has"),
    [
        ("DEPENDENCY_FAILED", None, False),
        ("CANCELLED", None, False),
        ("CANCELLED", "2025-10-09T08:00:00Z", True),
        ("DEADLINE", None, False),
        ("INVALID_TASK", None, False),
        ("WORKER_DIED", None, True),  # its worker may have died before it said so
        ("EXIT_NONZERO", None, True),  # of a program that does not write the time
    ],
)
def test_whether_an_attempt_began(code: str, started_at: str | None, has: bool) -> None:
    assert began(code, started_at) is has


def test_sleepers_are_named_only_where_nobody_awake_can_run_it() -> None:
    since = "2026-02-02T09:00:00Z"
    sleeper = replace(WORKER, node="w-z", asleep=since)
    other = replace(WORKER, node="w-o", capabilities=Capabilities(cpus=4, mem_mb=8192))
    for workers in ((sleeper,), (sleeper, other), (sleeper, replace(WORKER, alive=False))):
        answer = explain(replace(READY, workers=workers))
        assert gates(answer) == ["asleep"]
        assert answer.verdict == f"every worker that can run it is asleep: w-z since {since}"
    assert explain(replace(READY, workers=(sleeper, WORKER))).reasons == ()
    assert gates(explain(replace(READY, workers=(replace(sleeper, alive=False),)))) == ["workers"]
    assert gates(explain(replace(READY, workers=(other, replace(other, asleep=since))))) == ["capability"]
