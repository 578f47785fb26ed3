"""The filter of system calls, played instruction by instruction for each kind of processor; podman's list of them."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from spoold.agents.sandbox import command_line, seccomp
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxPolicy

ALLOW, NO_CALL, NO_FAMILY, KILL = 0x7FFF0000, 0x50026, 0x50061, 0x80000000
TABLES = {(name, table) for name, tables in seccomp.TABLES.items() for table in tables}


def play(program: bytes, arch: int, number: int, first: int = 0) -> int:
    """What the kernel would answer: a machine for the few instructions that there are."""
    data = struct.pack("=IIQQ", number, arch, 0, first)
    at, loaded = 0, 0
    while True:
        code, yes, no, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if code == 0x06:
            answer: int = value
            return answer
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        else:
            at += yes if (loaded == value if code == 0x15 else loaded >= value) else no


@pytest.mark.parametrize(("name", "table"), sorted(TABLES, key=str))
@pytest.mark.parametrize("network", [False, True])
def test_what_is_refused(name: str, table: seccomp.Table, network: bool) -> None:
    program = seccomp.program(seccomp.TABLES[name], network=network)
    for number in (table.add_key, table.request_key, table.keyctl, 425):
        assert play(program, table.arch, number) == NO_CALL
    for number in (0, 1, 3, 60, 100, 424, 426, 435):
        assert play(program, table.arch, number) == ALLOW
    for family in range(46):
        expected = ALLOW if network or family in seccomp.FAMILIES else NO_FAMILY
        assert play(program, table.arch, table.socket, family) == expected
    if table.socketcall is not None:
        assert play(program, table.arch, table.socketcall) == (ALLOW if network else NO_CALL)


def test_calls_of_another_kind_of_processor_end_the_process() -> None:
    program = seccomp.program(seccomp.TABLES["x86_64"], network=True)
    assert play(program, 0xC00000B7, 1) == KILL
    assert play(program, 0xC000003E, 0x40000001) == NO_CALL, "numbers of x32, which the list does not have"


def test_a_machine_that_is_not_known_has_no_sandbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seccomp, "TABLES", {})
    assert seccomp.main(["none", "/bin/true"]) == f"no filter of system calls is known for {os.uname().machine}"


def test_variables_are_handed_on_as_they_are(tmp_path: Path) -> None:
    """Python adds LC_CTYPE where the locale is C, and what it is given may be no UTF-8."""
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\nexec env -0\n")
    tool.chmod(0o755)
    env = {b"A": b"1=2", b"B": b"\xff\n"}
    line = [sys.executable, "-I", "-S", seccomp.__file__, "none", str(tool)]
    done = subprocess.run(line, env=env, capture_output=True, check=True)
    seen = dict(each.split(b"=", 1) for each in done.stdout.split(b"\0") if each)
    assert {name: value for name, value in seen.items() if name not in (b"PWD", b"_", b"SHLVL", b"OLDPWD")} == env


def test_a_tool_that_is_not_there_is_named() -> None:
    line = [sys.executable, "-I", "-S", seccomp.__file__, "none", "/nowhere/bwrap"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "/nowhere/bwrap cannot be started: No such file or directory\n")


LIST = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "syscalls": [
        {"names": ["keyctl"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["socket", "read"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["socketcall", "io_uring_setup"], "action": "SCMP_ACT_ALLOW"},
    ],
}
CONTAINER = SandboxPolicy("podman", image="i")


@pytest.mark.parametrize("network", [False, True])
def test_the_list_of_podman(network: bool) -> None:
    made = json.loads(command_line.shorter(json.dumps(LIST).encode(), "l", network=network, nested=True))
    assert made["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed = {name for rule in made["syscalls"] if "args" not in rule for name in rule["names"]}
    assert allowed == ({"socket", "read", "socketcall"} if network else {"read"})
    families = [rule["args"][0]["value"] for rule in made["syscalls"] if "args" in rule]
    assert families == ([] if network else list(seccomp.FAMILIES))


def test_the_list_of_podman_has_no_call_that_makes_a_namespace() -> None:
    said = {"syscalls": [{"names": ["read", "unshare", "setns", "clone", "clone3"], "action": "SCMP_ACT_ALLOW"}]}
    made = json.loads(command_line.shorter(json.dumps(said).encode(), "l", network=True, nested=False))
    rules = [(rule["names"], rule["action"], rule.get("args", [{}])[0].get("value")) for rule in made["syscalls"]]
    assert rules == [
        (["read"], "SCMP_ACT_ALLOW", None),
        (["unshare", "setns", "clone3"], "SCMP_ACT_ERRNO", None),
        *[(["clone"], "SCMP_ACT_ALLOW", 0x7E020000)] * 2,
    ]


@pytest.mark.parametrize(
    "said", ["", "[]", "{}", '{"syscalls": {}}', '{"syscalls": [1]}', '{"syscalls": [{"names": [[]]}]}']
)
def test_a_list_that_is_none_is_named(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}")
    monkeypatch.setattr(command_line, "LISTS", (str(tmp_path / "no.json"), str(tmp_path / "list.json")))
    with pytest.raises(NoSandbox, match=r"is at none of .*no\.json, .*; install the package"):
        command_line.allowed_calls(CONTAINER, str(tmp_path))
    (tmp_path / "list.json").write_text(said)
    with pytest.raises(NoSandbox, match=r"cannot be used: .*list\.json.*; install its packages again"):
        command_line.allowed_calls(CONTAINER, str(tmp_path))
