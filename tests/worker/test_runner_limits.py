"""Runner: a job that takes too long, too much, or is not wanted any more is ended with all that it started."""

import signal
import sys

import pytest

from tests.worker.processes import Bench, eventually

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
