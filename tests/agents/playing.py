"""Plays a script of the model to a real command line, as an attempt would, and keeps all that it wrote.

The programs are looked for in `$SPOOL_TEST_CLIS/CLI/node_modules/.bin`, and then on the PATH.

Touches: files, processes, the clock, the environment.
"""

import importlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from spoold.agents.adapters.adapter import Adapter, Errand, Event, Start
from spoold.agents.sandbox import private_home
from tests.agents.fakemodel import SCRIPTS, FakeModel

CLIS = ("opencode", "codex", "qwen", "claude", "gemini")
MODELS = {"qwen": "qwen3-coder-plus", "claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}
PROMPT = "Make the file made.txt."


@dataclass
class Played:
    """What a program did. stopped: why it was ended, '' if it ended by itself; made: the files in the workspace."""

    code: int = 0
    stopped: str = ""
    seconds: float = 0.0
    out: str = ""
    err: str = ""
    log: str = ""
    made: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    asked: str = ""
    requests: int = 0


def adapter(cli: str) -> Adapter:
    """A new adapter."""
    made: Adapter = importlib.import_module(f"spoold.agents.adapters.{cli}").make()
    return made


def program(cli: str) -> str | None:
    """Where a command line is installed; None where it is not."""
    folder = os.environ.get("SPOOL_TEST_CLIS", "")
    found = Path(folder, cli, "node_modules", ".bin", cli)
    return str(found) if folder and found.exists() else shutil.which(cli)


def version(cli: str, place: Path) -> str:
    """What it says to --version."""
    ran = subprocess.run(
        [str(program(cli)), "--version"],
        env={"HOME": str(place), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = ran.stdout.split("\n")
    return lines[0].strip()


def keys(cli: str, url: str) -> dict[str, str]:
    """The variables that lead a command line to the scripted model."""
    match cli:
        case "claude":
            return {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url}
        case "gemini":
            return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
    return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1"}


def play(
    cli: str,
    script: str,
    place: Path,
    *,
    prompt: str = PROMPT,
    session: str = "",
    limit: float = 60.0,
    args: Sequence[str] = (),
    max_turns: int | None = None,
    git: str = "",
) -> Played:
    """One attempt in `place`, which may have been used before. It is ended after `limit` s, or by a final error."""
    workspace, home = place / "workspace", place / "home"
    outside = place / "workspace-outside"
    for folder in (workspace, home, outside):
        folder.mkdir(parents=True, exist_ok=True)
    reader = adapter(cli)
    with FakeModel(SCRIPTS[script], str(workspace)) as model:
        errand = Errand(
            prompt,
            str(workspace),
            str(home),
            MODELS.get(cli, "scripted"),
            session,
            max_turns,
            args,
            (str(program(cli)),),
            keys(cli, model.url),
            git=git,
        )
        played = _run(reader, reader.start(errand), errand, limit)
        played.asked, played.requests = model.prompts(), len(model.asked)
    tracked = ("made.txt", "TRAPPED")
    played.made = sorted(name for name in tracked if (workspace / name).exists())
    played.outside = sorted(one.name for one in outside.iterdir())
    return played


def _run(reader: Adapter, start: Start, errand: Errand, limit: float) -> Played:
    for name, text in start.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC", **start.env}
    began = time.monotonic()
    played = Played()
    logs = {Path(name): Path(name).stat().st_size if Path(name).exists() else 0 for name in start.logs}
    with subprocess.Popen(
        start.argv,
        cwd=errand.workspace,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        lock = threading.Lock()
        threads = [
            threading.Thread(target=_feed, args=(process.stdin, start.stdin)),
            threading.Thread(target=_drain, args=(process.stdout, "out", played, reader, lock)),
            threading.Thread(target=_drain, args=(process.stderr, "err", played, reader, lock)),
        ]
        for thread in threads:
            thread.start()
        while process.poll() is None and not played.stopped:
            _follow(logs, errand.home, played, reader, lock)
            time.sleep(0.05)
            if time.monotonic() - began > limit:
                played.stopped = "limit"
            elif any(event.trouble is not None and event.trouble.final for event in list(played.events)):
                played.stopped = "error"
                _grace(process)
        if process.poll() is None:
            os.killpg(process.pid, 9)
        played.code = process.wait()
        for thread in threads:
            thread.join(5)
    _follow(logs, errand.home, played, reader, lock)
    played.stopped = played.stopped if played.code < 0 else ""
    played.seconds = round(time.monotonic() - began, 1)
    return played


def _grace(process: "subprocess.Popen[str]") -> None:
    """What ends by itself is better heard out."""
    try:
        process.wait(3.0)
    except subprocess.TimeoutExpired:
        return


def _feed(stream: Any, text: str) -> None:
    try:
        stream.write(text)
        stream.close()
    except OSError:
        pass  # it did not read to the end


def _drain(stream: IO[str], kind: str, played: Played, reader: Adapter, lock: threading.Lock) -> None:
    for line in stream:
        with lock:
            setattr(played, kind, getattr(played, kind) + line)
            read = reader.read if kind == "out" else reader.read_log
            played.events += read(line.rstrip("\n"), time.time())


def _follow(logs: Mapping[Path, int], home: str, played: Played, reader: Adapter, lock: threading.Lock) -> None:
    for path, skipped in logs.items():
        try:
            with open(private_home.opened(home, str(path)), "rb") as file:  # as in an attempt: not every link counts
                whole = file.read()[skipped:]
        except OSError:
            continue
        text = whole[: whole.rfind(b"\n") + 1].decode("utf-8", "replace")
        fresh = text[len(played.log) :]
        with lock:
            played.log += fresh
            for line in fresh.splitlines():
                played.events += reader.read_log(line, time.time())


def again(cli: str, played: Played, now: float | None = None) -> tuple[list[Event], Adapter]:
    """All of it, read by a new adapter: its output, then stderr and its log."""
    reader = adapter(cli)
    at = time.time() if now is None else now
    events = [event for line in played.out.splitlines() for event in reader.read(line, at)]
    for text in (played.err, played.log):
        events += [event for line in text.splitlines() for event in reader.read_log(line, at)]
    return events, reader
