"""Samples as text, in Prometheus' format 0.0.4.

Law: families in the order of `families`, rows in the order of their labels, so that two looks at the same spool give
the same text. Any member may choose a label's value: it cannot end a line or a quotation.
"""

from __future__ import annotations

from collections.abc import Iterator

from spoold.faces.metrics import families
from spoold.faces.metrics.families import BUCKETS, Family, Histogram, Samples

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ORDER = {one: at for at, one in enumerate(vars(families).values()) if isinstance(one, Family)}
# Longer values are cut: a label is for telling series apart.
VALUE_MOST = 200


def text_of(samples: Samples) -> str:
    """Return the page."""
    return "".join(
        line + "\n" for family in sorted(samples, key=_ORDER.__getitem__) for line in _lines(family, samples)
    )


def _lines(family: Family, samples: Samples) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for values, value in sorted(samples[family].items()):
        labels = list(zip(family.labels, values, strict=True))
        if isinstance(value, Histogram):
            edges = [*zip(map(_figure, BUCKETS), value.counts, strict=True), ("+Inf", value.number)]
            for edge, count in edges:
                yield _line(f"{family.name}_bucket", [*labels, ("le", edge)], count)
            yield _line(f"{family.name}_sum", labels, value.total)
            yield _line(f"{family.name}_count", labels, value.number)
        else:
            yield _line(family.name, labels, value)


def _line(name: str, labels: list[tuple[str, str]], value: float) -> str:
    told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{told}}} {_figure(value)}" if told else f"{name} {_figure(value)}"


def _escaped(text: str) -> str:
    """Return a label's value: without control characters, which no reader of a chart could see."""
    seen = "".join(char if char.isprintable() else " " for char in text[:VALUE_MOST])
    return seen.replace("\\", r"\\").replace('"', r"\"")


def _figure(value: float) -> str:
    """Return a number, exact: a whole one without a fraction."""
    whole = int(value)
    return str(whole) if whole == value and abs(whole) < 1 << 53 else repr(float(value))
