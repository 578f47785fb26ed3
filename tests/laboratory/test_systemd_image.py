"""What the disk of a systemd laptop is made from, and what the checks type: the parts that need no machine."""

import re

import pytest

from tools.laboratory import systemd_checks
from tools.laboratory.systemd_image import mirror, pins
from tools.laboratory.systemd_laptop import README, blocks
from tools.turns import Part

TARGETS = "http://a.example/debian stable-security\nhttp://b.example/debian stable\nhttp://c.example/debian stable\n"


def test_the_mirror_is_the_first_that_apt_has_for_the_release() -> None:
    assert mirror(TARGETS, "stable") == "http://b.example/debian"


def test_a_machine_without_the_release_in_its_sources_is_told_what_to_add() -> None:
    with pytest.raises(RuntimeError, match="has oldstable; add one to /etc/apt"):
        mirror(TARGETS, "oldstable")


def test_what_spoold_needs_is_pinned_all_the_way_down_and_spoold_is_not() -> None:
    names = [pin.split("==")[0] for pin in pins()]
    assert {"pydantic", "pydantic-core", "typer", "filelock"} <= set(names)
    assert not {"spoold", "pytest", "colorama"} & set(names)
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*", pin) for pin in pins())


def test_commands_are_taken_from_their_own_section_block_by_block() -> None:
    text = "# T\n\n## A\n\n```sh\na 1\na 2\n```\n\n```ini\nno\n```\n\n```sh\nb\n```\n\n## B\n\n```sh\nc\n```\n"
    assert blocks(text, "A") == ["a 1\na 2\n", "b\n"]
    assert blocks(text, "B") == ["c\n"]


def test_the_guide_has_the_sections_that_the_laboratory_types() -> None:
    text = README.read_text()
    assert len(blocks(text, "Your own machine")) == 5
    assert len(blocks(text, "A laptop without root")) == 1


def test_every_check_says_what_it_proves_and_has_a_name_of_its_own() -> None:
    names = [check.__name__ for check in systemd_checks.CHECKS]
    assert len(set(names)) == len(names)
    assert all(check.__doc__ for check in systemd_checks.CHECKS)


def test_the_parts_together_are_all_checks_each_between_the_first_and_the_last() -> None:
    whole = systemd_checks.chosen()
    assert whole == list(systemd_checks.CHECKS)
    parts = [systemd_checks.chosen(part=Part(number, 3)) for number in (1, 2, 3)]
    assert all((part[0], part[-1]) == (whole[0], whole[-1]) for part in parts)
    assert sorted(check.__name__ for part in parts for check in part[1:-1]) == sorted(
        check.__name__ for check in whole[1:-1]
    )
