"""Every example works: commands and programs are run, tasks and settings are read as nodes read them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.agents.configuration.profiles import expand
from spoold.protocol import codec
from spoold.protocol.fields import Strict
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.worker.handlers.worker_config import Laptop, WorkerConfig
from tests.docs.manual import CHECKOUT, PAGES, Block, blocks, blocks_of
from tests.e2e.pool import SETTINGS, Pool

# What a block may be in. `sh` is run; `shell` needs another machine, root or an installer, and is only looked at, as
# is `text`, a screen.
LANGUAGES = {"json", "mermaid", "python", "sh", "shell", "text", "toml"}
WITHIN_S = 120
TYPED = [page for page in PAGES[1:] if any(block.language == "sh" for block in blocks(page))]
WORKER = """
allow_command = true
slots = 4
pass_env = ["PYTHONPATH"]

[handlers.review]
command = ["echo", "reviewed", "{input.path}"]
"""
# Whatever a page leaves in the background is asked to end, and waited for.
SHELL = "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n"


def cases(found: list[Block]) -> list[object]:
    return [pytest.param(block, id=block.place) for block in found]


PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """What docs/index.md promises: a worker that allows commands and has a handler for review."""
    top = tmp_path_factory.mktemp("manual")
    with Pool(top / "spool", top / "desk", SETTINGS) as made:
        made.path("worker.toml").write_text(WORKER)
        made.env["PATH"] = PATH  # tasks call `spool`, too
        made.master()
        made.worker("w", "--config", str(made.path("worker.toml")), slots=4)
        made.ready("w")
        yield made


def run(page: Path, root: Path, home: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The `sh` blocks of a page as one script, from top to bottom."""
    script = SHELL + "\n".join(block.text for block in blocks(page) if block.language == "sh")
    home.mkdir(exist_ok=True)
    return subprocess.run(
        ["bash", "-c", script.replace("/mnt/spool", str(root))],
        cwd=home,
        env={**os.environ, "HOME": str(home), "PATH": PATH, **env},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


@pytest.mark.turns
@pytest.mark.parametrize("page", TYPED, ids=[page.stem for page in TYPED])
def test_the_commands_of_a_page_work(page: Path, pool: Pool, tmp_path: Path) -> None:
    done = run(page, pool.root, tmp_path / "home", {"SPOOL_DIR": str(pool.root)})
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{pool.report()}"
    assert "Traceback" not in done.stderr


def test_the_first_commands_of_the_readme_work_on_one_machine(tmp_path: Path) -> None:
    """Nothing is prepared: the page makes its own spool, and its own master and worker."""
    done = run(PAGES[0], tmp_path / "none", tmp_path / "home", {})
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.uname().nodename in done.stdout  # of `spool run`
    assert "data" in done.stdout  # of `spool result`
    assert "review" in done.stdout  # of `spool explain`, since nobody has a handler for it


@pytest.mark.parametrize("block", cases(blocks_of("python")))
def test_programs_work(block: Block, tmp_path: Path) -> None:
    text = block.text.replace("/tmp/", f"{tmp_path}/")
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=WITHIN_S, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("block", cases(blocks_of("json")))
def test_tasks_are_tasks(block: Block) -> None:
    codec.check(Task, json.loads(block.text), block.place)


@pytest.mark.parametrize("block", cases(blocks_of("toml")))
def test_settings_are_read_by_nodes(block: Block) -> None:
    kinds: dict[str, type[Strict]] = {"# spool.toml": Settings, "# worker.toml": WorkerConfig}
    file = block.text.partition("\n")[0]
    assert file in kinds, f"{block.place}: the first line says which file it is of: {', '.join(kinds)}"
    table = tomllib.loads(block.text)
    codec.check(kinds[file], expand(table, block.place) if file == "# worker.toml" else table, block.place)


def test_every_line_that_is_said_to_show_its_default_does() -> None:
    (block,) = [block for block in blocks_of("toml") if "every line shows its default" in block.text]
    shown = tomllib.loads(block.text)["laptop"]
    assert Laptop.model_validate(shown) == Laptop()
    assert shown.keys() == Laptop.model_fields.keys()


@pytest.mark.parametrize("block", cases(blocks_of("shell")))
def test_what_cannot_be_run_here_is_a_script_and_names_tools_that_are_there(block: Block) -> None:
    subprocess.run(["bash", "-n", "-c", block.text], check=True)
    tools = re.findall(r"^(tools/\w+)", block.text, re.MULTILINE)
    assert all(os.access(CHECKOUT / tool, os.X_OK) for tool in tools)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(CHECKOUT)) for page in PAGES])
def test_every_block_says_what_it_is(page: Path) -> None:
    assert page.read_text().count("\n```") == 2 * len(blocks(page)), "a fence is not closed, or is indented"
    assert {block.language for block in blocks(page)} <= LANGUAGES
