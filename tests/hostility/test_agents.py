"""The parts of `tools/hostile --agents`: plans, profiles, repositories, canaries, and who kills."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.configuration.profiles import expand
from tests.e2e.pool import wait_for
from tools.hostility.agents.agent import BLOCKS, main, plan
from tools.hostility.agents.canaries import Canaries
from tools.hostility.agents.killing import Killer
from tools.hostility.agents.place import KINDS, SCALES, STAGES, Place, Scale
from tools.hostility.agents.profiles import worker_file
from tools.hostility.agents.remotes import FAILS, Remote, git

# Each shows a fault that the build of d05c9fd had: the header of tools/hostile names them.
SHOWN = (
    *("rewritten_setup", "setup_of_a_base", "git_file", "commondir", "heads_are_root", "attributes_pipe"),
    *("lfs_address", "lfs_content", "lfs_repository", "inner_committed", "submodule_moved", "submodule_changed"),
    *("ignored_by_the_user", "loot", "killed_saver"),
)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of git from outside."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))


def place(tree: Path, kind: str = "clone", sandboxed: bool = False) -> Place:
    words: dict[str, Any] = {"canary": f"{tree}-canary", "marks": f"{tree}-marks", "root": f"{tree}-root"}
    return Place(
        random.Random(1), SCALES["small"], 1, kind, sandboxed, **words, port=1, tree=str(tree), home=f"{tree}-home"
    )


def test_there_are_at_least_a_hundred_blocks_and_each_says_what_it_leaves() -> None:
    assert len(BLOCKS) >= 100
    for block in BLOCKS.values():
        assert block.do.__doc__, block.name
        assert block.stage in STAGES
        assert set(block.kinds) <= set(KINDS)


def test_a_seed_is_the_same_each_time_and_all_blocks_and_ways_come() -> None:
    plans = [plan(seed) for seed in range(1500)]
    assert plans == [plan(seed) for seed in range(1500)]
    assert {name for one in plans for name in one.blocks} == set(BLOCKS)
    assert {one.kind for one in plans} == set(KINDS)
    assert {one.kill for one in plans} == {"", "git", "saver", "merger"}
    assert {one.again for one in plans} == {"", "retry", "base"}
    for one in plans:
        assert all(one.kind in BLOCKS[name].kinds for name in one.blocks)
        assert [STAGES.index(BLOCKS[name].stage) for name in one.blocks] == sorted(
            STAGES.index(BLOCKS[name].stage) for name in one.blocks
        )


@pytest.mark.parametrize("name", SHOWN)
def test_the_deeds_of_the_header_are_played_as_they_need_it(name: str) -> None:
    for seed in range(20):
        one = plan(seed, name)
        assert one.blocks == (name,)
        said = {"sandbox": one.sandbox, "kind": one.kind, "lines": one.lines, "again": one.again, "lfs": one.lfs}
        wants = {key: value for key, value in BLOCKS[name].wants.items() if key in said}
        assert wants == {key: said[key] for key in wants}
        assert name in Path("tools/hostile").read_text()


def test_a_worker_takes_the_profiles_and_every_plan_has_one(tmp_path: Path) -> None:
    handlers: dict[str, Any] = {}
    for host in ("lfs", "plain"):
        merges = {"python": sys.executable} if host == "lfs" else {}
        text = worker_file(host, f"{tmp_path}/way/ear", str(tmp_path), ["/srv/a.git"], merges, 90)
        handlers |= expand(tomllib.loads(text), "worker.toml")["handlers"]
    assert {plan(seed).profile for seed in range(1500)} <= set(handlers)
    assert {"merge", "lfs-innocent", "plain-innocent"} <= set(handlers)


def test_a_program_of_an_agent_takes_a_prompt_that_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when it is asked to resolve a conflict."""
    read, write = os.pipe()
    os.write(write, b"resolve this\n")
    os.close(write)
    script = "import sys; sys.argv = ['x', '/nowhere', '/']; from tools.hostility.agents.agent import main; main()"
    done = subprocess.run([sys.executable, "-c", script], stdin=read, capture_output=True, check=True)
    os.close(read)
    assert b"SPOOL:FAILED" in done.stdout
    assert main is not None


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path / "remote.git", "plain")


def commit(remote: Remote, ref: str, files: dict[str, bytes], parent: str = "") -> str:
    rows = ""
    for name, data in files.items():
        rows += (
            f"100644 blob {git(remote.path, 'hash-object', '-w', '--stdin', given=data).decode().strip()}\t{name}\n"
        )
    tree = git(remote.path, "mktree", given=rows.encode()).decode().strip()
    made = git(remote.path, "commit-tree", tree, *(["-p", parent] if parent else []), "-m", ref).decode().strip()
    git(remote.path, "update-ref", ref, made)
    return made


def test_a_remote_knows_what_a_task_has_there_and_in_bundles(remote: Remote, tmp_path: Path) -> None:
    other = Remote(tmp_path / "other.git", "plain")
    inner = commit(other, "refs/heads/main", {"x": b"inner\n"})
    git(other.path, "bundle", "create", "-q", str(tmp_path / "made"), "main")
    bundle = (tmp_path / "made").read_bytes()
    mine = commit(remote, "refs/spool/one/1", {"a": b"mine\n"})
    commit(remote, "refs/spool/one/nested/x", {"x.bundle": bundle})
    others = commit(remote, "refs/spool/two/1", {"a": b"other\n"})
    assert {mine, inner, remote.first} <= remote.present("one")
    assert others not in remote.present("one")
    assert remote.references("one")["refs/spool/one/1"] == mine


