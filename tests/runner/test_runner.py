"""Runner: every way a command ends is told truly, and what it prints is kept as promised."""

import errno
import os
import shutil
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from spoold.runner import process_tree
from spoold.runner.job import Call, Command, Job
from spoold.runner.job_runner import Runner
from tests.runner.processes import Bench, endings, environment, eventually


def test_the_exit_code_is_reported(bench: Bench) -> None:
    ending = bench.ended(bench.shell("exit 75"))
    assert (ending.kind, ending.exit_code, ending.signal) == ("exited", 75, None)
    assert ending.message == "exited with code 75"


def test_what_a_program_says_and_what_it_complains_of_are_kept_together_and_apart(bench: Bench) -> None:
    job = bench.shell("echo said; echo complained >&2; sleep 0.1; echo more")
    ending = bench.ended(job)
    assert ending.stdout == "said\nmore\n"
    assert sorted(ending.tail.splitlines()) == ["complained", "more", "said"]
    with open(job.output_path, encoding="utf-8") as log:
        assert log.read() == ending.tail


def test_a_signal_that_is_not_ours_is_reported_as_such(bench: Bench) -> None:
    ending = bench.ended(bench.shell("kill -KILL $$"))
    assert (ending.kind, ending.exit_code, ending.signal) == ("signaled", None, signal.SIGKILL)
    assert "SIGKILL" in ending.message


def test_times_are_wall_and_duration(bench: Bench) -> None:
    before = time.time()
    ending = bench.ended(bench.shell("sleep 0.1"))
    assert before <= ending.started_at < ending.ended_at <= time.time()
    assert 0.1 <= ending.duration_s < 5


@pytest.mark.parametrize(
    ("program", "code", "name"),
    [("/no/such/program", 127, "ENOENT"), ("no-such-program", 127, "ENOENT"), ("/etc", 126, "EACCES")],
)
def test_a_program_that_cannot_be_executed(bench: Bench, program: str, code: int, name: str) -> None:
    ending = bench.ended(bench.job(Command((program,))))
    assert (ending.kind, ending.exit_code) == ("spawn_failed", code)
    assert name in ending.message
    assert program in ending.message


def test_a_script_without_interpreter_line_is_not_executable(bench: Bench) -> None:
    script = bench.where / "script"
    script.write_text("echo never\n")
    script.chmod(0o755)
    ending = bench.ended(bench.job(Command((str(script),))))
    assert (ending.kind, ending.exit_code) == ("spawn_failed", 126)
    assert "ENOEXEC" in ending.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"#!/bin/sh\r\necho a\r\n", "CR LF"),
        (b"#!/no/such/sh -e\necho a\n", "'/no/such/sh', which its first line names, is not there"),
        (b"\xef\xbb\xbf#!/bin/sh\necho a\n", "byte order mark"),
        (b"echo a\n", "#!/bin/sh"),
        (b"\x7fELF\x02\x01\x01" + bytes(57), "another processor or system"),
    ],
)
@pytest.mark.parametrize("found", ["by its path", "on the PATH"])
def test_a_file_that_is_there_and_cannot_be_executed_names_the_fix(
    bench: Bench, content: bytes, said: str, found: str
) -> None:
    """N22: "ENOENT: No such file" of a script that is there says nothing to anybody."""
    script = bench.where / "tool"
    script.write_bytes(content)
    script.chmod(0o755)
    env = {"PATH": f"/no/such/folder:{bench.where}:/bin"}
    ending = bench.ended(bench.job(Command((str(script) if found == "by its path" else "tool",)), env=env))
    assert ending.kind == "spawn_failed"
    assert said in ending.message


def test_a_command_in_one_word_names_the_fix(bench: Bench) -> None:
    """N22: `"command": ["echo hello"]` is what people write first."""
    ending = bench.ended(bench.job(Command(("echo hello world",))))
    assert "Give each word by itself ('echo', 'hello', …), or a shell" in ending.message


PAGE = os.sysconf("SC_PAGE_SIZE")
MOST = 32 * PAGE - 1  # bytes of one argument


