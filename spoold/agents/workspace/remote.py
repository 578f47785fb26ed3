"""A remote is a share, too: what git says of it, told apart by whose fault it is.

    away       it cannot be reached now: the same may go well later, and costs nobody an attempt
    refused    a rule of its own forbids this push: no other try will go otherwise
    else       this machine may not, or the address is wrong: another machine may do better

Law: pure. Only words that name a connection, or a server that is not well, count as away: a wrong address must not
be tried for ever. The line of git that says what became of a reference decides before all others, then the code of
HTTP. Lines that begin with `remote:` are words of the server, which anyone who writes a hook chooses: they never say
that it is away. The one exception is a push that was not unpacked: no hook has run then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spoold.agents.workspace.git import GitFailed, end_of
from spoold.protocol.amount import clip
from spoold.protocol.errors import SpoolError

TOO_LONG = 124
# How much of a hook's words is told (characters).
HOOK_MAX = 600
_FULL = r"no space left|disk quota exceeded"
_AWAY = re.compile(
    r"could not resolve (host|proxy)|name resolution|connection (refused|timed out|reset|closed|aborted)|"
    r"network is (unreachable|down)|no route to host|host is (down|unreachable)|operation timed out|"
    r"failed to connect|couldn't connect|unable to connect|empty reply|early eof|unexpected disconnect|"
    r"remote end hung up|broken pipe|rpc failed|ssl_error|gnutls_handshake|"
    r"kex_exchange_identification|stale file handle|input/output error|endpoint is not connected|"
    rf"\.lock': file exists|resource temporarily unavailable|{_FULL}|too many connections",
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
# What became of a reference, as git writes it for people and with --porcelain.
_STATUS = re.compile(r" ?!\s.*?\[(rejected|remote rejected|remote failure)\](?: \S+ -> \S+)?(?: \((.*)\))?\s*")
# Reasons of a server that pass by themselves; unless it says that somebody has decided so.
_PASSES = re.compile(
    r"failed to (update ref|lock)|lock[ _](error|failure)|cannot lock ref|unable to create .*\.lock|"
    rf"transaction failed to start|internal (server )?error|temporarily|timed ?out|time-?out|unavailable|{_FULL}",
    re.IGNORECASE,
)
_DECIDED = re.compile(r"declined|denied|not allowed|forbidden|prohibited|protected|refus", re.IGNORECASE)
_HTTP = re.compile(r"returned error: (\d{3})|rpc failed; http (\d{3})", re.IGNORECASE)
_HTTP_AWAY, _HTTP_REFUSED = re.compile(r"5\d\d|408|429"), re.compile(r"403|413|507")
# A program of the server looks at each push, and has refused this one; what it prints comes as `remote:`.
_HOOK = re.compile(r"[^()]*hook declined")
_ABORTED = "fatal: ref updates aborted by hook"  # may follow words of the hook in their line
_OF_GIT = re.compile(r"error: hook declined to update ")
_REFUSED = re.compile(
    r"hook declined|protected branch|not allowed to push|non-fast-forward updates|push declined|"
    r"exceeds .*file size limit|remote: error: GH\d+",
    re.IGNORECASE,
)
_OTHER_HASH = re.compile(r"mismatched algorithms|does not support this repository's hash algorithm")
_SHA_1 = "Fix: use a repository of SHA-1. Those of SHA-256 are not supported."


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
    if _OTHER_HASH.search(failed.errors):
        return WorkspaceFailed(f"{text} {_SHA_1}")
    kind = _kind(failed, known=known)
    if kind is RemoteAway:
        return RemoteAway(f"{text} {_COMES_BACK}" if fix else text)
    if kind is RemoteRefused:
        return RemoteRefused(f"{text} {_answer(failed)}" if fix else text)
    return WorkspaceFailed(f"{text} {fix}".rstrip())


def _kind(failed: GitFailed, *, known: bool) -> type[WorkspaceFailed]:
    """Return whose fault it is: the line of the reference decides, then a code of HTTP, then words of this side."""
    own = "\n".join(line for line in _lines(failed.errors) if not _is_of_server(line))
    pushes = failed.words[:1] == ("push",) or failed.words[:2] == ("lfs", "push")
    if pushes and (status := _status(failed)) is not None:
        return _kind_of_status(*status, failed.errors)
    if pushes and _ABORTED in own:
        return RemoteRefused
    codes = [found[1] or found[2] for found in _HTTP.finditer(own)]
    if codes:
        if any(map(_HTTP_REFUSED.fullmatch, codes)):
            return RemoteRefused if pushes else WorkspaceFailed
        return RemoteAway if any(map(_HTTP_AWAY.fullmatch, codes)) else WorkspaceFailed
    if failed.code == TOO_LONG or _AWAY.search(own) or (known and _GONE.search(own)):
        return RemoteAway
    return RemoteRefused if pushes and _REFUSED.search(failed.errors) else WorkspaceFailed


def _kind_of_status(status: str, reason: str, errors: str) -> type[WorkspaceFailed]:
    if status == "remote failure":  # it has not said what became of it
        return RemoteAway
    if status == "rejected":  # by this side: another push came first
        return WorkspaceFailed
    if reason == "unpacker error":
        return RemoteAway if re.search(_FULL, errors, re.IGNORECASE) else RemoteRefused
    return RemoteAway if _PASSES.search(reason) and not _DECIDED.search(reason) else RemoteRefused


def _lines(text: str) -> Iterator[str]:
    """Return lines as git has them. Python would split at more characters, which a hook may print."""
    return (line for line in re.split(r"[\r\n]", text) if line.strip())


def _is_of_server(line: str) -> bool:
    return line.startswith("remote:")


def _status(failed: GitFailed) -> tuple[str, str] | None:
    """Return what became of the reference, and the reason; None where git does not say."""
    found = [match for line in _lines(failed.errors) if (match := _STATUS.fullmatch(line))]
    return (found[-1][1], found[-1][2] or "") if found else None


def _hook(failed: GitFailed) -> str:
    """Return how git calls the hook of the server that has refused a push; '' where none has."""
    status = _status(failed)
    return status[1] if status is not None and status[0] == "remote rejected" and _HOOK.fullmatch(status[1]) else ""


def said(failed: GitFailed) -> str:
    """Return what git said of a failure, as one sentence: where a hook of the server refuses it, the hook's words."""
    if hook := _hook(failed):
        words = clip(" | ".join(_words_of_hook(failed)), HOOK_MAX)
        return f"the hook there {f'says: {words}' if words else 'refuses it and says nothing'} ({hook})."
    lines = [line.strip() for line in _lines(failed.errors)]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "!", "ssh:"))] or lines
    if failed.killed:
        ended = "git was killed, by a person or since this machine has no more memory"
    else:
        ended = (
            "git was stopped: it took too much time or memory" if failed.code < 0 else f"git ended with {failed.code}"
        )
    text = end_of(" ".join(told)) or ended
    return text if text.endswith(".") else f"{text}."


def _words_of_hook(failed: GitFailed) -> list[str]:
    told = (line.removeprefix("remote:").strip() for line in _lines(failed.errors) if _is_of_server(line))
    return [line for line in told if line and not _OF_GIT.match(line)]


def _answer(failed: GitFailed) -> str:
    """Return the fix for a push that a rule of the server refuses."""
    if not _hook(failed):
        return _ASK_FOR_THE_HOOK if _ABORTED in failed.errors else _AS_IT_SAYS
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
