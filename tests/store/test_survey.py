"""Goal: a survey sees every task file, result and leftover where it stands, and survives whatever it finds there.

Method: a spool in memory that a real master has run, then single things done to it by hand.
"""

from __future__ import annotations

from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.rules.tree.audit import audit
from spoold.store.state_counts import census
from spoold.store.tree_repair import survey
from spoold.system.filesystem import Stat
from tests.client.cluster import Cluster


class Unreadable:
    """A file system that refuses some paths."""

    def __init__(self, cluster: Cluster, refused: str) -> None:
        self._fs = cluster.fs
        self._refused = refused

    def __getattr__(self, name: str) -> object:
        return getattr(self._fs, name)

    def list(self, path: str) -> list[str]:
        """Names, unless the directory is the refused one."""
        if path == self._refused:
            raise PermissionError(13, "Permission denied", path)
        return self._fs.list(path)

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Content, unless the file is in the refused directory."""
        if path.startswith(self._refused):
            raise PermissionError(13, "Permission denied", path)
        return self._fs.read(path, limit)

    def stat(self, path: str) -> Stat:
        """As it is."""
        return self._fs.stat(path)


def busy_cluster() -> Cluster:
    """One task in every state that a leader and a worker bring about."""
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    for name in ("done", "dead", "held", "back", "free"):
        cluster.drop(name)
    cluster.drop("later", dependencies=["nobody"])
    cluster.steps(master)
    for name in ("done", "dead", "held", "back"):
        cluster.claim(name)
    cluster.end("done", "completed")
    cluster.end("dead", "failed", status="failure")
    (file,) = [f for f in cluster.fs.list("claimed/w-0001") if ".back." in f]
    handed = file.replace("a1f0c0", "a2f1c0").replace(".json", ".w-0001.json")
    cluster.fs.rename(f"claimed/w-0001/{file}", f"returned/{handed}")
    cluster.result("back.1.w-0001.json", "back", 1, status="failure")
    cluster.fs.write("pending/new.json", b"{}", durable=False)
    cluster.fs.write("pending/new.json.part", b"{", durable=False)
    return cluster


def test_everything_is_seen_where_it_stands() -> None:
    seen = survey(busy_cluster().store)
    states = {token.name.id: token.state for token in seen.tokens}
    assert states == {
        "later": State.WAITING,
        "free": State.READY,
        "held": State.CLAIMED,
        "back": State.RETURNED,
        "done": State.COMPLETED,
        "dead": State.FAILED,
    }
    assert {record.name.encode(): record.read for record in seen.results} == {
        "back.1.w-0001.json": False,
        "dead.1.w-0001.json": True,
        "done.1.w-0001.json": True,
    }
    assert (seen.drops, seen.epoch, seen.workers) == (1, 1, ("w-0001",))
    assert seen.nodes == {"m-0001", "w-0001"}
    assert (seen.foreign, seen.missing, seen.unreadable) == ((), (), ())
    assert audit(seen) == []


def test_archived_tasks_are_seen_with_what_they_ended_as() -> None:
    cluster = busy_cluster()
    bucket = layout.bucket("done")
    cluster.fs.mkdir(bucket)
    cluster.fs.rename("completed/done.1.w-0001.json", f"{bucket}/done.1.w-0001.completed.json")
    cluster.fs.rename("results/done.1.w-0001.json", f"{bucket}/done.1.w-0001.result.json")
    cluster.fs.write(f"{bucket}/done.1.w-0001.log", b"", durable=False)
    seen = survey(cluster.store)
    (token,) = [token for token in seen.tokens if token.state is State.ARCHIVE]
    assert (token.name.id, token.ended, token.content) == ("done", State.COMPLETED, None)
    assert audit(seen) == []
    assert census(cluster.fs).tasks.completed == 1


def test_a_count_opens_no_task_file_and_agrees_with_the_survey() -> None:
    cluster = busy_cluster()
    opened: list[str] = []

    class Recording(Unreadable):
        def read(self, path: str, limit: int | None = None) -> bytes:
            opened.append(path)
            return super().read(path, limit)

    counted = census(Recording(cluster, "nowhere"))  # type: ignore[arg-type]
    assert opened == []
    assert counted.tasks.model_dump() == {
        "pending": 1,
        "waiting": 2,
        "ready": 1,
        "claimed": 1,
        "completed": 1,
        "skipped": 0,
        "failed": 1,
        "rejected": 0,
    }
    assert counted.types == {"review": {"waiting": 1, "ready": 1, "running": 0, "active": 1}}


def test_strangers_files_are_passed_over_and_named() -> None:
    cluster = busy_cluster()
    strange = [
        "lost.txt",
        "ready/notes.txt",
        "ready/type=review/x.json",
        "claimed/UPPER",
        "returned/y.json",
        "completed/z.txt",
        "results/r.txt",
        "admitting/b.txt",
        "master/m.txt",
        "status/s.txt",
        "events/e.txt",
        "heartbeats/h.txt",
        "control/c.txt",
        "logs/l.txt",
        "archive/a.txt",
    ]
    for path in strange:
        cluster.fs.write(path, b"?", durable=False)
    cluster.fs.mkdir("archive/zz")
    cluster.fs.write("archive/zz/q.txt", b"?", durable=False)
    assert sorted(survey(cluster.store).foreign) == sorted([*strange, "archive/zz/q.txt"])


def test_contents_and_results_that_are_broken_say_how() -> None:
    cluster = busy_cluster()
    (ready,) = cluster.tree("ready")
    cluster.fs.write(ready, b'{"id": "free", "type": "review", "tpye": 1}', durable=False)
    cluster.fs.write("results/done.1.w-0001.json", b"", durable=False)
    seen = survey(cluster.store)
    (broken,) = [token.content for token in seen.tokens if token.path == ready]
    assert broken is not None
    assert broken.problem == "tpye: unknown field."
    (result,) = [record for record in seen.results if record.name.id == "done"]
    assert (result.read, result.problem) == (True, "it: is empty.")


def test_what_has_moved_on_is_seen_without_content() -> None:
    cluster = busy_cluster()
    (ready,) = cluster.tree("ready")

    class Moving(Unreadable):
        def read(self, path: str, limit: int | None = None) -> bytes:
            if path == ready:
                raise FileNotFoundError(2, "No such file or directory", path)
            return super().read(path, limit)

    cluster.store.fs = Moving(cluster, "nowhere")  # type: ignore[assignment]
    seen = survey(cluster.store)
    (token,) = [token for token in seen.tokens if token.path == ready]
    assert token.content is None
    assert audit(seen) == []


def test_missing_and_unreadable_places_do_not_stop_the_survey() -> None:
    cluster = busy_cluster()
    cluster.fs.rmdir("logs")
    cluster.store.fs = Unreadable(cluster, "completed")  # type: ignore[assignment]
    seen = survey(cluster.store)
    assert seen.missing == ("logs",)
    assert seen.unreadable == (("completed", "Permission denied"),)
    assert len(seen.tokens) == 5
    cluster.store.fs = Unreadable(cluster, "failed/dead")  # type: ignore[assignment]
    assert survey(cluster.store).unreadable == (("failed/dead.1.w-0001.json", "Permission denied"),)


def test_a_checkpoint_of_the_feed_is_no_stranger_and_its_epoch_counts() -> None:
    cluster = busy_cluster()
    cluster.fs.write("status/77-1.feed.json", b"{}", durable=False)
    seen = survey(cluster.store)
    assert "status/77-1.feed.json" not in seen.foreign
    assert seen.epoch == 77


def test_changes_of_settings_are_no_strangers_and_a_spool_without_them_is_whole() -> None:
    cluster = busy_cluster()
    cluster.fs.write("settings/1.w.json", b"{}", durable=False)
    cluster.fs.write("settings/1.json", b"{}", durable=False)
    seen = survey(cluster.store)
    assert [path for path in seen.foreign if path.startswith("settings/")] == ["settings/1.json"]
    for name in cluster.fs.list("settings"):
        cluster.fs.unlink(f"settings/{name}")
    cluster.fs.rmdir("settings")
    assert survey(cluster.store).missing == ()
