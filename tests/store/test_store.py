"""Opening a spool, staging and publishing under one writer's name."""

import errno

import pytest

from spoold.protocol import layout
from spoold.protocol.errors import BadFile, ShutOut, Unavailable
from spoold.store.initialise import initialise
from spoold.store.store import Store, clear_directory, make_directory, open_store, stamp
from spoold.system.clock import ManualClock
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.faults import FaultyFileSystem


@pytest.fixture
def memory() -> MemoryFileSystem:
    fs = MemoryFileSystem()
    initialise(fs, ManualClock(), "spool-1", "/spool")
    return fs


@pytest.fixture
def mount(memory: MemoryFileSystem) -> FaultyFileSystem:
    return FaultyFileSystem(memory)


@pytest.fixture
def store(mount: FaultyFileSystem) -> Store:
    made = open_store(mount, ManualClock(), "m1", "/spool")
    made.open_tmp()
    return made


def test_a_new_spool_has_every_directory_and_one_token(memory: MemoryFileSystem) -> None:
    assert {layout.MARKER, layout.SETTINGS, *layout.TREE} == set(memory.list(""))
    assert memory.list(layout.MASTER) == ["0.nobody.0"]
    opened = open_store(memory, ManualClock(), "x", "/spool")
    assert opened.marker.spool_id == "spool-1"
    assert opened.marker.claim == "rename"
    assert opened.durable


def test_the_settings_that_come_with_it_are_the_defaults(memory: MemoryFileSystem) -> None:
    lines = memory.read(layout.SETTINGS).decode().splitlines()
    memory.write(layout.SETTINGS, "\n".join(line.removeprefix("# ") for line in lines[3:]).encode(), durable=False)
    opened = open_store(memory, ManualClock(), "x", "/spool").settings
    assert opened.types["review"].max_concurrent == 5
    assert opened.alerts.kind == "notify"
    alerts = opened.alerts.model_copy(update=dict.fromkeys(("failure_rate", "memory", "queue", "task")))
    none = {"types": {}, "limits": {}, "classes": {}, "budgets": {}, "alerts": alerts}
    assert opened.model_copy(update=none) == type(opened)()


def test_a_spool_is_made_once_and_a_half_made_one_can_be_finished(memory: MemoryFileSystem) -> None:
    with pytest.raises(Unavailable, match="is a spool already"):
        initialise(memory, ManualClock(), "again", "/spool")
    mount = FaultyFileSystem(MemoryFileSystem())
    mount.fail("rename", "spool.json.new", errno.EIO)
    with pytest.raises(Unavailable, match="cannot make a spool"):
        initialise(mount, ManualClock(), "spool-2", "/spool")
    with pytest.raises(Unavailable, match="Is the share mounted"):
        open_store(mount, ManualClock(), "x", "/spool")
    initialise(mount, ManualClock(), "spool-2", "/spool")
    assert mount.list(layout.MASTER) == ["0.nobody.0"]
    assert open_store(mount, ManualClock(), "x", "/spool").marker.spool_id == "spool-2"


ADVICE = {
    errno.ENOENT: "mounted?",
    errno.EACCES: "Check that this user may read and write there",
    errno.EAGAIN: "The file server does not answer",
    errno.EHOSTDOWN: "The file server does not answer",
    errno.EIO: "The file server does not answer",
    errno.ESTALE: "mount it again",
    errno.ENOTDIR: "A spool is a directory",
    errno.EINVAL: "Run `spool doctor`",
}


@pytest.mark.parametrize("code", ADVICE)
@pytest.mark.parametrize(("verb", "path"), [("list", ""), ("read", layout.MARKER)])
def test_whoever_cannot_open_a_spool_is_advised_for_that_very_trouble(
    mount: FaultyFileSystem, code: int, verb: str, path: str
) -> None:
    """To make a spool is the advice where none may be, and nowhere else: a share that is silent may hold one."""
    mount.fail(verb, path, code, times=3)
    with pytest.raises(Unavailable) as refused:
        open_store(mount, ManualClock(), "x", "/spool")
    assert ADVICE[code] in str(refused.value)
    assert ("spool init" in str(refused.value)) == (code == errno.ENOENT and verb == "list")


