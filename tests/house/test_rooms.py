"""Every room of the package is small, named for what it holds, and says what it is."""

import ast
import re

from tests.house.sources import modules

FILE_LINES = 700
FUNCTION_LINES = 70
NAMELESS = frozenset({"common", "helper", "helpers", "misc", "shared", "stuff", "util", "utils"})
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def long_functions(tree: ast.AST) -> list[str]:
    """Functions and methods with more lines than one can hold in mind, their docstrings and decorators counted."""
    return [
        f"{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= FUNCTION_LINES
    ]


def silent(tree: ast.Module) -> list[str]:
    """The module itself, and its public functions and classes, that have no docstring."""
    public = [node for node in tree.body if isinstance(node, DEFINITIONS) and not node.name.startswith("_")]
    module = [] if ast.get_docstring(tree) else ["1: the module"]
    return module + [f"{node.lineno}: {node.name}" for node in public if not ast.get_docstring(node)]


def test_no_file_is_longer_than_one_can_read_at_a_sitting() -> None:
    found = [f"{path}: {text.count(chr(10))} lines" for path, text, _ in modules() if text.count("\n") > FILE_LINES]
    assert not found, f"over {FILE_LINES} lines; give one of its nouns a file of its own:\n" + "\n".join(found)


def test_no_function_is_longer_than_a_screen() -> None:
    found = [f"{path}:{line}" for path, _, tree in modules() for line in long_functions(tree)]
    assert not found, f"over {FUNCTION_LINES} lines; name its parts:\n" + "\n".join(found)


def test_no_room_is_a_drawer_for_everything() -> None:
    found = [path for path, _, _ in modules() if NAMELESS & set(path.removesuffix(".py").split("/"))]
    assert not found, f"name it after what it holds: {found}"


def test_every_room_and_every_public_name_says_what_it_is() -> None:
    found = [f"{path}:{line}" for path, _, tree in modules() for line in silent(tree)]
    assert not found, "a docstring is missing:\n" + "\n".join(found)


def unlisted(package: str, docstring: str, stems: list[str]) -> list[str]:
    """Modules that the map in a package's docstring leaves out; a package without a map lists none."""
    rows = [line for line in docstring.splitlines() if line.startswith("    ")]
    told = set(re.findall(r"\w+", " ".join(rows)))
    return [f"{package}/{stem}" for stem in stems if told and stem not in told]


def test_every_map_of_a_house_shows_all_its_rooms() -> None:
    maps: dict[str, str] = {}
    rooms: dict[str, list[str]] = {}
    for path, _, tree in modules():
        package, _, name = path.rpartition("/")
        if name == "__init__.py":
            maps[package] = ast.get_docstring(tree, clean=False) or ""
        else:
            rooms.setdefault(package, []).append(name.removesuffix(".py"))
    rooms["spoold"].remove("__main__")
    found = [room for package, text in maps.items() for room in unlisted(package, text, rooms.get(package, []))]
    assert not found, f"not in the docstring of their package: {found}"


def test_the_checks_see() -> None:
    body = "\n".join("    x = 1" for _ in range(FUNCTION_LINES))
    assert long_functions(ast.parse(f"def f():\n{body}")) == [f"1: f has {FUNCTION_LINES + 1} lines"]
    assert not long_functions(ast.parse(f"def f():\n{body.removesuffix('    x = 1')}"))
    assert unlisted("p", "p: it\n\n    a, b    two\n    c       one\n", ["a", "b", "c", "d"]) == ["p/d"]
    assert silent(ast.parse("def f(): ...\ndef _g(): ...\nclass C: ...")) == ["1: the module", "1: f", "3: C"]
