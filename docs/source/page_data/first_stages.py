"""What methods gain over each first stage on each collection: tables from records, each tested as one family."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnreranker.base.errors import InputError
from rnnreranker.evaluate.comparison import holm

if TYPE_CHECKING:
    from rnnreranker.base.record import Record
    from rnnreranker.regress.records import Figures

Row = dict[str, Any]
ROW = ("base", "value", "difference", "low", "high", "p", "p_holm")
MEASURE, RECALL = "nDCG@10", "R@100"
DEFAULT, BEFORE = "rnn", "rnn-2-probes"  # the default, and the one before it
MIXTURE = "rnn-mixture"  # two probes, not smoothed
GRAPH, ALONE = "rnn-graph", "rnn-graph-alone"  # from a graph of the collection, with and without the query's vector
GRAPH_MIXTURE, ALONE_MIXTURE = f"{GRAPH}-mixture", f"{ALONE}-mixture"  # the same, two probes, not smoothed
TOKENS = "rnn-tokens"  # from the tokens of a late-interaction encoder
GRAPH_32 = "rnn-graph-32"  # from one with 32 neighbours in the place of 16


class Collection(NamedTuple):
    """Where a collection of a table is on record."""

    spec: str
    query_set: str
    title: str


class Stage(NamedTuple):
    """A first stage: the condition that is one, and what the ids of the conditions over it begin with."""

    id: str
    title: str
    prefix: str = ""

    def over(self, method: str) -> str:
        """The id of the condition that is a method over this first stage."""
        return f"{self.prefix or self.id}-{method}"


class Layout(NamedTuple):
    """What a table looks for; conditions that a spec does not have leave no cell.

    shown: the methods that are compared first, which every collection has over every first stage. together: cells of a
    collection over a first stage count only where all of these are on record.
    """

    collections: tuple[Collection, ...]
    stages: tuple[Stage, ...]
    methods: tuple[str, ...]
    shown: tuple[str, ...] = (BEFORE, DEFAULT)
    together: bool = False


_FIRST = {  # end of a condition's id → what it is
    DEFAULT: "rNN, the default",
    BEFORE: "rNN, the default before (two probes)",
    MIXTURE: "rNN, two probes, not smoothed",
    "rnn-vectors": "rNN, vectors alone",
    "rnn-tas-b": "rNN, published for TAS-B, raw scores",
    "jaccard-plain": "the default, plain neighbours",
    "prf-rocchio": "vector PRF among the candidates",
    "prf": "PRF that searches again",
    "expand-rnn": "neighbours join, then rNN",
}
_RIVALS = {  # that read the graph
    ALONE: "rNN from the graph, no query encoded",
    "lexboost": "LexBoost, no query encoded",
    GRAPH: "rNN from the graph",
    "expand": "neighbours join",
    "expand-rnn": _FIRST["expand-rnn"],
    "gar": "GAR",
    "ladr": "LADR, proactive",
    "ladr-adaptive": "LADR, adaptive",
}
_PRF = {  # of late interaction: what is changed of f_p 3, f_c 24, f_e 10, beta 1
    "prf-half": "beta .5",
    "prf-1-document": "f_p 1",
    "prf-5-documents": "f_p 5",
    "prf-12-clusters": "f_c 12",
    "prf-5-centroids": "f_e 5",
}
_TOKENS = {TOKENS: "rNN from tokens", "late": "ordered by MaxSim"} | _PRF
_NOT_SMOOTHED = {
    GRAPH_MIXTURE: "rNN from the graph, two probes, not smoothed",
    ALONE_MIXTURE: "the same, no query encoded",
}
METHODS = _FIRST | _RIVALS | _NOT_SMOOTHED | {GRAPH_32: "rNN from the graph, 32 neighbours"} | _TOKENS
_COLLECTIONS = (
    Collection("cranfield", "cranfield", "Cranfield"),
    Collection("scifact", "scifact", "SciFact"),
    Collection("nq-utd", "nq-utd", "NQ-UTD"),
    Collection("xquad-en", "xquad-en", "XQuAD, English"),
    Collection("dl19-dl20-sample", "dl19-sample", "DL 2019 sample"),
    Collection("dl19-dl20-sample", "dl20-sample", "DL 2020 sample"),
    Collection("pydoc", "pydoc", "pydoc"),
)
_RUNS = (
    Collection("dl19-dl20-runs", "dl19-runs", "DL 2019"),
    Collection("dl19-dl20-runs", "dl20-runs", "DL 2020"),
)
_STAGES = (
    Stage("dense", "dense"),
    Stage("bm25", "BM25"),
    Stage("hybrid", "RRF(BM25, dense)"),
    Stage("splade", "SPLADE"),
    Stage("splade-dense", "RRF(SPLADE, dense)"),
    Stage("minmax", "min-max(BM25, dense)"),
    Stage("three", "min-max(BM25, SPLADE, dense)"),
)
PUBLIC = "public"  # the table of the collections that others made
LAYOUTS = {
    PUBLIC: Layout(tuple(one for one in _COLLECTIONS if one.spec != "pydoc"), _STAGES, (DEFAULT,), (DEFAULT,)),
    "first stages": Layout(_COLLECTIONS, _STAGES, tuple(_FIRST)),
    "e5": Layout(
        tuple(one for one in _COLLECTIONS if one.spec in ("cranfield", "nq-utd", "xquad-en")),
        (
            Stage("e5", "dense"),
            Stage("bm25", "BM25", "e5-bm25"),
            Stage("e5-hybrid", "RRF(BM25, dense)"),
            Stage("splade", "SPLADE", "e5-splade"),
            Stage("e5-splade-dense", "RRF(SPLADE, dense)"),
        ),
        tuple(_FIRST),
        (MIXTURE, BEFORE),  # measured when the default had two probes
    ),
    "mpnet": Layout(
        _COLLECTIONS,
        tuple(
            Stage(one.id, one.title, f"mpnet-{one.id}")  # of BM25 and SPLADE alone only the reranker's vectors differ
            if one.id in ("bm25", "splade")
            else Stage("mpnet" if one.id == "dense" else f"mpnet-{one.id}", one.title)
            for one in _STAGES
        ),
        (DEFAULT,),
        (DEFAULT,),
        together=True,
    ),
    "graph": Layout(_COLLECTIONS, _STAGES, (DEFAULT, GRAPH, ALONE), (DEFAULT, GRAPH, ALONE), together=True),
    "graph smoothing": Layout(
        _COLLECTIONS,
        _STAGES,
        (GRAPH_MIXTURE, GRAPH, ALONE_MIXTURE, ALONE),
        (GRAPH_MIXTURE, GRAPH, ALONE_MIXTURE, ALONE),
        together=True,
    ),
    "graph sizes": Layout(_COLLECTIONS, _STAGES, (DEFAULT, GRAPH, GRAPH_32), (DEFAULT, GRAPH, GRAPH_32), together=True),
    "graph rivals": Layout(
        tuple(one for one in _COLLECTIONS if one.spec in ("cranfield", "scifact")),
        (Stage("bm25", "BM25"),),
        tuple(_RIVALS),
        tuple(_RIVALS),
        together=True,
    ),
    "tokens": Layout(
        _COLLECTIONS,
        (Stage("dense", "dense"), Stage("bm25", "BM25"), Stage("late", "late interaction")),
        (MIXTURE, TOKENS, "late"),
        (MIXTURE, TOKENS),
        together=True,
    ),
    "token feedback": Layout(
        _COLLECTIONS, (Stage("late", "late interaction"),), ("prf", *_PRF), ("prf", *_PRF), together=True
    ),
    "runs": Layout(
        _RUNS,
        (Stage("tas-b", "TAS-B"), Stage("bm25", "BM25"), Stage("splade", "SPLADE++")),
        (DEFAULT, BEFORE, MIXTURE, "rnn-vectors"),
    ),
}


@dataclass(frozen=True)
class Cell:
    """A method over a first stage on a collection.

    Attributes:
        rows: of each measure `base`, the value of the first stage, `value`, and their `difference` with its interval
            `low` to `high`, `p`, and `p_holm`, corrected over all cells of the table.
        protocol: what the collection is measured by.
        measure: which row the properties read.
    """

    collection: str
    stage: str  # id
    method: str
    rows: Mapping[str, Row]
    protocol: str
    measure: str = MEASURE

    def __getattr__(self, name: str) -> float:
        if name in ROW:
            return float(self.rows[self.measure][name])
        raise AttributeError(name)


@dataclass(frozen=True)
class MethodCells:
    """Cells of a method over one first stage, or several, taken together."""

    cells: tuple[Cell, ...]

    def of(self, measure: str) -> MethodCells:
        """The same in another measure, of the cells that were measured by it."""
        return MethodCells(tuple(replace(cell, measure=measure) for cell in self.cells if measure in cell.rows))

    def on(self, collections: Iterable[str]) -> MethodCells:
        """The same on some collections, by their titles."""
        return MethodCells(tuple(cell for cell in self.cells if cell.collection in {*collections}))

    @property
    def base(self) -> float:
        """Mean of the first stage."""
        return fmean(cell.base for cell in self.cells)

    @property
    def gain(self) -> float:
        """Mean difference."""
        return fmean(cell.difference for cell in self.cells)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95% interval of the mean difference: of independent cells, from the intervals of each."""
        half = math.sqrt(sum((cell.high - cell.low) ** 2 for cell in self.cells)) / (2 * len(self.cells))
        return self.gain - half, self.gain + half

    @property
    def below(self) -> list[Cell]:
        """Cells whose difference is below 0."""
        return [cell for cell in self.cells if cell.difference < 0]

    @property
    def surely_below(self) -> list[Cell]:
        """Cells whose interval lies below 0."""
        return [cell for cell in self.cells if cell.high < 0]

    @property
    def lost(self) -> list[Cell]:
        """Cells below 0 with p below .05 after Holm's correction over the table."""
        return [cell for cell in self.cells if cell.difference < 0 and cell.p_holm < 0.05]

    @property
    def surely_above(self) -> list[Cell]:
        """Cells whose interval lies above 0."""
        return [cell for cell in self.cells if cell.low > 0]

    @property
    def worst(self) -> Cell:
        """The cell with the least difference."""
        return min(self.cells, key=lambda cell: cell.difference)


