"""What is shown: what a program needs, what a repository is held by, a task's boxes, and never too much."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from spoold.agents.process.confinement import MOST_BYTES, mailbox
from spoold.agents.sandbox.command_line import wrap
from spoold.agents.sandbox.protected_files import Guarded, disarm, guarded, takes
from spoold.agents.sandbox.sandbox_mounts import needed, of_python, places
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxPolicy, SandboxRun
from tests.agents.sandbox.stage import NOBODY, Stage


def script(path: Path, first: str = "#!/bin/sh") -> Path:
    """A program that can be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    return path


def test_a_program_of_a_package_manager(tmp_path: Path) -> None:
    modules = tmp_path / "lib/node_modules"
    script(modules / "agent/bin/agent.js", "#!/usr/bin/env node")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/agent").symlink_to("../lib/node_modules/agent/bin/agent.js")
    script(tmp_path / "node/bin/node", "\x7fELF")
    (tmp_path / "node/lib").mkdir()
    found = needed("agent", f"{tmp_path}/bin:{tmp_path}/node/bin")
    assert set(found) == {
        *(f"{tmp_path}/{name}" for name in ("bin/agent", "lib", "lib/node_modules", "node/bin/node", "node/lib"))
    }


def test_a_home_is_not_shown_for_a_program_in_it(tmp_path: Path) -> None:
    script(tmp_path / ".local/bin/agent")
    (tmp_path / ".local/share/keyrings").mkdir(parents=True)
    assert needed(f"{tmp_path}/.local/bin/agent", "/usr/bin:/bin") == [f"{tmp_path}/.local/bin/agent"]


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no program agent"):
        needed("agent", str(tmp_path))


def test_this_python_runs_in_a_sandbox(stage: Stage) -> None:
    if stage.uid:
        pytest.skip("it may lie where only this user can read")
    text = "import spoold, sys; sys.path.append(sys.argv[1]); print(spoold.__version__)"
    shown = (*of_python(), str(Path(__file__).parents[3] / "spoold"))
    said = stage.start([sys.executable, "-c", text, "x"], SandboxPolicy("bwrap"), shown=shown)
    assert said.strip().count(".") == 2


def scene(top: Path, **more: object) -> SandboxRun:
    """The scene of an agent in `top`."""
    for name in ("work", "home"):
        (top / name).mkdir(exist_ok=True)
    held = guarded(f"{top}/work", "shared")
    return SandboxRun(f"{top}/work", f"{top}/home", held=held, empty=str(top), **more)  # type: ignore[arg-type]


def test_a_place_below_another_comes_later(tmp_path: Path) -> None:
    (tmp_path / "work/deep/deeper").mkdir(parents=True)
    (tmp_path / "work/.claude").mkdir()
    (tmp_path / "work/.git").mkdir()
    shown = (f"{tmp_path}/work/deep/deeper", f"{tmp_path}/work/deep")
    found = places(scene(tmp_path, shown=shown, fixed=(f"{tmp_path}/home/none",)), "")
    assert [place.at.removeprefix(f"{tmp_path}/") for place in found][-4:] == [
        *("work/deep", "work/deep/deeper", "work/.git", "work/.claude")
    ]
    assert [place.writable for place in found] == [True, True, False, False, False, False]


@pytest.mark.parametrize("path", ["relative", "/usr/../etc", "/etc/", "/not/there"])
def test_a_path_that_cannot_be_shown(tmp_path: Path, path: str) -> None:
    with pytest.raises(NoSandbox):
        places(scene(tmp_path, shown=(path,)), "")


def test_a_home_with_keys_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "ada/.ssh").mkdir(parents=True)
    for path in ("ada", "ada/.ssh"):
        with pytest.raises(NoSandbox, match="would show a person's keys"):
            places(scene(tmp_path, shown=(f"{tmp_path}/{path}",)), f"{tmp_path}/ada")


