"""What every handler finds and may leave, as an agent's attempt uses it: the files and variables of SPOOL_*.

Model, tokens and temperature are those of the task, else of the profile, else of the type in the spool's settings:

    # spool.toml
    [types.coder]
    model = "big-1"
    max_tokens = 8000
    temperature = 0.2

It stands apart from `one_attempt`, its one user: no other module of an attempt knows these files and variables.

Law: a file that others read is replaced whole. What is missing or cannot be read counts as absent, but for the task
and the profile: without these nothing begins.

A task chooses a model only where the profile allows it. What an agent cannot be given is said, and never dropped in
silence. Each value is one plain word or a number: none of them can become an option of a command line.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from spoold.agents.adapters import known_agents
from spoold.agents.configuration.profiles import REDACT, VALUES, VARIABLE, Profile, read_back, takes_value
from spoold.agents.workspace import repository_config, room
from spoold.client.spool.connection import Connection
from spoold.pictures.traces.agent_spans import FIELD
from spoold.protocol import agent_fields, codec
from spoold.protocol.errors import BadFile, SpoolError, WrongValue
from spoold.protocol.result import Result
from spoold.protocol.task import Task
from spoold.store.attempt_records import Ledger

# Of one file that is read, and of the result, which may have 4 MiB; how often (s) progress is written.
READ_MAX, RESULT_MAX, PROGRESS_S = 300 << 20, 3 << 20, 1.0
# How much (characters) of an agent's words stays where the result is too large.
SHORT = 64 << 10


class Contract:
    """One attempt's files. Errors of the making: BadFile."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self.name, self.profile = read_back(environ.get(VARIABLE, ""))
        self.task = self._task()
        self.errand: Mapping[str, Any] = self.task.input
        self._progress_at = 0.0

    def _task(self) -> Task:
        path = self._environ.get("SPOOL_TASK_FILE", "")
        data = _read(path)
        if data is None:
            raise BadFile(path or "SPOOL_TASK_FILE", "", "cannot be read.", "let a worker run this program.")
        task = codec.load_task(data, path)
        if not isinstance(task.input, dict):
            raise BadFile(path, "input", "is no object.", 'give the task a prompt: {"prompt": "what to do"}.')
        try:
            agent_fields.check(task.input)
        except WrongValue as wrong:
            raise BadFile(path, "input", f"{wrong.problem}.", f"{wrong.mend}.") from None
        return task

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self._environ.get("SPOOL_TASK_ID", "")

    @property
    def kind(self) -> str:
        """The type as which it runs; that of the task, but where a limit of that one is closed."""
        return self._environ.get("SPOOL_TASK_TYPE") or self.task.kind

    @property
    def attempt(self) -> str:
        """The task and the attempt, as one word."""
        return f"{self.task_id}.{self.number}"

    @property
    def root(self) -> str:
        """The directory of the spool; '' where none is named."""
        return self._environ.get("SPOOL_ROOT", "")

    @property
    def batch(self) -> str:
        """The batch of the task; '' for none."""
        return self._environ.get("SPOOL_BATCH", "")

    @property
    def worker(self) -> str:
        """The worker that runs it."""
        return self._environ.get("SPOOL_WORKER_ID") or "this machine"

    @property
    def number(self) -> str:
        """The number of the attempt."""
        return self._environ.get("SPOOL_ATTEMPT", "1")

    def environment(self) -> dict[str, str]:
        """Return the variables that an agent's processes get: those of the attempt, without the profile."""
        return {name: value for name, value in self._environ.items() if name not in (VARIABLE, REDACT)}

    def previous(self) -> Any:
        """Return the record of the attempt before this one; None where there is none."""
        return self._value("SPOOL_PREVIOUS_FILE")

    def earlier(self) -> list[Result]:
        """Return the records of all attempts before this one, the newest first; none where they cannot be read."""
        with suppress(SpoolError, OSError, ValueError):
            if self.root:
                with Connection(self.root) as spool:
                    return list(Ledger(spool.store.fs).before(self.task_id, int(self.number)))
        return []

    def last_output(self) -> Mapping[str, Any]:
        """Return the output of the newest attempt before this one that has one: a worker that died left none."""
        before = self.previous()
        if not isinstance(before, Mapping) or isinstance(before.get("output"), Mapping):
            return before["output"] if isinstance(before, Mapping) else {}
        return next((one.output for one in self.earlier() if isinstance(one.output, Mapping)), {})

    @property
    def sent_back(self) -> bool:
        """Whether a person sent the work back, to be done again."""
        return "SPOOL_FEEDBACK_FILE" in self._environ

    def feedback(self) -> str:
        """Return why people sent the work back; '' where nobody did."""
        found = self._value("SPOOL_FEEDBACK_FILE")
        return str(found.get("reason") or "") if isinstance(found, dict) else ""

    def told(self) -> bytes:
        """Return what people told the agent so far, a message a line; b"" for nothing."""
        return _read(self._environ.get("SPOOL_TOLD_FILE", "")) or b""

    def dependency(self, task_id: str) -> Any:
        """Return the record of a task that this one comes after; None for none."""
        known = {name.lower(): name for name in self.dependencies()}
        name = known.get(task_id.lower())
        return None if name is None else _json(os.path.join(self._environ["SPOOL_DEPS_DIR"], f"{name}.json"))

    def dependencies(self) -> list[str]:
        """Return the ids of the tasks whose results are there."""
        with suppress(OSError):
            names = os.listdir(self._environ.get("SPOOL_DEPS_DIR") or "/nowhere")
            return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))
        return []

    def progress(self, said: Mapping[str, Any], *, now: bool = False) -> None:
        """Report how far it is, at most once a second. Never raises OSError."""
        moment = time.monotonic()
        if now or moment - self._progress_at >= PROGRESS_S:
            self._progress_at = moment
            with suppress(OSError):
                _write(self._environ.get("SPOOL_PROGRESS_FILE", ""), codec.dump(dict(said)))

    def keep_room(self) -> None:
        """Keep room for the result on a disk that the agent may fill. Never raises OSError."""
        if path := self._environ.get("SPOOL_RESULT_FILE", ""):
            room.keep(path)

    def result(self, said: Mapping[str, Any]) -> None:
        """Leave the result; a longer one, or one on a full disk, loses the beginning of the agent's words.

        Errors: OSError.
        """
        path = self._environ.get("SPOOL_RESULT_FILE", "")
        if not path:
            return
        data = codec.dump(dict(said))
        try:
            room.replace(path, data if len(data) <= RESULT_MAX else codec.dump(_shortened(said, SHORT)))
        except OSError as error:
            if not room.is_full(error):
                raise
            room.replace(path, codec.dump(_shortened(said, room.TEXT_KEPT)))

    def _value(self, variable: str) -> Any:
        path = self._environ.get(variable, "")
        return _json(path) if path else None


