"""The similarity from a graph of neighbours: loops, numpy and kernel agree, and what it does with what is not known."""

from __future__ import annotations

import numpy as np
import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import RnnParams, rnn_similarity
from rnnreranker.rnn.graph import kernel as graph_kernel
from rnnreranker.rnn.graph import numpy as graph_numpy
from rnnreranker.rnn.graph import reference as graph_reference
from rnnreranker.rnn.graph import similarity as graph
from rnnreranker.rnn.graph.similarity import graph_jaccard, graph_similarity

SETTINGS = {
    "default": {},
    "no extension": {"tau": 0.0},
    "exp": {"weight": "exp"},
    "binary": {"weight": "binary"},
    "paper": {"variant": "paper", "k": 5, "k_exp": 4, "tau": 0.3},
    "paper, short lists": {"variant": "paper", "k": 1, "k_exp": 3},
    "no column": {"variant": "paper", "k": 3, "tau": 0.1},
    "long lists": {"k": 40, "k_exp": 7, "probes": 4},
    "mean": {"normalize": "mean"},
    "max": {"normalize": "max"},
    "one probe": {"probes": 1, "rank_weight": 0.0},
    "not smoothed": {"smoothing": 0.0},
    "smoothed over many": {"smoothing": 0.7, "smoothing_neighbours": 50},
}


