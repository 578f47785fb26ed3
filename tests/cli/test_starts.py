"""Goal: a short command imports only what it needs. Modules are counted: on a busy machine a time says little."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spoold.faces.cli.terminal.screen import Block, Line, Table, lines, renderable
from spoold.faces.cli.verbs.status import blocks
from spoold.protocol.snapshot import Snapshot
from tests.cli.command import leader, make, spool
from tests.cli.test_status import PICTURE

# Each of these takes a tenth, or more, of the time that `spool submit` has.
HEAVY = {
    "pydantic",
    "pydantic_core",
    "psutil",
    "filelock",
    "rich",
    "tomllib",
    "asyncio",
    "logging",
    "getpass",
    "email",
}
HEAVY |= {"hmac", "random", "multiprocessing", "watchdog", "concurrent"}
# Of ours: what has models in it.
MODELS = {
    f"spoold.protocol.{name}"
    for name in ("task", "settings", "heartbeat", "snapshot", "result", "event", "doctor_report")
}


def loaded(directory: Path, *words: str) -> set[str]:
    """The modules that the command has imported when it ends."""
    code = (
        "import sys, atexit; from spoold.faces.cli import main;"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        f"sys.argv = {['spool', '--spool', str(directory), *words]!r}; main()"
    )
    # Whatever says something of colours or columns has rich lay the picture out.
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPYCACHEPREFIX") if name in os.environ}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=kept)
    assert done.returncode == 0, done.stderr
    print(done.stdout)  # a picture that is too wide for a file is rich's, too
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "words",
    [
        ("submit", "--", "true"),
        ("submit", "--type", "review", "--input", '{"x": 1}', "--priority", "high", "--after", "a", "--batch", "b"),
        ("submit", "--requires", "cpu=2,label=docker", "--env", "A=1", "--timeout", "5m", "--id", "a", "--", "true"),
        ("status",),
        ("status", "--json"),
    ],
    ids=" ".join,
)
def test_a_short_command_imports_nothing_heavy(tmp_path: Path, words: tuple[str, ...]) -> None:
    directory = make(tmp_path / "s")
    master = leader(directory)
    try:
        modules = loaded(directory, *words)
    finally:
        master.close()
    assert "spoold.store.store" in modules
    assert (HEAVY | MODELS) & modules == set()
    assert len([name for name in modules if name.startswith("spoold")]) <= 80


def test_settings_that_say_something_cost_a_parser_and_no_model(tmp_path: Path) -> None:
    directory = make(tmp_path / "s")
    (directory / "spool.toml").write_text("[types.review]\nmax_concurrent = 2\n", encoding="utf-8")
    modules = loaded(directory, "submit", "--", "true")
    assert (HEAVY | MODELS) & modules == {"tomllib"}


@pytest.mark.parametrize(
    "words",
    [
        ("--priority", "urgent", "--", "true"),
        ("--type", "a b"),
        ("--id", "con", "--", "true"),
        ("--env", "A=1", "--cwd", "/x\0y", "--", "true"),
        ("--requires", "cpu=-1", "--", "true"),
        ("--timeout", "0", "--", "true"),
        ("--input", '{"a": NaN}', "--type", "x"),
    ],
    ids=repr,
)
def test_what_is_wrong_is_said_by_the_model(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = spool(make(tmp_path / "s"), "submit", *words)
    assert result.exit_code == 2
    assert "Fix: " in result.output or "Invalid" in result.output


def by_rich(picture: list[Block], columns: int) -> list[str]:
    """The lines as rich lays them out."""
    from rich.console import Console

    console = Console(width=columns)
    with console.capture() as captured:
        console.print(renderable(picture), crop=False)
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize("columns", [200, 80])
def test_a_picture_looks_as_rich_would_lay_it_out(columns: int) -> None:
    more = {"recent": {"failed_attempts": {"TIMEOUT": 2}, "rejections": {"input: [bad]\x1b[2J": 1}}, "halted": True}
    more["spent"] = {"attempts": 3, "duration_s": 5.0}
    for picture in (PICTURE, Snapshot.model_validate(PICTURE.model_dump() | more)):
        found = lines(blocks(picture), columns, styled=False)
        assert found is not None
        assert [line.rstrip() for line in found] == by_rich(blocks(picture), columns)


def test_what_is_too_wide_or_of_other_widths_is_left_to_rich() -> None:
    assert lines([Line("x" * 80)], 80, styled=False) == ["x" * 80]
    assert lines([Line("x" * 81)], 80, styled=False) is None
    assert lines([Line("表")], 80, styled=False) is None
    assert lines([Table(("A", "B"), [[Line("x" * 40), Line("y" * 39)]])], 80, styled=False) is None


def test_colours_do_not_move_columns() -> None:
    table = Table(("A", "B"), [[Line("x", "red"), Line("y", "dim")], [Line("xx"), Line("")]])
    heading, first, second = lines([table], 80, styled=True) or []
    assert heading == "\x1b[1mA\x1b[0m   \x1b[1mB\x1b[0m"
    assert first == "\x1b[31mx\x1b[0m   \x1b[2my\x1b[0m"
    assert second == "xx   "


def test_words_that_are_no_text_are_the_parsers(tmp_path: Path) -> None:
    command = shutil.which("spool") or str(Path(sys.executable).with_name("spool"))
    directory = os.fsencode(make(tmp_path / "s"))
    argv = [command.encode(), b"--spool", directory, b"submit", b"--name", b"\xff", b"--", b"x"]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"not valid UTF-8" in done.stderr
