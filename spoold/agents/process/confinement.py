"""The sandbox of one attempt: what the profile asks for, tried out, around every program of the attempt.

In it an agent finds the task's own in- and outbox, and the entries that its batch shares, as plain files. What a task
is given is shown where it is, to be read. What an agent says comes out of a folder of its own: the files of the
attempt itself, such as its log, are not shown.

`unreached` says whether the sandbox lets the agent ask its model. A known agent asks over the network. So a sandbox
without one, or whose list lacks the model's host, is named before the first task, and in the error of an attempt that
got no answer. A generic agent may need no network: its sandbox is named only in an error that speaks of a connection.

Law: fails closed. What an adapter says of its program holds inside, too: each variable, file and log. The spool is
not shown, and of the task's own files only what it was given to read. Its result is written by the program outside,
never by the agent. What comes out is what the agent wrote in a plain file, and never what a link of the agent's
names. A shared entry that cannot be read is left out and named, and stops nothing.

Touches: files, the environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from spoold.agents.adapters import known_agents
from spoold.agents.adapters.error_classes import passes
from spoold.agents.process.interfaces import Bare, NoPlace, Opened, Sandbox
from spoold.agents.process.program import leave_keyring
from spoold.agents.sandbox import containers, sandbox_policy
from spoold.agents.sandbox.launch import Entered, entered
from spoold.agents.sandbox.protected_files import disarm, guarded
from spoold.agents.sandbox.sandbox_mounts import needed
from spoold.agents.sandbox.sandbox_policy import UNLISTED, NoSandbox, SandboxRun, entry, is_host, lets_through, split
from spoold.agents.workspace.acceptance import NO_PROGRAM, Check
from spoold.client.context_and_steps import SharedContext
from spoold.client.spool.connection import Connection
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, NotFound, SpoolError, WrongValue
from spoold.protocol.fields import Directory, Env, MemMb, Strict, Whole
from spoold.system.remover import remove

_MISSED = re.compile(r"cannot open|can't open|no such file or directory|not found", re.IGNORECASE)
# How shells, and make, say that there is no such program.
_NOT_FOUND = re.compile(
    r"^(?:.*: )?([\w.+-]+): (?:command not found|not found|no such file or directory)$", re.IGNORECASE | re.MULTILINE
)
# Ways into this machine that some variables name, and places of it that are not shown.
WAYS_IN = (
    "SPOOL_",
    "TMPDIR",
    "DBUS_",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "GPG_AGENT_INFO",
    "WAYLAND_DISPLAY",
    "DISPLAY",
)


class SandboxConfig(Strict):
    """What a profile says of its sandbox: the fields of `SandboxPolicy`, and show: what else may be read in it.
    podman: what the worker makes of its own variables, see `started`."""

    kind: sandbox_policy.Kind = "none"
    network: sandbox_policy.Network | None = None
    hosts: tuple[str, ...] = ()
    image: str = ""
    nested: bool = False
    memory_mb: MemMb | None = None
    processes: Whole | None = Field(default=None, ge=1, le=1_000_000)
    show: tuple[Directory, ...] = ()
    podman: Env = {}

    @model_validator(mode="after")
    def _makes_sense(self) -> SandboxConfig:
        for name in self.podman if self.kind == "podman" else ():
            if name not in containers.OWN:
                known = ", ".join(containers.OWN)
                raise WrongValue(f"podman: {name} is no variable that podman is started with", f"use {known}")
        if self.podman and self.kind != "podman":
            raise WrongValue(f'podman: the sandbox is "{self.kind}"', 'write kind = "podman", or remove podman')
        try:
            self.asked()
        except ValueError as error:
            problem, _, fix = str(error).partition("; ")
            raise WrongValue(problem, fix or "see docs/guide/sandbox.md") from None
        return self

    def asked(self) -> sandbox_policy.SandboxPolicy:
        """Return it as the sandbox takes it. Errors: ValueError."""
        return sandbox_policy.SandboxPolicy(**self.model_dump(exclude={"show"}))


def read(said: str | Mapping[str, Any], place: str) -> SandboxConfig:
    """Return what a profile says of its sandbox; place: its file, for errors. Errors: BadFile."""
    return codec.check(SandboxConfig, {"kind": said} if isinstance(said, str) else dict(said), place)


def started(said: Any, *given: Mapping[str, str]) -> Any:
    """Return what a profile says of its sandbox, with the variables with which podman is started: an attempt, the
    check of its worker and `spool doctor` all take them from here. given: as of `containers.own_variables`."""
    if not isinstance(said, dict) or said.get("kind") != "podman":
        return said
    own = containers.own_variables(*given)
    return {
        **said,
        "podman": {**own, **own_said} if isinstance(own_said := said.get("podman", {}), dict) else own_said,
    }


def sandbox_for(
    said: str | Mapping[str, Any], environ: Mapping[str, str] = os.environ, memory_mb: int = 0
) -> Sandbox:
    """Return the sandbox of a profile. memory_mb: the cap of the task, 0 for none. Errors: BadFile."""
    config = read(said, "the sandbox of the profile")
    return Bare() if config.kind == "none" else Confined(config, environ, memory_mb)


class Confined:
    """A sandbox around the programs of one attempt."""

    def __init__(self, config: SandboxConfig, environ: Mapping[str, str], memory_mb: int = 0) -> None:
        self._config, self._environ, self._memory_mb = config, environ, memory_mb
        self._entered: Entered | None = None
        self._own: Mapping[str, str] = {}

    @contextmanager
    def enter(self, opened: Opened) -> Iterator[None]:
        """Try it out, and open its way out for as long as the attempt works. Errors: NoPlace, OSError."""
        # Not in the home: what an agent may write, the next attempt must not follow.
        folder = f"{os.path.dirname(self._environ['SPOOL_WORK_DIR'])}/confined"
        remove(folder)
        os.mkdir(folder, mode=0o700)
        os.mkdir(f"{folder}/empty")
        if self._config.nested and opened.whose == "shared":
            raise NoPlace(
                f"the repositories in {opened.directory} are of others, too, and nothing holds them with nested = "
                "true: in a namespace of its own the agent could undo that. Fix: remove nested, or use a clone."
            )
        held = guarded(opened.directory, opened.whose, opened.submodules)
        box = mailbox(self._given(f"{folder}/context"), f"{folder}/box")
        shown = (*self._config.show, *box.shown, *opened.borrowed)
        root = self._environ.get("SPOOL_ROOT")
        scene = SandboxRun(
            opened.directory,
            opened.home,
            shown=shown,
            writable=tuple(path for path in box.writable if path != opened.directory),
            hidden=(root,) if root else (),
            held=held,
            others=opened.whose == "shared",
            empty=f"{folder}/empty",
            memory_mb=self._memory_mb,
            attempt=".".join(filter(None, map(self._environ.get, ("SPOOL_TASK_ID", "SPOOL_ATTEMPT")))),
        )
        self._own = box.env
        leave_keyring()
        with _no_place(), entered(self._config.asked(), scene) as inside:
            self._entered = inside
            try:
                yield
            finally:
                self._entered = None
                disarm(held)

    @property
    def refused(self) -> tuple[str, ...]:
        """Which hosts its proxy did not let through, or did not reach, since it was entered."""
        return () if self._entered is None else self._entered.refused

    def wrap(
        self, argv: Sequence[str], env: Mapping[str, str], fixed: Sequence[str] = (), own: Collection[str] = ()
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the command in the sandbox, and its variables. Errors: NoPlace, OSError."""
        if self._entered is None:
            raise NoPlace("the sandbox was not entered.")
        passed = {name: value for name, value in env.items() if name in own or not name.startswith(WAYS_IN)}
        scene, shown = self._entered.scene, self._programs(argv[0], env)
        scene = replace(scene, env={**passed, **self._own}, shown=(*scene.shown, *shown), fixed=tuple(fixed))
        with _no_place():
            wrapped = replace(self._entered, scene=scene).wrap(argv)
        return wrapped.argv, wrapped.env

    def clear(self) -> None:
        """Remove what a program that was ended has left outside of its processes. Errors: none."""
        if self._entered is not None:
            self._entered.clear()

    def _programs(self, program: str, env: Mapping[str, str]) -> list[str]:
        """Return what has to be shown so that a program can run; a container brings its own. Errors: OSError."""
        return [] if self._config.kind == "podman" else needed(program, env.get("PATH", os.defpath))

    def _given(self, folder: str) -> dict[str, str]:
        """Return the variables of the task whose files the agent may read. The program outside writes result and
        progress. What the batch shares lies in the spool, so the agent gets a copy, in this folder.
        """
        said = ("SPOOL_RESULT_FILE", "SPOOL_PROGRESS_FILE")
        given = {name: value for name, value in self._environ.items() if name not in said}
        batch = given.get("SPOOL_BATCH")
        if given.pop("SPOOL_CONTEXT_DIR", None) and batch:
            try:
                copied(Connection(self._environ["SPOOL_ROOT"]), batch, folder)
            except SpoolError:
                return given
            given["SPOOL_CONTEXT_DIR"] = folder
        return given


