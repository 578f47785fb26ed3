"""A cluster in memory, and a view of it that looks when the test says so."""

import contextlib
import json
from typing import Any

from spoold.client.view import View
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.request import Verb
from spoold.store import control
from spoold.store.store import open_store
from spoold.store.task_location import iter_tasks
from spoold.system.host import FakeHost
from tests.support.cluster import Cluster
from tests.support.counting import CountingFileSystem


class Watched:
    """mount: what the view asks of its mount. The view has looked once when it is made."""

    def __init__(self, *, remote: bool = False, settings: str = "", slots: int = 2) -> None:
        self.cluster = Cluster(remote=remote, settings=settings)
        self.cluster.master("m-0001")
        self.cluster.worker("w-0001", slots)
        self.cluster.settle()
        self.mount = CountingFileSystem(self.cluster.fs)
        self.store = open_store(self.mount, self.cluster.clock, "cli-test-1", "/spool")
        self.view = self.open()
        self.view.look()

    def open(self) -> View:
        """Another view of the same spool, which has not looked yet."""
        return View(self.store, FakeHost("desk"), contextlib.nullcontext)

    def drop(self, name: str, *tasks: dict[str, Any]) -> None:
        """Drop some tasks, which run a command."""
        self.cluster.submit(name, "\n".join(json.dumps({"command": ["true"], **task}) for task in tasks))

    def ask(self, verb: Verb, target: str, unique: str) -> None:
        """Post a request, as a client that writes."""
        client = open_store(self.cluster.fs, self.cluster.clock, f"cli-{unique}", "/spool")
        client.open_tmp()
        control.post(client, verb, target, unique, by="me")

    def look(self, seconds: int = 3) -> None:
        """Let time pass, with a look a second."""
        for _ in range(seconds):
            self.cluster.advance(1.0)
            self.view.look()
            assert not self.view.problem

    def listed(self) -> dict[str, tuple[str, int]]:
        """State and attempt of every task, as a listing of everything shows them now."""
        found = iter_tasks(self.store, archived=True)
        return {
            one.path if one.state is State.REJECTED else key(one.id): (one.state.value, one.attempt) for one in found
        }

    def seen(self, view: View | None = None) -> dict[str, tuple[str, int]]:
        """The same, as the view knows it."""
        cards = (view or self.view)._table.cards
        return {name: (card.state, card.attempt) for name, card in cards.items()}
