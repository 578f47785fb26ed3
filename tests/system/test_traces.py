"""The traces that nodes leave on their machine while systemd starts their unit anew."""

from pathlib import Path

import pytest

from spoold.system.host import FOLDER, succeed


def test_the_next_node_of_a_unit_finds_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert succeed("w1") == set()
    assert succeed("w1") == set()
    assert succeed("w2") == {"w1"}
    assert succeed("w3") == {"w2"}


def test_what_a_task_put_there_keeps_no_node_from_leaving_its_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "a-folder").mkdir()
    assert succeed("w1") == {"a-folder"}
    assert succeed("w2") == {"a-folder", "w1"}
    assert succeed("w3") == {"a-folder", "w2"}


@pytest.mark.parametrize("folder", ["", "relative", "/nowhere/at/all"])
def test_without_a_folder_there_are_no_traces(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, folder)
    assert succeed("w1") == set()
    assert succeed("w2") == set()
