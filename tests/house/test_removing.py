"""Folders whose content others decided are removed by the one remover, and walked by the one walk.

`shutil.rmtree` and `os.walk` recurse (a tree of 1,200 levels ends the process), enter mounts, and stop at what is
read-only.
"""

from __future__ import annotations

import ast

from tests.house.sources import modules

FORBIDDEN = {
    "shutil.rmtree",
    "shutil.move",
    "os.removedirs",
    "os.walk",
    "os.fwalk",
    "tempfile.TemporaryDirectory",
    "glob.glob",
    "glob.iglob",
}


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def forbidden(tree: ast.Module) -> list[str]:
    """What a module uses of it, also by `from … import`."""
    named = [_dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            named += [f"{node.module}.{alias.name}" for alias in node.names]
    return sorted(FORBIDDEN & set(named))


def test_nothing_else_removes_or_walks_what_others_made() -> None:
    found = {path: used for path, _, tree in modules() if path.startswith("spoold/") and (used := forbidden(tree))}
    assert not found, f"use spoold.system.remover or spoold.system.walking: {found}"


def test_the_check_sees() -> None:
    assert forbidden(ast.parse("import shutil\nstack.callback(shutil.rmtree, top)")) == ["shutil.rmtree"]
    assert forbidden(ast.parse("from os import walk")) == ["os.walk"]
