"""`protocol`, `rules` and `pictures` work on what they are given: they see no file, no clock, no chance, no machine.

import-linter cannot say this, since it does not look into the standard library; so the syntax trees are read here.
The list is of what may be imported, not of what may not: a new impure module must not get in for want of a line.
"""

import ast

import pytest

from tests.house.sources import modules

PURE_ROOMS = ("spoold/protocol/", "spoold/rules/", "spoold/pictures/")
PURE_MODULES = frozenset(
    {"__future__", "abc", "base64", "bisect", "codecs", "collections", "contextlib", "copy", "dataclasses"}
    | {
        "datetime",
        "difflib",
        "enum",
        "fnmatch",
        "functools",
        "graphlib",
        "hashlib",
        "heapq",
        "html",
        "itertools",
        "json",
        "math",
    }
    | {"operator", "re", "shlex", "string", "tomllib", "types", "typing", "unicodedata", "zlib"}
    | {"annotated_types", "orjson", "pydantic", "pydantic_core", "typing_extensions", "spoold"}
)
IMPURE_CALLS = frozenset({"__import__", "breakpoint", "exec", "eval", "input", "open", "print"})
# The clock's names on datetime and date, which are otherwise fine to calculate with.
IMPURE_ATTRIBUTES = frozenset({"now", "utcnow", "today"})


def impurities(tree: ast.AST) -> list[str]:
    """What in a module reaches out of it, with its line."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(module=module):
                names = [module or "."]
            case ast.Call(func=ast.Name(id=called)) if called in IMPURE_CALLS:
                found.append(f"{node.lineno}: calls {called}()")
                continue
            case ast.Attribute(attr=attribute, value=ast.Name(id=owner) | ast.Attribute(attr=owner)):
                if attribute in IMPURE_ATTRIBUTES and owner in {"date", "datetime"}:
                    found.append(f"{node.lineno}: reads the clock with {owner}.{attribute}")
                continue
            case _:
                continue
        found += [f"{node.lineno}: imports {name}" for name in names if name.split(".")[0] not in PURE_MODULES]
    return found


def test_protocol_rules_and_pictures_are_pure() -> None:
    rooms = [(path, tree) for path, _, tree in modules() if path.startswith(PURE_ROOMS)]
    assert {path.split("/")[1] for path, _ in rooms} == {"pictures", "protocol", "rules"}
    found = [f"{path}:{impurity}" for path, tree in rooms for impurity in impurities(tree)]
    assert not found, "move it to spoold/system, and pass its answer in as a value:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "import os",
        "import os.path",
        "import re, time",
        "from pathlib import Path",
        "from random import random",
        "from . import sibling",
        "def f():\n    import secrets",
        "open('x')",
        "print('x')",
        "datetime.now(UTC)",
        "datetime.datetime.utcnow()",
        "date.today()",
    ],
)
def test_the_check_sees(code: str) -> None:
    assert impurities(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "import re",
        "from datetime import UTC, datetime",
        "from spoold.protocol.names import x",
        "datetime(2026, 1, 1)",
        "view.clock.now",
    ],
)
def test_the_check_passes_over(code: str) -> None:
    assert not impurities(ast.parse(code))
