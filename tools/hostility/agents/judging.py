"""The laws, as functions of what was seen.

1. What nobody may touch is not touched: by an agent in a sandbox, by what runs because of its files, and by the git
   of the host for any agent.
2. Each file that an agent left, and each commit that it made, is on the remote, or is named in `left_out` of its
   result; or its failure says why, and the workspace stays. What a result says of references is so.
3. The next task of the repository begins soon, and its work lands.
4. What lands on main was tested, main never goes backwards, and what fails the tests does not land.
5. Every node lives, and nothing of an attempt goes on.

Law: pure. A breach is a sentence that begins with the number of its law.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# The longest time (s) from the claim to the start of an innocent agent, less what it takes in a calm pool.
BEGINS_S = 5.0
_WORD = re.compile(r"[A-Za-z0-9_]{3,}")
# That there is more than what is listed names all of it.
_MORE = re.compile(r"\bmore\b|\b[0-9,]+ (?:files|others|paths)\b")
_LOCK = re.compile(r"Another git process|\.lock'?: File exists|\.lock\b")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one attempt of an agent left. files: path to names of its content; commits: each with words for it."""

    attempt: int
    files: Mapping[str, Sequence[str]]
    commits: Mapping[str, Sequence[str]]
    problems: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Manifest:
        """Read what the agent said."""
        files = {one["path"]: one["names"] for one in said["left"]}
        return cls(said["attempt"], files, said["commits"], said["problems"])


@dataclass(frozen=True, slots=True)
class Missing:
    """What is not on the remote. path: '' for a commit; words: by which people may be told of it."""

    what: str
    path: str
    words: tuple[str, ...]


def missing(manifest: Manifest, present: set[str]) -> list[Missing]:
    """Return what is not on the remote. present: the names of all objects there, and of what LFS has."""
    files = [
        Missing(f"the file {path!r}", path, (path,))
        for path, names in manifest.files.items()
        if not present.intersection(names)
    ]
    commits = [
        Missing(f"the commit {name[:12]} ({words[0]})", "", tuple(words))
        for name, words in manifest.commits.items()
        if name not in present
    ]
    return files + commits


def is_named(one: Missing, told: Sequence[str]) -> bool:
    """Return whether people are told of it: by its path, by a folder that holds it, by a word, or by a count."""
    text = "\n".join(told)
    if any(_MORE.search(line) for line in told):
        return True
    if not one.path:
        return any(word in text for word in one.words)
    parts = [part for part in one.path.split("/") if part]
    folders = ["/".join(parts[:count]) for count in range(1, len(parts))]
    if any(re.search(rf"(?<![\w/]){re.escape(folder)}(?![\w-])", text) for folder in folders):
        return True
    words = sorted(_WORD.findall(parts[-1]), key=len)
    return bool(words) and words[-1][:40] in text


def judge_saved(
    manifest: Manifest,
    present: set[str],
    results: Sequence[Mapping[str, Any]],
    stays: Callable[[str], bool],
    *,
    killed: bool = False,
    kept: str = "",
) -> Iterator[str]:
    """Judge the second law for an attempt. results: of its task; stays: whether a path, or '' for all of it, is still
    in a workspace of the task; killed: whether a saver was; kept: what `spool workspace gc` says of it."""
    absent = missing(manifest, present)
    if not absent:
        return
    mine = [one for one in results if one.get("attempt") == manifest.attempt]
    told = [line for one in mine for line in _left_out(one)]
    # An attempt that failed, and was saved, has no excuse: it has `left_out`, as one that succeeded.
    unsaved = [one for one in mine if one.get("status") != "success" and not _place(one).get("commit")]
    failed = bool(mine) and len(unsaved) == len(mine) and any(map(_reason, mine))
    # What a kill left behind is to be saved by those that come after it: a lock in the way is no excuse.
    excused = failed and not (killed and (not kept or _LOCK.search(kept)))
    unnamed = [one for one in absent if not is_named(one, told)]
    if unnamed and not excused:
        why = "; ".join(f"{one.get('status')} {_reason(one)[:200]}" for one in mine) or "no result"
        yield (
            f"2: attempt {manifest.attempt} lost {len(unnamed)} of {len(manifest.files) + len(manifest.commits)}: "
            f"{', '.join(one.what for one in unnamed[:4])}; left_out: {told[:4]}; it says: {why}; gc: {kept[:300]}"
        )
        return
    gone = [one for one in absent if not stays(one.path) and not _is_removed(one, told)]
    if gone:
        yield f"2: the only copy of {gone[0].what} was removed; left_out: {told[:4]}; gc: {kept[:300]}"


