"""What git takes of commits and trees that hold something which it refuses: all the rest, written anew without that.

Git checks what comes into a repository (`git help fsck` lists what it refuses), and one bad name in one tree is
enough for all of it to be refused. So each bad entry is left out of its tree, each commit above it is made again on
what is left, and both are named. What git takes stays the same object.

Law: git is the judge, of every object at once and of every entry at once: the number of its commands does not grow
with what is bad. The same is written anew as the same. Only the program in the cage uses it, and who takes in what
that one packs has git check all of it again.

Touches: files, the clock.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import IO

from spoold.agents.workspace.git import TOO_LONG, Git, GitFailed, address
from spoold.protocol.amount import amount
from spoold.system.remover import remove

# Objects of git as they are, also those that git itself refuses: reads, takes apart and writes them.


# A commit, tree or tag that is larger (bytes) is read by nobody here.
READ_MAX = 64 << 20
# Each object at which git dies costs a new process; so many such are looked for.
DEATHS_MAX = 1000
_PIECE = 1 << 20
_KIND, _MODE = 0o170000, re.compile(rb"[0-7]{1,11}")
_NAMED = re.compile(rb"(tree|parent|object) ([0-9a-f]{40})")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a tree. mode: as git writes it; name: any bytes but NUL; one: the object."""

    mode: bytes
    name: bytes
    one: str

    @property
    def is_tree(self) -> bool:
        """Whether it is a folder."""
        return self.mode == b"40000"

    @property
    def is_link(self) -> bool:
        """Whether it is a submodule, whose commit is elsewhere."""
        return self.mode == b"160000"

    @property
    def order(self) -> bytes:
        """By which entries are sorted."""
        return self.name + b"/" * self.is_tree


@dataclass(frozen=True, slots=True)
class Raw:
    """A commit. tree: '' for none; parents: in order; header: its lines but these; text: its message."""

    tree: str
    parents: tuple[str, ...]
    header: tuple[bytes, ...]
    text: bytes


class Reader:
    """Reads single objects, one after the other; to be closed."""

    def __init__(self, git: Git) -> None:
        self._git, self._stack, self._deaths = git, ExitStack(), 0
        self._asks: IO[bytes] | None = None
        self._said: IO[bytes] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *of: object) -> None:
        self._end()

    def read(self, name: str) -> tuple[str, bytes] | None:
        """Return type and content of an object; None for one that is not what its name says, or is no commit, tree or
        tag. Errors: GitFailed where git cannot be run."""
        if self._deaths > DEATHS_MAX:
            return None
        if self._said is None:
            self._begin()
        assert self._asks is not None
        assert self._said is not None
        try:
            self._asks.write(f"{name}\n".encode())
            self._asks.flush()
            words = self._said.readline().split()
        except BrokenPipeError:
            words = []
        if len(words) == 2:  # "missing"
            return None
        if len(words) != 3:
            return self._died()
        size, kind = int(words[2]), words[1].decode()
        if kind == "blob" or size > READ_MAX:
            return None if _skipped(self._said, size + 1) else self._died()
        data = self._said.read(size)
        if len(data) != size or not self._said.read(1):
            return self._died()
        return (kind, data) if name_of(kind, data) == name else None

    def _begin(self) -> None:
        asked, asks = os.pipe()
        try:
            self._said = self._stack.enter_context(self._git.piped("cat-file", "--batch", given=asked))
        finally:
            os.close(asked)
        self._asks = self._stack.enter_context(os.fdopen(asks, "wb"))

    def _died(self) -> tuple[str, bytes] | None:
        self._deaths += 1
        self._end()
        return None

    def _end(self) -> None:
        stack, self._stack = self._stack, ExitStack()
        self._asks = self._said = None
        with suppress(GitFailed, BrokenPipeError):
            stack.close()


def not_whole(git: Git, names: Iterable[str]) -> set[str]:
    """Return those of these names that are no blob with the content that the name says. Errors: GitFailed."""
    left, bad = list(names), set[str]()
    for _ in range(DEATHS_MAX):
        if not left:
            return bad
        at, asked = 0, "".join(f"{one}\n" for one in left)
        with suppress(GitFailed), git.piped("cat-file", "--batch", "--buffer", given=asked) as said:
            for found in _blobs(said):
                if found != left[at]:
                    bad.add(left[at])
                at += 1
        bad.update(left[at : at + 1])  # git died there
        left = left[at + 1 :]
    return bad | set(left)


