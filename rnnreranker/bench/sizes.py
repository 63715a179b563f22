"""How large the measured work is: in full, and for a quick look."""

from __future__ import annotations

from dataclasses import dataclass


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
    device: str = ""  # of the part gpu


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
)
