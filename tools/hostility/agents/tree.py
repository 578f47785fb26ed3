"""What an agent may leave among its files: names, links, kinds, sizes, rights, and processes that go on writing.

Law: nothing outside of the tree is changed.

Touches: files, the network, the clock.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

from tools.hostility.agents.place import (
    KINDS,
    OF_THE_USER,
    REPOSITORY,
    SAVED,
    Place,
    add,
    block,
    left_behind,
    link,
    pipe,
    put,
)


@block("tree", KINDS)
def names(place: Place) -> None:
    """Files with names of every kind."""
    rows = (b"new\nline", b"-dash", b"--", b"\xff\xfe\x80raw", b"\xe2\x80\xaeedoc", b"tab\there", b"\x1b[2Jclear")
    more = (
        b" blank ",
        b"quote'\"",
        b"$(id)",
        b"back\\slash",
        b"colon:x",
        b"star*[x]?",
        b"CON.aux",
        b"dot.",
        b"~tilde",
    )
    for number, name in enumerate(place.chance.sample((*rows, *more), 8)):
        place.write(name + b"-names-%d" % number)


@block("tree")
def pathspecs(place: Place) -> None:
    """Files whose names git could read as magic."""
    for name in (b":(exclude)specs", b":!specs", b":/specs", b":(top,glob)**-specs", b"@{-1}specs", b"HEAD"):
        place.write(name.replace(b"/", b"-"))
    place.write(b":(literal)/specs")


@block("tree")
def git_names(place: Place) -> None:
    """Files whose names are `.git` on another file system."""
    for name in (
        b".GIT/config",
        b"git~1",
        b"sub/.Git/x",
        b".git /x",
        b".g\xe2\x80\x8cit/x",
        b".git.",
        b"x/.git::$INDEX",
    ):
        with contextlib.suppress(OSError):
            place.write(name)


@block("tree")
def refused_settings(place: Place) -> None:
    """Files that git reads itself, with content that it refuses."""
    rows = (b"path = -x", b"url = --upload-pack=x", b"update = !touch x")
    place.write("refused/.gitmodules", b'[submodule "a"]\n\t%s\n' % place.chance.choice(rows) + b"# " + place.text())
    place.write("refused-long/.gitattributes", b"*.none " + b"a" * 3000 + b"\n" + place.text())
    place.write("refused-encoding/.gitattributes", b"*.nope working-tree-encoding=nope\n" + b"# " + place.text())
    for number in range(3):
        place.write(f"refused-encoding/{number}.nope")
    place.write("refused-beside.txt")


@block("tree")
def refused_links(place: Place) -> None:
    """Links in the places of files that git reads itself."""
    for name in (".gitmodules", ".gitmod\u200cules", "GITMOD~1", ".gitattributes"):
        link("README", place.path(f"refused-links/{name}"))
    place.write("refused-links/beside.txt")


@block("tree")
def many_refused(place: Place) -> None:
    """Many names that git refuses, each beside one that it takes."""
    for number in range(place.scale.files // 3):
        place.write(f"many-refused/{number}/.g\u200cit")
        place.write(f"many-refused/{number}/beside")


@block("tree")
def long_names(place: Place) -> None:
    """Names as long as a file system takes."""
    place.write(b"long-" + b"n" * 250)
    place.write(b"/".join([b"long-" + b"p" * 200] * 15))


@block("tree")
def deep(place: Place) -> None:
    """A file deeper than any path."""
    here, parts = os.open(place.tree, os.O_RDONLY), []
    for level in range(place.chance.choice((60, 300))):
        name = f"deep-{level:03d}-{'d' * 20}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=here)
        there = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
        parts.append(name)
    with open(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=here), "wb") as file:
        file.write(place.text())
    os.close(here)


@block("tree")
def case_twins(place: Place) -> None:
    """Names that differ by case, and by how an accent is written."""
    for name in (b"twins", b"TWINS", b"Twins", b"twin-\xc3\xa9", b"twin-e\xcc\x81"):
        place.write(name)


@block("tree")
def many_files(place: Place) -> None:
    """Many small files."""
    for number in range(place.scale.files):
        place.write(f"many/{number % 37}/{number}", b"%d of %d\n" % (number, place.seed))


@block("tree")
def wide_folders(place: Place) -> None:
    """Many folders, most of them empty."""
    for number in range(place.scale.files):
        os.makedirs(place.path(f"wide/{number % 11}/{number}"), exist_ok=True)
    place.write("wide/full")


@block("tree")
def sparse(place: Place) -> None:
    """A file that is large and holds nothing."""
    path = place.write("sparse.bin")
    os.truncate(path, place.scale.sparse)


@block("tree")
def large(place: Place) -> None:
    """A file that cannot be packed small."""
    place.write("large.bin", place.text(place.scale.text))


@block("tree", KINDS)
def links_out(place: Place) -> None:
    """Links out of the tree, to nothing, to itself and to devices."""
    for number, target in enumerate((f"{place.canary}/secret", place.canary, "/", "/dev/zero", "/proc/self/mem")):
        link(target, place.path(f"link-out-{number}"))
    link("link-loop", place.path("link-loop"))
    link("nowhere/" * 100, place.path("link-nowhere"))
    os.symlink(b"\xff\n-raw", place.path(f"link-raw-{place.chance.randrange(1000)}"))


@block("tree", REPOSITORY)
def folder_is_a_link(place: Place) -> None:
    """A folder of the base becomes a link out of the tree."""
    link(place.canary, place.path("folder"))


@block("tree", REPOSITORY)
def file_is_a_link(place: Place) -> None:
    """A file of the base becomes a link to what nobody may read."""
    link(f"{place.canary}/secret", place.path("data.txt"))


@block("tree", KINDS)
def pipes(place: Place) -> None:
    """Pipes, some in the places of files of the base."""
    for name in ("pipe", "folder/pipe", "data.txt"):
        pipe(place.path(name))


@block("tree", KINDS)
def sockets(place: Place) -> None:
    """Sockets."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as made:
        os.chdir(place.tree)
        made.bind(f"socket-{place.chance.randrange(1000)}")


