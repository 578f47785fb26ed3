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
SECRET = "hunter2-is-the-word"
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
    config.write_text('allow_command = true\n[python]\nallow = ["*"]\n')
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
