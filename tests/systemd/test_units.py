"""The units that ship and the units that are rendered are the same, and systemd itself finds nothing to say."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import get_args

import pytest

from spoold.daemon import systemd_units
from spoold.daemon.loop import ASLEEP
from spoold.daemon.systemd_units import MASTER, NETWORK, POLICY, SLEEP, WORKER, Scope, render, shipped
from tests.cli.commands import spool

CHECKOUT = Path(__file__).resolve().parents[2]
# What a stop takes at most beyond the drain's grace: kill what did not end, hand it back, say so.
HAND_OVER_S = 30
SCOPES: tuple[Scope, ...] = get_args(Scope)


def install(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def parsed(text: str) -> configparser.ConfigParser:
    """A unit as sections and keys; strict, so a key that is set twice is an error."""
    unit = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[method-assign, assignment]
    unit.read_string(text)
    return unit


@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_rendered_by_default_is_what_ships(scope: Scope) -> None:
    files = render(scope, "/mnt/spool", "lab")
    for unit in (MASTER, WORKER):
        assert files[f"{systemd_units.FOLDER[scope]}/{unit}"] == (CHECKOUT / "systemd" / scope / unit).read_text()
        assert f"ExecStart={systemd_units.EXECUTABLE[scope]} " in shipped(f"{scope}/{unit}")
    shipped_units = {path.name for path in (CHECKOUT / "systemd" / scope).iterdir()}
    assert shipped_units == {MASTER, WORKER, *((SLEEP,) if scope == "system" else ())}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("spool_dir", ["/mnt/spool", '/mnt/my "best" share/50%'])
def test_systemd_accepts_every_unit(scope: Scope, spool_dir: str, tmp_path: Path) -> None:
    executable = tmp_path / "a bin" / "spool"
    executable.parent.mkdir()
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    install(tmp_path, render(scope, spool_dir, "lab", str(executable)))
    folder = tmp_path / systemd_units.FOLDER[scope]
    checked = [MASTER, "spool-worker@lab.service", *((SLEEP,) if scope == "system" else ())]
    done = subprocess.run(
        ["systemd-analyze", f"--{scope}", "verify", "--man=no", *(folder / unit for unit in checked)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    # An unknown key is only a warning to systemd, so silence is asked for, not just success.
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("unit", [MASTER, WORKER])
def test_a_daemon_is_watched_drained_and_restarted_unless_it_was_told_to_go(scope: Scope, unit: str) -> None:
    service = parsed(shipped(f"{scope}/{unit}"))
    assert service["Unit"]["StartLimitIntervalSec"] == "0"
    expected = {"Type": "notify", "NotifyAccess": "main", "KillMode": "mixed", "Restart": "on-failure"}
    assert expected.items() <= dict(service["Service"]).items()
    assert int(service["Service"]["WatchdogSec"]) > 0
    assert int(service["Service"]["TimeoutStopSec"]) >= HAND_OVER_S


@pytest.mark.parametrize("scope", SCOPES)
def test_a_worker_may_make_the_control_groups_that_it_freezes(scope: Scope) -> None:
    """A controller that units have anyway: with all of them, tasks would be scheduled in another way."""
    assert parsed(shipped(f"{scope}/{WORKER}"))["Service"]["Delegate"] == "pids"


def test_the_system_waits_for_the_share_and_a_user_cannot() -> None:
    drop_in = parsed(render("system", "/mnt/50%", "lab")[f"etc/systemd/system/{MASTER}.d/50-spool.conf"])
    assert drop_in["Unit"]["Wants"] == drop_in["Unit"]["After"] == "mnt.mount mnt-50\\x25.mount"
    assert drop_in["Service"]["Environment"] == "SPOOL_DIR=/mnt/50%%"
    assert ".mount" not in render("user", "/mnt/50%", "lab")[f"systemd/user/{MASTER}.d/50-spool.conf"]
    assert "remote-fs.target" in shipped(f"system/{WORKER}")


def test_a_share_that_comes_late_does_not_leave_a_unit_down_for_good() -> None:
    """A mount that is required and fails fails the unit, and systemd does not start it again."""
    for path, text in render("system", "/mnt/spool", "lab").items():
        assert re.findall(r"^(Requires|RequiresMountsFor|Requisite|BindsTo)=.*", text, re.MULTILINE) == [], path


@pytest.mark.skipif(shutil.which("systemd-escape") is None, reason="systemd-escape is not installed here")
@pytest.mark.parametrize("spool_dir", ["/mnt/spool", "/mnt//a b/", "/srv/.hidden-x/ü", "/.a"])
def test_mounts_are_spelt_as_systemd_spells_them(spool_dir: str) -> None:
    drop_in = parsed(render("system", spool_dir, "lab")[f"etc/systemd/system/{MASTER}.d/50-spool.conf"])
    command = ["systemd-escape", "-p", "--suffix=mount", spool_dir]
    spelt = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert drop_in["Unit"]["Wants"].split()[-1] == spelt


def test_nothing_gives_the_share_a_view_of_its_own_or_takes_setuid_away_twice() -> None:
    """A private bind mount would outlive the share; an option that implies NoNewPrivileges= could not be lifted."""
    for unit in (MASTER, WORKER):
        service = parsed(shipped(f"system/{unit}"))["Service"]
        assert not {"ReadWritePaths", "BindPaths", "RootDirectory"} & set(service)
        assert service["ProtectSystem"] == "full"
    worker = set(parsed(shipped(f"system/{WORKER}"))["Service"])
    assert not {"SystemCallFilter", "RestrictNamespaces", "PrivateDevices", "RestrictSUIDSGID"} & worker


@pytest.mark.parametrize(
    ("spool_dir", "name", "executable", "mend"),
    [
        ("mnt/spool", "lab", None, "absolute path"),
        ("/mnt/a\nUser=root", "lab", None, "printable"),
        ("/mnt/spool", "../x", None, "letters, digits"),
        ("/mnt/spool", "a b", None, "letters, digits"),
        ("/mnt/spool", "", None, "letters, digits"),
        ("/mnt/spool", "lab", "spool", "absolute path"),
        ("/tmp/spool", "lab", None, "use another place"),
        ("/var/tmp", "lab", None, "use another place"),
    ],
)
def test_what_no_unit_can_say_is_refused_with_the_mend(
    spool_dir: str, name: str, executable: str | None, mend: str
) -> None:
    with pytest.raises(ValueError, match=mend):
        render("system", spool_dir, name, executable)


def test_the_account_has_one_number_everywhere() -> None:
    files = render("system", "/mnt/spool", "lab")
    lines = [line for line in files["etc/sysusers.d/spoold.conf"].splitlines() if not line.startswith("#")]
    assert lines[0].split()[:3] == ["g", "spool", "617"]
    assert lines[1].split()[:3] == ["u", "spool", "617:617"]
    service = parsed(shipped(f"system/{WORKER}"))["Service"]
    assert (service["User"], service["Group"]) == ("spool", "spool")


def test_the_wheel_carries_the_units(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"spoold/daemon/systemd/{scope}/{unit}" for scope in SCOPES for unit in (MASTER, WORKER)} <= names
    assert {f"spoold/daemon/systemd/{kind}/spoold.conf" for kind in ("sysusers.d", "tmpfiles.d")} <= names
    assert "spoold/daemon/systemd/README.md" in names  # what `--guide` prints
    laptop = {f"system/{SLEEP}", "networkmanager/50-spoold", "polkit/50-spoold.rules"}
    assert {f"spoold/daemon/systemd/{path}" for path in laptop} <= names


def test_what_a_laptop_needs_is_the_systems_alone() -> None:
    """A user's manager has no sleep.target, and may write to neither of the other places."""
    files = render("system", "/mnt/spool", "lab")
    assert files[NETWORK].startswith("#!")
    assert 'subject.user == "spool"' in files[POLICY]
    assert not {NETWORK, POLICY, f"systemd/user/{SLEEP}"} & set(render("user", "/mnt/spool", "lab"))


