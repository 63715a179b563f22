"""Hard negatives: filters of likely positives, the choice among the rest, and files of them.

Every filter gives each pair of positive and candidate a suspicion and discards pairs above a threshold, so filters are
comparable at one share of discarded pairs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base.command import check_apart, phase
from rnnreranker.base.errors import InputError, argument, brief, nearest, refuse
from rnnreranker.base.files import check_writable, read_lines, write_atomically
from rnnreranker.base.method import Form, fields_of, find, naming
from rnnreranker.base.settings import Params, Written, asked, check_names, hints_of, setting
from rnnreranker.data.records import of_json, of_parquet
from rnnreranker.index.opening import Index
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.make import open_job
from rnnreranker.labels.methods.base import Judged, VectorLabeler, contexts_of
from rnnreranker.labels.request import SOURCE, ChosenLabeler, JudgedRunRequest, choose_labeler
from rnnreranker.runs import Run
from rnnreranker.search.own_documents import without_own
from rnnreranker.search.searching import first_stage_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.data.qrels import Qrels

DEFAULT_RATE = 0.1  # share of pairs discarded where neither a threshold nor a rate is given
SIMILAR = {"rnn": "evidence", "joint": "joint"}  # filter → the labels whose similarities it goes by


@dataclass(frozen=True)
class NegativeParams(Params):
    """Settings of mining; see `suspicion` for filters. InputError: values out of range, or both threshold and rate."""

    filter: Literal["rnn", "joint", "margin", "relative-margin", "max-score", "none"] = setting(
        "rnn", "what is discarded"
    )
    threshold: float | None = setting(
        None, "discard above it: s* for rnn, joint similarity for joint; see docs/negatives.md for the others"
    )
    rate: float | None = setting(
        None, f"discard this share of pairs instead (without a threshold {DEFAULT_RATE})", at_least=0, at_most=1
    )
    form: Literal["triplet", "n-tuple", "labeled-pair", "labeled-list"] = setting(
        "triplet", "rows of one negative, of all of a positive, of a document and its label, or of lists of both"
    )
    negatives: int = setting(3, "of a positive, the first kept ones of the run", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and self.rate is not None:
            raise InputError(f"threshold={self.threshold:g} and rate={self.rate:g}: give one of them, not both")
        if self.filter == "none" and (self.threshold, self.rate) != (None, None):
            raise InputError("threshold or rate: has no effect with the filter none, which discards nothing")


FILTERS = tuple(hints_of(NegativeParams)["filter"].words)


class ChosenFilter(NamedTuple):
    """A filter with checked settings: of mining, and of the labels whose similarities it goes by."""

    mining: NegativeParams
    similar: ChosenLabeler


def choose_filter(form: Form, of: str = "") -> ChosenFilter:
    """The filter of a written form, `rnn:rate=0.1,negatives=5,k=21,preset=tas-b,from=neighbours`; of: its argument.

    Raises:
        InputError: unknown filter, setting, preset or source, values out of range.
    """
    with naming(of, form):
        written = Written.read(form)
        if written.name not in FILTERS:
            raise InputError(f"{written.name}: no such filter; {nearest(written.name, FILTERS)}")
        own, rest, method = hints_of(NegativeParams), dict(written.params), SIMILAR.get(written.name, "evidence")
        check_names(rest, [*own, SOURCE, *fields_of(find("labeler", method))])
        mining = {name: rest.pop(name) for name in own if name in rest} | {"filter": written.name}
        return ChosenFilter(NegativeParams.of(mining), choose_labeler(Written(method, rest, written.preset)))


@dataclass(frozen=True)
class NegativesRequest(JudgedRunRequest):
    """Negatives to mine: the arguments of `mine_negatives`, and the flags of the command.

    Attributes:
        filter: written form, see `choose_filter`.
        threads: None = one per core; negatives do not depend on it.
        output: a file to write: texts in .parquet and .jsonl, ids in .tsv.
    """

    filter: Form = setting("rnn", "what is discarded: " + ", ".join(FILTERS), metavar="NAME")
    threads: int | None = setting(None, "default: one per core", at_least=1)
    output: str | Path | None = setting(None, ".parquet or .jsonl with texts, .tsv with ids", metavar="FILE")

    @cached_property
    def chosen(self) -> ChosenFilter:
        return choose_filter(self.filter, "filter")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.chosen.mining.filter == "none" else self.chosen.similar.needs


@dataclass(frozen=True, eq=False)
class MinedNegatives:
    """Negatives that were mined.

    Attributes:
        mined: the rows of `pairs` that were taken, in its order; rows: how many a written file has.
        pairs: see `pairs_of`; suspicion: of each pair; threshold: pairs above it are discarded.
    """

    mined: pandas.DataFrame
    pairs: pandas.DataFrame
    suspicion: pandas.Series
    threshold: float
    rows: int


def mine_negatives(
    run: str | Path | Run,
    qrels: Qrels,
    index: str | Path | Index | None = None,
    filter: Form = "rnn",
    **others: Any,
) -> MinedNegatives:
    """Hard negatives of a run without likely positives, as `python -m rnnreranker.negatives`.

    No negative has the qid as docid, nor, if texts are known, the text of a positive.

    Args:
        run, qrels, index, filter, others: as in `NegativesRequest`.

    Raises:
        InputError: all faults of the request at once; a missing index, topics or run.
        UnavailableError, MissingDependencyError: a missing index or encoder.
    """
    request = asked(NegativesRequest, {"run": run, "qrels": qrels, "index": index, "filter": filter, **others})
    check(request)
    return mined_negatives(request)


def check(request: NegativesRequest, *others: tuple[object, str]) -> None:
    """Check a request before any work; others: further faults. InputError: all faults at once."""
    check_apart(vars(request))
    _ = request.document_fields
    (mining, similar), output, shown = request.chosen, request.output, argument("output", request.output)
    filter = argument("filter", mining.filter)
    texts = frozenset({"topics", "texts"} if output is not None and holds_texts(output) else ())
    suffixes = OF_TEXTS if mining.form.startswith("labeled") else SUFFIXES
    refuse(
        (
            similar.source == "neighbours" and mining.filter not in (*SIMILAR, "none"),
            f"{filter} compares inner products with the query: not with {argument('from', 'neighbours')}",
        ),
        *others,
        (
            output is not None and not str(output).endswith(suffixes),
            f"{shown}: expected a name that ends in {', '.join(suffixes)}, for form={mining.form}",
        ),
        *request.lacking(request.needs, filter),
        *request.lacking(texts, shown),
    )
    _ = request.encoding  # says what is wrong with its written form
    check_writable(output)


def mined_negatives(request: NegativesRequest) -> MinedNegatives:
    """The negatives of a checked request; writes its file."""
    run = without_own(first_stage_of(request.run))
    mining, similar = request.chosen
    job = open_job(request, run, request.needs, "no candidate is left out as a positive", threads=request.threads)
    labeler: Any = None if mining.filter == "none" else job.labeler(similar, request.threads)
    pairs = pairs_of(run, job.judged, labeler, similar.params.context)  # type: ignore[attr-defined]
    suspicious = suspicion(pairs, mining.filter)
    rate = DEFAULT_RATE if mining.rate is None else mining.rate
    threshold = threshold_at(suspicious, rate) if mining.threshold is None else mining.threshold
    texts = job.some_texts({*pairs["positive"], *pairs["docid"]})
    clean = {docid: text for docid, read in texts.items() if (text := " ".join(read.split()))}
    alike = pairs["docid"].map(clean) == pairs["positive"].map(clean)
    alike = alike.groupby([pairs["query"], pairs["docid"]]).transform("any")
    mined, rows = mine(pairs, (suspicious > threshold) | alike, mining), 0
    if request.output is not None:
        whole, positives = pairs, pairs.drop_duplicates("pair")
        if holds_texts(request.output):
            check_texts(positives["qid"], [*positives["positive"], *mined["docid"]], job.topics, texts)
            known = {"qid": job.topics, "positive": texts, "docid": texts}
            whole = pairs.assign(**{name: pairs[name].map(its) for name, its in known.items()})
        table = rows_of(whole.loc[positives.index], whole.loc[mined.index], mining.form, mining.negatives)
        rows = write_rows(request.output, table)
    return MinedNegatives(mined, pairs, suspicious, threshold, rows)


def pairs_of(run: Run, judged: Judged, labeler: VectorLabeler | None, size: int) -> pandas.DataFrame:
    """The pairs of a positive and another candidate of its query, in the order of the run.

    Columns: query and pair, numbers of query and positive; qid, positive, docid; of_positive and score, inner products
    with the query (0 without vectors); near, the highest similarity of the candidate to any positive by the labeler.

    size: the context.

    Raises:
        InputError: queries or candidates without a vector, or of another dimension; no pairs.
    """
    import pandas

    contexts, _ = contexts_of(run, judged, size, None if labeler is None else labeler.source_of_rows)
    ends = np.cumsum([0, *(one.size for one in contexts)])
    near, scores = np.zeros((2, ends[-1]))
    if labeler is not None:
        for number, similarities, _ in labeler.compared(contexts):
            part, one = slice(ends[number], ends[number + 1]), contexts[number]
            near[part] = similarities.max(axis=0)
            if labeler.source == "vectors":
                scores[part] = labeler.inputs.vectors.fetch(one.rows) @ labeler.of_query[one.qid]
    each = [(number, one.qid, docid) for number, one in enumerate(contexts) for docid in one.docids[: one.size]]
    known = np.concatenate([np.zeros(0, dtype=bool), *(one.positive[: one.size] for one in contexts)])
    frame = pandas.DataFrame(each, columns=["query", "qid", "docid"]).assign(score=scores, near=near)
    positives = frame.loc[known, ["query", "docid", "score"]].set_axis(["query", "positive", "of_positive"], axis=1)
    pairs = positives.assign(pair=range(len(positives))).merge(frame[~known], on="query")
    if pairs.empty:
        raise InputError("no query has a candidate beside its positives: there are no negatives to choose from")
    return pairs


def suspicion(pairs: pandas.DataFrame, how: str) -> pandas.Series:
    """Suspicion that the candidate of a pair is positive, float64; -inf for "none".

    rnn and joint: the highest similarity to any positive. As sentence-transformers' mine_hard_negatives: margin = s(q,
    c) - s(q, l), relative-margin = (s(q, c) - s(q, l)) / |s(q, l)|, max-score = s(q, c).
    """
    margin = pairs["score"] - pairs["of_positive"]
    if how == "none":
        return margin * 0 - np.inf
    if how == "relative-margin":
        return margin / pairs["of_positive"].abs().replace(0.0, 1.0)
    return {"margin": margin, "max-score": pairs["score"]}.get(how, pairs["near"])


def threshold_at(suspicious: pandas.Series, rate: float) -> float:
    """The smallest threshold that discards at most this share of all pairs; ties are kept."""
    values = np.sort(suspicious)
    allowed = int(rate * len(values) + 1e-9)
    return -np.inf if allowed >= len(values) else float(values[len(values) - 1 - allowed])


@phase("choosing negatives")
def mine(pairs: pandas.DataFrame, away: pandas.Series, params: NegativeParams) -> pandas.DataFrame:
    """The pairs with the first `params.negatives` kept candidates of every positive.

    For "labeled-pair" a negative is kept beside all positives of its query, and has the row of the first one.

    away: bool, discarded pairs.
    """
    if params.form == "labeled-pair":
        away = away.groupby([pairs["query"], pairs["docid"]]).transform("any")
        away |= pairs["pair"] > pairs.groupby("query")["pair"].transform("min")
    return pairs[~away].groupby("pair").head(params.negatives)


OF_TEXTS = (".parquet", ".jsonl")
SUFFIXES = (*OF_TEXTS, ".tsv")
LABEL, LABELS = "label", "labels"  # columns of 1 or 0, as sentence-transformers names them
EXPECTED = "expected a file of python -m rnnreranker.negatives"


def holds_texts(path: str | Path) -> bool:
    return not str(path).endswith(".tsv")


def rows_of(positives: pandas.DataFrame, mined: pandas.DataFrame, form: str, negatives: int) -> list[dict[Any, Any]]:
    """The rows of a file, with the columns of sentence-transformers' losses.

    "triplet" has one negative a row; "n-tuple" a column for each of `negatives`; "labeled-list" lists of documents and
    labels; "labeled-pair" a document and its label, of all positives of every query.
    """
    import pandas

    names = ["anchor", "positive"]
    if form == "labeled-pair":
        both = pandas.concat([positives.assign(docid=positives["positive"], label=1), mined.assign(label=0)])
        rows = both.sort_values("query", kind="stable")[["qid", "docid", LABEL]].set_axis([*names, LABEL], axis=1)
        return rows.to_dict("records")
    rows = mined[["qid", "positive", "docid"]].set_axis([*names, "negative"], axis=1)
    if form != "triplet":
        rows = rows.groupby(mined["pair"]).agg({**dict.fromkeys(names, "first"), "negative": list})
        lists = rows.pop("negative")
        if form == "labeled-list":
            rows["positive"] = [[one, *own] for one, own in zip(rows["positive"], lists, strict=True)]
            rows[LABELS] = [[1, *[0] * len(own)] for own in lists]
        else:
            rows = rows.assign(**{f"negative_{number + 1}": lists.str[number] for number in range(negatives)}).dropna()
    return rows.to_dict("records")


def write_rows(path: str | Path, rows: list[dict[Any, Any]]) -> int:
    """Write rows, .parquet and .jsonl with the columns of sentence-transformers' losses; returns their number."""
    with write_atomically(path) as stream:
        if str(path).endswith(".parquet"):
            import pyarrow
            import pyarrow.parquet as parquet

            parquet.write_table(pyarrow.Table.from_pylist(rows), stream, compression="zstd")
        else:
            tsv = str(path).endswith(".tsv")
            lines = ("\t".join(row.values()) if tsv else json.dumps(row, ensure_ascii=False) for row in rows)
            stream.writelines(f"{line}\n".encode() for line in lines)
    return len(rows)


