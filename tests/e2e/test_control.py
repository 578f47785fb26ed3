"""What people do to a running cluster: drain, interrupt, halt, pause, cancel, and kill a part of it."""

from __future__ import annotations

import signal
from collections.abc import Callable

import psutil

from tests.e2e.pool import Pool, processes, wait_for


def _holding(pool: Pool, gate: str) -> list[str]:
    """A command that runs until the file is there."""
    return ["sh", "-c", f"while [ ! -e '{pool.path(gate)}' ]; do sleep 0.05; done; echo done"]


def _runs(process: psutil.Process) -> bool:
    """Whether it has not ended; one that has, and that nobody has waited for yet, does not run."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_sigterm_lets_what_runs_end_and_starts_nothing_more(pool: Pool) -> None:
    pool.master()
    worker = pool.worker("leaver", slots=1)
    pool.submit("held", _holding(pool, "go"))
    node = pool.claimed("held")
    pool.submit("next", ["true"])
    worker.signal(signal.SIGTERM)
    wait_for(lambda: pool.json("status")["workers"]["draining"] == 1, "status says that it drains")
    pool.path("go").touch()
    assert worker.ends() == 0
    result = pool.finish("held")
    assert (result["status"], result["attempt"], result["worker_id"]) == ("success", 1, node)
    assert pool.ended("next") is None
    assert pool.nodes("leaver") == []
    assert node not in pool.listing("claimed")
    pool.worker("stayer")
    assert pool.finish("next")["attempt"] == 1
    pool.fsck()


def test_drain_grace_over_hands_back_uncharged(pool: Pool) -> None:
    pool.path("short.toml").write_text("drain_grace_s = 0.5\nkill_grace_s = 0.5\n")
    pool.master()
    worker = pool.worker("leaver", "--config", str(pool.path("short.toml")))
    pool.submit("held", ["sh", "-c", f"[ $SPOOL_ATTEMPT = 2 ] || sleep 60.{pool.mark}"], retry={"max": 0})
    pool.claimed("held")
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 0
    assert not processes(f"60.{pool.mark}")
    pool.worker("stayer")
    result = pool.finish("held")
    assert (result["status"], result["attempt"]) == ("success", 2), "a hand-back costs no retry"
    pool.fsck()


def test_drain_by_command_and_by_name(pool: Pool) -> None:
    pool.master()
    leaver, _ = pool.worker("leaver"), pool.worker("stayer")
    pool.ready("leaver", "stayer")
    pool.cli("drain", "leaver")
    assert leaver.ends() == 0
    tasks = [pool.submit(f"after-{n}", ["true"]) for n in range(4)]
    assert all(pool.finish(task)["worker_id"].startswith("stayer-") for task in tasks)


def test_up_runs_restarts_its_children_and_two_interrupts_end_it(pool: Pool) -> None:
    up = pool.spawn("up", "up", "--workers", "2", "--slots", "1", "--name", "box", "--allow-command")
    pool.ready("box-1", "box-2")
    pool.submit("first", ["true"])
    assert pool.finish("first")["status"] == "success"

    [old] = pool.nodes("box-1")
    children = psutil.Process(up.process.pid).children()
    [victim] = [child for child in children if "box-1" in child.cmdline()]
    victim.kill()
    wait_for(lambda: pool.nodes("box-1") and pool.nodes("box-1") != [old], "the killed worker is back, as another")
    wait_for(lambda: old not in pool.listing("claimed"), "its predecessor is reaped")

    pool.submit("endless", ["sh", "-c", f"sleep 60.{pool.mark}; :"])
    pool.claimed("endless")
    wait_for(lambda: processes(f"60.{pool.mark}"), "it runs")
    everyone = psutil.Process(up.process.pid).children(recursive=True)
    up.signal(signal.SIGINT)
    wait_for(lambda: pool.json("status")["workers"]["alive"] <= 1, "the idle worker has left")
    assert up.running, "what runs may end"
    up.signal(signal.SIGINT)
    assert up.ends(20) == 0
    wait_for(lambda: not processes(f"60.{pool.mark}"), "the task is gone", 2)
    assert not [child for child in everyone if _runs(child)]
    assert pool.tokens("endless")[0].split("/")[0] in ("returned", "waiting", "ready")
    assert pool.listing("claimed") == []
    pool.fsck()


def test_nothing_outlives_an_up_that_was_killed(pool: Pool) -> None:
    up = pool.spawn("up", "up", "--workers", "1", "--slots", "1", "--name", "box", "--allow-command")
    pool.ready("box")
    everyone = psutil.Process(up.process.pid).children(recursive=True)
    assert everyone
    up.kill()
    wait_for(lambda: not [child for child in everyone if _runs(child)], "the children drain and leave")
    assert pool.listing("claimed") == []


def test_up_goes_by_the_spool_and_the_name_in_its_file(pool: Pool) -> None:
    pool.path("lab.toml").write_text(f'spool = "{pool.root}"\nname = "lab"\nallow_command = true\nslots = 1\n')
    del pool.env["SPOOL_DIR"]
    pool.spawn("up", "up", "--config", str(pool.path("lab.toml")))
    pool.ready("lab")


def test_up_ends_when_its_worker_cannot_read_its_file_any_more(pool: Pool) -> None:
    config = pool.path("lab.toml")
    config.write_text('name = "lab"\nallow_command = true\nslots = 1\n')
    up = pool.spawn("up", "up", "--config", str(config))
    pool.ready("lab")
    config.write_text("slots = many\n")
    (worker,) = [child for child in psutil.Process(up.process.pid).children() if "worker" in child.cmdline()]
    worker.kill()
    assert up.ends(20) == 2
    told = pool.told()
    assert told.count("lab.toml: is not TOML") == 1
    assert "no worker can start" in told


def test_halt_kills_what_runs_and_resume_runs_it_again_uncharged(pool: Pool) -> None:
    pool.path("short.toml").write_text("kill_grace_s = 0.5\n")
    pool.master()
    pool.worker("halted", "--config", str(pool.path("short.toml")))
    script = f"[ $SPOOL_ATTEMPT = 1 ] || exit 0; sleep 60.{pool.mark}; :"
    pool.submit("victim", ["sh", "-c", script], retry={"max": 0})
    pool.claimed("victim")
    wait_for(lambda: processes(f"60.{pool.mark}"), "it runs")
    pool.cli("halt", "--reason", "wrong credentials")
    wait_for(lambda: not processes(f"60.{pool.mark}"), "what ran is gone")
    pool.submit("later", ["true"])
    wait_for(lambda: pool.json("status")["tasks"]["waiting"] == 2, "both wait")
    assert pool.json("status")["halted"]
    assert pool.listing("completed") == []
    pool.cli("resume")
    assert pool.finish("victim")["attempt"] == 2
    assert pool.finish("later")["attempt"] == 1


def test_cancel_ends_what_runs_and_frees_its_slot(pool: Pool) -> None:
    pool.path("short.toml").write_text("kill_grace_s = 0.5\n")
    pool.master()
    pool.worker("single", "--config", str(pool.path("short.toml")), slots=1)
    pool.submit("endless", ["sh", "-c", f"trap '' TERM; sleep 60.{pool.mark}; :"])
    pool.submit("child", ["true"], after="endless")
    pool.claimed("endless")
    pool.submit("next", ["true"])
    pool.cli("cancel", "endless")
    result = pool.finish("endless")
    assert (result["status"], result["error"]["code"]) == ("cancelled", "CANCELLED")
    assert pool.finish("next")["status"] == "success"
    assert not processes(f"60.{pool.mark}")
    assert pool.finish("child")["error"]["code"] == "DEPENDENCY_FAILED"


def test_a_cancelled_task_that_waits_never_runs(shared: Pool) -> None:
    shared.submit("unwanted", ["touch", str(shared.path("unwanted"))], after="never-submitted")
    wait_for(lambda: shared.files("waiting"), "it waits")
    shared.cli("cancel", "unwanted")
    assert shared.finish("unwanted")["error"]["code"] == "CANCELLED"
    assert not shared.path("unwanted").exists()


def test_who_may_not_run_commands_leaves_them_alone(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool()
    pool.master()
    pool.spawn("careful", "worker", "--name", "careful", "--slots", "2")
    pool.ready("careful")
    pool.submit("raw", ["true"])
    wait_for(lambda: pool.files("waiting"), "it waits for a worker")
    answer = str(pool.json("explain", "raw"))
    assert "allow-command" in answer or "allow_command" in answer
    pool.worker("bold")
    assert pool.finish("raw")["worker_id"].startswith("bold-")
