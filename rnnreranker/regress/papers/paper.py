"""Published tables: the cells of `regressions/papers/paper-NNN.yaml` and how each is obtained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from rnnreranker.base.errors import nearest, refuse
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.regress.specs.entries import Entry, Protocol
from rnnreranker.regress.specs.spec import SpecFile


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

    def heads(self) -> list[tuple[str, str]]:
        """Query ("" = the mean) and measure of each column."""
        one = self.measures[0]
        return [(str(query), one) for query in self.queries] or [("", measure) for measure in self.measures]


class StudyArm(Entry):
    """An arm of a study."""

    study: str
    arm: str

    def __str__(self) -> str:
        return f"{self.arm} (study {self.study})"


class Row(Entry):
    """A row: exactly one of `condition`, `planned`, `external` says how it is obtained."""

    row: str
    values: list[list[int | float | str | None] | None]  # for each entry of `columns`, null where the paper has none
    condition: str = ""  # the id of a condition of every column's query set
    planned: str = ""  # what the toolkit lacks for it
    external: str = ""  # whose system it is
    note: str = ""
    remarks: dict[str, str] = Field({})  # on one cell: under its query (quoted) or measure
    unstated: bool = False  # how the row's values count grades: its columns' protocol is not theirs
    twin: StudyArm | str = ""  # the same pipeline on every set of `twins`: a condition, or an arm of a study


class Table(Entry):
    """A table of a paper."""

    table: str
    caption: str
    columns: Annotated[list[TableColumns], Field(min_length=1)]
    rows: Annotated[list[Row], Field(min_length=1)]
    note: str = ""
    twins: list[str] = Field([])  # query sets that run here, with another model: see `twins`
    twins_note: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        names, faults = [row.row for row in self.rows], list[tuple[object, str]]()
        for row in self.rows:
            given = [key for key in ("condition", "planned", "external") if getattr(row, key)]
            lists = f"row {row.row}: {len(row.values)} lists, {len(self.columns)} entries of columns"
            wrong = len(given) != 1 and given != ["condition", "planned"]
            faults += [
                (names.count(row.row) > 1, f"row {row.row} stands here a second time"),
                (wrong, f"row {row.row}: give one of condition, planned, external; got {given or 'none'}"),
                (len(row.values) != len(self.columns), lists),
            ]
            for columns, cells in zip(self.columns, row.values, strict=False):
                wanted = len(columns.heads())
                texts = not columns.latency and any(isinstance(cell, str) for cell in cells or ())
                wrong = cells is not None and (texts or len(cells) != wanted)
                faults.append((wrong, f"row {row.row}, {columns.dataset}: expected {wanted} numbers"))
        refuse(*faults)
        return self


class Paper(Entry):
    """A paper's tables."""

    schema_: Literal[3] = Field(3, alias="schema")
    name: str  # paper-000
    title: str
    tables: Annotated[list[Table], Field(min_length=1)]
    about: str = ""
    citation: str = ""  # authors, title, venue and year

    @property
    def number(self) -> str:
        """The number of the paper in published.json."""
        return self.name.removeprefix("paper-")


def paper_names(folder: Path) -> list[str]:
    """The sorted names of all papers in a folder of specs."""
    return sorted(path.stem for path in (folder / "papers").glob("paper-*.yaml"))


def read_paper(name: str, folder: Path) -> Paper:
    """The paper of a name.

    Raises:
        InputError: an unknown name, or all mistakes of its file, each with file:line.
    """
    known = paper_names(folder)
    refuse((name not in known, f"{name}: no such paper in {folder / 'papers'}; {nearest(name, known)}"))
    document = SpecFile(folder / "papers" / f"{name}.yaml")
    return document.made(Paper)


def cells_of(paper: Paper) -> list[dict[str, Any]]:
    """Every published cell of a paper, in the order of its tables, rows and columns.

    A cell has the keys of its row and columns, and

    - `paper`, `table`, `caption`, `twins` (query sets), and `at`, the keys of its row in the file;
    - `dataset` and `measure` as printed, `group`, the data set without its query, `query` or "";
    - `published`, `metric`, the measure for ir-measures, and `factor`, 100 for percentages;
    - `condition`, "" for times, which nothing is compared with, and `remark`, on this cell alone.
    """
    cells: list[dict[str, Any]] = []
    for at, table in enumerate(paper.tables):
        for number, row in enumerate(table.rows):
            for columns, values in zip(table.columns, row.values, strict=True):
                about = dict(row) | dict(columns) | {"paper": paper.number, "at": ("tables", at, "rows", number)}
                about |= {"table": table.table, "caption": table.caption, "twins": table.twins}
                about["group"] = columns.dataset
                about["condition"] = "" if columns.latency else row.condition
                for (query, measure), value in zip(columns.heads(), values or (), strict=bool(values)):
                    if value is not None:
                        dataset = f"{columns.dataset} query {query}" if query else columns.dataset
                        remarks = map(row.remarks.get, (query, f"{dataset} {measure}", measure))
                        of_cell = {"dataset": dataset, "query": query, "measure": measure, "published": value}
                        of_cell |= {"metric": measure.split(" ")[0], "factor": 100 if " x100" in measure else 1}
                        cells.append(about | of_cell | {"remark": next(filter(None, remarks), "")})
    return cells
