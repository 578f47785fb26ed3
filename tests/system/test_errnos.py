"""Errors of a rename: each errno of the table has its meaning, and nobody is left without a sentence."""

from __future__ import annotations

import errno
import re

import pytest

from spoold.system import errnos
from spoold.system.errnos import ERESTARTSYS, Meaning, advice, classify, meaning

TABLE = {
    Meaning.GONE: "ENOENT",
    Meaning.UNKNOWN: "EIO ETIMEDOUT EAGAIN EINTR EHOSTDOWN ENOTCONN ECONNRESET ECONNREFUSED ECONNABORTED",
    Meaning.STALE: "ESTALE",
    Meaning.BUSY: "EACCES EPERM EBUSY ETXTBSY",
    Meaning.FULL: "ENOSPC EDQUOT",
    Meaning.CONFIG: "EXDEV ENAMETOOLONG EROFS EINVAL ENOLCK ENOSYS ENOTSUP",
    Meaning.BROKEN: "EEXIST ENOTEMPTY EISDIR ENOTDIR",
}


@pytest.mark.parametrize(("name", "expected"), [(name, m) for m, names in TABLE.items() for name in names.split()])
def test_each_errno_has_its_meaning(name: str, expected: Meaning) -> None:
    assert classify(OSError(getattr(errno, name), "x")) is expected


@pytest.mark.parametrize("code", [ERESTARTSYS, errno.EPROTO, errno.ENETUNREACH, 9999, None])
def test_what_is_not_listed_promises_nothing(code: int | None) -> None:
    assert meaning(code) is Meaning.UNKNOWN


def test_an_error_without_errno_promises_nothing() -> None:
    assert classify(OSError("only words")) is Meaning.UNKNOWN


def test_the_table_in_the_docstring_is_the_one_that_is_used() -> None:
    assert errnos.__doc__ is not None
    current, written = "", {}
    for line in errnos.__doc__.partition("what the caller does")[2].splitlines():
        first = re.match(r" {4}([A-Z]+) ", line)
        current = first.group(1) if first else current
        for name in re.findall(r"\bE[A-Z]{2,}\b(?!\*)", line):
            written[name] = Meaning[current]
    listed = {errno.errorcode[code] for code in errnos._MEANING_OF if code != ERESTARTSYS}
    assert set(written) == {name for name in listed if not name.startswith("ECONN")}
    assert {name: meaning(getattr(errno, name)) for name in written} == written


def test_everybody_gets_a_sentence_of_their_own_kind() -> None:
    sentences = {code: advice(OSError(code, "")) for code in [*errno.errorcode, ERESTARTSYS, None]}
    assert all(len(sentence) > 30 and sentence.endswith(".") for sentence in sentences.values())
    assert len({advice(OSError(getattr(errno, names.split()[0]), "")) for names in TABLE.values()}) == len(Meaning)


@pytest.mark.parametrize("code", [errno.ENOTDIR, errno.ELOOP, errno.EMLINK])
def test_who_runs_into_a_link_is_told_of_links(code: int) -> None:
    assert "link" in advice(OSError(code, ""))
