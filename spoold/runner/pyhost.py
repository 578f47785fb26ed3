"""runner/pyhost: a Python process that calls functions for its supervisor, one at a time, until it is killed.

Law: it runs the user's interpreter with the user's packages and imports nothing of ours, so a function sees
what it would see in a script; `pyorigins` and `pyenviron` are read as files and are no modules there. Requests and
answers use private descriptors; what a function prints goes to the job's output. It is started as a script:
`python -P -u pyhost.py REQUESTS ANSWERS`.

Touches: files, processes, threads, the terminal, the environment.
"""

import contextlib
import errno
import importlib
import importlib.util
import io
import json
import marshal
import os
import re
import resource
import sys
import threading
import traceback
import types
from typing import Any

_LONG = re.compile("[0-9]{19}")
# The same as in results and in the wire, which are not imported here; a result takes 200 levels with its own.
_DEPTH_MAX, VALUE_MAX, _HEAD = 199, 16 << 20, 4
_HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Answer each message from the first descriptor with a line of JSON on the second."""
    requests, answers = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(requests, False)
    os.set_inheritable(answers, False)
    del sys.argv[1:]
    own = os.getpid()
    streams = _streams()
    environment = _beside("pyenviron").Environment()
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
            # A host that a call left with threads or without its output is not used again.
            answer["clean"] = "clean" not in answer and threading.active_count() == 1 and _streams() == streams
            answer["alone"] = alone = _reap()
            answer["cpu_s"] = _cpu_s()
            data = memoryview(json.dumps(answer).encode() + b"\n")
            while data:
                data = data[os.write(answers, data) :]


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    """Run one call; never raises, since any exception of the function is the answer."""
    answer = _answer(request)
    for stream in (sys.stdout, sys.stderr):
        # The function may have closed or replaced it; then its output ends there.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    # A waiting host must not keep a directory busy that a person wants to remove or unmount.
    os.chdir("/")
    return {"value": None, "began": True, **answer}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        _prepare(request)
    except _NotAllowed as problem:
        return _refusal(problem)
    except OSError as problem:
        name = errno.errorcode.get(problem.errno or 0, "OSError")
        said = f"cannot enter the working directory {request['cwd']}: {name} ({problem.strerror})"
        gone = problem.errno in (errno.ENOENT, errno.ENOTDIR)
        said += ". cwd names no folder of this machine: make it, or change cwd" if gone else ""
        return {"exit": 127 if gone else 126, "message": said, "began": False}
    try:
        target, args, kwargs, calls = request["call"]
        function = _resolve(target)
        if request["allow"] is not None:
            _check_origin(target, function, *request["allow"])
        return _one(function, args, kwargs) if calls is None else _each(function, calls)
    except _NotAllowed as problem:
        return _refusal(problem)
    except _Lacking as problem:
        # Modules that it has imported may be replaced on disk meanwhile: the next try gets another process.
        return {"exit": 127, "message": str(problem), "began": False, "clean": False}
    except SystemExit as leaving:
        return _leave(leaving.code)
    except BaseException as problem:  # noqa: BLE001 - whatever its module raises is its answer
        return {"exit": 1, "message": _print(problem)}


def _one(function: Any, args: Any, kwargs: dict[str, Any], levels: int = _DEPTH_MAX) -> dict[str, Any]:
    """Calls it once. levels: how deeply nested the value may be."""
    try:
        return {"exit": 0, "message": "returned", "value": _encode(function(*args, **kwargs), levels)}
    except SystemExit as leaving:
        return _leave(leaving.code)
    except BaseException as problem:  # noqa: BLE001 - whatever it raises is its answer
        return {"exit": 1, "message": _print(problem)}


def _each(function: Any, calls: list[Any]) -> dict[str, Any]:
    """Calls it with one list of arguments after another, up to the first that fails; returns all values."""
    own, size, values = os.getpid(), 2, list[str]()
    for number, args in enumerate(calls, 1):
        answer = _one(function, args, {}, _DEPTH_MAX - 1)
        if os.getpid() != own:
            os._exit(0)  # as in `main`: the calls that are left are the original's
        value = answer.get("value", "null")
        size += len(value) + 2
        if size > VALUE_MAX and not answer["exit"]:
            said = f"the calls so far returned {size:,} bytes of JSON, and at most {VALUE_MAX:,} are kept of a task"
            answer = {"exit": 1, "message": f"{said}: give it fewer calls (a smaller chunksize)"}
        if answer["exit"]:
            message = f"call {number} of {len(calls)}: {answer['message']}"
            return {**answer, "message": message, "value": f"[{', '.join(values)}]"}
        values.append(value)
    return {"exit": 0, "message": "returned", "value": f"[{', '.join(values)}]"}


def _print(problem: BaseException) -> str:
    """Print the traceback, without the frames of this file; return the exception as text."""
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    traceback.print_exception(problem.with_traceback(frames))
    return "".join(traceback.format_exception_only(problem)).strip()[:4000]


def _prepare(request: dict[str, Any]) -> None:
    """Give the function its working directory, standard input and import path."""
    _enter(request["cwd"], request["within"])
    if request["stdin"]:
        # The function reads it from memory; the programs that it starts get nothing.
        sys.stdin = io.TextIOWrapper(io.BytesIO(request["stdin"]), encoding="utf-8")
    else:
        sys.stdin = sys.__stdin__
    for entry in reversed(request["path"]):
        if entry not in sys.path:
            sys.path.insert(0, entry)


def _resolve(target: str) -> Any:
    """Return the callable. Errors: _NotAllowed; _Lacking if this interpreter cannot find it for any reason."""
    module, _, name = target.partition(":")
    failed = f"cannot import {module}"
    try:
        found: Any = importlib.import_module(module)
        failed = f"{module} has no {name}"
        for part in name.split("."):
            found = None if part.startswith("__") else getattr(found, part)
            if part.startswith("__") or isinstance(found, types.ModuleType):
                # A module that another one imports is not part of it: the worker's list is of modules.
                said = f"{part} cannot be called; name a function, and its own module before the colon"
                raise _NotAllowed(f"{target}: {said}")
    except (_NotAllowed, MemoryError):
        raise
    except Exception as problem:  # noqa: BLE001 - an import may raise anything; the call has not begun
        raise _Lacking(f"this worker {failed}: {_print(problem)}") from None
    return found


class _NotAllowed(Exception):
    """The task asked for something that this worker does not allow."""


class _Lacking(Exception):
    """This interpreter cannot import the callable; another machine's might."""