def read_negatives(path: str | Path) -> dict[tuple[str, str], list[str]]:
    """(query, positive) → its negatives, in the order of the file; triplets of one pair are joined.

    Ids of a .tsv file, texts of .parquet and .jsonl. In labeled pairs every positive has all negatives of its query.
    InputError: another suffix, no such file, incomplete rows, labels other than 0 and 1.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: {EXPECTED}, a name that ends in {', '.join(SUFFIXES)}")
    negatives_of: dict[tuple[str, str], dict[str, None]] = {}
    groups: dict[str, tuple[str, tuple[list[str], list[str]]]] = {}  # of rows → anchor, its negatives and positives
    lines: Any = ((f"{path}:{n}", dict(enumerate(line.rstrip("\r").split("\t")))) for n, line in read_lines(path))
    records = {".parquet": of_parquet, ".jsonl": of_json}.get(path.suffix)
    for where, record in records(path) if records else lines:
        label: Any = record.pop(LABEL if LABEL in record else LABELS, None)
        documents: Any
        anchor, *documents = record.values() or [""]
        labels = [1, *[0] * (len(documents) - 1)] if label is None else label if isinstance(label, list) else [label]
        if isinstance(label, list) and documents:
            documents = documents[0]
        texts = isinstance(documents, list) and all(isinstance(one, str) and one for one in (anchor, *documents))
        enough = texts and len(documents) == len(labels) > (label is None)
        if not enough or not all(one in (0, 1) for one in labels):
            columns = "anchor, positive and negative texts or ids, or labels 0 and 1 beside documents"
            raise InputError(f"{where}: {brief(record)}; {EXPECTED}: {columns}")
        group = groups.setdefault(anchor if isinstance(label, int) else where, (anchor, ([], [])))
        for document, own in zip(documents, labels, strict=True):
            group[1][own].append(document)
    for anchor, (negatives, positives) in groups.values():
        for positive in positives if negatives else ():
            negatives_of.setdefault((anchor, positive), {}).update(dict.fromkeys(negatives))
    if not negatives_of:
        raise InputError(f"{path}: holds no negatives; {EXPECTED}")
    return {pair: list(negatives) for pair, negatives in negatives_of.items()}
