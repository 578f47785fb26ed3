"""A guest is ended whole, whoever had the numbers of its processes before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.pool import wait_for
from tools.laboratory.guests import Guest
from tools.laboratory.network import Network


def test_a_process_that_has_the_number_of_one_that_was_seen_before_is_ended(tmp_path: Path) -> None:
    guest = Guest("server", "server", 2, Network("spoold-none"), tmp_path)
    words = ("-c", "import time; time.sleep(60)", "umid=server", f"uml_dir={tmp_path}/uml")
    with subprocess.Popen([sys.executable, *words], start_new_session=True) as process:
        try:
            remembered: Any = next(found for found in psutil.process_iter() if found.pid == process.pid)
            remembered._ident = (process.pid, -1.0)  # what psutil keeps of the one before
            wait_for(lambda: guest.running, "its words can be read, which a process has only after its start")
            guest.kill()
            assert process.poll() is not None
        finally:
            process.kill()
