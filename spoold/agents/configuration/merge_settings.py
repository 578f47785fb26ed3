"""[merge] of a worker's file: who merges here, what judges the work, and what must not land.

    [merge]
    repos = ["/srv/git/app.git"]
    test = ["make test"]
    protect = ["tests/**", ".github/**"]

Law: it becomes the handler of the type merge, as a profile becomes one. All of it is the word of this machine's
owner: a task names none of it. What keeps work out is off until it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from spoold.agents.process import confinement
from spoold.agents.workspace.repository_config import Lines, Repository
from spoold.protocol import codec
from spoold.protocol.agent_fields import MERGE
from spoold.protocol.errors import BadFile, WrongValue
from spoold.protocol.fields import Directory, Env, Real, Seconds, SomeSeconds, Strict, Whole

TABLE, VARIABLE = MERGE, "SPOOL_MERGE"
# What people are told of the handler: its repositories, none of which has a blank in its address.
REPOS = "repos"
WITHIN_S = 3600.0
# Keys that are those of the handler.
_HANDLER = ("timeout", "max_timeout", "secrets", "env", "lost_share")


def _pattern(text: str) -> str:
    if not text or "\0" in text or text.startswith("/") or ".." in text.split("/"):
        problem = f"{text!r} is no pattern of paths in a repository"
        raise WrongValue(problem, 'write it from the top of the repository, such as "tests/**" or "**/conftest.py"')
    return text


def _one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Repositories = Annotated[tuple[Repository, ...], BeforeValidator(_one_or_many), Field(min_length=1)]
_Patterns = Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], BeforeValidator(_one_or_many)]
_Bound = Annotated[Whole, Field(ge=1, le=10**9)]


class MergeConfig(Strict):
    """What is merged here, and how it is judged. Times in seconds.

    repos: the repositories; test, setup: lines for the shell; within: for each of them; dir: where mirrors lie;
    keep_refs: how long references of landed work stay, 0 for ever; sandbox: of all these lines. protect: paths whose
    change needs a person's yes; max_files, max_lines (added and removed), max_file_mb: what one piece of work may
    change; no_fewer_tests: the line that lists the tests, whose count may not fall; no_secrets: what looks like a
    token or a key does not land; retest: how often what failed is tested again. concurrent: merges at once.
    """

    repos: _Repositories
    test: Lines = ()
    setup: Lines = ()
    within: SomeSeconds = WITHIN_S
    dir: Directory | None = None
    keep_refs: Seconds = 0.0
    sandbox: str | dict[str, Any] = "none"
    protect: _Patterns = ()
    max_files: _Bound | None = None
    max_lines: _Bound | None = None
    max_file_mb: Annotated[Real, Field(gt=0, le=10**6)] | None = None
    no_fewer_tests: str = ""
    no_secrets: bool = False
    retest: Annotated[Whole, Field(ge=0, le=10)] = 0
    timeout: SomeSeconds | None = None
    max_timeout: SomeSeconds | None = None
    secrets: tuple[str, ...] = ()
    env: Env = {}
    lost_share: str | None = None
    concurrent: Annotated[Whole, Field(ge=1, le=4096)] | None = None

    @property
    def confined(self) -> bool:
        """Whether its lines run in a sandbox."""
        return confinement.read(self.sandbox, TABLE).kind != "none"


def read(said: Mapping[str, Any], file: str, key: str = "") -> MergeConfig:
    """Return what a table, or the options of a command, say; key: what the fields are below. Errors: BadFile."""
    try:
        config = codec.check(MergeConfig, dict(said), file)
    except BadFile as error:
        raise BadFile(error.file, _below(key, error.field), error.problem, error.mend) from None
    try:
        confinement.read(config.sandbox, file)
    except BadFile as error:
        raise BadFile(error.file, _below(key, "sandbox", error.field), error.problem, error.mend) from None
    return config


def handler(said: Any, file: str, redact: Mapping[str, str]) -> dict[str, Any]:
    """Return the handler that a table becomes. redact: variables that say what is masked. Errors: BadFile."""
    if not isinstance(said, dict):
        raise BadFile(file, TABLE, "is no table.", f"write [{TABLE}], and its keys below.")
    config = read(said, file, TABLE)
    told = config.model_dump(mode="json", exclude_defaults=True)
    found = {key: told.pop(key) for key in _HANDLER if key in told}
    most = told.pop("concurrent", None)
    # Without -P the folder in which the attempt starts would be searched for modules first.
    command = [sys.executable, "-P", "-m", "spoold.agents.merge"]
    return {
        **found,
        "command": command,
        "env": {**config.env, VARIABLE: codec.dump(told).decode(), **redact},
        "about": {REPOS: " ".join(config.repos)},
        "needs": ["git"],
        **({"check": [*command, "--check"]} if config.confined else {}),
        **({} if most is None else {"max_concurrent": most}),
    }


def repos_of(about: Mapping[str, str]) -> tuple[str, ...]:
    """Return the repositories of a handler, by what people are told of it; () for one that was written by hand."""
    return tuple(about.get(REPOS, "").split())


def read_back(text: str) -> MergeConfig:
    """Return what a handler finds in its environment. Errors: BadFile."""
    return read(codec.load_object(text.encode(), VARIABLE), VARIABLE)


def _below(*keys: str) -> str:
    return ".".join(filter(None, keys))
