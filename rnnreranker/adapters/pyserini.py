"""A reranking searcher for Pyserini: existing scripts change one line."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError, array_of, count_of
from rnnreranker.base.java import check_fork
from rnnreranker.methods.rerank.rnn import RnnReranker
from rnnreranker.parts.neighbours import NeighbourGraph
from rnnreranker.parts.vectors import QueryVectors, VectorSource, open_vectors
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.hits import params_of
from rnnreranker.runs import Run


class RnnSearcher:
    """Wraps a searcher: `search` and `batch_search` rerank its hits by reciprocal nearest neighbours.

    Works with FaissSearcher, LuceneSearcher, LuceneImpactSearcher, LuceneHnswDenseSearcher, LuceneFlatDenseSearcher,
    HybridSearcher, and anything with their `search` and `batch_search`. Hits keep their type; other attributes are the
    wrapped searcher's (`searcher.doc(docid)`, `set_bm25`, ...).

    Args:
        searcher: of Pyserini 1.x or 2.x.
        vectors: document vectors, or a path for `open_vectors`; None = the searcher's own. A graph of `open_neighbours`
            needs neither vectors nor an encoder.
        params: rNN parameters, or a mapping of some; the searcher returns at least `params.context` candidates.
        encoder: of queries: an object with `encode`, or the name or folder of an encoder; None = the searcher's own.
        queries: with a graph, "run" if the searcher's scores are inner products of the graph's vectors; else "none".
        threads: of reranking; None = one per core.

    Raises:
        InputError: no vectors or no encoder, neither given nor the searcher's; an encoder with a graph.

    Example::

        searcher = RnnSearcher(LuceneSearcher("bm25-index"), "my-index", encoder="minilm")
    """

    def __init__(
        self,
        searcher: Any,
        vectors: VectorSource | NeighbourGraph | str | os.PathLike[str] | None = None,
        params: RnnParams | Mapping[str, Any] | None = None,
        *,
        encoder: Any = None,
        queries: Literal["run", "none"] | None = None,
        threads: int | None = None,
        missing: Literal["error", "skip"] = "error",
    ) -> None:
        self.searcher, params = searcher, params_of(params)
        graph = isinstance(vectors, NeighbourGraph)
        if (graph and encoder is not None) or (not graph and queries is not None):
            raise InputError("encoder is for vectors, queries is for a graph of neighbours; leave the other out")
        source: Any = _own_vectors(searcher) if vectors is None else vectors
        source = open_vectors(source) if isinstance(source, (str, os.PathLike)) else source
        self.reranker = RnnReranker(source, params, queries=queries, threads=threads, missing=missing)
        self._encode = None if graph else _encoder(searcher, encoder)
        self._encodes_first = not graph and encoder is None and _takes_arrays(searcher)

    def search(self, q: Any, k: int = 10, **options: Any) -> list[Any]:
        """The k best reranked hits of one query; options: of the wrapped searcher.

        q: text; for a FaissSearcher also a vector, (d,) or (1, d).

        Raises:
            InputError: k below 1, a hit without a vector, a vector of another dimension.
        """
        asked = self._asked(k, options)
        given = self._vectors([q]) if self._encodes_first else q
        return self._reranked({"q": self.searcher.search(given, **asked)}, {"q": given})["q"][:k]

    def batch_search(
        self, queries: Sequence[Any], qids: Sequence[str], k: int = 10, threads: int = 1, **options: Any
    ) -> dict[str, list[Any]]:
        """The k best reranked hits of every query, by query id; threads, options: of the wrapped searcher.

        queries: Q texts; for a FaissSearcher also (Q, d) vectors; qids: Q query ids.

        Raises:
            InputError: as `search`, and another number of ids than queries.
        """
        if len(queries) != len(qids):
            raise InputError(f"{len(queries)} queries and {len(qids)} query ids: expected as many")
        asked = self._asked(k, options)
        given = self._vectors(queries) if self._encodes_first and len(queries) else queries
        by_query = self.searcher.batch_search(given, qids, threads=threads, **asked)
        hits = {qid: list(by_query[qid]) for qid in qids if qid in by_query}
        return {qid: ranked[:k] for qid, ranked in self._reranked(hits, dict(zip(qids, given, strict=True))).items()}

    def __getattr__(self, name: str) -> Any:
        if name == "searcher":  # asked for before it is set, as when copied
            raise AttributeError(name)
        return getattr(self.searcher, name)

    def _asked(self, k: int, options: dict[str, Any]) -> dict[str, Any]:
        k = count_of(k, "k")
        if options.get("return_vector"):
            raise InputError("return_vector=True: hits with their vectors are not reranked; ask the searcher itself")
        for one in (self.searcher, getattr(self.searcher, "sparse_searcher", None)):
            if type(one).__module__.startswith("pyserini.search.lucene"):
                check_fork()
        depth = max(k, self.reranker.params.context)
        if hasattr(self.searcher, "dense_searcher"):  # HybridSearcher: k0 of each of its two searchers
            options = {"k0": depth} | options
        return {**options, "k": depth}

    def _reranked(self, hits: dict[str, list[Any]], queries: dict[str, Any]) -> dict[str, list[Any]]:
        best = {qid: {str(hit.docid): hit for hit in reversed(own)} for qid, own in hits.items() if own}
        if not best:
            return hits
        run = Run.from_dict(  # query ids may be numbers
            {str(qid): {docid: float(hit.score) for docid, hit in own.items()} for qid, own in best.items()}
        )
        vectors = None
        if "query vectors" in self.reranker.needs:
            vectors = QueryVectors(tuple(map(str, best)), self._vectors([queries[qid] for qid in best]))
        new = self.reranker.rerank(run, vectors)
        ranked = {qid: [_scored(own[docid], score) for docid, score in new[str(qid)]] for qid, own in best.items()}
        return {qid: ranked.get(qid, []) for qid in hits}

    def _vectors(self, queries: Sequence[Any]) -> np.ndarray:
        """(Q, d) float32 of vectors, or of texts."""
        given = list(queries)
        if not all(hasattr(query, "shape") for query in given):
            if self._encode is None:
                raise InputError(
                    f"query {str(given[0])!r}: {type(self.searcher).__name__} has no query encoder for Python; give "
                    "encoder, the one that made the document vectors"
                )
            given = list(self._encode(given))
        return array_of(given, "query vectors").astype(np.float32).reshape(len(given), -1)


def _own_vectors(searcher: Any) -> VectorSource:
    dense = _dense(searcher)
    index, docids = getattr(dense, "index", None), getattr(dense, "docids", None)
    if index is not None and docids is not None and hasattr(index, "reconstruct_batch"):
        from rnnreranker.parts.vectors.faiss_folder import FaissVectors

        return FaissVectors(index, list(docids))
    raise InputError(
        f"{type(searcher).__name__} has no document vectors of its own; "
        "give vectors, such as the path of a dense index of the same documents"
    )


def _encoder(searcher: Any, given: Any) -> Callable[[list[Any]], Iterable[Any]] | None:
    from rnnreranker.encode.kinds import Encoder

    dense = _dense(searcher)
    if given is None and hasattr(dense, "index"):
        given = getattr(dense, "query_encoder", None)
    if isinstance(given, (str, os.PathLike)):
        given = Encoder.open(str(given))
    if isinstance(given, Encoder):  # ours takes many texts at once
        return lambda texts: iter(given.encode(texts))
    if given is not None:
        one = given.encode
        return lambda queries: [one(**query) if isinstance(query, dict) else one(query) for query in queries]
    if _takes_arrays(dense):
        return None
    raise InputError(
        f"{type(searcher).__name__} has no dense query encoder of its own; give encoder, the one that made the "
        "document vectors"
    )


def _dense(searcher: Any) -> Any:
    return getattr(searcher, "dense_searcher", searcher)


def _takes_arrays(searcher: Any) -> bool:
    """Whether queries can be vectors: true of a FaissSearcher, not of the binary one, which encodes queries twice."""
    return hasattr(searcher, "index") and hasattr(searcher, "docids") and not hasattr(searcher, "binary_dense_search")


def _scored(hit: Any, score: float) -> Any:
    """The hit with its new score: a copy of a Python object; a Java object is changed."""
    if type(hit).__module__.startswith("jnius"):
        hit.score = score
        return hit
    new = copy.copy(hit)
    new.score = score
    return new
