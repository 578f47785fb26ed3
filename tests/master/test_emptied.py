"""A server that loses its power between a drop's judgement and its admission, and with it what was in the drop.

Law: what is admitted says what it was judged by. The leader outlives the power cut: its wait for the disk ends well
when the server is back, and what is on that disk then may be an empty file.
"""

import json

import pytest

from tests.support.cluster import Cluster

TASK = json.dumps({"id": "g0", "command": ["work"]})
LINES = "".join(json.dumps({"id": f"g{number}", "command": ["work"]}) + "\n" for number in range(2))


def share() -> Cluster:
    made = Cluster(remote=True)
    made.fs.forgets = True
    made.master("m1")
    made.settle()
    return made


def tokens(made: Cluster) -> list[tuple[str, bytes]]:
    """The tasks that stand anywhere, and what is in them."""
    found = {**made.fs.files("waiting"), **made.fs.files("ready"), **made.fs.files("failed")}
    return sorted((path.rpartition("/")[2].split(".")[2], data) for path, data in found.items())


@pytest.mark.parametrize(("drop", "said"), [("a.json", TASK), ("a.jsonl", LINES)])
@pytest.mark.parametrize("left", ["", "{", "\0" * len(TASK)])
def test_a_drop_that_the_server_lost_before_it_was_durable_is_no_task(drop: str, said: str, left: str) -> None:
    made = share()
    made.submit(drop, said)
    path = f"pending/{drop}"
    made.nodes["m1"].fs.hang("persist", path, lambda: made.fs.write(path, left.encode(), durable=True))
    made.advance(200)
    assert tokens(made) == []
    assert set(made.fs.files("rejected")) == {
        f"rejected/{drop}",
        f"rejected/{drop}.reason.json",
    }


@pytest.mark.parametrize(("drop", "said"), [("a.json", TASK), ("a.jsonl", LINES)])
def test_a_drop_that_was_written_again_meanwhile_is_judged_by_what_it_says_now(drop: str, said: str) -> None:
    made = share()
    made.submit(drop, said)
    path, again = f"pending/{drop}", said.replace('"work"', '"other"')
    made.nodes["m1"].fs.hang("persist", path, lambda: made.fs.write(path, again.encode(), durable=True))
    made.advance(60)
    assert [data.strip() for _, data in tokens(made)] == [line.encode() for line in again.split("\n") if line]


def test_what_is_added_to_a_batch_and_lost_before_it_was_durable_is_no_task() -> None:
    made = share()
    made.submit("a.jsonl", LINES)
    made.advance(40)
    (path,) = (path for path in made.fs.files("admitting") if path.endswith(".growing"))
    more = json.dumps({"id": "g2", "command": ["work"]}) + "\n"
    made.fs.append(path, more.encode())
    made.nodes["m1"].fs.hang("persist", path, lambda: made.fs.write(path, LINES.encode(), durable=True))
    made.advance(60)
    assert [task for task, _ in tokens(made)] == ["g0", "g1"]
    made.fs.append(path, more.encode())
    made.advance(60)
    assert [task for task, _ in tokens(made)] == ["g0", "g1", "g2"]