@pytest.mark.parametrize(
    ("argv", "env", "number", "said"),
    [
        (("echo", "a\0b"), {}, 0, "argument 1 holds a NUL byte"),
        (("true",), {"A=B": "x"}, 0, "illegal environment variable name"),
        (("true", "x", "y" * (MOST + 1)), {}, errno.E2BIG, f"argument 2 has {MOST + 1:,} bytes, and {MOST:,} are"),
        (("true",), {"BIG": "x" * MOST}, errno.E2BIG, f"variable BIG has {MOST + 4:,} bytes"),
        (("true", *["x" * 100_000] * 70), {}, errno.E2BIG, "more than `ulimit -s` allows"),
        (("/" + "x" * 5000,), {}, errno.ENAMETOOLONG, "ENAMETOOLONG"),
    ],
)
def test_values_that_no_program_can_get(
    bench: Bench, argv: tuple[str, ...], env: dict[str, str], number: int, said: str
) -> None:
    ending = bench.ended(bench.job(Command(argv), env=environment(**env)))
    assert (ending.kind, ending.exit_code, ending.refusal) == ("spawn_failed", 126, number)
    assert "cannot execute" in ending.message
    assert said in ending.message
    assert ("SPOOL_TASK_FILE" in ending.message) == (number == errno.E2BIG)


def test_the_longest_argument_that_there_can_be_is_given(bench: Bench) -> None:
    assert bench.ended(bench.job(Command(("true", "y" * MOST)))).exit_code == 0


def test_a_call_with_a_variable_that_is_too_long_says_so(bench: Bench) -> None:
    ending = bench.ended(bench.job(Call("os:getpid"), env=environment(BIG="x" * MOST)))
    assert (ending.kind, ending.refusal) == ("spawn_failed", errno.E2BIG)
    assert "variable BIG has" in ending.message


def test_a_program_that_is_just_being_written_is_nobodys_fault(bench: Bench) -> None:
    program = bench.where / "program"
    shutil.copy("/bin/true", program)
    with open(program, "r+b"):
        ending = bench.ended(bench.job(Command((str(program),))))
    assert (ending.kind, ending.refusal) == ("spawn_failed", errno.ETXTBSY)
    assert bench.ended(bench.job(Command((str(program),)))).exit_code == 0


def test_a_folder_that_is_not_there_is_named(bench: Bench) -> None:
    ending = bench.ended(bench.job(Command((sys.executable,)), cwd="/no/such/folder"))
    assert (ending.kind, ending.exit_code, ending.refusal) == ("spawn_failed", 127, errno.ENOENT)
    assert "cannot enter the working directory /no/such/folder" in ending.message
    assert ending.message.endswith("cwd names no folder of this machine: make it, or change cwd")


def test_descriptors_do_not_pile_up(bench: Bench) -> None:
    def open_now() -> list[int]:
        pids = [os.getpid(), *(slot.process.pid for slot in bench.runner._live)]
        return [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids]

    def mixture() -> None:
        bench.ended(bench.shell("echo x", stdin=b"y"))
        bench.ended(bench.job(Command(("/no/such/program",))))
        bench.ended(bench.job(Call("os:getpid")))
        bench.ended(bench.job(Call("os:_exit", (1,))))

    mixture()
    before = open_now()
    for _ in range(5):
        mixture()
    assert open_now() == before


def test_a_missing_working_directory_is_named(bench: Bench) -> None:
    ending = bench.ended(bench.shell("true", cwd="/no/such/directory"))
    assert ending.kind == "spawn_failed"
    assert "working directory /no/such/directory" in ending.message


def test_environment_directory_and_input_are_the_jobs(bench: Bench) -> None:
    job = bench.shell('cat; pwd; echo "$COLOUR"; env | wc -l', stdin=b"fed\n", env={"COLOUR": "grün"})
    ending = bench.ended(job)
    lines = ending.tail.splitlines()
    assert lines[:3] == ["fed", str(bench.where), "grün"]
    assert int(lines[3]) <= 5  # sh adds PWD, OLDPWD, SHLVL and _ at most; ours has hundreds of bytes more


def test_the_program_is_looked_up_in_the_jobs_path(bench: Bench) -> None:
    program = bench.where / "greet"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert bench.ended(bench.job(Command(("greet",)), env={"PATH": str(bench.where)})).tail == "found\n"


def test_without_input_the_standard_input_is_empty(bench: Bench) -> None:
    assert bench.ended(bench.shell("cat; echo end")).tail == "end\n"


