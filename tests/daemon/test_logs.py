"""What a daemon says on stderr, for people and for programs."""

import json
import logging
from collections.abc import Iterator

import pytest

from spoold.daemon.logs import configure
from spoold.protocol.errors import BadFile


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
