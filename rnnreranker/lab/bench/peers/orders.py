"""Candidates beside peers: in a new order, by tokens, and as hard negatives."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.lab.bench.peers.tasks import PeerTask, Work, largest_difference
from rnnreranker.lab.bench.peers.vectors import CANDIDATES, OfCandidates
from rnnreranker.lab.bench.synthetic import collection, contexts
from rnnreranker.methods.retrieve.base import run_of_rows
from rnnreranker.parts.vectors import QueryVectors, open_vectors
from rnnreranker.rnn import maxsim
from rnnreranker.runs import Run

FEEDBACK, ALPHA, BETA = 5, 0.4, 0.6  # Rocchio's, as `prf` has them
LAMBDA = 0.5
QUERY_TOKENS, TOKENS, TOKEN_DIMENSION = 32, 100, 128
MARGIN, NEGATIVES = 0.05, 3


class Prf(OfCandidates):
    """Rocchio's new query for the candidates of a run."""

    name = "vector PRF of 60 candidates"
    peers: ClassVar[tuple[str, ...]] = ("numpy",)
    reranker: ClassVar[str] = "prf"

    def ours(self) -> Work:
        """The reranker."""
        inputs, run = Inputs(vectors=self.source, query_vectors=self.queries), self.run
        reranker = find("reranker", self.reranker)(inputs, make_params("reranker", self.reranker, {}), threads=1)
        return lambda: reranker.rerank(run)

    def by_numpy(self) -> Work:
        """Rows in an array, products of float32, a stable sort."""
        vectors, queries, rows = np.load(self.folder / "vectors.npy"), self.queries.vectors, self.best[1]

        def work() -> list[np.ndarray]:
            orders = []
            for query, own in zip(queries, rows, strict=True):
                candidates = vectors[own]
                new = ALPHA * query + BETA * candidates[:FEEDBACK].mean(axis=0)
                orders.append(own[np.argsort(-(candidates @ new), kind="stable")])
            return orders

        return work


class Mmr(Prf):
    """Maximal marginal relevance."""

    name = "MMR of 60 candidates"
    peers = ("numpy", "pyterrier_dr")
    reranker = "mmr"

    def by_numpy(self) -> Work:
        """Both parts between 0 and 1, one document taken after the other."""
        vectors, (scores, rows) = np.load(self.folder / "vectors.npy"), self.best

        def work() -> list[np.ndarray]:
            orders = []
            for score, own in zip(scores, rows, strict=True):
                candidates = vectors[own]
                alike = candidates @ candidates.T
                low = alike.min()
                alike = (alike - low) / (alike[~np.eye(len(own), dtype=bool)].max() - low)
                relevance = LAMBDA * (score - score.min()) / np.ptp(score)
                nearest, taken = np.zeros(len(own)), []
                for _ in own:
                    chosen = int((relevance - (1 - LAMBDA) * nearest).argmax())
                    taken.append(chosen)
                    nearest = np.maximum(nearest, alike[chosen])
                    nearest[chosen] = np.inf
                orders.append(own[taken])
            return orders

        return work

    def by_pyterrier_dr(self) -> Work:
        """`MmrScorer`."""
        from pyterrier_dr import MmrScorer

        scorer, frame = MmrScorer(Lambda=LAMBDA, norm_rel=True, norm_sim=True), self.frame(vectors=True)
        return lambda: scorer.transform(frame)


