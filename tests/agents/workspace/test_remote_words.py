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
