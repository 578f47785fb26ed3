"""The names of the doctor's reports: one spelling each, and nothing else in doctor/ is taken for one."""

import pytest

from spoold.protocol.doctor_report import ReportName, parse_report


def test_a_name_comes_back_as_it_was_written() -> None:
    name = ReportName(12, "doctor-laptop1-7f3a0")
    assert parse_report(name.encode()) == name
    assert ReportName(9, "z") < ReportName(10, "a")


@pytest.mark.parametrize(
    "name",
    ["run.doctor-x-7f3a0", "here.doctor-x.3", "group.doctor-x.0", "01.x.json", "1.X.json", "1..json", "x.json"],
)
def test_what_is_no_report(name: str) -> None:
    assert parse_report(name) is None