def _refusal(problem: _NotAllowed) -> dict[str, Any]:
    return {"exit": None, "message": str(problem), "began": False, "kind": "refused"}


def _enter(cwd: str, within: tuple[list[str], str] | None) -> None:
    """Enter the directory as `child_process.enter` does, which cannot be imported here."""
    try:
        os.chdir(cwd)
        where = os.getcwd()
    except OSError:
        if within is None or _below(os.path.normpath(cwd), within[0]):
            raise
        where = cwd
    if within is not None and not _below(where, within[0]):
        really = "" if where == cwd else f", which is {where},"
        line = f"add {json.dumps(where, ensure_ascii=False)} to allow_cwd under {within[1]}"
        said = f"a task may start below {', '.join(within[0])}, and cwd {cwd}{really} is not: change it, or {line}"
        raise _NotAllowed(said)


def _below(path: str, prefixes: list[str]) -> bool:
    tops = [top for prefix in prefixes for top in (os.path.normpath(prefix), os.path.realpath(prefix))]
    return any(path == top or path.startswith(top.rstrip("/") + "/") for top in tops)


def _beside(name: str) -> Any:
    """What a file of ours defines, without a place among the modules that the function sees."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(_HERE, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_origins = _beside("pyorigins").origins


def _check_origin(target: str, found: Any, prefixes: tuple[str, ...], table: str) -> None:
    """Raise _NotAllowed unless modules on the list define the callable: a module also holds the names it imports."""
    for origin in _origins(found):
        if not any(origin == prefix or origin.startswith(f"{prefix.rstrip('.')}.") for prefix in prefixes):
            known = all(part.isidentifier() for part in origin.split("."))
            more = f', or add "{origin}" to allow under {table}' if known else ""
            said = f"{target} runs {origin}, which is no module that this worker allows"
            raise _NotAllowed(f"{said}: name a function that an allowed module defines{more}")


def _encode(result: object, levels: int) -> str:
    """The value as JSON text, or a TypeError that names the type which has no place in JSON."""
    try:
        text = json.dumps(result, allow_nan=False)
        if _LONG.search(text):
            json.loads(text, parse_int=_exact)
        if "\\ud" in text:
            json.dumps(result, ensure_ascii=False).encode()  # what is half a surrogate pair is in no UTF-8
        if text.count("[") + text.count("{") > levels:
            _measure(result, levels)
    except (TypeError, ValueError, RecursionError) as problem:
        raise TypeError(f"the call returned a {type(result).__name__}, which is not JSON: {problem}") from None
    if len(text) <= VALUE_MAX:
        return text
    said = f"the call returned {len(text):,} bytes of JSON, and at most {VALUE_MAX:,} are kept"
    raise OverflowError(f"{said}: write them to a file, and return its path")


def _measure(value: object, levels: int) -> None:
    if isinstance(value, dict | list | tuple):
        if not levels:
            raise ValueError(f"it is nested deeper than {_DEPTH_MAX} levels")
        for inner in value.values() if isinstance(value, dict) else value:
            _measure(inner, levels - 1)


def _exact(digits: str) -> None:
    """Refuse integers that most readers of JSON would change (RFC 8259, section 6)."""
    if len(digits) > 20 or not -(1 << 63) <= int(digits) < 1 << 64:
        raise ValueError(f"{digits[:40]} has more than 64 bits; return it as text")


def _leave(code: object) -> dict[str, Any]:
    """Return the answer for sys.exit(code), with the interpreter's meaning of code."""
    if code is None or isinstance(code, int):
        return {"exit": int(code or 0) & 0xFF, "message": f"SystemExit: {code}"}
    sys.stderr.write(f"{code}\n")
    return {"exit": 1, "message": f"SystemExit: {code}"}


def _streams() -> list[tuple[int, int] | None]:
    """Return device and inode of standard output and error."""
    found: list[tuple[int, int] | None] = [None, None]
    for place, descriptor in enumerate((1, 2)):
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            found[place] = (status.st_dev, status.st_ino)
    return found


# Before a function's library replaces them.
_waitpid, _getrusage = os.waitpid, resource.getrusage


def _cpu_s() -> float:
    """Return the CPU time (s) of this process and of the children that it collected."""
    used = [_getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def _reap() -> bool:
    """Collect dead children of earlier functions; True if this process has no child at all."""
    try:
        while _waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


if __name__ == "__main__":
    main()
