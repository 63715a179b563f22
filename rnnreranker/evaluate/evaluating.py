"""`evaluate_run`, `evaluate_runs` and the command."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, refuse
from rnnreranker.base.request import Request, asked
from rnnreranker.base.settings import setting
from rnnreranker.data.names import QRELS
from rnnreranker.evaluate.comparison import RESAMPLES
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import CHOSEN, MEASURES, PROTOCOLS
from rnnreranker.runs import Run

if TYPE_CHECKING:
    from typing import TypeAlias

    import ir_measures
    import pandas

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.evaluate.comparison import Comparison
    from rnnreranker.evaluate.scores import Scores
    from rnnreranker.parts.vectors import VectorSource

    AnyRun: TypeAlias = str | Path | Run | Mapping[str, Mapping[str, float]] | pandas.DataFrame

ENDINGS = (".txt", ".trec", ".tsv", ".run")  # of files of runs, left out of their names


@dataclass(frozen=True)
class EvaluateRequest(Request):
    """The arguments of `evaluate_runs` and flags of the command.

    Attributes:
        runs: files, runs, {qid: {docid: score}} or data frames of query_id, doc_id, score; or these by name.
        qrels: see `qrels_of`; measures: as ir-measures or trec_eval writes them; protocol: see `apply_protocol`.
        common_topics: only the judged topics that every run has; otherwise a missing one scores 0.
        vectors: for the redundancy of the first ten documents, or a function that opens them.
        compare: every run with the first, by paired t-tests and a bootstrap of `resamples` with `seed`.
    """

    runs: Sequence[AnyRun] | Mapping[str, AnyRun]
    qrels: Qrels = setting(MISSING, QRELS)
    measures: str | Sequence[str | ir_measures.Measure] = setting(MEASURES, "with spaces between")
    protocol: str | None = setting(None, f"which grades count ({CHOSEN})", one_of=lambda: [*PROTOCOLS])
    common_topics: bool = setting(False, "only judged topics that every run has")
    vectors: VectorSource | Callable[[], VectorSource] | None = None
    compare: bool = setting(False, "every run against the first")
    resamples: int = setting(RESAMPLES, "of the bootstrap")
    seed: int = setting(0, "of the bootstrap")

    @property
    def every(self) -> list[AnyRun]:
        return list(self.runs.values() if isinstance(self.runs, Mapping) else self.runs)

    @property
    def files(self) -> list[str]:
        """Files, or `run` with a number."""
        named = enumerate(self.every, 1)
        return [str(run) if isinstance(run, str | Path) else f"run {number}" for number, run in named]

    @property
    def names(self) -> list[str]:
        """The given names, or file names, shortened if still distinct."""
        if isinstance(self.runs, Mapping):
            return list(self.runs)
        paths = self.files
        short = [Path(path).name.removesuffix(".gz") for path in paths]
        short = [name.rsplit(".", 1)[0] if name.endswith(ENDINGS) else name for name in short]
        return short if len(set(short)) == len(short) else paths


@dataclass(frozen=True)
class Evaluation:
    """Scores, comparisons with the first run, and run → redundancy."""

    request: EvaluateRequest
    scores: Scores
    comparisons: Sequence[Comparison]
    redundancy: Mapping[str, pandas.DataFrame]

    def to_dict(self) -> dict[str, Any]:
        """All results and arguments, for JSON."""
        scores, request = self.scores, self.request
        return {
            "qrels": request.shown("qrels"),
            "protocol": scores.protocol,
            "common_topics": request.common_topics,
            "topics": list(scores.topics),
            "runs": [
                {
                    "name": name,
                    "file": path,
                    "missing_topics": int(scores.missing[r]),
                    "judged@10": float(scores.judged[r].mean()),
                    "mean": dict(zip(scores.measures, scores.means[r].tolist(), strict=True)),
                    "per_topic": {
                        measure: scores.values[r, :, m].tolist() for m, measure in enumerate(scores.measures)
                    },
                    **({"redundancy": _as_json(self.redundancy[name])} if name in self.redundancy else {}),
                }
                for r, (name, path) in enumerate(zip(scores.runs, request.files, strict=True))
            ],
            "bootstrap": {"resamples": request.resamples, "seed": request.seed},
            "comparisons": [dataclasses.asdict(one) for one in self.comparisons],
        }


def evaluate_runs(
    runs: Sequence[AnyRun] | Mapping[str, AnyRun],
    qrels: Qrels,
    measures: str | Sequence[str | ir_measures.Measure] = MEASURES,
    **others: Any,
) -> Evaluation:
    """Measure and compare runs, as `python -m rnnreranker.evaluate`; arguments as in `EvaluateRequest`.

    Raises:
        InputError: all faults of the arguments at once; unreadable files, a run none of whose topics is judged.
    """
    request = asked(EvaluateRequest, {"runs": runs, "qrels": qrels, "measures": measures, **others})
    check(request)
    return evaluated(request)


def check(request: EvaluateRequest, *others: tuple[object, str]) -> None:
    """Raise InputError for all faults."""
    count, paths = len(request.runs), request.files
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    refuse(
        (not count, f"{argument('runs')}: none; give at least one"),
        (request.compare and count < 2, f"{argument('compare')} needs a baseline and at least one more run"),
        (request.resamples < 1, f"{argument('resamples', request.resamples)}: expected at least 1"),
        (request.seed < 0, f"{argument('seed', request.seed)}: expected 0 or more"),
        *others,
        (repeated, f"{', '.join(repeated)}: given more than once"),
    )
    parse_measures(request.measures)


def evaluated(request: EvaluateRequest) -> Evaluation:
    """The results of a checked request."""
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.evaluate.comparison import compare
    from rnnreranker.evaluate.scores import evaluate, judged_documents, notice_unjudged

    qrels = qrels_of(request.qrels)
    every = [Run.read(run) if isinstance(run, str | Path) else _run_of(run) for run in request.every]
    runs = dict(zip(request.names, every, strict=True))
    scores = evaluate(runs, qrels, request.measures, request.protocol, request.common_topics)
    evaluation = Evaluation(
        request,
        scores,
        compare(scores, request.resamples, request.seed) if request.compare else [],
        _redundancy(request.vectors, runs),
    )
    notice_unjudged(runs, judged_documents(qrels))
    for name, missing in zip(scores.runs, scores.missing.tolist(), strict=True):
        if missing:
            notice(f"{name}: {missing} of {len(scores.topics)} judged topics are not in the run and score 0")
    return evaluation


def named_runs(given: Any) -> Mapping[str, AnyRun]:
    """Runs by name, of one or several; a file has its own name, another run is `run`."""
    if isinstance(given, Mapping) and not _is_run(given):
        return given
    return {Path(given).name: given} if isinstance(given, str | Path) else {"run": given}


def _is_run(given: Mapping[Any, Any]) -> bool:
    """Whether a mapping is {qid: {docid: score}}, and not {name: run}."""
    entries = [one for one in given.values() if isinstance(one, Mapping)]
    return len(entries) == len(given) and not any(isinstance(one, Mapping) for of in entries for one in of.values())


def _run_of(given: Any) -> Run:
    if isinstance(given, Run):
        return given
    if isinstance(given, Mapping) and _is_run(given):
        return Run.from_dict(given)
    from rnnreranker.data.qrels import OF_PYTERRIER, as_text

    columns = ["query_id", "doc_id", "score"]
    if hasattr(given, "columns") and "query_id" not in given.columns:
        given = given.rename(columns=OF_PYTERRIER)
    if lost := [name for name in columns if name not in getattr(given, "columns", ())]:
        lacking = f" without {', '.join(lost)}" if hasattr(given, "columns") else ""
        raise InputError(
            f"run: {type(given).__name__}{lacking}; expected a Run, a file, {{qid: {{docid: score}}}} or a data frame "
            f"of {', '.join(columns)}"
        )
    qids, docids = (as_text(given[name], "run").tolist() for name in columns[:2])
    return Run.from_columns(qids, docids, given["score"].to_numpy())


def _redundancy(vectors: Any, runs: Mapping[str, Run]) -> dict[str, pandas.DataFrame]:
    if vectors is None:
        return {}
    from rnnreranker.evaluate.redundancy import redundancy

    source = vectors() if callable(vectors) else vectors
    return {name: redundancy(run, source) for name, run in runs.items()}


def _as_json(table: pandas.DataFrame) -> dict[str, Any]:
    from rnnreranker.evaluate.redundancy import NEAR, means_of

    return {"near": NEAR, "mean": means_of(table), "per_query": table.to_dict()}


def evaluate_run(
    run: AnyRun | Mapping[str, AnyRun],
    qrels: Qrels,
    measures: str | Sequence[str | ir_measures.Measure] = ("nDCG@10",),
    protocol: str | None = None,
    *,
    per_query: bool = False,
    common_topics: bool = False,
) -> pandas.DataFrame:
    """The measures of a run, or of several by name: a row for each, a column for each measure.

    `attrs["protocol"]` is the protocol; if not `trec`, it is also the name of the columns.

    Args:
        run: a Run, a file, {qid: {docid: score}} or a data frame of query_id, doc_id, score (or qid, docno, score); or
            these by name.
        qrels: a name, a file, {qid: {docid: grade}}, {qid: docids} or a data frame, see `qrels_of`.
        measures: as ir-measures or trec_eval writes them, a list or one text.
        protocol: trec, dl, strict, strict-dropped, binary; None = dl for the names of TREC DL, else trec.
        per_query: a row for every run and judged topic, in place of means.
        common_topics: only the judged topics that every run has; otherwise a missing one scores 0.

    Raises:
        InputError: no such measure or protocol, unreadable files, a run none of whose topics is judged.
    """
    import pandas

    scores = evaluated(EvaluateRequest(named_runs(run), qrels, measures, protocol, common_topics)).scores
    table = scores.frame() if per_query else pandas.DataFrame(scores.means, list(scores.runs), list(scores.measures))
    table.attrs["protocol"] = scores.protocol
    if scores.protocol != "trec":
        table.columns.name = f"protocol {scores.protocol}"
    return table
