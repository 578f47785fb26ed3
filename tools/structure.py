"""How hard the house is to enter, in figures: `tools/run python tools/structure.py [--drop] [CHECKOUT]`.

files, lines    Python files of spoold/, and their lines
circles         pairs of folders whose modules import each other
basenames       names that two or more modules have
entered         modules whose functions run, in a leader, a worker and its runner, from a drop until it is completed
hops            pairs of modules of which one calls the other, in those, that no idle round has
explain         modules that `spool explain` of that task loads

The last three, with --drop, are seen from inside, by a profile hook in every process of a pool of two nodes: ten
seconds of it idle, and as long with one task that does nothing. A checkout of another build is measured by the same
rules, with the interpreter of this one.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

HOOK = """
import atexit, os, sys, threading, time

folder, begin, house = os.environ.pop("S_FOLDER"), os.environ["S_BEGIN"], os.environ["S_HOUSE"]
os.environ["S_FOLDER"] = folder
calls = set()


def look(frame, event, argument):
    code = frame.f_code
    if event != "call" or code.co_name == "<module>" or not code.co_filename.startswith(house):
        return
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(house):
        caller = caller.f_back
    if caller is None or caller.f_code.co_name != "<module>":
        calls.add((caller.f_code.co_filename if caller else "", code.co_filename))


def wait():
    while not os.path.exists(begin):
        time.sleep(0.1)
    calls.clear()


def tell(*_):
    sys.setprofile(None)
    with open(os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns()}"), "w") as file:
        for pair in list(calls):
            file.write("\\t".join(pair) + "\\n")
        for name in list(sys.modules):
            if name.split(".")[0] == "spoold":
                file.write(f"loaded\\t{name}\\n")


if not os.path.exists(begin):
    threading.Thread(target=wait, daemon=True).start()
atexit.register(tell)
leave = os._exit
os._exit = lambda status: (tell(), leave(status))
threading.setprofile(look)
sys.setprofile(look)
"""
IDLE_S, START_S, END_S = 10.0, 4.0, 60.0


def main() -> int:
    """Measure a checkout, and print a line a figure."""
    parser = argparse.ArgumentParser(prog="structure.py", description="How hard the house is to enter, in figures.")
    parser.add_argument("checkout", nargs="?", default=str(Path(__file__).parent.parent), metavar="CHECKOUT")
    parser.add_argument("--drop", action="store_true", help="also those that a running pool shows (half a minute)")
    options = parser.parse_args()
    checkout = Path(options.checkout).resolve()
    figures = still(checkout)
    if options.drop:
        figures |= moving(checkout)
    for name, figure in figures.items():
        print(f"{name:10} {figure:7d}")
    return 0


def still(checkout: Path) -> dict[str, int]:
    """Return what the files say."""
    files = sorted((checkout / "spoold").rglob("*.py"))
    modules = {".".join(path.relative_to(checkout).with_suffix("").parts).removesuffix(".__init__") for path in files}
    between = set[tuple[str, str]]()
    for path in files:
        home = ".".join(path.relative_to(checkout).parent.parts)
        for name in _imported(ast.parse(path.read_bytes()), modules):
            folder = name if (checkout / name.replace(".", "/")).is_dir() else name.rpartition(".")[0]
            if folder != home:
                between.add((home, folder))
    stems = collections.Counter(path.stem for path in files if not path.stem.startswith("__"))
    return {
        "files": len(files),
        "lines": sum(path.read_bytes().count(b"\n") for path in files),
        "circles": sum((there, here) in between for here, there in between if here < there),
        "basenames": sum(count > 1 for count in stems.values()),
    }


def _imported(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """The modules that one names in its imports, wherever these stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in modules or node.module in modules:
                    yield whole if whole in modules else node.module


def moving(checkout: Path) -> dict[str, int]:
    """Return what a pool shows."""
    idle, _ = _pool(checkout, None)
    calls, loaded = _pool(checkout, {"id": "one", "command": ["true"]})
    hops = {pair for pair in calls if pair[0] != pair[1]} - idle
    return {"entered": len({callee for _, callee in calls}), "hops": len(hops), "explain": len(loaded)}


def _pool(checkout: Path, task: Mapping[str, object] | None) -> tuple[set[tuple[str, str]], set[str]]:
    """Run a leader and a worker for a while; returns which module called which, and what `explain` then loads."""
    folder = Path(tempfile.mkdtemp(prefix="spoold-structure-"))
    try:
        return _watched(checkout, folder, task)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watched(
    checkout: Path, folder: Path, task: Mapping[str, object] | None
) -> tuple[set[tuple[str, str]], set[str]]:
    said, root, begin = folder / "said", folder / "spool", folder / "begin"
    (folder / "hook").mkdir()
    said.mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(HOOK)
    plain = {**os.environ, "PYTHONPATH": str(checkout), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    watched = {**plain, "PYTHONPATH": f"{checkout}:{folder / 'hook'}", "S_FOLDER": str(said), "S_BEGIN": str(begin)}
    watched["S_HOUSE"] = f"{checkout}/spoold/"
    spool = [sys.executable, "-m", "spoold", "--spool", str(root)]
    subprocess.run([*spool, "init", str(root)], env=plain, cwd=folder, check=True, capture_output=True)
    log = (folder / "log").open("w")
    explained = set[Path]()
    nodes = [subprocess.Popen([*spool, *words], cwd=folder, env=watched, stdout=log, stderr=log) for words in NODES]
    try:
        ends = time.monotonic() + END_S
        while time.monotonic() < ends and len(list((root / "heartbeats").iterdir())) < len(nodes):
            time.sleep(0.1)
        time.sleep(START_S)
        begin.touch()
        ends = time.monotonic() + (IDLE_S if task is None else END_S)
        if task is not None:
            (root / "pending" / "one.tmp").write_text(json.dumps(task))
            (root / "pending" / "one.tmp").rename(root / "pending" / "one.json")
        while time.monotonic() < ends and not (task and any((root / "completed").rglob("*.json"))):
            time.sleep(0.1)
        if task is not None:
            assert any((root / "completed").rglob("*.json")), (folder / "log").read_text()
            time.sleep(IDLE_S)
            before = set(said.iterdir())
            subprocess.run([*spool, "explain", "one"], cwd=folder, env=watched, check=True, capture_output=True)
            explained = set(said.iterdir()) - before
    finally:
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        for node in nodes:
            node.wait(END_S)
        log.close()
    calls = {pair for pair in _pairs(set(said.iterdir()) - explained) if pair[0] != "loaded"}
    return calls, {name for kind, name in _pairs(explained) if kind == "loaded"}


NODES = (["master"], ["worker", "--slots", "1", "--allow-command"])


def _pairs(files: set[Path]) -> set[tuple[str, str]]:
    rows = [tuple(line.split("\t")) for file in files for line in file.read_text().splitlines()]
    return {(row[0], row[1]) for row in rows}


if __name__ == "__main__":
    sys.exit(main())
