"""The manual has each key and each view as the program has them, and a screen as it is."""

from __future__ import annotations

from spoold.faces.top.views import ABOUT, KEYS, digit
from tests.house.sources import CHECKOUT

MANUAL = (CHECKOUT / "docs" / "guide" / "top.md").read_text(encoding="utf-8")


def test_each_key_is_in_the_manual() -> None:
    missing = [key.shown for key in KEYS if f"| `{key.shown}` | {key.about} |" not in MANUAL]
    assert not missing


def test_no_key_is_there_twice() -> None:
    names = [name for key in KEYS for name in key.keys.split(",")]
    assert len(set(names)) == len(names)


def test_each_view_is_in_the_manual() -> None:
    rows = [
        f"| `:{name}{f' {argument}' if argument else ''}` | {digit(name)} | {about} |"
        for name, (about, argument) in ABOUT.items()
    ]
    assert not [row for row in rows if row not in MANUAL]


def test_the_screen_of_the_manual_is_one_that_is_kept() -> None:
    screen = (CHECKOUT / "tests" / "top" / "golden" / "overview-80.txt").read_text(encoding="utf-8").rstrip()
    assert f"```text\n{screen}\n```" in MANUAL