def _is_removed(one: Missing, told: Sequence[str]) -> bool:
    """Return whether people are told that it had to go: git would have waited for ever for what it leads to."""
    return any(line.startswith(f"{one.path}: ") and line.endswith("; it was removed") for line in told)


def _left_out(result: Mapping[str, Any]) -> list[str]:
    return [str(line) for line in (_place(result).get("left_out") or ())]


def _place(result: Mapping[str, Any]) -> Mapping[str, Any]:
    output = result.get("output")
    found = output.get("workspace") if isinstance(output, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _reason(result: Mapping[str, Any]) -> str:
    error, output = result.get("error"), result.get("output")
    said = str(error.get("message") or "") if isinstance(error, Mapping) else ""
    reasons = output.get("reasons") if isinstance(output, Mapping) else ()
    return "; ".join([said, *map(str, reasons or ())]).strip("; ")


def judge_words(results: Iterable[Mapping[str, Any]], references: Mapping[str, str]) -> Iterator[str]:
    """Judge whether what the results of a task say of their references is so."""
    for result in results:
        said = _place(result)
        ref, commit = said.get("ref"), said.get("commit")
        if ref and references.get(str(ref)) != commit:
            yield f"2: the result says that {ref} is {commit}, and it is {references.get(str(ref))}"


def judge_begin(task: str, waited_s: float | None, calm_s: float, busy: float) -> Iterator[str]:
    """Judge the third law. waited_s: from the claim to the agent's start, None where it never started; calm_s: the
    same in a calm pool; busy: how much slower this machine is now, 1 for not at all."""
    bound_s = BEGINS_S + 3 * calm_s * max(1.0, busy)
    if waited_s is None:
        yield f"3: {task}, the next of the repository, never began"
    elif waited_s > bound_s:
        yield f"3: {task}, the next of the repository, began after {waited_s:.1f} s; at most {bound_s:.1f} s"


def judge_main(
    landings: Sequence[tuple[str, str]],
    tested: set[str],
    goes_on: Callable[[str, str], bool],
    fails: Callable[[str], bool],
) -> Iterator[str]:
    """Judge the fourth law. landings: each update of main, before and after; tested: what merges say that they
    tested; fails: whether a commit fails the tests."""
    for before, after in landings:
        if not goes_on(before, after):
            yield f"4: main went from {before[:12]} to {after[:12]}, which does not hold it"
        if after not in tested:
            yield f"4: {after[:12]} is on main, and no merge says that it tested it"
        if fails(after):
            yield f"4: {after[:12]} is on main, and fails the tests"


def judge_merges(
    results: Iterable[Mapping[str, Any]], updates: set[str], holds: Callable[[str], bool]
) -> Iterator[str]:
    """Judge what merges say of what landed. updates: every commit that main was set to; holds: whether main has a
    commit. Of what was in main before, as by a merger that was killed after its push, no merge is named."""
    for result in results:
        output = result.get("output")
        for one in (output.get("landed") or ()) if isinstance(output, Mapping) else ():
            merge, commit = (one.get("merge"), str(one.get("commit"))) if isinstance(one, Mapping) else ("", "")
            if merge is not None and merge not in updates:
                yield f"4: a merge says that {one} landed, and main was never at {merge}"
            if not holds(commit):
                yield f"4: a merge says that {one} landed, and main does not hold {commit}"


def tested_of(results: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return what the results of merges say that they tested."""
    outputs = [result.get("output") for result in results]
    return {str(one) for output in outputs if isinstance(output, Mapping) for one in (output.get("tested") or ())}


def judge_words_of_canaries(found: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Judge where the words of canaries were found. found: a place, with whose words are there."""
    for place, words in found.items():
        if words:
            yield f"1: what the canary's {' and '.join(words)} held is in {place}"


def seed_of(told: str, seeds: Sequence[int]) -> int | None:
    """Return whose deed a sentence about a canary tells; None where it does not say."""
    for number in re.findall(r"(?<![\w.])([0-9]+)[.-][a-z_]+", told):
        if int(number) in seeds:
            return int(number)
    return seeds[0] if len(seeds) == 1 else None
