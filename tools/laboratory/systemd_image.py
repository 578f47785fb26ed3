"""The disk of a laptop that systemd runs: Debian, made once, kept in the user's cache, never written to again.

It is Debian as debootstrap makes it, the modules of the guests' kernel, the lab's agent as a unit, and a Python
environment in /opt/spoold with what spoold depends on, but not spoold itself, which changes. A guest boots from a
copy-on-write file over the image, so that every lab begins with the same disk.

May touch: its folder in the cache, this machine's package mirror, through debootstrap and pip. Changes nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
MODULES = Path("/usr/lib/uml/modules")
ENVIRONMENT = "/opt/spoold"
PACKAGES = (
    "systemd", "systemd-sysv", "udev", "dbus", "dbus-user-session", "libpam-systemd", "libnss-myhostname", "kmod",
    "iproute2", "procps", "nfs-common", "python3", "python3-venv", "sudo",
)  # fmt: skip
# Of no use to a machine that lives for minutes, and slow where two processors are shared by several of them.
NEEDLESS = ("e2scrub_reap.service", "e2scrub_all.timer", "apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer")
SIZE_MB = 2048
KEPT_S = 30 * 86400
AGENT = "netlab-agent.service"


def image() -> Path:
    """The image of this machine's Debian release; made if it is not there. Errors: RuntimeError with what failed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "spoold"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "systemd.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = cache / f"systemd-{key()}.ext4"
        if not found.exists():
            print("netlab: making the disk of a systemd laptop, once; it takes a minute or two", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                _make(Path(scratch) / "root", Path(scratch) / "disk")
                (Path(scratch) / "disk").rename(found)
        os.utime(found)
        for other in cache.glob("systemd-*.ext4"):
            if time.time() - other.stat().st_mtime > KEPT_S:
                other.unlink()
    return found


def key() -> str:
    """What the image is made from, as a name: the release, the kernel, the dependencies, and this recipe."""
    parts = [
        release().encode(),
        *(name.name.encode() for name in sorted(MODULES.glob("*"))),
        *map(str.encode, pins()),
    ]
    parts += [path.read_bytes() for path in (HERE / "guest/agent.py", *sorted((HERE / "guest/systemd").iterdir()))]
    parts.append(Path(__file__).read_bytes())
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]


def release() -> str:
    """The release of Debian that this machine runs, such as bookworm."""
    lines = Path("/etc/os-release").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"].strip('"')


def pins() -> list[str]:
    """All that spoold needs at run time, in the versions of the lock, as pip requirements."""
    lock = {package["name"]: package for package in tomllib.loads((CHECKOUT / "uv.lock").read_text())["package"]}
    wanted, seen = ["spoold"], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in seen:
            seen.add(name)
            # A marker other than Linux's is never true in the guest, and a package too many does no harm.
            needs = lock[name].get("dependencies", [])
            wanted += [need["name"] for need in needs if "win32" not in need.get("marker", "")]
    return sorted(f"{name}=={lock[name]['version']}" for name in seen - {"spoold"})


def mirror(targets: str, suite: str) -> str:
    """The mirror of a suite, from lines `SITE SUITE` of apt's own sources. Errors: RuntimeError if there is none."""
    for line in targets.splitlines():
        site, _, of = line.partition(" ")
        if of == suite:
            return site
    raise RuntimeError(f"no apt source of this machine has {suite}; add one to /etc/apt/sources.list.d")


def _make(root: Path, disk: Path) -> None:
    sources = run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages")
    proxy = run("apt-config", "--format", "%v", "dump", "Acquire::http::Proxy").strip()
    packages = ",".join(PACKAGES)
    site = mirror(sources, release())
    run(
        "debootstrap", "--variant=minbase", f"--include={packages}", release(), str(root), site,
        env={"http_proxy": proxy} if proxy else {},
    )  # fmt: skip
    shutil.copytree(MODULES, root / "lib/modules", dirs_exist_ok=True, symlinks=True)
    for path, source, mode in (
        ("usr/local/lib/netlab/agent.py", HERE / "guest/agent.py", 0o644),
        (f"etc/systemd/system/{AGENT}", HERE / "guest/systemd" / AGENT, 0o644),
        ("etc/systemd/system-generators/netlab", HERE / "guest/systemd/netlab-generator", 0o755),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(source.read_bytes())
        (root / path).chmod(mode)
    run("systemctl", f"--root={root}", "enable", AGENT, "systemd-networkd", "systemd-networkd-wait-online")
    run("systemctl", f"--root={root}", "mask", *NEEDLESS)
    (root / "etc/fstab").write_text("/dev/ubda / ext4 defaults 0 1\n")
    (root / "mnt/share").mkdir()
    (root / "etc/machine-id").write_text("")  # each guest gets its own on the kernel's command line
    for secret in ("etc/hostname", "etc/resolv.conf"):
        (root / secret).unlink(missing_ok=True)
    _environment(root)
    shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
    with disk.open("wb") as file:
        file.truncate(SIZE_MB << 20)
    run("/usr/sbin/mkfs.ext4", "-q", "-F", "-d", str(root), str(disk))


def _environment(root: Path) -> None:
    """What spoold depends on, fetched with the settings of this machine's pip for the Python of the image."""
    wheels = root / "opt/wheels"
    version = (root / "usr/bin/python3").readlink().name.removeprefix("python")
    # Debian has pip as a wheel that runs as it is, so that the host needs none; it knows no Python that is newer than
    # the image's own, which runs outside of it, too.
    pip = next((root / "usr/share/python-wheels").glob("pip-*.whl")) / "pip"
    python = root / "usr/bin" / f"python{version}"
    platforms = [f"--platform=manylinux{name}_x86_64" for name in ("_2_28", "_2_17", "2014")]
    run(
        str(python), "-B", str(pip), "download", "--quiet", "--no-deps", "--only-binary=:all:", f"--dest={wheels}",
        f"--python-version={version}", *platforms, *pins(),
        env={"LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu")},
    )  # fmt: skip
    run("chroot", str(root), "python3", "-m", "venv", ENVIRONMENT)
    run("chroot", str(root), f"{ENVIRONMENT}/bin/pip", "install", "--quiet", "--no-index", "--no-deps",
         *(f"/opt/wheels/{wheel.name}" for wheel in sorted(wheels.iterdir())))  # fmt: skip


def run(*command: str, env: dict[str, str] | None = None) -> str:
    """What a command of the host printed. Errors: RuntimeError with what it said."""
    done = subprocess.run(
        command,
        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout
