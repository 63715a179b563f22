"""Twins of a paper's rows, made here by another model on other collections, and whether their order agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import nearest
from rnnreranker.base.record import Record
from rnnreranker.lab.study.request import BASE, StudyRequest, forms_of
from rnnreranker.regress.papers.paper import Paper, Row, Table, cells_of
from rnnreranker.regress.specs.entries import Condition, QuerySet
from rnnreranker.regress.specs.methods import KEY, models_in, parts_read
from rnnreranker.regress.specs.spec import Spec

if TYPE_CHECKING:
    import numpy as np

TITLES = {
    "minilm": "MiniLM",
    "minilm-tokens": "MiniLM's token vectors",
    "splade-tiny": "a small SPLADE",
}  # known models


def listed(names: Sequence[str]) -> str:
    """Names in a phrase.

    >>> listed(["one"]), listed(["one", "two", "three"])
    ('one', 'one, two and three')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


@dataclass(frozen=True)
class Twin:
    """What a row's twin scores on a query set: measure → value, and where it comes from."""

    name: str  # a condition, or an arm of a study
    values: dict[str, float]
    by_topic: dict[str, dict[str, float]]  # measure → topic → value, where it is on record
    command: str  # that measures it
    date: str
    commit: str


@dataclass(frozen=True)
class TwinSet:
    """A query set that runs here, beside a table of a paper: the twins of its rows, and whether their order agrees."""

    id: str
    spec: str
    title: str
    models: list[str]  # in the place of the paper's, each as `TITLES` has it
    measures: list[str]  # those that the table prints too; once there are records, those that one has
    twins: dict[str, Twin]  # row → its twin
    agreements: dict[str, OrderAgreement] = field(default_factory=dict)  # measure → pairs of rows

    @property
    def model(self) -> str:
        """Its models in a phrase."""
        return listed(self.models)

    def text(self, row: str, measure: str) -> str:
        """The value of a row's twin to four digits, empty where there is none."""
        value = self.twins[row].values.get(measure) if row in self.twins and measure in self.measures else None
        return "" if value is None else f"{value:.4f}".removeprefix("0")


def twin_sets(
    paper: Paper, table: Table, sets: Mapping[str, tuple[Spec, QuerySet]], records: Sequence[Record]
) -> list[TwinSet]:
    """The twins of a table, a query set each, with what is on record for them, newest last."""
    cells = [cell for cell in cells_of(paper) if cell["table"] == table.table and not cell["latency"]]
    printed = list(dict.fromkeys(cell["metric"] for cell in cells))
    twins_of_table = []
    for name in table.twins:
        spec, query_set = sets[name]
        measures = [measure for measure in printed if measure in spec.measures_of(query_set)]
        twins = {row.row: twin for row in table.rows if (twin := _twin(row, spec, query_set, records)) is not None}
        measures = [name for name in measures if any(name in twin.values for twin in twins.values())] or measures
        agreements = {}
        for measure in measures:
            columns: dict[str, dict[str, float]] = {}
            for cell in cells:
                if cell["metric"] == measure:
                    columns.setdefault(cell["dataset"], {})[cell["row"]] = cell["published"]
            mine = {row: twin for row, twin in twins.items() if measure in twin.values}
            agreements[measure] = agreement(
                [[column.get(row) for row in mine] for column in columns.values()],
                [twin.values[measure] for twin in mine.values()],
                _by_topic([twin.by_topic.get(measure, {}) for twin in mine.values()]),
            )
        models = [TITLES.get(model, model) for model in _models(table, spec)]
        about = (query_set.title or spec.title).partition(":")[0]
        twins_of_table.append(TwinSet(name, spec.name, about, models, measures, twins, agreements))
    return twins_of_table


def check_twins(paper: Paper, sets: Mapping[str, tuple[Spec, QuerySet]], folder: Path) -> list[str]:
    """What is wrong with the twins of a paper, each with file:line: sets that do not exist, twins that no set has."""
    path = folder / "papers" / f"{paper.name}.yaml"
    faults = []
    for table in paper.tables:
        for name in table.twins:
            if name not in sets:
                faults.append(f"{path}: table {table.table}: twins: no query set {name}; {nearest(str(name), sets)}")
        known = [sets[name] for name in table.twins if name in sets]
        for row in table.rows:
            where = f"{path}:{paper.lines[table.table, row.row]}: row {row.row}: twin"
            if row.twin and not known:
                faults.append(f"{where}: table {table.table} names no query set in `twins`")
                continue
            wanted, names = _wanted(row), {entry for spec, _ in known for entry in _names(spec, row)}
            if wanted and wanted not in names:
                faults.append(f"{where}: {wanted}: in none of {', '.join(table.twins)}; {nearest(wanted, names)}")
            if isinstance(row.twin, dict):
                arms = [arm for spec, _ in known for arm in _arms_of(spec, wanted)]
                arms = arms or [arm for spec, _ in known for arm in _arms_of(spec, "")]
                if (arm := row.twin["arm"]) not in arms:
                    faults.append(f"{where}: arm {arm}: no study has it; {nearest(arm, arms)}")
    return faults


