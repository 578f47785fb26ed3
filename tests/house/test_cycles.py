"""No module and no folder needs itself, however long the way round, and whether the import is made or only written
for types.

Two modules that name each other are one module in two files: neither can be read, tested or moved alone. So it is
with folders.
"""

import ast
from collections.abc import Mapping, Set
from functools import cache

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


@cache
def house() -> dict[str, set[str]]:
    """Which modules each module of the package imports."""
    trees = {module_name(path): tree for path, _, tree in modules()}
    return {name: imported(tree, trees.keys()) - {name} for name, tree in trees.items()}


def test_no_module_imports_itself_in_a_round() -> None:
    found = knots(house())
    assert not found, f"give what both need a module of its own: {found}"


def by_folder(imports: Mapping[str, Set[str]], packages: Set[str]) -> dict[str, set[str]]:
    """The same of folders: what the modules of each import from others. packages: the names that are folders."""
    found: dict[str, set[str]] = {}
    for name, wanted in imports.items():
        home, *others = (one if one in packages else one.rpartition(".")[0] for one in (name, *wanted))
        found.setdefault(home, set()).update(set(others) - {home})
    return {home: others & found.keys() for home, others in found.items()}


def test_no_folder_imports_itself_in_a_round() -> None:
    packages = {module_name(path) for path, _, _ in modules() if path.endswith("/__init__.py")}
    found = knots(by_folder(house(), packages))
    assert not found, f"two folders that need each other are one; move what both need: {found}"


def test_the_check_sees() -> None:
    source = "import p.a\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import c\n"
    inside = "def f():\n    from p import d, e\n"
    known = {"p", "p.a", "p.b", "p.d"}
    assert imported(ast.parse(source + inside), known) == {"p.a", "p.b", "p.d", "p"}
    assert knots({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}) == [["b", "c"]]
    assert not knots({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    folders = by_folder({"p.a.x": {"p.b.y"}, "p.b": set(), "p.b.y": {"p.a"}, "p.a": set()}, {"p.a", "p.b"})
    assert knots(folders) == [["p.a", "p.b"]]
