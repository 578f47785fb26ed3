"""tools/netlab: the lab's commands.

Law: exit status 0 when what was asked for is so; 1 when a test of the matrix failed, or the code of the command that
ran in a guest; 2 for arguments that make no sense; 3 when this machine cannot run the lab, with what is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.laboratory import needs, systemd_checks, systemd_image, verdicts
from tools.laboratory.agents import command as command_of_agents
from tools.laboratory.channel import Failed
from tools.laboratory.figures import measure
from tools.laboratory.lab import BOUND_S, Lab
from tools.laboratory.matrix.cell import TASKS
from tools.laboratory.matrix.faults import FAULTS
from tools.laboratory.matrix.run import Matrix, cells_of
from tools.laboratory.protocols import PROTOCOLS
from tools.turns import Part, part

CANNOT = 3
MEASURE_BOUND_S = 1800


def main() -> int:
    """Carry out one command; returns the exit status."""
    options, command = _parse()
    if options.verb == "test" and options.list:
        return _list(options)
    needs.install()
    if reasons := needs.missing():
        print("netlab: this machine cannot run the lab:", *reasons, sep="\n  ", file=sys.stderr)
        return CANNOT
    try:
        if options.verb == "test":
            return _test(options)
        if options.verb == "measure":
            return _measure(options)
        if options.verb == "test-doctor":
            return 0 if verdicts.carry_out(options.name, options.protocol or list(PROTOCOLS)) else 1
        if options.verb == "test-agents":
            return 0 if command_of_agents.carry_out(options) else 1
        if options.verb == "test-systemd":
            return 1 if systemd_checks.carry_out(options.name, options.only, options.part) else 0
        return _carry_out(options, command)
    except (Failed, RuntimeError, TimeoutError) as error:
        print(f"netlab: {error}", file=sys.stderr)
        return 1


def _carry_out(options: argparse.Namespace, command: list[str]) -> int:
    if options.verb == "up":
        image = systemd_image.image() if options.systemd else None
        protocol, sizes = PROTOCOLS[options.protocol], (options.memory, options.disk)
        lab = Lab(options.name, protocol, options.laptops, options.options, options.bound, image, *sizes)
        lab.up()
        print(f"{', '.join(lab.guests)} are up; the share is /mnt/share over {options.protocol} on each laptop")
        return 0
    lab = Lab.find(options.name)
    match options.verb:
        case "exec":
            done = lab.on(options.guest).run(*command, timeout=options.timeout, check=False)
            sys.stdout.write(done.out)
            sys.stderr.write(done.err)
            return done.code if 0 <= done.code <= 255 else 1
        case "put":
            lab.on(options.guest).put(Path(options.source).read_bytes(), options.target)
        case "cut":
            lab.network.cut(options.guest)
        case "heal":
            lab.network.heal(options.guest)
        case "kill":
            lab.kill(options.guest)
        case "boot":
            lab.boot(options.guest)
        case "freeze":
            lab.guests[options.guest].freeze()
        case "thaw":
            lab.guests[options.guest].thaw()
        case "reboot-server":
            lab.kill("server")
            lab.boot("server")
        case "down":
            lab.down()
    return 0


def _list(options: argparse.Namespace) -> int:
    for protocol in options.protocol or PROTOCOLS:
        print(f"{protocol}: {', '.join(fault.name for fault in cells_of(protocol, options.fault or list(FAULTS)))}")
    return 0


def _test(options: argparse.Namespace) -> int:
    protocols, faults = options.protocol or list(PROTOCOLS), options.fault or list(FAULTS)
    matrix = Matrix(options.name, protocols, faults, options.tasks, within_s=options.within, turn=options.turn)
    status = matrix.run(options.jobs)
    if options.json is not None:
        matrix.write(options.json)
    return status


def _measure(options: argparse.Namespace) -> int:
    table = Table("over", "what", "figure", "made of")
    found = []
    for protocol in options.protocol or list(PROTOCOLS):
        lab = Lab(options.name, PROTOCOLS[protocol], 3, options.options, MEASURE_BOUND_S)
        lab.up()
        try:
            figures = measure(lab, tasks=options.tasks, backlogs=tuple(options.backlog), samples=options.samples)
        finally:
            lab.down()
        for row in figures.rows():
            table.add_row(protocol, *row)
        found.append(asdict(figures))
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


def _parse() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="tools/netlab", description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="lab", help="which lab, if there are several (default: lab)")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    up = verbs.add_parser("up", help="make the lab")
    up.add_argument("--protocol", choices=PROTOCOLS, default="nfs4.2")
    up.add_argument("--options", default="", help="more mount options, separated by commas")
    up.add_argument("--laptops", type=int, default=3)
    up.add_argument("--systemd", action="store_true", help="laptops with a Debian of their own, run by systemd")
    up.add_argument("--memory", type=int, metavar="MB", help="of each laptop")
    up.add_argument("--disk", type=int, default=0, metavar="MB", help="of each laptop's own, at /srv/disk; 0: none")
    up.add_argument("--bound", type=float, default=BOUND_S, help="seconds after which it ends by itself")
    run = verbs.add_parser("exec", help="run a command in a guest: exec laptop1 -- ls /mnt/share")
    run.add_argument("guest")
    run.add_argument("--timeout", type=float, default=600, help="seconds")
    put = verbs.add_parser("put", help="copy a file of the host into a guest: put laptop1 task.json /mnt/share/…")
    put.add_argument("guest")
    put.add_argument("source")
    put.add_argument("target")
    for verb, text in (
        ("cut", "pull the storage cable of a guest"),
        ("heal", "plug it in again"),
        ("kill", "power cut of a guest"),
        ("boot", "start it again"),
        ("freeze", "stop it as if it slept"),
        ("thaw", "wake it"),
    ):
        verbs.add_parser(verb, help=text).add_argument("guest")
    verbs.add_parser("reboot-server", help="power cut of the server, and its return")
    systemd = verbs.add_parser("test-systemd", help="the shipped units under a real systemd, as a table")
    systemd.add_argument("--only", default="", metavar="PART", help="checks with this in their name, after set_up")
    systemd.add_argument("--part", type=part, default=Part(), metavar="I/N", help="every Nth check, from the Ith on")
    command_of_agents.add(verbs)
    doctor = verbs.add_parser("test-doctor", help="what the doctor says of each protocol, and of unsafe mounts")
    doctor.add_argument("--protocol", action="append", choices=PROTOCOLS, help="only this one; may be repeated")
    figures = verbs.add_parser("measure", help="round trips per task and when idle, and delays")
    figures.add_argument("--protocol", action="append", choices=PROTOCOLS, help="only this one; may be repeated")
    figures.add_argument("--options", default="", help="more mount options, separated by commas")
    figures.add_argument("--tasks", type=int, default=300)
    figures.add_argument("--backlog", type=int, nargs="*", default=[100, 10_000])
    figures.add_argument("--samples", type=int, default=15, help="of each delay; 0: none")
    figures.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    verbs.add_parser("down", help="end and remove the lab")
    test = verbs.add_parser("test", help="every protocol against every fault, as a table with counts")
    test.add_argument("--protocol", action="append", choices=PROTOCOLS, help="only this one; may be repeated")
    test.add_argument("--fault", action="append", choices=FAULTS, help="only this one; may be repeated")
    test.add_argument("--jobs", type=int, default=2, help="labs at once (default: 2)")
    test.add_argument("--tasks", type=int, default=TASKS, help=f"of the cells without a fault (default: {TASKS})")
    test.add_argument("--within", type=float, help="seconds; what does not fit is told, and not played")
    test.add_argument(
        "--turn", type=int, default=0, help="with --within: begin with other cells than the turn before"
    )
    test.add_argument("--json", type=Path, metavar="FILE", help="write all counts there too")
    test.add_argument("--list", action="store_true", help="say which cells there are, and run none")
    arguments = sys.argv[1:]
    # What follows a lone -- belongs to the guest's command, whatever it looks like.
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    return parser.parse_args(arguments[:cut]), arguments[cut + 1 :]


if __name__ == "__main__":
    sys.exit(main())
