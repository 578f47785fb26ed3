"""One attempt of an agent's task, from the prompt to the result: what `python -m spoold.agents` does.

A question of the agent becomes one for people, as `spool ask` puts it; the slot is lent while it waits.

Law: whatever happens, what the agent made is saved before the attempt ends, the result says how it ended, and none of
its processes is left. A task asks; the profile decides. A question that nobody can be asked, or nobody answers in
time, blocks the task, with the question as evidence. What a worker masks in an output is masked in a question, too.

Touches: files, processes, the clock, the terminal.
"""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from spoold.agents.adapters import known_agents
from spoold.agents.adapters.adapter import Errand, Event, Trouble
from spoold.agents.attempt import handler_contract, prompting
from spoold.agents.attempt.agent_telemetry import listening
from spoold.agents.attempt.follow_up import IdTaken, branch_of, offer, own_branch, submit_merge
from spoold.agents.attempt.handler_contract import Contract, allowed_model, refused_repository
from spoold.agents.attempt.own_workspace import workspace_for
from spoold.agents.attempt.prompting import Inbox
from spoold.agents.configuration import redactor
from spoold.agents.process import confinement, ending
from spoold.agents.process.ending import End
from spoold.agents.process.interfaces import Bare, NoPlace, Opened, Sandbox, Saved, Workspace
from spoold.agents.process.program import Bounds, adopt_orphans
from spoold.agents.process.transcript import Transcript
from spoold.agents.process.turns import CannotStart, Scene, run_command, take_turn
from spoold.agents.sandbox import private_home
from spoold.agents.workspace.acceptance import NOT_FOUND, Check, Ran, checked, inside, judge
from spoold.agents.workspace.attempt_workspace import Tended
from spoold.agents.workspace.git import RemoteAway, RemoteRefused, WorkspaceFailed
from spoold.agents.workspace.room import NoRoom, fault_of, short
from spoold.agents.workspace.secret_scan import HoldsSecret
from spoold.agents.workspace.workspace_layout import OVER
from spoold.protocol.agent_fields import is_word
from spoold.protocol.agent_messages import JUDGED, Message
from spoold.protocol.errors import BadFile, SpoolError, WaitTimeout

T = TypeVar("T")
# The exit code for what this worker cannot run, and another may.
NOT_HERE = 126
QUESTIONS_MAX, REFUSED_MAX = 20, 3
# How long (s) an attempt waits for a remote that is away, with its work done; and the pauses between its tries.
AWAY_S, PAUSE_S, PAUSE_MAX_S, LOOK_S = 900.0, 2.0, 60.0, 0.2
_SETUP_LINES = 20


def main() -> int:
    """Run the attempt that the environment describes; returns the exit code."""
    try:
        contract = Contract()
    except BadFile as error:
        return _give_up(str(error), ending.INPUT)
    try:
        said, fresh = contract.errand.get("workspace") or {}, contract.errand.get("resume") == "no"
        workspace = workspace_for(contract.profile.workspace, said, fresh=fresh)
        sandbox = confinement.sandbox_for(contract.profile.sandbox, memory_mb=contract.task.requires.mem_mb)
    except SpoolError as error:
        return _give_up(str(error), NOT_HERE)
    return Attempt(contract, workspace, sandbox).run()


