"""Goal: of a log only text and SGR reach a page or a terminal, wherever it is cut."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from spoold.pictures import log_colours
from spoold.pictures.log_colours import PLAIN, Reader, Span, Style, Terminal, lines, styled

HOSTILE = (
    *(
        "\x1b]52;c;QUJD\x07",
        "\x1b]0;title\x1b\\",
        "\x1b[2J",
        "\x1b[1;1H",
        "\x1bPq#0\x1b\\",
        "\x9b2J",
    ),
    *("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "\x1b[?1049h", "\x1b_G\x1b\\", "\x07", "\x08", "\x00", "\u202e"),
    *(
        "\x1b[31m",
        "\x1b[0m",
        "\x1b[1;38;5;200m",
        "\x1b[",
        "\x1b",
        "\x1b]",
        "text",
        "\n",
        "\r\n",
        "\r",
    ),
    *("\u2066", "日本", "\x90x\x9c", "\x1bc", "\t", "<b>", "é"),
)
PIECES = st.lists(st.sampled_from(HOSTILE), max_size=20).map("".join)
ALLOWED = re.compile("\x1b\\[[0-9;]*m")


def feed(pieces: list[bytes]) -> list[Span]:
    reader = Reader()
    found = [span for piece in pieces for span in reader.feed(piece)]
    return found + reader.feed(b"", last=True)


def joined(spans: list[Span]) -> list[Span]:
    """Neighbours of one style as one."""
    made: list[Span] = []
    for span in spans:
        if made and made[-1].style == span.style:
            made[-1] = Span(made[-1].text + span.text, span.style)
        elif span.text:
            made.append(span)
    return made


@given(PIECES, st.integers(1, 7))
def test_any_cut_into_pieces_gives_the_same(text: str, size: int) -> None:
    data = text.encode(errors="surrogatepass")
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert joined(feed(pieces)) == joined(feed([data]))


@given(PIECES)
def test_a_terminal_gets_text_and_sgr_alone(text: str) -> None:
    terminal = Terminal()
    written = terminal.feed(text.encode()) + terminal.feed(b"", last=True)
    plain = ALLOWED.sub("", written)
    assert all(char.isprintable() or char in "\n\t" for char in plain)
    assert not ALLOWED.search(written) or written.rstrip().endswith(("m", *plain[-1:]))


@given(PIECES)
def test_lines_hide_nothing(text: str) -> None:
    for line in lines(text.encode()):
        for span in line:
            assert all(char.isprintable() for char in span.text)


def test_what_sgr_says_is_kept() -> None:
    (line,) = lines(b"a\x1b[31mb\x1b[1;44mc\x1b[22;39md\x1b[me")
    red, bold = Style(ink=1), Style(ink=1, ground=4, bold=True)
    assert line == [Span("a"), Span("b", red), Span("c", bold), Span("d", Style(ground=4)), Span("e")]
    assert bold.words == ["ink-1", "ground-4", "bold"]
    assert bold.codes == [1, 31, 44]
    assert Style(ink=9, ground=15).codes == [91, 107]
    assert styled(PLAIN, "91;107") == Style(ink=9, ground=15)
    assert styled(PLAIN, "7;4;3;9;2") == Style(inverse=True, underline=True, italic=True, strike=True, dim=True)
    assert styled(styled(PLAIN, "7;4;3;9;2"), "27;24;23;29;22") == PLAIN
    assert styled(PLAIN, "999;1") == Style(bold=True)


def test_many_colours_become_the_nearest_of_sixteen() -> None:
    assert styled(PLAIN, "38;5;4;1") == Style(ink=4, bold=True)
    assert styled(PLAIN, "38;5;196").ink == 9
    assert styled(PLAIN, "48;5;232").ground == 0
    assert styled(PLAIN, "38;2;0;210;0").ink == 2
    assert styled(PLAIN, "38:2:255:255:255").ink == 15
    assert styled(PLAIN, "38;5") == PLAIN
    assert styled(PLAIN, "38;2;1;2") == PLAIN


def test_a_line_that_is_written_anew_hides_nothing() -> None:
    """What stood before a carriage return was not shown, and a terminal wrote over it."""
    assert lines(b"10 %\r20 %\r\r\nnext\r\n") == [[Span("10 %\\r20 %")], [Span("next")]]
    assert lines(b"rm -rf /\rok") == [[Span("rm -rf /\\rok")]]
    terminal = Terminal()
    pieces = (b"rm -rf /\r", b"ok\r", b"\n", b"end\r")
    written = "".join(map(terminal.feed, pieces)) + terminal.feed(b"", last=True)
    assert written == "rm -rf /\\rok\nend\\r"
    assert lines(b"") == []
    assert lines(b"\n\n") == [[], []]


def test_text_in_the_colour_of_its_ground_is_shown_without_colours() -> None:
    for numbers in ("30;40", "97;107", "38;5;196;48;2;255;0;0", "7;31;41"):
        style = styled(PLAIN, numbers)
        assert not any(word.startswith(("ink", "ground")) for word in style.words), numbers
        assert not any(code >= 30 for code in style.codes), numbers
    assert styled(PLAIN, "30;41").codes == [30, 41]
    terminal = Terminal()
    assert terminal.feed(b"\x1b[30;40mhidden", last=True) == "\x1b[0mhidden\x1b[0m"


def test_a_sequence_without_an_end_hides_no_line() -> None:
    assert lines(b"a\x1b]0;title\nb\n") == [[Span("a")], [Span("b")]]
    reader = Reader()
    begun = reader.feed(b"a\x1b]" + b"x" * 3 * log_colours._HELD_MOST)
    assert begun[0] == Span("a")
    assert len(reader._held) <= log_colours._HELD_MOST
    assert reader.feed(b"\nb", last=True)[-1] == Span("\nb")
