"""What is committed stands by itself: no notes to self, no path of the machine it was written on, no dead link."""

import re

import pytest

from tests.house.sources import CHECKOUT, kept, texts

# The character classes keep this file from containing what it looks for.
NOTE_TO_SELF = re.compile(r"\b(T[O]DO|FIX[M]E|X[X]X)\b")
ELSEWHERE = re.compile(r"(?<![\w.~/<>{}$*-])/(w[o]rk|r[o]ot)/|(?<![\w/-])(\.\./)?s[h]ared/")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
# A link to a heading, in a document, or a document's name with one, in any text.
ANCHOR = re.compile(r"\]\(([^)\s#:]*)#([^)\s]+)\)|(?<![(\w/.-])(\w[\w/.-]*\.md)#([\w-]+)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# The text of others, and files whose content is data on purpose.
DATA = ("uv.lock", "tests/vectors/")


def found_in_texts(pattern: re.Pattern[str]) -> list[str]:
    """Where a pattern occurs: path, line number, line."""
    return [
        f"{path}:{number}: {line.strip()[:120]}"
        for path, text in texts()
        if not path.startswith(DATA)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_there_are_no_notes_to_self() -> None:
    found = found_in_texts(NOTE_TO_SELF)
    assert not found, "do it, or open an issue:\n" + "\n".join(found)


def test_nothing_points_into_the_machine_it_was_written_on() -> None:
    found = found_in_texts(ELSEWHERE)
    assert not found, "a reader has no such place:\n" + "\n".join(found)


@pytest.mark.parametrize("seen", ["see /work·x", "'/work·", "`../shared·x`", "in shared·x", "(/root·.cache)"])
def test_the_path_check_sees(seen: str) -> None:
    assert ELSEWHERE.search(seen.replace("·", "/"))


@pytest.mark.parametrize("unseen", ["work·x", "tmp/work·x", "/mnt/shared·x", "~/work·x", "{scratch}/work·"])
def test_the_path_check_passes_over(unseen: str) -> None:
    assert not ELSEWHERE.search(unseen.replace("·", "/"))


def test_every_link_between_documents_leads_somewhere() -> None:
    dead = [
        f"{path}: {target}"
        for path, text in texts()
        if path.endswith(".md")
        for target in LINK.findall(text)
        if "://" not in target and not (CHECKOUT / path).parent.joinpath(target).exists()
    ]
    assert not dead, "\n".join(dead)


def anchors(text: str) -> set[str]:
    """The anchor of every heading of a document, as GitHub makes it."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_link_to_a_heading_finds_it() -> None:
    dead, seen = [], 0
    for path, text in texts():
        for linked, heading, named, at in ANCHOR.findall(text):
            if (linked or heading) and not path.endswith(".md"):
                continue
            here = CHECKOUT / path
            target = here if not (linked or named) else (here.parent if linked else CHECKOUT) / (linked or named)
            seen += 1
            if not target.is_file() or (heading or at) not in anchors(target.read_text(encoding="utf-8")):
                dead.append(f"{path}: {linked or named}#{heading or at}")
    assert seen
    assert not dead, "\n".join(dead)


def test_what_starts_as_a_command_can_be_started() -> None:
    """A script that lost its executable bit works only for who knows how to start it, and the reverse is noise."""
    wrong = []
    for path in kept():
        with path.open("rb") as file:
            is_script = file.read(2) == b"#!"
        if is_script != bool(path.stat().st_mode & 0o111):
            wrong.append(str(path.relative_to(CHECKOUT)))
    assert not wrong, f"chmod +x, or drop the #! line (or the bit): {wrong}"
