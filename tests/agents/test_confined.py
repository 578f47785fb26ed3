"""An attempt of an agent in a sandbox: it works, sees no spool, and its work is judged in there, too."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.adapters import known_agents
from spoold.agents.adapters.adapter import Errand, Start
from spoold.agents.configuration.profiles import expand
from spoold.agents.process import program, turns
from spoold.agents.process.confinement import Confined, SandboxConfig, hint, unshown
from spoold.agents.process.program import leave_keyring
from spoold.agents.sandbox import private_home, sandbox_policy
from spoold.agents.sandbox.launch import Entered
from spoold.protocol.errors import BadFile
from tests.agents.attempts import Desk
from tests.agents.workspace.repos import Remote, git

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


KNOCKS = """
import os, socket, sys
host, _, port = os.environ["HTTPS_PROXY"].rpartition("/")[2].partition(":")
with socket.create_connection((host, int(port))) as way:
    way.sendall(b"CONNECT pypi.org:443 HTTP/1.1\\r\\n\\r\\n")
    way.recv(1000)
sys.exit("it said 403")
"""


def test_an_attempt_that_failed_names_what_its_sandbox_refused(tmp_path: Path, bubblewrap: None) -> None:
    """Of a program of one's own, the error was its last line, and nothing named the list."""
    made = desk(tmp_path)
    (tmp_path / "tools" / "agent.py").write_text(KNOCKS)
    sandbox = {**made.profile["sandbox"], "network": "proxy", "hosts": ["api.example.com"]}
    made.profile = {**made.profile, "sandbox": sandbox}
    ended = made.run(prompt="x")
    assert ended.result["outcome"] == "failed", ended.said
    [reason] = ended.result["reasons"]
    assert "it said 403" in reason
    assert 'pypi.org:443 is not in the list of hosts of this sandbox. Fix: add "pypi.org" to hosts' in reason


TOOL = "#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize("part", ["accept", "setup"])
def test_a_program_that_the_worker_has_and_the_sandbox_does_not_show_is_named_and_nobody_is_paid_again(
    tmp_path: Path, bubblewrap: None, part: str
) -> None:
    """It was told as `exit code 127`, and the agent began again, three times."""
    folder = tmp_path / "opt"
    folder.mkdir()
    tool = folder / "mytool"
    tool.write_text(TOOL)
    tool.chmod(0o755)
    remote = Remote(tmp_path)
    place = {"repo": str(remote.path), "dir": str(tmp_path / "spaces")}
    said = {"accept": ["mytool --all"]} if part == "accept" else {}
    made = desk(tmp_path, workspace=place if part == "accept" else {**place, "setup": ["mytool --all"]}, **said)
    made.env = {**made.env, "PATH": f"{folder}:{os.environ['PATH']}"}
    ended = made.run(prompt="x")
    assert (ended.code, ended.result["outcome"]) == (65, "blocked"), ended.said
    [reason] = ended.result["reasons"]
    assert f"mytool is {tool} on this worker, and the sandbox bwrap does not show it; fix: write show = [" in reason
    assert f', "{tool}"] in its sandbox' in reason
    made.env = {**made.env, "SPOOL_ATTEMPT": "2"}
    (tmp_path / "tools" / "agent.py").write_text(
        "raise SystemExit('it was started again')" if part == "accept" else AGENT
    )
    sandbox = {**made.profile["sandbox"], "show": [*made.profile["sandbox"]["show"], str(tool)]}
    made.profile = {**made.profile, "sandbox": sandbox}
    ended = made.run(prompt="x")
    assert (ended.code, ended.result["outcome"]) == (0, "done"), ended.said


def test_what_a_shell_did_not_find_is_named_only_where_this_worker_has_it(tmp_path: Path) -> None:
    tool = tmp_path / "mytool"
    tool.write_text(TOOL)
    tool.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    for line in (
        "sh: 1: mytool: not found",
        "/bin/bash: line 3: mytool: command not found",
        "make: mytool: No such file or directory",
    ):
        said = unshown("bwrap", f"{line}\nmake: *** [all] Error 127", env)
        assert said == (
            f"mytool is {tool} on this worker, and the sandbox bwrap does not show it; "
            f'fix: write sandbox = {{kind = "bwrap", show = ["{tool}"]}}'
        )
        assert unshown({"kind": "bwrap", "show": [str(tmp_path)]}, line, env) == ""
        assert unshown("none", line, env) == unshown("bwrap", line, {"PATH": "/bin"}) == ""
    assert unshown("bwrap", "sh: 1: sh: not found", env) == "", "it is shown anyway"


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


# add_key(2) and request_key(2), whose numbers are those of this machine.
CALLS = {"x86_64": (248, 249), "aarch64": (217, 218)}
LOOKS_FOR_KEY = """
import ctypes, json
found = ctypes.CDLL(None).syscall({}, b"user", b"spoold-test", None, 0)
print("SPOOL:COMPLETED " + json.dumps({{"text": "found" if found > 0 else "none"}}))
"""


def test_keys_of_the_worker_are_not_in_the_sandbox(tmp_path: Path, bubblewrap: None) -> None:
    """G20: bubblewrap keeps the session keyring."""
    add, request = CALLS.get(os.uname().machine, (0, 0))
    if not add or ctypes.CDLL(None).syscall(add, b"user", b"spoold-test", b"key", 3, -3) < 0:
        pytest.skip("this kernel, or what runs the tests, has no keyrings")
    made = desk(tmp_path)
    (tmp_path / "tools" / "agent.py").write_text(LOOKS_FOR_KEY.format(request))
    assert made.run(prompt="x").result["text"] == "none"
    made.profile = {**made.profile, "sandbox": "none"}
    assert made.run(prompt="x").result["text"] == "found", "without a sandbox it is there: the test could fail"


