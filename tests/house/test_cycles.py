"""No module needs itself, however long the way round, and whether the import is made or only written for types.

Two modules that name each other are one module in two files: neither can be read, tested or moved alone.
"""

import ast
from collections.abc import Mapping, Set

from tests.house.sources import modules


def module_name(path: str) -> str:
    """`spoold/store/store.py` → `spoold.store.store`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(tree: ast.Module, known: Set[str]) -> set[str]:
    """The modules of the package that this one imports anywhere: at the top, in a function, under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & known
            if inner - known:  # a name that is no module comes out of the package itself
                found.add(node.module)
    return found & known


def knots(imports: Mapping[str, Set[str]]) -> list[list[str]]:
    """The modules that reach themselves, in groups that reach each other (strongly connected components)."""
    reached = {name: _reach(name, imports) for name in imports}
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in imports}
    return sorted(sorted(group) for group in groups if group)


def _reach(name: str, imports: Mapping[str, Set[str]]) -> set[str]:
    """Whatever is imported from here on, the module itself only where a way leads back to it."""
    found: set[str] = set()
    front = set(imports[name])
    while front:
        found |= front
        front = {after for module in front for after in imports[module]} - found
    return found


def test_no_module_imports_itself_in_a_round() -> None:
    trees = {module_name(path): tree for path, _, tree in modules()}
    found = knots({name: imported(tree, trees.keys()) - {name} for name, tree in trees.items()})
    assert not found, f"give what both need a module of its own: {found}"


def test_the_check_sees() -> None:
    source = "import p.a\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import c\n"
    inside = "def f():\n    from p import d, e\n"
    known = {"p", "p.a", "p.b", "p.d"}
    assert imported(ast.parse(source + inside), known) == {"p.a", "p.b", "p.d", "p"}
    assert knots({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}) == [["b", "c"]]
    assert not knots({"a": {"b", "c"}, "b": {"c"}, "c": set()})
