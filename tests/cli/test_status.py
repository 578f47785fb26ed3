"""Goal: `spool status` prints the snapshot's model for programs and every figure of it for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spoold.faces.cli.verbs.status import render
from spoold.protocol.snapshot import Rates, Recent, Snapshot
from tests.cli.command import leader, make, spool, told

PICTURE = Snapshot.model_validate(
    {
        "generated_at": "2025-10-09T08:00:00Z",
        "spool_id": "s1",
        "master": {"leader": "m-1", "epoch": 3, "standbys": ["m-2"]},
        "tasks": {"waiting": 7, "failed": 2},
        "workers": {"alive": 1, "working": 1, "dead": 1},
        "nodes": [
            {"worker": "w-1", "host": "laptop", "state": "working", "slots": 4, "running": 1, "cpus": 8}
            | {"mem_mb": 2048, "mem_available_mb": 1024, "load": 0.5, "labels": ["gpu"], "tasks": [{"id": "t9"}]}
        ],
        "rates": {"completed_per_min": 4, "eta_s": 3700},
        "types": {"review": {"waiting": 7, "ready": 0, "running": 1, "active": 1}},
        "paused": ["review"],
        "alerts": [
            {"name": "queue", "since": "2025-10-09T07:59:00.000Z", "text": "[7] wait"}
            | {"value": 7, "threshold": 5, "task": "alert-queue-01"},
            {"name": "disk", "since": "2025-10-09T07:58:00.000Z", "text": "the share is full"},
        ],
        "warnings": ["the share is [80] % full"],
    }
)


def shown(picture: Snapshot) -> str:
    """The picture as it is printed."""
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as captured:
        console.print(render(picture), crop=False)
    return captured.get()


def test_json_is_the_model_and_nothing_else(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    master = leader(directory)
    answer = told(directory, "status")
    assert Snapshot.model_validate(answer).model_dump(mode="json") == answer
    assert (answer["source"], answer["master"]["leader"]) == ("leader", "m-0001")
    master.close()
    answer = told(directory, "status")
    assert (answer["source"], answer["master"]["leader"]) == ("listing", None)


def test_the_fix_at_the_end_of_a_long_warning_is_shown() -> None:
    fix = "its owner runs `chmod -R g+rwX /mnt/spool/claimed`"
    warning = f"a claim of a dead worker {'and its long path ' * 30}may not be moved; {fix}"
    printed = shown(PICTURE.model_copy(update={"warnings": (warning,)}))
    assert fix in " ".join(printed.split())


def test_people_see_that_nobody_leads(tmp_path: Path) -> None:
    result = spool(make(tmp_path / "s"), "status")
    assert result.exit_code == 0
    assert "no leader (counted now)" in result.stdout
    assert "! no leader is seen" in result.stdout
    assert "no workers alive" in result.stdout


def test_every_figure_is_shown() -> None:
    lines = shown(PICTURE).splitlines()
    assert lines[0] == "spool s1, led by m-1 (epoch 3), standing by: m-2 paused: review"
    assert lines[2].split() == [
        "pending",
        "waiting",
        "ready",
        "claimed",
        "completed",
        "failed",
        "skipped",
        "rejected",
    ]
    assert lines[3].split() == ["0", "7", "0", "0", "0", "2", "0", "0"]
    assert lines[4] == "4 completed and 0 failed per minute, about 1 h 1 m to go"
    assert [line.split() for line in lines[6:8]] == [
        ["TYPE", "WAITING", "READY", "RUNNING"],
        ["review", "7", "0", "1"],
    ]
    assert lines[9] == "1 worker: 1 working, 0 idle, 0 draining, 1 dead"
    assert lines[11].split() == ["w-1", "laptop", "working", "1/4", "8", "1.0/2.0G", "0.50", "gpu", "t9"]
    told = "ALERT queue: [7] wait (since 2025-10-09T07:59:00.000Z; told by alert-queue-01)"
    assert [line.strip() for line in lines[12:]] == [
        told,
        "ALERT disk: the share is full (since 2025-10-09T07:58:00.000Z)",
        "! the share is [80] % full",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"paused": ("+all",)}, "paused: everything"),
        ({"halted": True}, "HALTED"),
        ({"rates": PICTURE.rates.model_copy(update={"eta_s": 59})}, "about 59 s to go"),
        ({"rates": PICTURE.rates.model_copy(update={"eta_s": 200_000})}, "about 2 d 7 h to go"),
        (
            {"rates": Rates(eta_unknown="no worker can run 1 of 2 tasks")},
            "\ntime to go: unknown, no worker can run 1 of 2 tasks\n",
        ),
        (
            {"rates": Rates(completed_per_min=2, eta_unknown="tasks are paused")},
            "2 completed and 0 failed per minute, time to go: unknown, tasks are paused\n",
        ),
        (
            {"recent": Recent(failed_attempts={"STALLED": 30, "TIMEOUT": 1}, rejections={"is empty.": 2})},
            "attempts that failed in the last 10 m: 30 STALLED, 1 TIMEOUT\n",
        ),
        (
            {"recent": Recent(rejections={"is empty.": 2})},
            "\n2 drops were rejected in the last 10 m: is empty.\n",
        ),
        (
            {"recent": Recent(rejections={"is empty.": 1000, "comand: unknown field.": 1})},
            (
                "\n1,000 drops were rejected in the last 10 m: is empty.\n"
                "1 drop was rejected in the last 10 m: comand: unknown field.\n"
            ),
        ),
    ],
)
def test_what_matters_stands_out(changes: dict[str, object], words: str) -> None:
    assert words in "\n".join(line.rstrip() for line in shown(PICTURE.model_copy(update=changes)).split("\n"))


HELD = {
    "hold": {"waiting": 1, "oldest": {"id": "build", "admitted_at": "2026-02-02T09:00:00.000Z"}},
    "approval": {"waiting": 2, "oldest": {"id": "ship"}, "questions": 3},
    "quota": {"llm": {"until": "2026-02-02T14:05:00Z", "by": "quota"}, "gpt": {"trying": "t1"}, "x": {"trying": ""}},
    "limit": {"llm": {"max": 2, "used": 1, "doubtful": 1}, "free": {"max": 2, "used": 1, "doubtful": 0}},
    "rate": {
        "llm": {"count": 9, "per_s": 60, "used": 9, "opens": "2026-02-02T14:05:00Z"},
        "gpt": {"count": 1, "used": 1},
    },
    "class": {"bulk": {"slots": 3, "borrow": True, "used": 4}, "other": {"slots": 0, "used": 0}},
    "budget": {"small": {"closed": "", "periods": [{"period": "total", "waits": "t9"}]}, "shut": {"closed": "why"}},
    "locks": {"held": 1, "waiting": 4, "holders": [], "waiters": []},
    "after_batch": {"nightly": {"open": 3, "unread": 0}, "over": {"open": 0, "unread": 0}},
}


def test_what_keeps_tasks_waiting_has_a_line_for_each_gate() -> None:
    """Text said nothing of holds, questions, and why tasks wait; only --json did."""
    lines = [line.rstrip() for line in shown(PICTURE.model_copy(update={"gates": HELD})).splitlines()]
    assert lines[1:10] == [
        "held by people: 1 task, the oldest is build; `spool release ID` lets one go",
        "3 questions to people, 2 tasks wait for an approval, the oldest is ship; `spool asks` lists them",
        (
            "closed: limit llm until 2026-02-02T14:05:00Z, gpt (tried by t1), x (tried by the next task); "
            "`spool limits` says why"
        ),
        "at its max: limit llm (2 of 2); `spool limits` shows all",
        "at its rate: limit llm until 2026-02-02T14:05:00Z (9 of 9), gpt (1 of 1); `spool limits` shows all",
        "all own slots in use: class bulk (4 of 3)",
        "too little left: budget small, shut; `spool budget` shows all",
        "locked out: 4 tasks, by 1 holder; `spool locks` shows who waits for whom",
        "awaited to end: batch nightly (3 tasks)",
    ]


def test_gates_that_keep_nothing_and_those_of_other_releases_have_no_line() -> None:
    odd = {
        "hold": {"waiting": 0, "oldest": None},
        "approval": {"questions": "?"},
        "limit": {"llm": 3},
        "new": {"a": 1},
    }
    assert shown(PICTURE.model_copy(update={"gates": odd})) == shown(PICTURE)


def test_a_spool_that_is_none_is_refused(tmp_path: Path) -> None:
    result = spool(tmp_path, "status")
    assert result.exit_code == 69
    assert "Is the share mounted?" in result.stderr


def test_watching_for_programs_prints_one_line_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = make(tmp_path / "s")
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", nap)
    result = spool(directory, "status", "--watch", "--json")
    assert result.exit_code == 130
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["spool_id"] for line in lines] == ["s1"] * 3


def test_what_was_frozen_says_for_how_long() -> None:
    (node,) = PICTURE.nodes
    task = {"id": "t9", "attempt": 1, "frozen_s": 41.5}
    frozen = PICTURE.model_copy(update={"nodes": (node.model_copy(update={"tasks": (task,)}),)})
    assert "t9 (was frozen for 42 s)" in shown(frozen)
    assert "was frozen" not in shown(PICTURE)
