"""uv.lock says what is installed, on every machine, from whatever index: it must be whole, public and current."""

import re
import tomllib
from typing import Any

import pytest

from tests.house.sources import CHECKOUT
from tools.environment import requirements


@pytest.fixture(scope="module")
def lock() -> dict[str, Any]:
    return tomllib.loads((CHECKOUT / "uv.lock").read_text())


def test_the_lock_names_only_public_places() -> None:
    hosts = set(re.findall(r"\w+://[^/\"]*", (CHECKOUT / "uv.lock").read_text()))
    assert hosts == {"https://pypi.org", "https://files.pythonhosted.org"}, "lock again without a private index"


def test_the_lock_is_of_this_project_file(lock: dict[str, Any]) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    (own,) = (package for package in lock["package"] if package["name"] == "spoold")

    def locked(entries: list[dict[str, str]]) -> set[str]:
        return {entry["name"] + entry.get("specifier", "") for entry in entries}

    metadata = own["metadata"]
    extras = project["project"]["optional-dependencies"]
    wanted = {*project["project"]["dependencies"], *(need for extra in extras.values() for need in extra)}
    assert locked(metadata["requires-dist"]) == wanted, "run `uv lock`"
    assert set(metadata["provides-extras"]) == set(extras), "run `uv lock`"
    assert locked(metadata["requires-dev"]["dev"]) == set(project["dependency-groups"]["dev"]), "run `uv lock`"
    assert lock["requires-python"] == project["project"]["requires-python"], "run `uv lock`"


def test_pip_gets_every_package_pinned_with_hashes(lock: dict[str, Any]) -> None:
    lines = list(requirements(lock))
    assert len(lines) == len(lock["package"]) - 1  # all but the project itself
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+( ; .+?)?( --hash=sha256:[0-9a-f]{64})+", line) for line in lines)


def test_a_package_for_another_system_keeps_its_marker() -> None:
    def package(name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "version": "1", "source": {"registry": "r"}, "sdist": {"hash": "sha256:0"}, **more}

    needs = [
        {"name": "always"},
        {"name": "always", "marker": "x"},
        {"name": "windows", "marker": "sys_platform == 'win32'"},
    ]
    own = {"name": "spoold", "version": "0", "source": {"editable": "."}, "dev-dependencies": {"dev": needs}}
    lines = list(requirements({"package": [package("always"), package("windows"), own]}))
    assert lines == ["always==1 --hash=sha256:0", "windows==1 ; (sys_platform == 'win32') --hash=sha256:0"]


def test_the_tools_name_no_index() -> None:
    for path in (CHECKOUT / "tools").iterdir():
        if path.is_file():
            assert not re.search(r"index-url[= ]|https?://", path.read_text()), path
