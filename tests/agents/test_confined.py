"""An attempt of an agent in a sandbox: it works, sees no spool, and its work is judged in there, too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.confined import hint
from spoold.agents.profiles import expand
from spoold.protocol.errors import BadFile
from tests.agents.attempts import Desk

AGENT = """
import json, os, sys
prompt = sys.stdin.read()
seen = {
    "spool": os.path.exists(prompt.strip()),
    "root": os.environ.get("SPOOL_ROOT"),
    "task": json.load(open(os.environ["SPOOL_TASK_FILE"]))["id"],
    "secret": os.environ.get("KEY"),
    "result": os.environ.get("SPOOL_RESULT_FILE"),
}
open("out.json", "w").write(json.dumps(seen))
print("SPOOL:COMPLETED " + json.dumps({"text": json.dumps(seen)}))
"""


def desk(tmp_path: Path, **profile: Any) -> Desk:
    script = tmp_path / "tools"
    script.mkdir()
    (script / "agent.py").write_text(AGENT)
    spool = tmp_path / "spool"
    spool.mkdir()
    sandbox = {"kind": "bwrap", "show": [str(script), *map(str, Path(sys.executable).resolve().parents[1:2])]}
    said = {"command": [sys.executable, str(script / "agent.py")], "sandbox": sandbox, "env": {"KEY": "k"}}
    return Desk(tmp_path, "", {**said, **profile}, env={"SPOOL_ROOT": str(spool)})


def test_an_agent_in_a_sandbox_works_and_sees_no_spool(tmp_path: Path, bubblewrap: None) -> None:
    made = desk(tmp_path, accept=["test -s out.json", f"test ! -e '{tmp_path}/spool'"])
    ended = made.run(prompt=f"{tmp_path}/spool")
    assert (ended.code, ended.result["outcome"]) == (0, "done"), ended.said
    assert '"spool": false' in ended.result["text"]
    assert '"root": null' in ended.result["text"]
    assert '"secret": "k"' in ended.result["text"]
    assert '"result": null' in ended.result["text"]


def test_a_sandbox_that_would_show_the_spool_is_no_sandbox(tmp_path: Path, bubblewrap: None) -> None:
    made = desk(tmp_path)
    made.profile = {**made.profile, "sandbox": {"kind": "bwrap", "show": [str(tmp_path)]}}
    ended = made.run(prompt="x")
    assert ended.code == 126
    assert "would show the spool" in ended.said


@pytest.mark.parametrize(
    ("sandbox", "field", "why"),
    [
        ("chroot", "agents.coder.sandbox.kind", "'bwrap'"),
        ({"kind": "bwrap", "network": "proxy"}, "agents.coder.sandbox", "hosts"),
        ({"kind": "none", "network": "none"}, "agents.coder.sandbox", "needs a sandbox"),
    ],
)
def test_a_sandbox_that_makes_no_sense_is_told_when_the_worker_starts(sandbox: Any, field: str, why: str) -> None:
    with pytest.raises(BadFile) as caught:
        expand({"agents": {"coder": {"cli": "generic", "command": ["x"], "sandbox": sandbox}}}, "worker.toml")
    assert caught.value.field == field
    assert why in str(caught.value)


PLANTS = """
import os, sys
home = os.environ["HOME"]
if "second" not in sys.stdin.read():
    for name in (".spoold", ".cli", "box", "context"):
        os.symlink(os.environ["VICTIM"], os.path.join(home, name))
    print('SPOOL:FAILED {"reason": "planted"}')
else:
    print('SPOOL:COMPLETED {"text": "' + ",".join(sorted(os.listdir(home))) + '"}')
"""


def test_what_an_agent_leaves_in_its_home_leads_its_next_attempt_nowhere(tmp_path: Path, bubblewrap: None) -> None:
    made = desk(tmp_path, cwd=str(tmp_path / "repo"))
    (tmp_path / "repo").mkdir()
    (tmp_path / "tools" / "agent.py").write_text(PLANTS)
    held = tmp_path / "spool" / "context" / "batch"
    held.mkdir(parents=True)
    (held / "entry").write_text("mine")
    made.env = {**made.env, "SPOOL_BATCH": "batch", "SPOOL_CONTEXT_DIR": str(held)}
    made.cwd = tmp_path / "repo"
    made.profile = {**made.profile, "env": {"VICTIM": str(tmp_path / "spool")}}
    assert made.run(prompt="first").result["reasons"] == ["transient: planted"]
    ended = made.run(prompt="second")
    assert ended.result["text"] == ".cli,.spoold,box,context", ended.said
    assert [path.relative_to(tmp_path / "spool") for path in (tmp_path / "spool").rglob("*")] == [
        Path("context"),
        Path("context/batch"),
        Path("context/batch/entry"),
    ]


def test_a_file_that_the_sandbox_does_not_show_is_hinted_at() -> None:
    said = "sh: 0: cannot open /srv/agent.sh: No such file"
    assert "what `show` lists" in hint("bwrap", said)
    assert "in the sandbox bwrap" in hint({"kind": "bwrap", "show": ["/srv"]}, said)
    assert hint("none", said) == hint({}, said) == hint("bwrap", "no key") == ""
