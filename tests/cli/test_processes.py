"""The command as people run it: a process with pipes and signals, over a spool in which somebody works."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold import __version__
from tests.cli.commands import spool, start

PATIENCE_S = 30


def finish(process: subprocess.Popen[bytes], stdin: bytes = b"") -> tuple[int, str, str]:
    out, err = process.communicate(stdin, timeout=PATIENCE_S)
    return process.returncode, out.decode(), err.decode()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A spool with a master and a worker of four slots."""
    root = tmp_path_factory.mktemp("spool") / "s"
    assert spool("init", str(root)).code == 0
    up = start("up", "--slots", "4", "--allow-command", "--until-eof", root=root, stdout=None, stderr=None)
    yield root
    up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 0


def test_the_version(root: Path) -> None:
    assert finish(start("--version", root=root)) == (0, f"spool {__version__}\n", "")


def test_run_is_as_if_the_command_ran_here(root: Path) -> None:
    code, out, err = finish(start("run", "--", "sh", "-c", "echo to-stdout; echo to-stderr >&2; exit 7", root=root))
    assert (code, sorted(out.split())) == (7, ["to-stderr", "to-stdout"])
    assert "EXIT_NONZERO" in err
    assert finish(start("run", "--", "true", root=root)) == (0, "", "")


def test_run_ends_as_a_shell_says_that_its_command_ended(root: Path) -> None:
    code, _, err = finish(start("run", "--", "sh", "-c", "kill -9 $$", root=root))
    assert (code, "SIGNALED" in err) == (137, True)
    code, _, _ = finish(start("run", "--retries", "1", "--", "sh", "-c", "kill -15 $$", root=root))
    assert code == 143


def test_run_sends_stdin_on_request_and_else_says_that_it_does_not(root: Path) -> None:
    text = "a line\nünï"
    assert finish(start("run", "--stdin", "--", "cat", root=root), text.encode()) == (0, text, "")
    code, out, err = finish(start("run", "--stdin", "--", "cat", root=root), b"\xff")
    assert (code, out, "no UTF-8 text" in err) == (2, "", True)
    read, write = os.pipe()
    os.write(write, b"x\n")
    os.close(write)
    code, out, err = finish(start("run", "--", "cat", root=root, stdin=read))
    os.close(read)
    assert (code, out) == (0, "")
    assert "--stdin sends it" in err


@pytest.mark.parametrize(
    "words", ["run true", "run make -j4", "run --timeout 5m make --timeout 1m", "submit make -j4"]
)
def test_a_command_without_dashes_hears_of_them(words: str) -> None:
    done = spool(*words.split())
    assert (done.code, done.out) == (2, "")
    assert "write `--` before the command" in " ".join(done.err.split())
    assert ".. If" not in spool("submit", "--id").err  # some of the parser's sentences end with a full stop
    with_dashes = spool(words.split(maxsplit=1)[0], "--nonsense", "--", "true")
    assert "write `--`" not in with_dashes.err


def test_run_shows_output_while_the_command_runs(root: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"echo begun; until [ -e {go} ]; do sleep 0.05; done; echo ended"
    process = start("run", "--", "sh", "-c", script, root=root)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    go.touch()
    assert finish(process) == (0, "ended\n", "")


def test_an_interrupted_run_cancels_its_task(root: Path) -> None:
    process = start("run", "--id", "endless", "--", "sh", "-c", "echo begun; exec sleep 1000", root=root)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, "endless is being cancelled" in err, "Traceback" in err) == (130, True, False)
    done = spool("wait", "endless", "--timeout", "30", "--json", root=root)
    assert (done.code, json.loads(done.out)["endless"]["status"]) == (1, "cancelled")


def test_an_interrupted_run_cancels_no_task_of_another_program(root: Path, tmp_path: Path) -> None:
    words = ("sh", "-c", f"echo begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    assert spool("submit", "--id", "shared", "--retries", "0", "--", *words, root=root).code == 0
    process = start("run", "--id", "shared", "--", *words, root=root)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, "shared is not cancelled" in err, "`spool cancel shared` cancels it" in err) == (130, True, True)
    (tmp_path / "go").touch()
    assert spool("wait", "shared", "--timeout", "30", root=root).code == 0


def submit_until(root: Path, go: Path) -> str:
    """A task that runs until a file is there; its id."""
    script = f"echo begun; until [ -e {go} ]; do sleep 0.05; done"
    (task_id,) = spool("submit", "--", "sh", "-c", script, root=root).lines
    return task_id