def _blobs(said: IO[bytes]) -> Iterator[str]:
    """Yield the name that each content in an output of `cat-file --batch` has; '' for what is no blob."""
    while words := said.readline().split():
        if len(words) != 3:
            yield ""
            continue
        size = int(words[2])
        digest = hashlib.sha1(b"%s %d\0" % (words[1], size), usedforsecurity=False)
        while size and (piece := said.read(min(size, _PIECE))):
            digest.update(piece)
            size -= len(piece)
        if size or not said.read(1):
            return
        yield digest.hexdigest() if words[1] == b"blob" else ""


def _skipped(said: IO[bytes], size: int) -> bool:
    while size and (piece := said.read(min(size, _PIECE))):
        size -= len(piece)
    return not size


def name_of(kind: str, data: bytes) -> str:
    """Return the name of an object."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def write(git: Git, kind: str, data: bytes) -> str:
    """Write an object whatever it is, and return its name. Errors: OSError."""
    name = name_of(kind, data)
    folder = os.path.join(git.directory, "objects", name[:2])
    path = os.path.join(folder, name[2:])
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/tmp_{name}", "wb") as file:
            file.write(zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, 1))
        os.replace(file.name, path)
    return name


def entries(data: bytes) -> tuple[list[Entry], bool]:
    """Return what a tree holds, with modes as git writes them; and whether it can be read to its end."""
    found, at = list[Entry](), 0
    while at < len(data):
        blank, end = data.find(b" ", at), data.find(b"\0", at)
        mode = data[at:blank] if 0 <= blank < end else b""
        if not _MODE.fullmatch(mode) or end + 21 > len(data):
            return found, False
        found.append(Entry(_mode(int(mode, 8)), data[blank + 1 : end], data[end + 1 : end + 21].hex()))
        at = end + 21
    return found, True


def tree(rows: Iterable[Entry]) -> bytes:
    """Return the content of a tree of these entries, in git's order."""
    return b"".join(
        b"%s %s\0%s" % (one.mode, one.name, bytes.fromhex(one.one)) for one in sorted(rows, key=lambda one: one.order)
    )


def commit(data: bytes) -> Raw:
    """Return what a commit says, as far as it can be read."""
    head, _, text = data.partition(b"\n\n")
    tree_, parents, rest = "", list[str](), list[bytes]()
    for line in head.split(b"\n"):
        named = _NAMED.fullmatch(line)
        if named is None:
            rest.append(line)
        elif named[1] == b"parent":
            parents.append(named[2].decode())
        elif not tree_:
            tree_ = named[2].decode()
    return Raw(tree_, tuple(parents), tuple(rest), text)


def _mode(mode: int) -> bytes:
    kind = mode & _KIND
    if kind in (0o040000, 0o120000, 0o160000):
        return b"%o" % kind
    return b"100755" if mode & 0o100 else b"100644"


# How long (s) it looks at commits; what it has not seen by then is left out. Files have so much (s) in any case.
LOOK_S, FILES_S = 240.0, 60.0
# So many bad entries of one tree are named; deeper trees than that, and longer names, are refused by newer releases.
NAMED_MAX, DEPTH_MAX, NAME_MAX = 100, 1000, 4096
_TAGS_MAX = 10
_EMPTY, _NOTHING = name_of("tree", b""), "0" * 40
_LINK = b"120000"
_SAID = re.compile(r"(error|warning) in \w+ ([0-9a-f]{40}): (\w+): (.*)")
_BROKEN = re.compile(r"error: ([0-9a-f]{40}): (.*)")
_DATE = re.compile(rb"> ([0-9]{1,10} [+-][0-9]{4})")
_MISSING = "its content is missing or torn"
# What git says at an object to which a name in some tree gives a meaning.
_OF_NAMES = ("gitmodules", "gitattributes")
_PLAIN = {
    "hasDotgit": "its name means `.git` on some systems",
    "hasDot": "its name is no name of a file",
    "hasDotdot": "its name is no name of a file",
    "emptyName": "its name is no name of a file",
    "badTree": "its name is no name of a file",
    "fullPathname": "its name is no name of a file",
    "gitmodulesSymlink": "git takes no link of this name",
}


@dataclass(frozen=True, slots=True)
class _Tree:
    """What became of a tree. one: what is left of it, '' for nothing; removed: path and reason of what is not in it;
    height: how deep it goes."""

    one: str
    removed: tuple[tuple[bytes, str], ...] = ()
    height: int = 1


