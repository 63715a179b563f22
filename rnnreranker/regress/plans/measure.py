"""The scores of runs under every protocol, and of reranked runs against their base."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import RnnrerankerError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.record import Record, made_here
from rnnreranker.data import pydoc
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
from rnnreranker.evaluate import evaluate
from rnnreranker.evaluate.comparison import SAME, differences
from rnnreranker.evaluate.measures import cutoff_of
from rnnreranker.evaluate.protocols import grades_of
from rnnreranker.evaluate.redundancy import means_of, redundancy
from rnnreranker.evaluate.scores import Scores, notice_unjudged
from rnnreranker.index.opening import open_index
from rnnreranker.parts.base import describe
from rnnreranker.regress.plans.plan import Plan, State, built_in, state_of
from rnnreranker.regress.specs.entries import IndexEntry, QuerySet, Spec
from rnnreranker.runs import Run

States = dict[tuple[str, str], State]  # by query set and name of a run
PRECISION = 6  # digits of values topic by topic


class Measured:
    """The scores of runs on a query set; paths: name → file.

    hits: the depth of the runs, 0 = their longest list; deeper measures are left out.

    Attributes:
        runs: those that could be measured; scores: run → protocol → its scores.
        errors: name of another run → its error.

    Raises:
        InputError, UnavailableError: no judgements.
    """

    def __init__(self, spec: Spec, query_set: QuerySet, paths: Mapping[str, Path], hits: int = 0) -> None:
        self.spec, self.query_set, self.qrels = spec, query_set, load_qrels(query_set.qrels)
        self.kinds = {kind: set(load_topics(name)) for kind, name in query_set.kinds.items()}
        self.runs: dict[str, Run] = {}
        self.scores: dict[str, dict[str, Scores]] = {}
        self.errors: dict[str, RnnrerankerError] = {}
        judged = grades_of(self.qrels)
        for name, path in paths.items():
            try:
                run = Run.read(path)
                notice_unjudged({name: run}, judged)
                deepest = hits or depth_of(run)
                measures = [one for one in spec.measures_of(query_set) if cutoff_of(one) <= deepest]
                protocols = query_set.protocols if measures else ()
                self.scores[name] = {one: evaluate({name: run}, self.qrels, measures, one) for one in protocols}
                self.runs[name] = run
            except RnnrerankerError as error:
                self.errors[name] = error

    def outcome(self, name: str, queries: Mapping[str, Collection[str]] | None = None) -> dict[str, Any]:
        """The outcome of a run's record; queries: protocol → measures whose values per query it has."""
        scores, first = self.scores[name], self.query_set.protocols[0]
        tables = {one: its.frame().set_index("topic")[list(its.measures)] for one, its in scores.items()}
        outcome: dict[str, Any] = {
            "query_set": self.query_set.id,
            "depth": depth_of(self.runs[name]),
            "topics": max(map(len, tables.values()), default=0),
            "values": {one: dict(zip(its.measures, its.means[0].tolist(), strict=True)) for one, its in scores.items()},
        }
        if self.kinds and first in tables:
            of_kinds = {kind: tables[first].index.isin(topics) for kind, topics in self.kinds.items()}
            outcome["kinds"] = {kind: tables[first][of].mean().dropna().to_dict() for kind, of in of_kinds.items()}
        for protocol, table in tables.items():
            if kept := [measure for measure in table if measure in (queries or {}).get(protocol, ())]:
                outcome.setdefault("queries", {})[protocol] = table[kept].round(PRECISION).to_dict()
        return outcome

    def differences(self, bases: Mapping[str, str]) -> dict[str, Any]:
        """Run → measure → difference from its base in the first protocol; Holm's family is all of them."""
        first = {name: its[self.query_set.protocols[0]] for name, its in self.scores.items() if its}
        compare = self.spec.compare or self.spec.measures_of(self.query_set)
        values = {(name, m): its.per_topic(m) for name, its in first.items() for m in its.measures if m in compare}
        pairs = [((name, m), (bases.get(name, ""), m)) for name, m in values if (bases.get(name, ""), m) in values]
        compared: dict[str, Any] = {}
        for (one, base), row in zip(pairs, differences(values, pairs), strict=True):
            gaps = values[one] - values[base]
            topics = {"win": gaps > SAME, "tie": abs(gaps) <= SAME, "loss": gaps < -SAME}
            counts = {name: int(which.sum()) for name, which in topics.items()}
            compared.setdefault(one[0], {})[one[1]] = {"baseline": base[0], **row, **counts}
        return compared


