"""How large the measured work is: in full, and for a quick look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PeerSizes:
    """How large the tasks are that are done beside peers.

    documents, dimension, queries: of a made-up collection; asked: queries of its graph's tasks; run_queries,
    run_depth: of a run that is read, written and measured; fused: queries of two runs of 1,000 that are fused;
    texts, questions: of BM25; encoded: texts; scored: documents of MaxSim.
    """

    documents: int
    dimension: int
    queries: int
    asked: int
    run_queries: int
    run_depth: int
    fused: int
    texts: int
    questions: int
    encoded: int
    scored: int


@dataclass(frozen=True)
class Sizes:
    """How large the measured work is. contexts: N; files: (queries, depth, context); corpora, graphs: rows."""

    dimension: int
    pairs: int
    questions: int  # rounds of the part question, which is made of fresh processes
    contexts: tuple[int, ...]
    growth: tuple[int, ...]
    files: tuple[tuple[int, int, int], ...]
    corpora: tuple[int, ...]
    corpus_queries: int
    corpus_depth: int
    times: int  # a fresh process is started
    cross_encoders: tuple[tuple[int, int], ...]  # layers, width
    scored: int  # candidates of a query that they score
    encoded: int  # texts
    graphs: tuple[int, ...]
    labelled: tuple[int, int, int]  # queries, candidates, documents
    peers: PeerSizes
    device: str = ""  # of the parts gpu and device-encoding


ENCODERS = (("sparse-encoder", "splade-tiny"), ("late-encoder", "minilm-tokens"), ("encoder", "minilm"))

FULL = Sizes(
    dimension=768,
    pairs=21,
    questions=5,
    contexts=(60, 200, 1000),
    growth=(30, 60, 125, 250, 500, 1000),
    files=((6980, 60, 60), (6980, 1000, 60), (6980, 1000, 1000)),
    corpora=(10_000, 100_000, 1_000_000),
    corpus_queries=1000,
    corpus_depth=1000,
    times=3,
    cross_encoders=((2, 128), (6, 384)),
    scored=60,
    encoded=200,
    graphs=(10_000, 100_000),
    labelled=(500_000, 100, 20_000),
    peers=PeerSizes(10_000, 384, 1000, 50, 7000, 1000, 1000, 10_000, 1000, 200, 1000),
)
QUICK_SECONDS = 120  # of a quick look, after which no further part begins
QUICK = Sizes(
    dimension=768,
    pairs=5,
    questions=1,
    contexts=(60, 200),
    growth=(30, 60, 125),
    files=((500, 60, 60),),
    corpora=(1000, 10_000),
    corpus_queries=50,
    corpus_depth=200,
    times=1,
    cross_encoders=((2, 128),),
    scored=60,
    encoded=24,
    graphs=(1000, 10_000),
    labelled=(5000, 100, 5000),
    peers=PeerSizes(1000, 64, 50, 10, 50, 100, 20, 500, 50, 8, 100),
)
