"""Pages of prose: docs/source/NAME.md.j2 with every measured figure taken from a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text
from rnnreranker.base.pages import render, write_page
from rnnreranker.base.record import Record, read_records
from rnnreranker.regress.records import Figures, Row

if TYPE_CHECKING:
    from rnnreranker.evaluate.pool.pooling import Agreement

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def write_prose(sources: Path, docs: Path, results: Path) -> list[Path]:
    """Write DOCS/NAME.md of every SOURCES/NAME.md.j2, and the pictures of records that they show; the files written.

    The same sources and records give the same bytes. Pictures are left as they are where matplotlib is not installed.

    Args:
        sources: the folder of sources; without one nothing is written.
        docs: the folder of pages.
        results: the folder of records.

    Raises:
        InputError: a file that holds no records, a source that asks for a record that is not there or says what the
            records contradict.
    """
    import jinja2

    from rnnreranker.regress.pages.pictures import write_pictures

    if not sources.is_dir():
        return []
    figures = Figures([one for path in sorted(results.glob("*.json")) for one in read_records(path)])
    written = []
    for source in sorted(sources.glob("*.md.j2")):
        try:
            text = render(
                sources, source.name, **_names(figures), file=lambda name: read_text(sources.parents[1] / name).strip()
            )
        except (InputError, jinja2.TemplateError) as error:
            raise InputError(f"{source}: {error}") from None
        made = (
            f"<!-- Written by `python -m rnnreranker.regress --docs` from docs/source/{source.name}. Do not edit. -->"
        )
        written.append(docs / source.name.removesuffix(".j2"))
        write_page(written[-1], f"{made}\n{text}")
    return [*written, *write_pictures(figures, docs)]


def _names(figures: Figures) -> dict[str, Any]:
    """What a source can use."""
    from rnnreranker.lab.bench.summaries import at_size, cell, missed, slope
    from rnnreranker.lab.diagnose.learnt_limit import leave_one_out
    from rnnreranker.lab.diagnose.verdict import LIKELY, verdict
    from rnnreranker.regress.pages.diversity import METHODS as DIVERSITY
    from rnnreranker.regress.pages.diversity import StageLine, diversity
    from rnnreranker.regress.pages.first_stages import METHODS, StageTable, stage_table
    from rnnreranker.regress.pages.forecasts import Forecast, cases, forecasts
    from rnnreranker.regress.pages.method_table import method_tables
    from rnnreranker.regress.pages.study_table import (
        KINDS,
        against,
        arms_table,
        differences,
        distances_table,
        picture,
        rises,
        study_table,
    )

    def over(parts: Mapping[str, Row]) -> list[str]:
        """The rows of a benchmark that missed their bounds, under the titles of their parts."""
        return missed({part["title"]: dict(part) for part in parts.values()})

    def first_stages(name: str) -> StageTable:
        """A table of methods over first stages."""
        return stage_table(figures, name)

    def forecasts_on_record() -> list[Forecast]:
        """Diagnoses and what followed."""
        return forecasts(figures)

    def diversity_lines() -> list[StageLine]:
        """What methods do to how alike the first ten are."""
        return diversity(figures)

    own = [figures.record, figures.records, figures.value, figures.gain, fixed, signed, interval, short, words]
    own += [pick, each, less, apart, claim, cell, over, at_size, slope, method_tables, first_stages, diversity_lines]
    own += [forecasts_on_record, cases, leave_one_out, verdict]
    own += [judged_twice, study_table, arms_table, distances_table, against, differences, rises, picture]
    titles = {"study_kinds": KINDS, "stage_methods": METHODS, "diversity_methods": DIVERSITY, "likely_limit": LIKELY}
    return {function.__name__: function for function in own} | titles


def judged_twice() -> Agreement:
    """How far the second judge of the built-in collection agrees with the first, from the judgements themselves."""
    from rnnreranker.evaluate.pool.pooling import SheetRow, agreement

    sheets = []
    for name in ("qrels.txt", "qrels-second.txt"):
        shipped = resources.files("rnnreranker.data").joinpath("pydoc_files", name).read_text(encoding="utf-8")
        lines = [line.split() for line in shipped.splitlines()]
        sheets.append([SheetRow(qid, docid, int(grade), name) for qid, _, docid, grade in lines])
    return agreement(*sheets)


def fixed(value: float, digits: int = 4) -> str:
    """A value with so many decimals."""
    return f"{value:.{digits}f}"


def signed(value: float, digits: int = 4) -> str:
    """A difference, with its sign."""
    return f"{value:+.{digits}f}"


def short(value: float, digits: int = 3, sign: bool = False) -> str:
    """A figure within a sentence, without the 0 before the point.

    >>> short(0.0501), short(-0.25, 2), short(1.5, 1), short(0.5, sign=True)
    ('.050', '-.25', '1.5', '+.500')
    """
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def interval(row: Row, digits: int = 4, prefix: str = "") -> str:
    """A difference with its 95% interval; `prefix` of its keys where a row has several.

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
    """The one row that has these values.

    Raises:
        InputError: none or several have.
    """
    matching = [row for row in rows if all(row.get(key) == value for key, value in where.items())]
    if len(matching) != 1:
        raise InputError(f"{len(matching)} rows with {where}; expected one")
    return matching[0]


def each(records: Sequence[Record], **where: Any) -> list[Row]:
    """Of every record the row that has these values."""
    return [pick(record.outcome["rows"], **where) for record in records]


def less(first: Sequence[Row], second: Sequence[Row], key: str = "value") -> list[float]:
    """The first rows' values less the second rows'."""
    return [one[key] - other[key] for one, other in zip(first, second, strict=True)]


def apart(row: Row) -> bool:
    """Whether the interval of a difference leaves 0 out."""
    return bool(row["low"] > 0 or row["high"] < 0)


def claim(holds: Any, sentence: str) -> str:
    """Nothing; a sentence of a source that the records contradict must be written again.

    Raises:
        InputError: it does not hold.
    """
    if not holds:
        raise InputError(f"the records contradict {sentence!r}; write the sentence again")
    return ""
