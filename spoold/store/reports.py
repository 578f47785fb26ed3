"""The doctor's reports in doctor/, for readers.

Law: any other entry there belongs to a trial under way, and is passed over. So is a report that cannot be read.
"""

from __future__ import annotations

from spoold.protocol import codec, layout
from spoold.protocol.doctor_report import Report, ReportName, parse_report
from spoold.protocol.errors import BadFile
from spoold.store.regular import reading
from spoold.system.filesystem import FileSystem


def list_reports(fs: FileSystem) -> list[ReportName]:
    """The reports in the order of their numbers; none if the directory is missing. Errors: OSError."""
    try:
        names = fs.list(layout.DOCTOR)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in map(parse_report, names) if name is not None)


def read_reports(fs: FileSystem) -> dict[ReportName, Report]:
    """Every report that can be read, in the order of their numbers. Errors: OSError if they cannot be listed."""
    found = {}
    for name in list_reports(fs):
        path = layout.join(layout.DOCTOR, name.encode())
        try:
            with reading("report of the doctor", path):
                found[name] = codec.load_model(Report, fs.read(path), path)
        except (OSError, BadFile):
            continue  # superseded meanwhile, or not the doctor's file
    return found