class Sifter:
    """One save's. git: where the objects can be read, and in which new ones are written; known: commits that the
    remote has; bases: of them, those whose files nobody has to look at; author: of what is written anew."""

    def __init__(self, git: Git, known: Sequence[str], bases: Sequence[str], author: str) -> None:
        self._git, self._author, self._start = git, author, bases[0]
        self._until = time.monotonic() + LOOK_S
        lines = "".join(f"{one}\n" for one in (*known, *bases))
        self._known = set(git("rev-list", "--stdin", given=lines).lines)
        self._there = {_EMPTY}
        for one in dict.fromkeys(bases):
            rows = git("ls-tree", "-r", "-t", "-z", one).names
            self._there.update(row.partition("\t")[0].split()[2] for row in rows)
            self._there.add(git("rev-parse", "--verify", f"{one}^{{tree}}").out.strip())
        self._commits, self._trees, self._tags = dict[str, Raw](), dict[str, bytes](), dict[str, str]()
        self._blobs, self._gone = set[str](), set[str]()
        self._refused, self._targets = dict[str, str](), dict[str, dict[str, str]]()
        self._probed = dict[tuple[bytes, bytes], list[tuple[str, str]]]()
        self._made, self._sifted = dict[str, str](), dict[str, _Tree]()
        self._notes = dict[tuple[bytes, str], list[str]]()
        self._anew = 0

    def look(self, names: Iterable[str]) -> None:
        """Look at all that is below these commits, tags or trees. Errors: GitFailed, OSError."""
        commits, trees, blobs = set(self._commits), set(self._trees), set(self._blobs)
        with Reader(self._git) as reader:
            for name in names:
                self._walk(reader, name)
        fresh = self._blobs - blobs
        self._gone |= not_whole(self._git, sorted(fresh))
        self._judge({*self._commits} - commits, {*self._trees} - trees)

    def peeled(self, name: str) -> str:
        """Return what a tag leads to, or the name itself."""
        for _ in range(_TAGS_MAX):
            name = self._tags.get(name, name)
        return name

    def commit(self, name: str) -> str:
        """Return the commit that a commit or tag leads to, as git takes it; '' for none. Errors: OSError."""
        name = self.peeled(name)
        waiting = [name]
        while waiting:
            one = waiting[-1]
            raw = self._commits.get(one)
            missing = [] if raw is None or one in self._made else [p for p in raw.parents if not self._is_done(p)]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if raw is not None and one not in self._made:
                self._made[one] = self._anew_where_needed(one, raw)
        return self._mapped(name)

    def tree(self, name: str, above: str = "") -> str:
        """Return a tree as git takes it. above: the way to it, with its `/`. Errors: OSError, GitFailed also where
        there was no time to look at it: nobody removed those files."""
        self._until = max(self._until, time.monotonic() + FILES_S)
        self.look([name])
        found = self._tree(name)
        if not found.one and time.monotonic() >= self._until:
            raise GitFailed(("save", "the workspace"), TOO_LONG, "there was no time to look at its files")
        for path, why in found.removed:
            self._notes.setdefault((os.fsencode(above) + path, why), [])
        return found.one or _EMPTY

    def told(self) -> list[str]:
        """Return what was left out, as sentences."""
        lines = []
        for (path, why), commits in self._notes.items():
            where = f", in {amount(len(commits), 'commit')} such as {commits[0][:12]}" if commits else ""
            lines.append(f"{os.fsdecode(path) or 'the top folder'}: {why}{where}")
        if self._anew:
            lines.append(f"{amount(self._anew, 'commit')} as they were: made anew without what git refuses")
        return lines

    def _is_done(self, name: str) -> bool:
        return name in self._made or name in self._known or name not in self._commits

    def _mapped(self, name: str) -> str:
        return name if name in self._known else self._made.get(name, "")

    def _walk(self, reader: Reader, name: str) -> None:
        """Read what is below a name, as far as it was not yet."""
        waiting: list[tuple[str, tuple[str, ...]]] = [(name, ("commit", "tree", "tag"))]
        while waiting and time.monotonic() < self._until:
            one, kinds = waiting.pop()
            if one in self._commits or one in self._trees or one in self._known or one in self._there:
                continue
            found = reader.read(one)
            if found is None or found[0] not in kinds:
                continue
            if found[0] == "tag":
                self._tags[one] = _target(found[1])
                waiting.append((self._tags[one], ("commit", "tag")))
            elif found[0] == "commit":
                raw = self._commits[one] = commit(found[1])
                waiting += [(parent, ("commit",)) for parent in raw.parents]
                waiting += [(raw.tree, ("tree",))] * bool(raw.tree)
            else:
                self._trees[one] = found[1]
                for row in entries(found[1])[0]:
                    if row.is_tree:
                        waiting.append((row.one, ("tree",)))
                    elif not row.is_link and row.one not in self._there:
                        self._blobs.add(row.one)

    def _judge(self, commits: set[str], trees: set[str]) -> None:
        """Have git say of all these what it refuses, and of each entry of a refused tree, too."""
        rows = {one: entries(self._trees[one])[0] for one in trees}
        read = {row.one for found in rows.values() for row in found if may_be_read(row.name)}
        with_names = sorted({*commits, *trees, *((read & self._blobs) - self._gone)})
        if not with_names:
            return
        judge = self._court()
        given = "".join(f"{one}\n" for one in with_names)
        self._git("pack-objects", "--quiet", os.path.join(judge.directory, "objects", "pack", "pack"), given=given)
        for _, one, kind, text in _verdicts(judge):
            of = next((word for word in _OF_NAMES if kind.startswith(word)), "")
            if of and not kind.endswith("Symlink"):
                if one not in self._there:
                    self._targets.setdefault(one, {})[of] = f"git refuses what it says: {text} ({kind})"
            else:
                self._refused.setdefault(one, f"{text} ({kind})")
        asked = {(row.mode, row.name) for one, found in rows.items() if one in self._refused for row in found}
        asked |= {(_LINK, row.name) for found in rows.values() for row in found if row.one in self._targets}
        self._probe(asked - set(self._probed))
        remove(judge.directory)

    def _probe(self, asked: set[tuple[bytes, bytes]]) -> None:
        """Have git say what it refuses of entries of such modes and names."""
        if not asked:
            return
        judge, trees = self._court(), dict[str, tuple[bytes, bytes]]()
        for mode, name in asked:
            data = tree([Entry(mode, name, "1" * 40)])
            trees[write(judge, "tree", data)] = (mode, name)
            self._probed[mode, name] = []
        for level, one, kind, text in _verdicts(judge, all_of_it=True):
            if one in trees and (level == "error" or kind.endswith("Symlink")):
                self._probed[trees[one]].append((kind, text if level == "error" else ""))

    def _court(self) -> Git:
        """Return a repository in which nothing is yet."""
        git = Git(os.path.join(os.path.dirname(self._git.directory), "judge.git"))
        remove(git.directory)
        os.makedirs(git.directory)
        git("init", "--quiet", "--bare", "--template=")
        return git

    def _tree(self, top: str) -> _Tree:
        """Return what becomes of a tree, and of all below it."""
        waiting = [top]
        while waiting:
            one = waiting[-1]
            data = self._trees.get(one)
            if one in self._sifted or data is None:
                waiting.pop()
                continue
            rows, whole = entries(data)
            below = [
                row.one for row in rows if row.is_tree and row.one in self._trees and row.one not in self._sifted
            ]
            if below:
                waiting += below
                continue
            waiting.pop()
            self._sifted[one] = self._left_of(one, rows, whole)
        return self._of(top)

    def _of(self, name: str) -> _Tree:
        return _Tree(name) if name in self._there else self._sifted.get(name, _Tree(""))

    def _left_of(self, name: str, rows: Sequence[Entry], whole: bool) -> _Tree:
        """Return what becomes of a tree, all below which is done."""
        kept, removed, height, changed = dict[bytes, Entry](), list[tuple[bytes, str]](), 0, False
        for row in rows:
            below = self._of(row.one) if row.is_tree else _Tree(row.one)
            why = self._why(name, row, below) or ("another one has its name" if row.name in kept else "")
            if why:
                removed.append((row.name, why))
                continue
            removed += [(b"/".join(filter(None, (row.name, path))), why) for path, why in below.removed]
            changed = changed or below.one != row.one
            if below.one != _EMPTY or row.one == _EMPTY:
                kept[row.name] = replace(row, one=below.one)
                height = max(height, below.height)
        if not whole:
            removed.append((b"", "the list of its files is torn"))
        if name in self._refused and not removed:
            removed.append((b"", f"made anew with all its files, since git refuses it: {self._refused[name]}"))
        if not removed and not changed:
            return _Tree(name, (), height + 1)
        one = write(self._git, "tree", tree(kept.values()))
        return _Tree(one, _few(removed), height + 1)

    def _why(self, tree: str, row: Entry, below: _Tree) -> str:
        """Return why an entry does not stay in its tree; '' where it does."""
        if row.one == _NOTHING:
            return "it names no content (nullSha1)"
        if not below.one or (not row.is_tree and not row.is_link and row.one in self._gone):
            return _MISSING
        if below.height > DEPTH_MAX:
            return f"it is deeper than {DEPTH_MAX:,} folders"
        if len(row.name) > NAME_MAX:
            return f"its name is longer than {NAME_MAX:,} bytes"
        if tree in self._refused:
            for kind, text in self._probed[row.mode, row.name]:
                if text:
                    return f"{_PLAIN.get(kind, f'git refuses it: {text}')} ({kind})"
        for of, why in self._targets.get(row.one, {}).items():
            if any(kind.startswith(of) for kind, _ in self._probed[_LINK, row.name]):
                return why
        return ""

    def _anew_where_needed(self, name: str, raw: Raw) -> str:
        """Return a commit, all parents of which are done, as git takes it."""
        parents = list(filter(None, map(self._mapped, raw.parents)))
        found, why = self._tree(raw.tree), self._refused.get(name, "")
        if (found.one, tuple(parents), why) == (raw.tree, raw.parents, ""):
            return name
        for path, reason in found.removed:
            self._notes.setdefault((path, reason), []).append(name)
        lost = [one for one in raw.parents if not self._mapped(one)]
        label = f"commit {name[:12]}".encode()
        if why:
            self._notes.setdefault((label, f"git refuses it: {why}"), [])
        if lost:
            self._notes.setdefault((label, f"the commit before it, {lost[0][:12]}, is missing or torn"), [])
        if raw.parents and not parents:
            parents = [self._start]
        if not found.one:
            self._notes.setdefault((label, "the list of its files is missing or torn"), [])
        tree = found.one or self._git("rev-parse", f"{(parents or [self._start])[0]}^{{tree}}").out.strip()
        self._anew += 1
        lines = [f"tree {tree}".encode(), *(f"parent {one}".encode() for one in parents)]
        lines += list(self._own_header(raw) if why else _kept(raw.header))
        text = raw.text.replace(b"\0", b"").rstrip(b"\n")
        data = b"\n".join([*lines, b"", text, b"", f"Spool-Made-Anew-From: {name}".encode(), b""])
        return write(self._git, "commit", data)

    def _own_header(self, raw: Raw) -> Iterator[bytes]:
        """Yield author and committer of a commit whose own ones git may refuse."""
        found = next((date[1] for line in raw.header[::-1] if (date := _DATE.search(line))), None)
        when = found if found and not found.startswith(b"0") else self._when()
        name = re.sub(r"[<>\x00-\x1f]", "", self._author) or "agent"
        for role in ("author", "committer"):
            yield f"{role} {name} <{address(name)}> ".encode() + when

    def _when(self) -> bytes:
        return self._git("show", "--no-patch", "--format=%ct +0000", self._start).out.strip().encode()


