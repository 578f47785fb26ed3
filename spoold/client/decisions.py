"""Holds, approvals, questions and messages: what people decide about single tasks, how a task asks them, and what
they tell its agent.

It stands apart from `spool_client`, its only user, because both in one file would be too long to read.

Law: a call for several tasks checks all of them before it requests anything. These checks only save a person a wait:
the leader judges each request again. A task cannot answer: within one, every answer is refused.

Touches: the clock, the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from spoold.client.spool.connection import Connection
from spoold.protocol.errors import NotFound, SpoolError, WaitTimeout
from spoold.protocol.lifecycle import State
from spoold.protocol.request import Verb

# Methods import their own needs: importing everything here takes longer than a short command.
if TYPE_CHECKING:
    from spoold.client.read.questions import Answer, Question, Shown
    from spoold.client.spool.standing_requests import Reservation
    from spoold.rules.gates.standing_requests import Requested
    from spoold.store.task_location import Located


class Deciding(Connection):
    """The ways to hold tasks, and to ask and answer questions about them."""

    def hold(self, ids: str | Iterable[str], *, reason: str = "") -> list[str]:
        """Request that tasks wait until `release_held`, by their whole ids; returns these. A ready task goes back. Of
        one that runs, the next attempt waits.

        Errors: NotFound; SpoolError for a task that has ended or was rejected; then nothing is requested.
        """
        from spoold.client.read import preconditions, questions

        found = self._found(ids)
        preconditions.insist(found, questions.refuses_hold)
        return [self._decide(Verb.HOLD, located, reason) for located in found]

    def release_held(self, ids: str | Iterable[str], *, reason: str = "") -> list[str]:
        """Request that held tasks go on, by their whole ids; returns these.

        Errors: NotFound; SpoolError for a task that is not held; then nothing is requested.
        """
        from spoold.client.read import preconditions, questions

        found = self._found(ids)
        with self.reaching():
            preconditions.insist(found, lambda located: questions.refuses_release(self.store, located))
        return [self._decide(Verb.UNHOLD, located, reason) for located in found]

    def asks(self) -> tuple[Question, ...]:
        """Return the questions that nobody has answered, the oldest first."""
        from spoold.client.read import questions

        with self.reaching():
            return questions.list_questions(self.store)

    def shown(self, task_id: str) -> Shown:
        """Return what a task's file says of what it runs, for people who are to approve it, and the names of what it
        reads elsewhere, which is no part of that; by its whole id.

        Errors: NotFound, BadFile.
        """
        from spoold.client.read import questions

        (located,) = self._found(task_id)
        with self.reaching():
            return questions.shown_of(self.store, located)

    def approve(
        self,
        task_id: str,
        answer: Any = None,
        *,
        reason: str = "",
        question: str = "",
        said: str | None = None,
        seen: str = "",
    ) -> str:
        """Answer the question of a task, which then starts, or goes on; returns its id.

        answer: any JSON value; None is the first of the choices, or true. question: which, if a running task asks
        several; said: the answer as a person typed it, which counts where it is one of the choices. seen: of `shown`,
        if a person was shown the task. The approval is of the task's file as it is now: its worker starts no other.
        Errors: NotFound; SpoolError where nothing is asked, for a wrong answer, for a task that is not the one that
        was shown, and within a task.
        """
        from spoold.client.read import questions

        located, asked = self._asked(task_id, question)
        answer = said if said in asked.choices else answer
        if (error := questions.refuses_answer(asked, answer)) is not None:
            raise error
        if (error := questions.refuses_seen(asked, located.id, seen)) is not None:
            raise error
        more: dict[str, Any] = {"about": asked.about, "order": asked.order, "seen": asked.seen or None}
        return self._decide(Verb.APPROVE, located, reason, answer=answer, **more)

    def reject(self, task_id: str, *, reason: str, question: str = "", redo: str = "") -> str:
        """Answer the question of a task with no: it fails as REJECTED, and one that runs is told so; returns its id.

        question: as for `approve`. redo: a task before it, by its whole id, that runs again with the reason as
        feedback; so do those between them, and then this task asks anew instead of failing. Errors: NotFound;
        SpoolError where nothing is asked, where `redo` cannot run again, and within a task.
        """
        located, asked = self._asked(task_id, question)
        again = self._redo(located, asked, redo) if redo else None
        return self._decide(Verb.REJECT, located, reason, about=asked.about, order=asked.order, redo=again)

    def _redo(self, located: Located, asked: Requested, upstream: str) -> tuple[tuple[str, int], ...]:
        from spoold.client.read import preconditions

        if asked.about:
            raise SpoolError(f"task {located.id} runs, and only a task that waits for its approval sends work back.")
        if located.state is State.PENDING:
            raise SpoolError(f"task {located.id} is not admitted yet; wait a moment, and reject again.")
        with self.reaching():
            return preconditions.redo_of(self.store, located, upstream)

    def tell(self, task_id: str, text: str) -> str:
        """Tell the agent of a task something, as a message of this user, or of the task in which this runs; returns
        the name of the message, by which `show` has it. The agent is given it at its next turn, and in a task that
        has not begun with its prompt; while its work is judged, only if that is not accepted. Errors: NotFound;
        BadFile for a text that is empty or too long; SpoolError for a task that has ended, that is known to have no
        agent, or that has too many messages.
        """
        from spoold.client.in_task import adopt_task
        from spoold.client.read import preconditions
        from spoold.system.host import SystemHost

        preconditions.insist_on_text(text)
        (located,) = self._found(task_id)
        with self.reaching():
            if (error := preconditions.refuses_message(self.store, SystemHost(), located)) is not None:
                raise error
        inside = os.environ.get("SPOOL_TASK_ID") or adopt_task(self.directory, dict(os.environ))
        by = f"task {inside}" if inside else ""
        return self.post(Verb.TELL, located.id, "", by=by, durable=self.store.durable, tell=text)

    def ask(self, text: str, choices: Sequence[str] = (), *, expires_s: float | None = None) -> str:
        """Put a question to people, from within a running task; returns its name for `answer_to`.

        expires_s: until when people are told to answer; nobody is kept from answering later. Errors: SpoolError
        outside a task.
        """
        task_id, attempt = os.environ.get("SPOOL_TASK_ID", ""), os.environ.get("SPOOL_ATTEMPT", "")
        if not task_id or not attempt.isdecimal():
            raise SpoolError("only a running task can ask, and this is none: it has no SPOOL_TASK_ID.")
        until = None if expires_s is None else datetime.fromtimestamp(self.store.clock.wall() + expires_s, UTC)
        by = f"{task_id} on {os.environ.get('SPOOL_WORKER_ID', 'a worker')}"
        return self.post(
            Verb.ASK, task_id, "", by=by, until=until, ask=text, choices=tuple(choices), attempt=int(attempt)
        )

    def answer_to(
        self, question: str, timeout: float | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> Answer:
        """Wait for the answer to a question of this task, with its slot lent meanwhile. timeout: in seconds.

        Errors: WaitTimeout; NotFound where the question is gone, as when this attempt is over.
        """
        from spoold.client.in_task import lending
        from spoold.client.read import questions
        from spoold.client.spool.waiting import Pace

        task_id, clock = os.environ.get("SPOOL_TASK_ID", ""), self.store.clock
        pace = Pace(clock, self.store.settings.poll)
        give_up_at = None if timeout is None else clock.monotonic() + timeout
        with lending(clock.monotonic, sleep) as pause:
            while True:
                with self.reaching():
                    look = pace.forgiving(lambda: questions.look_for(self.store, task_id, question), questions.UNSEEN)
                if look.answer is not None:
                    return look.answer
                if not look.asked:
                    raise NotFound(f"the question {question} of {task_id} is gone, and nobody has answered it.")
                left_s = None if give_up_at is None else give_up_at - clock.monotonic()
                if left_s is not None and left_s <= 0:
                    raise WaitTimeout(f"nobody has answered after {timeout:g} s; the question stands.")
                pause(pace.pause_s() if left_s is None else min(pace.pause_s(), left_s))

    def _asked(self, task_id: str, question: str) -> tuple[Located, Requested]:
        """Return a task and its question, for an answer. Errors: NotFound, SpoolError."""
        from spoold.client.in_task import adopt_task
        from spoold.client.read import questions

        # An agent may start its commands with a few variables only.
        inside = os.environ.get("SPOOL_TASK_ID") or adopt_task(self.directory, dict(os.environ))
        if inside:
            raise SpoolError(f"this runs within task {inside}, and a task cannot answer: ask a person to do it.")
        (located,) = self._found(task_id)
        with self.reaching():
            return located, questions.question_of(self.store, located, question)

    def _found(self, refs: str | Iterable[str]) -> list[Located]:
        """Locate tasks by whole ids: the beginning of an id may fit another task. Errors: NotFound."""
        from spoold.client.read import selecting

        with self.reaching():
            found, wrong = selecting.find(self.store, [refs] if isinstance(refs, str) else list(refs))
        for error in wrong.values():
            raise error
        for located in found:
            if located.state is State.PENDING and located.id == located.drop:
                raise NotFound(f"pending/{located.drop} has no id yet; wait a moment, until it is admitted.")
        return found

    def _decide(self, verb: Verb, located: Located, reason: str, **more: Any) -> str:
        said = {name: value for name, value in more.items() if value is not None}
        self.post(verb, located.id, reason, durable=self.store.durable, **said)
        return located.id

    def reserve(
        self,
        write: str | Iterable[str] = (),
        *,
        read: str | Iterable[str] = (),
        ttl_s: float | None = None,
        wait: bool = True,
        timeout: float | None = None,
        reason: str = "",
    ) -> Reservation:
        """Reserve patterns, as `Reserving.reserve`: from now on nothing that conflicts begins; returns once nothing
        that conflicts runs. Errors: SpoolError, WaitTimeout."""
        from spoold.client.spool.standing_requests import Reserving

        return Reserving(self).reserve(write, read=read, ttl_s=ttl_s, wait=wait, timeout=timeout, reason=reason)

    def release(self, names: str | Iterable[str] = ()) -> list[str]:
        """Give reservations back; without names, those of this task, or of this user on this machine. Returns the
        names. Errors: NotFound."""
        from spoold.client.spool.standing_requests import Reserving

        return Reserving(self).release(names)

    def raise_if_over(self, names: Iterable[str]) -> None:
        """Look whether one of these is a reservation that is over. Errors: SpoolError that says since when."""
        from spoold.client.spool.standing_requests import Reserving

        Reserving(self).raise_if_over(names)

    def reserved(self) -> frozenset[str]:
        """Return the names of all reservations that stand."""
        from spoold.client.spool.standing_requests import Reserving

        return Reserving(self).reserved()

    def locks(self) -> dict[str, Any]:
        """Return who holds locks and who waits for them, as the leader's newest snapshot says."""
        from spoold.client.spool.standing_requests import Reserving

        return Reserving(self).locks()
