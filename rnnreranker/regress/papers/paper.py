"""Published tables: what `regressions/papers/paper-NNN.yaml` says of every cell and how it is obtained."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.regress.specs.reading import KeyPath, SpecDocument

SCHEMA = 3
STEPS = ("training", "reranking")  # of a system, whose parameters a paper chose


@dataclass(frozen=True)
class TableColumns:
    """Columns of a table that share a data set; with `queries`, a column for each of these queries of it."""

    dataset: str
    measures: list[Any]
    decimals: int  # printed digits after the point
    query_set: str = ""  # of a spec whose conditions obtain the values; "" where none does
    protocol: str = "trec"
    queries: list[Any] = field(default_factory=list)
    tuned: list[Any] = field(default_factory=list)  # the steps of STEPS that the paper chose on this set or part of it
    latency: bool = False  # times of the authors' machine: shown, never compared


@dataclass(frozen=True)
class Row:
    """A row: exactly one of `condition`, `planned`, `external` says how it is obtained."""

    row: str
    values: list[Any]  # a list for each entry of `columns`, null where the paper has none
    condition: str = ""  # the id of a condition of every column's query set
    planned: str = ""  # what the toolkit lacks for it
    external: str = ""  # whose system it is
    note: str = ""
    remarks: dict[str, Any] = field(default_factory=dict)  # on one cell: under its query (quoted) or measure
    unstated: bool = False  # how the row's values count grades: its columns' protocol is not theirs
    twin: Any = ""  # the same pipeline on every set of `twins`: a condition, or {study: ID, arm: NAME}
    line: int = 0  # of the file


@dataclass(frozen=True)
class Table:
    """A table of a paper."""

    table: str
    caption: str
    columns: tuple[TableColumns, ...]
    rows: tuple[Row, ...]
    note: str = ""
    twins: list[Any] = field(default_factory=list)  # query sets that run here, with another model: see `twins`
    twins_note: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper's tables."""

    schema: int
    name: str  # paper-000
    title: str
    tables: tuple[Table, ...]
    about: str = ""
    citation: str = ""  # authors, title, venue and year

    @property
    def id(self) -> str:
        """The number that published.json knows the paper by."""
        return self.name.removeprefix("paper-")


@dataclass(frozen=True)
class Published:
    """A published cell with what obtains it."""

    paper: str
    table: str
    row: str
    dataset: str
    measure: str  # as printed, such as "nDCG@10 x100"
    value: float | str  # a text only for a time, such as "77 + 110"
    columns: TableColumns
    how: Row
    caption: str
    query: str = ""  # of a per-query cell

    @property
    def metric(self) -> str:
        """The measure's name for ir-measures: without the percent factor and remarks."""
        return self.measure.split(" ")[0]

    @property
    def protocol(self) -> str:
        """How judgements count; empty for times, and where the paper does not say it."""
        return "" if self.columns.latency or self.how.unstated else self.columns.protocol

    @property
    def factor(self) -> int:
        """100 where percentages are printed, else 1."""
        return 100 if re.search(r"\bx100\b", self.measure) else 1

    @property
    def half_unit(self) -> float:
        """Half a unit of the printed last digit."""
        return 0.5 * 10.0**-self.columns.decimals


def paper_names(folder: Path) -> list[str]:
    """The names of all papers under a folder of specs, in order."""
    return sorted(path.stem for path in (folder / "papers").glob("paper-*.yaml"))


def read_paper(name: str, folder: Path) -> Paper:
    """The paper of a name.

    Raises:
        InputError: no such paper, or everything that is wrong with its file, each with file:line.
    """
    path = folder / "papers" / f"{name}.yaml"
    if not path.is_file():
        raise InputError(f"{name}: no such paper in {folder / 'papers'}; {nearest(name, paper_names(folder))}")
    document = SpecDocument(path)
    values = document.fields(Paper, document.content, ()) or {}
    if document.content.get("schema") != SCHEMA:
        document.problem(("schema",), f"schema {document.content.get('schema')!r}; papers are read in schema {SCHEMA}")
    tables = [
        _table(document, entry, ("tables", number))
        for number, entry in enumerate(document.sequence(document.content, "tables"))
    ]
    names = [table.table if table else None for table in tables]
    for number, table in enumerate(tables):
        if table is not None and table.table in names[:number]:
            document.problem(("tables", number, "table"), f"table {table.table} stands here a second time")
    document.finish()
    return Paper(**{**values, "tables": tuple(table for table in tables if table is not None)})


