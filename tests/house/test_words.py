"""The prose of the code uses plain words: what a person reads there is checked as the documents are.

Law: comments, docstrings and messages count; identifiers, keys and fields of formats do not.
"""

import io
import re
import tokenize
from collections.abc import Iterator

from tests.house.sources import modules

# Each with the words that say it better. `mend` is the name of a field, so only its other forms are looked for.
IDIOMS = {
    "whoever": "anyone who; the node that",
    "mends": "fixes, repairs",
    "mending": "fixing, repairing",
    "he": "it; the user",
    "his": "its; the user's",
    "him": "it; the user",
    "nor": "and not; neither … nor only as a pair",
}
PAIR = re.compile(r"\bneither\b[^\n]*\bnor\b", re.IGNORECASE)
IDIOM = re.compile(rf"\b({'|'.join(IDIOMS)})\b", re.IGNORECASE)


def prose(source: str) -> Iterator[tuple[int, str]]:
    """The comments and the strings with more than one word, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string.strip()):
            yield token.start[0], token.string


def idioms(source: str) -> list[str]:
    """The words that are to be said otherwise, with their lines."""
    return [
        f"{line}: {found[0]}: say {IDIOMS[found[0].lower()]}"
        for line, text in prose(source)
        for found in IDIOM.finditer(PAIR.sub("", text))
    ]


def test_no_comment_docstring_or_message_has_an_idiom() -> None:
    found = [f"{path}:{hit}" for path, text, _ in modules() for hit in idioms(text)]
    assert not found, "\n".join(found)


def test_the_check_sees() -> None:
    assert idioms("x = 1  # whoever comes\n") == ["1: whoever: say anyone who; the node that"]
    assert idioms('"""It asks him."""\n') == ["1: him: say it; the user"]
    assert not idioms('nor = "him"\n"""It is neither here nor there."""\n')