def _verdicts(judge: Git, *, all_of_it: bool = False) -> Iterator[tuple[str, str, str, str]]:
    """Yield what git refuses in a repository: error or warning, object, the kind of fault, and words."""
    words = ("--strict", "--no-dangling", "--no-progress", "--no-reflogs")
    for line in judge.ask("fsck", *words).errors.splitlines():
        if (said := _SAID.match(line)) is not None:
            level, one, kind, text = said.groups()
            if level == "error" or all_of_it:
                yield level, one, kind, text
        elif (broken := _BROKEN.match(line)) is not None:
            yield "error", broken[1], "badObject", broken[2]


def _kept(header: Sequence[bytes]) -> Iterator[bytes]:
    """Yield what still holds of a commit that is made anew: a signature does not."""
    for line in header:
        if line.startswith((b"author ", b"committer ", b"encoding ")):
            yield line


def _target(tag: bytes) -> str:
    return tag[len(b"object ") : len(b"object ") + 40].decode("ascii", "replace")


def _few(removed: Sequence[tuple[bytes, str]]) -> tuple[tuple[bytes, str], ...]:
    if len(removed) <= NAMED_MAX:
        return tuple(removed)
    return (*removed[:NAMED_MAX], (b"", f"and {len(removed) - NAMED_MAX} more paths"))


def may_be_read(name: bytes) -> bool:
    """Whether some system could take a name for one that git reads, such as `.gitmodules`: more names than that."""
    letters = re.sub(rb"[^a-zA-Z]", b"", name[:100])
    return letters[:1] in (b"g", b"G") or b"~" in name
