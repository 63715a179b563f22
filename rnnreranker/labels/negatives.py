"""Hard negatives: filters of likely positives, the choice among the rest, and files of them.

Every filter gives each pair of positive and candidate a suspicion and discards pairs above a threshold, so filters are
comparable at one share of discarded pairs.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, naming
from rnnreranker.base.errors import InputError, brief, nearest, refuse
from rnnreranker.base.files import check_writable, read_lines, write_atomically
from rnnreranker.base.method import fields_of, find
from rnnreranker.base.process.phases import phase
from rnnreranker.base.request import asked
from rnnreranker.base.settings import Params, check_names, hints_of, setting
from rnnreranker.base.strict import parse_record
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import asked_fields
from rnnreranker.data.records import of_parquet
from rnnreranker.labels.export import known_texts
from rnnreranker.labels.judged import Judged, contexts_of
from rnnreranker.labels.make import Job, open_job
from rnnreranker.labels.request import SOURCE, ChosenLabeler, JudgedRunRequest, choose_labeler
from rnnreranker.search.inputs import texts_for

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.methods.base import VectorLabeler
    from rnnreranker.runs import Run

DEFAULT_RATE = 0.1  # share of pairs discarded where neither a threshold nor a rate is given
SIMILAR = {"rnn": "evidence", "joint": "joint"}  # filter → the labels whose similarities it goes by


@dataclass(frozen=True)
class NegativeParams(Params):
    """Settings of mining; see `suspicion` for filters. InputError: values out of range, a threshold beside a rate."""

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
    negatives: int = setting(3, "of a positive", at_least=1)
    sampling: Literal["top", "random"] = setting("top", "the first kept ones of the run, or drawn")
    seed: int = setting(0, "of --sampling random", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and self.rate is not None:
            raise InputError(f"threshold={self.threshold:g} and rate={self.rate:g}: give one of them, not both")


FILTERS = tuple(hints_of(NegativeParams)["filter"].words)


@dataclass(frozen=True)
class ChosenFilter:
    """A filter with checked settings.

    mining: the filter and the choice of negatives; similar: filter of `SIMILAR` → its labels.
    """

    mining: NegativeParams
    similar: dict[str, ChosenLabeler]

    @property
    def by_graph(self) -> bool:
        return self.similar["rnn"].source == "neighbours"


def choose_filter(form: Form, of: str = "") -> ChosenFilter:
    """The filter of a written form, `rnn:rate=0.1,negatives=5,k=21,preset=tas-b,from=neighbours`; of: its argument.

    Raises:
        InputError: unknown filter, setting, preset or source, values out of range.
    """
    with naming(of, form):
        written = Written.read(form)
        if written.name not in FILTERS:
            raise InputError(f"{written.name}: no such filter; {nearest(written.name, FILTERS)}")
        own: dict[str, Any] = {
            how: {SOURCE, *(field.name for field in fields_of(find("labeler", name)))} for how, name in SIMILAR.items()
        }
        own["mining"] = [name for name in hints_of(NegativeParams) if name != "filter"]
        check_names(written.params, [*own["mining"], *own["joint"]])
        given = {
            part: {name: value for name, value in written.params.items() if name in names}
            for part, names in own.items()
        }
        mining = NegativeParams.of({"filter": written.name, **given["mining"]})
        similar = {how: choose_labeler(Written(name, given[how], written.preset)) for how, name in SIMILAR.items()}
        return ChosenFilter(mining, similar)


@dataclass(frozen=True)
class NegativesRequest(JudgedRunRequest):
    """Negatives to mine: the arguments of `mine_negatives`, and the flags of the command.

    Attributes:
        filter: written form, see `choose_filter`.
        truth: fuller judgements that compare all filters.
        threads: None = one per core; negatives do not depend on it.
        output: a file to write: texts in .parquet and .jsonl, ids in .tsv.
    """

    filter: Form = setting("rnn", "what is discarded: " + ", ".join(FILTERS))
    truth: Qrels | None = setting(None, "full judgements: print what each filter removes and loses")
    threads: int | None = setting(None, "default: one per core", at_least=1)
    output: str | Path | None = setting(None, ".parquet or .jsonl with texts, .tsv with ids", metavar="FILE")

    @cached_property
    def chosen(self) -> ChosenFilter:
        return choose_filter(self.filter, "filter")

    @cached_property
    def labelers(self) -> dict[str, ChosenLabeler]:
        """The needed labels of the filter, or with truth of all filters."""
        how, similar, compared = self.chosen.mining.filter, self.chosen.similar, self.truth is not None
        if how == "none" and (self.chosen.by_graph or not compared):
            return {}
        return similar if compared else {one: similar[one] for one in [how if how in SIMILAR else "rnn"]}

    @cached_property
    def needs(self) -> frozenset[str]:
        return frozenset[str]().union(*(one.needs for one in self.labelers.values()))


@dataclass(frozen=True, eq=False)
class Pool:
    """One query's R positives and n other candidates, in the order of the run.

    positive_scores: (R,) and scores: (n,) inner products with the query; similarity: filter of `SIMILAR` → (R, n).
    """

    qid: str
    positives: tuple[str, ...]
    candidates: tuple[str, ...]
    positive_scores: np.ndarray
    scores: np.ndarray
    similarity: Mapping[str, np.ndarray]


class Mined(NamedTuple):
    """A query, one of its positives or all, and their negatives."""

    qid: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]


class Toll(NamedTuple):
    """Judged pairs and discarded ones: (3, 2) int64, of all candidates, hidden positives, and true negatives."""

    filter: str
    threshold: float
    counts: np.ndarray


@dataclass(frozen=True, eq=False)
class MinedNegatives:
    """Negatives that were mined.

    Attributes:
        mined: in the order of the run; rows: how many a written file has.
        pools: positives and candidates of every query.
        threshold: of the filter; pairs above it are discarded.
        tolls: of all filters at one share of discarded pairs, the chosen one first; empty without truth.
    """

    mined: list[Mined]
    pools: list[Pool]
    threshold: float
    tolls: list[Toll]
    rows: int


def mine_negatives(
    run: str | Path | Run,
    qrels: Qrels,
    index: str | Path | IndexOnDisk | None = None,
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
    given = {"run": run, "qrels": qrels, "index": index, "filter": filter, **others}
    request = asked(NegativesRequest, given)
    check(request)
    return mined_negatives(request)


def check(request: NegativesRequest, *others: tuple[object, str]) -> None:
    """Check a request before any work; others: further faults. InputError: all faults at once."""
    asked_fields(request.documents, request.fields)
    mining, by_graph = request.chosen.mining, request.chosen.by_graph
    filter, output, shown = mining.filter, request.output, argument("output", request.output)
    of_query = f"inner products with the query: not with {argument('from', 'neighbours')}"
    texts = frozenset({"topics", "texts"} if output is not None and holds_texts(output) else ())
    suffixes = OF_TEXTS if mining.form.startswith("labeled") else SUFFIXES
    named = f"{shown}: expected a name that ends in {', '.join(suffixes)}, for form={mining.form}"
    refuse(
        (by_graph and filter not in (*SIMILAR, "none"), f"{argument('filter', filter)} compares {of_query}"),
        (by_graph and request.truth is not None, f"{argument('truth')} compares filters of {of_query}"),
        *others,
        (output is not None and not str(output).endswith(suffixes), named),
        *request.lacking(request.needs, argument("filter", filter)),
        *request.lacking(texts, shown),
    )
    _ = request.encoding  # says what is wrong with its written form
    check_writable(output)


def mined_negatives(request: NegativesRequest) -> MinedNegatives:
    """The negatives of a checked request; writes its file."""
    from rnnreranker.data.qrels import grades_of
    from rnnreranker.runs import Run
    from rnnreranker.search.own_documents import without_own

    run = without_own(request.run if isinstance(request.run, Run) else Run.read(request.run))
    so, mining = "no candidate is left out as a positive", request.chosen.mining
    job, how = open_job(request, run, request.needs, so, threads=request.threads), mining.filter
    labelers: Any = {name: job.labeler(one, request.threads) for name, one in request.labelers.items()}
    several = pools(run, job.judged, labelers, request.chosen.similar["rnn"].params.context)  # type: ignore[attr-defined]
    threshold, rate = mining.threshold, DEFAULT_RATE if mining.rate is None else mining.rate
    threshold = threshold_at(several, how, rate) if threshold is None else threshold
    tolls, rows = list[Toll](), 0
    if request.truth is not None:
        truth = grades_of(request.truth)
        tolls = [toll(several, how, threshold, truth, request.relevant)]
        rate = float(tolls[0].counts[0, 1] / tolls[0].counts[0, 0])
        for other in FILTERS:
            if other not in (how, "none"):
                tolls.append(toll(several, other, threshold_at(several, other, rate), truth, request.relevant))
    mined = _without_texts_of_positives(several, threshold, mining, job)
    if request.output is not None:
        of_query, of_document = str, str  # type: Any, Any
        if holds_texts(request.output):
            docids = [docid for one in mined for docid in (*one.positives, *one.negatives)]
            texts = known_texts((one.qid for one in mined), docids, job.topics, lambda own: _texts(own, job))
            of_query, of_document = job.topics.__getitem__, texts.__getitem__
        rows = write_rows(request.output, rows_of(mined, mining.form, mining.negatives, of_query, of_document))
    return MinedNegatives(mined, several, threshold, tolls, rows)


def _without_texts_of_positives(
    several: Sequence[Pool], threshold: float, mining: NegativeParams, job: Job
) -> list[Mined]:
    """What `mine` returns, without candidates that have the text of a positive, white space aside."""
    positives_of, texts = {pool.qid: pool.positives for pool in several}, dict[str, str]()
    same: set[tuple[str, str]] = set()
    while True:
        mined = mine(several, threshold, mining, same)
        wanted = {docid for one in mined for docid in (*one.negatives, *positives_of[one.qid])} - texts.keys()
        read = _texts(wanted, job)
        texts |= {docid: " ".join(read.get(docid, "").split()) for docid in wanted}
        before = len(same)
        for one in mined:
            relevant = {texts[docid] for docid in positives_of[one.qid]} - {""}
            same.update((one.qid, docid) for docid in one.negatives if texts[docid] in relevant)
        if len(same) == before:
            return mined


def _texts(docids: Collection[str], job: Job) -> dict[str, str]:
    return texts_for(docids, job.index, job.documents, job.fields) if docids else {}


def pools(run: Run, judged: Judged, labelers: Mapping[str, VectorLabeler], size: int = 0) -> list[Pool]:
    """The pools of the run's queries with positives, in order.

    Args:
        labelers: filter of `SIMILAR` → labeler of its similarities, all of one context; without vectors inner products
            are 0.
        size: the context if there are no labelers.

    Raises:
        InputError: queries or candidates without a vector, or of another dimension.
    """
    first = next(iter(labelers.values()), None)
    rows, size = (None, size) if first is None else (first.source_of_rows, first.params.context)
    contexts, _ = contexts_of(run, judged, size, rows)
    products = [np.zeros(one.size) for one in contexts]
    near: list[dict[str, np.ndarray]] = [{} for _ in contexts]
    for how, labeler in labelers.items():
        labeler.check(run, judged)
        for number, similarities, _ in labeler.compared(contexts):
            near[number][how] = similarities[:, len(similarities) :].astype(np.float64)
            if labeler.source == "vectors" and labeler is first:
                fetched = labeler.inputs.vectors.fetch(contexts[number].rows)
                products[number] = (fetched @ labeler.of_query[contexts[number].qid]).astype(np.float64)
    return [
        Pool(one.qid, tuple(one.docids[:r]), tuple(one.docids[r : one.size]), scores[:r], scores[r:], similarity)
        for one, scores, similarity in zip(contexts, products, near, strict=True)
        for r in [len(one.grades)]
    ]


def suspicion(pool: Pool, how: str) -> np.ndarray:
    """(R, n) float64: suspicion that a candidate is positive, seen from each positive; -inf for "none".

    rnn and joint: the highest similarity to any positive. As sentence-transformers' mine_hard_negatives: margin = s(q,
    c) - s(q, l), relative-margin = (s(q, c) - s(q, l)) / |s(q, l)|, max-score = s(q, c).
    """
    positives = pool.positive_scores[:, None]
    values: Any = -np.inf
    if how in SIMILAR:
        values = pool.similarity[how].max(axis=0)
    elif how == "max-score":
        values = pool.scores
    elif how != "none":
        values = pool.scores - positives
        if how == "relative-margin":
            values = values / np.where(positives != 0, np.abs(positives), 1.0)
    return np.broadcast_to(values, (len(pool.positives), len(pool.candidates)))


def threshold_at(several: Sequence[Pool], how: str, rate: float) -> float:
    """The smallest threshold that discards at most this share of all pairs; ties are kept. InputError: no pairs."""
    values = np.concatenate([np.zeros(0), *(suspicion(pool, how).ravel() for pool in several)])
    if not len(values):
        raise InputError("no query has a candidate beside its positives: there are no negatives to choose from")
    allowed = int(rate * len(values) + 1e-9)
    return -np.inf if allowed >= len(values) else float(np.sort(values)[len(values) - 1 - allowed])


def toll(
    several: Sequence[Pool], how: str, threshold: float, truth: Mapping[tuple[str, str], int], relevant: int = 1
) -> Toll:
    """Discarded pairs of a filter by full judgements, (query id, docid) → grade; unjudged pairs do not count."""
    counts = np.zeros((3, 2), dtype=np.int64)
    for pool in several:
        away = suspicion(pool, how) > threshold
        grades = np.array([truth.get((pool.qid, docid), np.nan) for docid in pool.candidates], dtype=np.float64)
        sides = np.ones(len(grades), dtype=bool), grades >= relevant, grades < relevant
        counts += [(len(away) * side.sum(), away[:, side].sum()) for side in sides]
    return Toll(how, threshold, counts)


@phase("choosing negatives")
def mine(
    several: Iterable[Pool],
    threshold: float,
    params: NegativeParams,
    without: Collection[tuple[str, str]] = (),
) -> list[Mined]:
    """Up to `params.negatives` kept candidates of every positive, the first of the run or drawn.

    A draw depends on the seed, the query and the positive. Positives without a candidate are dropped; for
    "labeled-pair" negatives are kept beside each positive of a query, and every query remains.

    without: (query id, docid) of candidates to leave out.
    """
    mined, together = [], params.form == "labeled-pair"
    for pool in several:
        rest = np.array([(pool.qid, docid) not in without for docid in pool.candidates], dtype=bool)
        away = suspicion(pool, params.filter) > threshold
        rows = [(pool.positives, away.any(axis=0))] if together else zip(zip(pool.positives), away, strict=True)
        for positives, gone in rows:
            kept = np.flatnonzero(rest & ~gone)
            if params.sampling == "random" and len(kept) > params.negatives:
                key = zlib.crc32(f"{pool.qid}\t{positives[0]}".encode())
                drawn = np.random.default_rng([params.seed, key]).choice(kept, params.negatives, replace=False)
                kept = np.sort(drawn)
            if len(kept) or together:
                negatives = tuple(pool.candidates[candidate] for candidate in kept[: params.negatives].tolist())
                mined.append(Mined(pool.qid, positives, negatives))
    return mined


OF_TEXTS = (".parquet", ".jsonl")
SUFFIXES = (*OF_TEXTS, ".tsv")
LABEL, LABELS = "label", "labels"  # columns of 1 or 0, as sentence-transformers names them
EXPECTED = "expected a file of python -m rnnreranker.negatives"


def holds_texts(path: str | Path) -> bool:
    return not str(path).endswith(".tsv")


def rows_of(
    mined: Iterable[Mined],
    form: str,
    negatives: int,
    query: Callable[[str], str] = str,
    document: Callable[[str], str] = str,
) -> Iterator[dict[str, Any]]:
    """Rows of query, positive, negatives: ids, or what `query` and `document` make of them.

    "triplet" has one negative a row; "n-tuple" a column for each of `negatives`; "labeled-list" lists of documents and
    labels; "labeled-pair" a document and its label.
    """
    numbered = [f"negative_{number}" for number in range(1, negatives + 1)]
    others = {"labeled-pair": [LABEL], "labeled-list": [LABELS], "triplet": ["negative"], "n-tuple": numbered}
    names = ["anchor", "positive", *others[form]]
    for one in mined:
        documents = [*map(document, (*one.positives, *one.negatives))]
        first = len(one.positives)
        labels = [int(number < first) for number in range(len(documents))]
        rows: dict[str, Iterable[Iterable[Any]]] = {
            "labeled-pair": zip(documents, labels, strict=True),
            "labeled-list": [(documents, labels)],
            "triplet": [(documents[0], negative) for negative in documents[1:]],
            "n-tuple": [documents] * (len(documents) == negatives + first),
        }
        yield from (dict(zip(names, (query(one.qid), *row), strict=True)) for row in rows[form])


def write_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write rows, .parquet and .jsonl with the columns of sentence-transformers' losses; returns their number."""
    rows = list(rows)
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


