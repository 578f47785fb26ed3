"""A remote is a share, too: what git says of it, told apart by whose fault it is.

    away       it cannot be reached now: the same may go well later, and costs nobody an attempt
    refused    a rule of its own forbids this push: no other try will go otherwise
    else       this machine may not, or the address is wrong: another machine may do better

Law: pure. Only words that name a connection, or a server that is not well, count as away: a wrong address must not be
tried for ever.
"""

from __future__ import annotations

import re

from spoold.agents.workspace.git import GitFailed, end_of
from spoold.protocol.amount import clip
from spoold.protocol.errors import SpoolError

TOO_LONG = 124
# How much of a hook's words is told (characters).
HOOK_MAX = 600
_AWAY = re.compile(
    r"could not resolve (host|proxy)|name resolution|connection (refused|timed out|reset|closed|aborted)|"
    r"network is (unreachable|down)|no route to host|host is (down|unreachable)|operation timed out|"
    r"failed to connect|couldn't connect|unable to connect|empty reply|early eof|unexpected disconnect|"
    r"remote end hung up|broken pipe|returned error: (5\d\d|429|408)|rpc failed(?!; HTTP 4(03|13))|ssl_error|"
    r"gnutls_handshake|"
    r"kex_exchange_identification|stale file handle|input/output error|endpoint is not connected|"
    r"\.lock': file exists|failed to update ref|resource temporarily unavailable|no space left|disk quota exceeded|"
    r"too many connections",
    re.IGNORECASE,
)
_GONE = re.compile(
    r"does not appear to be a git repository|not valid: is this a git repository|url base from redirection",
    re.IGNORECASE,
)
_COMES_BACK = "Fix: none where it comes back; else check its address, and the network and the proxy of this machine."
_AS_IT_SAYS = "Fix: what the server says."
_AS_THE_HOOK_SAYS = "Fix: do what the hook says, or let it take pushes of this machine's user."
_ASK_FOR_THE_HOOK = "Fix: ask its owner what the hook wants, or let it take pushes of this machine's user."
# A program of the server looks at each push, and has refused this one; what it prints comes as `remote:`.
_HOOK = re.compile(r"\[remote rejected\][^(\n]*\(([^()\n]*hook declined)\)")
_OF_GIT = re.compile(r"error: hook declined to update ")
_REFUSED = re.compile(
    r"\[remote rejected\]|hook declined|protected branch|not allowed to push|non-fast-forward updates|"
    r"push declined|returned error: (403|413)|exceeds .*file size limit|remote: error: GH\d+",
    re.IGNORECASE,
)


# What git says of a push to a branch whose files lie there: it is refused, or it waits for those files.
_CHECKED_OUT = re.compile(r"refusing to update checked out branch|\(branch is currently checked out\)")
_CHANGED = re.compile(r"\(Working directory has (un)?staged changes\)|\(untracked working tree files? would be ")


class WorkspaceFailed(SpoolError):
    """A workspace cannot be made or saved: what is wrong, and the fix."""


class RemoteAway(WorkspaceFailed):
    """The remote cannot be reached now; the same may go well later."""


class RemoteRefused(WorkspaceFailed):
    """A rule of the remote forbids it; the words are the server's own."""


def failure(failed: GitFailed, text: str, fix: str = "", *, known: bool = False) -> WorkspaceFailed:
    """Return the error that a command which reaches a remote means, with these words. fix: where it is the fault of
    neither the network nor a rule; known: whether this address has answered before: then a repository that is not
    there is one that is away, and so is one in whose place a page is, as where a network wants a login."""
    if failed.code == TOO_LONG or _AWAY.search(failed.errors) or (known and _GONE.search(failed.errors)):
        return RemoteAway(f"{text} {_COMES_BACK}" if fix else text)
    if failed.words[:1] == ("push",) and _REFUSED.search(failed.errors):
        return RemoteRefused(f"{text} {_answer(failed)}" if fix else text)
    return WorkspaceFailed(f"{text} {fix}".rstrip())


def said(failed: GitFailed) -> str:
    """Return what git said of a failure, as one sentence: where a hook of the server refuses it, the hook's words."""
    if hook := _HOOK.search(failed.errors):
        words = clip(" | ".join(_words_of_hook(failed)), HOOK_MAX)
        return f"the hook there {f'says: {words}' if words else 'refuses it and says nothing'} ({hook[1]})."
    lines = [line.strip() for line in failed.errors.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "!", "ssh:"))] or lines
    stopped = "git was stopped: it took too much time or memory"
    text = end_of(" ".join(told)) or (stopped if failed.code < 0 else f"git ended with {failed.code}")
    return text if text.endswith(".") else f"{text}."


def _words_of_hook(failed: GitFailed) -> list[str]:
    told = [line.strip() for line in failed.errors.splitlines() if line.startswith("remote:")]
    words = (line.removeprefix("remote:").strip() for line in told)
    return [line for line in words if line and not _OF_GIT.match(line)]


def _answer(failed: GitFailed) -> str:
    """Return the fix for a push that a rule of the server refuses."""
    if not _HOOK.search(failed.errors):
        return _AS_IT_SAYS
    return _AS_THE_HOOK_SAYS if _words_of_hook(failed) else _ASK_FOR_THE_HOOK


def checked_out(failed: GitFailed, repo: str, branch: str) -> str:
    """Return why a push to a branch is refused, and the fix, where the cause is that its files lie there; else ''."""
    if _CHECKED_OUT.search(failed.errors):
        return f"{branch} is checked out in {repo}: {bare_or_updated(repo)}."
    if _CHANGED.search(failed.errors):
        fix = "commit or stash them there, or use a bare repository"
        return f"{branch} is checked out in {repo}, and files there were changed: {fix}."
    return ""


def bare_or_updated(repo: str) -> str:
    """Return what lets git take a push into a branch that is checked out in a repository."""
    here = f"git -C {repo} config" if repo.startswith("/") else "on its machine: git config"
    return f"use a bare repository, or run `{here} receive.denyCurrentBranch updateInstead`"
