"""Nobody reads of "1 workers": a number is joined to what it counts by `amount` alone."""

from __future__ import annotations

import ast
import re

import pytest

from spoold.protocol.amount import amount, length
from tests.house.sources import modules

PLURALS = (
    "attempts|batches|beats|charges|claims|crashes|directories|drops|epochs|events|failures|files|handlers|"
    "heartbeats|ids|inodes|leaders|leases|lines|links|listings|logs|machines|masters|messages|minutes|modules|"
    "names|nodes|processes|records|rejections|renames|requests|results|retries|seconds|slots|snapshots|spools|"
    "stalls|steps|tasks|times|tokens|tries|types|users|workers|writers"
)


def plurals_after_numbers(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and word of each plural that an f-string says right after a value; limits in capitals are never 1."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not (isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant)):
                continue
            match = re.match(rf" (?:more |other )?({PLURALS})\b", str(text.value))
            if match and not (isinstance(value.value, ast.Name) and value.value.id.isupper()):
                found.append((node.lineno, match[1]))
    return found


def test_the_test_sees_what_it_is_for() -> None:
    said = ast.parse('f"{n} workers, {m} more tasks, {LIMIT} files, {n:g} ms, {name} is"')
    assert plurals_after_numbers(said) == [(1, "workers"), (1, "tasks")]


def test_no_message_joins_a_number_to_a_plural() -> None:
    found = [f"{path}:{line}: {word}" for path, _, tree in modules() for line, word in plurals_after_numbers(tree)]
    assert found == []


@pytest.mark.parametrize(
    ("number", "noun", "plural", "said"),
    [
        (0, "worker", None, "0 workers"),
        (1, "worker", None, "1 worker"),
        (2, "worker", None, "2 workers"),
        (1, "directory", "directories", "1 directory"),
        (1234, "directory", "directories", "1,234 directories"),
    ],
)
def test_amounts(number: int, noun: str, plural: str | None, said: str) -> None:
    assert amount(number, noun, plural) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "0 s"),
        (59, "59 s"),
        (60, "1 m"),
        (3700, "1 h 1 m"),
        (200_000, "2 d 7 h"),
        (864e6, "10,000 d"),
        (1e308, "1e+308 s"),
    ],
)
def test_a_length_of_time_has_two_units_at_most(seconds: float, said: str) -> None:
    assert length(seconds) == said
