"""What is in the environment of a node stays there: no task finds it, in its own processes or above them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.client.spool_client import SpoolClient
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem

# Root may read everything; without these capabilities it may read as much as any other user of the same name.
COMMON = ("setpriv", "--bounding-set", "-sys_ptrace,-sys_admin,-perfmon") if os.getuid() == 0 else ()
# Of this process alone: another one of the tests begins with its own in its environment.
SECRET = f"hunter2-{os.getpid()}-is-the-word"
# All that a task may read of every process but itself, told with the process's name.
LOOK = f"""
for entry in /proc/[0-9]*; do
    {{ tr '\\0' '\\n' <"$entry/environ" | grep -q {SECRET} && echo "found in $(tr '\\0' ' ' <$entry/cmdline)"; }} 2>&-
done; echo looked
"""


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[SpoolClient]:
    """`spool up` with a secret in its environment."""
    if COMMON and shutil.which(COMMON[0]) is None:
        pytest.skip("root sees everything, and there is no setpriv to take that away")
    root, config = tmp_path / "spool", tmp_path / "worker.toml"
    root.mkdir()
    initialise(PosixFileSystem(str(root)), SystemClock(), "test", str(root))
    (tmp_path / "token").write_text(SECRET)
    (tmp_path / "token").chmod(0o600)
    deploy = f'[secrets]\nDEPLOY_TOKEN = {{file = "{tmp_path}/token"}}\n[handlers.deploy]\n'
    deploy += 'command = ["sh", "-c", "printf %s ${#DEPLOY_TOKEN}"]\nsecrets = ["DEPLOY_TOKEN"]\n'
    config.write_text(f'slots = 1\nallow_command = true\n[python]\nallow = ["*"]\n{deploy}')
    command = (*COMMON, sys.executable, "-m", "spoold", "--spool", str(root), "up", "--config", str(config))
    environ = {**os.environ, "DEPLOY_TOKEN": SECRET}
    with (
        subprocess.Popen([*command, "--until-eof"], stdin=subprocess.PIPE, env=environ) as process,
        SpoolClient(str(root)) as spool,
    ):
        yield spool
        assert process.stdin is not None
        process.stdin.close()


def test_no_task_finds_what_is_only_in_the_environment_of_a_node(pool: SpoolClient) -> None:
    by_command, by_call = (
        pool.submit(command=["sh", "-c", LOOK]),
        pool.submit(python="subprocess:getoutput", args=[LOOK]),
    )
    for task, result in pool.wait([by_command, by_call], timeout=120).items():
        assert str(result.output).split() == ["looked"], task


# The memory of all processes but itself that it may open, for a word that this text does not hold.
SEARCH = """
import os, sys
word, found = sys.argv[1][::-1].encode(), []
for pid in filter(str.isdecimal, os.listdir("/proc")):
    if pid == str(os.getpid()):
        continue
    try:
        with open(f"/proc/{pid}/mem", "rb", 0) as memory, open(f"/proc/{pid}/maps") as maps:
            name = open(f"/proc/{pid}/comm").read().strip()
            for line in maps:
                low, high = (int(each, 16) for each in line.split()[0].split("-"))
                if " rw" not in line or high - low > 1 << 28:
                    continue
                try:
                    memory.seek(low)
                    if word in memory.read(high - low):
                        found.append(name)
                except (OSError, ValueError, OverflowError):
                    continue
    except OSError:
        continue
print("searched", *sorted(set(found)))
"""


def test_no_task_finds_what_an_earlier_one_was_given(pool: SpoolClient) -> None:
    """G21: a supervisor had the variables of the tasks before in its memory."""
    (given,) = pool.wait([pool.submit(type="deploy")], timeout=120).values()
    assert str(given.output).strip() == str(len(SECRET)), "it had the secret"
    seeks = [pool.submit(command=[sys.executable, "-c", SEARCH, SECRET[::-1]]) for _ in range(2)]
    for task, result in pool.wait(seeks, timeout=120).items():
        assert str(result.output).split() == ["searched"], task
