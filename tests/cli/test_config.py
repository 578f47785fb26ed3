"""`spool config`: a setting is changed while nodes run, they go by it, and everything says so."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.command import leader, make
from tests.cli.commands import Done, spool, start

Run = Callable[..., Done]
PATIENCE_S = 30
INTERVAL_S = 0.6


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    (root / "spool.toml").write_text(
        f"[heartbeat]\ninterval_s = {INTERVAL_S}\n[types.slow]\nmax_concurrent = 0\n", encoding="utf-8"
    )
    return root


@pytest.fixture
def run(root: Path) -> Run:
    return lambda *words: spool(*words, root=root)


def changes(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "settings").iterdir())


def test_set_prints_the_number_and_what_is_new(root: Path, run: Run) -> None:
    done = run("config", "set", "retry.max", "1", "types.Slow.priority=high", "--reason", "too\x1b[2J many")
    [file] = changes(root)
    assert (done.code, done.lines) == (
        0,
        [
            f"change {file.removesuffix('.json')}",
            "retry.max = 1 (was 3)",
            "types.slow.priority = 10 (was not set)",
        ],
    )
    assert "nodes go by it within 1.2 s; `spool config show` says which do" in done.err
    shown = run("config", "show")
    assert "\x1b" not in shown.out
    [line] = [line for line in shown.lines if line.startswith("retry.max ")]
    assert line.split()[1:3] == ["1", f"{file.removesuffix('.json')},"]
    assert ", by " in line
    assert line.endswith(": too [2J many")
    assert "heartbeat.interval_s" in shown.out
    factor = next(each for each in shown.lines if each.startswith("retry.factor"))
    assert factor.split() == ["retry.factor", "2", "default"]
    assert shown.lines[-1] == "no node runs"
    assert run("config", "set", "retry.max=1").lines == ["nothing to change: the settings are so already"]
    assert changes(root) == [file]


def test_what_only_the_file_says_is_set_all_the_same(root: Path, run: Run) -> None:
    """Nodes that run go by what the file said when they started: that it says so now is no reason to do nothing."""
    (root / "spool.toml").write_text("[limits.api]\nmax = 5\n")
    nothing = ["nothing to change: the settings are so already"]
    assert run("config", "set", "limits.api.max", "5").lines[0].startswith("change 1.")
    assert run("config", "set", "limits.api.max", "5").lines == nothing
    assert run("config", "unset", "limits.api.max").lines[0].startswith("change 2."), "the file may be edited later"
    assert run("config", "unset", "limits.api.max").lines == nothing, "the file says it"
    assert run("config", "unset", "retry.max", "limits").lines == nothing
    assert run("config", "unset", "retry.max").lines == nothing
    assert run("config", "unset", "limits.apy").lines == ["nothing to change: limits.apy is not set"]
    (root / "spool.toml").write_text("[limits.api]\nmax = 4\n")
    [shown] = [line for line in run("config", "show", "limits").lines if line.startswith("limits.api.max")]
    assert shown.split()[1:] == ["4", "spool.toml"]


def test_a_limit_is_changed_in_part(root: Path, run: Run) -> None:
    with (root / "spool.toml").open("a", encoding="utf-8") as file:
        file.write("[limits.api]\nmax = 3\nrate = {count = 5, per_s = 60}\n")
    assert "limits.api.max = 8 (was 3)" in run("config", "set", "limits.API.max", "8").lines
    assert "limits.api.rate.count = 7 (was 5)" in run("config", "set", "limits.api.rate.count", "7").lines
    assert "types.slow.uses = {api = 2} (was not set)" in run("config", "set", "types.slow.uses={api = 2}").lines
    assert "types.slow.uses = {api = 1} (was {api = 2})" in run("config", "set", 'types.slow.uses=["api"]').lines
    done = run("config", "set", "limits.api.max", "1", "types.slow.uses={api = 2}")
    assert (done.code, "2 of 'api' are more than there are: its max is 1" in done.err) == (2, True)
    sources = [line.split()[2] for line in run("config", "show", "limits.api.rate").lines if "rate" in line]
    assert sources == [f"{name.removesuffix('.json')}," for name in changes(root)[1:2]] + ["spool.toml"]
    assert "limits.api.max = 3 (was 8)" in run("config", "unset", "limits").lines
    assert "types.slow.uses is not set (was {api = 1})" in run("config", "unset", "types").lines


def test_for_programs(root: Path, run: Run) -> None:
    done = json.loads(run("config", "set", "timeout", "7", "--json").out)
    assert done["number"] == 1
    assert done["revision"].startswith("1.cli-")
    assert done["changed"] == [{"key": "timeout", "was": 1800.0, "is": 7.0}]
    master = leader(root)
    shown = json.loads(run("config", "show", "timeout", "--json").out)
    master.close()
    assert shown["revision"] == done["revision"]
    [setting] = shown["settings"]
    assert (setting["key"], setting["value"], setting["source"]) == ("timeout", 7.0, done["revision"])
    assert "@" in setting["by"]
    [node] = shown["nodes"]
    assert (node["node"], node["role"], node["revision"], node["state"]) == ("m-0001", "master", done["revision"], "")
    again = json.loads(run("config", "set", "timeout", "7", "--json").out)
    assert (again["revision"], again["number"], again["changed"]) == ("", None, [])
    assert json.loads(run("config", "unset", "timeout", "--json").out)["changed"][0]["is"] == 1800.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "retry.max", "lots"), 'retry.max = "lots": not a whole number. Fix: write a whole number'),
        (("set", "retry.max", "-1"), "retry.max = -1: too small. Fix: write 0 or more."),
        (("set", "retry.max", "1", "--raeson", "x"), "--raeson: is no option of this verb"),
        (("set", "retry.max=-1"), "retry.max = -1: too small. Fix: write 0 or more."),
        (("set", "retry.maks", "1"), "retry.maks = 1: unknown field. Fix: did you mean 'max'?"),
        (("set", "retyr.max", "1"), "retyr.max = 1: retyr: unknown field. Fix: did you mean 'retry'?"),
        (("set", "types.Slow.priorty=1"), "types.Slow.priorty = 1: unknown field. Fix: did you mean 'priority'?"),
        (("set", "types={slow = {priorty = 1}}"), "types.slow.priorty: unknown field. Fix: did you mean 'priority'?"),
        (("set", "timeout=1", "retry.max", "x"), 'retry.max = "x": not a whole number'),
        (
            ("set", "heartbeat.misses", "5"),
            "heartbeat.misses = 5: cannot be changed while nodes run. Fix: write it",
        ),
        (("unset", "heartbeat.misses"), "heartbeat.misses: cannot be changed while nodes run."),
        (("unset", "retry.maks"), "spool: retry.maks: unknown field. Fix: did you mean 'max'?"),
        (("set", "types.slow.uses=antropic"), "types.slow.uses = \"antropic\": there is no limit 'antropic'."),
        (("set", "limits.api.rate.count", "5"), "limits.api.rate.per_s: missing. Fix: add it."),
        (("set", "limits.api.max", "1", "types.slow.uses={api = 2}"), "its max is 1. Fix: use fewer, or raise"),
        (("set", "retry.max"), "retry.max: has no value. Fix: write retry.max VALUE, or retry.max=VALUE."),
        (("set",), "has no key. Fix: write it as in `spool config set retry.max 1`."),
        (("unset",), "has no key. Fix: write it as in `spool config unset retry.max`."),
        (("show", "a", "b"), "takes no more than KEY and --json"),
        (("check", "--wait"), "takes no more than FILE and --json"),
        (("shwo",), "is no such action. Fix: did you mean 'show'?"),
        (("xyzzy",), "use one of show, set, unset, check."),
        (("show", "retry.maks"), "did you mean 'max'?"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_published(
    root: Path, run: Run, words: tuple[str, ...], said: str
) -> None:
    done = run("config", *words)
    assert (done.code, done.out, changes(root)) == (2, "", [])
    assert said in done.err


def test_a_node_that_does_not_go_by_a_change_in_time_is_named(root: Path, run: Run) -> None:
    master = leader(root)
    done = run("config", "set", "retry.max", "1", "--wait")
    [file] = changes(root)
    assert done.code == 124
    assert "warning: after 1.2 s master m-0001 still goes by spool.toml" in done.err
    assert f"spool.toml (not yet {file.removesuffix('.json')})" in run("config", "show", "retry").out
    done = run("config", "set", "retry.max", "2", "--wait", "--json")
    told = json.loads(done.out)
    assert (done.code, told["nodes"], [node["node"] for node in told["late"]]) == (124, [], ["m-0001"])
    master.close()


def test_check_says_what_is_wrong(root: Path, run: Run, tmp_path: Path) -> None:
    assert run("config", "set", "retry.max", "1").code == 0
    done = run("config", "check")
    assert (done.code, done.out) == (0, f"valid: {root}/spool.toml and 1 change of the spool\n")
    (root / "settings/2.ed.json").write_text('{"settings": {"retry": {"max": -1}}}', encoding="utf-8")
    new = tmp_path / "new.toml"
    new.write_text("[retry]\nmaks = 1\n[poll]\nbusy_s = 0\n", encoding="utf-8")
    done = run("config", "check", str(new))
    assert (done.code, done.lines) == (
        1,
        [
            f"{new}: retry.maks: unknown field.",
            "    fix: did you mean 'max'?",
            f"{new}: poll.busy_s: too small. Given: 0.",
            "    fix: write 0.001 or more.",
            "settings/2.ed.json: retry.max: too small. Given: -1.",
            "    fix: write 0 or more.",
            f"3 faults: {new} and 1 change of the spool",
        ],
    )
    done = run("config", "check", "--json")
    told = json.loads(done.out)
    assert (done.code, told["valid"], told["changes"]) == (1, False, 1)
    [fault] = told["faults"]
    assert (fault["file"], fault["field"], fault["fix"]) == ("settings/2.ed.json", "retry.max", "write 0 or more.")
    assert "warning: settings/2.ed.json: retry.max" in run("config", "show").err
    (root / "spool.toml").write_text("timeout = [", encoding="utf-8")
    done = run("config", "check")
    assert (done.code, "is not TOML" in done.out) == (1, True), "also where no other verb opens the spool"


def test_a_file_is_checked_without_a_spool(tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    file.write_text("timeout = 5\n", encoding="utf-8")
    done = spool("config", "check", str(file))
    assert (done.code, done.out) == (0, f"valid: {file}\n")
    assert "No spool is named" in spool("config", "check").err
    assert "cannot be read" in spool("config", "check", f"{file}.no").err


def test_the_actions_are_offered_at_tab() -> None:
    from spoold.faces.cli.verbs.config import offer

    assert offer("s") == ["show", "set"]


@pytest.fixture
def pool(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A master and a worker, which are processes."""
    up = start("up", "--slots", "4", "--allow-command", "--until-eof", root=root, stdout=None, stderr=None)
    yield up
    up.communicate(timeout=PATIENCE_S)