class Attempt:
    """One attempt."""

    def __init__(self, contract: Contract, workspace: Workspace, sandbox: Sandbox) -> None:
        self._contract, self._profile, self._said = contract, contract.profile, contract.errand
        self._workspace, self._sandbox = workspace, sandbox
        self._adapter = known_agents.make(contract.profile.cli)
        self._heard = Transcript(self._adapter.counting)
        self._saved, self._checks = Saved(), list[Check]()
        previous = contract.previous()
        self._before = prompting.before_of(previous)
        self._last = contract.last_output()
        self._inbox = Inbox(contract.told, self._last)
        self._whole, self._lost = "", ""  # the prompt of a new session; why the one that was there could not go on
        self._signals, self._doing = list[int](), ""
        self._told = dict[str, Any]()  # the spans of the agent, as a field of the result
        self._kept = ""  # the session of the last attempt here, whose files its home has, with the program's name
        self._instead = contract.kind != contract.task.kind  # the task is of another profile
        self._judged = False  # whether its last turn is over
        self._returning, self._worked = False, False  # whether earlier work may be here; whether this one made some
        self._ended = dict[str, Any]()  # what is kept in the workspace of the agent's end
        self._over: Mapping[str, Any] | None = None  # what followed the work of an attempt whose end was lost
        self._accepted = False  # its work is, and only what follows may be missing
        self._cut = False  # whether it was stopped while its agent was at work
        self._secret = False  # whether its work holds what nobody may see

    def run(self) -> int:
        """Run it; returns the exit code."""
        adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        over = False
        try:
            end = self._refused() or self._in_place()
            if end.outcome in ending.GOOD:
                end = self._followed(end)
                over = end.outcome in ending.GOOD
                if over and self._ended:
                    # A kill before its record counts loses that: the next attempt then says the same again.
                    with suppress(OSError):
                        self._keep({**self._ended, OVER: dict(end.more)})
        except (SpoolError, OSError) as error:
            end = self._hindered(error)
        finally:
            if not over and self._ended:
                with suppress(OSError):
                    self._keep({**self._ended, "counted": True})  # the record of this attempt has what it cost
            self._workspace.close(over=over)
        return self._leave(end)

    def _hindered(self, error: SpoolError | OSError) -> End:
        """Return the end of an attempt that an error ended: of the remote, of the work, or of this machine."""
        full = fault_of(error, self._workspace.disk)
        if self._cut and (full or isinstance(error, RemoteAway)):  # a wait is at no charge only for what is done
            return End("failed", ending.STOPPED, (f"it was stopped before it was done; {full or error}",))
        if full:
            end = ending.end_of_absence(full, self._contract.previous())
            return end if self._returning or self._worked else replace(end, more={**end.more, "not_here": "type"})
        if isinstance(error, RemoteAway):
            return ending.end_of_absence(str(error), self._contract.previous())
        if isinstance(error, RemoteRefused | HoldsSecret):
            self._secret = isinstance(error, HoldsSecret)
            return End("blocked", ending.EXIT["blocked"], (str(error),))
        code = error.code if isinstance(error, CannotStart) else ending.EXIT["failed"]
        return End("failed", NOT_HERE if isinstance(error, NoPlace) else code, (str(error),))

    def _stop(self, number: int, frame: object) -> None:
        self._signals.append(number)

    def _stopped(self) -> bool:
        return bool(self._signals)

    def _refused(self) -> End | None:
        """Return the end of a task that asks for more than the profile allows."""
        said, profile, place = self._said, self._profile, f"[agents.{self._contract.name}] of the worker"
        repo = (said.get("workspace") or {}).get("repo")
        why = None
        if (said.get("accept") or "command" in (said.get("success_if") or {})) and not profile.allow_accept:
            why = f"a task may name no commands here: leave accept out, or add allow_accept = true to {place}"
        elif said.get("model") and not self._instead and not allowed_model(profile, said["model"]):
            why = (
                f'a task may not choose the model: leave it out, or add allow_models = ["{said["model"]}"] to {place}'
            )
        elif repo:
            why = refused_repository(profile, repo, place)
        if why is not None and self._instead:  # its own profile may allow it
            return ending.end_of_absence(why, self._contract.previous())
        return None if why is None else End("refused", ending.INPUT, (why,))

    def _in_place(self) -> End:
        opened = self._opened()
        self._kept = private_home.session_of(opened.home) if opened.returning else ""
        self._returning = opened.returning
        if not opened.done and self._workspace.disk and (full := short(self._workspace.disk)):
            raise NoRoom(full)
        try:
            with self._sandbox.enter(opened):
                scene = Scene(
                    self._sandbox,
                    opened.directory,
                    opened.home,
                    {**self._contract.environment(), **opened.env},
                    self._stopped,
                    self._report,
                )
                return self._set_up(opened.setup, scene) or self._work(opened, scene)
        finally:  # also of an attempt whose work could not be saved, which is tried again
            private_home.note_session(opened.home, self._named(self._heard.session))

    def _opened(self) -> Opened:
        """Make the workspace. Errors: SpoolError, which names the field that names the repository; OSError."""
        try:
            return self._workspace.open()
        except Tended:
            raise
        except WorkspaceFailed as failed:
            own = (self._said.get("workspace") or {}).get("repo")
            where = "input.workspace.repo of the task" if own else f"workspace.repo of {self._profile.place}"
            raise type(failed)(f"{failed} The repository is named by {where}.") from failed

    def _named(self, session: str) -> str:
        """Return a session with the program whose it is: no other goes on with it."""
        return " ".join((self._profile.cli, *self._profile.command, session)) if session else ""

    def _set_up(self, lines: Sequence[str], scene: Scene) -> End | None:
        """Run the setup of the workspace, where the agent will run: it may run what an earlier attempt wrote."""
        for line in lines:
            self._doing = f"setup: {line}"
            ran = run_command(["/bin/sh", "-c", line], scene, math.inf, aloud=True)
            if self._stopped():
                return End("failed", ending.STOPPED, ("it was stopped while its workspace was set up",))
            if ran.code != 0:
                said = " | ".join(ran.output.splitlines()[-_SETUP_LINES:])
                why = f"the setup of the workspace failed: `{line}` ended with {ran.code}: {said}"
                sandbox, barred = self._profile.sandbox, ran.code == NOT_FOUND
                if barred and (missed := confinement.unshown(sandbox, ran.output, scene.env)):
                    return End("blocked", ending.EXIT["blocked"], (f"{why} ({missed})",))  # no attempt sees more
                hint = confinement.hint(sandbox, ran.output, scene.env)
                return End("failed", ending.EXIT["failed"], (why + hint,))
        self._doing = ""
        return None

    def _work(self, opened: Opened, scene: Scene) -> End:
        prompt = self._prompt(opened.directory)
        if isinstance(prompt, End):
            return prompt
        errand = self._errand(prompt, opened, scene)
        trouble, self._worked = None, True
        self._workspace.begin()
        self._contract.keep_room()
        try:
            done = opened.done or self._done_elsewhere(opened)
            anew = bool(self._inbox.news) or (OVER in done and self._contract.sent_back)
            if done and not anew:
                self._remember(done)
            else:
                if done:
                    self._keep({})  # a person has told its agent something since, or sent its work back: it goes on
                with listening(self._profile, errand, scene, self._told, _say) as telling:
                    trouble = self._turns(*telling)
            if trouble is None and not self._stopped():
                self._keep(self._words())
        finally:
            self._cut = self._stopped() and not self._ended
            self._judged = trouble is None
            self._report(now=True)
            self._leave_word()
            self._saved = self._reach(lambda: self._workspace.save(self._message(prompt)))
        if self._stopped():
            return End("failed", ending.STOPPED, ("it was stopped before it was done",))
        if trouble is not None:
            return ending.end_of_trouble(trouble, self._profile.limit, time.time(), self._contract.previous())
        reasons = [*self._saved.amiss, *(() if self._accepted else self._judge(scene))]
        if self._stopped():
            return End("failed", ending.STOPPED, ("it was stopped while its work was judged",))
        must = self._profile.must_change or bool(self._said.get("must_change"))
        failing = [check for check in self._checks if check.why]
        if failing and len(failing) == len(reasons) and all(check.here for check in failing):
            return End("blocked", ending.EXIT["blocked"], tuple(reasons))  # a retry judges its work, and pays nobody
        end = ending.end_of_work(self._heard, self._saved.changed, reasons, must_change=must)
        # What was accepted is not judged again, should what follows it fail; else the next attempt has to do better.
        self._accepted = end.outcome in ending.GOOD
        self._keep({**self._ended, "accepted": self._plain_checks()} if self._accepted else {})
        return end

    def _done_elsewhere(self, opened: Opened) -> Mapping[str, Any]:
        """Return what an earlier attempt ended with on another machine, where its work was accepted and is here."""
        output = self._accepted_before()
        place = output.get("workspace")
        if not isinstance(place, Mapping):
            return {}
        if (str(place.get("commit") or "") if place.get("ref") else "") != opened.goes_on_from:
            return {}
        own = {name: output.get(name) for name in ("session", "text", "accepted")}
        return {**own, "counted": True}

    def _accepted_before(self) -> dict[str, Any]:
        """Return what says that the work of an earlier attempt was accepted, for the one after this, which has not
        come to it; {} where it was not."""
        output = self._last
        if not isinstance(output.get("accepted"), list):
            return {}
        used = output.get("session_usage", output.get("usage"))
        names = ("accepted", "workspace", "session", "text")
        return {name: output[name] for name in names if name in output} | ({"session_usage": used} if used else {})

    def _still_accepted(self) -> dict[str, Any]:
        """Return what says in the result of an attempt that did not end well that its work is accepted, or earlier
        work that it has not brought to the remote again; {} where neither is."""
        if self._accepted and self._saved.place:
            return {"accepted": self._plain_checks()}
        return self._accepted_before() if self._accepted or not self._worked else {}

    def _remember(self, done: Mapping[str, Any]) -> None:
        """Take up the end of the attempt before, whose work could not be pushed then: nobody is paid for it twice."""
        _say("the work of the attempt before is pushed now; its agent had ended, and is not started again")
        session, text = str(done.get("session") or ""), str(done.get("text") or "")
        self._heard.take(Event(session=session, text=text, done=True))
        if (used := ending.read_usage(done.get("used"))) is not None and not self._is_counted(done):
            self._heard.owe(used)
        if isinstance(accepted := done.get("accepted"), list):
            self._accepted, self._checks = True, [*filter(None, map(checked, accepted))]
            self._over = done.get(OVER)
        self._inbox.go_on()

    def _is_counted(self, done: Mapping[str, Any]) -> bool:
        """Whether the record of the attempt that ended with this has what it cost: not where its worker died."""
        number, before = done.get("attempt"), self._contract.previous()
        if isinstance(before, dict) and before.get("attempt") == number:
            return before.get("output") is not None or before.get("tokens_used") is not None
        if done.get("counted"):
            return True
        earlier = self._contract.earlier()
        return any(one.attempt == number and (one.output is not None or one.tokens_used) for one in earlier)

    def _keep(self, words: dict[str, Any]) -> None:
        """Keep what the agent ended with; {}: it has to go on. Errors: OSError."""
        self._ended = words
        self._workspace.keep_words(words)

    def _words(self) -> dict[str, Any]:
        """Return what the agent ended with, and what that cost, for an attempt that only has to push its work."""
        used, number = self._heard.usage, int(self._contract.number)
        cost = {} if used is None else {"used": ending.plain(used), "attempt": number}
        return {"session": self._heard.session, "text": self._heard.text, **cost}

    def _reach(self, act: Callable[[], T]) -> T:
        """Do what reaches the remote; while that is away, again and again. Errors: SpoolError, OSError."""
        give_up_at, pause_s = time.monotonic() + AWAY_S, PAUSE_S
        while True:
            try:
                return act()
            except RemoteAway as away:
                if self._stopped() or time.monotonic() + pause_s > give_up_at:
                    raise
                _say(f"{away} The push is tried again in {pause_s:g} s.")
            self._doing = "the remote is away: the push is tried again"
            until = time.monotonic() + pause_s
            while time.monotonic() < until and not self._stopped():
                self._report()
                time.sleep(LOOK_S)
            self._doing, pause_s = "", min(2 * pause_s, PAUSE_MAX_S)

    def _followed(self, end: End) -> End:
        """Submit what follows accepted work. Errors: SpoolError; then the task is tried again."""
        if self._over is not None:
            return replace(end, more={**end.more, **self._over})
        repo, branch = self._saved.place.get("repo"), branch_of(self._profile, self._said)
        contract, then = self._contract, self._profile.then
        if then is None or not repo:
            return end
        if then != "merge":
            return self._offered(end, branch) if self._saved.place.get("ref") else end
        if not branch:
            return end
        try:
            merge = submit_merge(contract.root, contract.task_id, contract.task, contract.name, str(repo), branch)
        except IdTaken as taken:
            return End("blocked", ending.EXIT["blocked"], (str(taken),))
        if end.outcome == "no_change":
            _say(f"it changed no file: {merge} has nothing to merge; `must_change = true` makes that a failure")
        else:
            _say(f"{merge} merges it into {branch}")
        return replace(end, more={**end.more, "merge": merge})

    def _offered(self, end: End, base: str) -> End:
        """Push accepted work to a branch of the task, and run the owner's own command for it. Errors: SpoolError."""
        contract, name = self._contract, own_branch(self._contract.task_id)
        self._reach(lambda: self._workspace.push_branch(name))
        _say(f"the work is in the branch {name}")
        more: dict[str, Any] = {**end.more, "branch": name}
        if self._profile.then_command:
            about = {"branch": name, "base": base, "title": contract.task.name or contract.task_id}
            about |= {name: str(self._saved.place.get(name, "")) for name in ("repo", "commit")}
            self._doing = f"then_command: {self._profile.then_command[0]}"
            bare = Scene(Bare(), os.getcwd(), "", contract.environment(), self._stopped, self._report)
            why, said = offer(self._profile, about, self._heard.text, bare)
            if why:
                code = ending.STOPPED if self._stopped() else ending.EXIT["failed"]
                return End("failed", code, (why,), more)
            more["offered"] = said
        return replace(end, more=more)

    def _prompt(self, directory: str) -> str | End:
        """Return what the task says is to be done."""
        text = self._said.get("prompt")
        if text is None:
            name = self._said["prompt_file"]
            found = inside(directory, name)
            if isinstance(found, str):
                return End("refused", ending.INPUT, (f"prompt_file {name}: {found}",))
            text = found.decode("utf-8", "replace")
        try:
            return prompting.filled(text, self._contract.dependency, self._contract.dependencies())
        except prompting.Missing as missing:
            return End("refused", ending.INPUT, (str(missing),))

    def _errand(self, prompt: str, opened: Opened, scene: Scene) -> Errand:
        profile, before = self._profile, self._before
        turns = [most for most in (profile.max_turns, self._said.get("max_turns")) if most is not None]
        resumes = self._adapter.resumes and self._said.get("resume", "session") == "session"
        feedback, session = self._contract.feedback(), ""
        text = going_on = prompting.whole(prompt, before, feedback)
        # Another machine may have gone on in between: then the session that is here is not the one to go on with.
        mine = before is not None and self._kept == self._named(before.session)
        if before is not None and resumes and mine and is_word(before.session):
            session, going_on = before.session, prompting.going_on(before, feedback)
            self._heard.session, self._heard.base = session, ending.read_usage(before.used)
            self._inbox.go_on()
        new = self._tell()
        self._whole = prompting.with_messages(text, self._inbox.known)
        kind, unread = handler_contract.of_type(self._contract.root, self._contract.kind)
        said, other, model = self._said, "", self._said.get("model")
        if self._instead and model and not allowed_model(profile, model):
            said, other = {**said, "model": ""}, f"{model} is a model of another profile, so it does not count"
        choice, dropped = handler_contract.passed(handler_contract.chosen(said, profile, kind), profile)
        for why in filter(None, (unread, other, *dropped)):
            _say(why)
        return Errand(
            prompt=prompting.with_messages(going_on, new) if session else self._whole,
            workspace=opened.directory,
            home=opened.home,
            model=choice.model,
            max_tokens=choice.max_tokens,
            temperature=choice.temperature,
            session=session,
            max_turns=min(turns) if turns else None,
            args=profile.args,
            command=profile.command,
            env=_for_adapter(scene.env, profile.env),
            git=opened.git,
        )

    def _turns(self, errand: Errand, scene: Scene) -> Trouble | None:
        """Run the agent, again with the answer when it asked something and with what people told it meanwhile, and
        once more in a new session when the one that was there cannot go on. Errors: OSError, SpoolError.
        """
        profile, heard, questions = self._profile, self._heard, 0
        while questions < QUESTIONS_MAX:
            trouble = self._turn(errand, scene)
            if errand.session and not self._stopped() and not self._lost and ending.begins_anew(trouble):
                self._lost = f"{errand.session}: {trouble.message if trouble is not None else ''}"
                _say(f"the session cannot go on, and it begins anew: {self._lost}")
                heard.anew()
                self._inbox.lost()
                self._adapter = known_agents.make(profile.cli)
                errand = replace(errand, session="", prompt=self._whole)
                trouble = self._turn(errand, scene)
            if trouble is not None or self._stopped():
                return trouble
            if heard.asked is not None:
                questions += 1
                question = str(heard.asked.get("text") or "")
                answer = ask(self._contract.root, heard.asked, profile.ask_timeout, self._stopped, redactor.masking())
                if isinstance(answer, Trouble):
                    return answer
                told = prompting.answered(question, answer.text, answer.by)
                told = prompting.with_messages(told, self._tell())
            elif new := self._tell():
                told = prompting.told_messages(new)
            else:
                return None
            session = heard.session if self._adapter.resumes and is_word(heard.session) else ""
            self._whole, self._adapter = f"{self._whole}\n\n{told}", known_agents.make(profile.cli)
            errand = replace(errand, session=session, prompt=told if session else self._whole)
            heard.again()
        return Trouble("refusal", f"it asked {QUESTIONS_MAX} questions in one attempt")

    def _tell(self) -> list[Message]:
        """Return what people told the agent since, which goes into its next turn."""
        new = self._inbox.next()
        for one in new:
            _say(f"the agent is given a message of {one.by or 'a person'}")
        return new

    def _turn(self, errand: Errand, scene: Scene) -> Trouble | None:
        """Run the agent once; returns what stands in its way. Errors: OSError, SpoolError."""
        profile, heard = self._profile, self._heard
        start = self._adapter.start(errand)
        for path, text in start.files.items():
            private_home.put(errand.home, path, text)
        bounds = Bounds(profile.start_timeout or profile.idle_timeout, profile.idle_timeout)
        before = heard.came_to
        turn = take_turn(self._adapter, start, scene, heard, bounds)
        ended = None if turn.code is None else self._adapter.ended(turn.code, turn.errors)
        trouble = ending.trouble_of(heard, turn, ended)
        self._inbox.over(well=trouble is None or heard.came_to != before)
        return None if trouble is None else self._hinted(trouble, turn.errors, errand, scene.env)

    def _hinted(self, trouble: Trouble, errors: str, errand: Errand, env: Mapping[str, str]) -> Trouble:
        """Return a trouble with what the sandbox may have to do with it."""
        said, cli = self._profile.sandbox, self._profile.cli
        hint = confinement.hint(said, errors, env)
        seen = confinement.Seen(trouble.message, self._sandbox.refused)
        if trouble.fault == "transient" and not self._heard.answered:
            away = confinement.may_pass(cli, errand.model, said, env, seen)
            trouble = replace(trouble, fault="away") if away else trouble
        refused = "; ".join(self._sandbox.refused[:REFUSED_MAX])
        if not self._heard.answered and confinement.barred(cli, errand.model, said, env, seen):
            return Trouble("refusal", f"{refused}. {cli} said: {trouble.message}")  # also of the next attempt
        if refused and trouble.fault in ("transient", "away", "auth"):
            return replace(trouble, message=f"{trouble.message} (of what it asked for outside: {refused})")
        if trouble.fault == "transient" and not self._heard.answered:
            hint = confinement.network_hint(cli, errand.model, said, env, f"{trouble.message}\n{errors}") or hint
        return replace(trouble, message=f"{trouble.message}{hint}")

    def _judge(self, scene: Scene) -> list[str]:
        """Return why the work is not accepted. Errors: SpoolError."""
        profile, said = self._profile, self._said

        def run(words: Sequence[str]) -> Ran:
            self._doing = f"checking: {words[-1]}"
            return run_command(words, scene, profile.accept_timeout)

        for accept, success_if in (
            (profile.accept, profile.success_if),
            (said.get("accept") or (), said.get("success_if") or {}),
        ):
            tried = judge(accept, success_if, self._heard.text, self._workspace.content, run)
            self._checks += [confinement.judged(check, profile.sandbox, scene.env) for check in tried]
        return [check.reason for check in self._checks if check.why]

    def _report(self, *, now: bool = False) -> None:
        used = ending.figures(self._heard.usage)
        trouble = self._heard.trouble.message if self._heard.trouble is not None else ""
        text = self._doing or trouble or self._heard.last  # a person sees what it tries again
        said: dict[str, Any] = {"text": text, "session": self._heard.session, **used}
        said |= self._inbox.given
        said[JUDGED] = self._judged
        said["served"] = self._heard.answered  # a limit on trial need not wait for the end of this attempt
        self._contract.progress({name: value for name, value in said.items() if value}, now=now)

    def _message(self, prompt: str) -> str:
        title = self._contract.task.name or next(iter(prompt.split("\n", 1)), "")
        return f"{self._contract.name}: {title.strip()[:72]}\n\nTask: {self._contract.attempt}"

    def _leave(self, end: End) -> int:
        """Leave the result; returns the exit code."""
        checks = self._plain_checks()
        result = ending.result_of(end, self._heard, self._saved.changed, checks, self._saved.place)
        if end.outcome not in ending.GOOD:
            result |= self._still_accepted()
        result |= {**self._told, **self._inbox.had, **self._inbox.untold}
        result |= {"session_lost": self._lost} if self._lost else {}
        result |= {"warnings": list(self._saved.warnings)} if self._saved.warnings else {}
        if end.outcome not in ending.GOOD and (left := self._unsaved()):
            result["unsaved"] = left
        for line in self._saved.warnings:
            _say(line)
        for reason in end.reasons:
            _say(f"{end.outcome}: {reason}")
        if prompting.leaves_one(end, self._heard, self._saved):
            result["handoff"] = self._handed_over(end)
        try:
            self._contract.result(result)
        except OSError as error:
            return _give_up(f"its result cannot be written: {error}", 1 if error.errno != errno.ENOENT else end.code)
        return end.code

    def _leave_word(self) -> None:
        """Leave a result for the case that the attempt is killed while its work is on its way to the remote."""
        end = End("failed", ending.EXIT["failed"], ("it was ended while its work was brought to the remote",))
        result = ending.result_of(end, self._heard, (), (), {})
        result |= self._still_accepted()
        with suppress(OSError):
            self._contract.result({**result, **({"unsaved": left} if (left := self._unsaved()) else {})})

    def _unsaved(self) -> dict[str, Any]:
        """Return on which worker and in which folder the only copy of this task's work is; {} for none."""
        left = self._workspace.unsaved()
        if not left or not (self._worked or left["attempt"] < int(self._contract.number)):
            return {}
        push = {} if self._secret or "push" not in left else {"push": left["push"]}
        return {"worker": self._contract.worker, "folder": left["folder"], **push}

    def _plain_checks(self) -> list[dict[str, Any]]:
        return [check.plain() for check in self._checks]

    def _handed_over(self, end: End) -> str:
        """Return the note for the next attempt, which is in the context of the batch from now on."""
        contract, clean = self._contract, redactor.masking()
        text = prompting.note(contract.number, contract.task_id, contract.name, end, self._heard, self._saved, clean)
        if contract.batch and (why := prompting.put(contract.root, contract.batch, contract.task_id, text)):
            _say(why)
        return text


