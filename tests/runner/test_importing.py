"""A callable that this machine cannot import never began; an ImportError of the call itself is the task's own."""

from pathlib import Path

import pytest

from spoold.runner.job import Call, Ending
from tests.runner.processes import Bench

MODULES = {
    "sound.py": "def run(): return 'ran'\ndef late(): import no_such_library\ndef quits(): raise SystemExit(3)\n",
    "needy.py": "import no_such_library\n",
    "strict.py": "import os\nKEY = os.environ['NO_SUCH_KEY']\n",
    "newer.py": "def run(: pass\n",
    "leaving.py": "print('at its import')\nraise SystemExit(75)\n",
    "hungry.py": "raise MemoryError\n",
    "lazy.py": "def __getattr__(name):\n    import no_such_library\n",
    "package/__init__.py": "",
    "package/good.py": "class Job:\n    def run(self): return 'ran'\n",
    "broken/__init__.py": "import no_such_library\n",
    "broken/sub.py": "def run(): pass\n",
}


@pytest.fixture
def where(bench: Bench) -> Path:
    for name, text in MODULES.items():
        (bench.where / name).parent.mkdir(exist_ok=True)
        (bench.where / name).write_text(text)
    return bench.where


def called(bench: Bench, target: str, allow: tuple[str, ...] | None = None) -> Ending:
    return bench.ended(bench.job(Call(target, (), {}, (str(bench.where),), allow, "[python]")))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("absent:run", "cannot import absent: ModuleNotFoundError: No module named 'absent'"),
        ("absent.sub:run", "cannot import absent.sub: ModuleNotFoundError: No module named 'absent'"),
        ("package.absent:run", "cannot import package.absent: ModuleNotFoundError: No module named 'package.absent'"),
        ("needy:run", "cannot import needy: ModuleNotFoundError: No module named 'no_such_library'"),
        ("broken.sub:run", "cannot import broken.sub: ModuleNotFoundError: No module named 'no_such_library'"),
        ("strict:run", "cannot import strict: KeyError: 'NO_SUCH_KEY'"),
        ("newer:run", "cannot import newer:"),
        ("sound:absent", "sound has no absent: AttributeError: module 'sound' has no attribute 'absent'"),
        ("package.good:Job.absent", "package.good has no Job.absent: AttributeError: type object 'Job'"),
        ("lazy:anything", "lazy has no anything: ModuleNotFoundError: No module named 'no_such_library'"),
    ],
)
def test_what_cannot_be_imported_or_found_never_began(bench: Bench, where: Path, target: str, why: str) -> None:
    ending = called(bench, target, ("absent", "package", "needy", "broken", "strict", "newer", "sound", "lazy"))
    assert (ending.kind, ending.exit_code, ending.returned) == ("spawn_failed", 127, False)
    assert ending.message.startswith(f"this worker {why}"), ending.message
    if "No module named" in why:
        assert "Traceback" in ending.tail
        assert "pyhost" not in ending.tail


def test_what_the_call_itself_raises_is_the_tasks_own(bench: Bench, where: Path) -> None:
    ending = called(bench, "sound:late")
    assert (ending.kind, ending.exit_code) == ("exited", 1)
    assert ending.message == "ModuleNotFoundError: No module named 'no_such_library'"


def test_a_module_that_leaves_by_itself_says_how(bench: Bench, where: Path) -> None:
    ending = called(bench, "leaving:run")
    assert (ending.kind, ending.exit_code) == ("exited", 75)
    assert "at its import" in ending.tail
    assert (called(bench, "sound:quits").kind, called(bench, "hungry:run").kind) == ("exited", "exited")


def test_what_was_installed_or_replaced_meanwhile_is_found(bench: Bench, where: Path) -> None:
    assert called(bench, "sound:run").value == "ran"
    assert called(bench, "sound:added").kind == "spawn_failed"
    assert called(bench, "absent:run").kind == "spawn_failed"
    assert called(bench, "needy:run").kind == "spawn_failed"
    (where / "no_such_library.py").write_text("")
    (where / "needy.py").write_text("import no_such_library\ndef run(): return 'ran'\n")
    (where / "absent.py").write_text("def run(): return 'ran'\n")
    (where / "sound.py").write_text("def added(): return 'added, in a file of another length'\n")
    assert called(bench, "absent:run").value == "ran"
    assert called(bench, "needy:run").value == "ran"
    assert called(bench, "sound:added").value == "added, in a file of another length"
