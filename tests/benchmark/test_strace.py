"""The table of `strace -c`: calls by name, whether they failed or not."""

from tools.benchmark.strace import parse

TABLE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 66.58    0.006742        6742         1           wait4
  7.52    0.000761           2       308        12 openat
  0.00    0.000000           0         7           close
------ ----------- ----------- --------- --------- ----------------
100.00    0.010126          10       316        12 total
"""


def test_calls_are_counted_by_name() -> None:
    assert parse(TABLE) == {"wait4": 1, "openat": 308, "close": 7}


def test_an_empty_table_has_none() -> None:
    assert parse("") == {}
