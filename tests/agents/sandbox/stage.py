"""A machine in small around a sandbox: a workspace, a home, and all that an agent must not reach."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from spoold.agents.sandbox import seccomp
from spoold.agents.sandbox.command_line import allowed_calls, wrap
from spoold.agents.sandbox.protected_files import Whose, guarded
from spoold.agents.sandbox.sandbox_policy import SandboxPolicy, SandboxRun

KEY = "-----a private key, not really-----"
NOBODY = 65534


def prepared(program: str, *packages: str) -> str:
    """Install a program where that can be done; '' if it is there then, else why not."""
    if shutil.which(program):
        return ""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"{program} is not installed; as root on Debian: apt-get install {' '.join(packages)}"
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (install, ["update", "-qq"], install):
        subprocess.run(["apt-get", *command], env=environ, capture_output=True, check=False, timeout=300)
        if shutil.which(program):
            return ""
    return f"apt-get could not install {' '.join(packages)}"


class Stage:
    """One such machine; `uid` is whose processes run on it, `walls` the sandbox that is tried. shown: what this needs
    of the machine.
    """

    def __init__(self, uid: int, walls: SandboxPolicy, shown: tuple[str, ...] = ()) -> None:
        self.uid, self.walls, self._shown = uid, walls, shown
        self.top = Path(tempfile.mkdtemp(prefix="spoold-stage-"))
        self.workspace, self.home, self.spool = self.top / "user/work", self.top / "user/agent", self.top / "spool"
        self.keys, self.empty = self.top / "user/.ssh", self.top / "empty"
        self.whose: Whose = "own"
        for folder in (self.workspace, self.home, self.empty, self.spool / "pending", self.keys):
            folder.mkdir(parents=True)
        (self.keys / "id_ed25519").write_text(KEY)
        self.git("init", "-q", "-b", "main")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
        for path in (self.top, *self.top.rglob("*")):
            os.chown(path, uid, uid, follow_symlinks=False)
        environ = {"VICTIM_SECRET": KEY, "PATH": os.environ["PATH"]}
        self.victim = subprocess.Popen(["sleep", "600"], user=uid, group=uid, extra_groups=[], env=environ)
        self.variables: dict[str, str] = {}
        self.code = 0
        program = self.top / "calls.py"
        shutil.copyfile(str(seccomp.__file__), program)
        self._around = {os.path.realpath(sys.executable): "/usr/bin/python3", str(seccomp.__file__): str(program)}

    def scene(self, **more: object) -> SandboxRun:
        """The scene of an agent here."""
        env = {"PATH": "/usr/bin:/bin", "TOP": str(self.top), "VICTIM": str(self.victim.pid), **self.variables}
        own = {
            "hidden": (str(self.spool),),
            "held": guarded(str(self.workspace), self.whose),
            "empty": str(self.empty),
            "calls": allowed_calls(self.walls, str(self.empty.parent)),
        }
        return replace(SandboxRun(str(self.workspace), str(self.home), env), **{**own, **more})  # type: ignore[arg-type]

    def run(self, script: str, sandbox: SandboxPolicy, **more: object) -> str:
        """Run a script of the shell as the agent would, and return what it printed."""
        return self.start(["sh", "-c", script], sandbox, **more)

    def python(self, script: str, sandbox: SandboxPolicy, **more: object) -> str:
        """The same for one of Python, with the Python of the system."""
        return self.start(["/usr/bin/python3", "-I", "-c", script], sandbox, **more)

    def start(self, argv: list[str], sandbox: SandboxPolicy, **more: object) -> str:
        """Run a command as the agent would, and return what it printed."""
        if sandbox.kind != "none" and self._shown:
            more = {**more, "shown": (*self._shown, *more.get("shown", ()))}  # type: ignore[misc]
        wrapped = wrap(sandbox, argv, self.scene(**more))
        done = subprocess.run(
            self.reached(wrapped.argv),
            env=wrapped.env,
            cwd=self.workspace,
            user=self.uid,
            group=self.uid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "bwrap:" not in done.stderr, done.stderr
        assert not done.stderr.startswith("Error: "), done.stderr  # podman's own
        self.code = done.returncode
        return done.stdout

    def reached(self, argv: Sequence[str]) -> list[str]:
        """A sandbox's command with what runs around it where this user can reach it: an interpreter or a checkout in
        the home of root is as good as none to anyone else, whose worker would have come from elsewhere.
        """
        own = self.uid == os.geteuid()
        return [self._around[word] if not own and word in self._around and not _open(word) else word for word in argv]

    def git(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """Run git in the workspace, outside of any sandbox."""
        command = ["git", "-c", "safe.directory=*", "-C", str(self.workspace), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout

    def marked(self, mark: str, program: str = "") -> list[str]:
        """The processes of this machine with this word in their arguments. program: only those that run it."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                said = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in said and (not program or said.startswith(f"{program}\0".encode())):
                found.append(folder.name)
        return found

    def wait_for(self, mark: str, count: int, program: str = "") -> list[str]:
        """Wait until so many such processes run, and return them; fail after 10 s."""
        until = time.monotonic() + 10
        while len(found := self.marked(mark, program)) != count:
            assert time.monotonic() < until, f"of {mark} there are {len(found)}, not {count}"
            time.sleep(0.01)
        return found

    def wait_for_the_end_of(self, mark: str) -> None:
        """Wait until none is left: the kernel ends them, a moment after the sandbox."""
        self.wait_for(mark, 0)

    def close(self) -> None:
        """Remove all of it."""
        self.victim.kill()
        self.victim.wait()
        shutil.rmtree(self.top, ignore_errors=True)


def _open(path: str) -> bool:
    """Whether others may enter all folders above this."""
    return all(parent.stat().st_mode & 0o001 for parent in Path(path).parents)


def runs_with_system_python() -> bool:
    """Whether the scripts of `Stage.python` can run."""
    return Path("/usr/bin/python3").exists() and sys.platform == "linux"
