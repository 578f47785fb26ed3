"""Files of ours in an agent's home: whatever an earlier attempt left in their place, no link is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spoold.agents.sandbox import private_home


def test_a_file_is_put_where_it_belongs(tmp_path: Path) -> None:
    private_home.put(str(tmp_path), str(tmp_path / ".cli" / "deep" / "settings.json"), "{}")
    path = tmp_path / ".cli" / "deep" / "settings.json"
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("{}", 0o600)
    private_home.put(str(tmp_path), str(path), "[]")
    assert path.read_text() == "[]"


@pytest.mark.parametrize("link", [".cli", ".cli/deep", ".cli/deep/settings.json"])
def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path, link: str) -> None:
    home, victim = tmp_path / "home", tmp_path / "victim"
    (victim / "deep").mkdir(parents=True)
    for held in (victim / "settings.json", victim / "deep" / "settings.json"):
        held.write_text("mine")
    planted = home / link
    planted.parent.mkdir(parents=True)
    planted.symlink_to(victim / "settings.json" if link.endswith(".json") else victim)
    private_home.put(str(home), str(home / ".cli" / "deep" / "settings.json"), "ours")
    assert (home / ".cli" / "deep" / "settings.json").read_text() == "ours"
    assert {held.read_text() for held in victim.rglob("*.json")} == {"mine"}
    assert not planted.is_symlink()


@pytest.mark.parametrize("link", ["logs", "logs/debug.txt"])
def test_a_log_behind_a_link_is_not_read(tmp_path: Path, link: str) -> None:
    home, victim = tmp_path / "home", tmp_path / "victim"
    victim.mkdir()
    (victim / "debug.txt").write_text("secret")
    planted = home / link
    planted.parent.mkdir(parents=True)
    planted.symlink_to(victim / "debug.txt" if link.endswith(".txt") else victim)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        private_home.opened(str(home), str(home / "logs" / "debug.txt"))


def test_a_log_that_is_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "debug.txt").write_text("waits")
    with open(private_home.opened(str(tmp_path), str(tmp_path / "debug.txt")), encoding="utf-8") as file:
        assert file.read() == "waits"


def test_a_link_to_the_log_beside_it_is_the_log(tmp_path: Path) -> None:
    (tmp_path / "s-1.txt").write_text("waits")
    (tmp_path / "latest").symlink_to("s-1.txt")
    with open(private_home.opened(str(tmp_path), str(tmp_path / "latest")), encoding="utf-8") as file:
        assert file.read() == "waits"
    (tmp_path / "secret").write_text("x")
    home = tmp_path / "home"
    home.mkdir()
    for target in ("../secret", str(tmp_path / "secret"), ".", "again"):
        (home / "again").unlink(missing_ok=True)
        (home / "again").symlink_to("../secret")
        (home / "latest").unlink(missing_ok=True)
        (home / "latest").symlink_to(target)
        with pytest.raises(OSError, match=r"Too many levels|Is a directory"):
            os.close(private_home.opened(str(home), str(home / "latest")))


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "."])
def test_what_is_not_below_a_home_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="is not below"):
        private_home.put(str(tmp_path), os.path.join(str(tmp_path), path), "x")


def test_the_session_that_a_home_has_is_noted_beside_it(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    os.mkdir(home)
    assert private_home.session_of(home) == ""
    private_home.note_session(home, "s-1")
    assert (private_home.session_of(home), os.listdir(home)) == ("s-1", [])
    private_home.forget(home)
    assert (private_home.session_of(home), list(tmp_path.iterdir())) == ("", [])


def test_a_home_is_brought_to_another_place_with_its_note(tmp_path: Path) -> None:
    home, to = str(tmp_path / "home"), str(tmp_path / "to")
    os.mkdir(home)
    private_home.bring(home, to)
    assert private_home.session_of(to) == ""
    private_home.note_session(to, "s-1")
    private_home.bring(to, home)
    assert (private_home.session_of(home), private_home.session_of(to)) == ("s-1", "")
