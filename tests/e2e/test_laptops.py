"""Machines that go to sleep, with a word and without one, told from those that die."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.e2e.pool import Pool, processes, wait_for

NAP, AWAKE = signal.SIGUSR1, signal.SIGUSR2
# As systemd-inhibit: it runs the command that stands last, and the lock is there as long as that lives.
INHIBIT = "#!/bin/sh\nfor command; do :; done\nexec \"$command\" /dev/stdin '{mark}'\n"


def _states(pool: Pool) -> dict[str, str]:
    """What `spool workers` says of each worker, by name."""
    return {node["worker"].rpartition("-")[0]: node["state"] for node in pool.json("workers")["workers"]}


def _asleep(pool: Pool, name: str) -> bool:
    return _states(pool).get(name) == "asleep"


def test_a_worker_that_is_told_of_sleep_hands_back_and_goes_on_when_it_is_awake(pool: Pool) -> None:
    pool.path("laptop.toml").write_text("kill_grace_s = 0.5\n[laptop]\nsleep_grace_s = 0.2\n")
    pool.master()
    laptop = pool.worker("laptop", "--config", str(pool.path("laptop.toml")))
    pool.ready("laptop")
    go = pool.path("go")
    pool.submit("long", ["sh", "-c", f"until [ -e '{go}' ]; do sleep 0.05; done; : {pool.mark}"])
    node = pool.claimed("long")
    laptop.signal(NAP)
    wait_for(lambda: _asleep(pool, "laptop"), "it is asleep")
    assert processes(pool.mark) == []
    [result] = pool.results("long")
    assert (result["status"], result["error"]["code"]) == ("handed_back", "HANDED_BACK")
    assert wait_for(lambda: ".a2f0c0." in "".join(pool.tokens("long")), "it waits for another, at no charge")
    assert "asleep" in _verdict(pool, "long")
    go.touch()
    laptop.signal(AWAKE)
    done = pool.finish("long")
    assert (done["attempt"], done["worker_id"]) == (2, node), "it went on under its own name"
    pool.fsck()


def _verdict(pool: Pool, task_id: str) -> str:
    """What `spool explain` says first, once the task is ready again."""
    wait_for(lambda: any(path.startswith("ready/") for path in pool.tokens(task_id)), f"{task_id} is ready")
    verdict: str = pool.json("explain", task_id)["verdict"]
    return verdict


def test_a_sleeper_that_stops_beating_stays_asleep_and_is_not_reaped(pool: Pool) -> None:
    pool.master()
    laptop = pool.worker("laptop")
    pool.worker("other")
    pool.ready("laptop", "other")
    laptop.signal(NAP)
    wait_for(lambda: _asleep(pool, "laptop"), "it is asleep")
    [node] = pool.nodes("laptop")
    # As far as the share can tell, this is a machine that sleeps.
    laptop.signal(signal.SIGSTOP)
    [beat] = [file for file in pool.listing("heartbeats") if file.startswith(f"{node}.")]
    # The other one dies meanwhile: when it is reaped, a silence of that length has passed.
    [other] = [daemon for daemon in pool.daemons if daemon.label == "other"]
    other.kill()
    wait_for(lambda: not pool.nodes("other"), "the silent one that said nothing is reaped")
    counts = pool.json("status")["workers"]
    assert (counts["asleep"], counts["alive"]) == (1, 0)
    assert beat in pool.listing("heartbeats")
    assert node in pool.listing("claimed")
    assert f"asleep since {pool.json('workers')['workers'][0]['since']}" in pool.cli("workers")
    laptop.signal(signal.SIGCONT)
    laptop.signal(AWAKE)
    pool.submit("after", ["true"])
    assert pool.finish("after")["worker_id"] == node


def test_all_of_spool_up_goes_to_sleep_and_its_master_resigns(pool: Pool) -> None:
    up = pool.spawn("up", "up", "--slots", "1", "--allow-command", "--name", "laptop")
    pool.ready("laptop")
    leader = pool.leader()
    up.signal(NAP)
    wait_for(lambda: pool.leader() is None, "the leader has resigned")
    wait_for(lambda: _asleep(pool, "laptop"), "its worker is asleep")
    assert leader not in pool.nodes("m-laptop")
    standby = pool.master("desk")
    wait_for(lambda: pool.leader() is not None, "another one leads at once")
    assert str(pool.leader()).startswith("m-desk-")
    up.signal(AWAKE)
    pool.submit("after", ["true"])
    assert pool.finish("after")["status"] == "success"
    assert standby.running
    assert up.running


def test_the_machine_is_kept_awake_by_a_child_that_dies_with_its_worker(pool: Pool) -> None:
    program = pool.path("bin") / "systemd-inhibit"
    program.parent.mkdir()
    mark = f"inhibitor-{pool.mark}"
    program.write_text(INHIBIT.format(mark=mark))
    program.chmod(0o755)
    pool.env["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    pool.path("laptop.toml").write_text("[laptop]\ninhibit_sleep = true\n")
    pool.master()
    worker = pool.worker("laptop", "--config", str(pool.path("laptop.toml")))
    pool.ready("laptop")
    assert processes(mark) == []
    pool.submit("long", ["sleep", f"60.{pool.mark}"])
    wait_for(lambda: len(processes(mark)) == 1, "the machine is kept awake")
    worker.kill()
    wait_for(lambda: not processes(mark), "nothing keeps it awake any more")


def test_where_sleep_cannot_be_inhibited_a_note_says_so(pool: Pool, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "systemd-inhibit"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'Failed to inhibit: Access denied' >&2\nexit 1\n")
    program.chmod(0o755)
    pool.env["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    pool.path("laptop.toml").write_text("[laptop]\ninhibit_sleep = true\n")
    pool.master()
    pool.worker("laptop", "--config", str(pool.path("laptop.toml")))
    pool.ready("laptop")
    pool.submit("long", ["sleep", "2"])
    wait_for(lambda: "Access denied" in pool.cli("workers"), "`spool workers` says it")
    assert pool.finish("long")["status"] == "success"
