"""What a profile, or a task, says of a workspace.

Law: a repository is named by an absolute path or by an address; nothing in it may be read as an option, and no
transport that runs a command is taken. A password in an address is refused: addresses stand in results and logs.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, model_validator

from spoold.agents.workspace.addresses import repository
from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import Directory, MemMb, Seconds, Strict

Kind = Literal["clone", "worktree", "none"]
DAY_S = 86_400.0
_NO_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|^[-/.]|[/.]$")


def reference(text: str) -> str:
    """Return the name of a branch, tag, reference or commit. Errors: WrongValue."""
    if not text or len(text) > 250 or _NO_REF.search(text) or text == "@":
        raise WrongValue(f"{text!r} is not the name of a branch", "write it as `git branch` shows it, such as main")
    return text


def _lines(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _repository_or_none(text: str) -> str:
    return text and repository(text)


Reference = Annotated[str, AfterValidator(reference)]
Repository = Annotated[str, AfterValidator(repository)]
Lines = Annotated[tuple[str, ...], BeforeValidator(_lines)]


class WorkspaceConfig(Strict):
    """Where an attempt works. repo: the repository; base: the branch, tag or commit that the work begins with.

    kind: "clone" is a repository of its own that borrows the mirror's objects, "worktree" a worktree of the mirror,
    "none" an empty folder. setup: lines for the shell, run in it before the agent. resume: "work" begins a later
    attempt with what the newest earlier one pushed, "fresh" always begins with the base. submodules: "fetch" brings
    the files of those that the base has an address for, "none" leaves their folders empty. keep_s: how long a
    workspace stays after its end. dir: where everything lies, on this machine's own disk; quota_mb: of all of it.
    """

    repo: Annotated[str, AfterValidator(_repository_or_none)] = ""
    base: Reference = "main"
    kind: Kind = "clone"
    setup: Lines = ()
    resume: Literal["work", "fresh"] = "work"
    submodules: Literal["none", "fetch"] = "none"
    keep_s: Seconds = DAY_S
    dir: Directory | None = None
    quota_mb: MemMb | None = None

    @model_validator(mode="after")
    def _has_a_repository(self) -> WorkspaceConfig:
        if self.kind != "none" and not self.repo:
            raise WrongValue("the workspace has no repository", 'give it a repo, or kind = "none"')
        if self.kind == "none" and self.repo:
            raise WrongValue('kind = "none" has no repository', "leave repo out, or choose another kind")
        if self.kind != "clone" and self.submodules == "fetch":
            raise WrongValue(f'kind = "{self.kind}" fetches no submodules', 'leave submodules out, or take "clone"')
        return self
