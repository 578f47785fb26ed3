"""The picture in the README is of a run in which all claims held, and names no folder of the machine it ran on."""

from pathlib import Path

from tests.docs.manual import CHECKOUT
from tools.demonstration.recording import PICTURE, picture


def shown(svg: str) -> str:
    return svg.replace("&#160;", " ")


def test_a_picture_has_every_line_and_no_folder_of_the_machine() -> None:
    svg = shown(
        picture(
            "over /home/ada/src\nscratch folder /var/tmp/spoold-demo-x1\nok        3 of 3\n", Path("/home/ada/src")
        )
    )
    assert all(line in svg for line in ("$ tools/demo", "over ~/spoold", "ok        3 of 3"))
    assert "ada" not in svg
    assert "spoold-demo-x1" not in svg


def test_a_picture_is_what_a_terminal_shows_in_the_end() -> None:
    live = "\x1b[?25llap1  working\r\x1b[1A\x1b[2Klap1  idle\r\n\x1b[?25h\r\x1b[1A\x1b[2K"
    written = f"3 tasks\r\n{live}  0.1 s  \x1b[33mlap1 joined\x1b[0m\r\n       \x1b[1msrc\x1b[0m     \r\n"
    svg = shown(picture(written, Path("/home/ada/src")))
    assert all(line in svg for line in ("3 tasks", "lap1 joined", ">spoold<"))
    assert not any(gone in svg for gone in ("working", "idle", "\x1b", "[2K", ">src<"))


def test_ours_is_on_the_first_page_and_tells_of_a_kill() -> None:
    svg = shown(PICTURE.read_text())
    assert "all claims hold" in svg
    assert "kill -9 of lap" in svg
    assert "| --- |" not in svg  # a terminal shows the report as tables
    assert f"]({PICTURE.relative_to(CHECKOUT)})" in (CHECKOUT / "README.md").read_text()
