"""What git says of a remote: who is to blame, and which fix is named."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from spoold.agents.workspace.git import Git, GitFailed, RemoteAway, RemoteRefused, WorkspaceFailed, failure, said
from spoold.agents.workspace.publishing import publish
from tests.agents.workspace.repos import Remote

URL = "https://git.example/a.git"


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (f"fatal: unable to access '{URL}/': Could not resolve host: git.example", RemoteAway),
        (f"fatal: unable to access '{URL}/': The requested URL returned error: 503", RemoteAway),
        (f"fatal: unable to access '{URL}/': The requested URL returned error: 429", RemoteAway),
        (f"fatal: {URL}/info/refs not valid: is this a git repository?", RemoteAway),
        ("fatal: unable to update url base from redirection:\n  asked for: a\n   redirect: b", RemoteAway),
        (f"fatal: '{URL}' does not appear to be a git repository", RemoteAway),
        ("error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413", RemoteRefused),
        ("error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403", RemoteRefused),
        ("! [remote rejected] main -> main (hook declined)", RemoteRefused),
        (f"fatal: could not read Username for '{URL}': terminal prompts disabled", WorkspaceFailed),
        (f"fatal: Authentication failed for '{URL}/'", WorkspaceFailed),
    ],
)
def test_who_is_to_blame_and_what_helps(errors: str, kind: type[WorkspaceFailed]) -> None:
    found = failure(
        GitFailed(("push",), 128, errors), "it cannot be pushed:", "Fix: let this user write.", known=True
    )
    assert type(found) is kind
    assert ("let this user write" in str(found)) is (kind is WorkspaceFailed)
    assert "Fix: " in str(found)


def test_an_address_that_never_answered_may_be_wrong() -> None:
    found = failure(GitFailed(("fetch",), 128, f"fatal: {URL}/info/refs not valid: is this a git repository?"), "x")
    assert type(found) is WorkspaceFailed


def test_a_git_that_said_nothing_and_was_stopped_took_too_much() -> None:
    assert said(GitFailed(("read-tree",), -15, "")) == "git was stopped: it took too much time or memory."
    assert said(GitFailed(("read-tree",), 3, "")) == "git ended with 3."


REJECTED = "!\tabc:refs/heads/main\t[remote rejected] (pre-receive hook declined)"
GIT = f"error: failed to push some refs to '/srv/a'\n{REJECTED}"
PROTECTED = "error: GH006: Protected branch update failed"
SILENT = "remote: error: hook declined to update refs/heads/main"
OWN = "or let it take pushes of this machine's user."


@pytest.mark.parametrize(
    ("errors", "words", "fix"),
    [
        (
            f"remote: no large files        \nremote: \nremote: see the wiki\n{GIT}",
            "the hook there says: no large files | see the wiki (pre-receive hook declined).",
            f"Fix: do what the hook says, {OWN}",
        ),
        (
            f"remote: {PROTECTED}\n ! [remote rejected] main -> main (protected branch hook declined)",
            f"the hook there says: {PROTECTED} (protected branch hook declined).",
            f"Fix: do what the hook says, {OWN}",
        ),
        (
            f"{SILENT}\n ! [remote rejected] main -> main (hook declined)",
            "the hook there refuses it and says nothing (hook declined).",
            f"Fix: ask its owner what the hook wants, {OWN}",
        ),
        (
            " ! [remote rejected] main -> main (deny updating a hidden ref)",
            "! [remote rejected] main -> main (deny updating a hidden ref).",
            "Fix: what the server says.",
        ),
    ],
)
def test_a_hook_that_refuses_is_named_with_its_words_and_a_fix_for_them(errors: str, words: str, fix: str) -> None:
    failed = GitFailed(("push",), 1, errors)
    found = failure(failed, f"it is not taken: {said(failed)}", "Fix: let this user write.", known=True)
    assert type(found) is RemoteRefused
    assert str(found) == f"it is not taken: {words} {fix}"


def test_a_hook_that_says_much_does_not_hide_the_fix() -> None:
    failed = GitFailed(("push",), 1, "remote: " + "\nremote: ".join(["x" * 70] * 100) + f"\n{GIT}")
    text = str(failure(failed, said(failed), "Fix: x.", known=True))
    assert len(text) < 800
    assert text.endswith(OWN)


# What a hook may print: whatever git says elsewhere of a connection, of a full disk, of a reference.
HOOKS = (
    "connection refused",
    "Connection reset by peer",
    "could not resolve host name",
    "no space left on device",
    "fatal: the remote end hung up unexpectedly",
    "error: RPC failed; HTTP 503 curl 22 The requested URL returned error: 503",
    "fatal: 'x' does not appear to be a git repository",
    "error: cannot lock ref 'a': Unable to create '/a.lock': File exists.",
    "failed to update ref",
    "! [remote rejected] a -> a (failed to update ref)",
    "!\ta:a\t[remote failure] (remote failed to report status)",
    "see \x0bconnection refused\x0c\x1c\x85\u2028broken pipe\u2029early eof",
    "50%\rconnection refused\r",
    "push declined: protected branch",
    "",
)
# What git says of the reference, and what follows, whatever a hook printed before.
STATUSES = {
    "[remote rejected] (pre-receive hook declined)": RemoteRefused,
    "[remote rejected] (hook declined)": RemoteRefused,
    "[remote rejected] (protected branch hook declined)": RemoteRefused,
    "[remote rejected] (push declined due to repository rule violations)": RemoteRefused,
    "[remote rejected] (deny updating a hidden ref)": RemoteRefused,
    "[remote rejected] (funny refname)": RemoteRefused,
    "[remote rejected] (TF402455: pushes to this branch are not permitted (by connection policy))": RemoteRefused,
    "[remote rejected] (branch is currently checked out)": RemoteRefused,
    "[remote rejected] (failed to update ref)": RemoteAway,
    "[remote rejected] (cannot lock ref 'refs/heads/a': is at 1 but expected 2)": RemoteAway,
    "[remote rejected] (Internal Server Error)": RemoteAway,
    "[remote rejected] (transaction failed to start)": RemoteAway,
    "[remote failure] (remote failed to report status)": RemoteAway,
    "[rejected] (stale info)": WorkspaceFailed,
    "[rejected] (fetch first)": WorkspaceFailed,
}


def sideband(words: str) -> str:
    """What git prints of a server's words: it begins each line anew at these two characters, and at no other."""
    return "".join(f"remote: {part}" if part.strip("\r\n") else part for part in re.split(r"(?<=[\r\n])", words))


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("porcelain", [True, False])
def test_words_of_a_hook_decide_nothing_whatever_they_are(status: str, porcelain: bool) -> None:
    """B4: a hook that printed "connection refused" made a refusal an absence: tried again for ever."""
    chance = random.Random(status)
    bracket, reason = status.split("] ", 1)
    line = f"!\tabc:refs/heads/a\t{status}" if porcelain else f" ! {bracket}] abc -> a {reason}"
    for words in [*HOOKS, *("\n".join(chance.sample(HOOKS, 4)) for _ in range(50))]:
        errors = f"{sideband(words)}\nerror: failed to push some refs to '/srv/a'\nTo /srv/a\n{line}\nDone"
        found = failure(GitFailed(("push",), 1, errors), "it is not taken:", "Fix: let this user write.", known=True)
        assert type(found) is STATUSES[status], errors


