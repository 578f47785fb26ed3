"""What people tell a running agent: in which turn it is given, once, and what the attempt says of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.attempt.prompting import Inbox
from tests.agents.attempts import Desk, Ended

# It keeps each prompt, and the session with which it was started; in its first turn it is told something more.
AGENT = """
import os, sys
prompt, session, told = sys.stdin.read(), sys.argv[1], os.environ["SPOOL_TOLD_FILE"]
turns = sorted(name for name in os.listdir(os.environ["SEEN"]) if name.startswith("turn"))
open(os.path.join(os.environ["SEEN"], f"turn{len(turns) + 1}"), "w").write(session + "|" + prompt)
more = os.path.join(os.environ["SEEN"], f"more{len(turns) + 1}")
if os.path.exists(more):
    open(told, "ab").write(open(more, "rb").read())
print('SPOOL:SESSION {"id": "s-1"}' if "session" in os.environ["HOW"] else "no session")
if "ask" in os.environ["HOW"] and not turns:
    print('SPOOL:QUESTION {"text": "Which?"}')
elif "lost" in os.environ["HOW"] and session == "s-1":
    print('SPOOL:FAILED {"reason": "gone", "fault": "session"}')
elif "fail" in os.environ["HOW"]:
    print('SPOOL:FAILED {"reason": "no", "fault": "transient"}')
else:
    open("out.md", "w").write("done")
    print('SPOOL:COMPLETED {"text": "turn %d"}' % (len(turns) + 1))
