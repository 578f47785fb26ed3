"""Goal: `spool fsck` exits 0 on a clean tree and 1 on a broken one, and `--repair` mends it, but not in use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import leader, make, spool, told


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spool that nobody serves, in which one task is ready; the second look comes at once."""
    monkeypatch.setattr("spoold.client.spool.fsck_and_repair.LOOK_AGAIN_S", 0)
    made = make(tmp_path / "s")
    (made / "pending" / "a.json").write_text('{"id": "a", "type": "review"}')
    leader(made).close()
    return made


def misplace(directory: Path) -> str:
    """Put the ready task into a lane that is not its own; returns its name."""
    (task,) = (directory / "ready" / "type=review").iterdir()
    other = directory / "ready" / "type=other"
    other.mkdir()
    task.rename(other / task.name)
    return task.name


def test_a_clean_spool(directory: Path) -> None:
    result = spool(directory, "fsck")
    assert (result.exit_code, result.stdout) == (0, "clean: 1 ready\n")
    answer = told(directory, "fsck")
    assert (answer["verdict"], answer["findings"], answer["repaired"]) == ("clean", [], [])
    assert answer["counts"]["ready"] == 1


def test_warnings_are_no_failure(directory: Path) -> None:
    (directory / "rejected" / "x.json").write_text("?")
    result = spool(directory, "fsck")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "1 warning: 1 ready, 1 rejected"


def test_a_task_file_moved_by_hand_is_told_from_what_is_nobodys(directory: Path) -> None:
    (task,) = (directory / "ready" / "type=review").iterdir()
    task.rename(directory / "ready" / task.name)
    result = spool(directory, "fsck")
    assert result.stdout.splitlines()[0].startswith(
        f"warning: ready/{task.name}: a task file in the wrong place (id a)"
    )
    assert "into pending/" in result.stdout


def test_errors_are_and_a_repair_mends_them(directory: Path) -> None:
    name = misplace(directory)
    result = spool(directory, "fsck")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith(f"error: ready/type=other/{name}: its lane is type=other")
    assert "--repair" in result.stderr
    broken = spool(directory, "fsck", "--json")
    assert broken.exit_code == 1
    (finding,) = json.loads(broken.stdout)["findings"]
    assert (finding["severity"], finding["law"], finding["repairable"]) == ("error", "lane", True)
    mended = spool(directory, "fsck", "--repair")
    assert mended.exit_code == 0
    assert mended.stdout.splitlines() == [
        f"repaired: moved ready/type=other/{name} to waiting/type=review/{name}",
        "clean: 1 waiting",
    ]


def test_a_spool_in_use_is_only_repaired_by_force(directory: Path) -> None:
    master = leader(directory, "m-0002")
    name = misplace(directory)
    refused = spool(directory, "fsck", "--repair")
    assert refused.exit_code == 2
    assert "m-0002 still runs" in refused.stderr
    assert (directory / "ready" / "type=other" / name).exists()
    assert spool(directory, "fsck", "--repair", "--force").exit_code == 0
    master.close()
