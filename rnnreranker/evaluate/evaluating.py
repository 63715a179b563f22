"""`evaluate_run`, `evaluate_runs` and the command."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import notice
from rnnreranker.base.errors import Fault, InputError, argument, refuse
from rnnreranker.base.settings import Request, asked, setting
from rnnreranker.data.names import QRELS
from rnnreranker.data.qrels import OF_PYTERRIER, as_text, qrels_of
from rnnreranker.evaluate.comparison import RESAMPLES, Comparison, compare, print_comparisons, print_scores
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import MEASURES, grades_of, protocol_setting
from rnnreranker.evaluate.redundancy import NAMES, NEAR, means_of, redundancy
from rnnreranker.evaluate.scores import Scores, evaluate, notice_unjudged
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import ir_measures
    import pandas

    from rnnreranker.data.qrels import Qrels

    AnyRun = str | Path | Run | Mapping[str, Mapping[str, float]] | pandas.DataFrame

ENDINGS = re.compile(r"(\.(txt|trec|tsv|run))?(\.gz)?$")  # of files of runs, left out of their names
COLUMNS = ["query_id", "doc_id", "score"]  # of a data frame of a run


@dataclass(frozen=True)
class EvaluateRequest(Request):
    """The arguments of `evaluate_runs` and flags of the command.

    Attributes:
        runs: files, runs, {qid: {docid: score}} or data frames of query_id, doc_id, score; or these by name.
        qrels: see `qrels_of`; measures: as ir-measures or trec_eval writes them; protocol: see `apply_protocol`.
        common_topics: only the judged topics that every run has; otherwise a missing one scores 0.
        index: its vectors give the redundancy of the first ten documents.
        compare: every run with the first, by paired t-tests and a bootstrap of `resamples` with `seed`.
    """

    runs: Sequence[AnyRun] | Mapping[str, AnyRun]
    qrels: Qrels = setting(MISSING, QRELS)
    measures: str | Sequence[str | ir_measures.Measure] = setting(MEASURES, "with spaces between")
    protocol: str | None = protocol_setting()
    common_topics: bool = setting(False, "only judged topics that every run has")
    index: str | Path | None = setting(
        None, "its vectors say how alike the first ten are: cosine@10, and pairs@10 of .9 and more"
    )
    compare: bool = setting(False, "every run against the first")
    resamples: int = setting(RESAMPLES, "of the bootstrap", at_least=1)
    seed: int = setting(0, "of the bootstrap", at_least=0)

    @property
    def named(self) -> dict[str, tuple[str, AnyRun]]:
        """Name → file, or `run` with a number, and run: the given names, or file names, shortened if still distinct."""
        every = list(self.runs.values() if isinstance(self.runs, Mapping) else self.runs)
        files = [str(run) if isinstance(run, str | Path) else f"run {number}" for number, run in enumerate(every, 1)]
        if repeated := sorted({path for path in files if files.count(path) > 1}):
            raise InputError(f"{', '.join(repeated)}: given more than once")
        names = (
            list(self.runs) if isinstance(self.runs, Mapping) else [ENDINGS.sub("", Path(one).name) for one in files]
        )
        return dict(zip(names if len({*names}) == len(names) else files, zip(files, every, strict=True), strict=True))


@dataclass(frozen=True)
class Evaluation:
    """Scores, comparisons with the first run, and run → redundancy."""

    request: EvaluateRequest
    scores: Scores
    comparisons: Sequence[Comparison]
    redundancy: Mapping[str, pandas.DataFrame]

    def to_dict(self) -> dict[str, Any]:
        """All results and arguments, for JSON."""
        scores, request, runs = self.scores, self.request, []
        for r, (name, (path, _)) in enumerate(request.named.items()):
            about = {
                "name": name,
                "file": path,
                "missing_topics": int(scores.missing[r]),
                "judged@10": float(scores.judged[r].mean()),
                "mean": dict(zip(scores.measures, scores.means[r].tolist(), strict=True)),
                "per_topic": dict(zip(scores.measures, scores.values[r].T.tolist(), strict=True)),
            }
            if (alike := self.redundancy.get(name)) is not None:
                about["redundancy"] = {"near": NEAR, "mean": means_of(alike), "per_query": alike.to_dict()}
            runs.append(about)
        return {
            "qrels": request.shown("qrels"),
            "protocol": scores.protocol,
            "common_topics": request.common_topics,
            "topics": list(scores.topics),
            "runs": runs,
            "bootstrap": {"resamples": request.resamples, "seed": request.seed},
            "comparisons": [dataclasses.asdict(one) for one in self.comparisons],
        }

    def show(self, per_query: bool = False) -> None:
        """Print the comparisons, or else a row for each run, with `per_query` for each topic too."""
        scores, alike, rows = self.scores, self.redundancy, list[list[Any]]()
        if self.comparisons:
            print_comparisons(scores, self.comparisons)
            return
        for run, values, means in zip(scores.runs, scores.values, scores.means, strict=True):
            if per_query:
                rows += [[run, topic, *own] for topic, own in zip(scores.topics, values, strict=True)]
            rows.append([run, *(["all"] if per_query else []), *means])
            rows[-1] += means_of(alike[run]).values() if alike else []
        shown = [[f"{one:.4f}" if isinstance(one, float) else one for one in row] for row in rows]
        header = ["run", *(["topic"] if per_query else []), *scores.measures, *(NAMES if alike else ())]
        print_scores(header, shown, scores.protocol)


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


def check(request: EvaluateRequest, *others: Fault) -> None:
    """Raise InputError for all faults."""
    count = len(request.runs)
    refuse(
        (not count, f"{argument('runs')}: none; give at least one"),
        (request.compare and count < 2, f"{argument('compare')} needs a baseline and at least one more run"),
        *others,
        lambda: request.named,
        lambda: parse_measures(request.measures),
    )


def evaluated(request: EvaluateRequest) -> Evaluation:
    """The results of a checked request."""
    from rnnreranker.index import opening

    qrels = qrels_of(request.qrels)
    runs = {name: _run_of(run) for name, (_, run) in request.named.items()}
    scores = evaluate(runs, qrels, request.measures, request.protocol, request.common_topics)
    compared = compare(scores, request.resamples, request.seed) if request.compare else []
    alike = {}
    if request.index is not None:
        vectors = opening.open_index(request.index).vectors
        for name, run in runs.items():
            alike[name] = redundancy(run.only(scores.topics), vectors)
    notice_unjudged(runs, grades_of(qrels))
    if qrels["relevance"].max() < 1:
        notice(f"none of {len(qrels):,} judgements has a grade of 1 or more; expected lines of qid 0 docid grade")
    for name, missing in zip(scores.runs, scores.missing.tolist(), strict=True):
        if missing:
            notice(f"{name}: {missing} of {len(scores.topics)} judged topics are not in the run and score 0")
    return Evaluation(request, scores, compared, alike)


def _is_run(given: Any) -> bool:
    """Whether an argument is {qid: {docid: score}}, and not {name: run}."""
    return isinstance(given, Mapping) and all(
        isinstance(of, Mapping) and not any(isinstance(one, Mapping) for one in of.values()) for of in given.values()
    )


def _run_of(given: Any) -> Run:
    if isinstance(given, str | Path):
        return Run.read(given)
    if isinstance(given, Run):
        return given
    if _is_run(given):
        return Run.from_dict(given)
    if (columns := hasattr(given, "columns")) and "query_id" not in given.columns:
        given = given.rename(columns=OF_PYTERRIER)
    if lost := [name for name in COLUMNS if not columns or name not in given.columns]:
        lacking = f" without {', '.join(lost)}" if columns else ""
        raise InputError(
            f"run: {type(given).__name__}{lacking}; expected a Run, a file, {{qid: {{docid: score}}}} or a data frame "
            f"of {', '.join(COLUMNS)}"
        )
    qids, docids = (as_text(given[name], "run").tolist() for name in COLUMNS[:2])
    return Run.from_columns(qids, docids, given["score"].to_numpy())


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

    name = Path(run).name if isinstance(run, str | Path) else "run"
    named: Any = run if isinstance(run, Mapping) and not _is_run(run) else {name: run}
    scores = evaluated(EvaluateRequest(named, qrels, measures, protocol, common_topics)).scores
    table = scores.frame() if per_query else pandas.DataFrame(scores.means, list(scores.runs), list(scores.measures))
    table.attrs["protocol"] = scores.protocol
    if scores.protocol != "trec":
        table.columns.name = f"protocol {scores.protocol}"
    return table
