"""What a profile, or a task, says of a workspace, and the addresses of repositories in it.

    /srv/git/app.git    file:///srv/git/app.git    https://host/team/app    ssh://git@host/app    git@host:team/app

Law: a repository is named by an absolute path or by an address; nothing in it may be read as an option, and no
transport that runs a command is taken. A password in an address is refused: addresses stand in results and logs.

Whatever compares addresses asks here, and never compares texts. `..` is resolved in a path of this machine, and
refused in an address of another one, also where it is percent-encoded. Two addresses are the same where git opens the
same repository: scheme and host in any case, a default port, doubled slashes and `.git` at the end make no
difference; links of this machine are followed. Another user of ssh has another home, so that is another address.
A pattern is stricter, since it gives permission: a link must fit where it stands and where it leads to, and a user
counts always, since it chooses the password that git sends.

Touches: files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator, model_validator

from spoold.agents.workspace.git import PROTOCOLS
from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import Directory, MemMb, Seconds, Strict

# Addresses of repositories: their spelling, whether two name one repository, and whether a pattern allows one.


ANY = "*"
_PORTS = {"git": "9418", "http": "80", "https": "443", "ssh": "22"}
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)?", re.DOTALL)
_AUTHORITY = r"(?:([^@]*)@)?(\[[0-9A-Fa-f:.]+\]|{host})(?::([0-9]{{0,5}}))?"
_HOST = re.compile(_AUTHORITY.format(host=r"[\w.-]+"), re.ASCII)
_HOSTS = re.compile(_AUTHORITY.format(host=r"[\w.*?-]+"), re.ASCII)
# host:path, as ssh has it.
_SCP = re.compile(r"(?:([\w.-]+)@)?([\w.-]+):(?!//)([^:].*)", re.ASCII)
_SCPS = re.compile(r"(?:([\w.*?-]+)@)?([\w.*?-]+):(?!//)([^:].*)", re.ASCII)
_GLOB = re.compile(r"[*?\[]")
_SLASHES = re.compile(r"/{2,}")


@dataclass(frozen=True, slots=True)
class Address:
    """The parts that are compared. scheme: '' for a path of this machine; port: '' for the usual one; path: decoded,
    '~/…' for one below a home."""

    scheme: str
    user: str
    host: str
    port: str
    path: str


def repository(text: str) -> str:
    """Return the address of a repository as git is given it. Errors: WrongValue."""
    return _read(text, _HOST, _SCP)[0]


def same(one: str, other: str) -> bool:
    """Whether two addresses name the same repository. Errors: WrongValue."""
    return _identity(_address(one)) == _identity(_address(other))


def is_among(repo: str, addresses: Iterable[str]) -> bool:
    """Whether one of these addresses, which others may have written, names this repository: what is no address names
    none."""
    for one in addresses:
        with suppress(WrongValue):
            if same(one, repo):
                return True
    return False


def pattern(text: str) -> str:
    """Return a pattern of addresses as it is. Errors: WrongValue for one that no address can fit."""
    if text != ANY:
        try:
            _read(text, _HOSTS, _SCPS, pattern=True)
        except WrongValue:
            problem = f"{text!r} is not a pattern of addresses"
            mend = 'write "/srv/git/*", "https://host/team/*" or "git@host:team/*" without "..", or "*" for all'
            raise WrongValue(problem, mend) from None
    return text


def fits(wanted: str, allowed: str) -> bool:
    """Whether a repository may be used where this pattern is allowed; * stands for anything in a host or in a path,
    and for nothing that reaches from one into the other. Errors: WrongValue for an address that is none."""
    address = _address(wanted)
    if allowed == ANY:
        return True
    try:
        may = _read(allowed, _HOSTS, _SCPS, pattern=True)[1]
    except WrongValue:
        return False
    return may.scheme == address.scheme and _may(address, may, literal=not _GLOB.search(may.path))


def is_own(wanted: str, own: str) -> bool:
    """Whether a repository may be used since it is this one. Errors: WrongValue for an address that is none."""
    address, mine = _address(wanted), _address(own)
    return mine.scheme == address.scheme and _may(address, mine, literal=True)


def _may(address: Address, may: Address, *, literal: bool) -> bool:
    if not address.scheme:
        stands, leads = _standing(address.path), _leading(address.path)
        if literal:
            return (stands, leads) == (_standing(may.path), _leading(may.path))
        return fnmatchcase(stands, may.path) and fnmatchcase(leads, _led(may.path))
    hosts = address.host == may.host or (may.host[0] != "[" and fnmatchcase(address.host, may.host))
    if not hosts or address.port != may.port or not fnmatchcase(address.user, may.user):
        return False
    short = address.path.removesuffix(".git")
    if literal:
        return short == may.path.removesuffix(".git")
    return any(fnmatchcase(path, may.path) for path in (address.path, short))


def _address(text: str) -> Address:
    return _read(text, _HOST, _SCP)[1]


def _identity(address: Address) -> Address:
    if not address.scheme:
        return Address("", "", "", "", _leading(address.path))
    user = "" if address.scheme.startswith("http") else address.user
    return Address(address.scheme, user, address.host, address.port, address.path.removesuffix(".git"))


def _standing(path: str) -> str:
    """The folder that git opens for a path: with `.git` at its end where there is none without."""
    return f"{path}.git" if not os.path.isdir(path) and os.path.isdir(f"{path}.git") else path


def _leading(path: str) -> str:
    return os.path.realpath(_standing(path))


def _led(may: str) -> str:
    """A pattern of paths with the links in its part before the first sign of a pattern followed."""
    parts = may.split("/")
    plain = next(number for number, part in enumerate(parts) if _GLOB.search(part))
    return "/".join([os.path.realpath("/".join(parts[:plain]) or "/").rstrip("/"), *parts[plain:]])


def _read(text: str, hosts: re.Pattern[str], scps: re.Pattern[str], *, pattern: bool = False) -> tuple[str, Address]:
    """Return an address as git is given it, and its parts. Errors: WrongValue."""
    text = os.path.expanduser(text)
    if not text or not _is_plain(text) or text.startswith("-"):
        raise WrongValue("not the address of a repository", "write an absolute path, or a URL without blanks")
    url = _URL.fullmatch(text)
    if url and url[1].lower() == "file" and url[2].lower() in ("", "localhost"):
        text, url = unquote(url[3] or ""), None
        if not _is_plain(text):
            raise _wrong(text)
    if text.startswith("/"):
        if pattern and ".." in text.split("/"):
            raise _wrong(text)
        path = os.path.normpath(_SLASHES.sub("/", text))
        return path, Address("", "", "", "", path)
    if url:
        return _of_url(text, url, hosts)
    found = scps.fullmatch(text)
    if not found or "::" in text or "://" in text:
        raise _wrong(text)
    user, host, path = found[1] or "", found[2], _straight(text, found[3])
    home = path if path.startswith(("/", "~")) else f"~/{path}"
    return text[: len(text) - len(found[3])] + path, Address("ssh", user, host.lower().rstrip("."), "", home)


def _of_url(text: str, url: re.Match[str], hosts: re.Pattern[str]) -> tuple[str, Address]:
    scheme, authority = url[1].lower(), hosts.fullmatch(url[2])
    if scheme not in PROTOCOLS or scheme == "file" or not authority:
        raise _wrong(text)
    user, host, port = authority[1] or "", authority[2], (authority[3] or "").lstrip("0")
    if ":" in user:
        raise WrongValue(
            "the address of the repository holds a password", "leave it out, and give git a credential helper"
        )
    path = _straight(text, url[3] or "")
    plain = unquote(path)
    if scheme == "ssh" and plain.startswith("/~"):
        plain = plain[1:]
    usual = "" if port == _PORTS[scheme] else port
    parts = Address(scheme, unquote(user), host.lower().rstrip("."), usual, plain)
    return f"{scheme}://{url[2]}{path}", parts


def _straight(text: str, path: str) -> str:
    """Return a path of another machine without needless slashes. Errors: WrongValue for one that leads elsewhere than
    it says: a server may decode it more than once, and take a backslash for a slash."""
    plain = path
    while (further := unquote(plain)) != plain:
        plain = further
    steps, hidden = plain.split("/"), "\\" in plain or plain.count("/") != path.count("/")
    if hidden or "." in steps or ".." in steps or not _is_plain(plain.replace(" ", "")):
        raise WrongValue(f"{text!r} leads through '..' or the like", "write the address without it")
    return _SLASHES.sub("/", path).rstrip("/")


def _is_plain(text: str) -> bool:
    return not any(ord(char) < 33 or ord(char) == 127 for char in text)


def _wrong(text: str) -> WrongValue:
    return WrongValue(
        f"{text!r} is not the address of a repository",
        "write an absolute path, a URL with https://, ssh://, git:// or http://, or user@host:path",
    )


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
