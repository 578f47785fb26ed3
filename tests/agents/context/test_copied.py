"""An agent that does not see the spool finds what its batch shares as plain files."""

from pathlib import Path

from spoold.agents.process.confinement import copied
from spoold.client.context_and_steps import SharedContext
from spoold.client.spool_client import SpoolClient
from tests.client.cluster import Cluster


def test_the_entries_that_count(tmp_path: Path) -> None:
    cluster = Cluster()
    with SpoolClient("spool", filesystem=cluster.fs, clock=cluster.clock) as spool:
        shared = SharedContext(spool, "nightly")
        shared.put("api.md", b"one")
        shared.put("api.md", b"two")
        shared.put("logo.png", b"\xff")
        cluster.fs.write("context/nightly/9.0.w.bad.json", b"no json", durable=False)
        cluster.fs.write("context/nightly/10.1.w.api.md.json", b'{"text": "three"}', durable=False)
        (problem,) = copied(spool, "nightly", f"{tmp_path}/context")
    assert "9.0.w.bad.json" in problem
    assert {path.name: path.read_bytes() for path in (tmp_path / "context").iterdir()} == {
        "VERSIONS": b"api.md 10 without knowledge of 2\nlogo.png 3\n",
        "api.md": b"three",
        "logo.png": b"\xff",
    }


def test_a_batch_that_shares_nothing(tmp_path: Path) -> None:
    cluster = Cluster()
    with SpoolClient("spool", filesystem=cluster.fs, clock=cluster.clock) as spool:
        assert copied(spool, "nightly", f"{tmp_path}/context") == []
    assert [path.name for path in (tmp_path / "context").iterdir()] == ["VERSIONS"]
