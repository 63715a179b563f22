"""`mine_negatives` and the command: mines, writes and reads negatives, and compares filters."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, naming
from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.files import check_writable, read_lines, write_atomically
from rnnreranker.base.files.json_files import parse_record
from rnnreranker.base.method import Inputs, fields_of, find
from rnnreranker.base.request import asked
from rnnreranker.base.settings import hints_of, setting
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import asked_fields
from rnnreranker.data.records import of_parquet
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.make import given_by, made_of, opened
from rnnreranker.labels.methods.base import Source
from rnnreranker.labels.negatives.filters import (
    DEFAULT_RATE,
    FILTERS,
    SIMILAR,
    Mined,
    NegativeParams,
    Pool,
    Toll,
    mine,
    pools,
    threshold_at,
    toll,
)
from rnnreranker.labels.request import SOURCE, ChosenLabeler, JudgedRunRequest, choose_labeler
from rnnreranker.search.inputs import texts_for

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.runs import Run

OF_MINING = tuple(name for name in hints_of(NegativeParams) if name != "filter")


@dataclass(frozen=True)
class ChosenFilter:
    """A filter with checked settings.

    mining: the filter and the choice of negatives; similar: filter of `SIMILAR` → its labels.
    """

    mining: NegativeParams
    similar: dict[str, ChosenLabeler]

    @property
    def source(self) -> Source:
        return self.similar["rnn"].source

    def labelers(self, compared: bool) -> dict[str, ChosenLabeler]:
        """The needed labels of `similar`; compared: all filters are needed."""
        how = self.mining.filter
        if how == "none" and (self.source == "neighbours" or not compared):
            return {}
        return self.similar if compared else {one: self.similar[one] for one in [how if how in SIMILAR else "rnn"]}


def choose_filter(form: Form, of: str = "") -> ChosenFilter:
    """The filter of a written form, `rnn:rate=0.1,negatives=5,k=21,preset=tas-b,from=neighbours`.

    of: name of the argument, for messages.

    Raises:
        InputError: unknown filter, setting, preset or source, values out of range.
    """
    with naming(of, form):
        written = Written.read(form)
        if written.name not in FILTERS:
            raise InputError(f"{written.name}: no such filter; {nearest(written.name, FILTERS)}")
        own = {how: {SOURCE, *(one.name for one in fields_of(find("labeler", SIMILAR[how])))} for how in SIMILAR}
        known = [*OF_MINING, *own["joint"]]
        if unknown := [name for name in written.params if name not in known]:
            raise InputError("; ".join(f"no setting {name}, {nearest(str(name), known)}" for name in unknown))
        mining = {name: value for name, value in written.params.items() if name in OF_MINING}
        similar = {}
        for how, names in own.items():
            given = {name: value for name, value in written.params.items() if name in names}
            similar[how] = choose_labeler(Written(SIMILAR[how], given, written.preset))
        return ChosenFilter(NegativeParams.of({"filter": written.name, **mining}), similar)


@dataclass(frozen=True)
class NegativesRequest(JudgedRunRequest):
    """Negatives to mine: the arguments of `mine_negatives`, and the flags of the command.

    Attributes:
        filter: written form, see `choose_filter`.
        truth: fuller judgements that compare all filters.
        threads: None = one per core; negatives do not depend on it.
    """

    filter: Form = setting("rnn", "what is discarded: " + ", ".join(FILTERS))
    truth: Qrels | None = setting(None, "full judgements: print what each filter removes and loses")
    threads: int | None = setting(None, "default: one per core", at_least=1)

    @cached_property
    def chosen(self) -> ChosenFilter:
        return choose_filter(self.filter, "filter")

    @cached_property
    def labelers(self) -> dict[str, ChosenLabeler]:
        return self.chosen.labelers(self.truth is not None)

    @cached_property
    def needs(self) -> frozenset[str]:
        return frozenset[str]().union(*(one.needs for one in self.labelers.values()))


@dataclass(frozen=True, eq=False)
class MinedNegatives:
    """Negatives that were mined.

    Attributes:
        pools: positives and candidates of every query.
        threshold: of the filter; pairs above it are discarded.
        tolls: of all filters at one share of discarded pairs, the chosen one first; empty without truth.
    """

    request: NegativesRequest
    pools: list[Pool]
    threshold: float
    tolls: list[Toll]
    topics: dict[str, str]
    index: IndexOnDisk | None

    @cached_property
    def mined(self) -> list[Mined]:
        return mine(self.pools, self.threshold, self.request.chosen.mining)

    def write(self, output: str | Path) -> int:
        """Write the rows: texts in .parquet and .jsonl, ids in .tsv; returns their number.

        Raises:
            InputError: another suffix, labels in a file of ids, missing texts.
        """
        mining = self.request.chosen.mining
        refuse(_of_name(output, mining.form, str(output)))
        naming: Any = str, str
        if holds_texts(output):
            docids = {docid for one in self.mined for docid in (*one.positives, *one.negatives)}
            texts = _texts(docids, self.request, self.index)
            check_texts((one.qid for one in self.mined), docids, self.topics, texts)
            naming = self.topics.__getitem__, texts.__getitem__
        names, rows = rows_of(self.mined, mining.form, mining.negatives, *naming)
        write_rows(output, names, rows)
        return len(rows)


def mine_negatives(
    run: str | Path | Run,
    qrels: Qrels,
    index: str | Path | IndexOnDisk | None = None,
    filter: Form = "rnn",
    *,
    topics: str | Path | Mapping[str, str] | None = None,
    output: str | Path | None = None,
    **others: Any,
) -> MinedNegatives:
    """Hard negatives of a run without likely positives, as `python -m rnnreranker.negatives`.

    No negative has the qid as docid, nor, if texts are known, the text of a positive.

    Args:
        run, qrels, index, filter, topics, others: as in `NegativesRequest`.
        output: a file to write, as `MinedNegatives.write` does.

    Raises:
        InputError: all faults of the request at once; a missing index, topics or run.
        UnavailableError, MissingDependencyError: a missing index or encoder.
    """
    given = {"run": run, "qrels": qrels, "index": index, "filter": filter, "topics": topics, **others}
    request = asked(NegativesRequest, given)
    check(request, output)
    mined = mined_negatives(request)
    if output is not None:
        mined.write(output)
    return mined


def check(request: NegativesRequest, output: str | Path | None = None, *others: tuple[object, str]) -> None:
    """Check a request before any work. output: the file to write or None; others: further faults, see `refuse`.

    Raises:
        InputError: all faults at once.
    """
    asked_fields(request.documents, request.fields)
    chosen, shown = request.chosen, argument("output", output)
    filter, form, by_graph = chosen.mining.filter, chosen.mining.form, chosen.source == "neighbours"
    of_query = f"inner products with the query: not with {argument('from', 'neighbours')}"
    texts: frozenset[str] = frozenset({"topics", "texts"} if output is not None and holds_texts(output) else ())
    refuse(
        (by_graph and filter not in (*SIMILAR, "none"), f"{argument('filter', filter)} compares {of_query}"),
        (by_graph and request.truth is not None, f"{argument('truth')} compares filters of {of_query}"),
        *others,
        *([] if output is None else [_of_name(output, form, shown)]),
        *request.lacking(request.needs, argument("filter", filter)),
        *request.lacking(texts, shown),
    )
    _ = request.encoding  # says what is wrong with its written form
    if output is not None:
        check_writable(output)


def mined_negatives(request: NegativesRequest) -> MinedNegatives:
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.evaluate.scores import notice_unjudged
    from rnnreranker.labels.judged import docids_of, positives_of
    from rnnreranker.runs import Run
    from rnnreranker.search.own_documents import without_own

    judged = positives_of(qrels_of(request.qrels), request.relevant, request.shown("qrels"))
    run = without_own(request.run if isinstance(request.run, Run) else Run.read(request.run))
    notice_unjudged({request.shown("run"): run}, docids_of(judged), "no candidate is left out as a positive")
    wanted = [qid for qid in run if qid in judged]
    if not wanted:
        raise InputError(
            f"{request.shown('qrels')}: no query of {request.shown('run')} has a positive; give the judgements of "
            "these queries"
        )
    chosen, mining = request.chosen, request.chosen.mining
    topics, index, queries = opened(request, request.needs, run, wanted, request.threads)
    inputs = Inputs(query_vectors=queries, **given_by(index, request.needs))
    labelers: Any = {how: made_of(one, inputs, threads=request.threads) for how, one in request.labelers.items()}
    mined = pools(run, judged, labelers, chosen.similar["rnn"].params.context)  # type: ignore[attr-defined]
    threshold = mining.threshold
    if threshold is None:
        threshold = threshold_at(mined, mining.filter, DEFAULT_RATE if mining.rate is None else mining.rate)
    mined = _without_texts_of_positives(mined, threshold, request, index)
    return MinedNegatives(request, mined, threshold, _tolls(request, mined, threshold), topics, index)


def _without_texts_of_positives(
    several: list[Pool], threshold: float, request: NegativesRequest, index: IndexOnDisk | None
) -> list[Pool]:
    """The pools without chosen candidates that have the text of a positive, white space aside."""
    kept, texts = {pool.qid: pool for pool in several}, dict[str, str]()
    todo = list(kept) if request.documents or (index is not None and index.texts is not None) else []
    while todo:
        chosen: dict[str, set[str]] = {}
        for one in mine([kept[qid] for qid in todo], threshold, request.chosen.mining):
            chosen.setdefault(one.qid, set()).update(one.negatives)
        todo = []
        wanted = {docid for qid, own in chosen.items() for docid in (*own, *kept[qid].positives)} - texts.keys()
        read = _texts(wanted, request, index)
        texts |= {docid: " ".join(read.get(docid, "").split()) for docid in wanted}
        for qid, own in chosen.items():
            relevant = {texts[docid] for docid in kept[qid].positives} - {""}
            if same := {docid for docid in own if texts[docid] in relevant}:
                kept[qid] = kept[qid].without(same)
                todo.append(qid)
    return list(kept.values())


def _texts(docids: Collection[str], request: NegativesRequest, index: IndexOnDisk | None) -> dict[str, str]:
    fields = asked_fields(request.documents, request.fields)
    return texts_for(docids, index, request.documents, fields) if docids else {}


def _tolls(request: NegativesRequest, mined: list[Pool], threshold: float) -> list[Toll]:
    """All filters by full judgements, at the chosen one's share of discarded pairs."""
    from rnnreranker.data.qrels import grades_of

    if request.truth is None:
        return []
    truth, how = grades_of(request.truth), request.chosen.mining.filter
    chosen = toll(mined, how, threshold, truth, request.relevant)
    rate = chosen.discarded / chosen.pairs
    others = [other for other in FILTERS if other not in (how, "none")]
    return [chosen, *(toll(mined, one, threshold_at(mined, one, rate), truth, request.relevant) for one in others)]