@dataclass(frozen=True)
class StageTable:
    """The cells of a layout that are on record, by first stage, collection and method."""

    layout: Layout
    cells: tuple[Cell, ...]

    def over(self, method: str, stage: str = "", without: Sequence[str] = ()) -> MethodCells:
        """The cells of a method: over one first stage, or over all but those `without`.

        Raises:
            InputError: none on record.
        """
        chosen = [cell for cell in self.cells if cell.method == method and stage in ("", cell.stage)]
        chosen = [cell for cell in chosen if cell.stage not in without]
        if not chosen:
            raise InputError(f"no record of {method} over {stage or 'any first stage'}; measure it with --record")
        return MethodCells(tuple(chosen))

    def methods(self, stage: str) -> list[str]:
        """The methods that are on record over a first stage."""
        return [
            name for name in self.layout.methods if any((one.stage, one.method) == (stage, name) for one in self.cells)
        ]

    @property
    def others(self) -> list[str]:
        """Measures besides nDCG@10 that methods change, in the order of their columns."""
        rows = [(measure, row) for cell in self.cells for measure, row in cell.rows.items()]
        changed = {measure for measure, row in rows if measure == RECALL or row["value"] != row["base"]}
        return [measure for measure in ("RR@10", "AP", RECALL, "R@1000") if measure in changed]

    @property
    def protocols(self) -> str:
        """The protocols of the collections in a sentence; "" where all are `trec`."""
        of: dict[str, list[str]] = {}
        for one in self.layout.collections:
            for protocol in {cell.protocol for cell in self.cells if cell.collection == one.title} - {"trec"}:
                of.setdefault(protocol, []).append(one.title)
        named = "; ".join(f"`{protocol}` on {', '.join(titles)}" for protocol, titles in of.items())
        return f"Protocol of recall: {named}." if named else ""

    @property
    def complete(self) -> bool:
        """Whether the methods shown are on record over every first stage, on every collection or on the same ones."""
        if self.layout.together:
            present = [{cell.collection for cell in self.cells if cell.stage == one.id} for one in self.layout.stages]
            return bool(present[0]) and all(one == present[0] for one in present)
        wanted = len(self.layout.shown) * len(self.layout.stages) * len(self.layout.collections)
        return sum(cell.method in self.layout.shown for cell in self.cells) == wanted

    def find(self, method: str, stage: str, collection: str) -> Cell:
        """One cell.

        Raises:
            InputError: it is not on record.
        """
        matching = [cell for cell in self.over(method, stage).cells if cell.collection == collection]
        if not matching:
            raise InputError(f"no record of {method} over {stage} on {collection}; measure it with --record")
        return matching[0]

    def with_methods(self, methods: Iterable[str]) -> list[Stage]:
        """The first stages over which all these methods are on record."""
        return [stage for stage in self.layout.stages if {*methods} <= {*self.methods(stage.id)}]


