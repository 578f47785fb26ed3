"""Runner: a job that takes too long, too much, or is not wanted any more is ended with all that it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spoold.runner import process_tree
from spoold.runner.job import Call, Command, Job
from spoold.runner.running_job import Run, Weight
from tests.runner.processes import Bench, eventually

ROOT = str(Path(__file__).resolve().parents[2])

# Ignores SIGTERM, and so does a grandchild that left the session, the process group and the environment, and whose
# parents are gone.
STUBBORN = (
    "trap '' TERM; "
    "setsid env -i /bin/sh -c \"trap '' TERM; (setsid sleep $MARK &) ; sleep $MARK & exit\" & "
    "sleep $MARK; sleep $MARK"
)


def test_a_timeout_kills_whatever_ignores_it_and_hides(bench: Bench) -> None:
    job = bench.shell(STUBBORN, timeout_s=0.4, grace_s=0.3)
    bench.runner.start(job)
    eventually(lambda: len(bench.marked()) >= 4)
    ending = bench.next()
    assert bench.marked() == []
    assert (ending.kind, ending.exit_code, ending.signal) == ("timeout", None, signal.SIGKILL)
    assert ending.message == "timed out after 0.4 s"
    assert 0.7 <= ending.duration_s < 3


def test_what_a_finished_command_leaves_is_killed(bench: Bench) -> None:
    ending = bench.ended(bench.shell(f"({STUBBORN}) & sleep 0.2; exit 6"))
    assert bench.marked() == []
    assert (ending.kind, ending.exit_code) == ("exited", 6)


def test_a_tree_that_listens_ends_in_its_grace(bench: Bench) -> None:
    # The shell goes at once; its child still has the time to put things in order.
    child = "trap 'sleep 0.2; echo tidy; exit' TERM; echo up; while :; do sleep 0.02; done"
    bench.runner.start(job := bench.shell(f'sh -c "{child}" & wait'))
    eventually(lambda: bench.output(job.key).exists())
    bench.runner.stop(job.key, "cancelled", 20)
    ending = bench.next()
    assert (ending.kind, ending.message) == ("stopped", "stopped: cancelled")
    assert ending.tail.endswith("tidy\n")
    assert ending.duration_s < 10


def test_a_grace_may_be_cut_short_after_the_program_itself_has_ended(bench: Bench) -> None:
    # As when the claim is taken away while the task is being cancelled.
    child = "trap '' TERM; echo up; sleep $MARK"
    bench.runner.start(job := bench.shell(f'echo $$ >pid; trap exit TERM; sh -c "{child}" & wait'))
    eventually(lambda: bench.output(job.key).exists())
    bench.runner.stop(job.key, "cancelled", 60)
    pid = int((bench.where / "pid").read_text())
    eventually(lambda: process_tree.look(pid) is None)
    assert bench.runner.poll() == []
    bench.runner.stop(job.key, "its claim was taken away", 0)
    assert bench.next().message == "stopped: cancelled"
    assert bench.marked() == []


def test_a_weighing_that_took_long_does_not_keep_the_supervisor_from_looking(tmp_path: Path) -> None:
    """It would miss a stall, and its silence would be taken for death."""
    job = Job("a.1", Command(("true",)), {}, "/", str(tmp_path / "log"), memory_bytes=1000)
    run = Run(job.to_wire())
    run.hear({"key": run.key, "weighed": (500, 0), "took_s": 60.0})
    now = time.monotonic()
    assert run.due <= now + 2.0
    assert not run.may_be_weighed(now + 1000)
    assert run.may_be_weighed(now + 2000)


def test_the_term_signal_arrives_once(bench: Bench) -> None:
    script = (
        "import signal, time; n = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: n.append(1))\n"
        "print('up', flush=True)\n"
        "while not n: time.sleep(0.01)\n"
        "time.sleep(0.2); print(len(n))"
    )
    bench.runner.start(job := bench.python(script))
    eventually(lambda: bench.output(job.key).exists())
    bench.runner.stop(job.key, "cancelled", 20)
    ending = bench.next()
    assert (ending.kind, ending.exit_code, ending.tail) == ("stopped", 0, "up\n1\n")


def test_a_stopped_process_hears_the_term_signal(bench: Bench) -> None:
    bench.runner.start(job := bench.shell("trap 'echo heard; exit 3' TERM; echo up; kill -STOP $$; sleep $MARK"))
    eventually(lambda: bench.output(job.key).exists())
    bench.runner.stop(job.key, "cancelled", 20)
    ending = bench.next()
    assert (ending.exit_code, ending.tail) == (3, "up\nheard\n")


def test_stop_without_grace_kills_at_once(bench: Bench) -> None:
    bench.runner.start(job := bench.shell(STUBBORN))
    eventually(lambda: len(bench.marked()) >= 4)
    bench.runner.stop(job.key, "lost its claim", 0)
    assert bench.next().message == "stopped: lost its claim"
    assert bench.marked() == []


def test_a_second_stop_can_only_hasten_the_end(bench: Bench) -> None:
    bench.runner.start(job := bench.shell(STUBBORN))
    eventually(lambda: len(bench.marked()) >= 4)
    bench.runner.stop(job.key, "drain", 60)
    bench.runner.stop(job.key, "hurry", 0.1)
    ending = bench.next()
    assert ending.message == "stopped: drain"
    assert ending.duration_s < 10


def test_stopping_what_does_not_run_is_no_error(bench: Bench) -> None:
    bench.runner.stop("nobody.1", "cancelled", 0)
    assert bench.ended(bench.shell("exit 2")).exit_code == 2


def test_memory_is_counted_over_the_whole_tree(bench: Bench) -> None:
    eat = "import time; block = b'x' * 60_000_000; time.sleep(60)"
    script = f'for i in 1 2 3; do setsid {sys.executable} -c "{eat}" $MARK & done; wait'
    ending = bench.ended(bench.shell(script, memory_bytes=150 << 20))
    assert ending.kind == "oom"
    assert ending.max_rss_bytes > 150 << 20
    assert "150 MiB are allowed" in ending.message
    assert bench.marked() == []


def test_memory_that_processes_share_counts_once(bench: Bench) -> None:
    # The children are forked, so they hold the parent's block, too: four times 100 MB for those who add up.
    script = (
        "import os, time\nblock = b'x' * 100_000_000\nparent = os.getpid()\n"
        "for _ in range(3):\n    if os.getpid() == parent: os.fork()\n"
        "time.sleep(2.5)\nif os.getpid() == parent:\n    for _ in range(3): os.wait()\n"
    )
    ending = bench.ended(bench.python(script, memory_bytes=200 << 20))
    assert (ending.kind, ending.exit_code) == ("exited", 0)
    assert 100_000_000 < ending.max_rss_bytes < 200 << 20


def test_a_call_that_forks_shares_its_memory(bench: Bench) -> None:
    call = Call("tests.runner.callables:fork_idle", (100_000_000, 3, 1.5), path=(ROOT,))
    ending = bench.ended(bench.job(call, memory_bytes=200 << 20))
    assert (ending.kind, ending.value) == ("exited", 3)


def test_a_call_that_holds_too_much_is_killed(bench: Bench) -> None:
    began = time.monotonic()
    call = Call("tests.runner.callables:hold", (300_000_000, 60), path=(ROOT,))
    ending = bench.ended(bench.job(call, memory_bytes=200 << 20))
    assert ending.kind == "oom"
    assert time.monotonic() - began < 5


def test_one_sample_above_the_cap_kills_nothing() -> None:
    weight = Weight(100)
    weight.weigh(150, 0)
    assert weight.excess == ""
    assert not weight.look(90)
    weight.weigh(150, 0)
    assert weight.excess == ""
    weight.weigh(150 << 20, 0)
    assert weight.excess == "used 150 MiB of memory, 0 MiB are allowed"
    assert weight.peak == 150 << 20


def test_what_cannot_be_weighed_counts_whole_and_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "_ROLLUP", "/proc/{}/nothing-of-that-name")
    seen = process_tree.look(os.getpid())
    assert seen is not None
    share, unread = process_tree.share_of([os.getpid()])
    assert unread == 1
    assert share == pytest.approx(seen.rss, rel=0.2)
    weight = Weight(1)
    weight.weigh(share, unread)
    weight.weigh(share, unread)
    assert "memory that 1 of its processes share with others is counted more than once" in weight.excess


def test_a_process_that_is_gone_weighs_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert process_tree.share_of([process.pid]) == (0, 0)


def test_below_the_cap_memory_is_only_reported(bench: Bench) -> None:
    ending = bench.ended(bench.python("block = b'x' * 60_000_000", memory_bytes=300 << 20))
    assert (ending.kind, ending.exit_code) == ("exited", 0)
    assert 60_000_000 < ending.max_rss_bytes < 120_000_000


def test_silence_for_too_long_is_a_stall(bench: Bench) -> None:
    ending = bench.ended(bench.shell("echo up; sleep $MARK", stall_s=0.3, grace_s=0))
    assert ending.kind == "stalled"
    assert 0.3 <= ending.duration_s < 5
    assert bench.marked() == []


@pytest.mark.parametrize("sign", ["echo tick", "echo tick >> progress"])
def test_output_or_progress_is_no_stall(bench: Bench, sign: str) -> None:
    script = f"for i in 1 2 3 4 5 6 7 8 9 10; do {sign}; sleep 0.08; done"
    job = bench.shell(script, stall_s=0.4, progress_path=str(bench.where / "progress"))
    ending = bench.ended(job)
    assert (ending.kind, ending.exit_code) == ("exited", 0)
    assert ending.duration_s > 0.8


def test_a_process_that_restarts_itself_faster_than_it_is_seen_dies(bench: Bench) -> None:
    # Each generation leaves the session, starts the next and ends: no look at /proc shows who is there next.
    hop = "import os\nif os.fork():\n os._exit(0)\nwhile True:\n if os.fork(): os._exit(0)\n os.setsid()\n"
    ending = bench.ended(bench.python(f"{hop}#{bench.mark}"))
    assert ending.exit_code == 0
    assert ending.survivors == ()
    assert bench.marked() == []


def test_processes_that_restart_each_other_die(bench: Bench) -> None:
    script = bench.where / "guard.sh"
    script.write_text('trap "" TERM\nwhile :; do setsid sh -c "sleep $1; sleep $1" & wait $!; done\n')
    bench.runner.start(job := bench.shell(f"sh {script} $MARK & setsid sh {script} $MARK & wait"))
    eventually(lambda: len(bench.marked()) >= 6)
    bench.runner.stop(job.key, "cancelled", 0.1)
    assert bench.next().survivors == ()
    assert bench.marked() == []