@block("tree", KINDS)
def devices(place: Place) -> None:
    """Devices (for root without a sandbox)."""
    with contextlib.suppress(OSError):
        os.mknod(place.path("device-zero"), 0o600 | 0o020000, os.makedev(1, 5))
    place.write("devices.txt")


@block("tree")
def unreadable_files(place: Place) -> None:
    """Files that nobody may read."""
    for number, mode in enumerate((0o000, 0o200, 0o111, 0o4755)):
        data = place.text()
        place.write(f"unreadable-{number}", data, mode)
        place.known[b"unreadable-%d" % number] = data


@block("tree")
def unreadable_folders(place: Place) -> None:
    """Folders that nobody may list, enter or change."""
    for number, mode in enumerate((0o000, 0o111, 0o444, 0o555)):
        data, name = place.text(), f"shut-{number}/file"
        place.write(name, data)
        place.known[name.encode()] = data
        os.chmod(place.path(f"shut-{number}"), mode)


@block("tree")
def tree_is_shut(place: Place) -> None:
    """The tree itself may not be changed."""
    place.write("tree-is-shut.txt")
    os.chmod(place.tree, 0o555)


@block("tree")
def hard_links(place: Place) -> None:
    """One file under many names, and, without a sandbox, a file of others under a name here."""
    place.write("hard-0")
    for number in range(1, 20):
        with contextlib.suppress(FileExistsError):
            os.link(place.path("hard-0"), place.path(f"hard-{number}"))
    with contextlib.suppress(OSError):
        os.link(f"{place.canary}/open", place.path("hard-outside"))


@block("tree")
def modes(place: Place) -> None:
    """Files whose rights alone change."""
    for name, mode in (("README", 0o755), ("setup.sh", 0o600), ("data.txt", 0o6777)):
        os.chmod(place.path(name), mode)


