"""A merge that is killed right before its Nth git command; run as a program, which has no threads to fork.

python -m tests.agents.merge.kills FOLDER alone|batch STRIDE
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from spoold.agents.merge.candidates import Candidate
from tests.agents.merge.lanes import land, work
from tests.agents.workspace.kills import killed_before
from tests.agents.workspace.repos import Remote, git

TEST = "test -e green"


def story(top: Path, candidates: list[Candidate], number: int) -> bool:
    """A merge is killed, and the next one goes on; whether it was killed."""
    shutil.copytree(top.parent / "made", top)
    remote = Remote.at(top)
    before = remote.commit("main")
    killed = killed_before(number, lambda: land(remote, top, *candidates, tests=(TEST,)))
    between = git("rev-list", "--first-parent", f"{before}..main", cwd=remote.path).splitlines()
    for commit in between:
        assert "green" in remote.files(commit), f"command {number}: a commit that fails its tests landed"
    outcome = land(remote, top, *candidates, tests=(TEST,))
    there = {one.task for one, _ in outcome.landed} | {one.task for one in outcome.already}
    assert there == {one.task for one in candidates if one.task != "bad"}, f"command {number}: {outcome}"
    refused = [(one.task, one.reason) for one in outcome.refused]
    assert refused == [("bad", "tests")] * (len(candidates) > 1), f"command {number}: {outcome}"
    assert {"one.txt", "green"} <= set(remote.files("main"))
    line = git("rev-list", "--first-parent", f"{before}..main", cwd=remote.path).splitlines()
    assert all("green" in remote.files(commit) for commit in line)
    assert not list((top / "merger" / "merges").iterdir())
    return killed


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "made").mkdir()
    first = Remote(folder / "made", {"a.txt": "a\n", "green": ""})
    made = [
        work(first, folder / "made", "one", {"one.txt": "1\n"}),
        work(first, folder / "made", "bad", {"green": None}),
        work(first, folder / "made", "two", {"two.txt": "2\n"}),
    ]
    number, stories = 1, 1
    while story(folder / str(number), made[:1] if sys.argv[2] == "alone" else made, number):
        number += int(sys.argv[3])
        stories += 1
    print(stories)
