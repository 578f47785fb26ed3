"""The README and the pages of docs/ speak of things as they are."""

import re

import pytest

from spoold.faces.cli.panels import VERBS
from spoold.protocol.lifecycle import MOVES
from spoold.worker.handlers.handler import Handler
from spoold.worker.handlers.worker_config import WorkerConfig
from tests.docs.manual import CHECKOUT, PAGES

README = (CHECKOUT / "README.md").read_text()
LINES = 150


def keys_of(page: str, heading: str) -> set[str]:
    """The keys in the first column of a table."""
    table = (CHECKOUT / page).read_text().partition(f"| {heading} |")[2].partition("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines()[2:]]
    return {key for cell in first for key in re.findall(r"`\[?([a-z_]+)", cell)}


def test_the_readme_is_a_first_page() -> None:
    assert README.count("\n") <= LINES, "the rest goes into docs/"


def test_every_key_of_a_workers_configuration_is_in_the_table_and_no_other() -> None:
    assert keys_of("docs/configuration.md", "key of a worker's configuration") == set(WorkerConfig.model_fields)


def test_every_key_of_a_handler_is_in_the_table_and_no_other() -> None:
    assert keys_of("docs/handlers.md", "key of a handler") == set(Handler.model_fields)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(CHECKOUT)) for page in PAGES])
def test_every_verb_that_is_named_exists(page: object) -> None:
    text = (CHECKOUT / str(page)).read_text()
    verbs = set(re.findall(r"(?:`|^|\| )spool (?:--spool \S+ )?([a-z][a-z-]*)\b", text, re.MULTILINE))
    added = set(re.findall(r'app\.command\("([a-z-]+)"', text))  # by the program of a recipe
    assert verbs - added <= set(VERBS)


def test_the_first_page_names_verbs() -> None:
    assert "spool submit" in README


def test_the_diagram_holds_nothing_that_the_table_does_not() -> None:
    text = (CHECKOUT / "docs/guide/submit.md").read_text()
    drawn = re.findall(r"^    ([a-z]+) --> ([a-z]+)", text, re.MULTILINE)
    assert len(drawn) > 10
    assert set(drawn) <= {(move.source, move.target) for move in MOVES}


def test_every_room_is_on_the_map() -> None:
    rows = re.findall(r"^\| `spoold/([^`]*)` \|", README, re.MULTILINE)
    told = {room.rstrip("/") for row in rows for room in row.split()}
    assert told == {path.parent.name for path in CHECKOUT.glob("spoold/*/__init__.py")}


def test_every_page_is_in_the_manuals_contents() -> None:
    contents = {page: page.read_text() for page in sorted(CHECKOUT.glob("docs/**/index.md"))}
    linked = {
        (at.parent / link).resolve() for at, text in contents.items() for link in re.findall(r"\]\(([^)#]+)", text)
    }
    assert set(PAGES[1:]) - linked == {CHECKOUT / "docs/index.md"}