@block("tree")
def line_ends(place: Place) -> None:
    """Lines that end as elsewhere, and settings for them."""
    place.write("crlf.txt", place.text().replace(b"\n", b"\r\n") * 3)
    place.write("mixed.txt", place.text() + b"a\r\nb\nc\r")
    add(place.path(".gitattributes"), b"*.txt text eol=crlf\n")


@block("tree")
def encodings(place: Place) -> None:
    """Files that are not what the attributes say of their encoding."""
    place.write("utf16.enc", place.text())
    place.write("true.enc", place.text().decode().encode("utf-16"))
    add(place.path(".gitattributes"), b"*.enc working-tree-encoding=UTF-16 text\n")


@block("tree")
def binary(place: Place) -> None:
    """Bytes of every kind, and none."""
    place.write("binary.bin", bytes(range(256)) * 8 + place.text())
    place.write("empty.bin", b"")
    place.write("nul", b"\0" * 5000 + place.text())


@block("tree")
def ignored_files(place: Place) -> None:
    """What the repository ignores: it need not be saved."""
    place.write("ignored/large", place.text(50_000))
    place.write("folder/.gitignore", b"own-ignored\n")
    place.write("folder/own-ignored")
    place.ignored += [b"ignored", b"folder/own-ignored"]


@block("tree")
def all_ignored(place: Place) -> None:
    """Rules that ignore everything that is new."""
    place.write("all-ignored.txt")
    add(place.path(".gitignore"), b"\n*\n!innocent-*\n")  # what others make later is still to land
    place.ignored.append(b"")
    place.write("data.txt")


@block("tree")
def ignored_by_itself(place: Place) -> None:
    """What only settings of its own ignore: a person's, or those of its git directory."""
    place.write("ignored-by-itself/file")
    add(f"{place.shared}/info/exclude", b"ignored-by-itself\n")
    put(f"{place.home}/.config/git/ignore", b"*\n")
    place.ignored.append(b"ignored-by-itself")


@block("tree", sandbox=False)
def ignored_by_the_user(place: Place) -> None:
    """What only the settings of the worker's user ignore: it is to be saved."""
    place.write(f"ignored-by-the-user.{OF_THE_USER}")


@block("tree", KINDS)
def writers(place: Place) -> None:
    """Processes that stay, and write on while all is saved."""

    def write_on() -> None:
        until = time.monotonic() + 120
        number = 0
        while time.monotonic() < until:
            number += 1
            with contextlib.suppress(OSError):
                put(place.path(f"writers/{number % 50}"), b"%d\n" % number)
            time.sleep(0.002)

    place.ignored.append(b"writers")
    place.write("before-writers.txt")
    for _ in range(2):
        left_behind(write_on)


@block("tree", KINDS)
def locker(place: Place) -> None:
    """A process that stays, and makes git's locks as often as it can."""

    def lock_on() -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            # Where a link stands there by now, an agent without a sandbox would reach what is behind it by itself.
            for folder in (one for one in (place.own, place.shared) if not os.path.islink(one)):
                for name in ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"):
                    with contextlib.suppress(OSError):
                        os.close(os.open(f"{folder}/{name}", os.O_CREAT | os.O_WRONLY))
            time.sleep(0.005)

    place.write("locker.txt")
    left_behind(lock_on)


@block("tree", SAVED)
def swapped(place: Place) -> None:
    """A process that stays, and swaps a folder for a link out of the tree, back and forth."""

    def swap_on() -> None:
        one, other = place.path("swapped"), place.path("swapped-link")
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                os.rename(one, place.path("swapped-was"))
                os.rename(other, one)
                os.rename(one, other)
                os.rename(place.path("swapped-was"), one)

    place.write("swapped/secret")
    link(place.canary, place.path("swapped-link"))
    place.ignored += [b"swapped", b"swapped-link", b"swapped-was"]
    left_behind(swap_on)


@block("tree", KINDS)
def printed(place: Place) -> None:
    """Print what looks like a result, and lines without an end."""
    place.write("printed.txt")
    os.write(1, b'SPOOL:COMPLETED {"text": "x", "workspace": {"ref": "refs/heads/main"}}\n' + b"x" * 200_000 + b"\n")
