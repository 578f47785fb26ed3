"""What only a forge or a release reads is checked here: files that nothing runs rot unseen."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from spoold import __version__
from tests.house.sources import CHECKOUT, kept

CHANGELOG = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
FORGE = CHECKOUT / ".github"
HOME = "https://github.com/spoold/spoold"
# Everything at the top is there for a reader, or since a tool looks for it there.
TOP = {
    ".ci",
    ".github",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
}
TOP |= {"docs", "pyproject.toml", "spool_layout.md", "spoold", "systemd", "tests", "tools", "uv.lock"}


def parsed(path: Path) -> Any:
    """A YAML file. `on:` reads as true, which is what a forge expects."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def program(command: str) -> Path | None:
    """The file of this checkout that a command runs; None where it runs none."""
    words = [
        word for word in shlex.split(command) if "/" in word and not word.startswith(("-", "/")) and "=" not in word
    ]
    return CHECKOUT / words[0] if words else None


def test_the_version_has_the_newest_section_of_the_changelog() -> None:
    sections = re.findall(r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?$", CHANGELOG, re.MULTILINE)
    assert len(sections) == len(re.findall(r"^## ", CHANGELOG, re.MULTILINE))
    released = [(name, date) for name, date in sections if name != "Unreleased"]
    assert released[0][0] == __version__
    assert all(date for _, date in released)
    assert "Unreleased" not in [name for name, _ in sections[1:]]


def test_all_addresses_are_of_one_home() -> None:
    urls = PROJECT["project"]["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues"}
    for url in urls.values():
        assert url.startswith(HOME)
        if "/blob/main/" in url:
            assert (CHECKOUT / url.partition("/blob/main/")[2]).is_file()


def test_the_workflow_runs_what_anybody_can_run() -> None:
    files = sorted((FORGE / "workflows").iterdir())
    assert [file.name for file in files] == ["ci.yml"]
    (job,) = parsed(files[0])["jobs"].values()
    assert job["timeout-minutes"] == 90
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert [program(run) for run in runs] == [CHECKOUT / ".ci" / "run"]
    for step in job["steps"]:
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/x@v1"))
    asked = re.search(r">=(\d+\.\d+)", PROJECT["project"]["requires-python"])
    assert asked is not None
    assert job["steps"][1]["with"]["python-version"] == asked[1]


def test_the_hooks_are_local_and_are_checks_of_the_tests() -> None:
    checks = (CHECKOUT / "tools" / "test").read_text(encoding="utf-8")
    (repo,) = parsed(CHECKOUT / ".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local"
    assert len({hook["id"] for hook in repo["hooks"]}) == len(repo["hooks"]) == 4
    for hook in repo["hooks"]:
        assert hook["language"] == "system"
        assert program(hook["entry"]) == CHECKOUT / "tools" / "run"
        assert f" {hook['entry'].partition(' ')[2]}" in checks


def test_what_they_run_can_be_run() -> None:
    for path in (CHECKOUT / ".ci" / "run", CHECKOUT / "tools" / "run", CHECKOUT / "tools" / "test"):
        assert path.is_file()
        assert path.stat().st_mode & 0o111


@pytest.mark.parametrize("path", sorted((FORGE / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name)
def test_an_issue_template_is_a_form_that_a_forge_reads(path: Path) -> None:
    form = parsed(path)
    if path.name == "config.yml":
        assert set(form) == {"blank_issues_enabled", "contact_links"}
        assert all(link["url"].startswith(HOME) for link in form["contact_links"])
        return
    assert set(form) == {"name", "description", "labels", "body"}
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    assert all(field["attributes"]["label"] for field in form["body"])


def test_a_pull_request_is_asked_for_what_contributing_asks_for() -> None:
    text = (FORGE / "pull_request_template.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([\w./]+)`", text):
        assert (CHECKOUT / name).exists(), name


def test_nothing_lies_at_the_top_that_nobody_looks_for_there() -> None:
    assert {path.relative_to(CHECKOUT).parts[0] for path in kept()} <= TOP
