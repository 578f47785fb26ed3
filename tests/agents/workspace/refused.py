"""What git refuses: objects and files of every kind that its fsck names, each among others that are good.

A kind is named as `git help fsck` names it. Objects are written as raw bytes, since no command of git makes them.
"""

from __future__ import annotations

import hashlib
import os
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

IDENT = b"ada <ada@example.org> 1700000000 +0000"
Rows = list[tuple[bytes, bytes, str]]


@dataclass
class Made:
    """What an agent left. good: names of contents that must be on the remote; named: of each bad thing the words, one
    of which must be told; tips: a branch each."""

    folder: Path
    chance: random.Random
    good: set[str] = field(default_factory=set)
    named: list[tuple[str, ...]] = field(default_factory=list)

    def write(self, kind: str, data: bytes) -> str:
        raw = b"%s %d\0" % (kind.encode(), len(data)) + data
        name = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
        path = self.folder / ".git/objects" / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_bytes(zlib.compress(raw))
        return name

    def text(self) -> bytes:
        return b"%d\n" % self.chance.getrandbits(64)

    def blob(self, data: bytes = b"", *, good: bool = True) -> str:
        name = self.write("blob", data or self.text())
        if good:
            self.good.add(name)
        return name

    def tree(self, rows: Rows, *, in_order: bool = True) -> str:
        rows = sorted(rows, key=lambda row: row[1] + b"/" * (row[0] == b"40000")) if in_order else rows
        return self.write("tree", b"".join(b"%s %s\0" % row[:2] + bytes.fromhex(row[2]) for row in rows))

    def commit(self, tree: str, parents: tuple[str, ...], **lines: bytes) -> str:
        head = b"".join(b"parent %s\n" % one.encode() for one in parents)
        author, committer = lines.get("author", IDENT), lines.get("committer", IDENT)
        data = b"tree %s\n%sauthor %s\ncommitter %s\n%s" % (
            *(tree.encode(), head, author, committer),
            lines.get("rest", b"\nmine\n"),
        )
        return self.write("commit", data)

    def file(self, name: str, data: bytes, *, good: bool = True) -> None:
        """Write a file of the tree."""
        path = os.path.join(os.fsencode(self.folder), name.encode())
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        if good:
            self.good.add(hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest())


# Makes a commit above another one.
Maker = Callable[[Made, str], str]


def _above(made: Made, parent: str, rows: Rows, *words: str, in_order: bool = True) -> str:
    """A commit whose tree has these entries, beside good ones; a good commit is above it."""
    name = b"good-%d" % made.chance.getrandbits(32)
    here = [(b"100644", name, made.blob()), *rows]
    inner = made.tree(here, in_order=in_order)
    top = made.tree([(b"40000", b"in-%d" % made.chance.getrandbits(32), inner), (b"100644", b"top", made.blob())])
    made.named.append(words)
    bad = made.commit(top, (parent,))
    return made.commit(made.tree([(b"100644", b"after", made.blob())]), (bad,))


def _entry(name: bytes, *words: str, mode: bytes = b"100644", data: bytes = b"") -> Maker:
    def make(made: Made, parent: str) -> str:
        return _above(made, parent, [(mode, name, made.blob(data, good=False))], *words)

    return make


def _folder(name: bytes, *words: str) -> Maker:
    def make(made: Made, parent: str) -> str:
        inner = made.tree([(b"100644", b"config", made.blob(good=False))])
        return _above(made, parent, [(b"40000", name, inner)], *words)

    return make


def _unsorted(made: Made, parent: str) -> str:
    rows = [(b"100644", b"z", made.blob()), (b"100644", b"a", made.blob())]
    return _above(made, parent, rows, "treeNotSorted", in_order=False)


def _twice(made: Made, parent: str) -> str:
    return _above(
        made,
        parent,
        [(b"100644", b"twice", made.blob(made.text())), (b"100644", b"twice", made.blob(good=False))],
        "twice",
    )


def _null(made: Made, parent: str) -> str:
    return _above(made, parent, [(b"100644", b"nothing", "0" * 40)], "nothing")


def _missing(made: Made, parent: str) -> str:
    return _above(made, parent, [(b"100644", b"missing", "12" * 20), (b"40000", b"absent", "34" * 20)], "missing")