def made(documents: int, k: int, seed: int, shared: float = 0.7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A graph of clustered vectors, exact but for a share of rows that are of other documents; and the vectors."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(documents // 15, 1), 16))
    vectors = centres[rng.integers(len(centres), size=documents)] + 0.6 * rng.normal(size=(documents, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    sims = vectors @ vectors.T
    np.fill_diagonal(sims, -np.inf)
    edges = np.argsort(-sims, axis=1, kind="stable")[:, :k].astype(np.uint32)
    weights = np.take_along_axis(sims, edges.astype(np.int64), axis=1).astype(np.float16)
    weights[rng.random(weights.shape) > shared] -= np.float16(0.01)  # the two directions differ
    return edges, weights, vectors


def batch(documents: int, count: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, products with queries, run scores and lengths of a batch whose contexts are of several sizes."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.permutation(documents)[:width] for _ in range(count)])
    query = np.round(rng.normal(size=(count, width)), 1).astype(np.float32)  # ties
    base = -np.sort(-rng.normal(size=(count, width)), axis=1)
    lengths = rng.integers(0, width + 1, size=count)
    lengths[0] = width
    return rows, query, base, lengths


@pytest.mark.parametrize("values", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("with_query", [True, False])
def test_kernel_numpy_and_loops_agree(values: dict[str, object], with_query: bool) -> None:
    edges, weights, _ = made(120, 6, seed=1)
    params = RnnParams(**values)  # type: ignore[arg-type]
    if not with_query and not (params.rank_weight or params.run_weight):
        pytest.skip("needs inner products with the query")
    rows, query, base, lengths = batch(120, 9, 40, seed=2)
    given = query if with_query else None
    found = {
        name: _by(engine, edges, weights, rows, params, given, base, lengths)
        for name, engine in (("kernel", graph_kernel.score_contexts), ("numpy", graph_numpy.score_contexts))
    }
    for b, length in enumerate(lengths.tolist()):
        own = None if given is None else given[b, :length]
        expected = np.full(rows.shape[1], -np.inf)
        if length:
            expected[:length] = graph_reference.graph_similarity(
                edges, weights, rows[b, :length].tolist(), params, own, base[b, :length]
            )
        for name, scores in found.items():
            np.testing.assert_allclose(scores[b], expected, rtol=2e-6, atol=1e-7, err_msg=f"{name}, query {b}")


def _by(engine, edges, weights, rows, params, query, base, lengths):  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph.ENGINES, "for_work", lambda sizes: engine)
        return graph_similarity(edges, weights, rows, params, query=query, base=base, lengths=lengths)


def test_eq1_of_raw_similarities_agrees_with_the_loops() -> None:
    edges, weights, _ = made(60, 8, seed=3)
    rows, query, _, lengths = batch(60, 5, 20, seed=4)
    params = RnnParams.preset("tas-b")
    found = graph_similarity(edges, weights, rows, params, query=query, lengths=lengths)
    for b, length in enumerate(lengths.tolist()):
        if length:
            expected = graph_reference.graph_similarity(edges, weights, rows[b, :length], params, query[b, :length])
            np.testing.assert_allclose(found[b, :length], expected, rtol=1e-5, atol=1e-6)


def test_a_graph_of_all_pairs_gives_what_the_vectors_give() -> None:
    _, _, vectors = made(30, 4, seed=5)
    vectors = np.round(vectors, 1)  # float16 holds neither products nor ties otherwise
    sims = (vectors @ vectors.T).astype(np.float16)
    others = np.array([[j for j in range(30) if j != i] for i in range(30)])
    edges, weights = others.astype(np.uint32), np.take_along_axis(sims, others, axis=1)
    rows = np.arange(29)[None]
    candidates, query = vectors[rows], vectors[29:]
    base = np.linspace(1, 0, 29)[None] ** 2
    params = RnnParams(k=7)
    expected = rnn_similarity(query, candidates, params, base=base)
    exact = np.einsum("nd,d->n", candidates[0], query[0])[None]
    found = graph_similarity(edges, weights, rows, params, query=exact, base=base)
    assert np.abs(found - expected).max() < 0.05  # similarities are rounded
    assert np.corrcoef(found[0], expected[0])[0, 1] > 0.99


def test_without_a_query_its_row_is_that_of_the_first_candidate_dealt_out() -> None:
    edges = np.array([[1, 2], [0, 2], [0, 1], [0, 1]], dtype=np.uint32)
    weights = np.array([[0.5, 0.75], [0.5, 0.25], [0.75, 0.25], [0.125, 0.0]], dtype=np.float16)
    known = graph_reference.known_similarities(edges, weights, [1, 0, 3, 2])
    assert known[0, 1:].tolist() == [0.5, 0.25, 0.0, -np.inf]  # document 1 knows 0, 2 and, from its side, 3
    assert known[2, 4] == 0.75
    assert known[3, 4] == -np.inf
    params = RnnParams(k=2)
    base = np.array([[4.0, 3.0, 2.0, 1.0]])
    rows = np.array([[1, 0, 3, 2]])
    found = graph_similarity(edges, weights, rows, params, base=base)
    dealt = np.array([[0.5, 0.25, 0.0, -9.0]])
    assert np.isfinite(found).all()
    with_products = graph_similarity(edges, weights, rows, params, query=dealt, base=base)
    assert not np.allclose(found, with_products)  # there -9 is known, and inner products have a weight of their own


def test_results_do_not_depend_on_batch_threads_or_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, weights, _ = made(200, 8, seed=6)
    rows, query, base, lengths = batch(200, 23, 30, seed=7)
    whole = graph_similarity(edges, weights, rows, RnnParams(), query=query, base=base, lengths=lengths)
    monkeypatch.setattr(graph, "CHUNK", 64)
    for threads in (1, 3):
        again = graph_similarity(
            edges, weights, rows, RnnParams(), query=query, base=base, lengths=lengths, threads=threads
        )
        assert again.tobytes() == whole.tobytes()
    for b, length in enumerate(lengths.tolist()):
        if length:
            alone = graph_similarity(
                edges, weights, rows[b : b + 1, :length], RnnParams(), query=query[b : b + 1, :length],
                base=base[b : b + 1, :length],
            )  # fmt: skip
            assert alone[0].tobytes() == whole[b, :length].tobytes()


def test_probes_of_every_query() -> None:
    edges, weights, _ = made(80, 6, seed=8)
    rows, query, _, lengths = batch(80, 4, 25, seed=9)
    probes = np.array([[0, 3], [1, -1], [2, 5], [0, 25]])
    found = graph_jaccard(edges, weights, rows, RnnParams(), probes=probes, query=query)
    for b in range(4):
        known = graph_reference.known_similarities(edges, weights, rows[b], query[b])
        expanded = graph_reference.steps(known, RnnParams()).expanded
        for place, probe in enumerate(probes[b].tolist()):
            expected = np.zeros(26) if probe < 0 else graph_reference.reference.jaccard(expanded, probe)
            np.testing.assert_allclose(found[b, place], expected, rtol=2e-6, atol=1e-7)
    assert found.shape == (4, 2, 26)
    padded = graph_jaccard(edges, weights, rows, RnnParams(), query=query, lengths=lengths)
    assert np.isneginf(padded[:, 0]).sum() == (25 - lengths).sum()


def test_a_context_without_known_pairs_keeps_the_order_of_the_run() -> None:
    edges = np.array([[9], [9], [9], *[[0]] * 7], dtype=np.uint32)
    weights = np.full((10, 1), 0.5, dtype=np.float16)
    scores = graph_similarity(edges, weights, np.array([[2, 0, 1]]), RnnParams(), base=[[3.0, 2.0, 1.0]])
    assert np.argsort(-scores[0]).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.array([[0, 70]])}, r"rows\[0, 1\]=70: expected 0 to 59"),
        ({"rows": np.array([[0.5, 1.0]])}, "rows has type float64: expected integers"),
        ({"base": None}, "neither query nor base"),
        ({"base": [[1.0, np.nan]]}, r"base\[0, 1\]=nan: expected a finite score"),
        ({"query": np.array([[np.inf, 1.0]])}, r"query\[0, 0\]=inf: expected a finite score"),
        ({"weights": np.full((60, 4), np.nan, dtype=np.float16)}, "NaN or infinite; make the graph again"),
        ({"weights": np.zeros((60, 4))}, "expected uint32 and float16"),
        ({"edges": [[1, 2]]}, r"edges is a list: expected an array \(D, K\)"),
        ({"weights": np.zeros((60, 3), dtype=np.float16)}, r"expected \(D, K\) both"),
        ({"params": RnnParams.preset("tas-b")}, "scale=none.*without query vectors expected scale=minmax"),
        ({"params": RnnParams.preset("vectors")}, "rank_weight=0, run_weight=0: without query vectors"),
        ({"params": RnnParams(scale="none", normalize="max"), "query": np.ones((1, 2))}, "normalize=max: a graph has"),
        (
            {"params": RnnParams(weight="exp", weight_scale=100.0), "query": np.array([[0.2, 0.1]])},
            "weight exp: the largest",
        ),
        ({"threads": 0}, "threads=0"),
    ],
)
def test_bad_input_is_refused(change: dict[str, object], message: str) -> None:
    edges, weights, _ = made(60, 4, seed=10)
    near = int(edges[0, 0])
    given = {"edges": edges, "weights": weights, "rows": np.array([[0, near]]), "params": RnnParams()}
    given |= {"base": [[2.0, 1.0]], "query": None} | change
    positional = [given.pop(name) for name in ("edges", "weights", "rows", "params")]
    with pytest.raises(InputError, match=message):
        graph_similarity(*positional, **given)  # type: ignore[arg-type]
