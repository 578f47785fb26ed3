"""The verbs by groups: the module of each, and the rows of `spool --help`.

Law: each verb stands in one row, beside at most one other. A row has one line at 80 columns, a group at most nine
verbs, and the whole help at most 60 lines. No verb is imported for it, so that the list is there at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from spoold.faces.cli.terminal.output import wrapped

START = ("run", "submit", "status", "top", "explain")
_START = "start here"

# A row: its verbs, each with its module of `verbs`, and what they do. The order is that of `spool --help`.
Row = tuple[dict[str, str], str]
GROUPS: dict[str, tuple[Row, ...]] = {
    "work": (
        ({"run": "run"}, "Run a command on a worker as if it ran here."),
        ({"submit": "submit"}, "Submit tasks: files, options, or a command."),
        ({"wait": "wait"}, "Wait until tasks have ended."),
        ({"result": "results", "logs": "results"}, "Print a task's result; print what tasks wrote."),
    ),
    "watch": (
        ({"status": "status"}, "Show the pool: tasks, leader, workers."),
        ({"top": "top", "web": "web"}, "Show it live: on a terminal; in a browser."),
        ({"ls": "ls"}, "List tasks: state, type, age, command."),
        ({"show": "task_details"}, "Show all about tasks, and their output's end."),
        ({"explain": "task_details"}, "Say why a task waits, and what would help."),
        ({"history": "event_log", "events": "event_log"}, "Tell what happened to a task; to all of them."),
        ({"workers": "workers"}, "Show workers and masters, also dead ones."),
    ),
    "change": (
        ({"cancel": "task_control"}, "End tasks, running or not."),
        ({"retry": "task_control", "priority": "task_control"}, "Try failed tasks again; change a priority."),
        ({"hold": "task_control", "release": "task_control"}, "Keep tasks from starting; let them start."),
        ({"drain": "workers"}, "Let workers finish and leave."),
    ),
    "people": (
        ({"asks": "open_questions"}, "List the questions that nobody has answered."),
        ({"approve": "open_questions", "reject": "open_questions"}, "Answer one; answer it with no."),
        ({"tell": "task_control"}, "Tell the agent of a task something."),
    ),
    "limits": (
        ({"pause": "flow_control", "resume": "flow_control"}, "Start no more tasks; start them again."),
        ({"halt": "flow_control"}, "Stop everything now."),
        ({"limits": "flow_control", "budget": "flow_control"}, "Show what may run; what budgets have left."),
        ({"reserve": "reserve", "locks": "reserve"}, "Keep tasks off files; show who holds a lock."),
    ),
    "pictures": (
        ({"graph": "drawings", "tree": "task_details"}, "Draw a batch; a task and what it submitted."),
        ({"timeline": "drawings", "report": "drawings"}, "Draw attempts over time; all of a batch."),
        ({"trace": "trace", "metrics": "metrics"}, "Export for OpenTelemetry; for Prometheus."),
    ),
    "agents": (
        ({"agent": "agent", "agents": "agents"}, "Submit a task for an agent; list the agents."),
        ({"plan": "plan"}, "Have an agent plan tasks; submit them."),
        ({"merge": "merge"}, "Merge the work of tasks into a branch."),
        ({"workspace": "workspace"}, "List or remove workspaces on this machine."),
        ({"mcp": "mcp"}, "Serve this spool to coding agents, over MCP."),
    ),
    "set up": (
        ({"init": "init", "doctor": "doctor"}, "Make a spool; test whether a mount is safe."),
        ({"up": "daemons"}, "Run a master and workers here."),
        ({"master": "daemons", "worker": "daemons"}, "Run one of them."),
        ({"config": "config"}, "Show, change and check the settings."),
        ({"gc": "housekeeping", "fsck": "housekeeping"}, "Archive ended tasks; audit every file."),
        ({"install-units": "install_units"}, "Write systemd units for this spool."),
    ),
    "in a task": (
        ({"ask": "open_questions"}, "Ask people something."),
        ({"checkpoint": "checkpoint"}, "Save how far this task has come; read it."),
        ({"context": "context"}, "Share findings with the tasks of a batch."),
    ),
}
# verb → module of `verbs`.
VERBS = {verb: module for rows in GROUPS.values() for verbs, _ in rows for verb, module in verbs.items()}


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each row as its group, its verbs and what they do; the first one says where to start, and no more."""
    yield _START, named(START), ""
    for title, some in GROUPS.items():
        for verbs, said in some:
            yield title, named(verbs), said


def named(verbs: tuple[str, ...] | dict[str, str]) -> str:
    """Return verbs as a row names them."""
    return ", ".join(verbs)


def lines(columns: int) -> Iterator[str]:
    """Yield the rows as lines of so many columns at most, broken between words; a group is named in its first one."""
    titles = max(map(len, (_START, *GROUPS)))
    names = max(len(named(verbs)) for some in GROUPS.values() for verbs, _ in some)
    before = ""
    for title, verbs, said in rows():
        begin = f"  {'' if title == before else title:<{titles}}  {verbs:<{names}}"
        yield wrapped(f"{begin}  {said}".rstrip(), columns, " " * (len(begin) + 2))
        before = title