def stage_table(figures: Figures, name: str) -> StageTable:
    """A table of `LAYOUTS`; p is corrected by Holm over all its cells."""
    layout = LAYOUTS[name]
    runs = {(one.spec, one.outcome["query_set"], one.name): one for one in figures.records("run")}
    cells: list[Cell] = []
    for stage in layout.stages:
        for where in layout.collections:
            base = runs.get((where.spec, where.query_set, stage.id))
            own = []
            for method in layout.methods:
                run = runs.get((where.spec, where.query_set, stage.over(method)))
                cell = base and run and _cell(where.title, stage.id, method, base, run)
                own += [cell] if cell else []
            if not layout.together or {*layout.shown} <= {cell.method for cell in own}:
                cells += own
    for measure in {measure for cell in cells for measure in cell.rows}:
        measured = [cell.rows[measure] for cell in cells if measure in cell.rows]
        for row, p in zip(measured, holm([row["p"] for row in measured]), strict=True):
            row["p_holm"] = p
    return StageTable(layout, tuple(cells))


def _cell(collection: str, stage: str, method: str, base: Record, run: Record) -> Cell | None:
    """None where the run was measured before it was compared with the first stage in nDCG@10 and R@100."""
    protocol, after = next(iter(run.outcome["values"].items()))
    before = base.outcome["values"][protocol]
    rows = {
        measure: {**row, "base": before[measure], "value": after[measure]}
        for measure, row in run.outcome.get("differences", {}).items()
        if row["baseline"] == base.name and measure in before
    }
    return Cell(collection, stage, method, rows, protocol) if {MEASURE, RECALL} <= rows.keys() else None
