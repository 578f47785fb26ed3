"""A callable that a task names is from a module that the worker allows, wherever else it can be found, too."""

from pathlib import Path

import pytest

from spoold.runner.job import Call, Ending
from tests.runner.processes import Bench

TABLE = "[python] in /etc/spoold/lab.toml"
MODULE = """
import collections, dataclasses, enum, functools, json, logging, os, shutil, subprocess
import concurrent.futures as futures
from mytools import private
from mytools.private import hidden
from os import environ, popen, system
from subprocess import Popen, check_output, run
from mylib import library_function, plain_wrapper, good_wrapper

CACHE = {}
TEXT = "{0}"
LOG = logging.getLogger()
shell = functools.partial(subprocess.run, shell=True)
nested = functools.partial(functools.partial(run), check=True)
cached = functools.lru_cache(subprocess.getoutput)
wrapped = good_wrapper(subprocess.getoutput)
anonymous = lambda: "own"
bound = LOG.info
output = subprocess.check_output
environment = os.environ.get


class Process(subprocess.Popen): pass
class Store(dict): pass
class Colour(enum.Enum):
    RED = 1
class Pool(futures.ThreadPoolExecutor): pass
class Made(type): pass
STORE = Store()

def own(*args): return ["own", *args]
own_partial = functools.partial(own, 1)

@functools.lru_cache
def memory(): return "own"

@good_wrapper
def decorated(): return "own"

@functools.wraps(own)
def renamed(): return "own"

class Job:
    static = staticmethod(subprocess.getoutput)
    taken = subprocess.getoutput
    def __init__(self, *args): self.args = args
    def run(self): return "own"
    @classmethod
    def make(cls): return "own"
    @staticmethod
    def reach(): return "own"
    def __call__(self): return "own"
    inner = functools.partial(subprocess.getoutput, "true")

class Text(str): pass
Point = collections.namedtuple("Point", "x y")
@dataclasses.dataclass
class Data(dict):
    x: int = 0

job = Job()
job_method = job.run

class Borrowed:
    __call__ = subprocess.getoutput
borrowed = Borrowed()

class Built:
    __init__ = subprocess.Popen.__init__

def __getattr__(name):
    if name == "lazy":
        return subprocess.getoutput
    raise AttributeError(name)
"""
LIBRARY = """
import functools
def library_function(*args): return "library"
def plain_wrapper(f): return lambda *args: f(*args)
def good_wrapper(f):
    @functools.wraps(f)
    def call(*args): return f(*args)
    return call
"""
OURS = (
    "own",
    "anonymous",
    "own_partial",
    "memory",
    "decorated",
    "renamed",
    "Job.make",
    "Job.reach",
    "job",
    "job.run",
)
FOREIGN = {
    "check_output": "subprocess",
    "output": "subprocess",
    "run": "subprocess",
    "Popen": "subprocess",
    "popen": "os",
    "system": "posix",
    "shell": "subprocess",
    "shell.func": "subprocess",
    "nested": "subprocess",
    "cached": "subprocess",
    "cached.__wrapped__": ": __wrapped__ cannot be called",
    "wrapped": "subprocess",
    "library_function": "mylib",
    "good_wrapper": "mylib",
    "hidden": "mytools.private",
    "bound": "logging",
    "LOG.info": "logging",
    "Job.static": "subprocess",
    "Job.taken": "subprocess",
    "Job.inner": "subprocess",
    "job.inner": "subprocess",
    "job.static": "subprocess",
    "Process": "subprocess",
    "Process.communicate": "subprocess",
    "Pool": "concurrent.futures.thread",
    "Colour": "enum",
    "borrowed": "subprocess",
    "Built": "subprocess",
    "lazy": "subprocess",
    "environ.update": "collections.abc",
    "environment": "collections.abc",
    "CACHE.update": "a method of dict",
    "STORE.update": "a method of Store",
    "Store.update": "builtins",
    "TEXT.format": "a method of str",
    "memory.cache_clear": "a method of",
    "subprocess.run": ": subprocess cannot be called",
    "private.hidden": ": private cannot be called",
    "own.__globals__.get": ": __globals__ cannot be called",
    "json.loads": ": json cannot be called",
    "os.path.join": ": os cannot be called",
}


@pytest.fixture
def where(bench: Bench) -> Path:
    (bench.where / "mytools").mkdir()
    (bench.where / "mytools" / "__init__.py").write_text("from subprocess import getoutput\n")
    (bench.where / "mytools" / "jobs.py").write_text(MODULE)
    (bench.where / "mytools" / "private.py").write_text("def hidden(): return 'hidden'\n")
    (bench.where / "mylib.py").write_text(LIBRARY)
    return bench.where


def called(bench: Bench, name: str, *args: object, allow: tuple[str, ...] | None = ("mytools.jobs",)) -> Ending:
    return bench.ended(bench.job(Call(f"mytools.jobs:{name}", args, {}, (str(bench.where),), allow, TABLE)))


def test_what_a_module_defines_can_be_called(bench: Bench, where: Path) -> None:
    for name in OURS:
        ending = called(bench, name)
        assert (ending.kind, ending.exit_code) == ("exited", 0), (name, ending)
        assert "own" in (ending.value, *(ending.value if isinstance(ending.value, list) else ()))
    for name in ("Point", "Data", "Text", "Job", "Store", "Made"):
        assert called(bench, name, *(["x", 1] if name == "Point" else [])).kind == "exited", name
    assert called(bench, "job.args").message == "TypeError: 'tuple' object is not callable"


def test_what_it_only_imports_cannot(bench: Bench, where: Path) -> None:
    for name, origin in FOREIGN.items():
        ending = called(bench, name, f"touch {where}/ran")
        assert (ending.kind, ending.exit_code) == ("refused", None), (name, ending)
        words = origin if origin.startswith(":") else f" runs {origin}"
        assert f"mytools.jobs:{name}{words}" in ending.message
        if " " not in origin:
            assert f'add "{origin}' in ending.message
            assert ending.message.endswith(f"to allow under {TABLE}")
        assert not (where / "ran").exists(), name


def test_a_prefix_allows_every_module_below_it_and_a_star_all(bench: Bench, where: Path) -> None:
    for allow in (("mytools",), ("mytools.",), ("other", "mytools.private", "mytools.jobs")):
        assert called(bench, "hidden", allow=allow).value == "hidden"
    assert called(bench, "hidden", allow=("mytools.priv", "mytools.jobs")).kind == "refused"
    assert called(bench, "library_function", allow=None).value == "library"


def test_a_host_that_has_refused_goes_on(bench: Bench, where: Path) -> None:
    first = called(bench, "own").started_at
    assert called(bench, "system", "true").kind == "refused"
    assert called(bench, "own", 2).value == ["own", 2]
    assert first
