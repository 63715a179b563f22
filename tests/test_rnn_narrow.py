"""Inner products of fewer bits: near those of float32, the same for any number of threads, never by default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.methods.rerank import RnnReranker
from rnnreranker.parts.neighbours import NeighbourGraph
from rnnreranker.rnn import RnnParams, rnn_similarity
from rnnreranker.rnn.narrow import product_of

VECTORS = np.random.default_rng(0).standard_normal((40, 31, 24)).astype(np.float32)


@pytest.mark.parametrize(("products", "apart"), [("bfloat16", 0.4), ("int8", 0.3)])
def test_products_are_near_those_of_float32(products: Any, apart: float) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    found, rows = np.empty((31, 31), dtype=np.float32), VECTORS[0].copy()
    rows[3] = 0.0
    product_of(products)(rows, found)
    assert np.abs(found - rows @ rows.T).max() < apart
    assert (found == found.T).all()


@pytest.mark.parametrize("products", ["bfloat16", "int8"])
def test_scores_do_not_depend_on_threads_or_batch(products: Any) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    queries, candidates, params = VECTORS[:, 0], VECTORS[:, 1:], RnnParams(k=5)
    scores = rnn_similarity(queries, candidates, params, threads=1, products=products)
    assert scores.tobytes() == rnn_similarity(queries, candidates, params, threads=2, products=products).tobytes()
    assert scores[7:8].tobytes() == rnn_similarity(queries[7:8], candidates[7:8], params, products=products).tobytes()
    assert np.abs(scores - rnn_similarity(queries, candidates, params)).mean() < 0.05
    broken = candidates.copy()
    broken[2, 4, 0] = np.nan
    with pytest.raises(InputError, match="row 2 of the batch: candidate 4 has NaN"):
        rnn_similarity(queries, broken, params, products=products)


def test_other_names_are_refused() -> None:
    with pytest.raises(InputError, match="products='int4': expected one of float32, bfloat16, int8"):
        rnn_similarity(VECTORS[:, 0], VECTORS[:, 1:], RnnParams(), products="int4")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="products='int8': those of vectors on the processor alone"):
        RnnReranker(NeighbourGraph.__new__(NeighbourGraph), products="int8")
