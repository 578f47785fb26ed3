"""A planted secret appears nowhere on the share, at no time, by whichever way a program says it.

Method: programs say secrets in many spellings, slowly and at once, in every way that a task has. Meanwhile a thread
reads all bytes of the spool, again and again. What is no secret and is said in the same ways arrives.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.e2e.conftest import MakePool
from tests.e2e.pool import Pool, wait_for

PASSWORD = 'p/a+ss "wörd"\\ <x>&1\'2'
API_KEY = "k9-Zq7/Wm3+Xv5=Tb1"
PEM = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(f"MIIrow{row}{'aB3+/' * 11}" for row in range(20))
PEM += "\n-----END PRIVATE KEY-----\n"
TOKEN = "ghp_" + "a1B2" * 9  # of no [secrets]: its shape tells
OPEN = "this-is-no-secret"

PROGRAM = """
import base64, json, os, sys, time
from urllib.parse import quote
names = ["PASSWORD", "API_KEY", "PEM"]
values = [os.environ[name] for name in names] + ["ghp_" + "a1B2" * 9, "this-is-no-secret"]
out = sys.stdout.buffer
for value in values:
    raw = value.encode()
    ways = [raw, raw.hex().encode(), quote(value, safe="").encode(), json.dumps(value).encode()]
    ways += [json.dumps(json.dumps(value)).encode(), repr(value).encode(), base64.encodebytes(raw)]
    ways += [base64.b64encode(b"~" * before + raw + b"~") for before in range(3)]
    for way in ways:
        out.write(b"at once: " + way + b"\\n")
        sys.stderr.write("stderr: " + way.decode() + "\\n")
        sys.stderr.flush()
    for start in range(0, len(raw), 5):
        out.write(raw[start : start + 5])
        out.flush()
        time.sleep(0.02)
    out.write(b"\\n")
    out.flush()
with open(os.environ["SPOOL_PROGRESS_FILE"], "w") as file:
    json.dump({"at": values, "text": str(values)}, file)
deadline = time.monotonic() + 60
while not os.path.exists(sys.argv[1]) and time.monotonic() < deadline:
    time.sleep(0.05)
if sys.argv[2] == "result":
    with open(os.environ["SPOOL_RESULT_FILE"], "w") as file:
        json.dump({"all": values, **{value: 1 for value in values}, "changed_files": values}, file)
if sys.argv[2] == "flood":
    for _ in range(60):
        out.write(b"." * 20_000 + b" ".join(value.encode() for value in values) * 3)
sys.exit(3 if sys.argv[2] == "fail" else 0)
"""
CALL = """
import os


def fail(_):
    raise ValueError(os.environ["PASSWORD"] + os.environ["API_KEY"] + os.environ["PEM"] + "this-is-no-secret")


def peek(_):
    return [os.environ.get(name) for name in ("PASSWORD", "API_KEY", "PEM", "MY_API_KEY", "CREDENTIALS_DIRECTORY")]


def give(_):
    return {os.environ["PASSWORD"]: [os.environ["API_KEY"], os.environ["PEM"], "this-is-no-secret"]}
"""


def spellings(value: str) -> Iterator[bytes]:
    """What must not be anywhere: the value, and what of its codes the value alone determines."""
    raw = value.encode()
    yield from (raw, raw.hex().encode(), quote(value, safe="").encode(), json.dumps(value)[1:-1].encode())
    yield repr(value)[1:-1].encode()
    for before in range(3):
        first = (8 * before + 5) // 6
        yield base64.b64encode(b"~" * before + raw + b"~")[first : 8 * (before + len(raw)) // 6]
    yield from (line.encode() for line in value.splitlines() if len(line) > 20 and "-----" not in line)


FORBIDDEN = {TOKEN.encode(), *(one for value in (PASSWORD, API_KEY, PEM) for one in spellings(value))}


def content(path: Path) -> bytes:
    """What a file holds; nothing for a directory, or for what was moved or removed meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def found(root: Path) -> set[str]:
    """The forbidden words in any file or name of the spool, each with its file."""
    words = set()
    for path in root.rglob("*"):
        data = str(path).encode() + content(path)
        words |= {f"{word!r} in {path}" for word in FORBIDDEN if word in data}
    return words


@contextmanager
def watched(root: Path) -> Iterator[set[str]]:
    """Read all of the spool again and again; what was found at any time."""
    seen: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.update(found(root))
            over.wait(0.05)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()


