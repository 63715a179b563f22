"""Pages of prose: docs/source/NAME.md.j2 with every measured figure from a record."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text
from rnnreranker.base.pages import render, write_page
from rnnreranker.base.record import Record, read_records
from rnnreranker.regress.records import Figures, Row

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def write_prose(sources: Path, docs: Path, results: Path) -> list[Path]:
    """Write DOCS/NAME.md of every SOURCES/NAME.md.j2, and the files of SOURCES/page_data; the files written.

    `page_data` is a package beside the sources: `names(figures)` are functions and tables for sources,
    `write_more(sources, docs, figures, names)` writes further pages and pictures.

    Raises:
        InputError: a source asks for a missing record or contradicts the records.
    """
    if not sources.is_dir():
        return []
    figures = Figures([one for path in sorted(results.glob("*.json")) for one in read_records(path)])
    names = _names(figures) | {"file": lambda name: read_text(sources.parents[1] / name).strip()}
    data = _page_data(sources)
    if data:
        names |= data.names(figures)
    written = []
    for source in sorted(sources.glob("*.md.j2")):
        written.append(docs / source.name.removesuffix(".j2"))
        write_page(written[-1], f"<!-- {made_of(source)} -->\n{fill(sources, source.name, names)}")
    return [*written, *(data.write_more(sources, docs, figures, names) if data else ())]


def made_of(source: Path) -> str:
    """The first line of a page, from its source, a file below docs/source."""
    below = source.parts[source.parts.index("source") :]
    return f"Written by `python -m rnnreranker.regress --docs` from docs/{'/'.join(below)}. Do not edit."


def fill(sources: Path, name: str, names: Mapping[str, Any]) -> str:
    """A source with its values.

    Raises:
        InputError: it asks for a missing value, or contradicts the records.
    """
    import jinja2

    try:
        return render(sources, name, **names)
    except (InputError, jinja2.TemplateError) as error:
        raise InputError(f"{sources / name}: {error}") from None


def _page_data(sources: Path) -> Any:
    """The package `page_data` beside the sources, or None."""
    if not (sources / "page_data").is_dir():
        return None
    if str(sources) not in sys.path:
        sys.path.append(str(sources))
    return import_module("page_data")


def _names(figures: Figures) -> dict[str, Any]:
    """The functions for every source."""
    own = [figures.record, figures.records, figures.value, figures.gain, fixed, signed, interval, short, words]
    return {function.__name__: function for function in [*own, pick, each, less, apart, claim]}


def fixed(value: float, digits: int = 4) -> str:
    """A value with so many decimals."""
    return f"{value:.{digits}f}"


def signed(value: float, digits: int = 4) -> str:
    """A difference with its sign."""
    return f"{value:+.{digits}f}"


def short(value: float, digits: int = 3, sign: bool = False) -> str:
    """A figure within a sentence, without the 0 before the point.

    >>> short(0.0501), short(-0.25, 2), short(1.5, 1), short(0.5, sign=True)
    ('.050', '-.25', '1.5', '+.500')
    """
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def interval(row: Row, digits: int = 4, prefix: str = "") -> str:
    """A difference with its 95% interval; `prefix` of its keys if a row has several.

    >>> interval({"difference": 0.05, "low": -0.01, "high": 0.11}, 2)
    '+0.05 [-0.01, +0.11]'
    """
    low, high = row[f"{prefix}low"], row[f"{prefix}high"]
    middle = row.get("difference", row.get("gain", row.get(prefix.removesuffix("_"))))
    return f"{middle:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def words(count: int) -> str:
    """A small number in words, a larger one in digits."""
    return WORDS[count] if count < len(WORDS) else str(count)


def pick(rows: Sequence[Row], **where: Any) -> Row:
    """The one row with these values.

    Raises:
        InputError: none or several.
    """
    matching = [row for row in rows if all(row.get(key) == value for key, value in where.items())]
    if len(matching) != 1:
        raise InputError(f"{len(matching)} rows with {where}; expected one")
    return matching[0]


def each(records: Sequence[Record], **where: Any) -> list[Row]:
    """The row with these values of every record."""
    return [pick(record.outcome["rows"], **where) for record in records]


def less(first: Sequence[Row], second: Sequence[Row], key: str = "value") -> list[float]:
    """The first rows' values less the second rows'."""
    return [one[key] - other[key] for one, other in zip(first, second, strict=True)]


def apart(row: Row) -> bool:
    """Whether the interval of a difference excludes 0."""
    return bool(row["low"] > 0 or row["high"] < 0)


def claim(holds: Any, sentence: str) -> str:
    """ "" for a sentence that the records support.

    Raises:
        InputError: it does not hold, so the sentence must be written again.
    """
    if not holds:
        raise InputError(f"the records contradict {sentence!r}; write the sentence again")
    return ""