def until(condition: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.05)


def nodes(run: Run) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(run("config", "show", "--json").out)["nodes"]
    return found


@pytest.mark.usefixtures("pool")
def test_a_pool_that_runs_goes_by_a_change_within_a_heartbeat(root: Path, run: Run) -> None:
    until(lambda: {node["role"] for node in nodes(run)} == {"master", "worker"}, "both beat")
    words = ("submit", "--type", "slow", "--id", "held", "--", "sleep", "60")
    assert run(*words).code == 0
    until(lambda: "limit" in run("explain", "held").out, "the limit of spool.toml holds it")
    # The leader lets it start; the worker ends it, by a timeout that no file had when it was dropped.
    done = run("config", "set", "types.slow.max_concurrent", "2", "types.slow.max_retries=0", "--wait", "--json")
    told = json.loads(done.out)
    assert (done.code, told["late"]) == (0, [])
    assert {node["role"]: node["revision"] for node in told["nodes"]} == dict.fromkeys(
        ("master", "worker"), told["revision"]
    )
    until(lambda: json.loads(run("show", "held", "--json").out)["state"] == "claimed", "it starts")
    until(lambda: json.loads(run("status", "--json").out)["settings"] == told["revision"], "a snapshot says it")
    assert run("cancel", "held").code == 0
    done = run("config", "unset", "types.slow", "--wait")
    assert (done.code, "2 nodes go by the change" in done.err) == (0, True)
    assert "types.slow.max_concurrent = 0 (was 2)" in done.lines
    assert run("submit", "--type", "slow", "--id", "again", "--", "true").code == 0
    until(lambda: "limit" in run("explain", "again").out, "spool.toml holds it again")


def test_a_worker_that_stands_still_is_named_and_takes_the_change_up_later(
    root: Path, run: Run, pool: subprocess.Popen[bytes]
) -> None:
    assert pool.poll() is None
    until(lambda: {node["role"] for node in nodes(run)} == {"master", "worker"}, "both beat")
    beats = [json.loads(path.read_bytes()) for path in (root / "heartbeats").iterdir()]
    [pid] = {beat["pid"] for beat in beats if beat["role"] == "worker"}
    os.kill(pid, signal.SIGSTOP)
    try:
        done = run("config", "set", "retry.max", "1", "--wait")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (done.code, "still goes by spool.toml" in done.err) == (124, True)
    [revision] = [file.removesuffix(".json") for file in changes(root)]
    until(lambda: all(node["revision"] == revision for node in nodes(run)), "it looks when it goes on")
