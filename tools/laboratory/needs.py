"""What the lab needs of a machine, what of that is missing, and how it is got.

May touch: Debian's packages, through apt-get, when asked to.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.laboratory import registers

# What must be there, and the Debian package that brings it.
PROGRAMS = {
    "/usr/bin/linux.uml": "user-mode-linux",
    "/usr/sbin/ip": "iproute2",
    "/usr/sbin/modprobe": "kmod",
    "/usr/sbin/exportfs": "nfs-kernel-server",
    "/usr/sbin/rpc.nfsd": "nfs-kernel-server",
    "/usr/sbin/mount.nfs": "nfs-common",
    "/usr/sbin/rpcbind": "rpcbind",
    "/usr/sbin/mount.cifs": "cifs-utils",
    "/usr/sbin/smbd": "samba",
    "/usr/bin/smbpasswd": "samba-common-bin",
    "/usr/lib/python3/dist-packages/samba/__init__.py": "python3-samba",
    "/usr/bin/pgrep": "procps",
    "/usr/sbin/mkfs.ext4": "e2fsprogs",
    "/usr/sbin/debootstrap": "debootstrap",
}
SERVICES = {
    "samba": ("smbd", "nmbd", "samba-ad-dc"),
    "nfs-kernel-server": ("nfs-server",),
    "rpcbind": ("rpcbind.service", "rpcbind.socket"),
}
POLICY = Path("/usr/sbin/policy-rc.d")
TUN = Path("/dev/net/tun")


def missing() -> list[str]:
    """Why this machine cannot run the lab, each reason with its mend; empty when it can."""
    reasons = []
    if os.uname().sysname != "Linux" or os.uname().machine != "x86_64":
        reasons.append("it needs Linux on x86_64, which User Mode Linux is packaged for")
    if os.geteuid() != 0:
        reasons.append("it needs root, for network namespaces: run it with sudo")
    if not os.access(TUN, os.R_OK | os.W_OK):
        reasons.append(f"{TUN} cannot be opened: modprobe tun, or give the container that device")
    if absent := _absent():
        reasons.append(f"packages are missing: apt-get install {' '.join(absent)}")
    elif os.geteuid() == 0 and not _may_make_namespaces():
        reasons.append("`ip netns add` is refused here: the container lacks CAP_SYS_ADMIN or CAP_NET_ADMIN")
    return reasons


def install() -> None:
    """Install the packages that are missing. Errors: SystemExit with what apt-get said."""
    absent = _absent()
    if not absent:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SystemExit(f"netlab: packages are missing, and only root on Debian can get them: {' '.join(absent)}")
    print(f"netlab: installing {' '.join(absent)}", file=sys.stderr)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _no_services():
        for command in (["update", "-q"], ["install", "-qy", "--no-install-recommends", *absent]):
            done = subprocess.run(
                ["apt-get", *command],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode:
                raise SystemExit(f"netlab: apt-get {' '.join(command)} failed:\n{done.stdout[-4000:]}")
    for package in absent:
        # The lab's servers run in its guests. On the host they would be open to whoever reaches it.
        for service in SERVICES.get(package, ()):
            subprocess.run(["systemctl", "disable", "--quiet", service], capture_output=True, check=False)


def _absent() -> list[str]:
    needed = {**PROGRAMS, **(registers.COMPILER if registers.too_many() else {})}
    return sorted({package for program, package in needed.items() if not Path(program).exists()})


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    """While packages are installed, their services must not start; Debian asks this file (invoke-rc.d(8))."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def _may_make_namespaces() -> bool:
    name = f"spoold-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made.returncode == 0
