"""worker/pyhost: a Python process that calls functions for its supervisor, one at a time, until it is killed.

Law: it runs the user's interpreter with the user's packages and imports nothing of ours, so a function sees
what it would see in a script. Requests and answers use private descriptors; what a function prints goes to
the job's output. It is started as a script: `python -P -u pyhost.py REQUESTS ANSWERS`.
"""

import contextlib
import errno
import importlib
import io
import json
import marshal
import os
import re
import sys
import threading
import traceback
import types
from typing import Any

_LONG = re.compile("[0-9]{19}")
_DEPTH_MAX = 199  # a result takes 200, itself among them; nothing of ours is imported here
_HEAD = 4  # as in the wire, of which nothing is imported here


def main() -> None:
    """Answers each message from the first descriptor with a line of JSON on the second."""
    requests, answers = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(requests, False)
    os.set_inheritable(answers, False)
    del sys.argv[1:]
    own = os.getpid()
    streams = _streams()
    environment = _Environment()
    alone = True
    with open(requests, "rb") as wire:
        while head := wire.read(_HEAD):
            request = marshal.loads(wire.read(int.from_bytes(head, "little")))
            if not alone:
                _reap()
            environment.set(request["own"])
            answer = _serve(request)
            if os.getpid() != own:
                # The function forked and both sides returned; only the original may speak.
                os._exit(0)
            # A host that was left with threads or without its output is not used again.
            answer["clean"] = threading.active_count() == 1 and _streams() == streams
            answer["alone"] = alone = _reap()
            data = memoryview(json.dumps(answer).encode() + b"\n")
            while data:
                data = data[os.write(answers, data) :]


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    """Runs one call; never raises, since whatever happens in the function is the answer."""
    try:
        _prepare(request)
    except OSError as problem:
        name = errno.errorcode.get(problem.errno or 0, "OSError")
        said = f"cannot enter the working directory {request['cwd']}: {name} ({problem.strerror})"
        code = 127 if problem.errno in (errno.ENOENT, errno.ENOTDIR) else 126
        return {"exit": code, "message": said, "value": None, "began": False}
    try:
        target, args, kwargs = request["call"]
        result = _resolve(target)(*args, **kwargs)
        answer = {"exit": 0, "message": "returned", "value": _encode(result)}
    except SystemExit as leaving:
        answer = _leave(leaving.code)
    except BaseException as problem:  # noqa: BLE001 - whatever it raises is its answer
        # The frames of this file say nothing to the reader.
        frames = problem.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
            frames = frames.tb_next
        traceback.print_exception(problem.with_traceback(frames))
        said = "".join(traceback.format_exception_only(problem)).strip()
        answer = {"exit": 1, "message": said[:4000], "value": None}
    for stream in (sys.stdout, sys.stderr):
        # The function may have closed or replaced it; then its output ends there.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    # While it waits, it keeps no directory busy that somebody wants to remove or unmount.
    os.chdir("/")
    return {**answer, "began": True}


def _prepare(request: dict[str, Any]) -> None:
    """Gives the function its working directory, standard input and import path."""
    os.chdir(request["cwd"])
    if request["stdin"]:
        # Read from memory by the function, and from nothing by the programs it starts.
        sys.stdin = io.TextIOWrapper(io.BytesIO(request["stdin"]), encoding="utf-8")
    else:
        sys.stdin = sys.__stdin__
    for entry in reversed(request["path"]):
        if entry not in sys.path:
            sys.path.insert(0, entry)


def _resolve(target: str) -> Any:
    module, _, name = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
        if part.startswith("__") or isinstance(found, types.ModuleType):
            # What a module uses is not what it offers: the worker's list is of modules.
            raise AttributeError(
                f"{target}: {part} cannot be called; name a function, and its own module before the colon"
            )
    return found


def _encode(result: object) -> str:
    """The value as JSON text, or a TypeError that names the type which has no place in JSON."""
    try:
        text = json.dumps(result, allow_nan=False)
        if _LONG.search(text):
            json.loads(text, parse_int=_exact)
        if "\\ud" in text:
            json.dumps(result, ensure_ascii=False).encode()  # what is half a surrogate pair is in no UTF-8
        if text.count("[") + text.count("{") > _DEPTH_MAX:
            _measure(result, _DEPTH_MAX)
        return text
    except (TypeError, ValueError, RecursionError) as problem:
        said = f"the call returned a {type(result).__name__}, which is not JSON: {problem}"
    raise TypeError(said)


def _measure(value: object, levels: int) -> None:
    if isinstance(value, dict | list | tuple):
        if not levels:
            raise ValueError(f"it is nested deeper than {_DEPTH_MAX} levels")
        for inner in value.values() if isinstance(value, dict) else value:
            _measure(inner, levels - 1)


def _exact(digits: str) -> None:
    """Most readers of JSON would make another number of it (RFC 8259, section 6)."""
    if len(digits) > 20 or not -(1 << 63) <= int(digits) < 1 << 64:
        raise ValueError(f"{digits[:40]} has more than 64 bits; return it as text")


def _leave(code: object) -> dict[str, Any]:
    """What sys.exit(code) means, as the interpreter would have it."""
    if code is None or isinstance(code, int):
        return {"exit": int(code or 0) & 0xFF, "message": f"SystemExit: {code}", "value": None}
    sys.stderr.write(f"{code}\n")
    return {"exit": 1, "message": f"SystemExit: {code}", "value": None}


def _streams() -> list[tuple[int, int] | None]:
    """What standard output and error are connected to."""
    found: list[tuple[int, int] | None] = []
    for descriptor in (1, 2):
        try:
            status = os.fstat(descriptor)
            found.append((status.st_dev, status.st_ino))
        except OSError:
            found.append(None)
    return found


class _Environment:
    """The environment as it was in the beginning, and in it what differs from call to call."""

    def __init__(self) -> None:
        self._base = {name: text for name, text in os.environ.items() if not name.startswith("SPOOL_")}
        self._own: dict[str, str] = {}
        self._left: dict[Any, Any] | None = None

    def set(self, own: dict[str, str]) -> None:
        """Undoes what the function before did to it; costs little where it did nothing."""
        if self._left is None or self._left != _raw():
            os.environ.clear()
            os.environ.update(self._base)
            self._own = {}
        for name in self._own.keys() - own.keys():
            del os.environ[name]
        for name, text in own.items():
            if self._own.get(name) != text:
                os.environ[name] = text
        self._own, self._left = own, _raw()


def _raw() -> dict[Any, Any]:
    """All variables; as they are kept inside, where that can be had, since decoding each takes longer than a call."""
    return dict(getattr(os.environ, "_data", os.environ))


_waitpid = os.waitpid  # before a function's library replaces it


def _reap() -> bool:
    """Collects the dead, which earlier functions left behind; True if this process has no child at all."""
    try:
        while _waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


if __name__ == "__main__":
    main()
