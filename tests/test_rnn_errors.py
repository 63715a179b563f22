"""What the parameters and the public functions refuse, and what they say."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.rnn import RnnParams, jaccard_similarity, rnn_similarity

QUERIES = np.eye(4, dtype=np.float32)[:2]
CANDIDATES = np.ones((2, 3, 4), dtype=np.float32)
VECTORS = np.ones((2, 4, 4), dtype=np.float32)


def expect_refusal(message: str) -> Any:
    return pytest.raises(InputError, match="^" + re.escape(message) + "$")


def test_every_bad_field_is_told_at_once() -> None:
    with expect_refusal(
        "k=0: expected an integer >= 1; k_exp=True: expected an integer >= 1; "
        "tau=nan: expected a number in [0, 1]; lam=1.5: expected a number in [0, 1]; "
        "weight='log': expected one of linear, exp, binary; weight_scale=inf: expected a finite number > 0; "
        "normalize='sum': expected one of max, mean or none; scale=None: expected one of minmax, none; "
        "context=2.5: expected an integer >= 1; variant='other': expected one of authors, paper"
    ):
        RnnParams(
            k=0, k_exp=True, context=2.5, tau=float("nan"), lam=1.5, weight_scale=float("inf"), weight="log",  # type: ignore[arg-type]
            normalize="sum", scale=None, variant="other",  # type: ignore[arg-type]
        )  # fmt: skip


@pytest.mark.parametrize(
    "field",
    [{"k": "10"}, {"k": None}, {"lam": "0.5"}, {"lam": False}, {"tau": -0.1}, {"weight_scale": 0}, {"weight": []}],
)
def test_wrong_types_and_edges(field: dict[str, Any]) -> None:
    (name,) = field
    with pytest.raises(InputError, match=f"^{name}="):
        RnnParams(**field)


def test_numpy_numbers_become_plain_ones() -> None:
    params = RnnParams(k=np.int64(7), lam=np.float32(0.5), tau=1)  # type: ignore[arg-type]
    assert [type(value) for value in (params.k, params.lam, params.tau)] == [int, float, float]
    assert RnnParams(**params.to_dict()) == params


def test_the_default_and_the_published_presets() -> None:
    first_stage = (1.0, 1.0, 1.0, 10.0)  # weights of rank, run score and q.d; rank constant; then the probes
    mixture = (10, 2, 0.5, 0.6, "linear", 2.4, None, "minmax", 60, "authors", *first_stage)
    assert RnnParams() == RnnParams(*mixture, 3, 0.25, 15)  # type: ignore[arg-type]
    assert RnnParams.preset("mixture") == RnnParams(*mixture, 2, 0.0)  # type: ignore[arg-type]
    assert (RnnParams().smoothed_over, RnnParams.preset("mixture").smoothed_over) == (15, 0)
    assert RnnParams(scale="none").smoothed_over == 0  # eq. 1 is as published
    alone = (0.0, 0.0, 1.0, 10.0, 1, 0.0)
    vectors = RnnParams(10, 3, 0.5, 0.6, "linear", 2.4, None, "minmax", 60, "authors", *alone)
    assert RnnParams.preset("vectors") == vectors
    assert RnnParams().uses_run
    assert not vectors.uses_run
    published = {
        "tas-b": (60, 21, 3, 0.0, 0.451),
        "coder-tas-b": (60, 21, 3, 0.0, 0.451),
        "cocondenser": (53, 21, 5, 0.128, 0.469),
        "coder-cocondenser": (63, 19, 8, 0.5, 0.473),
    }
    for name, (context, k, k_exp, tau, lam) in published.items():
        expected = RnnParams(k, k_exp, tau, lam, "linear", 2.4, None, "none", context, "authors", *alone)
        assert RnnParams.preset(name) == expected
        assert not expected.uses_run


def test_weights_that_are_all_0() -> None:
    with expect_refusal("rank_weight=0, run_weight=0, query_weight=0: expected at least one above 0"):
        RnnParams(rank_weight=0, run_weight=0, query_weight=0)


def test_an_unknown_preset_names_the_nearest() -> None:
    with expect_refusal("preset tas_b: not known; give a YAML file or a known one, did you mean tas-b?"):
        RnnParams.preset("tas_b")


def test_parameters_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        RnnParams().k = 5  # type: ignore[misc]


def test_a_preset_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("schema: 1\nk: 21\nnormalize: max\ntau: 0\n")
    assert RnnParams.from_yaml(file) == RnnParams(k=21, normalize="max", tau=0)
    file.write_text("normalize: none\n")
    assert RnnParams.from_yaml(file) == RnnParams()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kexp: 3\nfoo: 1\n", "{}: no setting kexp, did you mean k_exp?; no setting foo, known: "),
        ("k: 0\nlam: 2\n", "{}: k=0: expected an integer >= 1; lam=2: expected a number in [0, 1]"),
        ("- 1\n", "{}: expected a mapping such as `k: 10`"),
        ("k: [1\n", "{}:2: not YAML"),
        ("schema: 9\n", "{}: schema 9 is not known; this version reads schema 1"),
    ],
)
def test_a_bad_preset_file(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(InputError, match="^" + re.escape(message.format(file))):
        RnnParams.from_yaml(file)


def test_a_missing_preset_file(tmp_path: Path) -> None:
    with expect_refusal(f"{tmp_path / 'no.yaml'}: no such preset file; check the path"):
        RnnParams.from_yaml(tmp_path / "no.yaml")


def test_flags_come_from_the_fields() -> None:
    parser = command.parser("x", "x")
    command.add_dataclass_flags(parser, RnnParams)
    args = parser.parse_args(["--k", "21", "--k-exp", "5", "--normalize", "none", "--lam", "0.25", "--scale", "none"])
    assert command.given(args, RnnParams) == {"k": 21, "k_exp": 5, "normalize": None, "lam": 0.25, "scale": "none"}
    assert all(field.metadata["help"] for field in dataclasses.fields(RnnParams))


@pytest.mark.parametrize(
    ("queries", "candidates", "message"),
    [
        (QUERIES[0], CANDIDATES, "queries has shape (4,): expected (B, d); for one query pass queries[None]"),
        (
            QUERIES,
            CANDIDATES[0],
            "candidates has shape (3, 4): expected (B, N, d); for one query pass candidates[None]",
        ),
        (QUERIES, CANDIDATES[:1], "queries has 2 rows and candidates 1: expected as many"),
        (
            QUERIES[:, :3],
            CANDIDATES,
            "the dimension of queries is 3, that of candidates 4: expected the same; were both "
            "made by the same encoder?",
        ),
        (QUERIES, CANDIDATES[:, :0], "candidates has shape (2, 0, 4): expected at least one candidate per query"),
        (QUERIES[:, :0], CANDIDATES[..., :0], "queries has shape (2, 0): expected vectors of at least one dimension"),
        (QUERIES.astype(str), CANDIDATES, "queries has type <U32: expected float32 or float16"),
        (QUERIES * 1j, CANDIDATES, "queries has type complex64: expected float32 or float16"),
    ],
)
def test_shapes_and_types(queries: np.ndarray, candidates: np.ndarray, message: str) -> None:
    with expect_refusal(message):
        rnn_similarity(queries, candidates, RnnParams())


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([3], "lengths has shape (1,): expected (2,), one number per query"),
        ([3, 4], "lengths[1]=4: expected 0 to 3, the candidates of a row"),
        ([-1, 3], "lengths[0]=-1: expected 0 to 3, the candidates of a row"),
        ([1.0, 2.0], "lengths has type float64: expected integers"),
    ],
)
def test_lengths(lengths: list[int], message: str) -> None:
    with expect_refusal(message):
        rnn_similarity(QUERIES, CANDIDATES, RnnParams(), lengths=lengths)
    with expect_refusal(message):
        jaccard_similarity(VECTORS, RnnParams(), lengths=lengths)


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        ((4,), "probe 4 is no row of vectors: expected 0 (the query) to 3"),
        ((0, -1), "probe -1 is no row of vectors: expected 0 (the query) to 3"),
        ((), "probes=(): expected at least one row number, such as (0,)"),
        ((0.5,), "probes has type float64: expected integers"),
    ],
)
def test_probes(probes: tuple[int, ...], message: str) -> None:
    with expect_refusal(message):
        jaccard_similarity(VECTORS, RnnParams(), probes=probes)


def test_a_query_alone() -> None:
    with expect_refusal("vectors has shape (2, 1, 4): expected row 0 (the query) and at least one candidate"):
        jaccard_similarity(VECTORS[:, :1], RnnParams())


@pytest.mark.parametrize("threads", [0, True, 1.5])
def test_threads(threads: Any) -> None:
    with expect_refusal(f"threads={threads!r}: expected an integer >= 1, or None for one per core"):
        rnn_similarity(QUERIES, CANDIDATES, RnnParams(), threads=threads)


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


ODD = [np.zeros((2, 3, 4), dtype=kind) for kind in ("object", "str", "bool", "complex", "datetime64[s]", "S3", "V4")]
MALFORMED = [
    *({"candidates": odd} for odd in ODD),
    *({"queries": odd[:, 0]} for odd in ODD),
    {"candidates": [[[1.0]], [[1.0], [2.0]]]},  # ragged
    *({"lengths": [value] * 2} for value in (-2, 0.5, "1", None, True, 2**70, np.nan, [1])),
    {"lengths": [0] * 3},
    *({"threads": value} for value in (-1, "2", np.nan)),
    *({"probes": value} for value in (("0",), ((0,),), (None,), 0, (2**70,))),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("change", MALFORMED, ids=lambda change: str(next(iter(change.items())))[:60])
def test_calls_that_no_batch_can_make_good_are_refused_in_one_line(change: dict[str, Any]) -> None:
    given = {"queries": QUERIES, "candidates": CANDIDATES, "params": RnnParams()} | change
    work: Any = rnn_similarity
    if "probes" in change:
        work, given = jaccard_similarity, {"vectors": VECTORS, "params": RnnParams()} | change
    with pytest.raises(InputError) as caught:
        work(**given)
    assert "\n" not in str(caught.value)
