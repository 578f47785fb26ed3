"""What git says of a remote: who is to blame, and which fix is named."""

from __future__ import annotations

import pytest

from spoold.agents.workspace.git import GitFailed
from spoold.agents.workspace.remote import RemoteAway, RemoteRefused, WorkspaceFailed, failure, said

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
