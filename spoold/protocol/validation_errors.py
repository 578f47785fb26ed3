"""A validation error in the words of the person who wrote the file: field, problem and fix.

Law: nothing of the validator's own is said, neither its names for the branches of a type nor its patterns; a field is
named as it stands in the file.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from spoold.protocol.errors import BadFile, WrongValue, nearest

# Faults that are looked at: to list more of them takes longer than to read the file.
FAULTS_MAX = 1000
_LIST = ("not a list", 'write a list, such as ["a", "b"]')
_OBJECT = ("not an object", "write names with values, in braces")
_WHOLE = ("not a whole number", "write a whole number, without quotes")
_NUMBER = ("not a number", "write a number, without quotes")
_SWITCH = ("neither true nor false", "write one of them, without quotes")
_TIME = ("not a time", "use RFC 3339 with a zone, such as '2026-01-31T18:00:00Z'")
# pydantic's type of an error → problem and fix, filled in from its context.
_SAID = {
    "string_type": ("not a string", "write it in quotes"),
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": ("not a finite number", "write a finite one"),
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "greater_than": ("too small", "write a number above {gt:.15g}"),
    "greater_than_equal": ("too small", "write {ge:.15g} or more"),
    "less_than_equal": ("too large", "write {le:.15g} or less"),
    "literal_error": ("not a value that it may have", "use {expected}"),
    "string_too_short": ("empty", "write something between the quotes, or leave the field out"),
    "too_short": ("empty", "write at least one value, or leave the field out"),
    "string_too_long": ("longer than {max_length} characters", "shorten it"),
    "too_long": ("a list of more than {max_length} values", "shorten it"),
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "timezone_aware": ("a time without a zone", "add one, such as Z or +02:00"),
    "missing": ("missing", "add it"),
}


class _Complaint(NamedTuple):
    """One error. field: where in the file; stem: the part of it that all failed branches of a type share."""

    field: tuple[str, ...]
    stem: tuple[str, ...]
    problem: str
    mend: str
    given: Any
    unknown: bool


def bad_file(model: type[BaseModel], value: dict[str, Any], error: ValidationError, file: str) -> BadFile:
    """An error for people that names the first problem of the value and counts the others."""
    groups, count = _grouped(model, error, value)
    if not groups:
        return BadFile(file, "", f"has {count:,} values that do not fit.", "give each field what it is for.")
    first = next((group for group in groups if group[0].unknown), groups[0])
    return _told(model, first, file, f" ({count - 1:,} more)" if count > 1 else "")


def faults_of(model: type[BaseModel], value: dict[str, Any], file: str) -> list[BadFile]:
    """The problems of the value as errors for people, the first FAULTS_MAX or so; none where it fits the model."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        groups, _ = _grouped(model, error, value)
        return [_told(model, group, file, "") for group in groups] or [bad_file(model, value, error, file)]
    return []


def _grouped(
    model: type[BaseModel], error: ValidationError, value: dict[str, Any]
) -> tuple[list[list[_Complaint]], int]:
    """The complaints, those together that are about one value of several types, and how many there are.

    Of very many, only those in the beginnings of lists and objects are there: none where nothing is wrong with these.
    """
    count = error.error_count()
    if count > FAULTS_MAX:
        value = _begun(value, FAULTS_MAX)
        try:
            model.model_validate(value)
        except ValidationError as fewer:
            error = fewer
        else:
            return [], count
    groups: dict[tuple[str, ...], list[_Complaint]] = {}
    for problem in error.errors(include_url=False):
        complaint = _complaint(problem, value)
        groups.setdefault(complaint.stem, []).append(complaint)
    return list(groups.values()), count if count > FAULTS_MAX else len(groups)


