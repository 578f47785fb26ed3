"""What the witness knows of holds and approvals, and the laws about them.

The witness knows every decision by the moment at which its file appeared at the server, and compares that with what
ran: a task begins only after its approval, or its release, was published; not in an attempt that was claimed while a
rejection stood; and an answer to an earlier round is none. An ended task runs again only if somebody sent it back by
that attempt, and a task asks anew only when all that was sent back for it waits, or has gone on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.names import key, parse_ended, parse_returned, parse_task
from spoold.protocol.request import OF_ONE_TASK, Request, Verb, parse_request
from tests.sim.conduct import Broken
from tests.sim.programs import Execution
from tests.sim.server import Server

CHOICES = ("red", "blue")


@dataclass(slots=True)
class Published:
    """A decision that appeared in control/, and when (s). order: of the round that it names, '' for any."""

    verb: Verb
    at: float
    order: str
    content: dict[str, Any]


@dataclass(slots=True)
class Decided:
    """What the witness knows: asking and held are the keys of such tasks; rounds: the order in which each attempt was
    claimed; shut: attempts that were claimed while a rejection of their round stood.
    """

    asking: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    published: dict[str, list[Published]] = field(default_factory=dict)
    rounds: dict[tuple[str, int], str] = field(default_factory=dict)
    shut: set[tuple[str, int]] = field(default_factory=set)

    def renamed(self, server: Server, now: float, dst: str) -> None:
        """After a rename."""
        room, _, name = dst.partition("/")
        if room == "control":
            request = parse_request(name)
            if request is not None and request.verb in OF_ONE_TASK:
                self._see(server, now, request, dst)
        elif room == "claimed":
            claim = parse_task(name.rpartition("/")[2])
            if claim is not None and key(claim.id) in self.asking:
                attempt = (key(claim.id), claim.attempt)
                self.rounds[attempt] = claim.order
                if self._rejected(server, key(claim.id), claim.order):
                    self.shut.add(attempt)

    def sent_back(self, tokens: dict[str, str], src: str, dst: str) -> None:
        """Before a rename is counted: tokens say where all tasks stand. Errors: Broken."""
        source, target = src.partition("/")[0], dst.partition("/")[0]
        if source == "completed" and target == "waiting":
            ended = parse_ended(src.rpartition("/")[2])
            named = ended is not None and any(
                (key(task), attempt) == (key(ended.id), ended.attempt)
                for each in self.published.values()
                for one in each
                for task, attempt in one.content.get("redo", ())
            )
            if not named:
                raise Broken(f"sent back: {src} → {dst}, and nobody has sent that attempt back")
        elif source == target == "waiting":
            name, anew = parse_task(src.rpartition("/")[2]), parse_task(dst.rpartition("/")[2])
            assert name is not None
            assert anew is not None
            if (name.order, name.attempt) == (anew.order, anew.attempt) and name.rank != anew.rank:
                return  # it is as urgent as people want it, and asks nobody anew
            asked = [one for one in self.published.get(key(name.id), ()) if one.order == name.order]
            redos = [one.content["redo"] for one in asked if "redo" in one.content]
            if not any(all(_attempt(tokens.get(key(task), "")) > was for task, was in redo) for redo in redos):
                raise Broken(f"sent back: {src} → {dst} asks anew, and not all of {redos} runs again: {tokens}")

    def check(self, executions: list[Execution]) -> None:
        """What must hold in the end. Errors: Broken."""
        for run in executions:
            task = key(run.task)
            if task in self.held:
                self._insist(task, run, Verb.UNHOLD, None, "held")
            if task in self.asking:
                order = self.rounds.get((task, run.attempt), "")
                self._insist(task, run, Verb.APPROVE, order, "approved")
                if (task, run.attempt) in self.shut:
                    raise Broken(f"rejected: {run} began, and a rejection stood when it was claimed")

    def check_answer(self, task: str, result: dict[str, Any]) -> None:
        """The result of a success says an answer that was given. Errors: Broken."""
        if task in self.asking:
            said = result["approval"]
            answers = [one.content.get("answer") or CHOICES[0] for one in self.published.get(task, ())]
            if said is None or said["answer"] not in answers:
                raise Broken(f"answered: the result of {task} says {said}, and people said {answers}")

    def _see(self, server: Server, now: float, request: Request, path: str) -> None:
        content = json.loads(server.fs.read(path))
        one = Published(request.verb, now, content.get("order", ""), content)
        self.published.setdefault(key(request.target), []).append(one)

    def _rejected(self, server: Server, task: str, order: str) -> bool:
        for name in server.fs.list("control"):
            request = parse_request(name)
            if request is not None and request.verb is Verb.REJECT and key(request.target) == task:
                content = json.loads(server.fs.read(f"control/{name}"))
                if content.get("order", "") in ("", order):
                    return True
        return False

    def _insist(self, task: str, run: Execution, verb: Verb, order: str | None, law: str) -> None:
        given = [one for one in self.published.get(task, ()) if one.verb is verb and one.at <= run.begin]
        if not any(order is None or one.order in ("", order) for one in given):
            raise Broken(f"{law}: {run} of round {order} began before any {verb} for it was published: {given}")


def _attempt(path: str) -> int:
    """The attempt that a token is at; 0 for none."""
    file = path.rpartition("/")[2]
    returned = parse_returned(file)
    name = parse_task(file) or parse_ended(file) or (returned[0] if returned else None)
    return 0 if name is None else name.attempt
