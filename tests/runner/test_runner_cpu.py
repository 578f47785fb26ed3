"""CPU time: all that an attempt used is counted, whoever used it, and none of what another one did."""

from pathlib import Path

from spoold.runner.job import Call
from tests.runner.processes import Bench

ROOT = str(Path(__file__).resolve().parents[2])
BURN = "import time\nwhile time.process_time() < {}: pass\n"


def burnt(bench: Bench, *arguments: float) -> float:
    ending = bench.ended(bench.job(Call("tests.runner.callables:burn", arguments, path=(ROOT,))))
    assert (ending.kind, ending.exit_code) == ("exited", 0)
    assert ending.cpu_s is not None
    return ending.cpu_s


def test_a_commands_children_count(bench: Bench) -> None:
    (bench.where / "burn.py").write_text(BURN.format(0.3))
    ending = bench.ended(bench.shell("python3 burn.py; python3 burn.py & wait"))
    assert ending.cpu_s is not None
    assert 0.6 <= ending.cpu_s < 1.6


def test_orphans_and_what_is_killed_count(bench: Bench) -> None:
    (bench.where / "burn.py").write_text(BURN.format(60))
    script = "(setsid python3 burn.py &) ; python3 burn.py & sleep 60"
    ending = bench.ended(bench.shell(script, timeout_s=1.5, grace_s=0))
    assert ending.kind == "timeout"
    assert ending.cpu_s is not None
    assert 0.5 < ending.cpu_s < 4


def test_a_warm_process_counts_each_call_apart(bench: Bench) -> None:
    first, second = burnt(bench, 0.4), burnt(bench, 0.0)
    assert first >= 0.4
    assert second < 0.2
    assert burnt(bench, 0.1, 0.3) >= 0.4


def test_a_call_that_is_killed_counts_without_those_before(bench: Bench) -> None:
    assert burnt(bench, 0.6) >= 0.6
    call = Call("tests.runner.callables:burn", (60.0,), path=(ROOT,))
    ending = bench.ended(bench.job(call, timeout_s=0.5, grace_s=0))
    assert ending.kind == "timeout"
    assert ending.cpu_s is not None
    assert 0 < ending.cpu_s < 0.6  # on a busy machine it gets little of the half second


def test_what_never_began_used_nothing(bench: Bench) -> None:
    ending = bench.ended(bench.shell("", cwd="/nowhere"))
    assert (ending.kind, ending.cpu_s) == ("spawn_failed", 0.0)