def test_large_input_arrives_whole(bench: Bench) -> None:
    assert bench.ended(bench.shell("wc -c", stdin=b"\xff" * 5_000_000)).tail.strip() == "5000000"


def test_both_streams_go_to_the_file_in_the_order_in_which_they_can_be_told_apart(bench: Bench) -> None:
    """They are two pipes: what comes on both within one moment has no order that anybody could see."""
    job = bench.shell("echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three")
    assert bench.ended(job).tail == "one\ntwo\nthree\n"
    assert bench.output(job.key).read_text() == "one\ntwo\nthree\n"


def test_without_output_there_is_no_file(bench: Bench) -> None:
    job = bench.shell("true")
    assert bench.ended(job).output_bytes == 0
    assert not bench.output(job.key).exists()


def test_beyond_the_cap_output_is_counted_and_dropped(bench: Bench) -> None:
    job = bench.shell("printf 0123456789; sleep 0.05; printf abcdef", output_cap_bytes=12, tail_bytes=4)
    ending = bench.ended(job)
    assert bench.output(job.key).read_text() == "0123456789ab"
    assert (ending.output_bytes, ending.output_dropped, ending.tail) == (16, 4, "cdef")


def test_much_output_passes_through(bench: Bench) -> None:
    job = bench.shell("head -c 50000000 /dev/zero; echo done", output_cap_bytes=20_000_000, tail_bytes=5)
    ending = bench.ended(job)
    assert (ending.output_bytes, ending.output_dropped) == (50_000_005, 30_000_005)
    assert ending.tail == "done\n"
    assert bench.output(job.key).stat().st_size == 20_000_000


def test_binary_output_becomes_text_and_the_tail_begins_with_a_whole_character(bench: Bench) -> None:
    assert bench.ended(bench.shell(r"printf '\377ok'")).tail == "\ufffdok"
    assert bench.ended(bench.shell("printf äöü", tail_bytes=3)).tail == "ü"


def test_an_output_file_that_cannot_be_written_does_not_stop_the_job(bench: Bench) -> None:
    job = bench.shell("echo said", cwd="/")
    bench.output(job.key).mkdir()
    ending = bench.ended(job)
    assert (ending.kind, ending.exit_code, ending.tail, ending.output_dropped) == ("exited", 0, "said\n", 5)
    assert "EISDIR" in ending.message


@pytest.mark.parametrize(
    "taking", ["mkfifo {0}", "ln -s {0}.other {0}", "ln {0}.other {0}", "mkfifo {0}; cat {0} & sleep 0.05"]
)
def test_what_a_job_puts_in_the_place_of_its_output_holds_nobody_up(bench: Bench, taking: str) -> None:
    """A pipe without a reader held the supervisor, so the task was charged a crash and ran again. Names-f: a second
    name of another file was emptied, and got the output.
    """
    job = bench.shell(". ./taking; echo said; exec sleep 99", timeout_s=0.5)
    place = bench.output(job.key)
    place.with_name("taking").write_text(taking.format(place))
    other = place.with_name(f"{place.name}.other")
    other.write_text("of somebody else")
    ending = bench.ended(job)
    assert (ending.kind, ending.tail, ending.output_dropped) == ("timeout", "said\n", 5)
    assert other.read_text() == "of somebody else"


def test_output_is_kept_where_its_folder_was_when_the_job_began(bench: Bench) -> None:
    """Another folder of that name may be a file system that never answers: the supervisor must not look there."""
    job = bench.shell(f"mv {bench.where} {bench.where}.old; mkdir {bench.where}; echo said", stall_s=60)
    ending = bench.ended(replace(job, progress_path=f"{bench.where}/progress.json"))
    assert (ending.exit_code, ending.tail, ending.output_dropped) == (0, "said\n", 0)
    kept = Path(f"{bench.where}.old")
    assert (kept / bench.output(job.key).name).read_text() == "said\n"
    assert list(bench.where.iterdir()) == []


def test_a_job_that_closes_its_output_is_still_waited_for_without_spinning(bench: Bench) -> None:
    bench.runner.start(bench.shell("exec >&- 2>&-; sleep 0.5; exit 4"))
    (child,) = [slot.process.pid for slot in bench.runner._live]
    ending = bench.next()
    assert ending.exit_code == 4
    with open(f"/proc/{child}/stat") as file:
        ticks = sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
    assert ticks / os.sysconf("SC_CLK_TCK") < 0.25


