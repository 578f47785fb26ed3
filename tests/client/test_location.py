"""Which spool is meant: said first, then the environment, then the configuration; never a guess."""

import os
from pathlib import Path

import pytest

from spoold.client.spool.location import NoSpoolNamed, spool_directory, user_file
from spoold.protocol.errors import BadFile


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_source_goes_before_the_next(tmp_path: Path, home: dict[str, str]) -> None:
    system = tmp_path / "etc"

    def where(given: str | None = None, configured: str | None = None) -> str:
        return spool_directory(given, configured=configured, environ=home, system=str(system))

    with pytest.raises(NoSpoolNamed, match="--spool DIR, set SPOOL_DIR"):
        where()
    write(system / "lab.toml", 'spool = "/from/system"\nslots = 4\n')
    write(system / "other.toml", "slots = 4\n")
    assert where() == "/from/system"
    write(Path(user_file(home)), 'spool = "/from/user"\n')
    assert where() == "/from/user"
    home["SPOOL_ROOT"] = "/of/the/task"
    assert where() == "/of/the/task"
    assert where(configured="/from/worker") == "/from/worker"
    home["SPOOL_DIR"] = "/from/environment"
    assert where(configured="/from/worker") == "/from/environment"
    assert where("/given/") == "/given"


def test_a_relative_directory_is_made_absolute(home: dict[str, str]) -> None:
    assert spool_directory("here", environ=home) == str(Path("here").absolute())


def test_two_spools_of_the_system_are_one_too_many(tmp_path: Path, home: dict[str, str]) -> None:
    write(tmp_path / "etc" / "a.toml", 'spool = "/one"\n')
    write(tmp_path / "etc" / "b.toml", 'spool = "/two"\n')
    with pytest.raises(NoSpoolNamed, match=r"a\.toml.*b\.toml.*--spool"):
        spool_directory(environ=home, system=str(tmp_path / "etc"))
    write(tmp_path / "etc" / "b.toml", 'spool = "/one"\n')
    assert spool_directory(environ=home, system=str(tmp_path / "etc")) == "/one"


@pytest.mark.parametrize(("text", "words"), [("spool = /x", "not TOML"), ("spool = 7", "not a string")])
def test_a_broken_configuration_is_named(home: dict[str, str], text: str, words: str) -> None:
    write(Path(user_file(home)), text)
    with pytest.raises(BadFile, match=words) as caught:
        spool_directory(environ=home)
    assert caught.value.file == user_file(home)


def test_a_configuration_that_is_no_file_is_named_and_nobody_waits_for_it(home: dict[str, str]) -> None:
    path = Path(user_file(home))
    path.mkdir(parents=True)
    with pytest.raises(BadFile, match="cannot be read: not a regular file"):
        spool_directory(environ=home)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(BadFile, match="cannot be read: not a regular file"):
        spool_directory(environ=home)
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(BadFile, match="cannot be read: Too many levels"):
        spool_directory(environ=home)


def test_a_configuration_that_names_no_spool_is_shown_with_what_it_has(home: dict[str, str], tmp_path: Path) -> None:
    write(Path(user_file(home)), 'spol = "/x"\n')
    with pytest.raises(NoSpoolNamed, match=r"config\.toml, which has only 'spol'\. "):
        spool_directory(environ=home, system=str(tmp_path))
    write(Path(user_file(home)), "")
    with pytest.raises(NoSpoolNamed, match=r"config\.toml\. "):
        spool_directory(environ=home, system=str(tmp_path))


def test_files_of_the_system_that_are_none_are_passed_over(tmp_path: Path, home: dict[str, str]) -> None:
    write(tmp_path / "etc" / "a.toml", 'spool = "/one"\n')
    os.mkfifo(tmp_path / "etc" / "b.toml")
    (tmp_path / "etc" / "c.toml").mkdir()
    assert spool_directory(environ=home, system=str(tmp_path / "etc")) == "/one"
