"""Twins of a paper's rows: the pipeline with another model on other collections, and whether their order agrees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import nearest
from rnnreranker.base.record import Record
from rnnreranker.lab.study.request import BASE, StudyRequest, forms_of
from rnnreranker.regress.papers.paper import Paper, Row, Table, cells_of
from rnnreranker.regress.specs.entries import Condition, QuerySet
from rnnreranker.regress.specs.methods import models_in, parts_read
from rnnreranker.regress.specs.spec import Spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

TITLES = {
    "minilm": "MiniLM",
    "minilm-tokens": "MiniLM's token vectors",
    "splade-tiny": "a small SPLADE",
}  # known models
EQUAL = 1e-12  # means of the same numbers, added in another order
SAMPLES = 2000
Sets = Mapping[str, tuple[Spec, QuerySet]]


@dataclass(frozen=True)
class Twin:
    """The scores of a row's twin on a query set, and their source."""

    name: str  # a condition, or an arm of a study
    values: Mapping[str, float]
    by_topic: Mapping[str, Mapping[str, float]]  # measure → topic → value, where it is on record
    date: str
    commit: str


@dataclass(frozen=True)
class OrderAgreement:
    """How the twins of a table's rows order them.

    Attributes:
        same: pairs of rows in the printed order; pairs: that the paper orders.
        tau: Kendall's tau-b, or None if one side orders nothing.
        low, high: 95% interval of `tau`, or None.
    """

    same: int
    pairs: int
    tau: float | None = None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        text = f"{self.same} of {self.pairs} {'pair' if self.pairs == 1 else 'pairs'}" if self.pairs else ""
        text += "" if self.tau is None else f", τ {_signed(self.tau)}"
        return text if self.low is None or self.high is None else f"{text} [{_signed(self.low)}, {_signed(self.high)}]"


@dataclass(frozen=True)
class TwinSet:
    """A query set beside a table of a paper, with the twins of its rows."""

    id: str
    spec: str
    title: str
    models: list[str]  # in the place of the paper's, each as `TITLES` has it
    measures: list[str]  # those that the table prints too; once there are records, those that one has
    twins: dict[str, Twin]  # row → its twin
    agreements: dict[str, OrderAgreement]  # by measure

    def text(self, row: str, measure: str) -> str:
        """The value of a row's twin to four digits, or ""."""
        value = self.twins[row].values.get(measure) if row in self.twins else None
        return "" if value is None else f"{value:.4f}".removeprefix("0")


def twin_sets(paper: Paper, table: Table, sets: Sets, records: Sequence[Record]) -> list[TwinSet]:
    """The twins of a table, from records, newest last."""
    import pandas

    cells = pandas.DataFrame([one for one in cells_of(paper) if one["table"] == table.table and not one["latency"]])
    twins_of_table = []
    for name in table.twins:
        spec, query_set = sets[name]
        measures = [one for one in cells["metric"].unique() if one in spec.measures_of(query_set)]
        twins = {row.row: twin for row in table.rows if (twin := _twin(row, spec, query_set, records)) is not None}
        measures = [one for one in measures if any(one in twin.values for twin in twins.values())] or measures
        agreements = {}
        for measure in measures:
            of_measure = cells[cells["metric"] == measure]
            printed = of_measure.pivot_table(index="row", columns="dataset", values="published", aggfunc="last")
            mine = {row: twin for row, twin in twins.items() if measure in twin.values}
            topics = pandas.DataFrame({row: twin.by_topic.get(measure, {}) for row, twin in mine.items()}, dtype=float)
            agreements[measure] = agreement(
                printed.reindex(list(mine)).T, [twin.values[measure] for twin in mine.values()], topics.sort_index().T
            )
        names = list(dict.fromkeys(_models(table, spec))) or [spec.dense_encoder]
        models = [TITLES.get(name, name) for name in names if name]
        about = (query_set.title or spec.title).partition(":")[0]
        twins_of_table.append(TwinSet(name, spec.name, about, models, measures, twins, agreements))
    return twins_of_table


def check_twins(paper: Paper, sets: Sets) -> Iterator[tuple[int, str]]:
    """The line and message of each unknown query set or twin."""
    for table in paper.tables:
        for name in table.twins:
            if name not in sets:
                yield 0, f"table {table.table}: twins: no query set {name}; {nearest(str(name), sets)}"
        specs = [sets[name][0] for name in table.twins if name in sets]
        studies = {work.id: [*arms_of(work.options)] for spec in specs for work in spec.studies}
        conditions = {condition.id for spec in specs for condition in spec.conditions}
        for row in table.rows if specs else ():
            line, wanted = paper.lines[table.table, row.row], row.twin_name
            known = studies if isinstance(row.twin, dict) else conditions
            if wanted and wanted not in known:
                said = f"{wanted}: in none of {', '.join(table.twins)}; {nearest(wanted, known)}"
                yield line, f"row {row.row}: twin: {said}"
            if isinstance(row.twin, dict):
                arms = studies.get(wanted) or [arm for several in studies.values() for arm in several]
                if (arm := row.twin["arm"]) not in arms:
                    yield line, f"row {row.row}: twin: arm {arm}: no study has it; {nearest(arm, arms)}"