class MaxSim(PeerTask):
    """The sum over a query's tokens of the largest product with a document's."""

    name = "MaxSim"
    peers = ("torch",)

    @property
    def size(self) -> str:
        """Tokens of both."""
        return f"{QUERY_TOKENS} x {TOKEN_DIMENSION}, {self.sizes.scored} documents of {TOKENS}"

    @cached_property
    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the query and of the documents."""
        documents = contexts("clustered", self.sizes.scored, TOKENS - 1, TOKEN_DIMENSION)
        return contexts("clustered", 1, QUERY_TOKENS - 1, TOKEN_DIMENSION, seed=1)[0], documents

    def ours(self) -> Work:
        """`maxsim`."""
        query, documents = self.tokens
        return lambda: maxsim(query, documents, threads=1)

    def by_torch(self) -> Work:
        """Product, largest, sum."""
        import torch

        query, documents = (torch.from_numpy(tokens) for tokens in self.tokens)

        def work() -> Any:
            with torch.inference_mode():
                return (documents @ query.T).amax(dim=1).sum(dim=1).numpy()

        return work

    def agreement(self, peer: str, ours: np.ndarray, theirs: np.ndarray) -> str:
        """Scores."""
        return largest_difference(ours, theirs)


class Negatives(PeerTask):
    """Hard negatives of queries with one positive each, of given vectors; the search is included."""

    name = "hard negatives"
    peers = ("sentence_transformers",)

    @property
    def size(self) -> str:
        """Queries, documents and dimension."""
        return f"{self.sizes.queries} queries, {self.sizes.documents} x {self.sizes.dimension}"

    def write(self) -> None:
        """Vectors and docids."""
        documents, queries = collection(self.sizes.documents, self.sizes.queries, self.sizes.dimension)
        np.save(self.folder / "vectors.npy", documents)
        np.save(self.folder / "queries.npy", queries)
        (self.folder / "docid").write_text("".join(f"d{row}\n" for row in range(len(documents))))

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Query and positive, the third that a search would bring."""
        documents, queries = np.load(self.folder / "vectors.npy"), np.load(self.folder / "queries.npy")
        third = np.argsort(-(queries @ documents.T), axis=1)[:, 2]
        return [(f"q{number:04d}", f"d{row}") for number, row in enumerate(third.tolist())]

    def ours(self) -> Work:
        """Search, `scored` and `mine` by the filter margin."""
        from rnnreranker.labels.negatives.filters import scored
        from rnnreranker.labels.negatives.forms import Row, rows_of
        from rnnreranker.labels.negatives.mining import mine
        from rnnreranker.labels.negatives.params import NegativeParams

        source = open_vectors(self.folder)
        queries = QueryVectors(tuple(qid for qid, _ in self.pairs), np.load(self.folder / "queries.npy"))
        judged, inputs = {qid: [(docid, 1)] for qid, docid in self.pairs}, Inputs(query_vectors=queries, vectors=source)
        params = NegativeParams(filter="margin", threshold=-MARGIN, form="n-tuple", negatives=NEGATIVES)

        def work() -> list[Row]:
            run: Run = run_of_rows(queries.qids, source.docids, *source.search(queries.vectors, CANDIDATES))
            return rows_of(mine(scored(run, judged, inputs, CANDIDATES), -MARGIN, params), "n-tuple", NEGATIVES)[1]

        return work

    def by_sentence_transformers(self) -> Work:
        """`mine_hard_negatives` with a model that has all vectors."""
        from datasets import Dataset
        from sentence_transformers import util

        vectors = {
            **{f"q{row:04d}": vector for row, vector in enumerate(np.load(self.folder / "queries.npy"))},
            **{f"d{row}": vector for row, vector in enumerate(np.load(self.folder / "vectors.npy"))},
        }
        made_up: Any = _Given(vectors)
        corpus = [f"d{row}" for row in range(self.sizes.documents)]
        anchors, positives = zip(*self.pairs, strict=True)
        table = Dataset.from_dict({"anchor": list(anchors), "positive": list(positives)})
        settings: dict[str, Any] = {"range_max": CANDIDATES - 1, "absolute_margin": MARGIN, "num_negatives": NEGATIVES}

        def work() -> list[tuple[str, ...]]:
            mined = util.mine_hard_negatives(
                table, made_up, corpus=corpus, output_format="n-tuple", verbose=False, **settings
            )
            return [tuple(row.values()) for row in mined]

        return work

    def agreement(self, peer: str, ours: list[tuple[str, ...]], theirs: list[tuple[str, ...]]) -> str:
        """Rows of both."""
        return f"{len(set(ours) & set(theirs))} of {len(ours)} rows, {len(theirs)} theirs"


class _Given:
    """What `mine_hard_negatives` asks of a model, its vectors being there."""

    device = "cpu"

    def __init__(self, vectors: dict[str, np.ndarray]) -> None:
        self.vectors = vectors

    def encode_document(self, texts: list[str], **_: Any) -> np.ndarray:
        """The vectors of texts, which are ids."""
        return np.stack([self.vectors[text] for text in texts])

    encode_query = encode_document

    def similarity(self, queries: Any, documents: Any) -> Any:
        """Inner products."""
        from sentence_transformers.util import dot_score

        return dot_score(queries, documents)

    def similarity_pairwise(self, queries: Any, documents: Any) -> Any:
        """Inner products of pairs."""
        from sentence_transformers.util import pairwise_dot_score

        return pairwise_dot_score(queries, documents)


TASKS: tuple[type[PeerTask], ...] = (Prf, Mmr, MaxSim, Negatives)
