"""Only what other packages document is used: what is private to them may change in any of their releases.

Method: the imports, the names and the classes of spoold/, as syntax trees. Modules of other packages have to stand in
DOCUMENTED; for the standard library that is all whose names begin with no underscore. What a class of ours names with
one underscore must not be a private name of a class of another package that it extends.
"""

import ast
import importlib
import inspect
import pydoc
import re
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from tests.house.sources import modules

# Modules that the manuals of other packages describe.
DOCUMENTED = frozenset(
    {
        *("filelock", "jinja2", "jsonschema", "markupsafe", "mcp_types", "orjson", "psutil", "pydantic"),
        *("pydantic_core", "referencing", "uvicorn"),
        *("anyio", "anyio.from_thread", "anyio.to_thread"),
        *("mcp", "mcp.server", "mcp.server.stdio", "mcp.server.transport_security"),
        *("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk.resources"),
        *("opentelemetry.sdk.trace", "opentelemetry.sdk.trace.export", "opentelemetry.sdk.util.instrumentation"),
        "opentelemetry.trace",
        *("rich.color", "rich.console", "rich.live", "rich.progress", "rich.segment", "rich.style", "rich.table"),
        "rich.text",
        *("starlette.applications", "starlette.concurrency", "starlette.requests", "starlette.responses"),
        *("starlette.routing", "starlette.types"),
        *("textual.app", "textual.binding", "textual.containers", "textual.events", "textual.geometry"),
        *("textual.message", "textual.screen", "textual.strip", "textual.suggester", "textual.theme"),
        *("textual.widget", "textual.widgets"),
        *("typer", "typer.core"),
        *("watchdog.events", "watchdog.observers", "watchdog.observers.api", "watchdog.observers.polling"),
    }
)
# Names of the standard library that are documented, underscore and all.
PUBLIC = frozenset({"os._exit", "sys._current_frames", "sys.__stdin__"})
# What reads how a class, a function or an object of others is made.
DIGGING = frozenset({"__bases__", "__mro__", "__subclasses__", "__code__", "__closure__", "__globals__"})
# File and name: why there is no public way. One that is no longer used has to go from here.
EXCEPTIONS = {
    ("spoold/system/inotify.py", "watchdog.observers.inotify_c"): """
        Its observers have a thread for each directory. They cannot ask for names that come by a move without those
        that leave by one, and each of these holds up what is behind it for 0.5 s.""",
    ("spoold/faces/web/http_server.py", "uvicorn.protocols.http.h11_impl"): """
        uvicorn bounds neither how long the headers of a request take nor how long nobody reads an answer. Its bound
        on connections lets strangers keep out those that have a cookie.""",
    ("spoold/faces/cli/app.py", "typer.completion"): """
        It registers the shells' formats. typer's own options for that take no shell by its name.""",
    ("spoold/faces/cli/terminal/completion.py", "typer.completion"): """
        It writes and installs the shells' scripts.""",
    ("spoold/faces/cli/terminal/group.py", "process_value"): """
        It is replaced for values that need no validator, which saves half of the CPU time of `spool submit`. The
        parser makes its parameters itself, and calls a `parser` or `callback` of ours only behind a validator.""",
    ("spoold/faces/top/text_layout.py", "rich.cells"): """
        The public way to the width of a word is a Text of it, in 11 us and not 0.6 us, for each word of a screen.""",
    ("spoold/faces/top/widgets.py", "rich.cells"): """
        As for text_layout.""",
    ("spoold/runner/running_job.py", "_socket"): """
        Each supervisor loads it; `socket` takes 8 times as long.""",
    ("spoold/runner/pyenviron.py", "os.environ._data"): """
        A copy of 35 variables takes 0.2 us in place of 86 us. Where the name is missing, the public way is taken.""",
    ("spoold/runner/pyorigins.py", "__mro__"): """
        It looks for the class, of a user's, that defines a method.""",
}


def foreign(name: str) -> bool:
    return name.partition(".")[0] not in ("spoold", "__future__")


