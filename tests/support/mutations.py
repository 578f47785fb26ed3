"""Files as attackers, old releases and bad luck write them: a sound file, changed in one to three places.

Law: pure; the same seed gives the same bytes. It knows JSON and nothing of spoold, so it can be played against any
release.
"""

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

_DEPTHS = (60, 66, 150, 199, 201, 254, 300, 1000, 1030, 20_000)
_NUMBERS = (
    *("1e308", "1.7e308", "-1e308", "1e300", "1e13", "999999999999", "1000000000001", "1e999", "NaN", "Infinity"),
    *("-Infinity", "-1", "-0.0", "0", "5e-324", "0.1", "253402300800", "1e11", "2147483648", "9007199254740993"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "-1e16"),
    *("-9223372036854775809", "1" + "0" * 30, "9" * 400, "9" * 5000, "1e-400", "01", "+1", "0x10", "1_000"),
)
_TEXTS = (
    *('""', '"x"', '"\\ud800"', '"\\udc80x"', '"\\ud83d\\ude00"', '"\\u0000"', '"a\\u0000b"', '"\\u001b[31m"'),
    *('"1e308"', '"9999-12-31T23:59:59Z"', '"0001-01-01T00:00:00+23:59"', '"2026-01-31"', '"NaN"', '"-1"'),
    *('"' + "9" * 5000 + '"', '"' + "x" * 5000 + '"', '"' + "\\u00e9\u20ac" * 300 + '"', '"' + "[" * 1000 + '"'),
    *('"\\', "'x'", '"\x01"'),
)
_OTHERS = (
    *("null", "true", "false", "[]", "{}", "[[]]", '{"": {}}', '[null, true, 1, "x"]', "undefined", "", ",", "/* */"),
)


def _literal(chance: random.Random) -> str:
    """A value as it stands in a file; often none that JSON has."""
    match chance.randrange(10):
        case 0 | 1:
            depth = chance.choice(_DEPTHS)
            return "[" * depth + "]" * depth if chance.random() < 0.6 else '{"a":' * depth + "1" + "}" * depth
        case 2 | 3 | 4:
            return chance.choice(_NUMBERS)
        case 5 | 6:
            return chance.choice(_TEXTS)
        case 7:
            count = chance.choice((3, 60, 1001, 3000))
            one = chance.choice(("0", "1e308", '"x"', "[]", '{"id":"a"}', "18446744073709551615"))
            return "[" + ",".join([one] * count) + "]"
        case 8:
            count = chance.choice((1, 40, 1001, 3000))
            key = chance.choice(("k", "", "cost_usd", "k" * 3000))
            one = chance.choice(("0", "1e308", "[]", "null"))
            return "{" + ",".join(f'"{key}{number}":{one}' for number in range(count if len(key) < 99 else 3)) + "}"
        case _:
            return chance.choice(_OTHERS)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each member of each object and list, as its holder and its key."""
    todo = [value]
    for holder in todo:
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                todo.append(holder[key])


class _Draft:
    """A value in which some places hold a literal; they are marked by texts that stand nowhere else."""

    def __init__(self, chance: random.Random, value: Any) -> None:
        self.chance, self.top, self.literals = chance, [value], list[str]()

    def change(self) -> None:
        """Change one place."""
        places = list(_places(self.top))
        holder, key = self.chance.choice(places)
        match self.chance.randrange(5):
            case 0 if isinstance(holder, dict):
                names = [name for one, name in places if isinstance(one, dict)]
                holder[self._name(names)] = self._mark()
            case 1 if isinstance(holder[key], dict):
                names = [name for one, name in places if isinstance(one, dict)]
                holder[key][self._name(names)] = self._mark()
            case 2 if isinstance(holder[key], list):
                holder[key].append(self._mark())
            case 3 if isinstance(holder, dict):
                holder[key] = deepcopy(self.chance.choice([one[name] for one, name in places]))  # sound, out of place
            case _:
                holder[key] = self._mark()

    def _name(self, names: list[str]) -> str:
        others = ("", "__class__", "model_fields", "k" * 3000, "a.b", "\u00e9", "cost_usd", "Type")
        return self.chance.choice(names or list(others)) if self.chance.random() < 0.7 else self.chance.choice(others)

    def _mark(self) -> str:
        self.literals.append(_literal(self.chance))
        return f"\u2603{len(self.literals) - 1}\u2603"

    def text(self) -> str:
        """The whole as text."""
        text = json.dumps(self.top[0], ensure_ascii=False, indent=self.chance.choice((None, None, 1)))
        for number, literal in enumerate(self.literals):
            text = text.replace(f'"\u2603{number}\u2603"', literal)
        if self.chance.random() < 0.1 and (at := text.find("{")) >= 0:  # a key twice
            name = self.chance.choice(list(self.top[0])) if isinstance(self.top[0], dict) and self.top[0] else "a"
            text = f"{text[: at + 1]}{json.dumps(name)}: {_literal(self.chance)}, {text[at + 1 :]}"
        return text


def _spoilt(chance: random.Random, data: bytes) -> bytes:
    """The bytes, changed as disks, editors and other systems do."""
    at = chance.randrange(len(data) + 1)
    ways: list[Callable[[], bytes]] = [
        lambda: data[:at],
        lambda: data[at:],
        lambda: data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
        lambda: data[:at] + b"\0" + data[at:],
        lambda: data[:at] + b"\xff" + data[at:],
        lambda: b"\xef\xbb\xbf" + data,
        lambda: b"\xef\xbb\xbf\xef\xbb\xbf" + data,
        lambda: data.replace(b"\n", b"\r\n") + b"\r\n",
        lambda: data.decode(errors="replace").encode("utf-16"),
        lambda: data + data,
        lambda: data + b"\n" + data,
        lambda: b" \n\t" * 500 + data,
        lambda: bytes(chance.randrange(256) for _ in range(chance.randrange(60))),
        lambda: b"\n" * chance.randrange(3),
    ]
    return chance.choice(ways)()


def mutated(seed: int, base: bytes) -> bytes:
    """One mutation of a file. base: a sound one, JSON or any text."""
    chance = random.Random(seed)
    try:
        draft = _Draft(chance, json.loads(base))
    except ValueError:
        lines = base.decode().splitlines() or [""]
        at = chance.randrange(len(lines))
        name, equals, _ = lines[at].partition("=")
        lines[at] = f"{name}= {_literal(chance)}" if equals else _literal(chance)
        data = "\n".join(lines).encode(errors="surrogatepass")
    else:
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            draft.change()
        data = draft.text().encode(errors="surrogatepass")
    return _spoilt(chance, data) if chance.random() < 0.15 else data
