"""Made-up vectors, always the same from the same seed: with neighbourhoods like an encoder's, or none at all."""

from __future__ import annotations

import numpy as np

TOPICS = 8  # of a clustered context
MEAN, TOGETHER, SPREAD = 9.0, 12, 19.0**0.5  # length of a common mean, elements of a cluster, length of the rest
KINDS = ("clustered", "random", "clustered, common mean")


def contexts(kind: str, batch: int, candidates: int, dimension: int, seed: int = 0) -> np.ndarray:
    """(batch, candidates + 1, dimension) float32, row 0 the query.

    "random": independent normal entries, so that similarities hold no structure. "clustered": unit vectors; a direction
    of the context, one of 8 topics (of sizes like 1/1, 1/2, ..., 1/8), and noise of the element in equal parts, so that
    reciprocal sets are those of the topics. "clustered, common mean": as TAS-B's, a mean of length 9 that the context
    has in common, and the direction of a cluster of twelve elements and noise in equal parts: norms are near 10.
    """
    rng = np.random.default_rng((seed, batch, candidates, dimension))
    vectors = rng.standard_normal((batch, candidates + 1, dimension), dtype=np.float32)
    if kind == "clustered":
        shares = 1 / np.arange(1, TOPICS + 1)
        topics = rng.standard_normal((batch, TOPICS, dimension), dtype=np.float32)
        chosen = rng.choice(TOPICS, size=(batch, candidates + 1), p=shares / shares.sum())
        vectors += np.take_along_axis(topics, chosen[:, :, None], axis=1)
        vectors += rng.standard_normal((batch, 1, dimension), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    elif kind == "clustered, common mean":
        clusters = rng.standard_normal((batch, -(-(candidates + 1) // TOGETHER), dimension), dtype=np.float32)
        own = rng.permuted(np.tile(np.arange(candidates + 1) // TOGETHER, (batch, 1)), axis=1)
        vectors += np.take_along_axis(clusters, own[:, :, None], axis=1)
        vectors *= np.float32(SPREAD / (2 * dimension) ** 0.5)
        mean = rng.standard_normal((batch, 1, dimension), dtype=np.float32)
        vectors += np.float32(MEAN) * mean / np.linalg.norm(mean, axis=2, keepdims=True)
    return vectors


def run_scores(queries: int, depth: int, seed: int = 0) -> np.ndarray:
    """(queries * depth,) float64: the scores of a run, query after query, falling, of four decimals, as systems write.

    Each is its query's own, so that they tell more than the ranks do.
    """
    rng = np.random.default_rng((seed, queries, depth))
    steps = np.arange(depth, 0, -1, dtype=np.float64) + rng.integers(0, 9000, (queries, depth)) / 1e4
    return steps.ravel().round(4)


def documents(first: int, count: int, collection: int, dimension: int, seed: int = 0) -> np.ndarray:
    """(count, dimension) float32: unit vectors of the documents from row `first` on of a collection of so many.

    Each is the sum of a direction of its topic and noise in equal parts; a topic has 64 documents in the mean, wherever
    they stand.
    """
    topics = max(1, collection // 64)
    rng = np.random.default_rng((seed, first, collection, dimension))
    vectors = rng.standard_normal((count, dimension), dtype=np.float32)
    for row, topic in enumerate(rng.integers(0, topics, count).tolist()):
        vectors[row] += np.random.default_rng((seed, topic, dimension)).standard_normal(dimension, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def collection(documents: int, queries: int, dimension: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of documents and of queries, (documents, dimension) and (queries, dimension) float32.

    Documents are of topics of 200 on average, within themes of ten topics; a query is of a topic. Of
    the 16 nearest of a document among the first 60 of such a query 4 to 8 are candidates too, as in real collections.
    """
    rng = np.random.default_rng((seed, documents, queries, dimension))
    topics = max(1, documents // 200)
    themes = rng.standard_normal((-(-topics // 10), dimension), dtype=np.float32)
    centres = themes[rng.integers(len(themes), size=topics)] + rng.standard_normal(
        (topics, dimension), dtype=np.float32
    )
    own = rng.integers(topics, size=documents)
    vectors = centres[own] + 1.5 * rng.standard_normal((documents, dimension), dtype=np.float32)
    asked = centres[rng.integers(topics, size=queries)] + 1.5 * rng.standard_normal(
        (queries, dimension), dtype=np.float32
    )
    unit_vectors = [made / np.linalg.norm(made, axis=1, keepdims=True) for made in (vectors, asked)]
    return unit_vectors[0], unit_vectors[1]