def _table(document: SpecDocument, entry: Any, path: KeyPath) -> Table | None:
    values = document.fields(Table, entry, path)
    if values is None:
        return None
    columns = [
        _columns(document, part, (*path, "columns", number))
        for number, part in enumerate(document.sequence(entry, "columns", path))
    ]
    rows = []
    seen: set[str] = set()
    for number, part in enumerate(document.sequence(entry, "rows", path)):
        keys = (*path, "rows", number)
        row = _row(document, part, keys, columns)
        if row is not None:
            if row.row in seen:
                document.problem(keys, f"row {row.row} stands here a second time")
            seen.add(row.row)
            rows.append(row)
    return Table(**{**values, "columns": tuple(c for c in columns if c is not None), "rows": tuple(rows)})


def _columns(document: SpecDocument, entry: Any, path: KeyPath) -> TableColumns | None:
    values = document.fields(TableColumns, entry, path)
    if values is None:
        return None
    columns = TableColumns(**values)
    if columns.protocol not in PROTOCOLS:
        document.problem((*path, "protocol"), f"protocol {columns.protocol}; {nearest(columns.protocol, PROTOCOLS)}")
    for step in columns.tuned:
        if step not in STEPS:
            document.problem((*path, "tuned"), f"tuned: {step}; {nearest(str(step), STEPS)}")
    if not columns.latency:
        names = [str(measure).split(" ")[0] for measure in columns.measures]
        document.note((*path, "measures"), parse_measures, names)
    return columns


def _row(document: SpecDocument, entry: Any, path: KeyPath, columns: list[TableColumns | None]) -> Row | None:
    values = document.fields(Row, entry, path, skip=("line",))
    if values is None:
        return None
    row = Row(**values, line=document.line(path))
    given = [key for key in ("condition", "planned", "external") if getattr(row, key)]
    if not given or (len(given) > 1 and given != ["condition", "planned"]):
        document.problem(path, f"row {row.row}: give one of condition, planned, external; got {given or 'none'}")
    if not isinstance(row.twin, str) and not (isinstance(row.twin, dict) and set(row.twin) == {"study", "arm"}):
        document.problem((*path, "twin"), f"twin: {row.twin!r}; expected a condition, or {{study: ID, arm: NAME}}")
    if len(row.values) != len(columns):
        document.problem(
            (*path, "values"), f"row {row.row}: {len(row.values)} lists, {len(columns)} entries of columns"
        )
        return None
    for number, (cells, part) in enumerate(zip(row.values, columns, strict=True)):
        if part is None or cells is None:
            continue
        wanted = len(part.queries) or len(part.measures)
        kinds: Any = int | float | str if part.latency else int | float
        numbers = isinstance(cells, list) and all(cell is None or isinstance(cell, kinds) for cell in cells)
        if not numbers or len(cells) != wanted:
            document.problem((*path, "values", number), f"row {row.row}, {part.dataset}: expected {wanted} numbers")
            return None
    return row


def published(paper: Paper) -> list[Published]:
    """Every published cell of a paper, in the order of its tables, rows and columns."""
    every_cell = []
    for table in paper.tables:
        for row in table.rows:
            for columns, cells in zip(table.columns, row.values, strict=True):
                if cells is None:
                    continue
                heads = (
                    [(f"{columns.dataset} query {query}", columns.measures[0], str(query)) for query in columns.queries]
                    if columns.queries
                    else [(columns.dataset, measure, "") for measure in columns.measures]
                )
                for (dataset, measure, query), value in zip(heads, cells, strict=True):
                    if value is not None:
                        names = (paper.id, table.table, row.row, dataset, str(measure), value)
                        every_cell.append(Published(*names, columns, row, table.caption, query))
    return every_cell


def remark(cell: Published) -> str:
    """What the paper's file says of a cell: under its query, else its data set and measure, else its measure."""
    for name in (cell.query, f"{cell.dataset} {cell.measure}", cell.measure):
        if name and name in cell.how.remarks:
            return str(cell.how.remarks[name])
    return ""