def _for_adapter(env: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that count more than an adapter's own. They do not say where the files of this worker's
    user are, unless the profile does.
    """
    mine = ("HOME", "TMPDIR", "XDG_", "SPOOL_")
    return {**{name: value for name, value in env.items() if not name.startswith(mine)}, **own}


def _give_up(why: str, code: int) -> int:
    _say(why)
    return code


def _say(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"spoold.agents: {text}\n")


# A question of an agent becomes one for people, as `spool ask` puts it; the slot is lent while it waits.


@dataclass(frozen=True, slots=True)
class Told:
    """What a person answered, and who."""

    text: str
    by: str


class _Stopped(BaseException):
    """No Exception: after one the slot would be waited for first."""


def ask(
    root: str,
    asked: Mapping[str, Any],
    within_s: float,
    stopped: Callable[[], bool],
    clean: Callable[[str], str] = str,
) -> Told | Trouble:
    """Return the answer to a question. root: the spool; asked: `text`, and `choices` if it has some; within_s: how
    long it may wait, 0 for not at all; stopped: whether the attempt has to end; clean: masks a text.
    """
    text = clean(str(asked.get("text") or "").strip())[:4000] or "it asked something, and did not say what"
    if not root or not within_s:
        return Trouble("refusal", f"it asked: {text}")

    def pause(seconds: float) -> None:
        if stopped():
            raise _Stopped
        time.sleep(seconds)

    choices = asked.get("choices")
    words = tuple(dict.fromkeys(clean(str(one)) for one in choices)) if isinstance(choices, list) else ()
    try:
        from spoold.client.spool_client import SpoolClient

        with SpoolClient(root) as spool:
            question = spool.ask(text, words, expires_s=within_s)
            found = spool.answer_to(question, within_s, sleep=pause)
    except WaitTimeout:
        return Trouble("refusal", f"nobody answered within {within_s:g} s: {text}")
    except SpoolError as error:
        return Trouble("refusal", f"it asked: {text}; nobody could be asked: {error}")
    except _Stopped:
        return Trouble("transient", "it was stopped while it waited for an answer")
    if found.rejected:
        return Trouble("refusal", f"it asked: {text}; {found.by or 'a person'} rejected that: {found.reason}")
    said = found.answer if isinstance(found.answer, str) else json.dumps(found.answer, ensure_ascii=False)
    return Told(said, found.by)
