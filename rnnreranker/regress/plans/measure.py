"""The scores of runs under every protocol, and of reranked runs against their base."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import RnnrerankerError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.regress.plans.inputs import read_stamp
from rnnreranker.regress.plans.obstacles import count_documents
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.plans.step import State, Step, built_in, state_of
from rnnreranker.regress.specs.entries import QuerySet
from rnnreranker.regress.specs.spec import Spec

if TYPE_CHECKING:
    import pandas

    from rnnreranker.base.record import Record
    from rnnreranker.evaluate.scores import Scores
    from rnnreranker.runs import Run

Key = tuple[str, str]  # query set, name of a run
PRECISION = 6  # digits of values topic by topic


class Measured:
    """The scores of runs (by name, or their files) on a query set.

    hits: the depth of the runs, 0 = their longest list; deeper measures are left out.

    Attributes:
        runs: those that could be measured; errors: name of another run → its error.
    """

    def __init__(self, spec: Spec, query_set: QuerySet, runs: Mapping[str, Run | Path], hits: int = 0) -> None:
        from rnnreranker.data.qrels import load_qrels
        from rnnreranker.data.topics import load_topics
        from rnnreranker.evaluate import evaluate
        from rnnreranker.evaluate.measures import cutoff_of
        from rnnreranker.evaluate.scores import judged_documents, notice_unjudged
        from rnnreranker.runs import Run

        self.spec, self.query_set = spec, query_set
        self.runs: dict[str, Run] = {}
        self.errors: dict[str, RnnrerankerError] = {}
        self.scores: dict[str, dict[str, Scores]] = {}  # protocol, run
        try:
            self.kinds = {kind: set(load_topics(name)) for kind, name in query_set.kinds.items()}
            self.qrels = load_qrels(query_set.qrels)
            judged = judged_documents(self.qrels)
        except RnnrerankerError as error:
            self.errors = dict.fromkeys(runs, error)
            return
        for name, given in runs.items():
            try:
                run = Run.read(given) if isinstance(given, Path) else given
                notice_unjudged({name: run}, judged)
                measures = [one for one in spec.measures_of(query_set) if cutoff_of(one) <= (hits or depth_of(run))]
                for protocol in query_set.protocols if measures else ():
                    scores = evaluate({name: run}, self.qrels, measures, protocol)
                    self.scores.setdefault(protocol, {})[name] = scores
                self.runs[name] = run
            except RnnrerankerError as error:
                self.errors[name] = error

    def outcome(self, name: str, queries: Collection[tuple[str, str]] = ()) -> dict[str, Any]:
        """The outcome of a run's record, with values per query for (protocol, measure) in `queries`."""
        mine = {protocol: runs[name] for protocol, runs in self.scores.items() if name in runs}
        outcome: dict[str, Any] = {
            "query_set": self.query_set.id,
            "depth": depth_of(self.runs[name]),
            "topics": max((len(scores.topics) for scores in mine.values()), default=0),
            "values": {
                protocol: dict(zip(scores.measures, map(float, scores.means[0]), strict=True))
                for protocol, scores in mine.items()
            },
        }
        if self.kinds and (first := mine.get(self.query_set.protocols[0])):
            outcome["kinds"] = {kind: self._means(first, of_kind) for kind, of_kind in self.kinds.items()}
        single: dict[str, dict[str, dict[str, float]]] = {}
        for protocol, measure in sorted(queries):
            if protocol in mine and measure in mine[protocol].measures:
                values = (round(float(value), PRECISION) for value in mine[protocol].per_topic(measure))
                single.setdefault(protocol, {})[measure] = dict(zip(mine[protocol].topics, values, strict=True))
        return {**outcome, **({"queries": single} if single else {})}

    def _means(self, scores: Scores, topics: Collection[str]) -> dict[str, float]:
        mine = [topic in topics for topic in scores.topics]
        return {name: float(scores.per_topic(name)[mine].mean()) for name in scores.measures} if any(mine) else {}

    def differences(self, pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
        """Run → measure → difference from its base in the first protocol; Holm's family is all pairs."""
        from rnnreranker.evaluate.comparison import SAME, differences

        scores = self.scores.get(self.query_set.protocols[0], {})
        tested = [
            (one, base, measure)
            for one, base in pairs
            if one in scores and base in scores
            for measure in scores[one].measures
            if measure in (self.spec.compare or scores[one].measures)
        ]
        values = {(run, measure): scores[run].per_topic(measure) for *both, measure in tested for run in both}
        rows = differences(values, [((one, measure), (base, measure)) for one, base, measure in tested])
        compared: dict[str, dict[str, Any]] = {}
        for (one, base, measure), row in zip(tested, rows, strict=True):
            gaps = values[one, measure] - values[base, measure]
            counts = {"win": gaps > SAME, "tie": abs(gaps) <= SAME, "loss": gaps < -SAME}
            topics = {name: int(which.sum()) for name, which in counts.items()}
            compared.setdefault(one, {})[measure] = {"baseline": base, **row, **topics}
        return compared


def measure(plan: Plan, blocked: Mapping[Path, State]) -> tuple[list[Record], dict[Key, State]]:
    """The records of a plan's runs, and the states of the others; blocked: output → state."""
    records: list[Record] = []
    states: dict[Key, State] = {}
    for query_set in plan.query_sets:
        files = {
            name: path
            for condition in plan.conditions
            for name, path in zip(condition.run_names, plan.run_files(condition, query_set), strict=False)
        }
        states |= {(query_set.id, name): blocked[path] for name, path in files.items() if path in blocked}
        there = {name: path for name, path in files.items() if path not in blocked and path.exists()}
        measured = Measured(plan.spec, query_set, there, plan.spec.hits)
        try:
            records += _records(plan, measured, there) if measured.runs else []
        except RnnrerankerError as error:
            measured.errors = dict.fromkeys(there, error)
        states |= {(query_set.id, name): state_of(error) for name, error in measured.errors.items()}
    return records, states


def depth_of(run: Run) -> int:
    """The length of the longest list of a run."""
    return int((run.offsets[1:] - run.offsets[:-1]).max(initial=0))


def _redundancy(plan: Plan, runs: Mapping[str, Run]) -> dict[str, dict[str, float]]:
    """Run → the similarity of its first documents, if the spec names an index for it."""
    from rnnreranker.evaluate.redundancy import means_of, redundancy
    from rnnreranker.index.opening import open_index

    name = {index.id: name for index, name in plan.indexes()}.get(plan.spec.redundancy)
    if name is None:
        return {}
    vectors = open_index(name).vectors
    return {
        run: {figure: round(value, PRECISION) for figure, value in means_of(redundancy(one, vectors)).items()}
        for run, one in runs.items()
    }


def _records(plan: Plan, measured: Measured, files: Mapping[str, Path]) -> list[Record]:
    from rnnreranker.base.record import made_here
    from rnnreranker.data.topics import load_topics

    query_set, alike = measured.query_set, _redundancy(plan, measured.runs)
    given = plan.given()
    bases = {name: condition.base for condition in plan.conditions for name in condition.run_names if condition.base}
    differences = measured.differences([(name, base) for name, base in bases.items() if name in files])
    judged = {"judged": len(measured.qrels), **_collection(plan, measured.qrels)}
    inputs = {
        "topics": fingerprint(load_topics(query_set.topics)),
        "judgements": fingerprint(sorted(map(list, measured.qrels.itertuples(index=False)))),
    }
    kept = plan.spec.compare if plan.spec.by_topic else ()
    single = [(protocol, name) for protocol in query_set.protocols for name in kept]
    records = []
    for name in measured.runs:
        path = files[name]
        chain = list(plan.needed([path]).values())
        outcome = {**measured.outcome(name, single), **judged, "sha256": file_digest(path)}
        if name in alike:
            outcome["redundancy"] = alike[name]
        if path in given:
            outcome["file"] = path.name
        if name in differences:
            outcome["differences"] = differences[name]
        seconds = sum(read_stamp(step).get("seconds", 0.0) for step in chain)
        read = {path, *(before for step in chain for before in step.inputs)}
        runs = {f"run {entry.id}": file_digest(file) for file, (entry, _) in given.items() if file in read}
        used = {**_indexes(plan, chain), **runs, **inputs}
        records.append(made_here("run", plan.spec.name, name, outcome, inputs=used, seconds=seconds))
    return records


def _indexes(plan: Plan, chain: Sequence[Step]) -> dict[str, str]:
    """Index → the digest of its documents and encoder, or a prebuilt name."""
    from rnnreranker.data import pydoc
    from rnnreranker.parts.base import describe

    fingerprints = {}
    for index, name in plan.indexes(chain):
        of_collection = pydoc.fingerprint() if built_in(index) else ""
        fingerprints[f"index {index.id}"] = of_collection or str(describe(Path(name)).get("fingerprint", name))
    return fingerprints


def _collection(plan: Plan, qrels: pandas.DataFrame) -> dict[str, int]:
    """The number of documents, and of judgements of others."""
    from rnnreranker.index.opening import open_index

    for index, name in plan.indexes():
        if index.count and "dense" in index.parts:
            source = open_index(name).vectors
            lacking = int((source.rows(qrels["doc_id"].tolist()) < 0).sum())
            return {"documents": count_documents(index, name), "unjudgeable": lacking}
    return {}