def test_what_is_no_spool_is_refused(memory: MemoryFileSystem, mount: FaultyFileSystem) -> None:
    with pytest.raises(Unavailable, match=r"no spool.json. Is the share mounted"):
        open_store(MemoryFileSystem(), ManualClock(), "x", "/nowhere")
    mount.fail("read", layout.SETTINGS, errno.EACCES)
    with pytest.raises(Unavailable, match=r"^/spool/spool.toml cannot be read: .* this user may read"):
        open_store(mount, ManualClock(), "x", "/spool")
    memory.write(layout.SETTINGS, b"[heartbeats]\n", durable=False)
    with pytest.raises(BadFile, match="did you mean 'heartbeat'"):
        open_store(memory, ManualClock(), "x", "/spool")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"format": 1, "spool_id": 5}'])
def test_a_damaged_marker_is_named_with_how_to_restore_it(memory: MemoryFileSystem, data: bytes) -> None:
    memory.write(layout.MARKER, data, durable=False)
    with pytest.raises(BadFile) as caught:
        open_store(memory, ManualClock(), "x", "/spool")
    assert caught.value.file == "/spool/spool.json"
    assert caught.value.mend.startswith("put back a copy of it; or, while no node runs, write {")


@pytest.mark.parametrize("name", [layout.MARKER, layout.SETTINGS])
def test_what_stands_in_the_place_of_a_file_is_named(memory: MemoryFileSystem, name: str) -> None:
    memory.unlink(name)
    memory.mkdir(name)
    with pytest.raises(BadFile, match=f"^/spool/{name}: is not a regular file but a directory. Fix: put a file"):
        open_store(memory, ManualClock(), "x", "/spool")


def test_a_newer_format_is_refused_and_settings_may_be_missing(memory: MemoryFileSystem) -> None:
    memory.unlink(layout.SETTINGS)
    assert open_store(memory, ManualClock(), "x", "/spool").settings.heartbeat.misses == 3
    memory.write(layout.MARKER, b'{"format": 2, "spool_id": "s", "novelty": true}', durable=False)
    with pytest.raises(BadFile, match="upgrade spoold"):
        open_store(memory, ManualClock(), "x", "/spool")


def test_publishing_makes_a_file_appear_whole(store: Store, mount: FaultyFileSystem) -> None:
    store.publish("pending/a.json", b"{}", durable=True)
    assert mount.read("pending/a.json") == b"{}"
    assert mount.list("tmp/m1") == []


