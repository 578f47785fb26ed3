"""One run in a sandbox: tried out first, and with its way out for as long as it lasts.

A small script in the sandbox tries to get out, and says what it could do. That a program is installed says nothing: a
kernel or its security module may forbid what it needs.

Law: a verdict comes from a run, never from a version or a setting. What did not run did not hold, and nobody enters a
sandbox that did not hold when it was tried out.

Touches: files, processes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from spoold.agents.sandbox import containers
from spoold.agents.sandbox.command_line import allowed_calls, started_with, wrap
from spoold.agents.sandbox.protected_files import guarded
from spoold.agents.sandbox.proxy import Proxy
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxPolicy, SandboxRun, Wrapped
from spoold.system.remover import remove

WITHIN_S = 30.0
_NONSENSE = "what-a-sandbox-must-not-hand-on"

# Each line of the answer is a word: what held says ok-NAME, and so does what has to work.
# Builtins of the shell wherever one will do: a program that an image lacks must not pass for a wall that held.
_SCRIPT = """
t() { if "$@" 2>/dev/null; then echo "ok-$n"; fi; }
f() { if "$@" 2>/dev/null; then :; else echo "ok-$n"; fi; }
write() { ( : >"$1" ) 2>/dev/null; }
wires() {
    while read -r a b; do case "$a" in lo:*|Inter-*|face*) ;; *) return 0;; esac; done </proc/net/dev
    return 1
}
alone() { test -r /proc/net/dev && ! wires; }
rename() { ( read -r h </proc/sys/kernel/hostname && echo "$h" >/proc/sys/kernel/hostname ) 2>/dev/null; }
filtered() {
    while read -r a b; do if [ "$a$b" = Seccomp:2 ]; then return 0; fi; done </proc/self/status
    return 1
}
n=workspace; t write "$W/new"
n=home; t write "$HOME/new"
n=outside; f test -e "$O/secret"
n=spool; f test -e "$S/pending"
n=system; f write /usr/spoold-probe
n=kernel; f rename
n=hooks; f write "$W/.git/hooks/post-commit"
n=settings; mv "$W/new" "$W/moved" && f mv "$W/.git" "$W/.git-other"
n=processes; f kill -0 "$P"
n=environment; f test -n "$SPOOLD_PROBE$DBUS_SESSION_BUS_ADDRESS"
n=network; if [ "$N" = host ]; then t true; else t alone; fi
n=calls; t filtered
n=proxy; if [ "$N" = proxy ]; then t test -S "$X"; else t true; fi
"""
_HELD = {
    "workspace": "the agent cannot write in its workspace",
    "home": "the agent cannot write in its home",
    "outside": "it shows files that nobody asked it to show",
    "spool": "it shows the spool",
    "system": "it lets the agent write in /usr",
    "kernel": "it lets the agent write settings of the kernel",
    "hooks": "it lets the agent write git hooks, which run outside of it",
    "settings": "it lets the agent replace .git, and so its settings",
    "processes": "it lets the agent signal processes outside of it",
    "environment": "it hands on variables that were not passed",
    "network": "it has a network that it must not have",
    "calls": "it has no filter of system calls, so keys of the kernel can be reached",
    "proxy": "its proxy cannot be reached",
}
_FIXES = {
    "bwrap": "as a user without rights: allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
    "user.max_user_namespaces; on Ubuntu an AppArmor profile for bwrap); bubblewrap before 0.8 needs nested = true; "
    "a kernel with CONFIG_SECCOMP_FILTER",
    "systemd": "run the worker where systemd runs, as a user with a session (loginctl enable-linger), "
    "and see that bwrap works",
    "podman": "see that `podman run --rm IMAGE true` works for this user, and that the image has sh and coreutils",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a trial found. failed: the names of what did not hold; words: a sentence for people, with a fix."""

    ok: bool
    kind: str
    words: str
    failed: tuple[str, ...] = ()


def probe(sandbox: SandboxPolicy) -> Verdict:
    """Try a sandbox out on this machine: about 0.1 s, at most WITHIN_S. Errors: none."""
    if sandbox.kind == "none":
        return Verdict(True, "none", "there is no sandbox: the agent may do what its worker's user may")
    try:
        said, trouble = _trial(sandbox)
    except NoSandbox as missing:
        return Verdict(False, sandbox.kind, f"{missing.problem}; fix: {missing.fix}", ("start",))
    except (OSError, subprocess.TimeoutExpired) as error:
        return Verdict(False, sandbox.kind, f"it could not be tried out: {error}", ("start",))
    failed = tuple(name for name in _HELD if f"ok-{name}" not in said)
    if not failed:
        return Verdict(True, sandbox.kind, f"{sandbox.kind} holds, network {sandbox.network}")
    if len(failed) == len(_HELD):
        why, failed = f"{sandbox.kind} does not start: {trouble or 'it says nothing'}", ("start",)
    else:
        why = f"{sandbox.kind} does not hold: {'; '.join(_HELD[name] for name in failed)}"
    return Verdict(False, sandbox.kind, f"{why}; fix: {_FIXES[sandbox.kind]}", failed)


