"""The command: what it writes is what it can read again, and it judges only when asked to."""

import json
from pathlib import Path

import pytest

from tools.benchmark.__main__ import _read, main
from tools.benchmark.bench import SCALES
from tools.benchmark.figure import Figure, Target
from tools.benchmark.parts import PARTS

MACHINE = {
    "date": "2026-01-31",
    "cpus": 2,
    "memory_gib": 24,
    "places": ["ext4"],
    "python": "3.11",
    "commands": ["tools/bench"],
}


def written(path: Path, *figures: Figure, places: tuple[str, ...] = ("ext4",)) -> str:
    machine = {**MACHINE, "places": places}
    path.write_text(json.dumps({"machine": machine, "figures": [figure.as_json() for figure in figures]}))
    return str(path)


def test_earlier_runs_are_read_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "1.json", Figure("call", "held", "×", (12.0,), Target(10)))
    other = written(tmp_path / "2.json", Figure("idle", "missed", "% core", (7.0,), Target(5, most=True)))
    assert main(["--from", one, "--from", other]) == 0
    said = capsys.readouterr().out
    assert "held" in said
    assert "missed" in said
    assert said.endswith("1 of 2 targets hold\n")


def test_what_was_measured_in_other_places_is_not_left_out(tmp_path: Path) -> None:
    both = written(tmp_path / "1.json", places=("ext4", "tmpfs"))
    one = written(tmp_path / "2.json", places=("ext4",))
    machine, _ = _read([both, one])
    assert machine["places"] == ["ext4", "tmpfs"]


def test_a_missed_target_is_an_error_only_if_asked(tmp_path: Path) -> None:
    held = written(tmp_path / "1.json", Figure("call", "held", "×", (12.0,), Target(10)))
    missed = written(tmp_path / "2.json", Figure("call", "missed", "×", (2.0,), Target(10)))
    assert main(["--from", missed]) == 0
    assert main(["--from", held, "--check"]) == 0
    assert main(["--from", missed, "--check"]) == 1


def test_a_file_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--from", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_an_unknown_part_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["warp"])
    said = capsys.readouterr().err
    assert "no such part: warp" in said
    assert all(name in said for name in PARTS)


def test_a_part_is_measured_where_one_says_and_written_with_every_sample(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    assert main(["--tiny", "submit", "--dir", str(tmp_path), "--json", str(out)]) == 0
    record = json.loads(out.read_text())
    assert [len(figure["samples"]) for figure in record["figures"]] == [3, 3]
    assert record["machine"]["commands"] == ["tools/bench submit --tiny"]
    assert list(tmp_path.iterdir()) == [out], "nothing is left behind"


def test_rounds_and_backlogs_can_be_bounded() -> None:
    full = SCALES["full"]
    assert full.limited(None, None) == full
    bounded = full.limited(1, 10_000)
    assert bounded.rounds == {1000: 1, 10_000: 1}
    assert bounded.waiting == (100, 10_000)
    assert full.limited(None, 5).depths == (1000,), "the least backlog stays"