@pytest.mark.parametrize("verb", ["write", "rename"])
def test_publishing_that_fails_leaves_nothing_behind(store: Store, mount: FaultyFileSystem, verb: str) -> None:
    mount.fail(verb, "tmp/m1/", errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        store.publish("pending/a.json", b"{}", durable=True)
    assert mount.list("tmp/m1") == []
    assert mount.list("pending") == []


def test_publishing_whose_reply_is_lost_succeeds(store: Store, mount: FaultyFileSystem) -> None:
    mount.fail("rename", "tmp/m1/", errno.EIO, "done")
    store.publish("pending/a.json", b"{}", durable=True)
    assert mount.list("pending") == ["a.json"]


def test_a_writer_whose_tmp_is_gone_is_shut_out(store: Store, mount: FaultyFileSystem) -> None:
    mount.fail("write", "tmp/m1/", errno.ENOENT)
    with pytest.raises(FileNotFoundError):
        store.stage(b"", durable=False)
    mount.rmdir("tmp/m1")
    with pytest.raises(ShutOut, match="taken for dead"):
        store.publish("pending/a.json", b"{}", durable=False)


def test_leaving_clears_its_own_tmp_and_never_fails(store: Store, mount: FaultyFileSystem) -> None:
    store.stage(b"left over", durable=False)
    mount.off = True
    store.close_tmp()
    mount.off = False
    assert mount.list("tmp/m1")
    store.close_tmp()
    assert "m1" not in mount.list("tmp")
    store.close_tmp()


def test_clearing_a_directory_shuts_the_door(memory: MemoryFileSystem, mount: FaultyFileSystem) -> None:
    memory.make_dirs("tmp/w1")
    memory.write("tmp/w1/1", b"", durable=False)
    mount.hang("rmdir", "tmp/w1", lambda: memory.write("tmp/w1/2", b"", durable=False))
    assert clear_directory(mount, "tmp/w1")
    assert "w1" not in memory.list("tmp")
    assert clear_directory(mount, "tmp/w1")


def test_a_directory_that_keeps_filling_is_given_up_for_now(
    memory: MemoryFileSystem, mount: FaultyFileSystem
) -> None:
    memory.make_dirs("tmp/w1")
    mount.fail("rmdir", "tmp/w1", errno.ENOTEMPTY, times=3)
    assert not clear_directory(mount, "tmp/w1")
    mount.fail("rmdir", "tmp/w1", errno.ENOENT)
    assert clear_directory(mount, "tmp/w1")


def test_making_a_directory_that_is_there_is_no_error(memory: MemoryFileSystem) -> None:
    make_directory(memory, "tmp/w1")
    make_directory(memory, "tmp/w1")
    with pytest.raises(FileNotFoundError):
        make_directory(memory, "no/where")


def test_moments_are_written_for_people() -> None:
    assert stamp(0) == "1970-01-01T00:00:00.000Z"
    assert stamp(1_760_000_000.1234) == "2025-10-09T08:53:20.123Z"


def test_what_a_server_forgot_before_it_was_settled_is_published_again(
    store: Store, mount: FaultyFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryFileSystem, "forgets", True)
    published = {store.publish(path, b"{}", durable=True): path for path in ("pending/a.json", "pending/b.json")}
    staged = next(iter(published))
    mount.hang("write", "tmp/", lambda: mount.inner.rename("pending/a.json", staged))
    store.settle("pending", published)
    assert mount.list("pending") == ["a.json", "b.json"]
    assert mount.list(f"tmp/{store.writer}") == []
    # Once for what was forgotten, and once more for what was then published again.
    assert mount.asked["write"] == 2 + 2


def test_where_no_server_forgets_settling_makes_no_file(store: Store, mount: FaultyFileSystem) -> None:
    published = {store.publish("pending/a.json", b"{}", durable=True): "pending/a.json"}
    store.settle("pending", published)
    assert mount.asked["write"] == mount.asked["sync"] == 1


def test_a_spool_is_made_only_where_nothing_of_anybody_else_is() -> None:
    fs = MemoryFileSystem()
    fs.mkdir("tmp")
    fs.mkdir("lost+found")
    fs.mkdir(".snapshot")
    fs.write("thesis.tex", b"", durable=False)
    with pytest.raises(Unavailable, match=r"not empty \(it has thesis.tex\)"):
        initialise(fs, ManualClock(), "s", "/spool")
    assert sorted(fs.list("")) == [".snapshot", "lost+found", "thesis.tex", "tmp"]
    fs.unlink("thesis.tex")
    initialise(fs, ManualClock(), "s", "/spool")


@pytest.mark.parametrize("durable", [True, False])
def test_what_is_published_is_on_disk_first_where_that_is_asked_for(
    store: Store, mount: FaultyFileSystem, durable: bool
) -> None:
    said: list[object] = []
    write, rename = mount.write, mount.rename

    def written(path: str, data: bytes, *, durable: bool) -> None:
        said.append((path.rpartition("/")[0], durable))
        write(path, data, durable=durable)

    def renamed(src: str, dst: str) -> None:
        said.append(dst)
        rename(src, dst)

    mount.write, mount.rename = written, renamed  # type: ignore[method-assign]
    store.publish("pending/a.json", b"{}", durable=durable)
    assert said == [("tmp/m1", durable), "pending/a.json"]