def _torn_blob(made: Made, parent: str) -> str:
    torn = made.blob(made.text(), good=False)
    (made.folder / ".git/objects" / torn[:2] / torn[2:]).write_bytes(b"")
    return _above(made, parent, [(b"100644", b"torn", torn)], "torn")


def _false_blob(made: Made, parent: str) -> str:
    """One whose content is not what its name says."""
    torn = made.blob(made.text(), good=False)
    (made.folder / ".git/objects" / torn[:2] / torn[2:]).write_bytes(zlib.compress(b"blob 3\0new"))
    return _above(made, parent, [(b"100644", b"false", torn)], "false")


def _other_kind(made: Made, parent: str) -> str:
    inner, blob = made.tree([(b"100644", b"x", made.blob())]), made.blob()
    rows = [(b"100644", b"no-file", inner), (b"40000", b"folder", inner)]
    rows += [(b"40000", b"no-folder", blob), (b"100644", b"file", blob)]
    made.named.append(("no-folder",))
    return _above(made, parent, rows, "no-file")


def _torn_tree(made: Made, parent: str) -> str:
    inner = made.write("tree", b"100644 first\0" + bytes.fromhex(made.blob()) + b"100644 second\0short")
    return _above(made, parent, [(b"40000", b"short", inner)], "short")


def _gitmodules_folder(made: Made, parent: str) -> str:
    inner = made.tree([(b"100644", b"x", made.blob(good=False))])
    return _above(made, parent, [(b"40000", b".gitmodules", inner)], ".gitmodules")


def _commit(**lines: bytes) -> Maker:
    def make(made: Made, parent: str) -> str:
        bad = made.commit(made.tree([(b"100644", b"kept", made.blob())]), (parent,), **lines)
        made.named.append((bad[:12],))
        return made.commit(made.tree([(b"100644", b"after", made.blob())]), (bad,))

    return make


def _raw(form: bytes) -> Maker:
    def make(made: Made, parent: str) -> str:
        tree = made.tree([(b"100644", b"lost", made.blob(good=b"%(tree)b" in form))])
        bad = made.write("commit", form % {b"tree": tree.encode(), b"parent": parent.encode(), b"by": IDENT})
        made.named.append((bad[:12],))
        return made.commit(made.tree([(b"100644", b"after", made.blob())]), (bad,))

    return make


def _no_parent(made: Made, parent: str) -> str:
    made.named.append(("56" * 6,))
    return made.commit(made.tree([(b"100644", b"kept", made.blob())]), ("56" * 20,))