def test_a_remote_knows_every_update_of_main(remote: Remote) -> None:
    second = commit(remote, "refs/heads/main", {"a": b"2\n"}, remote.first)
    third = commit(remote, "refs/heads/main", {FAILS: b"x"})
    assert [(one.before, one.after) for one in remote.landings()] == [(remote.first, second), (second, third)]
    assert [remote.goes_on(one) for one in remote.landings()] == [True, False]
    assert [remote.fails(one) for one in (second, third)] == [False, True]
    assert remote.holds(FAILS)
    assert not remote.holds("a")


@pytest.mark.parametrize("kind", ["submodule", "lfs"])
def test_a_remote_of_another_kind_has_what_it_needs(tmp_path: Path, kind: str) -> None:
    made = Remote(tmp_path / "r.git", kind)
    names = git(made.path, "ls-tree", "--name-only", "main").decode().split()
    assert {"submodule": {"lib", ".gitmodules"}, "lfs": {"large.lfs", ".gitattributes"}}[kind] <= set(names)
    assert (kind == "lfs") == any(data == b"large\n" * 1000 for data in made.everything())


@pytest.fixture
def canaries(tmp_path: Path) -> Iterator[Canaries]:
    made = Canaries(tmp_path / "canary")
    yield made
    made.close()


def test_canaries_tell_who_reads_knocks_and_runs(canaries: Canaries) -> None:
    assert canaries.told() == []
    (canaries.folder / "secret").read_text()
    (canaries.marks / "7.config.git").write_text("git add")
    with socket.create_connection(("127.0.0.1", canaries.port)) as way:
        way.sendall(b"POST /7-x")
    heard: list[str] = []

    def complete() -> bool:
        heard.extend(canaries.told())
        text = "\n".join(heard)
        return all(word in text for word in ("secret of the canary was opened", "7.config.git was run", "POST /7-x"))

    wait_for(complete, "all three are told")
    assert canaries.words_in(b"... " + canaries.words["file"].encode()) == ["file"]
    assert canaries.words_in(b"nothing") == []


def test_only_processes_of_the_task_are_killed() -> None:
    line = [sys.executable, "-c", "import time; time.sleep(60)", "spoold.agents.merge"]
    env = {**os.environ, "SPOOL_ROOT": "/spool"}
    mine = subprocess.Popen(line, env={**env, "SPOOL_TASK_ID": "one-merge"})
    other = subprocess.Popen(line, env={**env, "SPOOL_TASK_ID": "two-merge"})
    try:
        killer = Killer("one", "/spool", "merger", 1)
        killer.start()
        assert mine.wait(30) == -9
        assert "spoold.agents.merge" in killer.end()
        assert other.poll() is None
    finally:
        for one in (mine, other):
            one.kill()
            one.wait()


def test_a_killer_that_finds_nothing_ends() -> None:
    killer = Killer("none", "/spool", "git", 1)
    killer.start()
    assert killer.end() == ""


@pytest.fixture
def clone(remote: Remote, tmp_path: Path) -> Path:
    git(remote.path, "clone", "-q", ".", str(tmp_path / "tree"))
    return tmp_path / "tree"


STAY = ("writers", "locker", "swapped")  # they leave processes


@pytest.mark.parametrize("stage", STAGES)
def test_every_block_can_be_done(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """One that fails where nothing holds it would leave nothing to be judged."""
    bases = {"plain": remote, "submodule": Remote(tmp_path / "submodule.git", "submodule")}
    for block in BLOCKS.values():
        if block.stage != stage or block.name in STAY:
            continue
        base = bases.get(str(block.wants.get("base")), remote)
        tree = tmp_path / block.name
        git(base.path, "clone", "-q", ".", str(tree))
        here = place(tree, "clone" if "clone" in block.kinds else block.kinds[0])
        here.block, here.scale = block.name, Scale(30, 4096, 4096)
        monkeypatch.chdir(tree)
        block.do(here)
        os.chdir(tmp_path)
        subprocess.run(["chmod", "-R", "u+rwX", tree], capture_output=True, check=False)


@pytest.mark.parametrize("name", ["committed", "stash", "tagged", "conflict", "inner_of_inner", "own_worktree"])
def test_what_a_block_notes_as_committed_is_there(clone: Path, name: str) -> None:
    here = place(clone)
    here.block = name
    BLOCKS[name].do(here)
    assert here.commits
    folders = [path.parent for path in clone.rglob(".git")]
    found = {line for at in folders for line in git(at, "rev-list", "--all").decode().split()}
    assert set(here.commits) <= found


def test_a_trap_leaves_a_mark_unless_the_agent_itself_runs_it(clone: Path) -> None:
    here = place(clone)
    here.block = "config"
    os.mkdir(here.marks)
    BLOCKS["config"].do(here)
    with contextlib.suppress(subprocess.CalledProcessError):  # what it put in the place of a filter is none
        here.git("status")
    assert not os.listdir(here.marks)
    subprocess.run(["git", "status"], cwd=clone, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert os.listdir(here.marks) == ["1.config.git"]


def test_only_in_a_sandbox_an_agent_tries_to_take_what_is_not_shown(clone: Path) -> None:
    assert place(clone).theft() == "true"
    assert "secret" in place(clone, sandboxed=True).theft()
