"""Every scenario does what it says. `SPOOLD_BLESS=1 pytest tests/scenarios` writes down what they print now."""

import os
from pathlib import Path

import pytest

from tests.scenarios import script
from tests.scenarios.commands import Stage

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.scenario"))


@pytest.mark.turns
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_scenario(path: Path) -> None:
    scenario, stage = script.read(path), Stage()
    bless = os.environ.get("SPOOLD_BLESS") == "1"
    for command in scenario.commands:
        try:
            printed = stage.run(command.text, command.given)
        except AssertionError as error:
            raise AssertionError(f"{path.name}:{command.line}: $ {command.text}\n{error}") from error
        if bless:
            command.prints = printed
        assert printed == command.prints, f"{path.name}:{command.line}: $ {command.text}"
    stage.close()
    if bless:
        path.write_text(scenario.render(), encoding="utf-8")


def test_a_scenario_that_is_wrong_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPOOLD_BLESS", raising=False)
    path = tmp_path / "wrong.scenario"
    path.write_text("# Wrong\n\n    $ master m1\n    $ step m1\n    $ tree\n    pending/a.json\n")
    with pytest.raises(AssertionError, match=r"wrong.scenario:5: \$ tree"):
        test_scenario(path)
    path.write_text("# Wrong\n\n    $ master m1\n    $ step m1\n    $ expect event READY a\n")
    with pytest.raises(AssertionError, match=r"only: .*LEADING"):
        test_scenario(path)


def test_what_is_read_is_written_back(tmp_path: Path) -> None:
    for path in FILES:
        assert script.read(path).render() == path.read_text(encoding="utf-8")
    broken = tmp_path / "broken.scenario"
    broken.write_text("# Title\n    > no command\n")
    with pytest.raises(ValueError, match="no command stands before"):
        script.read(broken)
    broken.write_text("no title\n")
    with pytest.raises(ValueError, match="begins with a title"):
        script.read(broken)
