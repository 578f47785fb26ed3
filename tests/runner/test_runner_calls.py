"""Calls: Python functions run in a warm process, and end like any other job."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol import codec
from spoold.runner.job import Call, Command, Ending, Job
from spoold.runner.job_runner import Runner
from spoold.runner.pyhost import VALUE_MAX
from spoold.runner.wire import ANSWER_MAX
from tests.runner.processes import PATIENCE_S, Bench, environment, lives

SOURCE = """
import os, subprocess, sys, threading, time

class Deep:
    @staticmethod
    def reach(*args, **kwargs):
        return [args, kwargs]

def pid(): return os.getpid()
def where(): return [os.getcwd(), os.environ.get("COLOUR"), os.environ.get("SPOOL_TASK_ID")]
def read(): return sys.stdin.read()
def say(what):
    print(what + "\\n", end="")  # in one piece, as the next one is
    sys.stderr.write(what + "\\n")  # at once, as nothing orders the pieces of two streams
    subprocess.run(["echo", what])
def fail(): raise ValueError("no such luck")
def odd(): return {1, 2}
def leave(code): sys.exit(code)
def crash(code=9): os._exit(code)
def nothing(): print("said")
def huge(number): return [number, "1" * 30]
def deep(levels):
    value = "\\u00fc\\U0001f600"
    for _ in range(levels): value = [value, "[" * 300]
    return value
def half(): return "x\\ud800"
def quotes(count): return '"' * count
def garble(): raise ValueError("x \\ud800")
def linger(mark):
    subprocess.Popen(["sleep", mark])
    subprocess.Popen(["sleep", mark], start_new_session=True)
    return os.getpid()
def thread():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return os.getpid()
def split(mark):
    if os.fork() == 0:
        return "child"
    return "parent"
def nap(mark): subprocess.run(["sleep", mark])
def scribble(text):
    for fd in range(3, 64):
        try: os.write(fd, text.encode())
        except OSError: pass
    return "returned"
def endless(piece):
    for fd in range(3, 64):
        try:
            while os.write(fd, b"x" * piece): pass
        except OSError: pass
    return "returned"
def close_output():
    os.close(1)
    return os.getpid()
"""

# What a function may say in its host's stead that would stop whoever reads it.
UNUSABLE = (
    ("exit", "0"),
    ("exit", 1 << 70),
    ("message", None),
    ("value", ["no text"]),
    ("clean", "yes"),
    ("cpu_s", "much"),
    ("cpu_s", float("inf")),
    ("kind", "no such kind"),
)


def peak_mb(pid: int) -> int:
    """The most memory that a process has held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


@pytest.fixture
def functions(bench: Bench) -> Path:
    (bench.where / "functions.py").write_text(SOURCE)
    return bench.where


def call(bench: Bench, name: str, *args: object, **more: Any) -> Job:
    return bench.job(Call(f"functions:{name}", args, path=(str(bench.where),)), **more)


def ended(bench: Bench, name: str, *args: object, **more: Any) -> Ending:
    return bench.ended(call(bench, name, *args, **more))


