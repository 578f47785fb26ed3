"""What a daemon says on stderr, for people and for programs."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.daemon.daemon_log import configure
from spoold.daemon.progress_watch import Pulse
from spoold.daemon.worker_actor import WorkerActor
from spoold.protocol.errors import BadFile
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem
from spoold.worker.handlers.worker_config import WorkerConfig


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    logger = logging.getLogger("spoold")
    before = logger.handlers, logger.propagate, logger.level
    yield
    logger.handlers, logger.propagate = before[0], before[1]
    logger.setLevel(before[2])


def test_lines_for_people_hide_what_only_debugging_wants(capsys: pytest.CaptureFixture[str]) -> None:
    configure({})
    logging.getLogger("spoold").debug("secret")
    logging.getLogger("spoold").info("%s leads", "m-1")
    said = capsys.readouterr().err
    assert said.endswith("INFO m-1 leads\n")
    assert "secret" not in said


def test_json_for_programs_with_the_error_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    configure({"SPOOL_LOG_FORMAT": "json", "SPOOL_LOG_LEVEL": "debug"})
    try:
        raise OSError("gone")
    except OSError:
        logging.getLogger("spoold").exception("trouble")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["message"]) == ("error", "trouble")
    assert "OSError: gone" in line["error"]
    assert line["at"].endswith("Z")


@pytest.mark.parametrize("name", ["SPOOL_LOG_FORMAT", "SPOOL_LOG_LEVEL"])
def test_a_wrong_setting_is_named_with_what_would_be_right(name: str) -> None:
    with pytest.raises(BadFile, match=name) as error:
        configure({name: "xml"})
    assert "use one of" in error.value.mend


@pytest.mark.parametrize(("config", "said"), [({}, 1), ({"allow_command": True}, 0)])
def test_a_worker_that_runs_no_commands_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, config: dict[str, bool], said: int
) -> None:
    initialise(PosixFileSystem(str(tmp_path)), SystemClock(), "test", str(tmp_path))
    worker = WorkerActor(str(tmp_path), WorkerConfig.model_validate({"name": "w", "slots": 1, **config}), Pulse(), [])
    with caplog.at_level(logging.INFO, "spoold"):
        for _ in range(2):
            worker.step()
    worker.close()
    lines = [record.getMessage() for record in caplog.records if "runs no commands" in record.getMessage()]
    assert len(lines) == said
    assert all(line.startswith("w-") and "it takes no task: " in line for line in lines)
