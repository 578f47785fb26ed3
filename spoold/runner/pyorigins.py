"""runner/pyorigins: finds the modules that define a callable, wherever the callable was found.

Law: it looks and calls nothing. `pyhost` reads it as a file, in the user's interpreter, and it imports nothing of
ours.
"""

import functools
import sys
import types
from typing import Any

_WRAPPERS_MAX = 100


def origins(found: Any) -> list[str]:
    """Return the modules that define the code that a call runs; a text that is no name where none is known."""
    for _ in range(_WRAPPERS_MAX):
        if isinstance(found, functools.partial):
            found = found.func
        elif isinstance(found, types.MethodType):
            found = found.__func__
        elif not isinstance(found, type) and "__wrapped__" in (getattr(found, "__dict__", None) or {}):
            found = found.__wrapped__
        else:
            break
    if isinstance(found, type):
        return [found.__module__, *_made_by(found, "__new__", "__init__"), *_made_by(type(found), "__call__")]
    if isinstance(found, types.FunctionType) or type(found).__name__ == "cython_function_or_method":
        return [str(found.__module__)]
    if isinstance(found, types.BuiltinFunctionType):
        if isinstance(found.__self__, types.ModuleType | None):
            return [str(found.__module__ or getattr(found.__self__, "__name__", None))]
        return [f"a method of {type(found.__self__).__name__}"]
    if not callable(found):
        return []  # the call itself will say so
    return [type(found).__module__, *_made_by(type(found), "__call__")]


def _made_by(kind: type, *names: str) -> list[str]:
    """Return the modules that define these methods of a class, without the language's own, such as object's."""
    found_in: list[str] = []
    for name in names:
        base = next((base for base in kind.__mro__ if name in vars(base)), object)
        if base.__module__ != "builtins":
            method = getattr(vars(base)[name], "__func__", vars(base)[name])
            # A method that a library generated for the class, as for a named tuple, is from no module.
            known = isinstance(method, types.FunctionType) and method.__module__ in sys.modules
            found_in += [base.__module__, *(origins(method) if known else [])]
    return found_in