def _arms_of(spec: Spec, study: str) -> list[str]:
    """The names of the arms of a study of a spec, and of what validation chooses of them; "" = of all studies."""
    works = [work for work in spec.works if work.kind == "study" and study in ("", work.id)]
    arms = [arm for work in works for arm in forms_of(work.options.get("arms", StudyRequest.arms))]
    families = dict.fromkeys(str(arm.params["family"]) for arm in arms if "family" in arm.params)
    return [*([BASE] if works else []), *(arm.name for arm in arms), *families]


def _wanted(row: Row) -> str:
    return row.twin["study"] if isinstance(row.twin, dict) else row.twin


def _names(spec: Spec, row: Row) -> list[str]:
    """What a twin may name in a spec: its studies, or its conditions."""
    if isinstance(row.twin, dict):
        return [work.id for work in spec.works if work.kind == "study"]
    return [condition.id for condition in spec.conditions]


def _models(table: Table, spec: Spec) -> list[str]:
    """The models of a table's twins: those that encode what they search, and those that trained ones begin with."""
    models: list[str] = []
    known = {condition.id for condition in spec.conditions}

    def add(model: Any) -> None:
        for name in [model] if isinstance(model, str) else [spec.model(one).start for one in models_in(model)]:
            if isinstance(name, dict):
                add(name)
            elif name and name not in models:
                models.append(name)

    def visit(condition: Condition) -> None:
        for name in condition.of:
            visit(spec.condition(name))
        for _, kind, use in condition.uses():
            parts = spec.index(condition.index).parts
            for part in parts_read(kind, use) & set(parts):
                add((parts[part] or {}).get("encoder"))
            for name in models_in(use):
                add({KEY: name})

    for row in table.rows:
        if isinstance(row.twin, str) and row.twin in known:
            visit(spec.condition(row.twin))
    return models or [name for name in (spec.dense_encoder,) if name]


def _twin(row: Row, spec: Spec, query_set: QuerySet, records: Sequence[Record]) -> Twin | None:
    """The newest on record of a row's twin, None without one."""
    of_study, wanted, protocol = isinstance(row.twin, dict), _wanted(row), query_set.protocols[0]
    kind, part = ("study", row.twin["arm"]) if of_study else ("run", protocol)
    mine = [entry for entry in records if (entry.kind, entry.spec, entry.name) == (kind, spec.name, wanted)]
    for record in reversed(mine):
        outcome, values_of = record.outcome, {}
        if of_study:
            rows = [entry for entry in outcome["rows"] if (entry["arm"], entry["group"]) == (part, "all")]
            values_of = {entry["measure"]: entry["value"] for entry in rows}
        elif outcome.get("query_set") == query_set.id:
            values_of = outcome["values"].get(protocol, {})
        if values := {name: value for name, value in values_of.items() if value is not None}:
            name = f"{part} (study {wanted})" if of_study else wanted
            again = f"python -m rnnreranker.regress {query_set.id} --only {wanted}"
            topics = outcome.get("queries", {}).get(part, {})
            return Twin(name, values, topics, again, record.date[:10], record.commit[:10])
    return None


def _by_topic(values: Sequence[Mapping[str, float]]) -> list[list[float] | None]:
    """Values in one order of topics, those of the first row that has any; None for rows measured on others."""
    topics = next((sorted(column) for column in values if column), [])
    return [[column[topic] for topic in topics] if topics and sorted(column) == topics else None for column in values]


def twin_names(sets: Sequence[TwinSet]) -> dict[str, str]:
    """Row → the name of its twin, for the rows that have one on any of the sets."""
    return {row: twin.name for one_set in sets for row, twin in one_set.twins.items()}


def interval_text(agreement: OrderAgreement) -> str:
    """Kendall's tau with its interval in words of a table.

    >>> interval_text(OrderAgreement(same=5, opposite=1, low=-0.5, high=1, topics=20))
    '5 of 6 pairs, τ .67 [−.50, 1.00]'
    >>> interval_text(OrderAgreement(same=0, opposite=2)), interval_text(OrderAgreement(0, 0))
    ('0 of 2 pairs, τ −1.00', '')
    >>> interval_text(OrderAgreement(same=1, opposite=5, among=OrderAgreement(1, 0, low=-1, high=1, topics=20)))
    '1 of 6 pairs, τ −.67; of rows known by topic 1 of 1 pair, τ 1.00 [−1.00, 1.00]'
    """
    if not agreement.pairs:
        return ""
    text = f"{agreement.same} of {agreement.pairs} {'pair' if agreement.pairs == 1 else 'pairs'}"
    if agreement.tau is not None:
        text += f", τ {_signed(agreement.tau)}"
    if agreement.low is not None and agreement.high is not None:
        text += f" [{_signed(agreement.low)}, {_signed(agreement.high)}]"
    return f"{text}; of rows known by topic {interval_text(agreement.among)}" if agreement.among else text


def _signed(value: float) -> str:
    text = f"{abs(value):.2f}"
    return ("−" if value < -0.005 else "") + (text[1:] if text.startswith("0.") else text)


EQUAL = 1e-12  # means of the same numbers, added in another order
SAMPLES = 2000


