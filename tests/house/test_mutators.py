"""What a leader works with has parts, and each part changes by its own methods alone.

A field that many modules assign has as many authors, and none of them says what happened.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.house.sources import modules

# Each part, by its class, and what others call it where they reach it: `desk.step`, or `step` for short.
PARTS = {
    "Ends": "ends",
    "Learned": "learned",
    "LeaderReport": "report",
    "Missing": "missing",
    "Orders": "orders",
    "OwnDoor": "door",
    "Rejects": "rejects",
    "StepState": "step",
    "Usage": "usage",
    "View": "view",
}
# Every listing adds the directories that it may not list: `store.existence` is given the set for that.
COLLECTORS = {"blocked"}
# What changes a list, a set, a dict or a counter in place.
CHANGES_IN_PLACE = {"append", "extend", "insert", "pop", "remove", "clear", "add", "discard", "update", "setdefault"}


def fields_of(part: ast.ClassDef) -> dict[str, bool]:
    """The fields that a class declares; false for one whose own class makes its changes."""
    declared = [line for line in part.body if isinstance(line, ast.AnnAssign)]
    return {
        line.target.id: not (isinstance(line.annotation, ast.Name) and line.annotation.id[0].isupper())
        for line in declared
        if isinstance(line.target, ast.Name) and line.target.id not in COLLECTORS
    }


def class_in(tree: ast.Module, name: str) -> ast.ClassDef | None:
    """The class of that name at the top of a module."""
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return found[0] if found else None


def without(tree: ast.Module, part: ast.ClassDef | None) -> ast.Module:
    """A module as others see the part: less the class of the part itself."""
    return ast.Module([node for node in tree.body if node is not part], [])


def changed(tree: ast.Module, part: str, fields: Mapping[str, bool]) -> Iterator[str]:
    """Where a module changes a field of the part, as `line: part.field`."""

    def is_part(node: ast.expr) -> bool:
        return (isinstance(node, ast.Attribute) and node.attr == part) or (
            isinstance(node, ast.Name) and node.id == part
        )

    def field(node: ast.expr) -> str | None:
        found = isinstance(node, ast.Attribute) and node.attr in fields and is_part(node.value)
        return f"{node.lineno}: {part}.{node.attr}" if found and isinstance(node, ast.Attribute) else None

    for node in ast.walk(tree):
        where = None
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            where = field(node)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            where = field(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            in_place = node.func.attr in CHANGES_IN_PLACE
            where = field(node.func.value) if in_place and _is_plain(node.func.value, fields) else None
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr")
        ):
            where = f"{node.lineno}: {node.func.id}" if is_part(node.args[0]) else None
        if where is not None:
            yield where


def _is_plain(node: ast.expr, fields: Mapping[str, bool]) -> bool:
    return isinstance(node, ast.Attribute) and fields.get(node.attr, False)


def test_nobody_else_changes_a_field_of_a_part() -> None:
    trees = {path: tree for path, _, tree in modules() if path.startswith("spoold/master/")}
    homes = {name: [made for tree in trees.values() if (made := class_in(tree, name))] for name in PARTS}
    assert all(len(made) == 1 for made in homes.values()), "each part is one class"
    found = [
        f"{path}:{where}"
        for name, part in PARTS.items()
        for path, tree in trees.items()
        for where in changed(without(tree, homes[name][0]), part, fields_of(homes[name][0]))
    ]
    assert not found, "give the part a method that says what happened:\n" + "\n".join(found)


def test_the_check_sees() -> None:
    made = ast.parse("class S:\n    busy: bool = False\n    seen: set[str]\n    def f(self): self.busy = True\n")
    other = class_in(ast.parse("class T:\n    part: Archived\n    blocked: set[str]\n"), "T")
    assert other is not None
    assert fields_of(other) == {"part": False}
    own = class_in(made, "S")
    assert own is not None
    assert fields_of(own) == {"busy": True, "seen": True}
    assert not without(made, own).body
    wrong = [
        "desk.step.busy = True",
        "desk.step.busy |= late",
        "step.busy, x = True, 1",
        "self._desk.step.seen.add(1)",
        "step.seen[1] = 2",
        "del desk.step.seen[1]",
        "setattr(desk.step, 'busy', True)",
    ]
    for code in wrong:
        assert list(changed(ast.parse(code), "step", {"busy": True, "seen": True})), code
    assert list(changed(ast.parse("step.now = 1"), "step", {"now": False}))
    assert not list(changed(ast.parse("step.now.add(1)"), "step", {"now": False}))
    right = ["desk.busy = desk.step.busy", "desk.step.change()", "x = step.seen - {1}", "desk.other.seen.add(1)"]
    for code in right:
        assert not list(changed(ast.parse(code), "step", {"busy": True, "seen": True})), code