@pytest.mark.parametrize("words", HOOKS)
def test_words_of_a_server_that_answers_make_no_other_failure_an_absence(words: str) -> None:
    errors = f"{sideband(words)}\nfatal: Authentication failed for '{URL}/'"
    for command in ("push", "fetch", "ls-remote"):
        found = failure(GitFailed((command,), 128, errors), "x", "Fix: y.", known=True)
        assert type(found) is not RemoteAway, errors


UNPACKING = "error: remote unpack failed: index-pack abnormal exit"
NOT_UNPACKED = f"{UNPACKING}\n!\ta:refs/heads/a\t[remote rejected] (unpacker error)"
HUNG_UP = "send-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly"


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (f"remote: all is well\n{HUNG_UP}", RemoteAway),
        (f"error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403\n{HUNG_UP}", RemoteRefused),
        (f"error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413\n{HUNG_UP}", RemoteRefused),
        (f"error: RPC failed; HTTP 401 curl 22 The requested URL returned error: 401\n{HUNG_UP}", WorkspaceFailed),
        (f"error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502\n{HUNG_UP}", RemoteAway),
        (f"connection refused\nfatal: ref updates aborted by hook\n{HUNG_UP}", RemoteRefused),
        (
            f"remote: fatal: write error: No space left on device\n{NOT_UNPACKED}",
            RemoteAway,
        ),
        (
            f"remote: fatal: fsck error in packed object\n{NOT_UNPACKED}",
            RemoteRefused,
        ),
    ],
)
def test_what_git_prints_after_the_cause_does_not_hide_it(errors: str, kind: type[WorkspaceFailed]) -> None:
    assert type(failure(GitFailed(("push",), 1, errors), "x", "Fix: y.", known=True)) is kind


@pytest.mark.parametrize("hook", ["pre-receive", "update", "reference-transaction"])
@pytest.mark.parametrize("words", HOOKS)
def test_a_hook_of_git_itself_refuses_whatever_it_prints(tmp_path: Path, hook: str, words: str) -> None:
    remote = Remote(tmp_path)
    (tmp_path / "words").write_text(words)
    path = remote.path / "hooks" / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'#!/bin/sh\n[ "$1" = committed ] || [ "$1" = aborted ] || {{ cat {tmp_path}/words >&2; exit 1; }}\n'
    )
    path.chmod(0o755)
    with pytest.raises(RemoteRefused):
        publish(Git(str(remote.path)), str(remote.path), remote.commit("main"), "t", 1)


def test_a_repository_of_another_hash_is_said_to_be_one() -> None:
    errors = "fatal: mismatched algorithms: client sha1; server sha256"
    found = failure(GitFailed(("fetch",), 128, errors), f"it cannot be read: {errors}.", "Fix: check the address.")
    assert str(found).endswith("Fix: use a repository of SHA-1. Those of SHA-256 are not supported.")
