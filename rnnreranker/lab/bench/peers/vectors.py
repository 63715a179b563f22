"""Vectors beside peers: the graph of a collection, and what it brings."""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.lab.bench.peers.tasks import PeerTask, Work, same_share
from rnnreranker.lab.bench.synthetic import collection
from rnnreranker.methods.retrieve.base import run_of_rows
from rnnreranker.parts.neighbours import open_neighbours
from rnnreranker.parts.neighbours.files import write_graph
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.vectors import QueryVectors, VectorSource, open_vectors
from rnnreranker.runs import Run

K = 16
CANDIDATES = 60
SAME = 10  # documents of a query that are compared


class OfVectors(PeerTask):
    """A task over a made-up collection of unit vectors, on disk as an index has them."""

    @property
    def size(self) -> str:
        """Documents and dimension."""
        return f"{self.sizes.documents} x {self.sizes.dimension}"

    @cached_property
    def made(self) -> tuple[np.ndarray, np.ndarray]:
        """Documents and queries."""
        return collection(self.sizes.documents, self.sizes.queries, self.sizes.dimension)

    def write(self) -> None:
        """Vectors and docids."""
        np.save(self.folder / "vectors.npy", self.made[0])
        (self.folder / "docid").write_text("".join(f"d{row}\n" for row in range(self.sizes.documents)))

    @cached_property
    def source(self) -> VectorSource:
        """The vectors."""
        return open_vectors(self.folder)

    def flex(self) -> Any:
        """The same as pyterrier_dr has them."""
        from pyterrier_dr import FlexIndex

        path, vectors = self.folder / "flex", np.load(self.folder / "vectors.npy")
        if not path.exists():
            FlexIndex(path).index([{"docno": f"d{row}", "doc_vec": vector} for row, vector in enumerate(vectors)])
        return FlexIndex(path)


class Graph(OfVectors):
    """The 16 nearest of every document."""

    name = "exact graph of 16 nearest"
    peers = ("faiss", "pyterrier_dr", "sklearn")
    of_process = True

    def ours(self) -> Work:
        """`write_graph`, the files included."""

        def work() -> Path:
            write_graph(DenseNeighbours(open_vectors(self.folder)), self.folder / "neighbours", K, threads=1)
            return self.folder

        return work

    def by_faiss(self) -> Work:
        """`IndexFlatIP`."""
        import faiss

        vectors = np.load(self.folder / "vectors.npy")

        def work() -> np.ndarray:
            index = faiss.IndexFlatIP(vectors.shape[1])
            index.add(vectors)
            edges: np.ndarray = index.search(vectors, K + 1)[1]
            return edges

        return work

    def by_sklearn(self) -> Work:
        """`NearestNeighbors` by brute force."""
        from sklearn.neighbors import NearestNeighbors

        vectors = np.load(self.folder / "vectors.npy")

        def work() -> np.ndarray:
            searched = NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=1).fit(vectors)
            edges: np.ndarray = searched.kneighbors(return_distance=False)
            return edges

        return work

    def by_pyterrier_dr(self) -> Work:
        """`corpus_graph`, the files included."""
        self.flex()

        def work() -> np.ndarray:
            shutil.rmtree(self.folder / "flex" / f"corpusgraph_k{K}", ignore_errors=True)
            return np.asarray(self.flex().corpus_graph(K).edges_data)

        return work

    def agreement(self, peer: str, ours: Path, theirs: np.ndarray) -> str:
        """Edges, in their order."""
        if peer == "faiss":  # the document itself falls out, or the last
            others = theirs != np.arange(len(theirs))[:, None]
            others[others.all(axis=1), -1] = False
            theirs = theirs[others].reshape(len(theirs), -1)
        mine = open_neighbours(ours).neighbours(np.arange(len(theirs)), K)
        return same_share(mine.ravel().tolist(), theirs.ravel().tolist(), "edges")


