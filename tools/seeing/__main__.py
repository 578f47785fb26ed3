"""tools/browser --pictures and --large: what the pages look like, and how heavy they are with many tasks.

    pictures  the pictures of the manual, of a pool that works while they are made
    large     a spool of many tasks, and the figures of its list

Law: every picture and every figure is of the real pages in a real browser. Touches: the folder of the pictures, a
scratch folder, processes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tools.seeing import large, pictures


def main(arguments: list[str]) -> int:
    """Make what was asked for; returns the exit status."""
    options = parser().parse_args(arguments)
    if shutil.which("chromium") is None:
        print("tools/browser: there is no chromium on this machine.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="spoold-seen-") as scratch:
        if options.pictures:
            pictures.make(Path(options.pictures).resolve(), Path(scratch))
        else:
            large.measure(options.large, Path(scratch))
    return 0


def parser() -> argparse.ArgumentParser:
    """What may stand on the command line."""
    made = argparse.ArgumentParser(prog="tools/browser", description="Pictures and figures of the pages.")
    which = made.add_mutually_exclusive_group(required=True)
    which.add_argument("--pictures", metavar="FOLDER", help="where the pictures go: docs/pictures")
    which.add_argument("--large", metavar="N", type=int, nargs="?", const=100_000, help="a list of so many tasks")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
