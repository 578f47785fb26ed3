"""The traces that nodes leave on their machine while systemd starts their unit anew."""

from pathlib import Path

import pytest

from spoold.system.traces import FOLDER, succeed


def test_the_next_node_of_a_unit_finds_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert succeed("w1") == set()
    assert succeed("w1") == set()
    assert succeed("w2") == {"w1"}
    assert succeed("w3") == {"w2"}


@pytest.mark.parametrize("folder", ["", "relative", "/nowhere/at/all"])
def test_without_a_folder_there_are_no_traces(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, folder)
    assert succeed("w1") == set()
    assert succeed("w2") == set()
