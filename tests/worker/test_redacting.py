"""Nothing of a secret that an attempt was given comes to the share, by whichever way it is said."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.worker.attempts import attempt_output
from spoold.worker.attempts.attempt import MARGIN, NOTHING, Redacting
from spoold.worker.handlers.worker_config import Redact
from tests.support.cluster import Cluster, Node

VALUE = "hunter2/hunter+3"
TOKEN = "ghp_" + "a1B2" * 9


def everything(fs: MemoryFileSystem, at: str = "") -> bytes:
    """All names and bytes of the spool."""
    found = b""
    for name in fs.list(at):
        path = f"{at}/{name}".strip("/")
        found += path.encode() + b"\n"
        found += everything(fs, path) if fs.stat(path).kind == "dir" else fs.read(path)
    return found


class Bench:
    """One worker with one running task `a`, whose handler gets a secret A."""

    def __init__(self, path: Path, **config: Any) -> None:
        secret = path / "secret"
        secret.write_text(VALUE)
        secret.chmod(0o600)
        self.cluster = Cluster("[retry]\nbackoff_s = 10\njitter = 0\n")
        self.cluster.master("m1")
        handler = {"command": ["x"], "secrets": ["A"]}
        config = {"handlers": {"t": handler}, "secrets": {"A": {"file": str(secret)}}, "output_tail_kb": 1, **config}
        self.node: Node = self.cluster.worker("w1", config=config)
        self.cluster.submit("a.json", json.dumps({"id": "a", "type": "t"}))
        self.cluster.step("m1")
        self.cluster.step("w1")

    def put(self, name: str, data: bytes) -> None:
        """The program writes a file."""
        assert self.node.scratch is not None
        self.node.scratch.write("a.1", name, data)

    def end(self, **ending: Any) -> dict[str, Any]:
        """The program ends, the worker settles; the result that it wrote."""
        self.cluster.finish("a", **ending)
        self.cluster.step("w1")
        value = json.loads(self.cluster.fs.read("results/a.1.w1.json"))
        assert isinstance(value, dict)
        return value

    def log(self) -> bytes:
        """Its log on the share."""
        return self.cluster.fs.read("logs/a.1.w1.log")

    def brought(self) -> bytes:
        """Its log after the next time that output is brought."""
        self.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
        self.cluster.step("w1")
        return self.log()


def test_the_program_finds_the_secret_in_its_variable_and_no_file_of_the_spool_holds_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.node.runner is not None
    [job] = bench.node.runner.started
    assert (job.own["A"], job.tail_bytes) == (VALUE, 1024 + MARGIN)
    assert VALUE not in repr(bench.node.worker.running)
    bench.end()
    assert VALUE.encode() not in everything(bench.cluster.fs)


def test_it_is_masked_in_the_log_the_output_the_result_and_the_error(tmp_path: Path) -> None:
    code = base64.b64encode(VALUE.encode()).decode()
    said = f"a {VALUE} b {code} c {TOKEN}\n"
    bench = Bench(tmp_path)
    result = bench.end(output=said, exit_code=1, message=f"ValueError: {VALUE}")
    assert result["output"] == "a [redacted:A] b [redacted:A] c [redacted:github-token]\n"
    assert result["error"]["message"] == "ValueError: [redacted:A]"
    assert bench.log().decode() == result["output"]
    found = everything(bench.cluster.fs)
    assert b"[redacted:A]" in found
    for secret in (VALUE, code.rstrip("="), TOKEN):
        assert secret.encode() not in found


def test_the_beginning_of_a_secret_is_masked_where_the_program_was_killed_while_it_wrote(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    result = bench.end(kind="signaled", output=f"a {VALUE[:-2]}", exit_code=None, signal=9)
    assert result["output"] == "a [redacted:A]"
    assert bench.log() == b"a [redacted:A]"
    assert VALUE[:-2].encode() not in everything(bench.cluster.fs)


def test_a_result_file_and_a_returned_value_are_masked_text_by_text(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put(
        "result.json", json.dumps({VALUE: [VALUE], "changed_files": [f"src/{VALUE}"], "tokens_used": 7}).encode()
    )
    result = bench.end()
    assert result["output"]["[redacted:A]"] == ["[redacted:A]"]
    assert (result["changed_files"], result["tokens_used"]) == (["src/[redacted:A]"], 7)
    assert VALUE.encode() not in everything(bench.cluster.fs)
    returned = Bench(tmp_path).end(returned=True, value={"is": f"<{VALUE}>"})
    assert returned["output"] == {"is": "<[redacted:A]>"}
    wrong = Bench(tmp_path)
    wrong.put("result.json", f"{VALUE}{{".encode())
    wrong.end(output=VALUE)
    assert VALUE.encode() not in everything(wrong.cluster.fs)


@pytest.mark.parametrize(
    ("data", "progress"),
    [
        (json.dumps({"at": VALUE}).encode(), {"at": "[redacted:A]"}),
        (f"at {VALUE}".encode(), "at [redacted:A]"),
        (f"{'x' * 4085} {VALUE}".encode(), "x" * 4085 + " [redacted:A]"),
    ],
)
def test_progress_is_masked_also_where_it_is_cut(data: bytes, progress: Any, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put("progress.json", data)
    bench.cluster.advance(10)
    found = everything(bench.cluster.fs)
    assert json.dumps(progress, separators=(",", ":")).encode() in found
    assert VALUE[:8].encode() not in found


def test_a_secret_that_comes_in_pieces_is_masked_and_the_rest_comes_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    written = b""
    for byte in f"is {VALUE} and more hunt".encode():
        written += bytes([byte])
        bench.put("output", written)
        assert b"hunter" not in bench.brought()
    assert bench.log() == b"is [redacted:A] and more "
    bench.end(output=written.decode())
    assert bench.log() == b"is [redacted:A] and more hunt"


def test_what_could_not_be_written_comes_later_and_only_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put("output", f"is {VALUE}\n".encode())
    bench.node.fs.fail("append", "logs/", 5, times=1)
    bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
    bench.cluster.step("w1")
    assert bench.cluster.fs.list("logs") == []
    assert bench.brought() == b"is [redacted:A]\n"
    for name in bench.cluster.fs.list("logs"):
        bench.cluster.fs.unlink(f"logs/{name}")
    bench.cluster.fs.rmdir("logs")
    bench.end(output=f"is {VALUE}\nhunter")
    assert bench.log() == b"is [redacted:A]\nhunter"


def test_the_two_ends_of_a_gap_show_no_half_of_a_secret(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put("output", f"begun {VALUE[:-4]}".encode())
    tail = "z" * MARGIN + VALUE + "y" * 1020
    result = bench.end(output_dropped=500, output_bytes=90_000, tail=tail, stdout=tail)
    assert bench.log() == b"begun [redacted:A]\n[500 bytes left out here: log_max_mb of the worker]\n" + (
        b"[redacted:A]" + b"y" * 1020
    )
    assert result["output"] == "[redacted:A]" + "y" * 1020


def test_without_masks_everything_passes_as_it_is(tmp_path: Path) -> None:
    assert NOTHING.feed(TOKEN.encode()) == TOKEN.encode()
    assert (NOTHING.value(TOKEN), NOTHING.kept, NOTHING.end(cut=False)) == (TOKEN, 0, b"")
    assert Redacting({}, Redact(tokens=False), 100).kept == 100
    bench = Bench(tmp_path, redact={"tokens": False, "patterns": ["user=\\S+"]})
    assert bench.end(output=f"{TOKEN} user=me {VALUE}")["output"] == f"{TOKEN} [redacted:pattern-1] [redacted:A]"


def test_a_secret_that_is_gone_when_the_task_comes_leaves_it_to_another_worker(tmp_path: Path) -> None:
    config = {"handlers": {"t": {"command": ["x"], "secrets": ["A"]}}, "secrets": {"A": {"file": f"{tmp_path}/no"}}}
    made = Cluster()
    made.master("m1")
    node = made.worker("w1", config=config)
    made.submit("a.json", json.dumps({"id": "a", "type": "t"}))
    for name in ("m1", "w1", "w1"):
        made.step(name)
    assert node.runner is not None
    assert node.runner.started == []
    [record] = [json.loads(made.fs.read(f"results/{name}")) for name in made.fs.list("results")]
    assert (record["status"], record["error"]["code"]) == ("handed_back", "HANDED_BACK")
    assert (
        f"this worker cannot run it: it lacks the secret A: {tmp_path}/no cannot be read"
        in record["error"]["message"]
    )
    assert made.state("a") != "failed"


def test_a_task_that_says_nothing_imports_nothing_for_it() -> None:
    code = (
        "import sys; from spoold.worker import worker; from spoold.worker.attempts.attempt import Redacting;"
        "from spoold.worker.handlers.worker_config import Redact; from spoold.runner.job import Ending;"
        "made = Redacting({}, Redact(), 1024); made.kept; made.value(None); made.end(cut=False);"
        "ending = Ending('a.1', 'exited', 0, None, '', 0, 0, 0); assert made.ending(ending) is ending;"
        "print([name for name in sys.modules if 'redaction' in name])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout == "[]\n"
