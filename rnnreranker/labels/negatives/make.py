"""`mine_negatives` and the command: a request is checked, its negatives mined, and filters compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.errors import InputError, refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.method import Inputs
from rnnreranker.base.request import asked
from rnnreranker.data.fields import asked_fields
from rnnreranker.labels.negatives.filters import FILTERS, SIMILAR, Pool, pools, scored, threshold_at, unfiltered
from rnnreranker.labels.negatives.forms import (
    LABELED,
    OF_TEXTS,
    SUFFIXES,
    documents_in,
    labeled_pairs,
    rows_of,
    write_rows,
)
from rnnreranker.labels.negatives.mining import Mined, Toll, mine, mine_queries, toll
from rnnreranker.labels.negatives.params import DEFAULT_RATE
from rnnreranker.labels.negatives.request import NegativesRequest

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.judged import Judged
    from rnnreranker.runs import Run


@dataclass(frozen=True, eq=False)
class MinedNegatives:
    """Negatives that were mined.

    Attributes:
        request: that they are of.
        pools: the positives and candidates of every query.
        threshold: of the filter: what is above it is no negative.
        tolls: of all filters at the same share of discarded pairs, the chosen one first; empty without truth.
        topics: query id to text, empty where none were given; index: that was opened, None without one.
    """

    request: NegativesRequest
    pools: list[Pool]
    threshold: float
    tolls: list[Toll]
    topics: dict[str, str]
    index: IndexOnDisk | None

    @cached_property
    def mined(self) -> list[Mined]:
        """A query, a positive and its negatives each."""
        return mine(self.pools, self.threshold, self.request.chosen.mining)

    def write(self, output: str | Path) -> int:
        """The number of rows written: texts in .parquet and .jsonl, ids in .tsv.

        Raises:
            InputError: another suffix, labels in a file of ids, a query or document without a text.
        """
        mining = self.request.chosen.mining
        if mining.form == "labeled-pair":
            names, rows = labeled_pairs(mine_queries(self.pools, self.threshold, mining))
        else:
            names, rows = rows_of(self.mined, mining.form, mining.negatives)
        docids = set(documents_in(rows)) if _holds_texts(output) else set()
        texts = _texts(docids, self.request, self.index) if docids else {}
        write_rows(output, names, rows, self.topics, texts)
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
    """Hard negatives of a run without what is likely relevant, as `python -m rnnreranker.negatives`.

    No negative is the document whose docid is the qid, nor, where texts are known, has the text of a positive.

    Args:
        run, qrels, index, filter, topics, others: as of `NegativesRequest`.
        output: a file to write, as `MinedNegatives.write` does.

    Raises:
        InputError: everything that can be seen to be wrong, at once; no such index, topics or run.
        UnavailableError, MissingDependencyError: an index or an encoder that cannot be had here.
    """
    given = {"run": run, "qrels": qrels, "index": index, "filter": filter, "topics": topics, **others}
    request = asked(NegativesRequest, given)
    check(request, output)
    mined = mined_negatives(request)
    if output is not None:
        mined.write(output)
    return mined


def check(request: NegativesRequest, output: str | Path | None = None, *others: tuple[object, str]) -> None:
    """Refuse what can be seen to fail, before any work.

    Args:
        request: what is asked for; output: the file to write, None = none.
        others: more faults, reported with those of the request, see `refuse`.

    Raises:
        InputError: everything that is wrong; a filter that there is not, settings that it does not have.
    """
    asked_fields(request.documents, request.fields)
    chosen, needs = request.chosen, request.needs
    by_graph, no_index = chosen.source == "neighbours", request.index is None
    index, topics, documents = argument("index"), argument("topics"), argument("documents")
    of_query = f"inner products with the query: not with {argument('from', 'neighbours')}"
    shown = f"{argument('output', output)} needs"
    untold = request.topics is None
    refuse(
        (
            by_graph and chosen.name not in (*SIMILAR, "none"),
            f"{argument('filter', chosen.name)} compares {of_query}",
        ),
        (by_graph and request.truth is not None, f"{argument('truth')} compares filters of {of_query}"),
        ("neighbours" in needs and no_index, f"give {index} (its part neighbours)"),
        *others,
        (
            output is not None and not str(output).endswith(SUFFIXES),
            f"{argument('output', output)}: expected a name that ends in {', '.join(SUFFIXES)}",
        ),
        (
            chosen.mining.form in LABELED and str(output).endswith(".tsv"),
            f"{argument('output', output)}: expected a name that ends in {', '.join(OF_TEXTS)}, as "
            f"form={chosen.mining.form} has labels, and a .tsv file ids alone",
        ),
        (
            "vectors" in needs and "neighbours" not in needs and no_index,
            f"give {index} (vectors of the documents), or {argument('filter', 'none')}, which needs none",
        ),
        (
            "query vectors" in needs and untold and not request.encoded_queries,
            f"give {topics} or {argument('encoded_queries')} (vectors of the queries)",
        ),
        (_holds_texts(output) and untold, f"{shown} {topics} (texts of the queries)"),
        (
            _holds_texts(output) and no_index and not request.documents,
            f"{shown} {index} or {documents} (texts of the documents)",
        ),
    )
    request.encoding  # noqa: B018  # read now: it says what is wrong with its written form
    if output is not None:
        check_writable(output)


def mined_negatives(request: NegativesRequest) -> MinedNegatives:
    """The negatives of a request that was checked; errors as `mine_negatives`."""
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.evaluate.scores import notice_unjudged
    from rnnreranker.index.opening import open_index
    from rnnreranker.labels.judged import docids_of, positives_of
    from rnnreranker.runs import Run
    from rnnreranker.search.own_documents import without_own

    judged = positives_of(qrels_of(request.qrels), request.relevant, request.shown("qrels"))
    run = without_own(request.run if isinstance(request.run, Run) else Run.read(request.run))
    topics = {} if request.topics is None else topics_of(request.topics)
    notice_unjudged({request.shown("run"): run}, docids_of(judged), "no candidate is left out as a positive")
    wanted = [qid for qid in run if qid in judged]
    if not wanted:
        raise InputError(
            f"{request.shown('qrels')}: no query of {request.shown('run')} has a positive; give the judgements of "
            "these queries"
        )
    index = None if request.index is None else open_index(request.index)
    mining = request.chosen.mining
    mined = _pools(request, run, judged, index, topics, wanted)
    threshold = mining.threshold
    if threshold is None:
        threshold = threshold_at(mined, mining.filter, DEFAULT_RATE if mining.rate is None else mining.rate)
    mined = _without_texts_of_positives(mined, threshold, request, index)
    return MinedNegatives(request, mined, threshold, _tolls(request, mined, threshold), topics, index)


def _pools(
    request: NegativesRequest,
    run: Run,
    judged: Judged,
    index: IndexOnDisk | None,
    topics: Mapping[str, str],
    wanted: list[str],
) -> list[Pool]:
    """The pools of the queries, with what the filters that are wanted go by."""
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.search.queries import query_vectors

    chosen, needs, context = request.chosen, request.needs, request.chosen.rnn.context
    if not needs:
        return unfiltered(run, judged, context)
    assert index is not None
    queries = None
    if "query vectors" in needs:
        queries = query_vectors(request.encoding, index, topics, wanted, threads=request.threads)
        if "vectors" in needs:
            notice_mismatch(run, queries, index.vectors)
    inputs = Inputs(
        query_vectors=queries,
        vectors=index.vectors if "vectors" in needs else None,
        neighbours=index.graph if "neighbours" in needs else None,
    )
    compared = request.truth is not None
    if chosen.name in SIMILAR or compared:
        return pools(run, judged, inputs, chosen.similarities(compared), request.threads, chosen.source)
    return scored(run, judged, inputs, context)


def _without_texts_of_positives(
    several: list[Pool], threshold: float, request: NegativesRequest, index: IndexOnDisk | None
) -> list[Pool]:
    """The pools without candidates that would be chosen and have the text of a positive, white space aside.

    Only the texts of positives and of chosen negatives are read, where the index or `documents` has texts.
    """
    if not request.documents and (index is None or index.texts is None):
        return several
    mining, kept = request.chosen.mining, list(several)
    choose = mine_queries if mining.form == "labeled-pair" else mine
    looked_at, texts = list(range(len(kept))), dict[str, str]()
    while looked_at:
        chosen: dict[str, set[str]] = {}
        for one in choose([kept[number] for number in looked_at], threshold, mining):
            chosen.setdefault(one.qid, set()).update(one.negatives)
        positives = {docid for number in looked_at for docid in kept[number].positives}
        wanted = positives.union(*chosen.values()) - texts.keys()
        texts_of_docids = _texts(wanted, request, index) if wanted else {}
        texts |= {docid: " ".join(texts_of_docids.get(docid, "").split()) for docid in wanted}
        looked_at = [number for number in looked_at if kept[number].qid in chosen]
        for number in list(looked_at):
            pool = kept[number]
            relevant = {texts[docid] for docid in pool.positives} - {""}
            same = {docid for docid in chosen[pool.qid] if texts[docid] in relevant}
            if same:
                kept[number] = pool.without(same)
            else:
                looked_at.remove(number)
    return kept


def _texts(docids: Collection[str], request: NegativesRequest, index: IndexOnDisk | None) -> dict[str, str]:
    """The texts of documents, by docid; some may have none."""
    from rnnreranker.search.texts import texts_for

    return texts_for(docids, index, request.documents, asked_fields(request.documents, request.fields))


def _tolls(request: NegativesRequest, mined: list[Pool], threshold: float) -> list[Toll]:
    """What every filter does by full judgements, at the share of pairs that the chosen one discards."""
    from rnnreranker.data.qrels import qrels_of

    if request.truth is None:
        return []
    qrels = qrels_of(request.truth)
    pairs = zip(qrels["query_id"], qrels["doc_id"], strict=True)
    truth = dict(zip(pairs, qrels["relevance"].tolist(), strict=True))
    how = request.chosen.name
    chosen = toll(mined, how, threshold, truth, request.relevant)
    rate = chosen.discarded / chosen.pairs
    others = [other for other in FILTERS if other not in (how, "none")]
    return [chosen, *(toll(mined, one, threshold_at(mined, one, rate), truth, request.relevant) for one in others)]


def _holds_texts(output: str | Path | None) -> bool:
    """Whether a file of negatives is one of texts, not of ids."""
    return output is not None and not str(output).endswith(".tsv")