@dataclass(frozen=True)
class OrderAgreement:
    """Pairs of rows of a table, and how twins of the rows order them.

    Attributes:
        same: pairs that stand in the printed order.
        opposite: those in the opposite one.
        tied_here: pairs that the paper orders and whose twins are equal.
        tied_there: pairs that the twins order and for which the paper prints equal values.
        low, high: 95% interval of `tau`; None where nothing is known topic by topic.
        topics: that the interval stands on.
        among: the same of those rows alone whose twins are known topic by topic, where not all are.
    """

    same: int
    opposite: int
    tied_here: int = 0
    tied_there: int = 0
    low: float | None = None
    high: float | None = None
    topics: int = 0
    among: OrderAgreement | None = None

    @property
    def pairs(self) -> int:
        """Pairs that the paper orders."""
        return self.same + self.opposite + self.tied_here

    @property
    def tau(self) -> float | None:
        """Kendall's tau-b, 1 for the printed order and -1 for its opposite; None where one side orders nothing.

        >>> OrderAgreement(same=5, opposite=1).tau
        0.6666666666666666
        """
        ordered = self.same + self.opposite
        size = ((ordered + self.tied_here) * (ordered + self.tied_there)) ** 0.5
        return (self.same - self.opposite) / size if size else None


def agreement(
    columns: Sequence[Sequence[float | None]],
    twins: Sequence[float | None],
    by_topic: Sequence[Sequence[float] | None] = (),
) -> OrderAgreement:
    """How the twins of a table's rows agree with the order that its columns print.

    Every column of the paper in which two rows have values is a pair; pairs are counted over all columns given, and
    tau-b is computed from the sums. The columns should be of one measure, the one in which the twins are measured:
    "does the same order come out on another collection" is then asked once a data set of the paper.

    The interval is the percentile bootstrap over the topics of the twins (95%, 2,000 samples, a fixed seed): topics are
    drawn with replacement, the same for all rows, and tau-b is computed from the means over those drawn. What the paper
    prints stays fixed, since nothing is known of it but the printed value: the interval says how far the twins' topics
    decide their order, not what other systems or collections would give. Rows are not resampled: with three to eight
    systems, chosen by the paper, that would say nothing. Samples in which all twins are equal are left out.

    Args:
        columns: of the paper: a value for each row, None where it prints none.
        twins: a value for each row, None where it has no twin or nothing is measured.
        by_topic: for each row the twin's values topic by topic, in one order of topics; without those of every row that
            has a twin the interval is that of the rows that have them, as `among`.
    """
    import numpy as np

    values = np.array(twins, dtype=np.float64)  # nan for None
    ones, others = np.triu_indices(len(values), 1)
    table = np.array(columns, dtype=np.float64).reshape(len(columns), len(values))
    differences = table[:, ones] - table[:, others]
    column, pair = np.nonzero(np.isfinite(differences + values[ones] - values[others]))
    if not len(pair):
        return OrderAgreement(0, 0)
    printed, ones, others = _signs(differences[column, pair]), ones[pair], others[pair]
    counted = _counted(printed, values[ones] - values[others])
    of_table = OrderAgreement(*(int(number) for number in counted))  # type: ignore[arg-type]
    rows = sorted({*ones.tolist(), *others.tolist()})
    known = [by_topic[row] for row in rows if row < len(by_topic) and by_topic[row]]
    if len(known) < len(rows):
        kept = [value if row < len(by_topic) and by_topic[row] else None for row, value in enumerate(twins)]
        among = agreement(columns, kept, by_topic)
        return replace(of_table, among=among if among.low is not None else None)
    matrix = np.array(known, dtype=np.float64)  # (rows, topics)
    topics = matrix.shape[1]
    counts = np.random.default_rng(0).multinomial(topics, np.full(topics, 1 / topics), size=SAMPLES)
    means = counts @ matrix.T / topics  # (samples, rows)
    differences = means[:, np.searchsorted(rows, ones)] - means[:, np.searchsorted(rows, others)]
    same, opposite, here, there = _counted(printed, differences)
    size = np.sqrt(((same + opposite + here) * (same + opposite + there)).astype(np.float64))
    if not size.any():
        return of_table
    low, high = np.percentile((same - opposite)[size > 0] / size[size > 0], [2.5, 97.5])
    return replace(of_table, low=float(low), high=float(high), topics=topics)


def _signs(differences: np.ndarray) -> np.ndarray:
    """1, 0 or -1 of each difference."""
    import numpy as np

    return np.where(np.abs(differences) <= EQUAL, 0, np.sign(differences))


def _counted(printed: np.ndarray, differences: np.ndarray) -> tuple[np.ndarray, ...]:
    """Pairs (on the last axis) in the printed order, in the opposite one, tied only in the twins, tied only in print.

    Args:
        printed: 1, 0 or -1.
        differences: of the twins.
    """
    signs = _signs(differences)
    here, there = (signs == 0) & (printed != 0), (signs != 0) & (printed == 0)
    return tuple(which.sum(-1) for which in (signs * printed == 1, signs * printed == -1, here, there))