def measure(plan: Plan, blocked: Mapping[Path, State]) -> tuple[list[Record], States]:
    """The records of a plan's runs, and the states of the others; blocked: output → state."""
    records: list[Record] = []
    states = {(one.id, name): blocked[path] for path, (name, _, one) in plan.runs().items() if path in blocked}
    for query_set in plan.query_sets:
        files = {name: path for path, (name, _, one) in plan.runs().items() if one == query_set and path not in blocked}
        if not files:
            continue
        try:
            measured = Measured(plan.spec, query_set, files, plan.spec.hits)
            records += _records(plan, measured, files)
            errors = measured.errors
        except RnnrerankerError as error:
            errors = dict.fromkeys(files, error)
        states |= {(query_set.id, name): state_of(error) for name, error in errors.items()}
    return records, states


def depth_of(run: Run) -> int:
    """The length of the longest list of a run."""
    return int(np.diff(run.offsets).max(initial=0))


def count_documents(index: IndexEntry, name: str) -> int:
    """The number of documents of an index, or of its source; name: the value of `--index`.

    Raises:
        RnnrerankerError: documents that cannot be read.
    """
    described = describe(Path(name))
    return int(described["count"]) if described else sum(1 for _ in load_documents(index.documents))


def _records(plan: Plan, measured: Measured, files: Mapping[str, Path]) -> list[Record]:
    spec, query_set, given = plan.spec, measured.query_set, plan.given()
    compared = measured.differences({name: entry.base for name, entry, _ in plan.runs().values()})
    indexes = [(index, name) for index, name in plan.indexes(plan.steps) if "dense" in index.parts]
    common: dict[str, Any] = {"judged": len(measured.qrels)}
    for index, name in [one for one in indexes if one[0].count][:1]:
        lacking = open_index(name).vectors.rows(measured.qrels["doc_id"].tolist()) < 0
        common |= {"documents": count_documents(index, name), "unjudgeable": int(lacking.sum())}
    alike = [open_index(name).vectors for index, name in indexes if index.id == spec.redundancy]
    inputs = {
        "topics": fingerprint(load_topics(query_set.topics)),
        "judgements": fingerprint(sorted(map(list, measured.qrels.itertuples(index=False)))),
    }
    single = dict.fromkeys(query_set.protocols, spec.compare if spec.by_topic else [])
    records = []
    for name, run in measured.runs.items():
        path, chain = files[name], plan.needed([files[name]])
        outcome = measured.outcome(name, single) | common | {"sha256": file_digest(path)}
        for vectors in alike:
            means = means_of(redundancy(run, vectors))
            outcome["redundancy"] = {figure: round(value, PRECISION) for figure, value in means.items()}
        outcome |= {"file": path.name} if path in given else {}
        outcome |= {"differences": compared[name]} if name in compared else {}
        read = {path, *(before for step in chain for before in step.inputs)}
        used = {
            f"index {index.id}": pydoc.fingerprint() if built_in(index) else describe(Path(at)).get("fingerprint", at)
            for index, at in plan.indexes(chain)
        }
        used |= {f"run {entry.id}": file_digest(file) for file, (entry, _) in given.items() if file in read}
        seconds = sum(step.stamp().get("seconds", 0.0) for step in chain)
        records.append(made_here("run", spec.name, name, outcome, inputs=used | inputs, seconds=seconds))
    return records
