"""The graph form with odd graphs: kernel, numpy and loops agree on sizes, ties and weights that are rarely met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.graph import kernel as graph_kernel
from rnnreranker.rnn.graph import numpy as graph_numpy
from rnnreranker.rnn.graph import probes as graph_probes
from rnnreranker.rnn.graph import reference as graph_reference
from rnnreranker.rnn.graph import similarity as graph
from rnnreranker.rnn.graph.kernel import COUNTED
from rnnreranker.rnn.graph.probes import probe_similarities

NONE = 2**32 - 1  # as a document's number: what -1 is in uint32

WEIGHTS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "all equal": lambda rng, shape: np.full(shape, 0.5),
    "zeros of both signs": lambda rng, shape: rng.choice([0.0, -0.0], size=shape),
    "few values": lambda rng, shape: rng.choice([0.0, -0.0, -1.0, 1.0, 0.5], size=shape),
    "negative": lambda rng, shape: -rng.random(shape),
    "subnormal": lambda rng, shape: rng.integers(-1023, 1024, size=shape) * 2.0**-24,
    "largest": lambda rng, shape: rng.choice([65504.0, -65504.0, 1.0, 0.0], size=shape),
    "one digit": lambda rng, shape: np.round(rng.normal(size=shape), 1),
}
SHAPES = [  # documents, neighbours, candidates: rows name their own document, others twice, or more than there are
    (1, 1, 1),
    (2, 3, 2),
    (5, 40, 5),
    (17, 1, 16),
    (33, 16, 31),
    (70, 7, COUNTED - 1),
    (70, 20, COUNTED + 1),
    (90, 130, 66),
    (90, 2, 90),
]


def params_of(rng: np.random.Generator) -> RnnParams:
    """Any parameters that a graph takes."""
    values: dict[str, Any] = {
        "k": int(rng.choice([1, 2, 5, 20, 100])),
        "k_exp": int(rng.choice([1, 2, 6, 30])),
        "tau": float(rng.choice([0.0, 0.3, 0.5])),
        "variant": str(rng.choice(["paper", "authors"])),
        "weight": str(rng.choice(["linear", "binary", "exp"])),
        "normalize": [None, "mean", "max"][rng.integers(3)],
        "probes": int(rng.choice([1, 3])),
        "smoothing": float(rng.choice([0.0, 0.25, 1.0])),
        "smoothing_neighbours": int(rng.choice([1, 5, 40, 100])),
    }
    return RnnParams(**values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", WEIGHTS)
def test_kernel_numpy_and_loops_agree(kind: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    documents, k, width = shape
    rng = np.random.default_rng([list(WEIGHTS).index(kind), *shape])
    for number in range(4):
        params = params_of(rng)
        edges = rng.integers(0, documents, size=(documents, k)).astype(np.uint32)
        edges[rng.random(edges.shape) < 0.1] = NONE
        weights = WEIGHTS[kind](rng, edges.shape).astype(np.float16)
        rows = rng.permutation(documents)[:width][None]
        query = None if number % 2 else WEIGHTS[kind](rng, rows.shape).astype(np.float32)
        base = -np.sort(-rng.normal(size=rows.shape), axis=1)
        own = None if query is None else query[0]
        try:
            expected = graph_reference.graph_similarity(edges, weights, rows[0].tolist(), params, own, base[0])
        except InputError:  # an exponential weight that would overflow
            expected = None
        by_engines = []
        for engine in (graph_kernel, graph_numpy):
            monkeypatch.setattr(graph.ENGINES, "for_work", lambda sizes, engine=engine: engine.score_contexts)
            if expected is None:
                with pytest.raises(InputError, match="weight exp: the largest"):
                    graph.graph_similarity(edges, weights, rows, params, query=query, base=base)
                continue
            found = graph.graph_similarity(edges, weights, rows, params, query=query, base=base)
            np.testing.assert_allclose(found[0], expected, rtol=2e-6, atol=1e-7, err_msg=f"{engine.__name__}, {params}")
            by_engines.append(found.tobytes())
        assert len(set(by_engines)) <= 1, params


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_probes_are_those_of_the_loops(
    shape: tuple[int, int, int], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, k, width = shape
    monkeypatch.setattr(graph_probes, "compiles", lambda: compiled)
    for number, kind in enumerate(WEIGHTS):
        rng = np.random.default_rng([number, *shape])
        edges = rng.integers(0, documents, size=(documents, k)).astype(np.uint32)
        edges[rng.random(edges.shape) < 0.1] = NONE
        weights = WEIGHTS[kind](rng, edges.shape).astype(np.float16)
        rows, probes = rng.permutation(documents)[:width][None], np.array([[1, width, -1, 0][: max(width, 1)]])
        found = probe_similarities(edges, weights, rows, probes, np.array([width]))
        known = graph_reference.known_similarities(edges, weights, rows[0].tolist())[1:, 1:]
        told = known[np.isfinite(known)]
        low, high = (told.min(), told.max()) if len(told) else (0.0, 0.0)
        whole = np.where(np.isfinite(known), known, low)
        np.fill_diagonal(whole, high)
        for place, probe in enumerate(probes[0].tolist()):
            expected = whole[probe - 1] if 1 <= probe <= width else np.zeros(width)
            np.testing.assert_array_equal(found[0, place], expected)


def test_wide_contexts_with_many_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    documents, k = 900, 64
    rng = np.random.default_rng(0)
    edges = rng.integers(0, documents, size=(documents, k)).astype(np.uint32)
    weights = np.round(rng.normal(size=edges.shape), 2).astype(np.float16)
    rows, base = rng.permutation(documents)[None], np.arange(documents, 0.0, -1.0)[None]
    found = []
    for engine in (graph_kernel, graph_numpy):
        monkeypatch.setattr(graph.ENGINES, "for_work", lambda sizes, engine=engine: engine.score_contexts)
        found.append(graph.graph_similarity(edges, weights, rows, RnnParams(), base=base))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("width", [COUNTED - 10, COUNTED + 10])
def test_the_sign_of_zero_does_not_count(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among few known elements and among many, which the kernel puts in order in another way."""
    rng, params = np.random.default_rng(1), RnnParams(k=5, weight="binary")
    edges = np.array([rng.permutation(width)[: width - 1] for _ in range(width)], dtype=np.uint32)
    zeros, base = np.zeros(edges.shape, dtype=np.float16), np.arange(width, 0.0, -1.0)[None]
    signed = rng.choice(np.array([0.0, -0.0], dtype=np.float16), size=edges.shape)
    monkeypatch.setattr(graph.ENGINES, "for_work", lambda sizes: graph_kernel.score_contexts)
    found = [
        graph.graph_similarity(edges, weights, np.arange(width)[None], params, query=query, base=base)
        for weights, query in ((zeros, zeros[:1, :1] * base), (signed, np.where(base % 3 == 0, -0.0, 0.0)))
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_a_number_of_no_document_names_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it falls in the kernel's table of the candidates' rows, beside one of them as well."""
    edges, weights = np.full((2000, 4), NONE, dtype=np.uint32), np.full((2000, 4), 0.5, dtype=np.float16)
    rows, base = np.arange(2000).reshape(-1, 50), np.tile(np.arange(50, 0.0, -1.0), (40, 1))
    monkeypatch.setattr(graph.ENGINES, "for_work", lambda sizes: graph_kernel.score_contexts)
    found = graph.graph_similarity(edges, weights, rows, RnnParams(), base=base)
    alone = np.arange(2000, dtype=np.uint32)[:, None].repeat(4, axis=1)  # documents in their own rows: no neighbours
    expected = graph.graph_similarity(alone, weights, rows, RnnParams(), base=base)
    np.testing.assert_array_equal(found, expected)
