"""A profile is tried out: what is missing, what does not start, and what a sandbox refuses are told apart."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from spoold.agents.configuration.profiles import VARIABLE, expand, read_back
from spoold.agents.configuration.trial import Tried, check, try_out
from spoold.agents.process import confinement
from spoold.agents.sandbox.launch import probe


def tried(path: Path, said: dict[str, Any], within_s: float = 60) -> Tried:
    """The trial of a profile where only this folder, and that of the shell, is in the PATH."""
    handler = expand({"agents": {"coder": said}}, "w.toml", {})["handlers"]["coder"]
    name, profile = read_back(handler["env"][VARIABLE])
    return try_out(name, profile, {"PATH": f"{path}:/usr/bin:/bin", "HOME": "/home/of/somebody"}, within_s)


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def test_one_that_starts_says_its_version(tmp_path: Path) -> None:
    codex = script(tmp_path / "codex", 'test "$*" = --version && echo "codex-cli 0.169.0"; echo "$HOME" >"$0.home"')
    assert tried(tmp_path, {"cli": "codex"}) == Tried("coder", "codex", "0.169.0", str(codex), "ok")
    home = (tmp_path / "codex.home").read_text().strip()
    assert home != "/home/of/somebody", "it gets a private home, as in an attempt"
    assert not os.path.exists(home), "and nothing is left of it"
    script(tmp_path / "codex", "echo; echo nightly")
    assert tried(tmp_path, {"cli": "codex"}).version == "nightly"


def test_one_that_is_not_there_is_told_with_its_package(tmp_path: Path) -> None:
    found = tried(tmp_path, {"cli": "opencode"})
    assert (found.verdict, found.path) == ("not installed", "")
    assert found.why == "it lacks the program opencode, which is nowhere in its PATH"
    assert "npm install -g opencode-ai" in found.fix
    found = tried(tmp_path, {"cli": "generic", "command": ["/no/agent"]})
    assert (found.verdict, found.why) == ("not installed", "it lacks the program /no/agent")


def test_one_that_may_not_be_executed_is_told_apart(tmp_path: Path) -> None:
    found = tried(tmp_path, {"cli": "generic", "command": [str(script(tmp_path / "agent", "", 0o644))]})
    assert (found.verdict, found.path) == ("unreadable", str(tmp_path / "agent"))
    assert "chmod" in found.fix


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo loading; echo 'no such module' >&2; exit 3", "exit code 3: no such module"),
        ("exit 3", "exit code 3"),
        ("sleep 600 & sleep 600", "it did not end within 0.5 s"),
    ],
)
def test_one_that_does_not_start_is_told_with_its_last_words(tmp_path: Path, text: str, why: str) -> None:
    script(tmp_path / "qwen", text)
    found = tried(tmp_path, {"cli": "qwen"}, 0.5 if "600" in text else 60)
    assert (found.verdict, found.why) == ("does not start", f"`qwen --version` does not start: {why}")
    (tmp_path / "qwen").write_text("#!/no/interpreter\n")
    assert tried(tmp_path, {"cli": "qwen"}).verdict == "does not start"


def test_what_it_leaves_behind_is_ended(tmp_path: Path) -> None:
    # As `spool doctor` calls it: in a process that nobody made the parent of orphans.
    left = tmp_path / "left"
    path = script(
        tmp_path / "agent",
        f"(setsid sh -c 'echo $$ > {left}; exec sleep 300' > /dev/null 2>&1 &)\n"
        f"while ! test -s {left}; do sleep 0.02; done\necho 1.2.3",
    )
    told = (
        "import os, sys; from spoold.agents.configuration.profiles import VARIABLE, expand, read_back\n"
        "from spoold.agents.configuration.trial import try_out\n"
        "said = {'cli': 'generic', 'command': [sys.argv[1]], 'check': [sys.argv[1]]}\n"
        "handler = expand({'agents': {'coder': said}}, 'w.toml', {})['handlers']['coder']\n"
        "print(try_out(*read_back(handler['env'][VARIABLE]), os.environ).verdict)"
    )
    done = subprocess.run([sys.executable, "-c", told, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "ok\n"
    with suppress(psutil.NoSuchProcess):
        assert psutil.Process(int(left.read_text())).status() == psutil.STATUS_ZOMBIE


def test_a_generic_agent_is_started_only_with_its_own_check(tmp_path: Path) -> None:
    agent = script(tmp_path / "agent", f'echo "$*" >>{tmp_path}/started; echo v1.2')
    said = {"cli": "generic", "command": [str(agent)]}
    assert tried(tmp_path, said) == Tried("coder", "generic", "", str(agent), "ok")
    assert not (tmp_path / "started").exists(), "nobody knows what its command would do"
    assert tried(tmp_path, {**said, "check": [str(agent), "--version"]}).version == "1.2"
    assert (tmp_path / "started").read_text() == "--version\n"
    assert tried(tmp_path, {"cli": "generic", "command": ["./agent"]}).verdict == "ok", (
        "each attempt says where it is"
    )


def test_a_sandbox_that_is_not_to_be_had_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "codex", "echo 0.1.2")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = tried(tmp_path, {"cli": "codex", "sandbox": "bwrap"})
    assert (found.verdict, found.why) == ("sandbox refuses", "bwrap is not on this machine")
    assert found.fix == "install the package bubblewrap"
    found = tried(tmp_path, {"cli": "codex", "sandbox": {"kind": "podman", "image": "x"}})
    assert (found.verdict, found.path) == ("sandbox refuses", ""), "the image would bring the program"


@pytest.mark.usefixtures("bubblewrap")
def test_it_starts_within_the_sandbox_of_the_profile(tmp_path: Path) -> None:
    if not probe(confinement.read("bwrap", "x").asked()).ok:
        pytest.skip("bubblewrap does not work here")
    (tmp_path / "secret").write_text("x")
    script(tmp_path / "codex", f"test -e {tmp_path}/secret && exit 9; echo 1.2.3")
    assert tried(tmp_path, {"cli": "codex", "sandbox": "bwrap"}).version == "1.2.3"
    script(tmp_path / "codex", f"cat {tmp_path}/secret")
    found = tried(tmp_path, {"cli": "codex", "sandbox": "bwrap"})
    assert found.verdict == "does not start"
    assert "`show`" in found.fix


def test_one_that_is_older_than_its_recording_starts_and_is_untested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """G37."""
    script(tmp_path / "qwen", "echo 0.15.10")
    found = tried(tmp_path, {"cli": "qwen"})
    assert (found.verdict, found.version) == ("untested", "0.15.10")
    assert "a spent quota, its tokens or its cost may go unseen" in found.why
    assert found.fix == "npm install -g @qwen-code/qwen-code@latest"
    handler = expand({"agents": {"coder": {"cli": "qwen"}}}, "w.toml", {})["handlers"]["coder"]
    assert check({**handler["env"], "PATH": f"{tmp_path}:/usr/bin:/bin"}) == 0, "its worker takes tasks"
    assert capsys.readouterr().out == "0.15.10\n"


@pytest.mark.usefixtures("bubblewrap")
def test_one_whose_sandbox_has_no_network_is_not_ok(tmp_path: Path) -> None:
    """G26: a sandbox without a word on its network has none, and doctor and worker said ok."""
    if not probe(confinement.read("bwrap", "x").asked()).ok:
        pytest.skip("bubblewrap does not work here")
    script(tmp_path / "codex", "echo 1.2.3")
    found = tried(tmp_path, {"cli": "codex", "sandbox": "bwrap"})
    assert (found.verdict, found.version) == ("no network", "1.2.3")
    assert 'hosts = ["api.openai.com"]' in found.fix
    found = tried(tmp_path, {"cli": "codex", "sandbox": {"kind": "bwrap", "network": "none"}})
    assert found.verdict == "ok", "its owner has said so"
    assert "over the network" in found.why


@pytest.mark.usefixtures("bubblewrap")
def test_one_whose_list_lacks_its_model_is_warned_and_its_worker_takes_tasks(tmp_path: Path) -> None:
    """The words said what to add, and the verdict was ok, with exit code 0."""
    if not probe(confinement.read("bwrap", "x").asked()).ok:
        pytest.skip("bubblewrap does not work here")
    script(tmp_path / "codex", "echo 1.2.3")
    listed = {"kind": "bwrap", "network": "proxy", "hosts": ["github.com"]}
    said = {"cli": "codex", "sandbox": listed, "env": {"OPENAI_BASE_URL": "http://localhost:18335/v1"}}
    found = tried(tmp_path, said)
    assert found.verdict == "ok", "its worker takes tasks"
    warned = found.warned([])
    assert (warned.verdict, warned.why) == ("warned", "")
    (seen,) = warned.foreseen
    assert seen.field == "agents.coder.sandbox.hosts"
    assert seen.fix == 'add "localhost:18335" to hosts of the sandbox'
    assert tried(tmp_path, {**said, "sandbox": {**listed, "hosts": ["localhost:18335"]}}).warned([]).verdict == "ok"


def test_the_check_of_the_handler_says_it_to_the_worker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(tmp_path / "codex", "echo codex 4.5.6")
    handler = expand({"agents": {"coder": {"cli": "codex"}}}, "w.toml", {})["handlers"]["coder"]
    assert handler["check"] == [*handler["command"], "check"]
    environ = {**handler["env"], "PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert check(environ) == 0
    assert capsys.readouterr().out == "4.5.6\n"
    script(tmp_path / "codex", "echo broken >&2; exit 1")
    assert check(environ) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("does not start: `codex --version` does not start: exit code 1: broken; fix: ")
    assert check({}) == 1


def test_only_what_can_be_tried_has_a_check(tmp_path: Path) -> None:
    said = {"cli": "generic", "command": ["agent"]}
    for more, checked in (({}, False), ({"check": ["agent", "-v"]}, True), ({"sandbox": "bwrap"}, True)):
        handler = expand({"agents": {"coder": {**said, **more}}}, "w.toml", {})["handlers"]["coder"]
        assert ("check" in handler) is checked
    image = {"kind": "podman", "image": "x"}
    handler = expand({"agents": {"coder": {"cli": "qwen", "sandbox": image}}}, "w.toml", {})["handlers"]["coder"]
    assert "needs" not in handler, "the image brings the program"
