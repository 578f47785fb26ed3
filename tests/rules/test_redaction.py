"""A masked stream holds no secret, however it is written, and is the same however it comes in pieces."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Callable, Sequence
from itertools import pairwise
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spoold.protocol import codec
from spoold.rules.redaction.known_secrets import Exact, spellings
from spoold.rules.redaction.masking import MOST as LINE_MOST
from spoold.rules.redaction.masking import Mask, Stream
from spoold.rules.redaction.stream_masking import CONTEXT
from spoold.rules.redaction.token_shapes import KEY_MOST

SECRET = 'p/a+ss "wörd"\\ <x>&1\'2'
SIGNS = "a'b\"c\\d$e`f&g<h>i=j k%l!m~n*o/p+q#r;s|t(u)v^w@x,y"
LONG = "".join(f"{number:03d}-abc/XYZ+" for number in range(12))
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc+/=\nsecond\n-----END RSA PRIVATE KEY-----"
TOKEN = "ghp_" + "a1B2" * 9
JWT = ".".join(("eyJ" + "h" * 20, "eyJ" + "p" * 30, "S" * 43))


def code(value: str, before: int = 0) -> str:
    """Base64 of some text in which the value stands behind so many bytes."""
    return base64.b64encode(b"~" * before + value.encode() + b"~~").decode()


def inside(value: str, before: int) -> str:
    """What the value alone determines of that."""
    first = (8 * before + 5) // 6
    return code(value, before)[first : 8 * (before + len(value.encode())) // 6]


ENCODERS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "base64": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "base64 of URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
    "base64, one byte behind": lambda value: inside(value, 1),
    "base64, two bytes behind": lambda value: inside(value, 2),
    "base64 in lines": lambda value: base64.encodebytes(value.encode()).decode().rstrip("=\n"),
    "URL": lambda value: quote(value, safe=""),
    "path of a URL": quote,
    "form": quote_plus,
    "JSON": lambda value: json.dumps(value)[1:-1],
    "JSON, not only ASCII": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "JSON in JSON": lambda value: json.dumps(json.dumps(value))[3:-3],
    "JSON of PHP": lambda value: json.dumps(value)[1:-1].replace("/", "\\/"),
    "repr": lambda value: repr(value)[1:-1],
    "repr of bytes": lambda value: repr(value.encode())[2:-1],
    "shell": lambda value: shlex.quote(value)[1:-1] if shlex.quote(value) != value else value,
    "shell, in double quotes": lambda value: re.sub(r'([\\"$`])', r"\\\1", value),
    "shell, after $": lambda value: value.replace("\\", "\\\\").replace("'", "\\'"),
    "repr within a text with both quotes": lambda value: repr(value + "'\"")[1:-4],
    "repr in ASCII": lambda value: ascii(value)[1:-1],
    "HTML": html.escape,
    "HTML of Jinja": lambda value: html.escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "HTML of jq": lambda value: html.escape(value).replace("&#x27;", "&apos;"),
    "text of XML": escape,
    "attribute of XML": lambda value: escape(value, {'"': "&quot;"}),
    "encodeURIComponent": lambda value: quote(value, safe="!*'()"),
    "encodeURI": lambda value: quote(value, safe="!*'();/?:@&=+$,#"),
    "form of a browser": lambda value: quote_plus(value, safe="*").replace("~", "%7E"),
    "every sign of a URL": lambda value: "".join(
        chr(byte) if chr(byte).isalnum() and byte < 128 else f"%{byte:02X}" for byte in value.encode()
    ),
    "JSON of Jinja": lambda value: (
        json.dumps(value)[1:-1]
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("'", "\\u0027")
    ),
    "shell in JSON": lambda value: json.dumps(re.sub(r'([\\"$`])', r"\\\1", value), ensure_ascii=False)[1:-1],
    "CSV": lambda value: value.replace('"', '""'),
    "YAML, SQL": lambda value: value.replace("'", "''"),
}
PLAIN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x24F, exclude_characters="[]\x7f"), min_size=6)
# A secret that is a part of the mask itself cannot be told from it.
VALUES = PLAIN.filter(lambda text: text == text.strip() and len(text) >= 6 and text not in "[redacted:S]")


@pytest.mark.turns
@pytest.mark.parametrize("encoder", ENCODERS)
@given(VALUES)
@example(SECRET)
@example(LONG)
@example(SIGNS)
def test_a_secret_is_masked_as_whatever_encoding_writes_it(encoder: str, value: str) -> None:
    written = ENCODERS[encoder](value)
    mask = Mask({"S": value}, tokens=False)
    assert mask.text(f"<{written}>").startswith("<[redacted:S]")
    assert written not in mask.text(f"<{written}>")
    assert mask.value({"a": [f"<{written}>"]})["a"][0].startswith("<[redacted:S]")


def test_a_secret_is_masked_as_printf_of_bash_writes_it() -> None:
    bare = r"a\'b\"c\\d\$e\`f\&g\<h\>i=j\ k%l\!m~n\*o/p+q#r\;s\|t\(u\)v\^w@x\,y"
    assert Mask({"S": SIGNS}, tokens=False).text(f"<{bare}>") == "<[redacted:S]>"


def test_a_long_secret_is_masked_in_lines_of_hex() -> None:
    code = LONG.encode().hex()
    lines = "\n".join(code[at : at + 60] for at in range(0, len(code), 60))  # as `xxd -p` writes it
    assert Mask({"S": LONG}, tokens=False).text(f"{lines}\n") == "[redacted:S]\n"


def test_a_line_of_a_secret_is_masked_too_if_it_is_long_enough() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nMIIabcdefghijklmnop\nshort\n-----END PRIVATE KEY-----\n"
    mask = Mask({"K": pem}, tokens=False)
    assert mask.text("| MIIabcdefghijklmnop |") == "| [redacted:K] |"
    assert mask.text("-----BEGIN PRIVATE KEY----- short") == "-----BEGIN PRIVATE KEY----- short"
    assert b"short" not in spellings("short\n\n")


PIECES = st.one_of(
    st.sampled_from([SECRET, SECRET[:9], SECRET[3:], LONG, "abcabcabc", "abcabc", TOKEN, TOKEN[:30], JWT, JWT[:40]]),
    st.sampled_from([KEY, KEY[:20], KEY[40:], json.dumps(KEY), KEY[:31], KEY + '"', KEY[:60] + '\\"', "-----", "--"]),
    st.sampled_from(
        ["\\", "\\\\", "\\n", "\n", "\r\n", '"', " ", "=", "sk-", "s", "eyJ", ".", "ä", "\x00", "user=me"]
    ),
    st.text("abc \n\\-", max_size=12),
    st.binary(max_size=6).map(lambda data: data.decode("latin-1")),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join).map(lambda text: text.encode())
SECRETS = {"S": SECRET, "LONG": LONG, "ABC": "abcabcabc", "AB": "abcabc"}


def masked(stream: Stream, pieces: Sequence[bytes], *, cut: bool = False) -> bytes:
    """What becomes of these pieces."""
    return b"".join(map(stream.feed, pieces)) + stream.end(cut=cut)


@given(TEXTS, st.lists(st.integers(0, 400)), st.booleans(), st.booleans())
def test_any_cut_into_pieces_gives_the_same(text: bytes, cuts: list[int], patterns: bool, cut: bool) -> None:
    mask = Mask(SECRETS, tokens=True, patterns=("user=[a-z]*", "^x*a|b$") if patterns else ())
    places = [0, *sorted(place for place in cuts if place < len(text)), len(text)]
    pieces = [text[first:last] for first, last in pairwise(places)]
    whole = masked(mask.stream(), [text], cut=cut)
    assert masked(mask.stream(), pieces, cut=cut) == whole
    assert masked(mask.stream(), [bytes([byte]) for byte in text], cut=cut) == whole
    for secret in (*SECRETS.values(), TOKEN, JWT, "MIIabc+/="):
        assert secret.encode() not in whole or secret == "MIIabc+/="


@given(st.lists(PIECES).map("".join), TEXTS)
def test_a_line_of_json_stays_one(text: str, more: bytes) -> None:
    plain = {name: value for name, value in SECRETS.items() if not value.endswith("\\")}
    line = json.dumps({text: [text, 1.5, None], "more": more.decode("latin-1")}).encode()
    left = masked(Mask(plain, tokens=True).stream(), [line])
    assert json.loads(left)
    assert SECRET not in str(json.loads(left))


def test_what_is_held_back_is_only_what_may_become_a_secret() -> None:
    stream = Mask({"S": "hunter2-hunter3"}, tokens=True).stream()
    assert stream.feed(b"working: 10 %") == b"working: 10 "  # it may escape the first letter
    assert stream.feed(b" of hunt") == b"% of "
    assert stream.feed(b"ing: ") == b"hunting: "
    assert stream.feed(b"gh") == b""
    assert stream.feed(b"ost ghp_1") == b"ghost "
    assert stream.feed(b", ") == b"ghp_1, "
    assert stream.feed(b"--") == b""
    assert stream.feed(b"-\n--z") == b"---\n--z"
    assert stream.feed(b"task hunter2-") == b"task "
    assert stream.end() == b"hunter2-"


def test_what_overlaps_is_one_mask() -> None:
    mask = Mask({"A": "abcdefgh", "B": "efghijkl", "C": "abcdefghij"}, tokens=False)
    assert mask.text("<abcdefghijkl>") == "<[redacted:C]>"
    assert mask.text("abcdefghabcdefgh") == "[redacted:A][redacted:A]"
    assert Mask({"A": "ababab"}, tokens=False).text("xabababababx") == "x[redacted:A]x"


def test_a_backslash_before_a_mask_goes_with_it_where_it_escapes() -> None:
    mask = Mask({"S": "nabcdefg"}, tokens=False)
    for count in range(CONTEXT + 2):
        left = mask.text("." + "\\" * count + "nabcdefg")
        assert left == "." + "\\" * (count if count >= CONTEXT else count - count % 2) + "[redacted:S]", count
    stream = mask.stream()
    assert (stream.feed(b"\\"), stream.feed(b"nabcdefg"), stream.feed(b"\\x")) == (b"", b"[redacted:S]", b"")
    assert stream.feed(b"y") == b"\\xy"


def test_a_beginning_whose_end_is_lost_is_masked_too() -> None:
    mask = Mask({"S": "hunter2-hunter3"}, tokens=True)
    assert mask.text("is hunter2-h", cut=True) == "is [redacted:S]"
    assert mask.text("is hunter2-h") == "is hunter2-h"
    assert mask.text("is hun", cut=True) == "is hun"
    assert mask.text("is ghp_abc", cut=True) == "is [redacted:github-token]"
    assert mask.text("is gh", cut=True) == "is gh"
    assert mask.text("well", cut=True) == "well"


def test_the_end_of_a_text_is_masked_with_what_came_before_it() -> None:
    mask = Mask({"S": "hunter2-hunter3"}, tokens=True)
    assert mask.last("is hunter2-hunter3 or not", 12) == "[redacted:S] or not"
    assert mask.last("is hunter2-hunter3 or not", 7) == " or not"
    assert mask.last(f"{TOKEN} or not", 20) == "[redacted:github-token] or not"
    assert mask.last("äöü", 3) == "ü"
    assert mask.last("short", 100) == "short"
    assert mask.last("short", 0) == ""


def test_a_private_key_is_one_mask_and_a_text_that_only_names_one_goes_on() -> None:
    mask = Mask({}, tokens=True)
    assert mask.text(f"a {KEY} b {KEY}") == "a [redacted:private-key] b [redacted:private-key]"
    assert mask.text(json.dumps([KEY])) == '["[redacted:private-key]"]'
    assert mask.text('"-----BEGIN PRIVATE KEY-----\\nabc" x') == '"[redacted:private-key]" x'
    assert mask.text('"-----BEGIN PRIVATE KEY-----\\"" x') == '"[redacted:private-key]\\"" x'
    assert mask.text('"-----BEGIN PRIVATE KEY-----\\\\" x') == '"[redacted:private-key]" x'
    assert mask.text("-----BEGIN PRIVATE KEY-----!") == "[redacted:private-key]!"
    assert mask.text("-----BEGIN CERTIFICATE-----\nabc") == "-----BEGIN CERTIFICATE-----\nabc"
    assert mask.text("-----BEGIN PRIVATE KEY-----\nabc") == "[redacted:private-key]"
    long = "-----BEGIN PRIVATE KEY-----" + "a" * (KEY_MOST + 5)
    assert mask.text(long) == "[redacted:private-key]aaaaa"
    stream = mask.stream()
    left = b"".join(stream.feed(long[at : at + 1000].encode()) for at in range(0, len(long), 1000)) + stream.end()
    assert left == b"[redacted:private-key]aaaaa"
    assert mask.text("-----BEGIN -----BEGIN PRIV") == "-----BEGIN -----BEGIN PRIV"


def test_patterns_of_the_owner_see_whole_lines() -> None:
    mask = Mask({}, tokens=False, patterns=("pass=\\S+", "^secret.*$", "x*"))
    assert mask.text("a pass=1 b\nsecret thing\nno secret\r\n") == (
        "a [redacted:pattern-1] b\n[redacted:pattern-2]\nno secret\r\n"
    )
    assert mask.text("\n\nxx") == "\n\n[redacted:pattern-3]"
    stream = mask.stream()
    assert (stream.feed(b"a pass=1"), stream.feed(b"2\n"), stream.end()) == (b"", b"a [redacted:pattern-1]\n", b"")
    ends = Mask({}, tokens=False, patterns=("b$",))
    line = "a" * (LINE_MOST - 1) + "b"
    assert ends.text(line + "c\n") == line[:-1] + "[redacted:pattern-1]c\n"
    assert ends.text(f"{line}\n") == line[:-1] + "[redacted:pattern-1]\n"
    assert ends.text("\udc80pass=é b") == "\udc80pass=é [redacted:pattern-1]"


def test_a_value_is_masked_text_by_text_and_stays_the_same_without_a_secret() -> None:
    mask = Mask({"S": "12345678", "T": SECRET}, tokens=True)
    value = {"a": [1, "two", None, True, 1.5], "b": {"c": {}}}
    assert mask.value(value) is value
    assert mask.value({SECRET: [f"is {SECRET}", (TOKEN,), 12345678, 912345678.5, 7, None, True]}) == {
        "[redacted:T]": [
            "is [redacted:T]",
            ["[redacted:github-token]"],
            "[redacted:S]",
            "9[redacted:S].5",
            7,
            None,
            True,
        ]
    }
    assert mask.value(SECRET) == "[redacted:T]"
    assert Mask({}, tokens=False, patterns=["^a+$"]).value(["aa", {1: "ba"}]) == ["[redacted:pattern-1]", {1: "ba"}]
    deep: object = TOKEN
    for _ in range(300):
        deep = [deep]
        assert b"ghp_" not in codec.dump({"output": mask.value(deep)})


def test_with_nothing_to_mask_everything_stays() -> None:
    assert Mask({}, tokens=False).text(f"{TOKEN} {KEY}") == f"{TOKEN} {KEY}"
    assert Exact({}).longest == 0