def test_who_stops_looking_does_not_stop_the_task(root: Path, tmp_path: Path) -> None:
    task_id = submit_until(root, tmp_path / "go")
    process = start("logs", "-f", task_id, root=root)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    assert finish(process) == (130, "", "")
    (tmp_path / "go").touch()
    assert spool("wait", task_id, "--timeout", "30", root=root).code == 0


def test_a_terminal_gets_a_bar_that_goes_away(root: Path, tmp_path: Path) -> None:
    task_id = submit_until(root, tmp_path / "go")
    screen, terminal = os.openpty()
    process = start("wait", task_id, root=root, stderr=terminal)
    os.close(terminal)
    shown = b""
    while b"0/1" not in shown:
        shown += os.read(screen, 4096)
    (tmp_path / "go").touch()
    out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(screen)
    assert (process.returncode, out) == (0, b"")
    assert b"waiting" in shown


def test_submit_waits_on_request_and_tells_of_failures(root: Path, tmp_path: Path) -> None:
    tasks = [{"id": f"w{n}", "command": ["sh", "-c", f"exit {n}"], "max_retries": 0} for n in (0, 3)]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    code, out, err = finish(start("submit", "--wait", str(tmp_path / "tasks.jsonl"), root=root))
    assert (code, out) == (1, "w0\nw3\n")
    assert "w3 failed" in err
    assert "w0" not in err
    assert finish(start("submit", "--wait", "--", "true", root=root))[0] == 0


def test_a_reader_that_has_seen_enough_is_no_error(root: Path) -> None:
    for _ in range(3):
        spool("submit", "-", stdin=b'{"type":"never"}\n' * 500, root=root)
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = start("ls", root=root, stdout=write_end)
    os.close(write_end)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, b"")


def finish_unread(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """As `finish`, for one whose stdout nobody reads any more."""
    _, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, err.decode()


@pytest.mark.parametrize("more", ["", "; seq 100000; exec sleep 1000"], ids=["quiet", "talking"])
def test_a_run_that_nobody_reads_any_more_cancels_its_task(root: Path, more: str) -> None:
    name = f"unread-{len(more)}"
    script = f"echo begun{more or '; exec sleep 1000'}"
    process = start("run", "--id", name, "--", "sh", "-c", script, root=root)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.stdout.close()
    process.stdout = None
    code, err = finish_unread(process)
    assert code == 141, "as of a command that ends by SIGPIPE"
    assert (f"{name} is being cancelled" in err, "Traceback" in err, err.count("\n")) == (True, False, 1)
    done = spool("wait", name, "--timeout", "30", "--json", root=root)
    assert (done.code, json.loads(done.out)[name]["status"]) == (1, "cancelled")


@pytest.mark.parametrize("verb", ["logs", "events"])
def test_who_follows_for_nobody_ends(root: Path, tmp_path: Path, verb: str) -> None:
    task_id = submit_until(root, tmp_path / "go")
    process = start(*(("logs", "-f", task_id) if verb == "logs" else ("events", "-f")), root=root)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert finish_unread(process)[0] == 0
    (tmp_path / "go").touch()


def test_an_executor_runs_functions_on_the_workers(root: Path) -> None:
    import math

    from spoold.client.executor import SpoolExecutor
    from spoold.client.spool.waiting import TaskFailed

    config = root.parent / "worker.toml"
    config.write_text('[python]\nallow = ["math"]\n')
    worker = start("worker", "--slots", "1", "--config", str(config), "--until-eof", root=root)
    try:
        with SpoolExecutor(root, max_retries=0) as pool:
            assert list(pool.map(math.factorial, [3, 4], timeout=PATIENCE_S)) == [6, 24]
            with pytest.raises(TaskFailed, match="ValueError"):
                pool.submit(math.sqrt, -1).result(timeout=PATIENCE_S)
    finally:
        assert finish(worker)[0] == 0


def test_a_current_folder_that_was_deleted_is_named_as_the_cause(tmp_path: Path) -> None:
    """N24: "another process moved the file first" said nothing of it."""
    script = f'mkdir gone && cd gone && rmdir ../gone && exec "{sys.executable}" -m spoold init new'
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert done.stderr == (
        "spool: The current folder was deleted, so a relative path means nothing. Fix: `cd` to one that exists.\n"
    )