"""


def line(name: str, text: str, by: str = "ada@desk") -> str:
    return json.dumps({"name": name, "by": by, "at": "2026-02-02T09:00:00Z", "text": text}) + "\n"


class Told:
    """An attempt whose agent is told things. before: lines that are there when it starts; more: by turn, what comes
    while it runs.
    """

    def __init__(self, path: Path, how: str = "session", before: str = "", **more: str) -> None:
        self.seen, self.file = path / "seen", path / "told.jsonl"
        self.seen.mkdir()
        self.file.write_text(before)
        for turn, lines in more.items():
            (self.seen / turn).write_text(lines)
        own = {"SEEN": str(self.seen), "HOW": how, "SPOOL_TOLD_FILE": str(self.file)}
        self.desk = Desk(path, AGENT, env=own)
        python = [sys.executable, str(path / "agent.py"), "{session}"]
        self.desk.profile = {"command": python}

    def run(self, **task: Any) -> Ended:
        return self.desk.run(prompt="Fix it.", **task)

    @property
    def turns(self) -> list[tuple[str, str]]:
        """The session and the prompt of each turn."""
        found = sorted(self.seen.glob("turn*"), key=lambda path: int(path.name[4:]))
        return [tuple(path.read_text().split("|", 1)) for path in found]  # type: ignore[misc]


def test_what_stands_before_it_begins_comes_with_its_prompt(tmp_path: Path) -> None:
    made = Told(tmp_path, before=line("1", "Use v2.") + line("2", "And test it.", by="task plan-7\n\x1b[31m"))
    ended = made.run()
    assert made.turns == [
        ("", "Fix it.\n\nA message from ada@desk:\n\nUse v2.\n\nA message from task plan-7 \x1b[31m:\n\nAnd test it.")
    ]
    assert (ended.code, ended.result["text"]) == (0, "turn 1")
    assert [one["text"] for one in ended.result["told"]] == ["Use v2.", "And test it."]
    assert ended.progress["told"] == ["1", "2"]


def test_what_comes_while_it_runs_is_one_turn_more_in_its_session_before_the_work_is_judged(tmp_path: Path) -> None:
    made = Told(tmp_path, more1=line("1", "Use v2."), more2=line("2", "And v3."))
    made.desk.profile = {**made.desk.profile, "accept": [f"test -e {made.seen}/turn3"]}
    ended = made.run()
    assert (ended.code, ended.result["outcome"], ended.result["text"]) == (0, "done", "turn 3")
    go_on = "Take that into account, and continue with the task."
    assert made.turns[1:] == [
        ("s-1", f"A message from ada@desk:\n\nUse v2.\n\n{go_on}"),
        ("s-1", f"A message from ada@desk:\n\nAnd v3.\n\n{go_on}"),
    ]
    assert [one["name"] for one in ended.result["told"]] == ["1", "2"]
    assert "the agent is given a message of ada@desk" in ended.said


def test_an_agent_without_a_session_gets_the_whole_prompt_with_it(tmp_path: Path) -> None:
    made = Told(tmp_path, how="", more1=line("1", "Use v2."))
    assert made.run().code == 0
    session, prompt = made.turns[1]
    assert (session, prompt.startswith("Fix it.\n\nA message from ada@desk:\n\nUse v2.")) == ("", True)


def test_half_a_line_is_not_given_and_what_is_no_message_is_left_out(tmp_path: Path) -> None:
    strange = '[]\n{"name": 5, "text": "x"}\nnot json\n\xff\n' + line("1", "Use v2.") + line("1", "Again.")
    made = Told(tmp_path, before=strange + line("2", "cut")[:-5])
    assert made.run().code == 0
    assert [prompt.count("A message") for _, prompt in made.turns] == [1]
    assert "Use v2." in made.turns[0][1]


def test_what_comes_before_an_answer_that_never_comes_is_left_for_the_next_attempt(tmp_path: Path) -> None:
    made = Told(tmp_path, how="ask session", more1=line("1", "Use v2."))
    made.desk.profile = {**made.desk.profile, "ask_timeout": 0}
    ended = made.run()
    assert (ended.code, ended.result["outcome"], len(made.turns)) == (65, "blocked", 1)
    assert "told" not in ended.result


def test_a_session_that_goes_on_is_told_only_what_it_does_not_have(tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()
    made = Told(tmp_path, before=line("1", "Use v2."))
    made.desk.cwd = place
    first = made.run(must_change=True, success_if={"regex": "never"})
    assert (first.code, [one["name"] for one in first.result["told"]]) == (1, ["1"])
    made.file.write_text(line("1", "Use v2.") + line("2", "And test it."))
    made.desk.previous = {"attempt": 1, "status": "failure", "output": first.result}
    second = made.run(success_if={"regex": "never"})
    session, prompt = made.turns[1]
    assert session == "s-1"
    assert ("Use v2." in prompt, "And test it." in prompt) == (False, True)
    assert [one["name"] for one in second.result["told"]] == ["1", "2"]


def test_where_that_session_is_gone_the_new_one_is_told_everything(tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()
    made = Told(tmp_path, how="session lost", before=line("1", "Use v2."))
    made.desk.cwd = place
    first = made.run(success_if={"regex": "never"})
    made.file.write_text(line("1", "Use v2.") + line("2", "And test it."))
    made.desk.previous = {"attempt": 1, "status": "failure", "output": first.result}
    second = made.run()
    assert second.result["session_lost"].startswith("s-1: gone")
    assert [(session, prompt.count("A message from")) for session, prompt in made.turns] == [
        ("", 1),
        ("s-1", 1),
        ("", 2),
    ]
    assert [one["name"] for one in second.result["told"]] == ["1", "2"]


def test_a_new_conversation_is_told_everything_also_what_only_the_record_has(tmp_path: Path) -> None:
    made = Told(tmp_path, before=line("2", "And test it."))
    had = [json.loads(line("1", "Use v2."))]
    made.desk.previous = {"attempt": 1, "status": "failure", "output": {"session": "gone", "told": had}}
    ended = made.run()
    assert made.turns[0][1].count("A message from") == 2
    assert made.turns[0][1].index("Use v2.") < made.turns[0][1].index("And test it.")
    assert [one["name"] for one in ended.result["told"]] == ["1", "2"]


def test_a_turn_that_came_to_nothing_does_not_count_as_told(tmp_path: Path) -> None:
    made = Told(tmp_path, how="fail", before=line("1", "Use v2."))
    ended = made.run()
    assert (ended.code, "told" in ended.result) == (1, False)
    assert ended.progress["told"] == ["1"], "people see that it was given"
    assert [(one["name"], one["given"]) for one in ended.result["untold"]] == [("1", True)]


@pytest.mark.parametrize("how", ["session fail", "session"])
def test_in_one_session_no_message_is_given_twice_however_the_attempts_before_ended(tmp_path: Path, how: str) -> None:
    """An attempt that failed left its session the message, and the next two gave it again."""
    place = tmp_path / "repo"
    place.mkdir()
    made = Told(tmp_path, how=how, before=line("1", "Use v2."))
    made.desk.cwd = place
    for number in (1, 2, 3):
        ended = made.run(success_if={"regex": "never"})
        assert [one["name"] for one in ended.result["told"]] == ["1"]
        made.desk.previous = {"attempt": number, "status": "failure", "output": ended.result}
    assert [(session, prompt.count("Use v2.")) for session, prompt in made.turns] == [("", 1), ("s-1", 0), ("s-1", 0)]


def test_what_comes_while_its_work_is_judged_is_named_as_not_given(tmp_path: Path) -> None:
    made = Told(tmp_path)
    late = tmp_path / "late"
    late.write_text(line("1", "Too late."))
    made.desk.profile = {**made.desk.profile, "accept": [f"cat {late} >> {made.file}"]}
    ended = made.run()
    assert (ended.code, len(made.turns), "told" in ended.result) == (0, 1, False)
    assert [(one["text"], one["given"]) for one in ended.result["untold"]] == [("Too late.", False)]
    assert ended.progress["judged"] is True


def test_an_inbox_without_a_file_is_empty() -> None:
    inbox = Inbox(lambda: b"", None)
    assert (inbox.next(), inbox.news, inbox.given, inbox.had) == ([], False, {}, {})


def test_a_session_that_is_gone_takes_what_was_said_in_it_along() -> None:
    data = line("1", "a").encode()
    inbox = Inbox(lambda: data, {"told": [json.loads(line("0", "b"))]})
    inbox.go_on()
    assert [one.name for one in inbox.next()] == ["1"]
    assert inbox.next() == [], "no message comes into two turns"
    inbox.lost()
    assert inbox.had == {}
    inbox.over(well=True)
    assert [one["name"] for one in inbox.had["told"]] == ["0", "1"]
