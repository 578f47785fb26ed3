"""A plan as a tree: each task once, below the last that it comes after, with all that it would run."""

from typing import Any

from spoold.agents.plan.drawing import Plan
from spoold.protocol.task import Task


def plan(*tasks: dict[str, Any]) -> Plan:
    made = [Task.model_validate(task) for task in tasks]
    return Plan([task.id or f"made-{number}" for number, task in enumerate(made)], made)


def coder(task_id: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"id": task_id, "agent": "coder", "prompt": f"do {task_id}\nand more", "after": list(after), **more}


def test_a_diamond_is_drawn_with_each_task_once() -> None:
    found = plan(coder("a"), coder("b", "a"), coder("c", "A"), coder("d", "b", "c", "old"), coder("e"))
    assert found.lines() == [
        "a (coder)",
        "    do a and more",
        "  b (coder)",
        "      do b and more",
        "    d (coder; also after c, old)",
        "        do d and more",
        "  c (coder)",
        "      do c and more",
        "e (coder)",
        "    do e and more",
    ]
    assert (found.steps, found.widest) == (3, 2)
    assert found.summary() == "5 tasks, 3 steps one after the other, at most 2 at once"
    assert found.without_dependency() == [0, 4]


def test_a_task_stands_below_the_latest_of_its_dependencies() -> None:
    lines = plan(coder("late", "a", "b"), coder("b", "a"), coder("a")).lines()
    heads = [line for line in lines if line.endswith(")")]
    assert heads == ["a (coder)", "  b (coder)", "    late (coder; also after a)"]


def test_all_that_a_task_would_run_is_told() -> None:
    task = coder("a", accept=["make test", ["rm", "-r", "x"]], success_if={"command": ["sh", "-c", "true"]})
    task |= {"workspace": {"repo": "/srv/r"}, "locks": {"write": ["src/"], "read": "doc/"}, "artifacts": ["out.md"]}
    task |= {"approval": {"ask": "Really?"}, "hold": "later"}
    assert plan(task).lines()[1:] == [
        "    do a and more",
        "    accept: make test, rm -r x",
        "    succeeds if: sh -c true",
        "    in: /srv/r",
        "    locks: src/** doc/**",
        "    makes: out.md",
        "    asks: Really?",
        "    held: later",
    ]
    assert plan({"command": ["rm", "-rf", "/"]}).lines() == ["made-0 (command)", "    rm -rf /"]
    assert plan({"python": "os:getpid"}).lines() == ["made-0 (python)", "    os:getpid"]
    merge = {"id": "m", "type": "merge", "input": {"repo": "/r", "into": "main"}}
    assert plan(merge).lines() == ["m (merge)", "    in: /r", "    into: main"]
    by_file = {"id": "m", "agent": "coder", "prompt_file": "todo.md"}
    assert plan(by_file).lines() == ["m (coder)", "    prompt of the file: todo.md"]


def test_what_a_command_reads_and_what_a_handler_gets_is_told() -> None:
    command = {"id": "c", "command": ["sh"], "stdin": "rm -r x\nls", "env": {"PATH": "/evil"}, "cwd": "/etc"}
    assert plan(command).lines() == [
        "c (command)",
        "    sh",
        "    reads: rm -r x ls",
        "    variables: PATH=/evil",
        "    starts in: /etc",
    ]
    assert plan({"id": "p", "python": "os:system", "calls": [["rm -r x"]]}).lines()[2:] == [
        '    arguments: [["rm -r x"]]'
    ]
    assert plan({"id": "q", "python": "os:system", "kwargs": {"command": "rm"}}).lines()[2:] == [
        '    arguments: {"command": "rm"}'
    ]
    deploy = {"id": "d", "type": "deploy", "input": {"target": "production"}}
    assert plan(deploy).lines() == ["d (deploy)", '    input: {"target": "production"}']
    assert plan(coder("a", model="big")).lines()[2:] == ['    input: {"model": "big"}']
    assert plan({"id": "e", "type": "deploy", "input": ["x"]}).lines()[1:] == ['    input: ["x"]']


def test_whose_child_a_task_would_be_in_which_batch_and_what_silence_means_is_told() -> None:
    asks = {"ask": "Sure?", "expires_s": 1, "on_expire": "approve"}
    task = coder("a", parent="other", batch="theirs", approval=asks)
    made = Plan(["a"], [Task.model_validate(task)], "own")
    assert made.lines()[2:] == [
        "    asks: Sure? (without an answer within 1 s: approve)",
        "    child of: other",
        "    batch: theirs",
    ]
    assert Plan(["a"], [Task.model_validate(coder("a", batch="own"))], "own").lines()[2:] == []


def test_other_conditions_are_said_in_words() -> None:
    tasks = (coder("a"), coder("b", after_any=["a"]), coder("c", after_failed=["a"]), coder("d", after_batch="x"))
    heads = [line for line in plan(*tasks).lines() if line.endswith(")")]
    assert heads == [
        "a (coder)",
        "  b (coder; when a has ended)",
        "  c (coder; if a fails)",
        "d (coder; after the batch x)",
    ]
    assert plan(*tasks).without_dependency() == [0, 1, 2, 3]


def test_many_are_cut_and_a_long_chain_stays_on_the_page() -> None:
    many = [coder(f"t{number:02d}") for number in range(12)]
    last = plan(*many, coder("land", *(task["id"] for task in many))).lines()
    assert "  land (coder; also after t01, t02, t03, t04, t05, t06 and 5 more)" in last
    chain = plan(*(coder(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(1000)))
    assert chain.steps == 1000
    assert max(map(len, chain.lines())) < 60
    assert len(plan({"agent": "coder", "prompt": "x" * 500}).lines()[1]) == 104
    assert len(plan({"command": "x" * 500}).lines()[1]) == 504, "the end of a command may be what matters"
