"""`spool doctor`: checks whether a mount is safe for a spool, and which claim strategy fits it.

Law: if there is a report, its verdict alone decides the exit code: 1 for "not safe", 0 for any other. A profile of
agents is tried as its worker would start it, but without its secrets, since no model is asked.

Touches: the terminal, the environment.
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import (
    JsonOption,
    one_line,
    print_json,
    print_line,
    print_prose,
    print_table,
    remark,
    sentence,
)

if TYPE_CHECKING:
    from spoold.agents.configuration.profiles import Foreseen, Profile
    from spoold.agents.configuration.trial import Tried
    from spoold.protocol.doctor_report import Remark, Report
    from spoold.worker.handlers.worker_config import WorkerConfig

NOT_SAFE = 1

EPILOG = """Example: spool doctor /mnt/spool

Example: spool doctor /mnt/spool --with 2     (on two machines, within a minute)

Example: spool doctor --agents --config worker.toml"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("doctor", epilog=EPILOG)(doctor)


def doctor(
    ctx: typer.Context,
    directory: Annotated[
        str | None,
        typer.Argument(metavar="[DIR]", help="A directory on the share; else the spool.", show_default=False),
    ] = None,
    machines: Annotated[
        int, typer.Option("--with", metavar="N", min=1, max=16, help="How many machines take part, this one too.")
    ] = 1,
    wait: Annotated[str, typer.Option("--wait", metavar="TIME", help="How long to wait for the others.")] = "60s",
    files: Annotated[
        int, typer.Option("--files", metavar="N", min=1, max=100_000, help="How many files to race for.")
    ] = 500,
    quick: Annotated[bool, typer.Option("--quick", help="Only the trials of `spool init`; 1 or 2 seconds.")] = False,
    agents: Annotated[
        bool, typer.Option("--agents", help="Start each agent of a worker's file once, and ask no model.")
    ] = False,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="With --agents: the worker's configuration (TOML).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether a mount is safe for a spool, and say how to fix it if it is not.

    Needs no spool, and disturbs none: no task is touched, no file is left. One machine can judge options, names,
    directories and speed. Only two machines can test whether both could claim one task: run it on both, --with 2.
    For agents it tests instead whether those of a worker's file start here, in their sandboxes, and whether these let
    them ask their models: run that as the worker's user, with its environment. One that is `untested` is older than
    what spoold knows the output of: it runs, and a spent quota may go unseen.

    Exit code 0 when all is well, 1 when it is not, 124 when the other machines did not come.
    """
    if agents or config is not None:
        raise typer.Exit(0 if try_agents(ctx, config, as_json=as_json) else NOT_SAFE)
    from spoold.daemon.node_ids import node_id
    from spoold.doctor.examine import examine
    from spoold.doctor.trial_process import Order
    from spoold.faces.cli.terminal.values import duration

    path = os.path.abspath(os.path.expanduser(directory)) if directory else session(ctx).directory()
    order = Order(path, node_id(None, "doctor"), machines, duration(wait, "--wait"), files, quick=quick)
    report = examine(order, remark)
    if as_json:
        print_json(report)
    else:
        show(report)
    if report.verdict == "not safe":
        raise typer.Exit(NOT_SAFE)


def _weight(found: Remark) -> str:
    """Return the strategies that a remark rules out, in a word or two; else its grade."""
    if not found.against:
        return found.grade
    return "not safe" if len(found.against) > 1 else f"no {found.against[0]}"


def show(report: Report) -> None:
    """Print the report for people: the worst first, then the verdict, and last a line to copy into a bug report."""
    from spoold.rules.share.mount_options import describe

    print_line(f"{report.directory}: {describe(report.mount) if report.mount else 'mounted in an unknown way'}")
    for found in report.remarks:
        where = f"{found.host}: " if found.host else ""
        print_prose(f"{_weight(found)}: {where}{sentence(found.problem)}", "    ")
        if found.mend:
            print_prose(f"    fix: {sentence(found.mend)}", "    ")
    print_prose(f"{report.verdict}: {report.reason}", "    ")
    print_line(f"for bug reports: {report.line}")


def try_agents(ctx: typer.Context, file: str | None, *, as_json: bool) -> bool:
    """Try all profiles of a worker's file, and print what came of it; returns whether all is well.

    Errors: BadFile.
    """
    from functools import partial

    from spoold.agents.configuration.profiles import expand
    from spoold.agents.configuration.trial import STARTS
    from spoold.protocol.errors import BadFile
    from spoold.worker.handlers.worker_config import load_config

    if file is None:
        raise BadFile("the command line", "--config", "is missing.", "name the file of the worker.")
    found = _tried(ctx, load_config(file, expand=partial(expand, warns="rest")))
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        print_prose(f"{file} has no profile; [agents.NAME] makes one")
    else:
        rows = [
            (one.agent, one_line(one.cli, 40), one_line(one.version, 20) or "-", one.verdict, one.path or "-")
            for one in found
        ]
        print_table(("AGENT", "CLI", "VERSION", "VERDICT", "PATH"), rows)
        for one in found:
            if one.why:
                print_prose(f"{one.agent}: {sentence(one.why)}", "  ")
                print_prose(f"    fix: {one.fix}", "    ")
            for seen in one.foreseen:
                print_prose(f"{file}: {seen.field}: {sentence(seen.problem)}", "  ")
                print_prose(f"    fix: {seen.fix}", "    ")
    return all(one.verdict in STARTS for one in found)


def _tried(ctx: typer.Context, config: WorkerConfig) -> list[Tried]:
    from spoold.agents.configuration.profiles import VARIABLE, of_workspace, read_back
    from spoold.agents.configuration.trial import STARTS, try_out, unseen
    from spoold.worker.handlers.job_preparation import inherited
    from spoold.worker.handlers.secrets import Secrets

    environ = dict(os.environ)
    secrets, base = Secrets(config.secrets, environ, config.place("secrets")), inherited(config, environ)
    found = []
    for handler in config.handlers.values():
        if VARIABLE not in handler.env:
            continue
        name, profile = read_back(handler.env[VARIABLE])
        remark(f"{name}: starts {profile.cli} to see whether it runs")
        tried = try_out(name, profile, base)
        folders = tuple(filter(None, (handler.cwd, *handler.allow_cwd)))
        hidden = unseen(name, profile, base, folders) if tried.verdict in STARTS else []
        if tried.verdict in STARTS and (why := secrets.lacking(handler.secrets)) is not None:
            fix = "see that its source, under [secrets] of the worker's file, is there and the worker may read it"
            tried = replace(tried, verdict="secret missing", why=why, fix=fix)
        merges = _merges(ctx, config, name, profile) if profile.then == "merge" else []
        found.append(tried.warned([*of_workspace(name, profile.workspace), *hidden, *merges]))
    return [*found, *_merger(config)]


def _merges(ctx: typer.Context, config: WorkerConfig, name: str, profile: Profile) -> list[Foreseen]:
    """Return that nothing merges the work of a profile; where its own file does not say so, live workers may."""
    from spoold.agents.configuration.merge_settings import REPOS, TABLE, repos_of
    from spoold.agents.configuration.profiles import of_merges

    repo, own = str(profile.workspace.get("repo") or ""), config.handlers.get(TABLE)
    if own is not None and REPOS not in own.about:  # it was written by hand
        return []
    here = repos_of(own.about) if own is not None else ()
    return of_merges(name, repo, here, None) and of_merges(name, repo, here, _elsewhere(ctx, config))


def _elsewhere(ctx: typer.Context, config: WorkerConfig) -> dict[str, tuple[str, ...]] | None:
    """Return what live workers merge, by worker; None where there is no spool to ask."""
    from spoold.agents.configuration.merge_settings import TABLE, repos_of
    from spoold.client.spool.capabilities import list_about
    from spoold.protocol.errors import SpoolError
    from spoold.system.host import SystemHost

    try:
        with session(ctx).spool(config.spool) as spool, spool.reaching():
            found = list_about(spool.store, SystemHost(), spool.store.clock, TABLE)
    except (SpoolError, OSError):
        return None
    return {worker: repos_of(about) for worker, about in found.items()}


def _merger(config: WorkerConfig) -> list[Tried]:
    """Return what is foreseen of [merge] as a row of its own; [] for nothing."""
    from spoold.agents.configuration.merge_settings import TABLE, repos_of
    from spoold.agents.configuration.profiles import of_branches, of_repositories
    from spoold.agents.configuration.trial import Tried

    own = config.handlers.get(TABLE)
    repos = repos_of(own.about) if own is not None else ()
    seen = [*of_repositories(repos), *of_branches(repos)]
    return [Tried(TABLE, "git", "", "", "ok").warned(seen)] if seen else []
