"""Published tables: the cells of `regressions/papers/paper-NNN.yaml` and how each is obtained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.regress.specs.checks import SpecFile
from rnnreranker.regress.specs.entries import Entry, Faults
from rnnreranker.regress.specs.methods import Protocol


class TableColumns(Entry):
    """Columns of a table that share a data set; with `queries`, a column for each query."""

    dataset: str
    latency: bool = False  # times of the authors' machine: shown, never compared
    measures: Annotated[list[str], Field(min_length=1)]
    decimals: int  # printed digits after the point
    query_set: str = ""  # of a spec whose conditions obtain the values; "" where none does
    protocol: Protocol = "trec"
    queries: list[Any] = Field([])
    tuned: list[Literal["training", "reranking"]] = Field([])  # steps of a system that were chosen on this set

    @field_validator("measures")
    @classmethod
    def _known(cls, measures: list[str], info: ValidationInfo) -> list[str]:
        if not info.data.get("latency"):
            parse_measures([measure.split(" ")[0] for measure in measures])
        return measures


def _twin(twin: Any) -> Any:
    good = isinstance(twin, str) or (isinstance(twin, dict) and set(twin) == {"study", "arm"})
    refuse((not good, f"twin: {twin!r}; expected a condition, or {{study: ID, arm: NAME}}"))
    return twin


class Row(Entry):
    """A row: exactly one of `condition`, `planned`, `external` says how it is obtained."""

    row: str
    values: list[list[int | float | str | None] | None]  # for each entry of `columns`, null where the paper has none
    condition: str = ""  # the id of a condition of every column's query set
    planned: str = ""  # what the toolkit lacks for it
    external: str = ""  # whose system it is
    note: str = ""
    remarks: dict[str, Any] = Field({})  # on one cell: under its query (quoted) or measure
    unstated: bool = False  # how the row's values count grades: its columns' protocol is not theirs
    twin: Annotated[Any, AfterValidator(_twin)] = (
        ""  # the same pipeline on every set of `twins`: a condition, or {study: ID, arm: NAME}
    )

    @property
    def twin_name(self) -> str:
        """The condition or study of its twin, or ""."""
        return str(self.twin["study"] if isinstance(self.twin, dict) else self.twin)


class Table(Entry):
    """A table of a paper."""

    table: str
    caption: str
    columns: Annotated[list[TableColumns], Field(min_length=1)]
    rows: Annotated[list[Row], Field(min_length=1)]
    note: str = ""
    twins: list[str] = Field([])  # query sets that run here, with another model: see `twins`
    twins_note: str = ""


class Paper(Entry):
    """A paper's tables."""

    in_another = False
    schema_: Literal[3] = Field(3, alias="schema")
    name: str  # paper-000
    title: str
    tables: Annotated[list[Table], Field(min_length=1)]
    about: str = ""
    citation: str = ""  # authors, title, venue and year
    lines: dict[tuple[str, str], int] = Field({})  # table and row: line of the file

    @property
    def number(self) -> str:
        """The number of the paper in published.json."""
        return self.name.removeprefix("paper-")

    def faults(self) -> Faults:
        seen: set[tuple[str, str]] = set()
        for at, number, table, row in self.rows():
            keys = ("tables", at, "rows", number)
            if (table.table, row.row) in seen:
                yield keys, f"row {row.row} of table {table.table} stands here a second time"
            seen.add((table.table, row.row))
            given = [key for key in ("condition", "planned", "external") if getattr(row, key)]
            if len(given) != 1 and given != ["condition", "planned"]:
                yield keys, f"row {row.row}: give one of condition, planned, external; got {given or 'none'}"
            if len(row.values) != len(table.columns):
                said = f"row {row.row}: {len(row.values)} lists, {len(table.columns)} entries of columns"
                yield (*keys, "values"), said
                continue
            for column, (cells, part) in enumerate(zip(row.values, table.columns, strict=True)):
                wanted = len(part.queries) or len(part.measures)
                texts = not part.latency and any(isinstance(cell, str) for cell in cells or ())
                if cells is not None and (texts or len(cells) != wanted):
                    yield (*keys, "values", column), f"row {row.row}, {part.dataset}: expected {wanted} numbers"

    def rows(self) -> Iterator[tuple[int, int, Table, Row]]:
        """The position of each row's table, of the row in it, the table and the row."""
        for at, table in enumerate(self.tables):
            yield from ((at, number, table, row) for number, row in enumerate(table.rows))


def paper_names(folder: Path) -> list[str]:
    """The sorted names of all papers in a folder of specs."""
    return sorted(path.stem for path in (folder / "papers").glob("paper-*.yaml"))


def read_paper(name: str, folder: Path) -> Paper:
    """The paper of a name.

    Raises:
        InputError: an unknown name, or all mistakes of its file, each with file:line.
    """
    path = folder / "papers" / f"{name}.yaml"
    if not path.is_file():
        raise InputError(f"{name}: no such paper in {folder / 'papers'}; {nearest(name, paper_names(folder))}")
    document = SpecFile(path)
    paper = document.read(Paper)
    lines = {
        (table.table, row.row): document.where(("tables", at, "rows", number))[1]
        for at, number, table, row in paper.rows()
    }
    return paper.model_copy(update={"lines": lines})


def cells_of(paper: Paper) -> list[dict[str, Any]]:
    """Every published cell of a paper, in the order of its tables, rows and columns.

    `dataset` and `measure` are as printed, `group` is the data set without its query, `metric` the measure for
    ir-measures; `protocol` is "" for times and if the paper does not state it.
    """
    every_cell = []
    for table in paper.tables:
        for row in table.rows:
            for columns, values in zip(table.columns, row.values, strict=True):
                heads = [(query, columns.measures[0]) for query in map(str, columns.queries)]
                heads = heads or [("", measure) for measure in columns.measures]
                for (query, measure), value in zip(heads, values or [None] * len(heads), strict=True):
                    if value is None:
                        continue
                    dataset = f"{columns.dataset} query {query}" if query else columns.dataset
                    remarks = (row.remarks.get(name) for name in (query, f"{dataset} {measure}", measure) if name)
                    every_cell.append(
                        {
                            "paper": paper.number,
                            "table": table.table,
                            "caption": table.caption,
                            "row": row.row,
                            "dataset": dataset,
                            "group": columns.dataset,
                            "query": query,
                            "measure": measure,
                            "metric": measure.split(" ")[0],
                            "published": value,
                            "decimals": columns.decimals,
                            "query_set": columns.query_set,
                            "condition": row.condition,
                            "counted": columns.protocol,
                            "protocol": "" if columns.latency or row.unstated else columns.protocol,
                            "factor": 100 if re.search(r"\bx100\b", measure) else 1,  # percentages are printed
                            "obtained": bool(row.condition and not columns.latency),  # by a condition of a spec
                            "latency": columns.latency,
                            "steps": columns.tuned,
                            "remark": str(next(filter(None, remarks), "")),
                            "planned": row.planned,
                            "external": row.external,
                            "note": row.note,
                            "line": paper.lines[table.table, row.row],
                        }
                    )
    return every_cell
