"""Records anew what the command lines print: python -m tests.agents.record [CLI…] [SCRIPT…]

Install them first, each into a folder of its own, and name the folder above them:

    npm install --prefix clis/opencode opencode-ai
    npm install --prefix clis/codex @openai/codex
    npm install --prefix clis/qwen @qwen-code/qwen-code
    npm install --prefix clis/claude @anthropic-ai/claude-code
    npm install --prefix clis/gemini @google/gemini-cli
    SPOOL_TEST_CLIS=$PWD/clis .venv/bin/python -m tests.agents.record

A recording is SCRIPT.out, .err and .log, and SCRIPT.json with what else is known. The names of this machine are
replaced, and of a log only warnings and errors are kept. Write the new versions into `recorded` of the adapters, then
run tests/agents: what they complain of is what the command lines have changed.

Touches: files, the clock, the environment.
"""

import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

from tests.agents import playing
from tests.agents.expected import OUTCOMES

FIXTURES = Path(__file__).parent / "fixtures"
LIMIT_S = 40.0
NOISE = re.compile(r"RUM flush|RIPGREP|ripgrep", re.IGNORECASE)
LOGGED = re.compile(r"\[(WARN|ERROR)\]|\"type\":\"(session.status|step-finish)\"")


def record(cli: str, script: str, version: str) -> None:
    """Play a script and write its files."""
    place = Path(tempfile.mkdtemp(prefix="spool-record-"))
    try:
        played = playing.play(cli, script, place, limit=LIMIT_S)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    folder = FIXTURES / cli
    folder.mkdir(parents=True, exist_ok=True)
    log = "".join(line + "\n" for line in played.log.splitlines() if LOGGED.search(line))
    for ending, text in (("out", played.out), ("err", played.err), ("log", log)):
        kept = "".join(line + "\n" for line in text.splitlines() if ending == "out" or not NOISE.search(line))
        path = folder / f"{script}.{ending}"
        path.unlink(missing_ok=True)
        if kept:
            path.write_text(clean(kept, cli, place), encoding="utf-8")
    known = {
        "version": version,
        "recorded_at": round(time.time(), 1),
        "code": played.code,
        "stopped": played.stopped,
        "seconds": played.seconds,
        "requests": played.requests,
        "made": played.made,
    }
    (folder / f"{script}.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(f"{cli} {script}: {known}", flush=True)


def clean(text: str, cli: str, place: Path) -> str:
    """Take the names of this machine out of a text."""
    binary = Path(str(playing.program(cli)))
    installed = binary.parents[2] if len(binary.parents) > 2 else binary.parent
    encoded = re.sub(r"[^A-Za-z0-9]", "-", str(place))
    for name, instead in ((str(place), "/spool-agent"), (encoded, "-spool-agent"), (str(installed), "/clis")):
        text = text.replace(name, instead).replace(name.lstrip("/"), instead.lstrip("/"))
    text = text.replace(str(Path.home()), "/home/agent").replace(socket.gethostname(), "laptop")
    text = re.sub(r"/tmp/[^\s\"'\\]*", "/tmp/file", text)
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", text)


def main(arguments: list[str]) -> int:
    """Record what is named, or all that is installed; 1 if something named is not installed."""
    clis = [one for one in arguments if one in playing.CLIS] or list(playing.CLIS)
    scripts = [one for one in arguments if one in OUTCOMES] or list(OUTCOMES)
    missing = [cli for cli in clis if playing.program(cli) is None]
    for cli in clis:
        if cli in missing:
            print(f"{cli} is not installed: not recorded")
            continue
        with tempfile.TemporaryDirectory() as home:
            version = playing.version(cli, Path(home))
        for script in scripts:
            record(cli, script, version)
    return 1 if missing and arguments else 0


if __name__ == "__main__":
    os.environ.pop("TMPDIR", None)
    sys.exit(main(sys.argv[1:]))
