"""Only what fails on every machine is the task's fault."""

import errno

import pytest

from spoold.system.errnos import Fault, fault_of


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (0, Fault.TASK),
        (errno.E2BIG, Fault.TASK),
        (errno.ENAMETOOLONG, Fault.TASK),
        (errno.EAGAIN, Fault.MACHINE),
        (errno.ENOMEM, Fault.MACHINE),
        (errno.EMFILE, Fault.MACHINE),
        (errno.ETXTBSY, Fault.NOBODY),
        (errno.ENOENT, Fault.WORKER),
        (errno.EACCES, Fault.WORKER),
        (errno.ENOEXEC, Fault.WORKER),
        (errno.ELIBBAD, Fault.WORKER),
        (errno.EIO, Fault.WORKER),
        (9999, Fault.WORKER),
    ],
)
def test_each_error_has_one_at_fault(number: int, fault: Fault) -> None:
    assert fault_of(number) is fault
