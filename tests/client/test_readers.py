"""One reader for every TOML file: a file is wrong in the same words, wherever it is read, and never a bug of ours."""

import ast
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spoold.client.spool.location import NoSpoolNamed, spool_directory, user_file
from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.toml_file import load_settings, toml_table
from spoold.worker.handlers.worker_config import load_config
from tests.house.sources import modules

Read = Callable[[Path], object]


def _user(file: Path) -> object:
    home = {"XDG_CONFIG_HOME": str(file.parent.parent), "HOME": "/"}
    assert user_file(home) == str(file)
    return spool_directory(environ=home, system="/nowhere")


def _spool(file: Path) -> object:
    return load_settings(file.read_bytes(), str(file))


def _worker(file: Path) -> object:
    return load_config(str(file))


READERS = pytest.mark.parametrize("read", [_user, _spool, _worker])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "spoold").mkdir()
    return tmp_path / "spoold" / "config.toml"


@READERS
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"# \n[x\n", "is not TOML: .*at line 2"),
        (b"a = 1\nb = '\0'\n", r"is not TOML: Found invalid character '\\x00' \(at line 2"),
        (b"\0", "is not TOML: .*at line 1"),
        (b"a = 1\nb = " + b"9" * 5000, r"a number of too many digits \(line 2\)"),
        (b"\n\na = " + b"[" * 3000, r"is nested too deep \(line 3\)"),
        (b"\na = " + b"{b=" * 3000, r"is nested too deep \(line 2\)"),
        (b"[" + b"a." * 3000 + b"a]\nb = 1", r"a key or header with more than 100 dots \(line 1\)"),
        (b'"""\n"""."x\\"" = 1\n' + b"a . " * 50_000 + b"a = 1", r"more than 100 dots \(line 3\)"),
        (b"x = {y = 1, '#'" + b".'.'" * 101 + b" = 2}", r"more than 100 dots \(line 1\)"),
        (b"[" + b"a." * 100 + b"a]\n" + b"b." * 100 + b"b = 1", "is nested deeper than 200 levels"),
        (b"#\n" * 5_000_000, r"is larger than 256 KiB \(which end in line 131073\)"),
        (b"a = 0x" + b"f" * 5000, "a: has a number of more than 64 bits"),
        (b"[[a.b]]\nc = [18446744073709551616]", r"a\.b\.0\.c\.0: has a number of more than 64 bits"),
        (b"a = 1\n# \xff", r"is not UTF-8 \(line 2, byte 8\)"),
        ("spool = '/x'".encode("utf-16"), "is UTF-16, not UTF-8"),
    ],
)
def test_what_is_no_toml_is_said_with_its_line(read: Read, data: bytes, problem: str, file: Path) -> None:
    file.write_bytes(data)
    with pytest.raises(BadFile, match=problem) as caught:
        read(file)
    assert caught.value.file == str(file)
    assert caught.value.mend
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "honest",
    [
        'x = "' + "a." * 500 + '"',
        "x = '" + "a." * 500 + "' # " + "." * 500,
        'x = """' + "a." * 500 + "\n" + 'b."' * 500 + '\\""""""',
        "x = '''" + "a." * 500 + "\n" + "b.'" * 500 + ".'''''",
        "x = [" + "1.5, " * 500 + "]",
        'x = ["""a"""", "' + "." * 200 + '"]',
        "x = {" + ", ".join(f"a{number}.b = 1.5" for number in range(200)) + "}",
        '"' + "." * 200 + '".b = 1',
        "[a" + ".a" * 100 + "]",
    ],
)
def test_dots_that_part_no_key_are_not_counted(honest: str) -> None:
    assert toml_table(honest.encode(), "f") == tomllib.loads(honest)


DOTS = "." * 101