OF_TEXTS = (".parquet", ".jsonl")
SUFFIXES = (*OF_TEXTS, ".tsv")
LABELED = ("labeled-pair", "labeled-list")  # forms with a label beside every document, 1 or 0
LABEL, LABELS = "label", "labels"  # their columns, as that function names them
EXPECTED = "expected a file of python -m rnnreranker.negatives"

Row = tuple[Any, ...]  # a query, then documents or lists of them, and labels or lists of them


def _of_name(output: str | Path, form: str, shown: str) -> tuple[object, str]:
    """A fault, as in `refuse`: the suffix does not fit the form."""
    suffixes = OF_TEXTS if form in LABELED else SUFFIXES
    why = f", as form={form} has labels, and a .tsv file ids alone" if form in LABELED else ""
    return not str(output).endswith(suffixes), f"{shown}: expected a name that ends in {', '.join(suffixes)}{why}"


def holds_texts(path: str | Path) -> bool:
    return not str(path).endswith(".tsv")


def rows_of(
    mined: Sequence[Mined],
    form: str,
    negatives: int,
    query: Callable[[str], str] = str,
    document: Callable[[str], str] = str,
) -> tuple[list[str], list[Row]]:
    """Column names, and rows of query, positive, negatives: ids, or what `query` and `document` make of them.

    "triplet" has one negative a row; "n-tuple" a column for each of `negatives`; "labeled-list" lists of documents and
    labels; "labeled-pair" a document and its label.
    """
    rows: list[Row] = []
    for one in mined:
        anchor, sides = query(one.qid), (one.positives, one.negatives)
        positives, others = (tuple(map(document, side)) for side in sides)
        documents, labels = positives + others, (1,) * len(positives) + (0,) * len(others)
        if form == "labeled-pair":
            rows += [(anchor, *pair) for pair in zip(documents, labels, strict=True)]
        elif form == "labeled-list":
            rows.append((anchor, documents, labels))
        elif form == "triplet":
            rows += [(anchor, *positives, negative) for negative in others]
        elif len(others) == negatives:
            rows.append((anchor, *documents))
    numbered = [f"negative_{number}" for number in range(1, negatives + 1)]
    columns = {"labeled-pair": [LABEL], "labeled-list": [LABELS], "triplet": ["negative"], "n-tuple": numbered}
    return ["anchor", "positive", *columns[form]], rows