_URL = b'[submodule "a"]\n\tpath = a\n\turl = %s\n'
HISTORY: Mapping[str, Maker] = {
    "hasDotgit": _folder(b".git", ".git"),
    "hasDotgit of HFS": _entry(".g\u200cit".encode(), "it"),
    "hasDotgit of NTFS": _entry(b"git~1", "git~1"),
    "hasDotgit with a backslash": _entry(b"x\\.git\\y", "git"),
    "hasDot": _entry(b".", "no name of a file"),
    "hasDotdot": _folder(b"..", "no name of a file"),
    "emptyName": _entry(b"", "no name of a file"),
    "fullPathname": _entry(b"x/../../y", "no name of a file"),
    "gitmodulesUrl": _entry(b".gitmodules", ".gitmodules", data=_URL % b"-x"),
    "gitmodulesUrl with a line": _entry(b".gitmodules", ".gitmodules", data=_URL % b"http://x/%0ahost=y"),
    "gitmodulesName": _entry(b".gitmodules", ".gitmodules", data=b'[submodule "../../x"]\n\tpath = a\n'),
    "gitmodulesPath": _entry(b".gitmodules", ".gitmodules", data=b'[submodule "a"]\n\tpath = -x\n'),
    "gitmodulesUpdate": _entry(b".gitmodules", ".gitmodules", data=b'[submodule "a"]\n\tupdate = !cmd\n'),
    "gitmodulesSymlink": _entry(b".gitmodules", ".gitmodules", mode=b"120000"),
    "gitmodulesSymlink of NTFS": _entry(b"GITMOD~1", "GITMOD~1", mode=b"120000"),
    "gitmodulesBlob": _gitmodules_folder,
    "gitattributesLineLength": _entry(b".gitattributes", ".gitattributes", data=b"*.x " + b"a" * 3000 + b"\n"),
    "zeroPaddedFilemode": _entry(b"padded", "zeroPaddedFilemode", mode=b"0100644"),
    "nullSha1": _null,
    "treeNotSorted": _unsorted,
    "duplicateEntries": _twice,
    "badTree": _torn_tree,
    "missing": _missing,
    "torn": _torn_blob,
    "another content": _false_blob,
    "another kind": _other_kind,
    "no parent": _no_parent,
    "badDate": _commit(author=b"a <b@c> now +0000"),
    "badDateOverflow": _commit(committer=b"a <b@c> 99999999999999999999999 +0000"),
    "zeroPaddedDate": _commit(author=b"a <b@c> 01700000000 +0000"),
    "badTimezone": _commit(author=b"a <b@c> 1700000000 +00"),
    "missingEmail": _commit(author=b"a 1700000000 +0000"),
    "badEmail": _commit(author=b"a <b@c 1700000000 +0000"),
    "missingNameBeforeEmail": _commit(author=b"<b@c> 1700000000 +0000"),
    "missingSpaceBeforeEmail": _commit(author=b"a<b@c> 1700000000 +0000"),
    "missingSpaceBeforeDate": _commit(committer=b"a <b@c>1700000000 +0000"),
    "badName": _commit(author=b"a> <b@c> 1700000000 +0000"),
    "multipleAuthors": _commit(author=IDENT + b"\nauthor " + IDENT),
    "nulInCommit": _commit(rest=b"\na\0b\n"),
    "nulInHeader": _commit(author=b"a\0 <b@c> 1700000000 +0000"),
    "unterminatedHeader": _raw(b"tree %(tree)b\nparent %(parent)b\nauthor %(by)b\n"),
    "missingAuthor": _raw(b"tree %(tree)b\nparent %(parent)b\n\nmine\n"),
    "missingCommitter": _raw(b"tree %(tree)b\nparent %(parent)b\nauthor %(by)b\n\nmine\n"),
    "missingTree": _raw(b"author %(by)b\ncommitter %(by)b\n\nmine\n"),
    "badTreeSha1": _raw(b"tree zz\nauthor %(by)b\ncommitter %(by)b\n\nmine\n"),
    "badParentSha1": _raw(b"tree %(tree)b\nparent zz\nauthor %(by)b\ncommitter %(by)b\n\nmine\n"),
    "nothing at all": _raw(b""),
}

# Below these nothing of what was there before is reachable any more.
ALONE = ("no parent", "missingTree", "badTreeSha1", "badParentSha1", "nothing at all")


def _files(name: str, data: bytes, *words: str) -> Callable[[Made, str], None]:
    def make(made: Made, top: str) -> None:
        made.file(f"{top}/{name}", data or made.text(), good=False)
        made.file(f"{top}/good", made.text())
        made.named.append(words or (f"{top}/{name.partition('/')[0]}",))

    return make


def _link(name: str) -> Callable[[Made, str], None]:
    def make(made: Made, top: str) -> None:
        made.file(f"{top}/good", made.text())
        os.symlink("good", made.folder / top / name)
        made.named.append((f"{top}/{name}",))

    return make


def _encoding(made: Made, top: str) -> None:
    made.file(f"{top}/.gitattributes", b"*.x working-tree-encoding=nope\n*.y working-tree-encoding=UTF-16\n")
    for name in ("a.x", "b.x", "b.y", "good"):
        made.file(f"{top}/{name}", made.text())
    made.named.append((f"{top}/b.x",))


FILES: Mapping[str, Callable[[Made, str], None]] = {
    "hasDotgit of HFS": _files(".g\u200cit/x", b""),
    "hasDotgit, other signs": _files(".\u200egi\u200ft", b""),
    "hasDotgit of NTFS": _files("git~1", b""),
    "hasDotgit with a backslash": _files("x\\.git", b""),
    "a stream": _files(".git::$INDEX_ALLOCATION", b""),
    "upper case": _files(".GIT/config", b""),
    "gitmodulesUrl": _files(".gitmodules", _URL % b"--upload-pack=x"),
    "gitmodulesUpdate": _files(".gitmodules", b'[submodule "a"]\n\tupdate = !cmd\n'),
    "gitmodulesUrl of NTFS": _files("gitmod~1", _URL % b"-x"),
    "gitattributesLineLength": _files(".gitattributes", b"*.x " + b"a" * 3000 + b"\n"),
    "gitmodulesSymlink": _link(".gitmodules"),
    "gitmodulesSymlink of HFS": _link(".gitmod\u200cules"),
    "encodings": _encoding,
}
