"""Podman as a test has it: a store of its own, and an image that is made of this machine's shell.

Nothing is fetched. The image has a shell and what the trial of a sandbox needs; a test shows it /usr for more.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from spoold.agents.sandbox.sandbox_policy import SandboxPolicy

IMAGE = "localhost/spoold-test:1"
PROGRAMS = ("sh", "mv")
PACKAGES = ("podman", "runc")
WITHIN_S = 120


class Container:
    """A store with one image. environ: where podman finds it; shown: what else a container is to be shown."""

    shown = ("/usr",)

    def __init__(self) -> None:
        self._top = Path(tempfile.mkdtemp(prefix="spoold-podman-"))
        storage, engine = self._top / "storage.conf", self._top / "containers.conf"
        storage.write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{self._top}/graph"\nrunroot = "{self._top}/run"\n'
        )
        # In a container of its own a test may neither raise its limits nor use a mixed hierarchy of control groups.
        runtime = 'runtime = "runc"\n' if shutil.which("runc") else ""
        engine.write_text(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n'
            f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n{runtime}'
        )
        self.environ = {"CONTAINERS_STORAGE_CONF": str(storage), "CONTAINERS_CONF": str(engine)}
        self.sandbox = SandboxPolicy("podman", image=IMAGE)

    def trouble(self) -> str:
        """Make the image and run it once; '' if it ran, else why podman cannot run here."""
        for folder in ("proc", "sys", "dev", "tmp", "run"):
            (self._top / "root" / folder).mkdir(parents=True)
        for program in PROGRAMS:
            found = os.path.realpath(shutil.which(program, path="/usr/bin:/bin") or "")
            self._take(found, f"/usr/bin/{program}")
            said = subprocess.run(["ldd", found], capture_output=True, text=True, check=False).stdout
            for library in re.findall(r"(/\S+)", said):
                self._take(os.path.realpath(library), library)
        self._take("/etc/passwd", "/etc/passwd")
        for name in ("bin", "lib", "lib64"):
            if not (self._top / "root" / name).exists():
                (self._top / "root" / name).symlink_to(f"usr/{name}")
        packed = self._top / "image.tar"
        subprocess.run(["tar", "-C", str(self._top / "root"), "-cf", str(packed), "."], check=True)
        run = ["run", "--rm", "--network=none", "--pull=never", IMAGE, "/usr/bin/sh", "-c", "echo well"]
        for words in (["import", str(packed), IMAGE], run):
            done = self._podman(*words)
            if done.returncode:
                return f"podman does not run here: {' '.join(done.stderr.split())[-300:]}"
        return ""

    def close(self) -> None:
        """Remove all of it."""
        self._podman("system", "reset", "--force")
        shutil.rmtree(self._top, ignore_errors=True)

    def _podman(self, *words: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, **self.environ}
        return subprocess.run(
            ["podman", *words], env=environ, capture_output=True, text=True, check=False, timeout=WITHIN_S
        )

    def _take(self, source: str, at: str) -> None:
        """Copy a file into the image, /lib and the like into /usr."""
        at = at if at.startswith(("/usr/", "/etc/")) else f"/usr{at}"
        target = self._top / "root" / at.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
