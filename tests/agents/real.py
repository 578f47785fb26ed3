"""Plays all scripts to the real command lines: python -m tests.agents.real [CLI…] [NAME…]

What is not installed is said to be *not played*, and is never counted as passed. `tests.agents.record` says how to
install them. Beside the scripts it tries: a prompt of 1 MB, one that begins with "-", a session that is resumed, a
repository that brings hooks, plugins and MCP servers of its own, and a model that hangs.

Exit code: 0 all that was played is right, 1 something is wrong, 3 nothing was played.

Touches: files, processes, the clock, the environment.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from spoold.agents.adapters.adapter import Errand, Usage
from tests.agents import playing
from tests.agents.expected import OUTCOMES, complaints, outcome, tokens, usage, verdict

MARK = "the-last-word-of-it"


def script(name: str) -> Callable[[str, Path], list[str]]:
    """A check that plays a script."""

    def check(cli: str, place: Path) -> list[str]:
        played = playing.play(cli, name, place, limit=40.0)
        events, reader = playing.again(cli, played)
        made = played.made
        return complaints(outcome(cli, name), reader, events, played.code, played.err, made, time.time())

    return check


def long_prompt(cli: str, place: Path) -> list[str]:
    """1 MB arrives whole."""
    words = "word " * 200_000 + MARK
    played = playing.play(cli, "text", place, prompt=words, limit=90.0)
    whole = "word " * 199_000
    return [] if MARK in played.asked and whole in played.asked else [f"the prompt was cut: {played.err[-300:]}"]


def dash_prompt(cli: str, place: Path) -> list[str]:
    """A prompt like an option is a prompt."""
    played = playing.play(cli, "text", place, prompt=f"--help -x {MARK}")
    return [] if f"--help -x {MARK}" in played.asked else [f"the prompt did not arrive: {played.err[-300:]}"]


def resumed(cli: str, place: Path) -> list[str]:
    """The second attempt has what was said in the first, and its usage is its own."""
    first = playing.play(cli, "text", place, prompt=f"Remember {MARK}.")
    session = next((event.session for event in first.events if event.session), "")
    if not session:
        return ["it told no session"]
    second = playing.play(cli, "text", place, prompt="Go on.", session=session)
    wrong = [] if f"Remember {MARK}." in second.asked else ["the session was not resumed"]
    reader = playing.adapter(cli)
    spent = usage(reader, second.events, Usage(*usage(reader, first.events)))
    if spent != (1000, 34, 200):
        wrong.append(f"the second attempt counts {spent} tokens")
    return wrong


def trapped(cli: str, place: Path) -> list[str]:
    """Nothing that the repository names is started: no hook, and no MCP server."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    touch = {"command": "touch", "args": [str(workspace / "TRAPPED")]}
    hook = [{"matcher": "*", "hooks": [{"type": "command", "command": f"touch {workspace}/TRAPPED"}]}]
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "BeforeAgent", "BeforeTool", "BeforeModel")
    settings = {"hooks": dict.fromkeys(events, hook), "mcpServers": {"trap": touch}}
    server = {"type": "local", "command": ["touch", touch["args"][0]], "enabled": True}
    files = {
        ".claude/settings.json": json.dumps(settings),
        ".qwen/settings.json": json.dumps(settings),
        ".gemini/settings.json": json.dumps(settings),
        ".mcp.json": json.dumps({"mcpServers": {"trap": touch}}),
        "opencode.json": json.dumps({"mcp": {"trap": server}}),
        ".codex/config.toml": f'notify = ["touch", "{workspace}/TRAPPED"]\n[mcp_servers.trap]\n'
        f'command = "touch"\nargs = ["{workspace}/TRAPPED"]\n',
    }
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text, encoding="utf-8")
    played = playing.play(cli, "write", place)
    wrong = ["it started what the repository names"] if "TRAPPED" in played.made else []
    return wrong if "made.txt" in played.made else [*wrong, f"it did not do its work: {played.err[-300:]}"]


def merges(cli: str, place: Path) -> list[str]:
    """It merges and commits in a repository of its own, as the resolving of a conflict asks for."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    said = (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "ada"),
        ("config", "user.email", "ada@example.org"),
        ("commit", "-q", "--allow-empty", "-m", "first"),
        ("checkout", "-q", "-b", "side"),
        ("commit", "-q", "--allow-empty", "-m", "theirs"),
        ("checkout", "-q", "main"),
        ("commit", "-q", "--allow-empty", "-m", "ours"),
    )
    for words in said:
        subprocess.run(["git", *words], cwd=workspace, check=True)
    played = playing.play(cli, "merge", place, git=str(workspace / ".git"))
    told = subprocess.run(["git", "log", "--format=%s"], cwd=workspace, check=True, capture_output=True, text=True)
    return [] if "theirs" in told.stdout.split() else [f"it has not merged: {played.out[-300:]}"]


def plugin(cli: str, place: Path) -> list[str]:
    """opencode 1.18 loads plugins of the repository in spite of all its settings: the guide says so. If it no longer
    does, the guide is to be changed."""
    workspace = place / "workspace"
    (workspace / ".opencode" / "plugin").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    text = f'import {{ writeFileSync }} from "node:fs"\nwriteFileSync("{workspace}/TRAPPED", "")\n'
    text += "export const Trap = async () => ({})\n"
    (workspace / ".opencode" / "plugin" / "trap.js").write_text(text, encoding="utf-8")
    played = playing.play(cli, "write", place)
    loaded = "TRAPPED" in played.made
    return [] if loaded == (cli == "opencode") else [f"the plugin of the repository was loaded: {loaded}"]


def counted(cli: str, place: Path) -> list[str]:
    """The model is asked nothing of which no tokens are reported, also not by subagents, and nothing counts twice."""
    wrong = []
    for script in ("write", "subagent", "subagents", "background"):
        played = playing.play(cli, script, place / script)
        events, reader = playing.again(cli, played)
        asked, spent = tokens(played.requests), usage(reader, events)
        wrong += [] if spent == asked else [f"{script}: the model counts {asked} tokens, and it reports {spent}"]
    return wrong


def gone(cli: str, place: Path) -> list[str]:
    """It says when a session that is to be resumed is not there, or its file is no session."""
    first = playing.play(cli, "text", place)
    session = next((event.session for event in first.events if event.session), "")
    missing = "ses_0e44d0893ffeqpBmONanFLzzWT" if cli == "opencode" else "568f5743-97d8-49ff-9783-9990079a8fd4"
    wrong = []
    for kind, name in (("not there", missing), ("broken", session)):
        if kind == "broken":
            for path in [one for one in (place / "home").rglob("*.jsonl") if one.is_file()]:
                path.write_bytes(b"no session")
        played = playing.play(cli, "text", place, session=name, prompt="Go on.")
        reader = playing.adapter(cli)
        reader.start(Errand("Go on.", "/w", "/h", session=name))
        events = [event for line in played.out.splitlines() for event in reader.read(line, time.time())]
        found = verdict(reader, events, played.code, played.err)
        if played.requests == 0 and (found is None or found.fault != "session"):
            wrong.append(f"{kind}: {found}")
    return wrong


def terminal(cli: str, place: Path) -> list[str]:
    """A command that asks at the terminal gets none, and so holds nothing up."""
    played = playing.play(cli, "terminal", place)
    return [] if not played.stopped and played.requests > 1 else [f"it waits: {played.code}, {played.stopped}"]


def hangs(cli: str, place: Path) -> list[str]:
    """A model that says nothing: no event comes, so that the idle timeout of a profile ends it."""
    played = playing.play(cli, "hang", place, limit=15.0)
    told = [event for event in played.events if event.text or event.done]
    return [] if played.stopped == "limit" and not told else [f"{played.code}, {told}"]


CHECKS: dict[str, Callable[[str, Path], list[str]]] = {name: script(name) for name in OUTCOMES}
CHECKS |= {
    "long_prompt": long_prompt,
    "dash_prompt": dash_prompt,
    "resumed": resumed,
    "trapped": trapped,
    "merges": merges,
    "plugin": plugin,
}
CHECKS |= {"counted": counted, "gone": gone, "terminal": terminal, "hangs": hangs}


def main(arguments: list[str]) -> int:
    """Play, and print a line for each."""
    clis = [one for one in arguments if one in playing.CLIS] or list(playing.CLIS)
    names = [one for one in arguments if one in CHECKS] or list(CHECKS)
    right, wrong, missing = 0, 0, 0
    for cli in clis:
        if playing.program(cli) is None:
            missing += len(names)
            print(f"not played  {cli}: it is not installed")
            continue
        for name in names:
            place = Path(tempfile.mkdtemp(prefix="spool-real-"))
            found = CHECKS[name](cli, place)
            shutil.rmtree(place, ignore_errors=True)
            print(f"{'WRONG' if found else 'right':<11} {cli} {name} {'; '.join(found)}", flush=True)
            right, wrong = right + (not found), wrong + bool(found)
    print(f"{right} right, {wrong} wrong, {missing} not played")
    return 1 if wrong else 0 if right else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