def hint(said: str | Mapping[str, Any], errors: str, env: Mapping[str, str]) -> str:
    """Return what is missing, or may be, in the sandbox of a profile; '' without one, or where nothing was missed.

    errors: the end of what was printed; env: as of `unshown`.
    """
    if missed := unshown(said, errors, env):
        return f" ({missed})"
    kind = said if isinstance(said, str) else said.get("kind", "none")
    if kind == "none" or not _MISSED.search(errors):
        return ""
    return f" (in the sandbox {kind} only the agent's program, its workspace and what `show` lists can be read)"


def unshown(said: str | Mapping[str, Any], output: str, env: Mapping[str, str]) -> str:
    """Return which program a shell did not find though this worker has it, and what shows it in the sandbox; ''
    without a sandbox, and where that is not why.

    output: what the shell's line printed; env: the variables of the attempt.
    """
    config = read(said, "the sandbox of the profile")
    found = _NOT_FOUND.findall(output) if config.kind not in ("none", "podman") else []
    for name in dict.fromkeys(found):
        if paths := paths_of(name, config.show, env):
            problem = f"{name} is {shutil.which(name, path=env.get('PATH'))} on this worker"
            return f"{problem}, and the sandbox {config.kind} does not show it; fix: {showing(said, paths)}"
    return ""


