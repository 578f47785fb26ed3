"""The command lines of the sandboxes that not every machine can run, and what none of them may say."""

from __future__ import annotations

import pytest

from spoold.agents.sandbox import bwrap, command_line
from spoold.agents.sandbox.sandbox_mounts import Ground, Place
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxPolicy, SandboxRun, Wrapped

GROUND = Ground(
    {"/usr": "/usr"},
    {"/bin": "usr/bin"},
    ("/proc/sys",),
    ("/proc/keys",),
    "/usr/bin/tool",
    "/p",
    "/c.py",
    "/i.py",
    ("/i.py",),
    1000,
)
SCENE = SandboxRun("/w", "/h", calls="/calls.json")
SHOWN = [Place("/w", "/real/w", True), Place("/w/.git/hooks", "/real/w/.git/hooks")]
ENV = {"TOKEN": "hunter2", "PATH": "/bin", "HOME": "/h", "LD_LIBRARY_PATH": "/w/lib"}
OWN = {"HOME": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/1000"}


def line(sandbox: SandboxPolicy, env: dict[str, str] = ENV) -> Wrapped:
    """A command in a sandbox of these kinds."""
    if sandbox.kind == "podman":
        return command_line.podman_command(sandbox, SCENE, SHOWN, GROUND, env, ["agent", "-x"], OWN)
    wrapped = bwrap.bwrap_command(sandbox, SCENE, SHOWN, GROUND, env, ["agent", "-x"])
    return (
        wrapped
        if sandbox.kind == "bwrap"
        else command_line.command(sandbox, wrapped, "/usr/bin/systemd-run", 1000, OWN)
    )


@pytest.mark.parametrize(
    "sandbox",
    [
        SandboxPolicy("bwrap"),
        SandboxPolicy("systemd", memory_mb=100, processes=9),
        SandboxPolicy("podman", image="agents:1"),
    ],
    ids=lambda sandbox: sandbox.kind,
)
def test_every_kind(sandbox: SandboxPolicy) -> None:
    wrapped = line(sandbox)
    assert wrapped.argv[-1] == "-x"
    assert not [word for word in wrapped.argv if "hunter2" in word]
    assert wrapped.env["TOKEN"] == "hunter2"


def test_bubblewrap() -> None:
    argv = " ".join(line(SandboxPolicy("bwrap")).argv)
    assert argv == (
        "/p -I -S /c.py none "
        "/usr/bin/tool --unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --unshare-net "
        "--hostname sandbox --die-with-parent --new-session --cap-drop ALL --disable-userns --ro-bind /usr /usr "
        "--symlink usr/bin /bin --proc /proc --ro-bind /proc/sys /proc/sys "
        "--ro-bind /dev/null /proc/keys "
        "--dev /dev --tmpfs /dev/shm --remount-ro /dev --tmpfs /tmp --bind /real/w /w "
        "--ro-bind /real/w/.git/hooks /w/.git/hooks --remount-ro / --chdir /w --setenv LD_LIBRARY_PATH /w/lib "
        "-- agent -x"
    )
    assert "LD_LIBRARY_PATH" not in line(SandboxPolicy("bwrap")).env
    assert "--disable-userns" not in line(SandboxPolicy("bwrap", nested=True)).argv
    assert "--unshare-net" not in line(SandboxPolicy("bwrap", network="host")).argv


def test_systemd_is_a_scope_around_bubblewrap() -> None:
    wrapped = line(SandboxPolicy("systemd", memory_mb=100, processes=9))
    argv = " ".join(wrapped.argv)
    assert argv.startswith(
        "/usr/bin/systemd-run --user --scope --quiet --collect -p MemoryMax=100M -p MemorySwapMax=0 -p TasksMax=9 -- "
        "/p -I -S /c.py none /usr/bin/tool --unshare-user"
    )
    assert argv.endswith("--unsetenv HOME --unsetenv XDG_RUNTIME_DIR -- agent -x")
    assert wrapped.env["XDG_RUNTIME_DIR"] == "/run/user/1000"


def test_podman() -> None:
    wrapped = line(SandboxPolicy("podman", image="agents:1", memory_mb=100, processes=9))
    argv = " ".join(wrapped.argv)
    assert argv.endswith(
        "--env=TOKEN --env=PATH=/bin --env=HOME=/h --env=LD_LIBRARY_PATH=/w/lib --entrypoint=agent agents:1 -x"
    )
    assert "--security-opt=no-new-privileges --security-opt=seccomp=/calls.json" in argv
    assert "--pull=never --quiet --network=none " in argv
    assert "--read-only --cap-drop=all" in argv
    assert "--userns=keep-id --workdir=/w --memory=100m --pids-limit=9 --volume=/real/w:/w:rw" in argv
    assert "--volume=/real/w/.git/hooks:/w/.git/hooks:ro" in argv
    assert wrapped.env["HOME"] == "/home/ada"
    assert "LD_LIBRARY_PATH" not in wrapped.env
    with pytest.raises(NoSandbox, match="podman cannot show"):
        command_line.podman_command(
            SandboxPolicy("podman", image="i"), SCENE, [Place("/a:b", "/a:b")], GROUND, {}, ["a"], {}
        )


@pytest.mark.parametrize("name", ["LD_PRELOAD", "CONTAINERS_CONF", "CONTAINER_HOST", "XDG_CONFIG_HOME", "GODEBUG"])
def test_a_task_does_not_lead_podman_astray(name: str) -> None:
    """It runs outside of the container, and would load what the variable of a task names."""
    wrapped = line(SandboxPolicy("podman", image="agents:1"), {name: "/w/evil"})
    assert name not in wrapped.env
    assert f"--env={name}=/w/evil" in wrapped.argv


@pytest.mark.parametrize(
    "sandbox", [SandboxPolicy("bwrap"), SandboxPolicy("podman", image="i")], ids=lambda one: one.kind
)
@pytest.mark.parametrize("name", ["LD_PRELOAD", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES"])
def test_what_leads_a_library_counts_inside_alone(sandbox: SandboxPolicy, name: str) -> None:
    wrapped = line(sandbox, {name: "/w/evil", "PATH": "/bin"})
    assert name not in wrapped.env
    assert "/w/evil" in " ".join(wrapped.argv)