def test_where_the_call_is_not_known_the_keyring_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "TABLES", {})
    leave_keyring()


PLANTS_REPOSITORY = """
import os
for name in ("lib", "other"):
    os.makedirs(name, exist_ok=True)
    try:
        os.mkdir(name + "/.git")
        open(name + "/.git/config", "w").write("[core]\\n fsmonitor = /bin/true\\n")
    except OSError as error:
        print(name, error.strerror)
print("done")
"""


def test_a_submodule_without_a_repository_gets_none_from_an_agent(tmp_path: Path, bubblewrap: None) -> None:
    """The owner's `git status` ran what an agent had put into the empty folder of a submodule."""
    owned = tmp_path / "repo"
    git("init", "-q", str(owned))
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib", cwd=owned)
    (owned / "lib").mkdir()
    made = desk(tmp_path, cwd=str(owned))
    made.cwd = owned
    (tmp_path / "tools" / "agent.py").write_text(PLANTS_REPOSITORY)
    ended = made.run(prompt="x")
    assert "lib" in ended.result["text"], ended.said
    assert not (owned / "lib" / ".git").exists()
    assert (owned / "other" / ".git").exists(), "what it may make, it makes: the script works"


def test_a_file_that_the_sandbox_does_not_show_is_hinted_at() -> None:
    said = "sh: 0: cannot open /srv/agent.sh: No such file"
    assert "what `show` lists" in hint("bwrap", said, {})
    assert "in the sandbox bwrap" in hint({"kind": "bwrap", "show": ["/srv"]}, said, {})
    assert hint("none", said, {}) == hint({}, said, {}) == hint("bwrap", "no key", {}) == ""


ERRAND = Errand("x", "", "", "m", command=("agent",), max_tokens=1, temperature=0.5, trace="http://h/x", max_turns=3)
# Says what holds inside: the variables, what each file has, and whether each log can be written to.
SAYS = """
import json, os, sys
files, logs = json.loads(sys.argv[1])
for log in logs:
    os.makedirs(os.path.dirname(log), exist_ok=True)
    open(log, "a").close()
print(json.dumps([dict(os.environ), {name: open(name).read() for name in files}]))
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that need not be on this machine: podman is not run, and a scope needs no systemd to be passed on."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name, line in (
        ("podman", "exit 1"),
        ("systemd-run", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def scene_of(top: Path, kind: str) -> Iterator[tuple[str, Start, turns.Scene]]:
    """How each agent is started, with its files in place, and a scene in a sandbox of that kind."""
    for cli in known_agents.names():
        place, home = top / cli / "work", top / cli / "home"
        place.mkdir(parents=True)
        home.mkdir()
        start = known_agents.make(cli).start(replace(ERRAND, workspace=str(place), home=str(home)))
        for name, text in start.files.items():
            private_home.put(str(home), name, text)
        made = Confined(
            SandboxConfig.model_validate({"kind": kind, **({"image": "i"} if kind == "podman" else {})}), {}
        )
        made._entered = Entered(
            made._config.asked(), sandbox_policy.SandboxRun(str(place), str(home), calls="/calls.json")
        )
        outside = {"PATH": os.environ["PATH"], "SPOOL_ROOT": "/s", "TMPDIR": "/nowhere", "DISPLAY": ":0"}
        yield cli, start, turns.Scene(made, str(place), str(home), outside, lambda: False, lambda: None)


@pytest.mark.parametrize("kind", ["bwrap", "systemd"])
@pytest.mark.usefixtures("bubblewrap", "tools")
def test_what_an_adapter_says_of_its_program_holds_inside(tmp_path: Path, kind: str) -> None:
    """G14: the place of opencode's log was missing, so nobody saw that it waited for a quota. Of all adapters."""
    for cli, start, scene in scene_of(tmp_path, kind):
        words = ("/usr/bin/python3", "-c", SAYS, json.dumps([list(start.files), start.logs]))
        program = scene.program(replace(start, argv=words, stdin=""))
        said = list[str]()
        while not program.over:
            said += [line for source, line in program.heard(0.2) if source == "out"]
        assert program.code == 0, (cli, program.errors)
        env, files = json.loads("".join(said))
        assert {name: env.get(name) for name in start.env} == start.env, cli
        assert files == start.files, cli
        assert all(os.path.exists(log) for log in start.logs), cli
        assert {name: env.get(name) for name in ("SPOOL_ROOT", "DISPLAY")} == {"SPOOL_ROOT": None, "DISPLAY": None}
        assert env["TMPDIR"] == start.env.get("TMPDIR", "/tmp"), cli


@pytest.mark.usefixtures("tools")
def test_what_an_adapter_says_of_its_program_holds_in_a_container(tmp_path: Path) -> None:
    """G14, where the walls are those of podman: read from its command line."""
    for cli, start, scene in scene_of(tmp_path, "podman"):
        argv, env = scene.wrapped(start)
        words = [word.removeprefix("--env=").partition("=") for word in argv if word.startswith("--env=")]
        inside = {name: value if sign else env[name] for name, sign, value in words}
        assert {name: inside.get(name) for name in start.env} == start.env, cli
        shown = {word.split(":")[1]: word.split(":")[2] for word in argv if word.startswith("--volume=")}
        assert shown[scene.home] == "rw"
        assert all(shown[name] == "ro" for name in start.files), cli
        assert all(name.startswith(scene.home) for name in start.logs), cli
        assert "SPOOL_ROOT" not in inside