def judged(check: Check, said: str | Mapping[str, Any], env: Mapping[str, str]) -> Check:
    """Return a condition that was tried, with what the sandbox has to do with it. A line of which the shell did not
    find a program that this worker has is no fault of the work."""
    missed = unshown(said, check.output, env) if check.why else ""
    return replace(check, why=f"{check.why}: {missed}", here=check.why == NO_PROGRAM) if missed else check


def paths_of(name: str, show: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return what a sandbox that shows this has to show besides, so that a program of the worker's PATH runs there;
    [] for nothing, and for a program that is not there."""
    try:
        paths = needed(name, env.get("PATH", os.defpath))
    except OSError:
        return []
    return [path for path in paths if not any(f"{path}/".startswith(f"{one.rstrip('/')}/") for one in show)]


def showing(said: str | Mapping[str, Any], paths: Sequence[str]) -> str:
    """Return what a profile has to say so that its sandbox shows these, too."""
    config = read(said, "the sandbox of the profile")
    line = f"show = {json.dumps([*config.show, *paths], ensure_ascii=False)}"
    return (
        f'write sandbox = {{kind = "{config.kind}", {line}}}'
        if isinstance(said, str)
        else f"write {line} in its sandbox"
    )


@contextmanager
def _no_place() -> Iterator[None]:
    """Inside, what a sandbox refuses is an error of the attempt's place."""
    try:
        yield
    except NoSandbox as error:
        raise NoPlace(f"{error.problem}. {error.fix[:1].upper()}{error.fix[1:]}.") from error


# The task's own in- and outbox, as an agent in a sandbox finds them.


PLAIN = (
    *("SPOOL_TASK_ID", "SPOOL_TASK_TYPE", "SPOOL_ATTEMPT", "SPOOL_MAX_ATTEMPTS", "SPOOL_WORKER_ID", "SPOOL_BATCH"),
)
READ = (
    *("SPOOL_TASK_FILE", "SPOOL_DEPS_DIR", "SPOOL_ANSWER_FILE", "SPOOL_FEEDBACK_FILE", "SPOOL_PREVIOUS_FILE"),
    "SPOOL_CONTEXT_DIR",
)
WRITTEN = ("SPOOL_WORK_DIR",)
SAID = {"SPOOL_RESULT_FILE": "result.json", "SPOOL_PROGRESS_FILE": "progress.json"}
MOST_BYTES = 4 << 20
_WARY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Mailbox:
    """env: the SPOOL_* variables within; shown, writable: as of `Scene`; said: a file of the agent → the file of the
    attempt that it stands for."""

    env: Mapping[str, str]
    shown: tuple[str, ...]
    writable: tuple[str, ...]
    said: Mapping[str, str] = field(default_factory=dict)
    _taken: dict[str, bytes] = field(default_factory=dict)

    def deliver(self) -> list[str]:
        """Bring what the agent has written since to where the worker looks, whole or not at all. Call it while the
        agent runs, for its progress, and after its end. Returns what was refused, in words. Errors: OSError.
        """
        refused = []
        for source, target in self.said.items():
            try:
                data = _read(source)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                refused.append(f"{os.path.basename(source)} was not taken: {error}")
                continue
            # What says nothing new must not look like progress: a worker tells a stalled task by that.
            if self._taken.get(source) == data:
                continue
            self._taken[source] = data
            new = f"{target}.new"
            with open(new, "wb") as file:
                file.write(data)
            os.replace(new, target)
        return refused


def mailbox(environ: Mapping[str, str], folder: str) -> Mailbox:
    """Return the boxes of the task whose variables these are; folder: one of this machine that the attempt has to
    itself, in which the agent's files come to lie. What lies in the spool, as SPOOL_CONTEXT_DIR does, has to be
    replaced in `environ` by a copy: it is not shown. Errors: OSError.
    """
    os.makedirs(folder, exist_ok=True)
    env = {name: environ[name] for name in (*PLAIN, *READ, *WRITTEN) if environ.get(name)}
    there = {name: path for name, path in env.items() if name not in PLAIN and os.path.exists(path)}
    said = {f"{folder}/{file}": environ[name] for name, file in SAID.items() if environ.get(name)}
    inside = {name: f"{folder}/{file}" for name, file in SAID.items() if environ.get(name)}
    return Mailbox(
        {name: env[name] for name in PLAIN if name in env} | there | inside,
        tuple(there[name] for name in READ if name in there),
        (folder, *(there[name] for name in WRITTEN if name in there)),
        said,
    )


def _read(path: str) -> bytes:
    """Return the content of a plain file, and of nothing else. Errors: OSError, ValueError."""
    descriptor = os.open(path, _WARY)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise ValueError("it is no plain file of its own")
        if found.st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
        return os.pread(descriptor, MOST_BYTES, 0)
    finally:
        os.close(descriptor)


# The entries that count, as plain files in a folder of this machine, each under its own name.


LOG = "VERSIONS"


def copied(spool: Connection, batch: str, folder: str) -> list[str]:
    """Write the entries of a batch into a folder that only this attempt has, and return what could not be read, in
    words. A file named VERSIONS says of each entry its version, and which ones its author had not seen.

    Errors: SpoolError, OSError.
    """
    shared = SharedContext(spool, batch)
    os.makedirs(folder, exist_ok=True)
    lines, problems = [], []
    for one in shared.current():
        try:
            found, data = shared.get(one.name)
        except (BadFile, NotFound) as problem:
            problems.append(str(problem))
            continue
        with open(os.path.join(folder, one.name), "wb") as file:
            file.write(data)
        unseen = f" without knowledge of {', '.join(map(str, found.conflicts))}" if found.conflicts else ""
        lines.append(f"{found.name} {found.version}{unseen}\n")
    with open(os.path.join(folder, LOG), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return problems


# Whether the sandbox of a profile lets its agent ask its model, and if not, what would.


_CONNECTION = re.compile(
    r"connection|connect to|network|ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|fetch failed|getaddrinfo|resolve host|proxy",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Unreached:
    """What keeps an agent from its model. sure: nobody has said that there shall be no network; fix: for it;
    unlisted: there is a way out, and its list lacks the model's host."""

    problem: str
    fix: str
    sure: bool
    unlisted: bool = False

    @property
    def words(self) -> str:
        """Both as one sentence."""
        return f"{self.problem}; fix: {self.fix}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What an attempt without an answer saw. message: its error; refused: by the proxy, in words."""

    message: str
    refused: Sequence[str] = ()


def unreached(cli: str, model: str, said: str | Mapping[str, Any], env: Mapping[str, str]) -> Unreached | None:
    """Return why the agent cannot ask its model; None where it can, or where that is not known.

    said: the sandbox of the profile; env: the variables of its attempts.
    """
    config, host = read(said, "the sandbox of the profile"), host_of(cli, model, env)
    asked = config.asked()
    if cli == known_agents.GENERIC or asked.network == "host":
        return None
    if asked.network == "proxy":
        if not host or lets_through(*split(host), map(entry, asked.hosts)):
            return None
        problem = f"{cli} asks its model at {host}, and the sandbox lets it reach only {', '.join(asked.hosts)}"
        return Unreached(problem, f'add "{host}" to hosts of the sandbox', sure=False, unlisted=True)
    problem = f"{cli} asks its model over the network, and the sandbox {asked.kind} has none"
    return Unreached(problem, _way_out(asked.kind, host), sure=config.network is None)


def may_pass(cli: str, model: str, said: str | Mapping[str, Any], env: Mapping[str, str], seen: Seen) -> bool:
    """Whether what kept a known agent from its model may pass by itself: it is no list of its own sandbox."""
    if cli == known_agents.GENERIC or not passes(seen.message) or unreached(cli, model, said, env) is not None:
        return False
    return bool(host_of(cli, model, env)) or not any(UNLISTED in one for one in seen.refused)


def barred(cli: str, model: str, said: str | Mapping[str, Any], env: Mapping[str, str], seen: Seen) -> bool:
    """Whether the list of its own sandbox kept an agent from its model: only a change of the list helps."""
    found = unreached(cli, model, said, env) if any(UNLISTED in one for one in seen.refused) else None
    return found is not None and found.unlisted


def host_of(cli: str, model: str, env: Mapping[str, str]) -> str:
    """Return where an agent asks its model, as `hosts` of a sandbox names it; '' where that is not known."""
    adapter = known_agents.make(cli)
    if address := env.get(adapter.address, ""):
        try:
            found = urlsplit(address)
            port = found.port or (80 if found.scheme == "http" else 443)
        except ValueError:
            return ""
        name = f"[{found.hostname}]" if ":" in (found.hostname or "") else found.hostname
        if not name or not is_host(name):
            return ""
        return name if port == 443 else f"{name}:{port}"
    return adapter.asks_at.get(model.partition("/")[0] if "/" in model else "", adapter.asks_at.get("", ""))


def network_hint(cli: str, model: str, said: str | Mapping[str, Any], env: Mapping[str, str], error: str) -> str:
    """Return what an attempt that had no answer of its model is told of its sandbox; '' where that is not to blame.

    error: how it ended, in its own words.
    """
    if (found := unreached(cli, model, said, env)) is not None:
        return f" ({found.words})"
    asked = read(said, "the sandbox of the profile").asked()
    if asked.network == "host" or not _CONNECTION.search(error):
        return ""
    if asked.network == "proxy":
        return f" (the sandbox {asked.kind} lets it reach only {', '.join(asked.hosts)}: see hosts of the profile)"
    return f" (the sandbox {asked.kind} has no network; if it needs one: {_way_out(asked.kind, '')})"


def _way_out(kind: str, host: str) -> str:
    if kind == "podman":
        return 'set network = "host" in the sandbox of the profile'
    shown = host or "HOST OF ITS MODEL"
    return f'sandbox = {{kind = "{kind}", network = "proxy", hosts = ["{shown}"]}} in the profile'
