"""What may be said of a workspace, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from spoold.agents.workspace.repository_config import WorkspaceConfig, reference
from spoold.protocol.errors import WrongValue


@pytest.mark.parametrize("said", ["main", "feature/x", "v1.0", "refs/spool/a=b/1.2", "ü"])
def test_the_name_of_a_branch(said: str) -> None:
    assert reference(said) == said


@pytest.mark.parametrize(
    "said", ["", "-x", "a b", "a..b", "a:b", "a^", "a@{1}", "/a", "a/", "a.lock", "a//b", "@", "*"]
)
def test_what_is_no_name_of_a_branch(said: str) -> None:
    with pytest.raises(WrongValue):
        reference(said)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "the workspace has no repository"),
        ({"kind": "none", "repo": "/r"}, 'kind = "none" has no repository'),
        ({"repo": "/r", "kind": "copy"}, "kind"),
        ({"repo": "/r", "keep": 1}, "keep"),
    ],
)
def test_what_does_not_fit_together(said: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        WorkspaceConfig.model_validate(said)


def test_a_line_of_setup_may_stand_alone() -> None:
    assert WorkspaceConfig.model_validate({"repo": "/r", "setup": "npm ci"}).setup == ("npm ci",)
