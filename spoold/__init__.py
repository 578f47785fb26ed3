"""spoold: a pool of your own machines for coding agents, or any commands, with nothing but a shared directory.

A map of the house:

    faces       what people meet; in cli the `spool` command: one verb, one file
    daemon      processes around step(): the loop, systemd, `spool up`, everything inside one program
    task        for the program of a task: save how far it has come, and go on from there
    agents      coding agents as tasks: a program on top of what every handler may use
    worker      claims tasks, runs them, commits what they ended with
    master      leads: admits, orders, retries, reaps, reports
    client      what a program uses: submit, wait, result, events
    doctor      trials on a mount, alone or with other machines: is it safe for a spool?
    runner      runs a job under a supervisor: limits, output, and the end of all its processes; knows no spool
    store       protocol × system: open a spool, move a token, publish, journal, find, audit
    rules       what should happen: pure decisions, no file, no clock
    pictures    graphs, timelines and reports as text: SVG, HTML, Mermaid, dot, Perfetto; pure as well
    system      the world behind ports: file system, clock, host, hints
    protocol    what is on disk: the twin of spool_layout.md and docs/spec

Law: a room imports only rooms of lower floors, and none of its own floor; a test holds it so. The floors: faces;
daemon, agents and task; worker, master, client and doctor; store and runner; rules, pictures and system; protocol.
Importing spoold alone loads none of them but the version.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from spoold.protocol.version import __version__

_EXPORTS = {
    "Spool": "spoold.daemon.embedded",
    "SpoolExecutor": "spoold.client.executor",
    "Page": "spoold.client.spool_client",
    "Result": "spoold.protocol.result",
    "State": "spoold.protocol.lifecycle",
    "Status": "spoold.protocol.snapshot:Snapshot",
    "TaskInfo": "spoold.client.read.task_info",
    "TaskFailed": "spoold.client.spool.waiting",
    "NotFinished": "spoold.client.spool.waiting",
    "SpoolError": "spoold.protocol.errors",
    "BadFile": "spoold.protocol.errors",
    "NotFound": "spoold.protocol.errors",
    "Unavailable": "spoold.protocol.errors",
    "WaitTimeout": "spoold.protocol.errors",
}

if TYPE_CHECKING:
    from spoold.client.executor import SpoolExecutor
    from spoold.client.read.task_info import TaskInfo
    from spoold.client.spool.waiting import NotFinished, TaskFailed
    from spoold.client.spool_client import Page
    from spoold.daemon.embedded import Spool
    from spoold.protocol.errors import BadFile, NotFound, SpoolError, Unavailable, WaitTimeout
    from spoold.protocol.lifecycle import State
    from spoold.protocol.result import Result
    from spoold.protocol.snapshot import Snapshot as Status

__all__ = [
    "BadFile",
    "NotFinished",
    "NotFound",
    "Page",
    "Result",
    "Spool",
    "SpoolError",
    "SpoolExecutor",
    "State",
    "Status",
    "TaskFailed",
    "TaskInfo",
    "Unavailable",
    "WaitTimeout",
    "__version__",
]


def __getattr__(name: str) -> object:
    """The library's names, imported when first asked for: `spool --help` needs none of them."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'spoold' has no attribute {name!r}")
    module, _, called = _EXPORTS[name].partition(":")
    return getattr(import_module(module), called or name)