def test_a_worktree_is_read_only_to_git(tmp_path: Path) -> None:
    own = tmp_path / "mirror/worktrees/a"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text(f"{tmp_path}/work/.git\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/.git").write_text(f"gitdir: {own}\n")
    held = guarded(f"{tmp_path}/work", "shared")
    assert held == Guarded((), (f"{tmp_path}/work/.git",), (f"{tmp_path}/mirror", str(own)))
    assert disarm(held) == []


@pytest.mark.parametrize("said", ["gitdir: {}", "gitdir: {}/worktrees/a", "gitdir:", "x", "gitdir: {}/pipe"])
def test_a_folder_is_not_shown_since_a_file_in_the_workspace_says_so(tmp_path: Path, said: str) -> None:
    """G2: what a `.git` file names is shown only if it is a worktree's, and its repository names it, too."""
    home = tmp_path / "home/of/somebody"
    (home / "worktrees/a").mkdir(parents=True)
    (home / "worktrees/a/gitdir").write_text(f"{tmp_path}/another/.git\n")
    os.mkfifo(home / "pipe")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/.git").write_text(said.format(home))
    assert guarded(f"{tmp_path}/work", "shared") == Guarded(fixed=(f"{tmp_path}/work/.git",))


def test_a_repository_that_others_use_is_held_with_all_that_are_within(tmp_path: Path) -> None:
    for name in (".git", "a/.git", "a/b/c/.git"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/b/.git").write_text("gitdir: ../.git/modules/b\n")
    held = guarded(str(tmp_path), "shared")
    assert set(held.fixed) == {f"{tmp_path}/{name}" for name in (".git", "a/.git", "a/b/.git", "a/b/c/.git")}
    assert guarded(str(tmp_path), "none") == Guarded()


def bare(path: Path) -> None:
    """What git takes for a git directory."""
    for name in ("objects/info", "refs", "hooks"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")


def test_every_git_directory_within_is_held_and_the_folders_above_them(tmp_path: Path) -> None:
    """B3, B4: as a file names it, as alternates and links lead to it, and as git finds it by itself."""
    for name in ("a/.bare", "a/nobodys", "b/shared"):
        bare(tmp_path / name)
    (tmp_path / "c/store").mkdir(parents=True)
    (tmp_path / "b/hooks").mkdir()
    (tmp_path / ".git").write_text("gitdir: a/.bare\n")
    (tmp_path / "a/.bare/objects/info/alternates").write_text("../../../c/store\n")
    (tmp_path / "a/.bare/commondir").write_text("../../b/shared\n")
    (tmp_path / "b/shared/info").symlink_to("../hooks")
    held = guarded(str(tmp_path), "shared", ("libs/sub",))
    fixed = {".git", "a/.bare", "a/nobodys", "b/shared", "b/hooks", "c/store"}
    assert set(held.fixed) == {f"{tmp_path}/{name}" for name in fixed}
    assert held.absent == (f"{tmp_path}/libs/sub/.git",)
    assert set(held.above) == {f"{tmp_path}/{name}" for name in ("a", "b", "c", "libs", "libs/sub")}
    assert not held.loose


def test_what_a_git_file_above_names_is_held_and_made_by_nobody(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: work/data\n")
    (tmp_path / "work").mkdir()
    assert set(guarded(f"{tmp_path}/work", "shared").absent) == {
        f"{tmp_path}/work/{name}" for name in (".git", "data", "refs", "commondir")
    }
    bare(tmp_path / "work/data")
    assert guarded(f"{tmp_path}/work", "shared").fixed == (f"{tmp_path}/work/data",)
    assert guarded(f"{tmp_path}/work/data", "shared").fixed == (f"{tmp_path}/work/data",), "all of it"


@pytest.mark.parametrize("way", [".git", "way"])
def test_a_link_that_could_be_replaced_is_an_error(tmp_path: Path, way: str) -> None:
    (tmp_path / "work").mkdir()
    bare(tmp_path / "work/data/it")
    (tmp_path / "work" / way).symlink_to("data/it" if way == ".git" else "data")
    if way == "way":
        (tmp_path / "work/.git").write_text("gitdir: way/it\n")
    with pytest.raises(NoSandbox, match="is a link on the way to a repository"):
        places(scene(tmp_path), "")


def test_more_repositories_than_can_be_held_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spoold.agents.sandbox.protected_files.MOUNTS_MAX", 5)
    for name in "abc":
        (tmp_path / "work" / name / ".git").mkdir(parents=True)
    with pytest.raises(NoSandbox, match="more repositories"):
        places(scene(tmp_path), "")


def test_git_directories_that_lead_to_each_other_in_a_long_chain_are_all_held(tmp_path: Path) -> None:
    """An agent may have left them: Python's own stack ended the attempt."""
    names = [f"d{number}" for number in range(900)]
    for name, after in pairwise([*names, "none"]):
        for folder in ("objects", "refs"):
            (tmp_path / name / folder).mkdir(parents=True)
        (tmp_path / name / "HEAD").write_text("ref: refs/heads/main\n")
        (tmp_path / name / "commondir").write_text(f"../{after}\n")
    (tmp_path / ".git").write_text("gitdir: ./d0\n")
    held = guarded(str(tmp_path), "shared")
    assert {f"{tmp_path}/{name}" for name in names} < set(held.fixed)
    assert held.absent == (f"{tmp_path}/none",)
    assert held.loose == ()


def test_of_more_than_can_be_held_no_more_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work grew with the square of what an agent had left."""
    monkeypatch.setattr("spoold.agents.sandbox.protected_files.MOUNTS_MAX", 4)
    for number in range(20):
        (tmp_path / f"r{number}").mkdir()
        (tmp_path / f"r{number}/.git").write_text(f"gitdir: ../m/{number}\n")
    held = guarded(str(tmp_path), "shared")
    assert len(held.fixed) + len(held.absent) <= 6
    assert "more repositories" in held.loose[0]


def test_where_there_is_no_repository_its_place_is_taken_and_given_back(tmp_path: Path) -> None:
    held = guarded(str(tmp_path), "shared")
    assert held == Guarded(absent=tuple(f"{tmp_path}/{name}" for name in (".git", "refs", "commondir")))
    for path in held.absent:
        Path(path).mkdir()  # as bubblewrap does, to show nothing there
    assert disarm(held) == []
    assert not any(tmp_path.iterdir())
    assert disarm(held) == []


@pytest.mark.parametrize(
    "there", [(), ("refs",), ("refs", "objects"), ("commondir",), ("HEAD",), ("HEAD", "objects")]
)
def test_the_top_of_a_folder_becomes_no_repository(tmp_path: Path, there: tuple[str, ...]) -> None:
    """Git takes a folder with these names in it for a repository, without any `.git`."""
    for name in there:
        (tmp_path / name).mkdir()
    away = {Path(path).name for path in guarded(str(tmp_path), "shared").absent}
    makes = {"HEAD", "objects", "refs", "commondir"} - away
    assert not takes(makes)
    assert not away & set(there)


def test_the_boxes_of_a_task(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text("{}")
    own = {name: f"{tmp_path}/{name}" for name in ("SPOOL_RESULT_FILE", "SPOOL_PROGRESS_FILE", "SPOOL_ANSWER_FILE")}
    own |= {"SPOOL_TASK_ID": "a", "SPOOL_TASK_FILE": f"{tmp_path}/task.json", "SPOOL_ROOT": "/spool", "HOME": "/h"}
    box = mailbox(own, f"{tmp_path}/out")
    assert box.env == {
        "SPOOL_TASK_ID": "a",
        "SPOOL_TASK_FILE": f"{tmp_path}/task.json",
        "SPOOL_RESULT_FILE": f"{tmp_path}/out/result.json",
        "SPOOL_PROGRESS_FILE": f"{tmp_path}/out/progress.json",
    }
    assert box.shown == (f"{tmp_path}/task.json",)
    assert box.writable == (f"{tmp_path}/out",)
    assert box.deliver() == []
    assert not Path(own["SPOOL_PROGRESS_FILE"]).exists()
    Path(box.env["SPOOL_PROGRESS_FILE"]).write_text(json.dumps({"percent": 1}))
    assert box.deliver() == []
    written = os.stat(own["SPOOL_PROGRESS_FILE"]).st_ino
    box.deliver()
    assert os.stat(own["SPOOL_PROGRESS_FILE"]).st_ino == written, "the same again would look like progress"
    Path(box.env["SPOOL_RESULT_FILE"]).write_bytes(b"x" * (MOST_BYTES + 1))
    assert box.deliver() == ["result.json was not taken: it has more than 4 MiB"]
    os.unlink(box.env["SPOOL_RESULT_FILE"])
    os.mkfifo(box.env["SPOOL_RESULT_FILE"])
    assert box.deliver() == ["result.json was not taken: it is no plain file of its own"]


def test_nobody_is_somebody_else() -> None:
    assert os.geteuid() != NOBODY


@pytest.mark.parametrize("what", ["work", "work/nested", "work/nested/.git", "work/libs", "work/libs/sub"])
def test_what_is_exchanged_for_a_link_after_the_look_is_not_entered(tmp_path: Path, what: str) -> None:
    """Another agent, which may write in a folder above, can do so at any moment: each path is looked at again from
    within. What lies outside has the same names, so that all of it can be shown in its place."""
    outside, top = tmp_path / "outside", tmp_path / "top"
    for name in ("top/home", "top/empty", *(f"{one}/nested/.git/refs" for one in ("top/work", "outside/work"))):
        (tmp_path / name).mkdir(parents=True)
    for one in ("top/work", "outside/work"):
        (tmp_path / one / "libs/sub").mkdir(parents=True)
    held = guarded(str(top / "work"), "shared", ["libs/sub"])
    scene = SandboxRun(str(top / "work"), str(top / "home"), held=held, others=True, empty=str(top / "empty"))
    wrapped = wrap(SandboxPolicy("bwrap"), ["sh", "-c", "echo in; echo in >here; ls -R"], scene)

    def play() -> subprocess.CompletedProcess[str]:
        env = {**wrapped.env}
        return subprocess.run(wrapped.argv, env=env, capture_output=True, text=True, timeout=60, check=False)

    (outside / what / "loot").mkdir()
    assert play().stdout.startswith("in\n")
    (top / what).rename(top / "away")
    (top / what).symlink_to(outside / what)
    said = play()
    assert "loot" not in said.stdout
    assert not list(outside.rglob("here"))
    assert said.returncode != 0


def test_the_workspace_itself_is_no_link_by_now(tmp_path: Path) -> None:
    for name in ("work", "home", "outside", "empty"):
        (tmp_path / name).mkdir()
    scene = SandboxRun(f"{tmp_path}/work", f"{tmp_path}/home", others=True, empty=f"{tmp_path}/empty")
    (tmp_path / "work").rmdir()
    (tmp_path / "work").symlink_to(tmp_path / "outside")
    with pytest.raises(NoSandbox, match="exchanged for a link to"):
        places(scene, "")


def test_the_loader_of_the_small_program_inside_is_its_own(tmp_path: Path) -> None:
    """A task whose variables lead the loader astray must not have what looks at the paths led astray."""
    for name in ("work", "home", "empty"):
        (tmp_path / name).mkdir()
    env = {"LD_PRELOAD": f"{tmp_path}/work/none.so", "PLAIN": "a=b\nc"}
    scene = SandboxRun(f"{tmp_path}/work", f"{tmp_path}/home", env, others=True, empty=f"{tmp_path}/empty")
    wrapped = wrap(SandboxPolicy("bwrap"), ["sh", "-c", 'echo "$LD_PRELOAD $PLAIN"'], scene)
    inside = wrapped.argv[wrapped.argv.index("--") + 1 :]
    assert "--setenv" not in wrapped.argv
    assert inside[0] == os.path.realpath(sys.executable)
    assert "LD_PRELOAD" not in wrapped.env
    done = subprocess.run(wrapped.argv, env=wrapped.env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{env['LD_PRELOAD']} a=b\nc\n"
