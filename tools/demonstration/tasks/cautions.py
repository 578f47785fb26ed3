"""The task `cautions`: what the compiler itself warns of, over the whole tree.

Its first `input.failures` attempts end with exit code 1, which is staged: it stands for the licence that is taken or
the network that is away for a moment. The spool charges a retry, waits, and starts it again, maybe elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path


def cautions_in(path: Path) -> list[str]:
    """The compiler's warnings about a file, each with its line; none about what cannot be read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return []
    return [f"{each.lineno}: {each.message}" for each in caught]


def main() -> None:
    """Compile all files that the task names."""
    wanted = json.loads(Path(os.environ["SPOOL_TASK_FILE"]).read_text())["input"]
    attempt = int(os.environ["SPOOL_ATTEMPT"])
    if attempt <= wanted["failures"]:
        sys.exit(f"staged: attempt {attempt} fails, as any first attempt may")
    root = Path(wanted["root"])
    found = [f"{file}:{caution}" for file in wanted["files"] for caution in cautions_in(root / file)]
    print(f"{len(wanted['files'])} files compiled, {len(found)} cautions")
    Path(os.environ["SPOOL_RESULT_FILE"]).write_text(json.dumps({"cautions": found}))


if __name__ == "__main__":
    main()
