"""docs/demo.svg: what a terminal shows after a run of tools/demo, as a picture.

Law: every line is of that run, as a terminal of WIDTH columns shows it in the end. Only the two folders of the
machine that it ran on are named otherwise. What was drawn while the tasks ran, and erased, is no part of it.

Touches: the terminal, processes, docs/demo.svg.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

CHECKOUT = Path(__file__).resolve().parents[2]
PICTURE = CHECKOUT / "docs/demo.svg"
COMMAND = ("tools/demo",)
WIDTH = 118
_SCRATCH = re.compile(r"/\S*/spoold-demo-\w+")
# What rich draws in place stands between hiding the cursor and showing it again; of all else only colours are kept.
_IN_PLACE = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h", re.DOTALL)
_NO_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\r")


def picture(output: str, checkout: Path = CHECKOUT) -> str:
    """The SVG of what a run printed on a terminal."""
    left = _NO_COLOUR.sub("", _IN_PLACE.sub("", output))
    shown = _SCRATCH.sub("/tmp/spoold-demo", left.replace(str(checkout), "~/spoold"))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    console.print(Text.assemble(("$ " + " ".join(COMMAND), "bold")))
    for line in shown.splitlines():
        text = Text.from_ansi(line.rstrip())
        if text.plain.strip() == checkout.name:  # the report's title
            text = Text.from_ansi(line.replace(checkout.name, "spoold").rstrip())
        console.print(text)
    return console.export_svg(title="tools/demo", unique_id="demo")


def play() -> tuple[int, str]:
    """Run the demo on a terminal of its own; returns its exit status, and what it wrote."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    written = b""
    with subprocess.Popen(COMMAND, cwd=CHECKOUT, stdout=theirs, env={**env, "TERM": "xterm-256color"}) as demo:
        os.close(theirs)
        while piece := _read(ours):
            written += piece
    os.close(ours)
    return demo.returncode, written.decode(errors="replace")


def _read(terminal: int) -> bytes:
    """What was written since the last look; b"" once nobody can write any more."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # of the last writer's end, which has been closed
        return b""


def main() -> int:
    """Run the demo and keep the picture, if all its claims hold; returns its exit status."""
    status, written = play()
    if status == 0:
        PICTURE.write_text(picture(written), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