@pytest.mark.usefixtures("functions")
class TestCalls:
    def test_arguments_go_in_and_the_value_comes_out(self, bench: Bench) -> None:
        target = Call("functions:Deep.reach", (1, "ü", None), {"x": [1.5, {"y": True}]}, (str(bench.where),))
        ending = bench.ended(bench.job(target))
        assert (ending.kind, ending.exit_code) == ("exited", 0)
        assert ending.value == [[1, "ü", None], {"x": [1.5, {"y": True}]}]

    def test_calls_share_a_process_but_not_their_setting(self, bench: Bench) -> None:
        first = ended(bench, "pid")
        there = bench.where / "there"
        there.mkdir()
        second = ended(bench, "where", cwd=str(there), env=environment(SPOOL_TASK_ID="7"))
        third = ended(bench, "pid")
        assert second.value == [str(there), None, "7"]
        assert first.value == third.value

    def test_another_environment_means_another_process(self, bench: Bench) -> None:
        first = ended(bench, "pid")
        assert ended(bench, "where", env=environment(COLOUR="red")).value == [str(bench.where), "red", None]
        assert ended(bench, "pid").value != first.value

    def test_a_command_in_between_leaves_the_process_alone(self, bench: Bench) -> None:
        first = ended(bench, "pid")
        assert bench.ended(bench.job(Command(("true",)))).exit_code == 0
        assert ended(bench, "pid").value == first.value

    def test_a_missing_working_directory_is_the_same_for_a_cold_and_a_warm_process(self, bench: Bench) -> None:
        for _ in range(2):
            ending = ended(bench, "pid", cwd="/no/such/directory")
            assert (ending.kind, ending.exit_code) == ("spawn_failed", 127)
            assert "working directory /no/such/directory: ENOENT" in ending.message
        assert ended(bench, "pid").exit_code == 0

    def test_a_waiting_process_keeps_no_directory_busy(self, bench: Bench) -> None:
        pid = ended(bench, "pid").value
        assert os.readlink(f"/proc/{pid}/cwd") == "/"

    def test_input_is_read(self, bench: Bench) -> None:
        assert ended(bench, "read", stdin="zwölf".encode()).value == "zwölf"
        assert ended(bench, "read").value == ""

    def test_what_it_and_its_children_print_is_the_output(self, bench: Bench) -> None:
        ended(bench, "say", "before")
        job = call(bench, "say", "now")
        assert bench.ended(job).tail == "now\n" * 3
        assert bench.output(job.key).read_text() == "now\n" * 3

    def test_an_exception_is_exit_code_one_with_its_traceback(self, bench: Bench) -> None:
        ending = ended(bench, "fail")
        assert (ending.kind, ending.exit_code, ending.message) == ("exited", 1, "ValueError: no such luck")
        assert "in fail" in ending.tail
        assert "pyhost" not in ending.tail

    @pytest.mark.parametrize("name", ["os.getpid", "os", "pid.__globals__.clear", "__loader__.get_data"])
    def test_what_a_module_uses_is_not_what_it_offers(self, bench: Bench, name: str) -> None:
        ending = ended(bench, name)
        assert (ending.kind, ending.exit_code) == ("refused", None)
        assert "cannot be called; name a function, and its own module before the colon" in ending.message

    def test_a_value_that_is_not_json_is_named(self, bench: Bench) -> None:
        ending = ended(bench, "odd")
        assert ending.exit_code == 1
        assert "returned a set, which is not JSON" in ending.message

    @pytest.mark.parametrize(("code", "exit_code"), [(3, 3), (None, 0), ("too bad", 1)])
    def test_sys_exit_is_an_exit_code(self, bench: Bench, code: object, exit_code: int) -> None:
        ending = ended(bench, "leave", code)
        assert (ending.kind, ending.exit_code) == ("exited", exit_code)
        assert ("too bad" in ending.tail) == (code == "too bad")

    def test_unknown_functions_and_modules_say_so(self, bench: Bench) -> None:
        assert "AttributeError" in ended(bench, "no_such_function").message
        assert "no_such_module" in bench.ended(bench.job(Call("no_such_module:f"))).message

    def test_a_process_that_dies_is_reported_and_replaced(self, bench: Bench) -> None:
        ending = ended(bench, "crash")
        assert (ending.kind, ending.exit_code) == ("exited", 9)
        assert "Python process died" in ending.message
        assert ended(bench, "say", "again").tail == "again\n" * 3

    @pytest.mark.parametrize("text", ["garbage", "garbage\n", "5\n", '{"exit": 0}\n', "\n\n"])
    def test_a_function_that_writes_over_its_own_answer_fails_and_costs_no_crash(
        self, bench: Bench, text: str
    ) -> None:
        ending = ended(bench, "scribble", text)
        assert (ending.kind, ending.exit_code) == ("exited", 1)
        assert "it wrote into a descriptor that is not its own" in ending.message
        assert ended(bench, "say", "again").tail == "again\n" * 3

    def test_what_a_function_writes_there_without_an_end_fills_no_memory(self, bench: Bench) -> None:
        host = ended(bench, "pid").value
        (slot,) = bench.runner._live
        before = peak_mb(slot.process.pid)
        ending = ended(bench, "endless", 1 << 16, timeout_s=PATIENCE_S / 2)
        assert (ending.kind, ending.exit_code) == ("exited", 1)
        assert "it wrote into a descriptor that is not its own" in ending.message
        assert not lives(int(str(host)))
        assert peak_mb(slot.process.pid) - before < 2.5 * ANSWER_MAX / (1 << 20)
        assert ended(bench, "say", "again").tail == "again\n" * 3
        assert bench.runner._live == [slot], "its supervisor serves on"

    def test_an_answer_that_nobody_could_use_fails_the_task_and_costs_no_crash(self, bench: Bench) -> None:
        sound = {"exit": 0, "message": "", "value": "1", "began": True, "clean": True, "alone": True, "cpu_s": 0.0}
        forged = [{**sound, name: wrong} for name, wrong in UNUSABLE]
        for text in [*map(json.dumps, forged), "[" * 100_000]:
            ending = ended(bench, "scribble", text + "\n")
            assert (ending.kind, ending.exit_code) == ("exited", 1), text[:200]
            assert "it wrote into a descriptor that is not its own" in ending.message

    def test_a_value_is_returned_up_to_a_size_and_said_to_be_too_large_beyond(self, bench: Bench) -> None:
        host = ended(bench, "pid").value
        fits = ended(bench, "quotes", VALUE_MAX // 2 - 1)
        assert fits.value == '"' * (VALUE_MAX // 2 - 1), "also where every character of it has to be escaped"
        ending = ended(bench, "quotes", VALUE_MAX // 2)
        assert (ending.kind, ending.exit_code, ending.value) == ("exited", 1, None)
        said = f"the call returned {VALUE_MAX + 2:,} bytes of JSON, and at most {VALUE_MAX:,} are kept"
        assert said in ending.message
        assert ended(bench, "pid").value == host, "and nothing is wrong with its process"

    def test_nothing_is_a_value_too(self, bench: Bench) -> None:
        ending = ended(bench, "nothing")
        assert (ending.exit_code, ending.returned, ending.value) == (0, True, None)

    def test_whoever_ends_the_process_has_not_returned(self, bench: Bench) -> None:
        ending = ended(bench, "crash", 0)
        assert (ending.kind, ending.exit_code, ending.returned) == ("exited", 1, False)

    @pytest.mark.parametrize("number", [(1 << 64) - 1, -(1 << 63)])
    def test_numbers_of_64_bits_come_out_as_they_are(self, bench: Bench, number: int) -> None:
        assert ended(bench, "huge", number).value == [number, "1" * 30]

    @pytest.mark.parametrize("power", [64, 2000])
    def test_larger_numbers_are_refused_and_not_made_others(self, bench: Bench, power: int) -> None:
        ending = bench.ended(call(bench, "huge", 1 << power))
        assert ending.exit_code == 1
        assert "more than 64 bits; return it as text" in ending.message

    def test_a_value_is_written_as_it_is_or_refused(self, bench: Bench) -> None:
        whole = ended(bench, "deep", 199).value
        said = json.loads(codec.dump({"output": whole}))
        assert said == {"output": whole}, "a result says all that a call may return"
        too_deep = ended(bench, "deep", 200)
        assert (too_deep.exit_code, too_deep.returned) == (1, False)
        assert "deeper than 199 levels" in too_deep.message
        half = ended(bench, "half")
        assert (half.exit_code, half.returned) == (1, False)
        assert "surrogates not allowed" in half.message

    def test_what_it_says_that_is_no_text_becomes_legible(self, bench: Bench) -> None:
        assert ended(bench, "garble").message == "ValueError: x \\ud800"

    def test_children_left_behind_die_and_the_process_stays(self, bench: Bench) -> None:
        first = ended(bench, "linger", bench.mark)
        assert first.exit_code == 0
        assert bench.marked() == []
        assert ended(bench, "pid").value == first.value

    @pytest.mark.parametrize("name", ["thread", "close_output"])
    def test_a_process_that_is_not_as_before_is_not_used_again(self, bench: Bench, name: str) -> None:
        assert ended(bench, name).value != ended(bench, "pid").value

    def test_a_function_that_forks_answers_once(self, bench: Bench) -> None:
        assert ended(bench, "split", bench.mark).value == "parent"
        assert ended(bench, "leave", 0).exit_code == 0

    def test_a_timeout_ends_function_and_children(self, bench: Bench) -> None:
        ending = ended(bench, "nap", bench.mark, timeout_s=0.3, grace_s=0.1)
        assert ending.kind == "timeout"
        assert bench.marked() == []
        assert ended(bench, "read").value == ""

    def test_large_arguments_and_values_pass(self, bench: Bench) -> None:
        large = "x" * 3_000_000
        target = Call("functions:Deep.reach", (large,), path=(str(bench.where),))
        assert bench.ended(bench.job(target)).value == [[large], {}]

    def test_arguments_that_are_no_plain_values_are_refused_at_once(self, bench: Bench) -> None:
        with pytest.raises(ValueError, match="unmarshallable"):
            bench.runner.start(call(bench, "say", object()))
        assert ended(bench, "say", "fine").exit_code == 0


def test_an_interpreter_finds_the_libraries_that_the_workers_own_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under environment modules, where no call would begin without them; a command gets what its task says."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    monkeypatch.setenv("DEPLOY_TOKEN", "secret")
    bench = Bench(Runner(1, environ={"LANG": "C.UTF-8"}), tmp_path)
    try:
        assert bench.ended(bench.job(Call("os:getenv", ("LD_LIBRARY_PATH",)))).value == "/opt/lib"
        said = bench.ended(bench.shell("env; cat /proc/$PPID/environ", env={"PATH": "/usr/bin:/bin"})).tail
        assert "LANG=C.UTF-8" in said
        assert "DEPLOY_TOKEN" not in said
        assert said.count("LD_LIBRARY_PATH") == 1  # its supervisor's own
    finally:
        bench.runner.close(0)