def quoted(text: str) -> st.SearchStrategy[str]:
    """The ways to write a text as a TOML string, in which as little as possible is escaped."""
    escaped = text.replace("\\", "\\\\")
    lines = [escaped.replace('"""', '""\\"'), escaped.replace('"', '\\"')]
    ways = [f'"""{DOTS}{line}"""' for line in lines if not line.endswith('"""')]
    ways.append('"' + lines[1].replace("\n", "\\n") + DOTS + '"')
    if "'''" not in text:
        ways.append(f"'''{DOTS}{text}'''")
    if "'" not in text and "\n" not in text:
        ways.append(f"'{text}{DOTS}'")
    return st.sampled_from(ways)


STRINGS = st.text("\"'\\\n#=,.[]{}a", max_size=8).flatmap(quoted)
ONE_LINE = STRINGS.filter(lambda string: "\n" not in string)
KEYS = ONE_LINE.filter(lambda string: string[:3] not in ('"""', "'''"))
INLINE = st.tuples(KEYS, ONE_LINE, ONE_LINE).map(lambda all_: f"{{a.{all_[0]} = {all_[1]}, b = {all_[2]}}}")
VALUES = st.recursive(
    STRINGS, lambda inner: st.lists(inner | INLINE, max_size=4).map(lambda all_: f"[{', '.join(all_)}]"), max_leaves=4
)


@given(st.lists(VALUES, max_size=3))
def test_no_dots_in_any_string_are_counted(values: list[str]) -> None:
    """N37: with re of Python 3.11.2 a string that ends with a quote hid where the next one began."""
    text = "".join(f"k{number}.a = {value} # {DOTS}\n" for number, value in enumerate(values))
    assert toml_table(text.encode(), "f") == tomllib.loads(text)


@given(st.text("[]{}=.,\"'#\n\\a1", max_size=80))
def test_a_key_of_too_many_dots_is_refused_behind_whatever_can_stand_before_it(before: str) -> None:
    text = f"{before}\n{'zz.' * 101}zz = 1"
    try:
        tomllib.loads(before)
        whole = True
    except ValueError:
        whole = False
    with pytest.raises(BadFile, match="more than 100 dots" if whole else "^f: "):
        toml_table(text.encode(), "f")


@READERS
def test_a_byte_order_mark_is_no_error(read: Read, file: Path) -> None:
    file.write_bytes(codec.BOM + b"# nothing\n" + (b"" if read is _spool else b'spool = "/x"\n'))
    read(file)


@READERS
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=60) | st.text("[]{}=.\"'#\n a1x\0\ufeff-", max_size=60).map(str.encode))
def test_no_content_is_a_bug_of_ours(read: Read, data: bytes, file: Path) -> None:
    file.write_bytes(data + (b"" if read is not _user else b'\n[x]\nspool = "/x"\n'))
    with suppress(BadFile, NoSpoolNamed):
        read(file)


@pytest.mark.parametrize("name", ["spool", "name"])
def test_no_nul_comes_from_a_file_into_a_name(name: str, file: Path) -> None:
    file.write_text(f'{name} = "/x\\u0000y"\n')
    for read in (_worker, *([_user] if name == "spool" else [])):
        with pytest.raises(BadFile, match="holds a NUL character"):
            read(file)


def test_two_types_that_differ_by_case_alone_are_one_too_many(file: Path) -> None:
    file.write_text("[types.Dup]\ntimeout = 1\n[types.dup]\ntimeout = 2\n")
    with pytest.raises(BadFile, match="types: Dup and dup are the same word") as caught:
        _spool(file)
    assert "keep one of them" in caught.value.mend


def test_a_path_with_a_nul_is_no_bug_of_ours() -> None:
    with pytest.raises(BadFile, match="cannot be read: embedded null byte"):
        load_config("/x\0y")


def test_nobody_else_reads_toml() -> None:
    readers = {
        path
        for path, _, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(name.name == "tomllib" for name in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "tomllib")
    }
    assert readers == {"spoold/protocol/toml_file.py"}