def arms_of(options: Mapping[str, Any]) -> Iterator[str]:
    """The names of the arms of a study, and of their families."""
    yield BASE
    for arm in forms_of(options.get("arms", StudyRequest.arms)):
        yield from [arm.name, *filter(None, [str(arm.params.get("family", ""))])]


def _models(table: Table, spec: Spec) -> Iterator[str]:

    def names(model: Any) -> Iterator[str]:
        if isinstance(model, str):
            yield from filter(None, [model])
        for one in models_in(model):
            yield from names(spec.model(one).start)

    def visit(condition: Condition) -> Iterator[str]:
        for name in condition.of:
            yield from visit(spec.condition(name))
        for _, kind, use in condition.uses():
            parts = spec.index(condition.index).parts
            for part in parts_read(kind, use) & set(parts):
                yield from names((parts[part] or {}).get("encoder"))
            yield from names(use)

    known = {condition.id: condition for condition in spec.conditions}
    for row in table.rows:
        if isinstance(row.twin, str) and row.twin in known:
            yield from visit(known[row.twin])


def _twin(row: Row, spec: Spec, query_set: QuerySet, records: Sequence[Record]) -> Twin | None:
    """The newest recorded twin of a row, or None."""
    of_study, protocol = isinstance(row.twin, dict), query_set.protocols[0]
    kind, part = ("study", row.twin["arm"]) if of_study else ("run", protocol)
    for record in reversed(records):
        if (record.kind, record.spec, record.name) != (kind, spec.name, row.twin_name):
            continue
        outcome, values = record.outcome, {}
        if of_study:
            rows = [entry for entry in outcome["rows"] if (entry["arm"], entry["group"]) == (part, "all")]
            values = {entry["measure"]: entry["value"] for entry in rows if entry["value"] is not None}
        elif outcome.get("query_set") == query_set.id:
            values = outcome["values"].get(protocol, {})
        if values:
            name = f"{part} (study {record.name})" if of_study else record.name
            topics = outcome.get("queries", {}).get(part, {})
            return Twin(name, values, topics, record.date[:10], record.commit[:10])
    return None


def agreement(columns: ArrayLike, twins: Sequence[float], by_topic: ArrayLike = ()) -> OrderAgreement:
    """How the twins of a table's rows agree with the order that its columns print.

    Two rows are a pair in every column with values of both; tau-b sums over all columns. The interval is the percentile
    bootstrap over the topics of the twins (95%, 2,000 samples, a fixed seed).

    Args:
        columns: (columns, rows) values of the paper, nan where it prints none.
        twins: a value for each row.
        by_topic: (rows, topics) values of the twins; no interval where one is nan.
    """
    import numpy as np

    values = np.asarray(twins, dtype=np.float64)
    ones, others = np.triu_indices(len(values), 1)
    table = np.asarray(columns, dtype=np.float64).reshape(-1, max(1, len(values)))
    differences = table[:, ones] - table[:, others]
    column, pair = np.nonzero(np.isfinite(differences + values[ones] - values[others]))
    printed, ones, others = _signs(differences[column, pair]), ones[pair], others[pair]
    if not len(pair):
        return OrderAgreement(0, 0)
    here = values[ones] - values[others]
    same, pairs, tau = int((printed * _signs(here) == 1).sum()), int((printed != 0).sum()), float(_tau(printed, here))
    of_table = OrderAgreement(same, pairs, tau if np.isfinite(tau) else None)
    known = np.asarray(by_topic, dtype=np.float64)
    if not known.size or not np.isfinite(known[[*ones, *others]]).all():
        return of_table
    topics = known.shape[1]
    counts = np.random.default_rng(0).multinomial(topics, np.full(topics, 1 / topics), size=SAMPLES)
    means = counts @ np.nan_to_num(known).T / topics  # (samples, rows)
    sampled = _tau(printed, means[:, ones] - means[:, others])
    if not np.isfinite(sampled).any():
        return of_table
    low, high = np.nanpercentile(sampled, [2.5, 97.5])
    return OrderAgreement(same, pairs, of_table.tau, float(low), float(high))


def _tau(printed: np.ndarray, differences: np.ndarray) -> np.ndarray:
    """Tau-b of pairs (last axis): signs in print, differences of the twins; nan if one side orders nothing."""
    import numpy as np

    twins = _signs(differences)
    size = np.sqrt((printed != 0).sum() * (twins != 0).sum(-1).astype(np.float64))
    with np.errstate(invalid="ignore"):
        return (printed * twins).sum(-1) / size


def _signs(differences: np.ndarray) -> np.ndarray:
    """1, 0 or -1 of each difference."""
    import numpy as np

    return np.where(np.abs(differences) <= EQUAL, 0, np.sign(differences))


def _signed(value: float) -> str:
    text = f"{abs(value):.2f}"
    return ("−" if value < -0.005 else "") + (text[1:] if text.startswith("0.") else text)
