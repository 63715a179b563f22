"""What the parameters and the public functions refuse, and what they say."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from refusals import refusal

from rnnreranker.rnn import RnnParams, jaccard_similarity, rnn_similarity

QUERIES = np.eye(4, dtype=np.float32)[:2]
CANDIDATES = np.ones((2, 3, 4), dtype=np.float32)
VECTORS = np.ones((2, 4, 4), dtype=np.float32)


def expect_refusal(message: str) -> Any:
    return refusal("^" + re.escape(message) + "$")


def test_every_bad_field_is_told_at_once() -> None:
    with expect_refusal(
        "k=0: expected an integer >= 1; k_exp=True: expected an integer >= 1; "
        "tau=nan: expected a finite number >= 0 and <= 1; lam=1.5: expected a finite number >= 0 and <= 1; "
        "weight='log': expected one of linear, exp, binary; weight_scale=inf: expected a finite number > 0; "
        "normalize='sum': expected one of max, mean or none; scale=None: expected one of minmax, none; "
        "context=2.5: expected an integer >= 1; variant='other': expected one of authors, paper"
    ):
        RnnParams(
            k=0, k_exp=True, context=2.5, tau=float("nan"), lam=1.5, weight_scale=float("inf"), weight="log",  # type: ignore[arg-type]
            normalize="sum", scale=None, variant="other",  # type: ignore[arg-type]
        )  # fmt: skip


def test_the_default_and_the_published_presets() -> None:
    shared = ("linear", 2.4, None)
    first_stage = (1.0, 1.0, 1.0, 10.0)  # weights of rank, run score and q.d; rank constant; then the probes
    mixture = (10, 2, 0.5, 0.6, *shared, "minmax", 60, "authors", *first_stage)
    alone = (0.0, 0.0, 1.0, 10.0, 1, 0.0)
    expected: dict[str, tuple[Any, ...]] = {
        "mixture": (*mixture, 2, 0.0),
        "vectors": (10, 3, 0.5, 0.6, *shared, "minmax", 60, "authors", *alone),
        "tas-b": (21, 3, 0.0, 0.451, *shared, "none", 60, "authors", *alone),
        "coder-tas-b": (21, 3, 0.0, 0.451, *shared, "none", 60, "authors", *alone),
        "cocondenser": (21, 5, 0.128, 0.469, *shared, "none", 53, "authors", *alone),
        "coder-cocondenser": (19, 8, 0.5, 0.473, *shared, "none", 63, "authors", *alone),
    }
    assert RnnParams.presets == {name: RnnParams(*values) for name, values in expected.items()}
    assert RnnParams() == RnnParams(*mixture, 3, 0.25, 15)  # type: ignore[arg-type]
    uses_run = {name for name in expected if RnnParams.preset(name).uses_run}
    assert uses_run == {"mixture"}
    assert (RnnParams().smoothed_over, RnnParams.preset("mixture").smoothed_over) == (15, 0)
    assert RnnParams(scale="none").smoothed_over == 0  # eq. 1 is as published


def test_weights_that_are_all_0() -> None:
    with expect_refusal("rank_weight=0, run_weight=0, query_weight=0: expected at least one above 0"):
        RnnParams(rank_weight=0, run_weight=0, query_weight=0)


LENGTHS = [
    ({"lengths": [3]}, "lengths has shape (1,): expected (2,), one number per query"),
    ({"lengths": [3, 4]}, "lengths[1]=4: expected 0 to 3, the candidates of a row"),
    ({"lengths": [-1, 3]}, "lengths[0]=-1: expected 0 to 3, the candidates of a row"),
    ({"lengths": [1.0, 2.0]}, "lengths has type float64: expected integers"),
    ({"params": {"k": 3}}, "params={'k': 3}: expected RnnParams"),
    *(({"threads": threads}, f"threads={threads}: expected an integer >= 1") for threads in (0, True, 1.5)),
]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"queries": QUERIES[0]},
            "queries has shape (4,): expected (B, d), at least one dimension; for one query pass queries[None]",
        ),
        (
            {"candidates": CANDIDATES[0]},
            "candidates has shape (3, 4): expected (B, N, d), at least one dimension; for one "
            "query pass candidates[None]",
        ),
        ({"candidates": CANDIDATES[:1]}, "queries has 2 rows and candidates 1: expected as many"),
        (
            {"queries": QUERIES[:, :3]},
            "the dimension of queries is 3, that of candidates 4: expected the same; were both "
            "made by the same encoder?",
        ),
        (
            {"candidates": CANDIDATES[:, :0]},
            "candidates has shape (2, 0, 4): expected at least one candidate per query",
        ),
        ({"queries": QUERIES[:, :0]}, "queries has shape (2, 0): expected (B, d), at least one dimension"),
        ({"queries": QUERIES.astype(str)}, "queries: a ndarray of <U32; expected numbers"),
        ({"queries": QUERIES * 1j}, "queries: a ndarray of complex64; expected numbers"),
        *LENGTHS,
    ],
)
def test_what_rnn_similarity_refuses(change: dict[str, Any], message: str) -> None:
    with expect_refusal(message):
        rnn_similarity(**({"queries": QUERIES, "candidates": CANDIDATES, "params": RnnParams()} | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            ({"probes": probes}, f"probes={probes}: expected row numbers of vectors, 0 (the query) to 3")
            for probes in ((4,), (0, -1), ())
        ),
        ({"probes": (0.5,)}, "probes has type float64: expected integers"),
        (
            {"vectors": VECTORS[:, :1]},
            "vectors has shape (2, 1, 4): expected row 0 (the query) and at least one candidate",
        ),
        *LENGTHS,
    ],
)
def test_what_jaccard_similarity_refuses(change: dict[str, Any], message: str) -> None:
    with expect_refusal(message):
        jaccard_similarity(**({"vectors": VECTORS, "params": RnnParams()} | change))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite(value: float) -> None:
    candidates, queries, vectors = CANDIDATES.copy(), QUERIES.copy(), VECTORS.copy()
    candidates[1, 2, 0] = vectors[1, 3, 0] = value
    rest = "has NaN or infinite entries (as float32); expected finite vectors"
    with expect_refusal(f"row 1 of the batch: candidate 2 {rest}"):
        rnn_similarity(queries, candidates, RnnParams())
    with expect_refusal(f"row 1 of the batch: vector 3 {rest}"):
        jaccard_similarity(vectors, RnnParams())
    queries[0, 0] = value
    with expect_refusal(f"row 0 of the batch: the query {rest}"):
        rnn_similarity(queries, candidates, RnnParams())


def test_inner_products_that_overflow() -> None:
    for factor in (1e30, 0.8e19):  # beyond float32, and within it but so near the end that sums may pass it
        with expect_refusal("row 0 of the batch: inner products beyond the range of float32; scale the vectors down"):
            rnn_similarity(QUERIES, CANDIDATES * np.float32(factor), RnnParams())
    assert np.isfinite(rnn_similarity(QUERIES, CANDIDATES * np.float32(4e18), RnnParams(scale="none"))).all()


def test_exponential_weights_of_raw_scores() -> None:
    params = RnnParams(weight="exp", scale="none")
    with expect_refusal(
        "row 0 of the batch: weight exp: the largest weight_scale * similarity is 240, expected at most 80 (float32 "
        'overflows); use scale="minmax" or normalize="max", or a smaller weight_scale'
    ):
        rnn_similarity(QUERIES, CANDIDATES * 5, params)
    for safe in ({"scale": "minmax"}, {"normalize": "max"}, {"weight_scale": 0.5}):
        assert np.isfinite(rnn_similarity(QUERIES, CANDIDATES * 5, dataclasses.replace(params, **safe))).all()
