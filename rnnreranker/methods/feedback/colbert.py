"""ColBERT-PRF: the query gets centroids of its first documents' tokens."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.feedback.base import Feedback
from rnnreranker.parts.tokens.neighbours import Lexicon


@dataclass(frozen=True)
class ColbertParams(Params):
    """Settings of ColBERT-PRF; the defaults are the best row by nDCG@10 of Table 4 of paper 002."""

    fb_docs: int = setting(3, "first documents that the new query is made of (f_p)", at_least=1)
    fb_clusters: int = setting(12, "clusters of these documents' tokens (f_c)", at_least=1)
    fb_embeddings: int = setting(
        10,
        "centroids of clusters that join the query, those of the rarest words (f_e)",
        at_least=1,
    )
    fb_expansion_weight: float = setting(
        1.0,
        "weight of the centroids, times the IDF of the word that each is nearest to (beta)",
        at_least=0,
    )


class ColbertFeedback(Feedback):
    """The query's tokens, and the centroids of its first documents' tokens that are nearest to the rarest words.

    ColBERT-PRF (Wang et al., ICTIR 2021), the teacher of paper 002 (eq. 6). With c_m the centroids, t_m the token of
    the vocabulary nearest to c_m and sigma_m = ln((N + 1) / (df(t_m) + 1)), the f_e centroids with the largest sigma_m
    join with the weights beta sigma_m, if above 0.
    """

    name = "colbert"
    over = frozenset({"tokens"})
    Params = ColbertParams

    def of_tokens(self, query: np.ndarray, rows: np.ndarray, lexicon: Lexicon) -> tuple[np.ndarray, np.ndarray]:
        given, source = self.params, lexicon.source
        passages = [source.vectors[source.offsets[row] : source.offsets[row + 1]] for row in rows.tolist()]
        means = centroids([passage for passage in passages if len(passage)], given.fb_clusters)
        vectors = means.reshape(-1, source.dimension).astype(np.float32)
        numbers = lexicon.nearest(vectors)
        named = np.flatnonzero(numbers >= 0)
        weights = given.fb_expansion_weight * lexicon.idf(numbers[named])
        order = np.argsort(-lexicon.idf(numbers[named]), kind="stable")[: given.fb_embeddings]
        order = order[weights[order] > 0]
        return np.concatenate([query, vectors[named[order]]]), np.concatenate([np.ones(len(query)), weights[order]])


def centroids(passages: Sequence[np.ndarray], clusters: int) -> np.ndarray:
    """(k, d) float64: the centroids of k-means of the tokens of passages, (t, d) of t >= 1 each, not normalised.

    Passages share the clusters evenly; those of a passage start at evenly spaced tokens, so nothing is random. k <= the
    number of different tokens; empty clusters are dropped.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
    """
    if not passages:
        return np.empty((0, 0))
    require("sklearn", "ColBERT-PRF", "'rnnreranker[late]'")
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import ThreadpoolController

    tokens = np.concatenate(passages).astype(np.float64)
    count = min(clusters, len(np.unique(tokens, axis=0)))
    shares = np.linspace(0, count, len(passages) + 1).astype(np.int64)
    begun = [
        passage[np.linspace(0, len(passage) - 1, share).astype(np.int64)]
        for passage, share in zip(passages, np.diff(shares).tolist(), strict=True)
    ]
    start = np.concatenate(begun).astype(np.float64)
    means = KMeans(count, init=start, n_init=1, algorithm="lloyd", random_state=0)
    # on one thread: the sums of several are added in the order in which they end
    with ThreadpoolController().limit(limits=1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(tokens)
    return means.cluster_centers_[np.unique(means.labels_)]
