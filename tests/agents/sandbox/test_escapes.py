"""Thirteen ways out of a sandbox are tried, and lead nowhere.

Each is tried without a sandbox first, as far as that does no harm: there it leads out. Else the test could not fail.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from spoold.agents.process.confinement import mailbox
from spoold.agents.sandbox.command_line import wrap
from spoold.agents.sandbox.protected_files import disarm, guarded
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxPolicy
from tests.agents.sandbox.stage import KEY, Stage

OPEN = SandboxPolicy()
pytestmark = pytest.mark.parametrize("stage", ["own", "nobody", "podman"], indirect=True)


def test_1_to_read_keys(stage: Stage) -> None:
    script = 'cat "$TOP/user/.ssh/id_ed25519" ../.ssh/id_ed25519 ~root/.ssh/* 2>&1; echo end'
    assert KEY in stage.run(script, OPEN)
    seen = stage.run(script, stage.walls)
    assert KEY not in seen
    assert "end" in seen


def test_2_to_write_outside(stage: Stage) -> None:
    script = """
    for path in "$TOP/new" "$TOP/user/new" ../new /new; do echo x >"$path"; done
    echo x >inside; echo x >"$HOME/inside"; echo x >/tmp/inside; echo end
    """
    stage.run(script.replace("/new;", ";").replace("/tmp/inside", "inside"), OPEN)
    assert (stage.top / "new").exists()
    assert (stage.top / "user/new").exists()
    (stage.top / "new").unlink()
    (stage.top / "user/new").unlink()
    (stage.workspace / "inside").unlink()
    assert "end" in stage.run(script, stage.walls)
    assert (stage.workspace / "inside").exists()
    assert (stage.home / "inside").exists()
    assert not list(stage.top.rglob("new"))
    assert not Path("/new").exists()
    assert not Path("/tmp/inside").exists()


WAYS = (
    "$TOP/spool",
    "../../spool",
    "/proc/self/cwd/../../spool",
    "/proc/$VICTIM/root$TOP/spool",
    "/proc/1/root$TOP/spool",
)


@pytest.mark.parametrize("way", WAYS)
def test_3_to_reach_the_spool(stage: Stage, way: str) -> None:
    script = f'echo "{{}}" >{way}/pending/mine.json; ls {way} 2>&1; echo end'
    if way != WAYS[-1]:  # outside, process 1 is somebody else's
        assert "pending" in stage.run(script, OPEN)
        (stage.spool / "pending/mine.json").unlink()
    seen = stage.run(script, stage.walls)
    assert "end" in seen
    assert "\npending" not in f"\n{seen}"
    assert not list((stage.spool / "pending").iterdir())


def test_3_to_have_the_spool_shown(stage: Stage) -> None:
    (stage.workspace / "link").symlink_to(stage.spool)
    for path in (stage.spool, stage.spool / "pending", stage.top, stage.workspace / "link"):
        with pytest.raises(NoSandbox, match="would show the spool"):
            stage.run("true", stage.walls, shown=(str(path),))


def test_4_to_kill_the_supervisor(stage: Stage) -> None:
    seen = stage.run('kill -9 "$VICTIM" $PPID 2>&1; kill -9 -1; echo end', stage.walls)
    assert "end" in seen or not seen  # kill -1 may take the shell with it
    assert stage.victim.poll() is None
    stage.run('kill -9 "$VICTIM"', OPEN)
    assert stage.victim.wait(10) == -signal.SIGKILL


PTRACE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pid = int(os.environ["VICTIM"])
attached = libc.ptrace(16, pid, 0, 0)
print("attached" if attached == 0 else "errno %d" % ctypes.get_errno(), flush=True)
"""


def test_5_to_trace_a_process(stage: Stage) -> None:
    assert "attached" in stage.python(PTRACE, OPEN)
    assert "errno" in stage.python(PTRACE, stage.walls)


def test_6_to_leave_survivors(stage: Stage) -> None:
    mark = f"9{stage.victim.pid}97"
    script = f"setsid sleep {mark} >/dev/null 2>&1 & (setsid setsid sleep {mark} >/dev/null 2>&1 &) ; echo end"
    assert "end" in stage.run(script, OPEN)
    # A setsid with this mark has yet to start its sleep.
    for pid in stage.wait_for(mark, 2, "sleep"):
        os.kill(int(pid), signal.SIGKILL)
    stage.wait_for_the_end_of(mark)
    assert "end" in stage.run(script, stage.walls)
    stage.wait_for_the_end_of(mark)