def write_rows(path: str | Path, names: Sequence[str], rows: Sequence[Row]) -> None:
    """Write rows: .parquet and .jsonl have the columns that losses of sentence-transformers take, .tsv no names."""
    with write_atomically(path) as stream:
        if str(path).endswith(".tsv"):
            stream.write("".join("\t".join(row) + "\n" for row in rows).encode())
        elif str(path).endswith(".jsonl"):
            records = (dict(zip(names, row, strict=True)) for row in rows)
            stream.write("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records).encode())
        else:
            import pyarrow
            import pyarrow.parquet as parquet

            columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
            parquet.write_table(pyarrow.table(columns), stream, compression="zstd")


def read_negatives(path: str | Path) -> list[Mined]:
    """Negatives of every query and positive, in the order of the file; triplets of one pair are joined.

    Ids of a .tsv file, texts of .parquet and .jsonl. In labeled pairs every positive has all negatives of its query.

    Raises:
        InputError: another suffix, no such file, incomplete rows, labels other than 0 and 1.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: {EXPECTED}, a name that ends in {', '.join(SUFFIXES)}")
    groups: dict[str, tuple[str, tuple[list[str], list[str]]]] = {}  # of rows → anchor, its negatives and positives
    for where, record in _records(path):
        label, labels = record.pop(LABEL, None), record.pop(LABELS, None)
        anchor, *documents = record.values() or [""]
        if labels is not None and documents and isinstance(documents[0], list):
            documents = documents[0]
        least = 2 if label is None and labels is None else 1
        if len(documents) < least or not all(isinstance(cell, str) and cell for cell in (anchor, *documents)):
            raise InputError(f"{where}: no anchor, positive and negative in it; {EXPECTED}")
        labels = [1, *(0 for _ in documents[1:])] if least == 2 else labels if label is None else [label]
        if not isinstance(labels, list) or len(labels) != len(documents) or not {*labels} <= {0, 1}:
            raise InputError(f"{where}: labels {labels}: expected 0 or 1 for every document; {EXPECTED}")
        group = groups.setdefault(where if label is None else anchor, (anchor, ([], [])))
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
