"""What the runner's tests have called in a host."""

import os
import subprocess
import sys
import time


def fork_idle(size: int, count: int, seconds: float) -> int:
    """Hold that many bytes, share them with forked children for a while; how many they were."""
    block = b"x" * size
    children = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            time.sleep(seconds)
            os._exit(len(block) == 0)
        children.append(pid)
    return sum(os.waitpid(pid, 0)[1] == 0 for pid in children)


def hold(size: int, seconds: float) -> int:
    """Hold that many bytes for so long."""
    block = b"x" * size
    time.sleep(seconds)
    return len(block)


def burn(seconds: float, below: float = 0.0) -> None:
    """Use so much CPU time here, and so much in a child."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    if below:
        script = f"import time\nwhile time.process_time() < {below}: pass"
        subprocess.run([sys.executable, "-c", script], check=True)
