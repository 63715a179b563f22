"""A searcher of Pyserini that reranks what it finds: existing scripts change the line that makes the searcher."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.rerank import RnnReranker
from rnnreranker.runs import Run
from rnnreranker.vectors import QueryVectors, open_vectors

if TYPE_CHECKING:
    from rnnreranker.rnn import RnnParams
    from rnnreranker.vectors import VectorSource


class RnnSearcher:
    """Wraps a searcher: `search` and `batch_search` return what it returns, reranked by reciprocal nearest neighbours.

    Works with FaissSearcher, LuceneSearcher, LuceneImpactSearcher, LuceneHnswDenseSearcher, LuceneFlatDenseSearcher,
    HybridSearcher, and anything with their `search(q, k=)` and `batch_search(queries, qids, k=, threads=)`. Results are
    of the same type, in the new order, with the new scores. Everything else is the wrapped searcher's own
    (`searcher.doc(docid)`, `set_bm25`, ...).

    Args:
        searcher: of Pyserini 1.x or 2.x.
        vectors: document vectors, or a path that `open_vectors` takes; None = the index of a FaissSearcher.
        params: rNN parameters; at least `params.context` candidates are asked for, whatever k is.
        encoder: what encodes queries for the vectors: anything with `encode`, of Pyserini or of ours, or a name or
            folder of an encoder. None = the searcher's own `query_encoder`.
        threads: of reranking; None = one per core.
        missing: as in `RnnReranker`.

    Raises:
        InputError: no vectors, or no encoder, and the searcher has none of its own.

    Example::

        searcher = RnnSearcher(LuceneSearcher("bm25-index"), "my-index", encoder="minilm")
        hits = searcher.search("what is a reciprocal neighbour", k=10)
    """

    def __init__(
        self,
        searcher: Any,
        vectors: VectorSource | str | os.PathLike[str] | None = None,
        params: RnnParams | None = None,
        *,
        encoder: Any = None,
        threads: int | None = None,
        missing: Literal["error", "skip"] = "error",
    ) -> None:
        self.searcher = searcher
        source = _own_vectors(searcher) if vectors is None else vectors
        opened = open_vectors(source) if isinstance(source, (str, os.PathLike)) else source
        self.reranker = RnnReranker(opened, params, threads=threads, missing=missing)
        self._encoder = _encoder(searcher, encoder)

    def search(self, q: Any, k: int = 10, **options: Any) -> list[Any]:
        """The k best of the reranked hits of one query, as the wrapped searcher gives them.

        Args:
            q: text; for a FaissSearcher also a vector, (d,) or (1, d).
            k: hits returned.
            options: handed on to the wrapped searcher.

        Raises:
            InputError: k below 1, a hit without a vector, a vector of another dimension.
        """
        hits = self.searcher.search(q, **self._asked(k, options))
        return self._reranked({"q": hits}, {"q": q})["q"][:k]

    def batch_search(
        self, queries: Sequence[Any], qids: Sequence[str], k: int = 10, threads: int = 1, **options: Any
    ) -> dict[str, list[Any]]:
        """The k best of the reranked hits of every query, by query id.

        Args:
            queries: Q texts; for a FaissSearcher also (Q, d) vectors.
            qids: Q query ids.
            k: hits returned for each.
            threads: of the wrapped searcher.
            options: handed on to it.

        Raises:
            InputError: as `search`, and another number of ids than queries.
        """
        if len(queries) != len(qids):
            raise InputError(f"{len(queries)} queries and {len(qids)} query ids: expected as many")
        found = self.searcher.batch_search(queries, qids, threads=threads, **self._asked(k, options))
        hits = {str(qid): list(found[qid]) for qid in qids if qid in found}
        by_id = {str(qid): query for qid, query in zip(qids, queries, strict=True)}
        return {qid: ranked[:k] for qid, ranked in self._reranked(hits, by_id).items()}

    def __getattr__(self, name: str) -> Any:
        if name == "searcher":  # asked for before it is set, as when copied
            raise AttributeError(name)
        return getattr(self.searcher, name)

    def _asked(self, k: int, options: dict[str, Any]) -> dict[str, Any]:
        """The options of the wrapped search, with enough candidates for the context."""
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise InputError(f"k={k!r}: expected an integer >= 1")
        depth = max(k, self.reranker.params.context)
        if hasattr(self.searcher, "dense_searcher"):  # HybridSearcher: k0 of each of its two searchers
            options = {"k0": depth} | options
        return {**options, "k": depth}

    def _reranked(self, hits: dict[str, list[Any]], queries: dict[str, Any]) -> dict[str, list[Any]]:
        filled = {qid: _best(found) for qid, found in hits.items() if found}
        if not filled:
            return hits
        scores = {qid: {docid: float(hit.score) for docid, hit in found.items()} for qid, found in filled.items()}
        run = Run.from_dict(scores)
        vectors = np.stack([self._vector(queries[qid]) for qid in run.qids])
        new = self.reranker.rerank(run, QueryVectors(run.qids, vectors))
        ranked = {qid: [_scored(filled[qid][docid], score) for docid, score in new[qid]] for qid in new.qids}
        return {qid: ranked.get(qid, []) for qid in hits}

    def _vector(self, query: Any) -> np.ndarray:
        """(d,) float32: the vector of a query, which may be one already."""
        if isinstance(query, np.ndarray):
            return query.astype(np.float32).reshape(-1)
        encoded = self._encoder(**query) if isinstance(query, dict) else self._encoder(query)
        return np.asarray(encoded, dtype=np.float32).reshape(-1)


def _own_vectors(searcher: Any) -> VectorSource:
    """The index that a FaissSearcher has in memory, as a source of vectors."""
    index, docids = getattr(searcher, "index", None), getattr(searcher, "docids", None)
    if index is None or docids is None or not hasattr(index, "reconstruct_batch"):
        raise InputError(
            f"{type(searcher).__name__} has no document vectors of its own; "
            "give vectors, such as the path of a dense index of the same documents"
        )
    from rnnreranker.vectors.faiss_folder import FaissIndex

    return FaissIndex(index, list(docids))


def _encoder(searcher: Any, given: Any) -> Any:
    """A function from a text to its vector."""
    if isinstance(given, (str, os.PathLike)):
        from rnnreranker.vectors.encoder import load_encoder

        given = load_encoder(str(given))
    if given is None:
        dense = getattr(searcher, "dense_searcher", searcher)  # of a HybridSearcher
        given = getattr(dense, "query_encoder", None) if hasattr(dense, "index") else None
        if given is None:
            raise InputError(
                f"{type(searcher).__name__} has no dense query encoder of its own; give encoder, the one that made the "
                "document vectors"
            )
    from rnnreranker.vectors.encoder import Encoder

    if isinstance(given, Encoder):  # ours takes many texts at once
        return lambda text: given.encode([text])[0]
    return given.encode


def _best(hits: Sequence[Any]) -> dict[str, Any]:
    """Hits by docid; of one that is there twice, as segments of a document can be, the first."""
    found: dict[str, Any] = {}
    for hit in hits:
        found.setdefault(str(hit.docid), hit)
    return found


def _scored(hit: Any, score: float) -> Any:
    """The hit with its new score; Python's are copied, Java's, which cannot be, are changed."""
    if type(hit).__module__.startswith("jnius"):
        hit.score = score
        return hit
    new = copy.copy(hit)
    new.score = score
    return new
