"""docs/demo.svg: what tools/demo printed in a run, as a picture.

Law: every line is of that run; only the two folders of the machine that it ran on are named otherwise. Touches:
docs/demo.svg.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

CHECKOUT = Path(__file__).resolve().parents[2]
PICTURE = CHECKOUT / "docs/demo.svg"
COMMAND = ("tools/demo", "--files", "12")
WIDTH = 118
_SCRATCH = re.compile(r"/\S*/spoold-demo-\w+")


def picture(output: str, checkout: Path = CHECKOUT) -> str:
    """The SVG of what a run printed."""
    shown = _SCRATCH.sub("/tmp/spoold-demo", output.replace(str(checkout), "~/spoold"))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    console.print(Text.assemble(("$ " + " ".join(COMMAND), "bold")))
    for line in shown.splitlines():
        console.print(Text(line, style="green" if line.startswith("ok ") else ""))
    return console.export_svg(title="tools/demo", unique_id="demo")


def main() -> int:
    """Run the demo and keep the picture, if all its claims hold; returns its exit status."""
    done = subprocess.run(COMMAND, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        PICTURE.write_text(picture(done.stdout), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
