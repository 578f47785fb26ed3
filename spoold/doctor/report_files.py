"""The reports: made of figures, kept in doctor/, and read again for warnings.

Law: a report gets a number above all that are there, and only after that are those removed that no longer count.
`rules.share` judges the figures; nothing is judged here.

Touches: the environment.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Collection, Mapping
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.doctor_report import Remark, Report, ReportName
from spoold.protocol.heartbeat import HostId, MountFacts
from spoold.protocol.names import next_number
from spoold.protocol.version import __version__
from spoold.rules.share.machine_identities import Company, judge_company
from spoold.rules.share.mount_options import conclude, facts_of, in_force, judge_mount, line, ordered
from spoold.rules.share.trial_findings import judge_gathering, judge_machine
from spoold.store.doctor_reports import list_reports, read_reports
from spoold.store.store import clear_directory, make_directory
from spoold.system.filesystem import FileSystem

Figures = Mapping[str, Mapping[str, Any]]


def compose(
    node: str,
    directory: str,
    measured: dict[str, dict[str, Any]],
    together: dict[str, dict[str, Any]],
    people: Mapping[str, Mapping[str, Any]],
    *,
    at: str,
    quick: bool,
    missed: Collection[str] = (),
) -> Report:
    """Return the report on the figures. people: the host and figures of every member, by node, also this one.

    missed: as in `Company`.
    """
    company = company_of(people, missed)
    hosts, mounts = company.hosts, company.mounts
    remarks = _judge_one(mounts.get(node), measured)
    told = {(remark.probe, remark.problem) for remark in remarks}
    for name in people.keys() - {node}:
        # A note on another machine is in its own report, and a remark on both is made once.
        for found in _judge_one(mounts.get(name), people[name]["measured"]):
            if found.grade != "note" and (found.probe, found.problem) not in told:
                remarks.append(found.model_copy(update={"host": hosts[name].hostname}))
    if len(people) > 1:
        remarks += judge_company(company)
    remarks += judge_gathering(together)
    sorted_remarks = ordered(remarks)
    mount = mounts.get(node)
    network = mount is None or mount.network
    verdict, reason = conclude(sorted_remarks, len(people), network=network, directory=shlex.quote(directory))
    system = f"spoold {__version__}, Linux {os.uname().release}"
    return Report(
        at=at,
        node=node,
        hostname=hosts[node].hostname,
        directory=directory,
        spool_id=str(measured.get("marker", {}).get("spool_id", "")),
        version=__version__,
        verdict=verdict,
        reason=reason,
        machines=len(people),
        quick=quick,
        mount=mount,
        remarks=sorted_remarks,
        measured=measured,
        together=together,
        line=line(verdict, mount, measured, together, system),
    )


def with_remark(report: Report, remark: Remark) -> Report:
    """Return the report with one more remark, in its place."""
    return report.model_copy(update={"remarks": ordered([*report.remarks, remark])})


def company_of(people: Mapping[str, Mapping[str, Any]], missed: Collection[str]) -> Company:
    """Return who takes part. people, missed: as in `compose`. Errors: KeyError, ValueError for what is no host."""
    return Company(
        hosts={name: HostId.model_validate(said["host"]) for name, said in people.items()},
        mounts={name: mount for name, said in people.items() if (mount := _mount(said)) is not None},
        missed=missed,
    )


def _judge_one(mount: MountFacts | None, measured: Figures) -> list[Remark]:
    return [*(judge_mount(mount) if mount is not None else ()), *judge_machine(measured)]


def _mount(said: Mapping[str, Any]) -> MountFacts | None:
    """Return the mount in a machine's figures; None where it is unknown."""
    figures = said["measured"].get("mount", {})
    if not figures.get("known"):
        return None
    return facts_of(figures["fstype"], figures["options"], network=figures["network"])


def keep_first(fs: FileSystem, report: Report, spool_id: str) -> None:
    """Keep the report on a directory that has just become a spool. Errors: OSError."""
    room = layout.join(layout.TMP, report.node)
    make_directory(fs, room)
    remarks = tuple(remark for remark in report.remarks if remark.probe != "marker")
    keep(fs, report.model_copy(update={"spool_id": spool_id, "remarks": remarks}), room)
    clear_directory(fs, room)


def keep(fs: FileSystem, report: Report, staging: str) -> None:
    """Write a report under the next number, and remove those that no longer count. Errors: OSError; BadFile for a
    report that leaves no number for another.

    staging: a directory of the writer's own.
    """
    number = next_number(layout.DOCTOR, list_reports(fs), -1)
    staged = layout.join(staging, "report.json")
    fs.write(staged, codec.dump(report), durable=True)
    fs.rename(staged, layout.join(layout.DOCTOR, ReportName(number, report.node).encode()))
    known = read_reports(fs)
    counting = [id(found) for found in in_force(known.values()).values()]
    for name, found in known.items():
        if id(found) not in counting:
            with contextlib.suppress(FileNotFoundError):
                fs.unlink(layout.join(layout.DOCTOR, name.encode()))
