"""No escape hides a secret: every character written in any way that a language knows, beside others that are not."""

from __future__ import annotations

import base64
import html
import random
from collections.abc import Callable, Iterator
from html.entities import html5

import pytest

from spoold.rules.redaction.known_secrets import Escapes, Exact, begun, spellings
from spoold.rules.redaction.masking import Mask

NAMES: dict[str, list[str]] = {}
for _name, _sign in html5.items():
    if _name.endswith(";"):
        NAMES.setdefault(_sign, []).append(f"&{_name}")
PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
ALPHABETS = (PLAIN, PLAIN + "+/=_-.", PLAIN + "!#$%&'()*+,-./:;<=>?@[]^_`{|}~\"\\ ", PLAIN + "äöüßéÿ€漢😀+\n\t")
LETTERS = {"\n": "n", "\t": "t"}


def units(one: str) -> Iterator[int]:
    code = one.encode("utf-16-be")
    return (int.from_bytes(code[at : at + 2]) for at in range(0, len(code), 2))


def cased(text: str, chance: random.Random) -> str:
    return text.upper() if chance.random() < 0.5 else text


ESCAPES: tuple[Callable[[str, random.Random], str], ...] = (
    lambda one, chance: "".join("\\u" + cased(f"{unit:04x}", chance) for unit in units(one)),
    lambda one, chance: "".join("%u" + cased(f"{unit:04x}", chance) for unit in units(one)),
    lambda one, chance: "\\u{" + cased(f"{ord(one):04x}", chance) + "}",
    lambda one, chance: "\\U" + cased(f"{ord(one):08x}", chance),
    lambda one, chance: "".join("\\x" + cased(f"{byte:02x}", chance) for byte in one.encode()),
    lambda one, _: "".join(f"\\{byte:03o}" for byte in one.encode()),
    lambda one, chance: "".join("%" + cased(f"{byte:02x}", chance) for byte in one.encode()),
    lambda one, chance: f"&#{'0' * chance.randrange(4)}{ord(one)};",
    lambda one, chance: f"&#{chance.choice('xX')}{'0' * chance.randrange(4)}{cased(f'{ord(one):x}', chance)};",
    lambda one, chance: chance.choice(NAMES.get(one, [f"&#{ord(one)};"])),
    lambda one, _: f"\\{one}" if one.isascii() and not one.isalnum() and one >= " " else one,
    lambda one, _: f"\\{LETTERS[one]}" if one in LETTERS else one,
    lambda one, _: f"\\x{ord(one):02x}" if 0x7F < ord(one) < 0x100 else one,
)
# What a text goes through that is put into another one.
WITHIN: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: text.replace("\\", "\\\\"),
    lambda text: text.replace("\\", "\\\\").replace("\\", "\\\\"),
    lambda text: text.replace("%", "%25"),
    lambda text: text.replace("&", "&amp;"),
    lambda text: text.replace("\\", "\\u005c"),
    lambda text: text.replace("&", "\\u0026").replace("%", "\\x25"),
    lambda text: text.replace("\\", "%5C"),
)


def secret(chance: random.Random) -> str:
    letters = chance.choice(ALPHABETS)
    # a blank at an end is no part of what is looked for, and the end of a mask is none of a secret
    return "k" + "".join(chance.choice(letters) for _ in range(chance.randint(6, 40))) + "q"


def forms(value: str) -> list[str]:
    """What may stand in a text for a secret, in characters that can be escaped."""
    code = base64.b64encode(value.encode()).decode()
    return [value, code, code.rstrip("="), base64.urlsafe_b64encode(value.encode()).decode(), value.encode().hex()]


def escaped(text: str, chance: random.Random) -> str:
    some, often = chance.sample(ESCAPES, chance.randint(1, len(ESCAPES))), chance.choice([0.05, 0.3, 0.7, 1.0])
    # a sign that begins an escape is itself escaped, as every language does it
    return "".join(
        chance.choice(some)(one, chance) if chance.random() < often else one.replace("\\", "\\\\") for one in text
    )


def pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    most = chance.choice([1, 3, 20, 500])
    while data:
        size = chance.randint(1, most)
        yield data[:size]
        data = data[size:]


@pytest.mark.parametrize("seed", range(12))
def test_no_escape_of_any_character_hides_a_secret(seed: int) -> None:
    """G22: `\\u002B`, `\\u003d`, `&#43;` and `&#x2b;`, as .NET, Gson, PHP and Go write them, hid any base64."""
    chance = random.Random(seed)
    for _ in range(4):
        value = secret(chance)
        mask = Mask({"S": value, "OTHER": "nothing-of-the-sort"}, tokens=False)
        for _ in range(12):
            said = chance.choice(WITHIN)(escaped(chance.choice(forms(value)), chance))
            text = f"a <{said}> z".encode()
            stream = mask.stream()
            left = b"".join(map(stream.feed, pieces(text, chance))) + stream.end()
            assert left.removesuffix(b"=> z").removesuffix(b"> z").startswith(b"a <[redacted:S]"), (value, said, left)
            rest = left.partition(b"[redacted:S]")[2]
            assert html.unescape(rest.decode()).strip("=%3Ddu0\\x{}U756") == "> z", (value, said, left)