def configured(pool: Pool) -> str:
    """The path of a worker's file with secrets from all places."""
    for name, value in (("pass", PASSWORD), ("pem", PEM)):
        pool.path(name).write_text(value)
        pool.path(name).chmod(0o600)
    pool.path("program.py").write_text(PROGRAM)
    pool.path("calls.py").write_text(CALL)
    names = 'secrets = ["PASSWORD", "API_KEY", "PEM"]'
    run = [sys.executable, str(pool.path("program.py")), str(pool.path("go"))]
    says = "".join(
        f"[handlers.{way}]\ncommand = {json.dumps([*run, way])}\n{names}\n"
        for way in ("say", "result", "fail", "flood")
    )
    config = pool.path("worker.toml")
    config.write_text(
        "log_max_mb = 1\nkill_grace_s = 0.5\n"
        f"[secrets]\nPASSWORD = {{file = '{pool.path('pass')}'}}\nPEM = {{credential = 'pem'}}\n"
        f"API_KEY = {{env = 'MY_API_KEY'}}\n[python]\npath = ['{pool.desk}']\n{says}"
        f"[handlers.raise]\npython = 'calls:fail'\n{names}\n[handlers.give]\npython = 'calls:give'\n{names}\n"
        "[handlers.peek]\npython = 'calls:peek'\n"
        f"[handlers.other]\ncommand = ['sh', '-c', 'echo other $PASSWORD$API_KEY$MY_API_KEY']\n"
    )
    pool.env |= {"MY_API_KEY": API_KEY, "CREDENTIALS_DIRECTORY": str(pool.desk)}
    return str(config)


def test_a_planted_secret_appears_nowhere_on_the_share(make_pool: MakePool) -> None:
    pool = make_pool()
    kinds = ("say", "result", "fail", "flood", "raise", "give", "other")
    pool.master()
    pool.worker("w", "--config", configured(pool), slots=len(kinds))
    pool.ready("w")
    with watched(pool.root) as seen:
        for kind in kinds:
            pool.drop(f"{kind}.json", {"id": kind, "type": kind, "retry": {"max": 0}})

        def reported() -> bool:
            beats = [content(path) for path in pool.root.glob("heartbeats/*.json")]
            return sum(beat.count(b'"at":["[redacted:PASSWORD]","[redacted:API_KEY]"') for beat in beats) >= 4

        wait_for(reported, "all programs have reported their progress")
        pool.path("go").touch()
        results = {kind: pool.finish(kind) for kind in kinds}
    assert not seen
    assert not found(pool.root)
    assert results["other"]["output"] == "other\n"
    for number in range(2 * len(kinds)):  # in the processes that served the calls before
        pool.drop(f"peek{number}.json", {"id": f"peek{number}", "type": "peek"})
    assert all(pool.finish(f"peek{number}")["output"] == [None] * 5 for number in range(2 * len(kinds)))
    assert results["result"]["output"]["all"] == [
        *(f"[redacted:{name}]" for name in ("PASSWORD", "API_KEY", "PEM", "github-token")),
        OPEN,
    ]
    assert results["give"]["output"] == {"[redacted:PASSWORD]": ["[redacted:API_KEY]", "[redacted:PEM]", OPEN]}
    assert "[redacted:PASSWORD][redacted:API_KEY]" in results["raise"]["error"]["message"]
    for kind in ("say", "fail", "flood"):
        log = (pool.root / "logs" / results[kind]["log"]).read_bytes()
        for mask in (b"[redacted:PASSWORD]", b"[redacted:API_KEY]", b"[redacted:PEM]", b"[redacted:github-token]"):
            assert log.count(mask) >= 10, (kind, mask)
        assert OPEN.encode() in log
        assert OPEN in str(results[kind]["output"])
    assert b"left out here" in (pool.root / "logs" / results["flood"]["log"]).read_bytes()
    shown = pool.told() + "".join(pool.run(name, "fail").stdout for name in ("show", "logs"))
    assert not [word for word in FORBIDDEN if word in shown.encode()]


def test_a_worker_that_lacks_a_secret_says_so_and_takes_the_task_when_it_is_there(make_pool: MakePool) -> None:
    pool = make_pool()
    config = pool.path("worker.toml")
    secret = pool.path("secret")
    config.write_text(
        f"[secrets]\nA = {{file = '{secret}'}}\n[handlers.t]\ncommand = ['sh', '-c', 'echo $A']\nsecrets = ['A']\n"
    )
    secret.write_text("hunter2-hunter3")
    secret.chmod(0o644)
    pool.master()
    worker = pool.worker("w", "--config", str(config))
    pool.ready("w")
    assert (
        f"{secret} is open to others (mode 0644); run: chmod 600 {secret} (A in [secrets] in {config})" in pool.told()
    )
    pool.drop("t.json", {"id": "t", "type": "t"})
    wait_for(lambda: "it lacks the secret A" in pool.run("explain", "t").stdout or None, "the reason is explained")
    secret.chmod(0o600)
    worker.kill()
    pool.worker("again", "--config", str(config))
    assert pool.finish("t")["output"] == "[redacted:A]\n"