def read_negatives(path: str | Path) -> list[Mined]:
    """Negatives of every query and positive, in the order of the file; triplets of one pair are joined.

    Ids of a .tsv file, texts of .parquet and .jsonl. In labeled pairs every positive has all negatives of its query.
    InputError: another suffix, no such file, incomplete rows, labels other than 0 and 1.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: {EXPECTED}, a name that ends in {', '.join(SUFFIXES)}")
    groups: dict[str, tuple[str, tuple[list[str], list[str]]]] = {}  # of rows → anchor, its negatives and positives
    for where, record in _records(path):
        pair, several = LABEL in record, LABELS in record
        labels = [record.pop(LABEL)] if pair else record.pop(LABELS, None)
        anchor, *cells = record.values() or [""]
        documents: Any = cells
        if several:
            documents = next(iter(cells), None)
        elif not pair:
            labels = [1, *[0] * (len(documents) - 1)]
        lists = isinstance(documents, list) and isinstance(labels, list) and len(documents) == len(labels)
        texts = lists and all(isinstance(one, str) and one for one in (anchor, *documents))
        if not texts or len(labels) < 2 - (pair or several) or not all(one in (0, 1) for one in labels):
            columns = "anchor, positive and negative texts or ids, or labels 0 and 1 beside documents"
            raise InputError(f"{where}: {brief(record)}; {EXPECTED}: {columns}")
        group = groups.setdefault(anchor if pair else where, (anchor, ([], [])))
        for document, own in zip(documents, labels, strict=True):
            group[1][own].append(document)
    negatives_of: dict[tuple[str, str], dict[str, None]] = {}
    for anchor, (negatives, positives) in groups.values():
        for positive in positives if negatives else ():
            negatives_of.setdefault((anchor, positive), {}).update(dict.fromkeys(negatives))
    if not negatives_of:
        raise InputError(f"{path}: holds no negatives; {EXPECTED}")
    return [Mined(anchor, (positive,), tuple(negatives)) for (anchor, positive), negatives in negatives_of.items()]


def _records(path: Path) -> Iterator[tuple[str, dict[Any, Any]]]:
    if path.suffix == ".parquet":
        yield from of_parquet(path)
        return
    for number, line in read_lines(path, "file of negatives"):
        where = f"{path}:{number}"
        tsv = path.suffix == ".tsv"
        yield where, dict(enumerate(line.rstrip("\n").split("\t"))) if tsv else parse_record(line, where)
