"""`spool config check` names every fault at once, and none that is not there."""

import os
from pathlib import Path

import pytest

from spoold.client.spool.configuration import Checked, check_settings
from spoold.protocol.errors import BadFile, Unavailable
from tests.cli.command import make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "s")


def fields(checked: Checked) -> list[str]:
    return [fault.field for fault in checked.faults]


def test_a_new_spool_is_right(root: Path) -> None:
    (root / "settings/1.a.json").write_text('{"settings": {"retry": {"max": 1}}}', encoding="utf-8")
    assert check_settings(str(root)) == Checked(f"{root}/spool.toml", (), 1)
    (root / "spool.toml").unlink()
    assert check_settings(str(root)).wrong is False


def test_every_fault_is_named_with_its_file_its_field_and_the_fix(root: Path) -> None:
    (root / "spool.toml").write_text(
        'timeout = "long"\n[retry]\nmaks = 1\njitter = 2\n[retyr]\nmax = 1\n[types.a]\npriority = "hi"\n',
        encoding="utf-8",
    )
    (root / "settings/1.a.json").write_text('{"settings": {"ready": {"window": 8}}}', encoding="utf-8")
    (root / "settings/2.a.json").write_text('{"settings": {"heartbeat": {"misses": 8}}}', encoding="utf-8")
    (root / "settings/3.a.json").write_text("{", encoding="utf-8")
    (root / "settings/4.a.json").write_text('{"settings": {"ready": {"window": 0}}}', encoding="utf-8")
    checked = check_settings(str(root))
    assert (checked.wrong, checked.changes, checked.warnings) == (True, 1, ())
    found = {fault.field: fault for fault in checked.faults[:5]}
    assert found.keys() == {"timeout", "types.a.priority", "retry.maks", "retry.jitter", "retyr"}
    assert {fault.file for fault in found.values()} == {f"{root}/spool.toml"}
    assert "did you mean 'max'" in found["retry.maks"].mend
    assert "did you mean 'retry'" in found["retyr"].mend
    assert not any("more)" in fault.problem for fault in checked.faults), "each is told, so none is counted"
    assert [(fault.file, fault.field) for fault in checked.faults[5:]] == [
        ("settings/2.a.json", "heartbeat.misses"),
        ("settings/3.a.json", ""),
        ("settings/4.a.json", "ready.window"),
    ]


def test_another_file_takes_the_place_of_spool_toml(root: Path) -> None:
    (root / "spool.toml").write_text("nonsense", encoding="utf-8")
    (root / "settings/1.a.json").write_text('{"settings": {"retry": {"max": 1}}}', encoding="utf-8")
    assert check_settings(str(root), b"timeout = 5\n", "new.toml") == Checked("new.toml", (), 1)
    assert fields(check_settings(str(root), b'"a.b" = 5\n', "new.toml")) == ["a.b"]
    assert fields(check_settings(str(root))) == [""]
    assert check_settings(None, b"timeout = 5\n", "new.toml") == Checked("new.toml", (), None)
    assert fields(check_settings(None, b"timeout = -5\n", "new.toml")) == ["timeout"]


def test_a_name_that_no_section_has_is_a_fault_but_none_where_its_section_is_wrong(root: Path) -> None:
    file = b"[limits.api]\nmax = 1\n[types.a]\nuses = ['apy']\n[types.b]\nuses = {api = 2}\n"
    assert fields(check_settings(str(root), file, "new.toml")) == ["types.a.uses", "types.b.uses"]
    (root / "settings/1.a.json").write_text('{"settings": {"types": {"c": {"uses": ["api"]}}}}', encoding="utf-8")
    assert fields(check_settings(str(root), b"timeout = 1\n", "new.toml")) == ["types.c.uses"]
    assert check_settings(str(root), b"[limits.api]\nmax = 1\n", "new.toml").wrong is False
    assert fields(check_settings(str(root), b"[limits.api]\nmax = -1\n", "new.toml")) == ["limits.api.max"]


def test_what_hides_the_changes_is_wrong_too(root: Path) -> None:
    (root / "settings").rmdir()
    assert check_settings(str(root)).wrong is False, "a spool of an earlier release has none"
    os.symlink("/nonexistent", root / "settings")
    checked = check_settings(str(root))
    assert (checked.wrong, checked.faults) == (True, ())
    assert "settings" in checked.warnings[0]


def test_a_link_in_the_place_of_spool_toml_is_a_fault(root: Path) -> None:
    (root / "spool.toml").unlink()
    os.symlink("/nonexistent", root / "spool.toml")
    [fault] = check_settings(str(root)).faults
    assert (fault.file, fault.problem) == (f"{root}/spool.toml", "is not a regular file but a symlink.")


def test_what_is_no_spool_cannot_be_checked(root: Path, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="spool init"):
        check_settings(str(tmp_path))
    (root / "spool.json").write_text('{"format": 99}', encoding="utf-8")
    with pytest.raises(BadFile, match="format"):
        check_settings(str(root))