class OfCandidates(OfVectors):
    """A task over the candidates of queries, those with the largest inner products; seconds are of one query."""

    depth = CANDIDATES

    @property
    def each(self) -> int:
        """The queries."""
        return len(self.queries)

    @cached_property
    def queries(self) -> QueryVectors:
        """Their vectors."""
        vectors = self.made[1]
        return QueryVectors(tuple(f"q{number:04d}" for number in range(len(vectors))), vectors)

    @cached_property
    def best(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores and rows of the candidates."""
        return self.source.search(self.queries.vectors, self.depth)

    @cached_property
    def run(self) -> Run:
        """The same as a run."""
        return run_of_rows(self.queries.qids, self.source.docids, *self.best)

    def frame(self, *, vectors: bool) -> Any:
        """The same as pyterrier has it, with the vectors of queries, or of documents."""
        import pandas

        table = pandas.DataFrame(
            {
                "qid": np.repeat(np.array(self.queries.qids, dtype=object), np.diff(self.run.offsets)),
                "docno": np.asarray(self.run.docids[self.run.rows]),
                "score": self.run.scores,
                "rank": self.run.ranks - 1,
            }
        )
        if vectors:
            table["doc_vec"] = list(self.source.fetch(np.concatenate(self.best[1])))
            return table
        table["query_vec"] = [self.queries.vectors[number] for number in self.run.queries]
        return table.assign(query="")

    def agreement(self, peer: str, ours: Run, theirs: Any) -> str:
        """The first ten documents of every query, in their order."""
        if peer == "pyterrier_dr":
            table = theirs.sort_values(["qid", "rank"])
            docids_of = {qid: own["docno"].tolist() for qid, own in table.groupby("qid")}
            names = [docids_of[qid][:SAME] for qid in ours]
        else:
            names = [[f"d{row}" for row in rows[:SAME]] for rows in theirs]
        return same_share([[docid for docid, _ in ours[qid]][:SAME] for qid in ours], names, "queries' first ten")


class Expanding(OfCandidates):
    """Candidates from the graph, dense retrieval among them."""

    depth = 1000
    peers = ("pyterrier_dr",)
    method: ClassVar[str] = "ladr"
    settings: ClassVar[dict[str, str]] = {"variant": "proactive"}

    @property
    def size(self) -> str:
        """As before, and the candidates."""
        return f"{super().size}, {min(self.depth, self.sizes.documents)} candidates"

    @cached_property
    def queries(self) -> QueryVectors:
        """Some of them."""
        queries = super().queries
        return queries.of(queries.qids[: self.sizes.asked])

    def ours(self) -> Work:
        """The expander."""
        write_graph(DenseNeighbours(self.source), self.folder / "neighbours", K, threads=1)
        inputs = Inputs(neighbours=open_neighbours(self.folder), vectors=self.source, query_vectors=self.queries)
        expander, run = (
            find("expander", self.method)(inputs, make_params("expander", self.method, self.settings)),
            self.run,
        )
        return lambda: expander.expand(run)

    def by_pyterrier_dr(self) -> Work:
        """Its transformer, in memory."""
        index, frame = self.flex(), self.frame(vectors=False)
        index.corpus_graph(K)
        made = {"gar": index.gar, "proactive": index.ladr_proactive, "adaptive": index.ladr_adaptive}
        transformer = made[str(self.settings.get("variant", self.method))](K)
        return lambda: transformer.transform(frame)


class Proactive(Expanding):
    """All neighbours of all candidates."""

    name = "LADR, proactive"


class Adaptive(Expanding):
    """Those of the best, until no new one comes."""

    name = "LADR, adaptive"
    settings: ClassVar[dict[str, str]] = {"variant": "adaptive"}


class AdaptiveOfFew(Adaptive):
    """The same of fewer candidates."""

    name = "LADR, adaptive, few"
    depth = 100


class Gar(Expanding):
    """Candidates and neighbours in turn."""

    name = "GAR"
    method = "gar"
    settings: ClassVar[dict[str, str]] = {}


TASKS: tuple[type[PeerTask], ...] = (Graph, Proactive, Adaptive, AdaptiveOfFew, Gar)
