"""Scores of a query's candidates, in the cache folder: a rerank that was killed goes on, and others take them over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnreranker.base.files import cache_home, fingerprint
from rnnreranker.encode.cross.encoder import PairScorer, ScoredPairs
from rnnreranker.encode.kept_queries import keep, read_kept

FOLDER = "pairs"


def scores_of(scorer: PairScorer, query: str, texts: Sequence[str], threads: int | None = None) -> ScoredPairs:
    """The scores of a query with n texts, (n,) float32 in their order, and which of the pairs were cut.

    They are as `scorer.score` gives them, and found again by the model, the query and the texts, whatever their order:
    what is found is the same bytes as what would be computed.

    Raises:
        InputError: as `PairScorer.score`.
    """
    distinct = sorted(set(texts))
    path = _path(scorer, query, distinct)
    kept = read_kept(path, {"scores", "cut"})
    if kept is None or kept["scores"].shape != (len(distinct),) or kept["cut"].shape != (len(distinct),):
        scored = scorer.score([(query, text) for text in distinct], threads=threads)
        kept = {"scores": scored.scores, "cut": scored.cut}
        keep(path, **kept)
    number_of = {text: number for number, text in enumerate(distinct)}
    taken = [number_of[text] for text in texts]
    return ScoredPairs(kept["scores"][taken], kept["cut"][taken])


def _path(scorer: PairScorer, query: str, texts: Sequence[str]) -> Path:
    key = fingerprint(FOLDER, query, list(texts))
    return cache_home() / FOLDER / scorer.fingerprint / key[:2] / f"{key}.npz"
