"""`spool tell` in a real pool: an agent that has ended its turn hears of it before its work is judged."""

from __future__ import annotations

import sys

from spoold.client.spool_client import SpoolClient
from tests.e2e.conftest import MakePool
from tests.e2e.pool import SETTINGS, Pool, wait_for

# Its first turn ends once its worker has brought something; each prompt is kept, and the last one becomes its work.
AGENT = """
import os, sys, time
seen, prompt = sys.argv[1], sys.stdin.read()
task = os.environ["SPOOL_TASK_ID"] + "." + os.environ["SPOOL_ATTEMPT"]
turn = len([name for name in os.listdir(seen) if name.startswith(task)]) + 1
with open(os.path.join(seen, f"{task}.{turn}.new"), "w") as file:
    file.write(prompt)
os.rename(file.name, file.name[:-4])
told = os.environ["SPOOL_TOLD_FILE"]
while turn == 1 and not (os.path.exists(told) and os.path.getsize(told)):
    time.sleep(0.02)
open("page.md", "w").write(prompt)
print('SPOOL:SESSION {"id": "s-1"}')
print('SPOOL:COMPLETED {"text": "turn %d"}' % turn)
"""
PROFILE = """
[agents.writer]
cli = "generic"
command = ["{python}", "{script}", "{seen}"]
accept = ["grep -q v2 page.md"]
"""


def begin(pool: Pool) -> None:
    seen, script = pool.path("seen"), pool.path("agent.py")
    seen.mkdir()
    script.write_text(AGENT)
    pool.path("worker.toml").write_text(PROFILE.format(python=sys.executable, script=script, seen=seen))
    pool.env["XDG_STATE_HOME"] = str(pool.path("state"))
    pool.master()
    pool.worker("w", "--config", str(pool.path("worker.toml")), slots=2)
    pool.ready("w")


def prompts(pool: Pool, attempt: str) -> list[str]:
    found = sorted(path for path in pool.path("seen").glob(f"{attempt}.*") if path.suffix != ".new")
    return [path.read_text() for path in found]


def test_an_agent_is_told_before_its_work_is_judged(make_pool: MakePool) -> None:
    pool = make_pool(SETTINGS)
    begin(pool)
    pool.drop("page.json", {"id": "page", "agent": "writer", "prompt": "Write it."})
    wait_for(lambda: prompts(pool, "page.1"), "the agent works")
    pool.cli("tell", "page", "Use the v2 API, not v1.")
    wait_for(lambda: pool.ended("page"), "it has ended")
    (result,) = pool.results("page")
    assert (result["status"], result["output"]["text"]) == ("success", "turn 2"), result
    (first, second) = prompts(pool, "page.1")
    assert first == "Write it."
    assert "Use the v2 API, not v1." in second
    (told,) = pool.json("show", "page")["told"]
    assert (told["text"], told["attempts"], "@" in told["by"]) == ("Use the v2 API, not v1.", [1], True)
    wait_for(lambda: any(one["event"] == "ASKED" for one in history(pool, "page")), "the leader has noted it")
    wait_for(lambda: any(one["event"] == "TOLD" for one in history(pool, "page")), "the journal has it")
    wait_for(lambda: not pool.listing("control"), "nothing is left of it")
    assert "its agent is gone" in pool.run("tell", "page", "more").stderr
    pool.fsck()


def test_a_waiting_task_is_told_with_its_prompt(make_pool: MakePool) -> None:
    pool = make_pool(SETTINGS)
    begin(pool)
    pool.drop("page.json", {"id": "page", "agent": "writer", "prompt": "Write it.", "hold": "wait"})
    wait_for(lambda: pool.json("show", "page")["state"] == "waiting", "it waits")
    with SpoolClient(pool.root) as spool:
        spool.tell("page", "Use v2.")
    pool.cli("release", "page")
    wait_for(lambda: prompts(pool, "page.1"), "the agent works")
    assert "Use v2." in prompts(pool, "page.1")[0]
    wait_for(lambda: pool.ended("page"), "it has ended")
    assert pool.results("page")[-1]["output"]["told"][0]["text"] == "Use v2."


def history(pool: Pool, task: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = pool.json("history", task)["history"]
    return found
