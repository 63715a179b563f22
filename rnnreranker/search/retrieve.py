"""Base retrieval: dense (Faiss alone), BM25 (Pyserini) and hybrid (reciprocal rank fusion of both, Pyserini)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.command import cores, progress
from rnnreranker.errors import InputError, UnavailableError
from rnnreranker.java import start_java
from rnnreranker.runs import Run

if TYPE_CHECKING:
    from rnnreranker.search.indexes import Index
    from rnnreranker.vectors import QueryVectors, VectorSource

RETRIEVERS = ("dense", "bm25", "hybrid")


def bm25_run(index: Path, topics: Mapping[str, str], hits: int, *, threads: int, k1: float, b: float) -> Run:
    """A run of Pyserini's LuceneSearcher with BM25.

    Args:
        index: a Lucene index.
        topics: query id to text.
        hits: candidates per query, at most.
        threads: Java threads.
        k1, b: the BM25 parameters.

    Raises:
        UnavailableError: no Java 21 or newer, or the folder cannot be opened as a Lucene index.
    """
    start_java()
    from pyserini.search.lucene import LuceneSearcher

    try:
        searcher = LuceneSearcher(str(index))
    except Exception as error:  # Java's exceptions share no Python base
        raise UnavailableError(f"{index}: cannot be opened as a Lucene index ({str(error).splitlines()[0]})") from None
    searcher.set_bm25(k1, b)
    found = searcher.batch_search(list(topics.values()), list(topics), k=hits, threads=threads)
    searcher.close()
    return Run.from_dict({qid: {hit.docid: float(hit.score) for hit in found.get(qid, ())} for qid in topics})


def hybrid_run(dense: Run, sparse: Run, hits: int) -> Run:
    """Two runs fused by the sum of 1 / (60 + rank), the `hits` best of every query; one may have nothing for a query.

    Raises:
        UnavailableError: Pyserini cannot be imported.
    """
    start_java()
    from pyserini.fusion import reciprocal_rank_fusion
    from pyserini.trectools import RescoreMethod, TrecRun

    fused: dict[str, dict[str, float]] = {}
    for qid in progress(dense.qids, unit="queries", what="fuse"):
        parts = []
        for run in (dense, sparse):
            entries = run[qid] if qid in run else []  # noqa: SIM401  a Run is no dict
            lines = [(qid, "Q0", docid, rank, score, "-") for rank, (docid, score) in enumerate(entries, 1)]
            if lines:
                parts.append(TrecRun.from_list(lines))
        if not parts:
            fused[qid] = {}
            continue
        if len(parts) == 2:
            merged = reciprocal_rank_fusion(parts)
        else:  # only one retriever found something; Pyserini fuses no fewer than two
            merged = parts[0].rescore(method=RescoreMethod.RRF, rrf_k=60)
        fused[qid] = dict(zip(merged.run_data["docid"], merged.run_data["score"], strict=True))
    return Run.from_dict(fused).head(hits)


def dense_run(source: VectorSource, queries: QueryVectors, hits: int, *, threads: int | None, batch_size: int) -> Run:
    """A run of exact inner products, or of what an approximate Faiss index finds; no JVM.

    Args:
        source: the vectors of the documents.
        queries: (Q, d) float32 vectors with their ids.
        hits: candidates per query, at most.
        threads: None = one per core; batch_size: queries searched at a time. Results depend on neither.

    Raises:
        InputError: vectors of another dimension than the queries, or with NaN or infinite values.
    """
    dimension = queries.vectors.shape[1]
    if dimension != source.dimension:
        raise InputError(
            f"query vectors have {dimension} dimensions, the index has {source.dimension}; "
            "encode the queries with the encoder that made the index"
        )
    scores, rows = [], []
    for first in progress(range(0, len(queries.qids), batch_size), unit="batches", what="search"):
        found = source.search(queries.vectors[first : first + batch_size], hits, threads)
        scores.extend(found[0])
        rows.extend(found[1])
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    used, inverse = np.unique(np.concatenate(rows), return_inverse=True)
    docids = np.array([source.docids[row] for row in used], dtype=object)
    return Run.from_parts(queries.qids, offsets, docids, inverse.astype(np.int32), np.concatenate(scores))


def retrieve(
    retriever: str,
    index: Index,
    topics: Mapping[str, str],
    queries: QueryVectors | None,
    *,
    hits: int,
    threads: int | None,
    batch_size: int,
    k1: float,
    b: float,
) -> Run:
    """The run of a named retriever: `dense`, `bm25` or `hybrid` (see the functions above for the arguments).

    Raises:
        InputError: the index lacks the part that the retriever needs.
        UnavailableError: BM25 or hybrid without Java 21 or newer.
    """
    runs = []
    if retriever != "bm25":
        if queries is None:
            raise InputError(f"the retriever {retriever} needs query vectors")
        runs.append(dense_run(index.vectors, queries, hits, threads=threads, batch_size=batch_size))
    if retriever != "dense":
        runs.append(bm25_run(index.lucene, topics, hits, threads=threads or cores(), k1=k1, b=b))
    return runs[0] if len(runs) == 1 else hybrid_run(runs[0], runs[1], hits)