def allowed_model(profile: Profile, wanted: str) -> bool:
    """Whether a task may choose this model: that of the profile, or one that it lists (`*` is any)."""
    return wanted == profile.model or any(one in ("*", wanted) for one in profile.allow_models)


def refused_repository(profile: Profile, wanted: str, place: str) -> str | None:
    """Return why a task may not choose this repository; None where it is that of the profile, or where its patterns
    fit. place: that of the profile. Errors: WrongValue for an address that is none."""
    own = profile.workspace.get("repo")
    if (own and repository_config.is_own(wanted, own)) or any(
        repository_config.fits(wanted, one) for one in profile.allow_repos
    ):
        return None
    line = f'allow_repos = ["{repository_config.repository(wanted)}"]'
    return f"a task may not choose this repository: add {line} to {place}"


def _shortened(said: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a result with no more than so many characters of each text."""
    text, reasons = str(said.get("text", "")), [str(one)[:most] for one in list(said.get("reasons") or ())[:20]]
    short = {**said, "text": text[-most:], "reasons": reasons} | ({"text_cut": True} if len(text) > most else {})
    short.pop(FIELD, None)
    return {**short, "changed_files": list(said.get("changed_files", ()))[:1000], "checks": []}


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(READ_MAX)
    except OSError:
        return None


def _json(path: str) -> Any:
    data = _read(path)
    with suppress(BadFile):
        return None if data is None else codec.load(data, path)
    return None


def _write(path: str, data: bytes) -> None:
    if path:
        with open(f"{path}.new", "wb") as file:
            file.write(data)
        os.replace(f"{path}.new", path)


# Model, tokens and temperature of an attempt: of the task, else of the profile, else of the type in spool.toml.


@dataclass(frozen=True, slots=True)
class Choice:
    """Its model, the most tokens of one of its answers, and its temperature; '' and None: as the agent has it."""

    model: str = ""
    max_tokens: int | None = None
    temperature: float | None = None


NONE = Choice()


def of_type(root: str, kind: str) -> tuple[Choice, str]:
    """Return what the settings of a type say, and why they cannot be read, '' where they can. root: of the spool."""
    try:
        with Connection(root) as spool:
            found = spool.store.settings.of(kind)
    except (SpoolError, OSError) as error:
        return NONE, f"the settings of the type {kind} cannot be read, so none counts: {error}"
    return Choice(found.model or "", found.max_tokens, found.temperature), ""


def chosen(said: Mapping[str, Any], profile: Profile, kind: Choice) -> Choice:
    """Return what counts. said: the task's input, of which its profile was asked; kind: the settings of the type."""
    own, inherited = profile.max_tokens, kind.max_tokens
    return Choice(
        said.get("model") or profile.model or kind.model,
        own if own is not None else inherited,
        profile.temperature if profile.temperature is not None else kind.temperature,
    )


def passed(choice: Choice, profile: Profile) -> tuple[Choice, list[str]]:
    """Return what the agent is given, and of the rest why not, in words."""
    can, kept, told = takes_value(profile), choice, list[str]()
    for name in VALUES:
        value = getattr(choice, name)
        if value in ("", None):
            continue
        if name not in can:
            fix = (
                f"name {{{name}}} in its command"
                if profile.cli == known_agents.GENERIC
                else "say it in its own settings"
            )
        elif name in known_agents.make(profile.cli).by_model and not choice.model:
            fix = "name a model, too"
        else:
            continue
        kept = replace(kept, **{name: getattr(NONE, name)})
        told.append(f"{profile.cli} cannot be given {name}, so {value} does not count; {fix}")
    return kept, told
