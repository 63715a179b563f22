"""`python -m rnnreranker`: which commands there are."""

from __future__ import annotations

from rnnreranker import __version__

COMMANDS = {
    "index": "documents to vectors (Faiss folder) and BM25 (Lucene)",
    "search": "topics to candidates, reranked: a run, a table or an evaluation",
    "evaluate": "runs and qrels to measures, differences and tests",
    "pool": "runs to a judgement sheet, and back to qrels",
    "diagnose": "a run and its vectors to a forecast, without judgements",
    "recover": "topics with several positives to how well one finds the others",
    "tune": "topics and qrels to parameters, with their value on unseen topics",
    "labels": "a run and sparse judgements to soft labels for training",
    "train": "soft labels and fixed vectors to a better query encoder",
    "negatives": "a run and judgements to hard negatives without likely positives",
    "study": "every way of training, with seeds, tested on unseen queries",
    "regress": "specs to values, compared with those on record, and pages",
    "bench": "what a reranked query costs on this machine",
}

if __name__ == "__main__":
    print(f"rnnreranker {__version__}: python -m rnnreranker.COMMAND --help")
    for name, what in COMMANDS.items():
        print(f"  {name:9} {what}")