def _begun(value: dict[str, Any], most: int) -> dict[str, Any]:
    """A copy with so many members at most: the lists and objects in it end where these are used up."""
    copy: dict[str, Any] = {}
    todo: list[tuple[Any, Any]] = [(value, copy)]
    for outer, made in todo:
        each = most if made is copy else min(most, FAULTS_MAX // 10)
        for name, inner in islice(outer.items() if isinstance(outer, dict) else enumerate(outer), max(0, each)):
            most -= 1
            mine: Any = {} if isinstance(inner, dict) else [] if isinstance(inner, list | tuple) else inner
            if isinstance(inner, dict | list | tuple):
                todo.append((inner, mine))
            if isinstance(made, dict):
                made[name] = mine
            else:
                made.append(mine)
    return copy


def _told(model: type[BaseModel], branches: list[_Complaint], file: str, more: str) -> BadFile:
    if branches[0].unknown:
        field = branches[0].field
        return BadFile(file, ".".join(field), f"unknown field{more}.", _nearest(model, field))
    # If a value may be of several types, the user meant the one that it came nearest to; else none of them.
    depth = max(len(branch.field) for branch in branches)
    meant = [branch for branch in branches if len(branch.field) == depth]
    problem = " and ".join(dict.fromkeys(branch.problem for branch in meant))
    mend = ", or ".join(dict.fromkeys(branch.mend for branch in meant))
    shown = repr(meant[0].given)
    given = f" Given: {shown[:80]}." if meant[0].given is not None and len(shown) < 400 else ""
    return BadFile(file, ".".join(meant[0].field), f"{problem}{more}.{given}", f"{mend}.")


def _complaint(problem: Any, value: dict[str, Any]) -> _Complaint:
    kind, loc, context = problem["type"], problem["loc"], problem.get("ctx", {})
    field, shared = _written(loc, value)
    if kind == "missing":
        field, shared = (*field, str(loc[-1])), len(loc)
    why = context.get("error")
    if isinstance(why, WrongValue):
        said, mend = why.problem, why.mend
    elif kind in _SAID:
        said, mend = (text.format(**context) for text in _SAID[kind])
    else:
        said, mend = problem["msg"], "correct this field"
    # People do not want the whole file repeated.
    given = problem["input"] if loc and kind != "missing" else None
    return _Complaint(field, tuple(map(str, loc[:shared])), said, mend, given, kind == "extra_forbidden")


def _written(loc: tuple[int | str, ...], value: Any) -> tuple[tuple[str, ...], int]:
    """The parts of a place that stand in the file, and the number of them before the first that does not."""
    field: list[str] = []
    shared = len(loc)
    for index, part in enumerate(loc):
        if _holds(value, part):
            value = value[part]
            field.append(str(part))
        else:
            shared = min(shared, index)
    return tuple(field), shared


def _holds(value: Any, part: int | str) -> bool:
    if isinstance(part, int):
        return isinstance(value, list | tuple) and part < len(value)
    return isinstance(value, dict) and part in value


def _nearest(model: type[BaseModel], loc: tuple[str, ...]) -> str:
    """The fix for an unknown field: the nearest name that is known there."""
    known = _names(model, loc[:-1])
    if loc[-1] in known:
        return "it is another name of a field that the file gives too; keep one of them."
    if close := nearest(loc[-1], known):
        return f"did you mean {close!r}?"
    elsewhere = ", or put your own data under 'meta' or 'input'" if "meta" in model.model_fields else ""
    return f"remove it{elsewhere}; known here: {', '.join(sorted(known))}."


def _names(model: type[BaseModel], loc: tuple[str, ...]) -> list[str]:
    """The names of the fields that may stand there, each once."""
    for part in loc:
        field = model.model_fields.get(part)
        inner = _model_in(field.annotation) if field else None
        model = inner or model
    names: dict[str, None] = {}
    for name, info in model.model_fields.items():
        choices = getattr(info.validation_alias, "choices", None)
        names |= dict.fromkeys([name, *(str(c) for c in choices or ())])
    names |= dict.fromkeys(getattr(model, "BESIDE", ()))
    return list(names)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