def test_6_to_survive_the_end_of_the_sandbox(stage: Stage) -> None:
    if stage.walls.kind == "podman":
        pytest.skip("what podman has started is ended by the supervisor, as every process of a task: test_podman")
    mark = f"9{stage.victim.pid}98"
    wrapped = wrap(stage.walls, ["sh", "-c", f"setsid sleep {mark} & echo up; wait; sleep {mark}"], stage.scene())
    argv = stage.reached(wrapped.argv)
    with subprocess.Popen(argv, env=wrapped.env, user=stage.uid, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"up\n"
        assert stage.marked(mark)
        started.kill()
        assert started.stdout.read() == b""  # at its end, all that held the pipe are gone
    stage.wait_for_the_end_of(mark)


def test_7_to_look_at_other_processes(stage: Stage) -> None:
    script = (
        "cat /proc/$VICTIM/environ /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; ls -d /proc/[0-9]*"
    )
    assert f"VICTIM_SECRET={KEY}" in stage.run(script, OPEN)
    seen = stage.run(script, stage.walls)
    assert "VICTIM_SECRET" not in seen
    assert 0 < len(re.findall(r"^/proc/[0-9]+$", seen, re.MULTILINE)) < 10


CONNECT = """
import os, socket
port = os.environ["PORT"]
for kind, to in ((socket.AF_INET, ("127.0.0.1", int(port))), (socket.AF_UNIX, "\\0" + port)):
    s = socket.socket(kind)
    s.settimeout(5)
    print("connected" if s.connect_ex(to) == 0 else "refused", flush=True)
"""


def test_8_to_reach_the_network(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door, socket.socket(socket.AF_UNIX) as abstract:
        stage.variables["PORT"] = str(door.getsockname()[1])
        abstract.bind("\0" + stage.variables["PORT"])
        abstract.listen()
        assert stage.python(CONNECT, OPEN).split() == ["connected", "connected"]
        assert stage.python(CONNECT, replace(stage.walls, network="host")).split() == ["connected", "connected"]
        assert stage.python(CONNECT, stage.walls).split() == ["refused", "refused"]


def test_9_to_gain_rights(stage: Stage) -> None:
    script = """
    grep -E 'NoNewPrivs|Cap(Eff|Bnd|Prm)' /proc/self/status
    mount -t tmpfs none /tmp && echo OUT mount
    unshare -Ur true && echo OUT unshare
    mknod /tmp/disk b 8 0 && echo OUT mknod
    chroot / true && echo OUT chroot
    cp /bin/sh "$HOME/sh" && chmod u+s "$HOME/sh"
    cat /proc/sys/kernel/panic >/proc/sys/kernel/panic && echo OUT panic
    mount -o remount,rw / && echo OUT remount
    umount /usr && echo OUT umount
    echo end
    """
    assert "NoNewPrivs:\t0" in stage.run("grep NoNewPrivs /proc/self/status", OPEN)
    seen = stage.run(script, stage.walls)
    assert "OUT" not in seen
    assert "end" in seen
    assert "NoNewPrivs:\t1" in seen
    assert seen.count("0000000000000000") == 3


HOOKS = """
echo '#!/bin/sh' >hook; echo 'touch "$TOP/ran"' >>hook; chmod +x hook
cp hook .git/hooks/post-index-change; cp hook .git/hooks/pre-commit
mv .git/hooks .git/hooks-old && mkdir .git/hooks && cp hook .git/hooks/pre-commit
git config core.fsmonitor "$PWD/hook"
echo '[core] fsmonitor = hook' >>.git/config
mv .git .git-old && cp -r .git-old .git && cp hook .git/hooks/pre-commit
rm -rf .git/config .git/hooks; mkdir -p .git/hooks; cp hook .git/hooks/pre-commit
echo x >file; git add file && git -c user.name=a -c user.email=a@b commit -qm second && echo committed
"""


def test_10_to_run_code_through_git(stage: Stage) -> None:
    before = stage.git("config", "--list")
    held = guarded(str(stage.workspace), "own")
    stage.run("git --version", stage.walls)
    assert "committed" in stage.run(HOOKS, stage.walls)  # the agent itself may commit
    stage.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-qm", "ours")
    assert not (stage.top / "ran").exists()
    assert stage.git("config", "--list") == before
    assert disarm(held) == []
    stage.run(HOOKS, OPEN)
    assert (stage.workspace / ".git/hooks/pre-commit").exists()


AWAY = """
mkdir -p evil/objects evil/refs evil/hooks; echo 'ref: refs/heads/main' >evil/HEAD
printf '#!/bin/sh\ntouch "$TOP/ran"\n' >evil/run; chmod +x evil/run
printf '[core]\nrepositoryformatversion = 0\nfsmonitor = %s/evil/run\n' "$PWD" >evil/config
echo ../evil >.git/commondir; cp evil/config .git/config.worktree
mv .git .git-old; mv evil .git; echo "gitdir: evil" >.git; echo end
"""


def test_10_a_way_that_opens_later_is_closed_before_anyone_uses_git_there(stage: Stage) -> None:
    held = guarded(str(stage.workspace), "own")
    assert "end" in stage.run(AWAY, stage.walls)
    git = stage.workspace / ".git"
    assert disarm(held) == [f"{git}/commondir", f"{git}/config.worktree"]
    stage.git("status")
    assert not (stage.top / "ran").exists()


@pytest.mark.parametrize("there", [True, False])
def test_10_a_repository_that_others_use_is_as_before(stage: Stage, there: bool) -> None:
    """G3: of the owner's repository nothing changes, also where the attempt is killed; and where he has none yet, the
    agent makes none for him."""
    git = stage.workspace / ".git"
    if not there:
        subprocess.run(["rm", "-r", str(git)], check=True)
    stage.whose = "shared"
    before = {path: path.read_bytes() for path in git.rglob("*") if path.is_file()}
    held = stage.scene().held
    for script in (AWAY, HOOKS, "git init -q . ; git config core.fsmonitor /bin/true"):
        stage.run(script, stage.walls, held=held)
    assert {path: path.read_bytes() for path in git.rglob("*") if path.is_file()} == before
    disarm(held)
    assert git.exists() == there
    if there:
        stage.git("status")
    assert not (stage.top / "ran").exists()


REPLACE = """
mv libs libs.old; mv libs/sub libs/old; mkdir -p libs/sub && cd libs/sub && git init -q . && echo x >.git/made
cd "$OLDPWD"; echo x >>.bare/config; echo x >.bare/hooks/made; mv .bare .away; echo x >libs/new; echo end
"""


def test_10_a_git_directory_of_any_name_is_held_and_no_folder_above_it_moves(stage: Stage) -> None:
    """B3, B4: as a file `.git` names it, and a submodule's."""
    (stage.workspace / ".git").rename(stage.workspace / ".bare")
    (stage.workspace / ".git").write_text("gitdir: ./.bare\n")
    inner = stage.workspace / "libs/sub"
    (inner / ".git/refs").mkdir(parents=True)
    for path in (stage.workspace / ".git", *stage.workspace.glob("libs/**/*"), stage.workspace / "libs"):
        os.chown(path, stage.uid, stage.uid)
    stage.whose = "shared"
    before = {path: path.read_bytes() for path in (stage.workspace / ".bare").rglob("*") if path.is_file()}
    assert "end" in stage.run(REPLACE, stage.walls)
    assert {path: path.read_bytes() for path in (stage.workspace / ".bare").rglob("*") if path.is_file()} == before
    assert os.listdir(inner / ".git") == ["refs"]
    assert sorted(os.listdir(stage.workspace / "libs")) == ["new", "sub"], "the agent writes beside it"


def test_11_to_follow_a_link_out(stage: Stage) -> None:
    script = """
    ln -s "$TOP/user/.ssh" way; cat way/id_ed25519; echo x >way/new
    ln -s "$TOP/user/.ssh/id_ed25519" "$SPOOL_RESULT_FILE"; ln "$TOP/user/.ssh/id_ed25519" "$SPOOL_PROGRESS_FILE"
    echo end
    """
    folder = stage.top / "attempt"
    folder.mkdir()
    own = {"SPOOL_RESULT_FILE": f"{folder}/result.json", "SPOOL_PROGRESS_FILE": f"{folder}/progress.json"}
    box = mailbox(own, f"{folder}/out")
    os.chown(f"{folder}/out", stage.uid, stage.uid)
    stage.variables |= box.env
    seen = stage.run(script, stage.walls, writable=box.writable)
    assert KEY not in seen
    assert "end" in seen
    assert not (stage.keys / "new").exists()
    assert len(box.deliver()) == 1
    assert [path.name for path in folder.iterdir()] == ["out"]
    (folder / "out/result.json").unlink()
    (stage.workspace / "way").unlink()
    # Without a sandbox the links lead out; a link is refused all the same.
    assert KEY in stage.run(script, OPEN)
    assert (stage.keys / "new").exists()
    assert len(box.deliver()) == 2
    assert [path.name for path in folder.iterdir()] == ["out"]


def test_11_a_link_of_the_last_attempt(stage: Stage) -> None:
    (stage.workspace / ".claude").symlink_to(stage.keys)
    with pytest.raises(NoSandbox, match="is a link out"):
        stage.run("true", stage.walls)


def test_12_to_see_the_environment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    stage.variables |= {"GIVEN": "given", "LD_PRELOAD": "libnothing.so"}
    seen = stage.run("env; cat /proc/*/environ | tr '\\0' '\\n'", stage.walls)
    names = {line.partition("=")[0] for line in stage.run("env", stage.walls).splitlines()}
    assert KEY not in seen
    assert "GIVEN=given" in seen
    names -= {"container", "HOSTNAME", "TERM"} if stage.walls.kind == "podman" else set()
    assert names == {"PATH", "TOP", "VICTIM", "GIVEN", "LD_PRELOAD", "HOME", "TMPDIR", "PWD"}
    assert "LD_PRELOAD" not in wrap(stage.walls, ["true"], stage.scene()).env
    assert "given" not in " ".join(wrap(stage.walls, ["true"], stage.scene()).argv)


# Past what namespaces divide: a key of another session by its serial number, a socket to the host of a virtual
# machine, and what no filter of sockets sees. Each says whether the kernel has it at all.
CALLS = """
import ctypes, os, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
keyctl, uring = (250, 425) if platform.machine() == "x86_64" else (219, 425)
print("key", "reached" if libc.syscall(keyctl, 11, int(os.environ["SERIAL"]), 0, 0, 0) >= 0 else "none")
print("ring", "made" if libc.syscall(uring, 1, ctypes.create_string_buffer(512)) >= 0 else "none")
try:
    socket.socket(40, socket.SOCK_STREAM)  # AF_VSOCK
    print("host made")
except OSError as error:
    print("host none")
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_NETLINK):
    socket.socket(family, socket.SOCK_DGRAM)
print("end")
"""


def test_13_to_make_calls_that_namespaces_do_not_divide(stage: Stage) -> None:
    stage.variables["SERIAL"] = serial = str(user_key(stage))
    outside = stage.python(CALLS, OPEN)
    if serial != "0":
        assert "key reached" in outside
    elif "made" not in outside:
        pytest.skip("this kernel has none of these calls, or what runs the tests refuses them")
    seen = stage.python(CALLS, stage.walls)
    assert seen.splitlines() == ["key none", "ring none", "host none", "end"]
    assert not stage.run("cat /proc/keys /proc/key-users /proc/timer_list 2>/dev/null", stage.walls)


ADD = """
import ctypes, platform
add, keyctl, user = (248, 250, -4) if platform.machine() == "x86_64" else (217, 219, -4)
libc = ctypes.CDLL(None)
made = libc.syscall(add, b"user", b"spoold-stage", b"secret", 6, user)
# Everything that its owner may do: what is tried is the wall, not the key's own rights.
libc.syscall(keyctl, 5, made, 0x3F3F0000) if made > 0 else None
print(max(made, 0))
"""


def user_key(stage: Stage) -> int:
    """Return the serial number of a key of the user's own keyring; 0 where there are no keys."""
    return int(stage.python(ADD, OPEN) or 0)


FILLS = """
for path in /tmp/a /dev/shm/a; do head -c 30000000 /dev/zero >$path 2>/dev/null; stat -c %s $path; rm $path; done
( : >/dev/mine ) 2>/dev/null && echo OUT; echo end
"""


def test_14_to_fill_the_memory(stage: Stage) -> None:
    """N13: what lies in a file system in memory is no memory of a process."""
    if stage.walls.kind == "bwrap":
        sizes = stage.run(FILLS, stage.walls, memory_mb=10).split()
        assert sizes == ["10485760", "10485760", "end"]
    else:
        assert f",size={10 << 20}" in " ".join(wrap(stage.walls, ["true"], stage.scene(memory_mb=10)).argv)
    assert "30000000" in stage.run(FILLS, stage.walls)