@pytest.mark.parametrize("seed", range(8))
def test_however_escaped_text_is_cut_it_becomes_the_same(seed: int) -> None:
    """G22: parts of escapes and of secrets, in any order; one byte at a time, in pieces, and whole."""
    chance = random.Random(seed)
    values = [secret(chance) for _ in range(3)]
    mask = Mask({f"S{number}": value for number, value in enumerate(values)}, tokens=True)
    for _ in range(15):
        parts = []
        for _ in range(chance.randint(1, 8)):
            said = chance.choice(WITHIN)(escaped(chance.choice(forms(chance.choice(values))), chance))
            first = chance.randrange(len(said))
            parts.append(
                chance.choice([said, said[first:], said[:first], "\\" * chance.randrange(12), "&#", "%2", " "])
            )
        text = "".join(parts).encode("utf-8", "replace")
        cut = chance.random() < 0.3
        streams = [mask.stream() for _ in range(3)]
        cuts = [[text], [bytes([byte]) for byte in text], list(pieces(text, chance))]
        made = [
            b"".join(map(stream.feed, fed)) + stream.end(cut=cut) for stream, fed in zip(streams, cuts, strict=True)
        ]
        assert made[0] == made[1] == made[2], text


def test_an_escaped_beginning_whose_end_is_lost_is_masked_too() -> None:
    mask = Mask({"S": "hunter2+hunter3"}, tokens=False)
    assert mask.text("is h\\u0075nter2&#4", cut=True) == "is [redacted:S]"
    assert mask.text("is %2568unter2%", cut=True) == "is [redacted:S]"
    assert mask.text("is %68un\\", cut=True) == "is %68un\\"
    assert mask.text("is h\\u0075nter2&#4") == "is h\\u0075nter2&#4"


def test_a_secret_that_looks_like_an_escape_is_found_as_it_is_and_as_what_it_means() -> None:
    mask = Mask({"S": "pass%2Bword\\n&amp;x"}, tokens=False)
    for said in ("pass%2Bword\\n&amp;x", "pass%252Bword\\\\n&amp;amp;x", "p\\u0061ss%2Bword\\n&amp;x"):
        assert mask.text(f"<{said}>") == "<[redacted:S]>"


def test_only_what_can_stand_for_a_secret_is_read() -> None:
    escapes = Escapes(["a+b"])
    assert escapes.read(b'no escapes, 100 %, a & b; \\n \\" %20 %2Bc \\u0041 &nbsp; &#49; %zz') is None
    found = escapes.read(b"x a\\\\u002bb &plus;b a%2B")
    assert found is not None
    assert (found.text, found.place(4), found.place(5)) == (b"x a+b +b a+", 10, 11)
    assert list(found.around(1)) == [(2, 12)]
    far = escapes.read(b"a%2Bb" + b"." * 9000 + b"a%2Bb")
    assert far is not None
    assert list(far.around(2)) == [(0, 4), (9002, 9007)]


def test_it_remembers_only_so_many_escapes() -> None:
    escapes = Escapes(["ab"])
    text = b"".join(b"&#%s%d;" % (b"0" * zeros, code) for zeros in range(6) for code in (97, 98) for _ in range(2))
    escapes._meant = dict.fromkeys((b"%d" % number for number in range(4096)), b"x")
    found = escapes.read(text)
    assert found is not None
    assert found.text == b"aabb" * 6
    assert len(escapes._meant) == 12


@pytest.mark.parametrize(
    ("text", "held"),
    [("abc", 0), ("abc %", 1), ("\\u00", 4), ("\\u0041", 0), ("&am", 3), ("&#x2", 4), ("%E2%82", 6), ("\\ud83d", 6)],
)
def test_an_escape_is_held_until_it_is_whole(text: str, held: int) -> None:
    assert len(text) - begun(text.encode()) == held


@pytest.mark.parametrize("sign", ["\\", "%", "&#", "\\u00", "%25", "%C3", "\\\\x4"])
def test_a_flood_of_signs_that_begin_escapes_is_not_held(sign: str) -> None:
    """G22: what is looked at again for each byte is bounded, however long the text is."""
    exact, flood = Exact({"S": "päss+word/x"}), (sign * 20_000).encode()
    for place in range(0, len(flood), 5000):
        piece = flood[place : place + 5000]
        assert len(piece) - exact.held(piece) <= 96
        assert exact.find(piece, 0) == []


def test_spellings_are_few() -> None:
    assert len(spellings("k9-Zq7/Wm3+Xv5=T0b1")) < 20


def test_what_is_escaped_more_often_than_it_is_read_ends() -> None:
    exact, text = Exact({"S": "hunter2+hunter3"}), b"%25252525252525 x"
    assert exact.held(text) == len(text)
    assert exact.begun(text) is None
    assert exact.find(text, 0) == []
