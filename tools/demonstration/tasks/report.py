"""The task `report`: joins what all the others found into one Markdown file.

It depends on them, so SPOOL_DEPS_DIR holds the committed result of each, ID.json. It writes outside of the spool,
and a task may start twice: so it writes under a name of its own and renames, and the last one to finish wins whole.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

KINDS = ("measure", "twins", "cautions")
SHOWN = 5


def table(header: list[str], rows: list[list[object]]) -> Iterator[str]:
    """A Markdown table, nothing where there are no rows."""
    if rows:
        lines: list[Sequence[object]] = [header, ["---"] * len(header), *rows]
        for cells in lines:
            yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
        yield ""


def some(items: list[str]) -> Iterator[str]:
    """The first items as a list, and how many more there are."""
    yield from (f"- {item}" for item in items[:SHOWN])
    if len(items) > SHOWN:
        yield f"- … and {len(items) - SHOWN} more"
    yield ""


def totals(parsed: list[dict[str, Any]], unread: list[dict[str, Any]]) -> str:
    """The tree in one paragraph."""
    functions = [function for file in parsed for function in file["functions"]]
    having, of = (sum(file[field] for file in parsed) for field in ("documented", "documentable"))
    share = f", docstrings on {having:,} of {of:,} public names ({having / of:.0%})" if of else ""
    refused = f", {len(unread)} that this Python cannot read" if unread else ""
    lines = sum(file["lines"] for file in parsed)
    return f"{len(parsed):,} files{refused}, {lines:,} lines, {len(functions):,} functions{share}."


def write(root: str, results: list[dict[str, Any]]) -> Iterator[str]:
    """The report, line by line, from the results of the other tasks."""
    outputs = {kind: [r["output"] for r in results if r["type"] == kind] for kind in KINDS}
    parsed = [file for file in outputs["measure"] if "problem" not in file]
    unread = [file for file in outputs["measure"] if "problem" in file]
    functions = [{**function, "file": file["file"]} for file in parsed for function in file["functions"]]
    remarks: Counter[str] = Counter()
    for file in parsed:
        remarks.update(file["remarks"])

    yield from (f"# {Path(root).name}", "", totals(parsed, unread), "")
    for title, field in (("Longest functions", "lines"), ("Most ways through", "complexity")):
        top = sorted(functions, key=lambda function: function[field], reverse=True)[:SHOWN]
        yield from (f"## {title}", "")
        yield from table(
            ["function", "where", field], [[f["name"], f"{f['file']}:{f['line']}", f[field]] for f in top]
        )
    yield from ("## Style", "")
    yield from table(["remark", "times"], [[remark, count] for remark, count in remarks.most_common()])
    if not remarks:
        yield from ("Nothing to remark.", "")
    for title, items in (
        (
            "Twins: functions that differ only in names",
            [", ".join(p) for out in outputs["twins"] for p in out["twins"]],
        ),
        ("The compiler warns", [caution for out in outputs["cautions"] for caution in out["cautions"]]),
        ("No Python of this version", [f"{file['file']}: {file['problem']}" for file in unread]),
    ):
        if items:
            yield from (f"## {title}", "", *some(items))
    yield from ("## Who did it", "")
    done = Counter(result["worker_id"] for result in results)
    yield from table(["laptop", "tasks"], [[worker, count] for worker, count in sorted(done.items())])


def main() -> None:
    """Write the report to the path that the task names."""
    wanted = json.loads(Path(os.environ["SPOOL_TASK_FILE"]).read_text())["input"]
    results = [json.loads(path.read_text()) for path in sorted(Path(os.environ["SPOOL_DEPS_DIR"]).glob("*.json"))]
    path = Path(wanted["report"])
    own = path.with_name(f"{path.name}.{os.environ['SPOOL_ATTEMPT']}.{os.environ['SPOOL_WORKER_ID']}")
    own.write_text("\n".join(write(wanted["root"], results)), encoding="utf-8", errors="replace")
    own.replace(path)
    measured = sum(result["type"] == "measure" for result in results)
    Path(os.environ["SPOOL_RESULT_FILE"]).write_text(json.dumps({"results": len(results), "measured": measured}))


if __name__ == "__main__":
    main()