def test_many_quick_jobs_over_four_slots(bench: Bench) -> None:
    waiting = [bench.shell(f"echo {number}; exit {number % 7}") for number in range(200)]
    expected = {job.key: (number % 7, f"{number}\n") for number, job in enumerate(waiting)}
    found: dict[str, tuple[int | None, str]] = {}
    while len(found) < 200:
        while waiting and len(bench.runner.running()) < 4:
            bench.runner.start(waiting.pop())
        for ending in endings(bench.runner, 1):
            found[ending.key] = (ending.exit_code, ending.tail)
    assert found == expected
    assert len(bench.runner._live) <= 4


def test_slots_and_keys_are_guarded(bench: Bench) -> None:
    runner = Runner(1)
    job = bench.shell("sleep $MARK")
    runner.start(job)
    with pytest.raises(ValueError, match="already running"):
        runner.start(job)
    (ending,) = runner.close(0)
    assert (ending.key, ending.kind) == (job.key, "stopped")
    assert bench.marked() == []


def test_running_and_usage_follow_the_jobs(bench: Bench) -> None:
    job = bench.shell("sleep $MARK")
    bench.runner.start(job)
    assert bench.runner.running() == {job.key}

    def reported() -> bool:
        bench.runner.wait(0.2)
        return bench.runner.usage()[job.key] > 0

    eventually(reported)
    bench.runner.stop(job.key, "enough", 0)
    bench.runner.wait(10)
    assert bench.runner.running() == {job.key}, "an ending that nobody polled is still ours to tell"
    assert bench.next().kind == "stopped"
    assert bench.runner.running() == set()
    assert bench.runner.usage() == {}


def test_wake_interrupts_a_wait_from_another_thread(bench: Bench) -> None:
    began = time.monotonic()
    timer = threading.Timer(0.05, bench.runner.wake)
    timer.start()
    bench.runner.wait(30)
    timer.join()
    assert time.monotonic() - began < 10
    bench.runner.wait(0)  # and it rings only once: this one runs its time
    began = time.monotonic()
    bench.runner.wait(0.05)
    assert time.monotonic() - began >= 0.05


def test_prestart_makes_supervisors_that_are_used(bench: Bench) -> None:
    bench.runner.prestart(9)
    warm = [slot.process.pid for slot in bench.runner._live]
    assert len(warm) == 4
    ending = bench.ended(bench.shell("echo $PPID"))
    launcher = process_tree.look(int(ending.tail))
    assert launcher is not None
    assert launcher.parent in warm


def test_a_supervisor_killed_while_idle_is_replaced_unnoticed(bench: Bench) -> None:
    bench.runner.prestart(1)
    (slot,) = bench.runner._live
    slot.process.kill()
    eventually(lambda: slot.process.poll() is not None)
    assert bench.ended(bench.shell("exit 5")).exit_code == 5


def test_what_cannot_be_a_job_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="needs a program"):
        Command(())
    with pytest.raises(ValueError, match="module:function"):
        Call("no_colon")
    with pytest.raises(ValueError, match="absolute"):
        Job("k.1", Command(("true",)), {}, "here", "/tmp/log")


def test_environment_bytes_that_are_no_text_survive(bench: Bench) -> None:
    raw = b"\xff\xfe".decode("utf-8", "surrogateescape")
    script = "import os; print(os.environb[b'RAW'])"
    ending = bench.ended(bench.job(Command((sys.executable, "-c", script)), env=environment(RAW=raw)))
    assert ending.tail == "b'\\xff\\xfe'\n"


def test_a_stop_that_comes_before_the_program_is_heard_at_once(bench: Bench) -> None:
    bench.ended(bench.shell("true"))
    # On one CPU a parent goes on before its child does.
    [cpu, *_] = os.sched_getaffinity(0)
    for slot in bench.runner._live:
        os.sched_setaffinity(slot.process.pid, {cpu})
    for _ in range(20):
        job = bench.job(Command(("sleep", bench.mark)))
        bench.runner.start(job)
        bench.runner.stop(job.key, "changed our mind", 60.0)
        ending = bench.next()  # in less than the grace
        assert ending.kind == "stopped"
    assert not bench.marked()