FAKE_SYSTEMCTL = """#!/bin/sh
echo "$@" >> {here}/asked
[ "$1" = show ] || exit 0
cat {here}/status
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("StatusText=laptop1-7f3a runs 1 of at most 4 tasks", f"StatusText={ASLEEP}"),
        (f"StatusText=m1 leads epoch 3\n\nStatusText={ASLEEP}", f"StatusText={ASLEEP}\n\nStatusText={ASLEEP}"),
        ("StatusText=laptop1-7f3a runs 1 of at most 4 tasks", "StatusText=trouble: Host is down"),
        ("StatusText=laptop1-7f3a runs 0 of at most 4 tasks", "StatusText="),
        ("StatusText=laptop1-7f3a runs 0 of at most 4 tasks", ""),
    ],
)
def test_the_machine_waits_until_nobody_has_anything_to_hand_back(before: str, after: str, tmp_path: Path) -> None:
    """The second ExecStart of spool-sleep.service, read as systemd reads it, asking a systemctl of ours."""
    text = shipped(f"system/{SLEEP}").replace("\\\n", "")
    [script] = re.findall(r"^ExecStart=-/bin/sh -c '(.*)'$", text, re.MULTILINE)
    (tmp_path / "systemctl").write_text(FAKE_SYSTEMCTL.format(here=tmp_path))
    (tmp_path / "systemctl").chmod(0o755)
    (tmp_path / "status").write_text(f"{before}\n")
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    waiting = subprocess.Popen(["/bin/sh", "-c", script.replace("$$", "$")], env=environ)
    try:
        asked = tmp_path / "asked"
        until = time.monotonic() + 20
        while not (asked.exists() and len(asked.read_text().splitlines()) > 2):
            assert time.monotonic() < until
            assert waiting.poll() is None, "it has not waited for a task"
            time.sleep(0.02)
        (tmp_path / "new").write_text(f"{after}\n")
        (tmp_path / "new").rename(tmp_path / "status")
        assert waiting.wait(10) == 0
    finally:
        waiting.kill()
        waiting.wait()


def test_what_the_units_point_at_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    for scope in SCOPES:
        for path, text in render(scope, "/mnt/spool", "lab").items():
            assert "README" not in text, path
            if path.endswith(".service"):
                assert "`spool install-units --guide`" in text, path
    done = spool("install-units", "--guide")
    assert done.code == 0
    assert done.out.startswith("# spoold under systemd\n")
    assert "## The share" in done.out