def is_hidden(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def called(node: ast.Call) -> str | None:
    return getattr(node.func, "id", getattr(node.func, "attr", None))


def imports(tree: ast.AST) -> Iterator[tuple[int, str, str | None, str]]:
    """Line, module, name in it, and our name for it, of each import of another package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if foreign(one.name):
                    yield node.lineno, one.name, None, one.asname or one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and foreign(node.module):
            for one in node.names:
                yield node.lineno, node.module, one.name, one.asname or one.name
        elif isinstance(node, ast.Call) and called(node) == "import_module":
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            if isinstance(name, str) and foreign(name):
                yield node.lineno, name, None, ""


def names(tree: ast.AST) -> dict[str, str]:
    """What our names for what is imported from other packages stand for."""
    return {
        ours: f"{module}.{name}" if name is not None else ours if module.startswith(f"{ours}.") else module
        for _, module, name, ours in imports(tree)
    }


def resolved(node: ast.expr, known: dict[str, str]) -> str | None:
    """What a dotted name stands for, if it begins at an import of another package."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and (before := resolved(node.value, known)) is not None:
        return f"{before}.{node.attr}"
    return None


def is_of_python(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def privates(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each import of what is private to others or undocumented, and of each look into it."""
    known = names(tree)
    for line, module, name, _ in imports(tree):
        whole = f"{module}.{name}"
        if any(map(is_hidden, module.split("."))) or not (is_of_python(module) or {module, whole} & DOCUMENTED):
            yield line, module
        elif name is not None and is_hidden(name) and whole not in PUBLIC:
            yield line, whole
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = resolved(node, known)
            if node.attr in DIGGING:
                yield node.lineno, node.attr
            elif name is not None and name not in PUBLIC and is_hidden(node.attr):
                yield node.lineno, name
        elif isinstance(node, ast.Constant) and node.value in DIGGING:
            yield node.lineno, str(node.value)
        elif isinstance(node, ast.Call) and called(node) in ("getattr", "setattr"):
            name, word = resolved(node.args[0], known), node.args[1]
            called_for = str(word.value) if isinstance(word, ast.Constant) else ""
            if name is not None and is_hidden(called_for):
                yield node.lineno, f"{name}.{called_for}"


def replaced(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each method that a class of a package imported here has, and that is assigned to an object."""
    assigned = [
        target
        for node in ast.walk(tree)
        for target in (node.targets if isinstance(node, ast.Assign) else ())
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) != "self"
    ]
    used = {module for _, module, _, _ in imports(tree) if module in DOCUMENTED} if assigned else ()
    classes = [
        one for module in used for one in vars(importlib.import_module(module)).values() if inspect.isclass(one)
    ]
    for target in assigned:
        if any(inspect.isfunction(inspect.getattr_static(one, target.attr, None)) for one in classes):
            yield target.lineno, target.attr


@pytest.fixture(scope="module")
def trees() -> list[tuple[str, ast.Module]]:
    return [(path, tree) for path, _, tree in modules()]


@pytest.fixture(scope="module")
def used(trees: list[tuple[str, ast.Module]]) -> list[tuple[str, int, str]]:
    return [(path, *one) for path, tree in trees for one in (*privates(tree), *replaced(tree))]


def test_nothing_private_of_others_is_used(used: list[tuple[str, int, str]]) -> None:
    found = [f"{path}:{line}: {name}" for path, line, name in used if (path, name) not in EXCEPTIONS]
    assert not found, "find the public way, or say in EXCEPTIONS why there is none:\n" + "\n".join(found)


def test_each_exception_is_still_needed(
    trees: list[tuple[str, ast.Module]], used: list[tuple[str, int, str]]
) -> None:
    assert EXCEPTIONS.keys() <= {(path, name) for path, _, name in used}
    named = {one for _, tree in trees for _, module, name, _ in imports(tree) for one in (module, f"{module}.{name}")}
    assert named >= DOCUMENTED, f"nobody imports {sorted(DOCUMENTED - named)}"


def extended(trees: list[tuple[str, ast.Module]]) -> Iterator[tuple[str, ast.ClassDef, type]]:
    """Path and tree of each class of ours that extends one of another package, and that one."""
    for path, tree in trees:
        known = names(tree)
        for node in (one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)):
            for base in (one.value if isinstance(one, ast.Subscript) else one for one in node.bases):
                name = resolved(base, known)
                if name is not None and not is_of_python(name):
                    found = pydoc.locate(name)
                    assert isinstance(found, type), f"{path}:{node.lineno}: what is {name}?"
                    yield path, node, found


@cache
def hidden_of(kind: type) -> frozenset[str]:
    """The names with one underscore that a class and what it extends define, or give to an object."""
    found: set[str] = set()
    for base in (one for one in inspect.getmro(kind) if not is_of_python(one.__module__)):
        code = (getattr(inspect.unwrap(one), "__code__", None) for one in vars(base).values() if callable(one))
        found |= set(vars(base)).union(*(one.co_names for one in code if one is not None))
    return frozenset(filter(is_hidden, found))


def test_no_name_of_ours_is_a_private_one_of_what_we_extend(trees: list[tuple[str, ast.Module]]) -> None:
    seen = 0
    for path, tree, kind in extended(trees):
        ours = set(re.findall(r"(?:def |self\.)(_[a-z]\w*)", ast.unparse(tree)))
        assert not ours & hidden_of(kind), f"{path}:{tree.lineno}"
        seen += bool(ours)
    assert seen > 5


def test_the_checks_see() -> None:
    seen = """
import os, typer, typer._click, watchdog.observers.inotify_c as low
from pydantic import _internal, BaseModel
from starlette import types
os._exit(0); os._wrap_close; low.InotifyFD; typer.core._main; typer.BadParameter.__mro__; BaseModel.__pydantic_x__
getattr(typer, "_click"); getattr(low, "fine"); own._private; BaseModel._calculate
importlib.import_module("jsonschema._types")
"""
    assert {name for _, name in privates(ast.parse(seen))} == {
        *("typer._click", "watchdog.observers.inotify_c", "pydantic._internal", "os._wrap_close"),
        *("typer.core._main", "__mro__", "pydantic.BaseModel._calculate", "jsonschema._types"),
    }
    patched = "from typer.core import TyperCommand\ndef f(one):\n    one.parse_args = 1\n    one.mine = 2\n"
    assert list(replaced(ast.parse(patched))) == [(3, "parse_args")]
