"""runner/pyseek: a Python process that prints which of some modules its interpreter cannot find, and ends.

Law: it looks where `pyhost` would and imports none of them. It imports nothing of ours. It is started as a script:
`python -P pyseek.py JSON`, where JSON is [directories to look in first, names of top-level modules].

Touches: the terminal, the environment.
"""

import importlib.util
import json
import sys


def main() -> None:
    """Print the names that are not found as its last line, a list in JSON."""
    path, names = json.loads(sys.argv[1])
    for entry in reversed(path):
        if entry not in sys.path:
            sys.path.insert(0, entry)
    sys.stdout.write(f"\n{json.dumps([name for name in names if not _is_there(name)])}\n")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:  # noqa: BLE001 - an error in the user's finder proves nothing
        return True


if __name__ == "__main__":
    main()