def _trial(sandbox: SandboxPolicy) -> tuple[list[str], str]:
    """Return what the script said, and the end of what went wrong."""
    with ExitStack() as stack:
        top = os.path.realpath(tempfile.mkdtemp(prefix="spoold-probe-"))
        stack.callback(remove, top)
        for name in ("ws/.git/hooks", "home", "out", "spool/pending"):
            os.makedirs(f"{top}/{name}")
        with open(f"{top}/out/secret", "w", encoding="ascii") as file:
            file.write(_NONSENSE)
        way = stack.enter_context(Proxy(sandbox.hosts)).path if sandbox.network == "proxy" else ""
        env = {"W": f"{top}/ws", "O": f"{top}/out", "S": f"{top}/spool", "P": str(os.getpid())}
        env |= {"N": str(sandbox.network), "X": way}
        scene = SandboxRun(
            f"{top}/ws", f"{top}/home", env, hidden=(f"{top}/spool",), way_out=way, held=guarded(f"{top}/ws", "own")
        )
        if sandbox.kind == "podman":
            scene = stack.enter_context(_held(sandbox, scene, top))
        wrapped = wrap(sandbox, ["sh", "-c", _SCRIPT], scene)
        # Podman passes on what its settings say. Bubblewrap passes on all that it is started with: nothing else.
        more = {"SPOOLD_PROBE": _NONSENSE} if sandbox.kind == "podman" else {}
        return _run(wrapped.argv, {**wrapped.env, **more})


def _run(argv: tuple[str, ...], env: Mapping[str, str]) -> tuple[list[str], str]:
    done = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN_S, check=False, text=True
    )
    return done.stdout.split(), " ".join(done.stderr.split())[-300:]


# One run in a sandbox: tried out first, and with its way out for as long as it lasts.


@dataclass(frozen=True, slots=True)
class Entered:
    """A sandbox that holds, ready for the commands of one attempt."""

    sandbox: SandboxPolicy
    scene: SandboxRun
    proxy: Proxy | None = None

    def wrap(self, argv: Sequence[str]) -> Wrapped:
        """Return a command in it. Errors: NoSandbox."""
        return wrap(self.sandbox, argv, self.scene)

    def clear(self) -> None:
        """Remove what a program of it that was ended has left outside of its processes. Errors: none."""
        if self.sandbox.kind == "podman":
            containers.clear(started_with(self.sandbox), self.scene.holder)

    @property
    def refused(self) -> tuple[str, ...]:
        """The hosts that its proxy did not let through, or did not reach."""
        return () if self.proxy is None else self.proxy.refused


@contextmanager
def entered(sandbox: SandboxPolicy, scene: SandboxRun) -> Iterator[Entered]:
    """Try a sandbox out, open its way out, and close that at the end. Errors: NoSandbox."""
    verdict = probe(sandbox)
    if not verdict.ok:
        raise NoSandbox(f"the sandbox {sandbox.kind} is not safe here: {verdict.words}", "the task was not started")
    with ExitStack() as stack:
        if sandbox.kind == "podman":
            folder = tempfile.mkdtemp(prefix="spoold-sandbox-")
            stack.callback(remove, folder)
            scene = stack.enter_context(_held(sandbox, scene, folder))
        if sandbox.network != "proxy":
            yield Entered(sandbox, scene)
            return
        try:
            proxy = stack.enter_context(Proxy(sandbox.hosts))
        except OSError as error:
            raise NoSandbox(f"the proxy of the sandbox cannot listen: {error}", "make room in TMPDIR") from error
        yield Entered(sandbox, replace(scene, way_out=proxy.path), proxy)


@contextmanager
def _held(sandbox: SandboxPolicy, scene: SandboxRun, folder: str) -> Iterator[SandboxRun]:
    """Yield a run as podman takes it, and leave none of its containers. folder: one of its own. Errors: NoSandbox,
    OSError."""
    mine = containers.holder(os.path.basename(folder))
    calls = allowed_calls(sandbox, folder)
    containers.clear(started_with(sandbox))
    try:
        yield replace(scene, calls=calls, holder=mine)
    finally:
        containers.clear(started_with(sandbox), mine)
