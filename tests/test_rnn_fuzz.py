"""Random input through the public functions: what the reference says, or one clear line; never NaN, a warning, a hang.

RNNRERANKER_FUZZ is the number of cases (1,500 unless given), RNNRERANKER_FUZZ_SEED the number of the first one: a
failing case says its own, so RNNRERANKER_FUZZ=1 RNNRERANKER_FUZZ_SEED=that runs it alone.

What is expected of a result:

- Where every inner product is exact, whatever the order it is summed in (vectors of small integers, times a power of
  two), the reference is met with all its ties: relative 1e-5, absolute 1e-6.
- Elsewhere a similarity that lies within rounding of another may be ranked either way by the BLAS at hand, and one that
  decides moves all that follows. So the reference is computed from the float32 vectors, and where it does not agree the
  case must be one of those: some two similarities of a row, at a bound of a neighbour list, no further apart than
  rounding (`NEAR` of the product of lengths). Then the reference is met only in what no tie can change: the result is
  finite and, where weights cannot be negative, between 0 and 1. Such cases are counted and must stay a small share.
- Scores grow with the vectors where they are raw, so the absolute tolerance is that of the largest similarity.
"""

from __future__ import annotations

import faulthandler
import os
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rnnreranker.errors import InputError
from rnnreranker.rerank import RnnReranker
from rnnreranker.rnn import RnnParams, jaccard_similarity, reference, rnn_similarity
from rnnreranker.runs import Run
from rnnreranker.vectors import QueryVectors, VectorSource

CASES = int(os.environ.get("RNNRERANKER_FUZZ", "1500"))
FIRST = int(os.environ.get("RNNRERANKER_FUZZ_SEED", "0"))
HANGS = 60  # seconds for a hundred cases
BLOCK = 100
NEAR = 4e-6  # times the product of lengths: where float32 sums of up to 40 products may differ
KINDS = ("normal", "close", "integers", "duplicates", "equal", "zeros", "one hot", "subnormal", "mixed norms")
BROKEN = ("nan", "inf", "-inf", "too large", "float16 overflow")


@dataclass
class Case:
    """One random input with what was done to it: vectors (B, m, d) of whatever type, real candidates of each row."""

    vectors: np.ndarray
    lengths: np.ndarray | None
    params: RnnParams
    probes: tuple[int, ...]
    threads: int
    kind: str
    broken: str  # what was put into a row, or ""
    exact: bool  # every inner product, in any order of summation


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    batch, n, d = int(rng.integers(0, 5)), int(rng.integers(1, 26)), int(rng.integers(1, 41))
    if rng.random() < 0.03:
        n = int(rng.integers(60, 140))
    kind = str(rng.choice(KINDS))
    vectors = rng.standard_normal((batch, n + 1, d))
    if kind == "close":
        vectors = vectors * 0.5 + 1.0
    elif kind == "integers":
        vectors = rng.integers(-2, 3, vectors.shape).astype(np.float64)
    elif kind == "duplicates":
        vectors = vectors[:, rng.integers(0, n + 1, n + 1)]
    elif kind == "equal":
        vectors[:] = rng.integers(-3, 4, (batch, 1, d))
    elif kind == "zeros":
        vectors = rng.integers(-2, 3, vectors.shape).astype(np.float64)
        vectors[rng.random((batch, n + 1)) < 0.4] = 0.0
    elif kind == "one hot":
        vectors = np.eye(d)[rng.integers(0, d, (batch, n + 1))]
    elif kind == "subnormal":
        vectors *= 1e-41
    elif kind == "mixed norms":
        vectors *= 10.0 ** rng.integers(-6, 7, (batch, n + 1, 1))
    exact = kind in ("integers", "equal", "zeros", "one hot")
    power = 0.0
    if rng.random() < 0.3:
        power = float(rng.choice([-30, -22, -18, -8, 3, 8, 12, 17, 18, 19, 25]))
        vectors = vectors * (2.0 ** np.round(power * np.log2(10)) if exact else 10.0**power)
        exact = exact and -15 < power < 15
    lengths = rng.integers(0, n + 1, batch) if rng.random() < 0.5 else None
    broken = str(rng.choice(BROKEN)) if batch and rng.random() < 0.15 else ""
    array = _typed(vectors, rng, power)
    if broken:
        array = _break(array, broken, rng)
    with np.errstate(all="ignore"):
        array = _laid_out(array, rng)
    scale, weight = str(rng.choice(["minmax", "none"])), str(rng.choice(["linear", "exp", "binary"]))
    params = RnnParams(
        k=int(rng.choice([1, 2, 3, 5, 10, 21, 200])),
        k_exp=int(rng.choice([1, 2, 3, 6, 50])),
        tau=float(rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])),
        lam=float(rng.choice([0.0, 0.451, 1.0])),
        weight=weight,  # type: ignore[arg-type]
        weight_scale=float(rng.choice([0.1, 2.4])),
        normalize=[None, "max", "mean"][rng.integers(0, 3)],  # type: ignore[arg-type]
        scale=scale,  # type: ignore[arg-type]
        variant=str(rng.choice(["authors", "paper"])),  # type: ignore[arg-type]
    )
    probes = tuple(int(probe) for probe in rng.integers(0, n + 1, rng.integers(1, 4)))
    return Case(array, lengths, params, probes, int(rng.integers(1, 4)), kind, broken, exact)


def _typed(vectors: np.ndarray, rng: np.random.Generator, power: float) -> np.ndarray:
    """As float32 mostly, or as another type that can hold it."""
    choices = [np.float32, np.float32, np.float32, np.float64, np.float16]
    if not power and (vectors == np.rint(vectors)).all():
        choices += [np.int64, np.int8]
    chosen = choices[rng.integers(0, len(choices))]
    if chosen is np.float16 and np.abs(vectors).max(initial=0) > 60000:
        chosen = np.float32
    with np.errstate(all="ignore"):
        return vectors.astype(chosen)


def _break(vectors: np.ndarray, how: str, rng: np.random.Generator) -> np.ndarray:
    """One entry of one element of one row made NaN, infinite or so large that products overflow."""
    place = tuple(int(rng.integers(0, size)) for size in vectors.shape)
    value = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "too large": 1e25, "float16 overflow": 1e39}[how]
    if vectors.dtype.kind != "f" or vectors.dtype == np.float16:
        vectors = vectors.astype(np.float64)
    with np.errstate(all="ignore"):
        vectors[place] = value
    return vectors


def _laid_out(vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same numbers: contiguous, in Fortran's order, strided, backwards, read-only or byte-swapped."""
    how = int(rng.integers(0, 8))
    if how == 0:
        return np.asfortranarray(vectors)
    if how == 1:
        return np.repeat(vectors, 2, axis=2)[:, :, ::2]
    if how == 2:
        return vectors[:, ::-1].copy()[:, ::-1]
    if how == 3:
        vectors.flags.writeable = False
    if how == 4:
        return vectors.astype(vectors.dtype.newbyteorder())
    return vectors


class Held:
    """A source of vectors in memory, as `RnnReranker` takes them."""

    exact = True
    fingerprint = "made up"

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix
        self.docids = [f"d{row}" for row in range(len(matrix))]
        self.dimension = matrix.shape[1]

    def rows(self, docids: Any) -> np.ndarray:
        places = {docid: row for row, docid in enumerate(self.docids)}
        return np.array([places.get(docid, -1) for docid in docids], dtype=np.int64)

    def fetch(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        found = self.matrix[rows].astype(np.float32)
        if out is None:
            return found
        out[:] = found
        return out

    def search(self, queries: np.ndarray, hits: int, threads: int | None = None) -> Any:
        raise AssertionError("nothing is searched here")


def _held(matrix: np.ndarray) -> VectorSource:
    return Held(matrix)


def contexts_of(case: Case) -> list[np.ndarray]:
    """The real elements of every row, as float32."""
    lengths = case.lengths if case.lengths is not None else np.full(len(case.vectors), case.vectors.shape[1] - 1)
    with np.errstate(all="ignore"):
        return [row[: length + 1].astype(np.float32) for row, length in zip(case.vectors, lengths, strict=True)]


def refused(contexts: list[np.ndarray], params: RnnParams) -> str:
    """Why a batch must be refused, or "": a vector that is not finite, one too long, an exponent too large."""
    reasons = []
    for context in contexts:
        if len(context) < 2:
            continue
        with np.errstate(all="ignore"):
            if not np.isfinite(context).all():
                reasons.append("NaN or infinite")
            elif not (reference.inner_products(context, params.scale == "minmax").diagonal() <= 1e38).all():
                reasons.append("beyond the range")
            else:
                try:
                    reference.steps(context, params)
                except InputError:
                    reasons.append("weight exp")
    return reasons[0] if reasons else ""


def near_tie(context: np.ndarray, params: RnnParams) -> bool:
    """Whether a neighbour list ends, or the comparison of two weights hangs, on less than rounding."""
    wide = context.astype(np.float64)
    lengths = np.sqrt((wide**2).sum(axis=1))
    sims = -np.sort(-(wide @ wide.T), axis=1)
    m = len(sims)
    bounds = {reference.list_length(m, params), reference.extension_columns(m, params), params.k_exp}
    tolerance = NEAR * lengths[:, None] * lengths.max() + 1e-44
    gaps = [sims[:, [b - 1]] - sims[:, [b]] for b in bounds if 0 < b < m]
    return any((gap <= tolerance).any() for gap in gaps)


def ill_conditioned(context: np.ndarray, params: RnnParams) -> bool:
    """Whether weights hang on rounding: a sum of weights, or a range of similarities, that nearly cancels."""
    with np.errstate(all="ignore"):
        wide = context.astype(np.float64)
        longest = (wide**2).sum(axis=1).max()
        done = reference.steps(context, params)
    off = done.raw[~np.eye(len(done.raw), dtype=bool)].astype(np.float64)
    if params.scale == "minmax" and off.max() - off.min() <= 1e-2 * longest:
        return True
    if longest < 1e-30:  # products in or near the subnormal numbers keep only some of their digits
        return True
    if params.scale == "none" and params.weight != "binary":
        sums = np.abs(np.array([sum(done.sims[i, j] for j in s) for i, s in enumerate(done.sets)]))
        return bool(params.normalize == "mean" or (done.sims < 0).any() or (sums < 1e-3 * longest).any())
    return params.normalize == "mean"


def agrees(found: np.ndarray, expected: np.ndarray) -> bool:
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    return bool(np.allclose(found, expected, rtol=1e-5, atol=1e-6 * scale))


def check(case: Case) -> str:
    """Run a case through the three functions; what came of it: "refused", "met" or "near a tie"."""
    contexts = contexts_of(case)
    why = refused(contexts, case.params)
    queries, candidates = case.vectors[:, 0], case.vectors[:, 1:]
    options: dict[str, Any] = {"lengths": case.lengths, "threads": case.threads}
    if why:
        for call in (
            lambda: rnn_similarity(queries, candidates, case.params, **options),
            lambda: jaccard_similarity(case.vectors, case.params, probes=case.probes, **options),
        ):
            with pytest.raises(InputError) as caught:
                call()
            said = str(caught.value)
            assert said.startswith("row "), said
            assert "\n" not in said
            assert any(word in said for word in ("NaN or infinite", "beyond the range", "weight exp")), said
        return "refused"

    similarity = rnn_similarity(queries, candidates, case.params, **options)
    jaccard = jaccard_similarity(case.vectors, case.params, probes=case.probes, **options)
    assert (similarity.dtype, similarity.shape) == (np.float32, candidates.shape[:2])
    assert (jaccard.dtype, jaccard.shape) == (np.float32, (len(queries), len(case.probes), case.vectors.shape[1]))
    outcome = "met"
    for row, context in enumerate(contexts):
        m = len(context)
        real = m if m > 1 else 0
        assert (similarity[row, m - 1 :] == -np.inf).all()
        assert (jaccard[row, :, real:] == -np.inf).all()
        if m < 2:
            continue
        inside = [number for number, probe in enumerate(case.probes) if probe < m]
        outside = [number for number, probe in enumerate(case.probes) if probe >= m]
        assert (jaccard[row, outside] == -np.inf).all()
        mine = similarity[row, : m - 1]
        others = jaccard[row, inside, :m]
        assert np.isfinite(mine).all()
        assert np.isfinite(others).all()
        if case.params.scale == "minmax" or case.params.weight == "binary":
            assert others.min(initial=0) >= 0
            assert others.max(initial=0) <= 1 + 1e-6
        wanted = reference.rnn_similarity(context[0], context[1:], case.params)
        wanted_others = reference.jaccard_similarity(context, case.params, [case.probes[i] for i in inside] or [0])
        if agrees(mine, wanted) and (not inside or agrees(others, wanted_others)):
            continue
        assert not case.exact, f"row {row}: {mine} is not {wanted}; {others} is not {wanted_others}"
        assert near_tie(context, case.params) or ill_conditioned(context, case.params), (
            f"row {row}: {mine} is not {wanted}; {others} is not {wanted_others}"
        )
        outcome = "near a tie"
    return outcome


def check_reranker(case: Case, seed: int) -> str:
    """The same vectors as a corpus: a made-up run comes back whole, in order, with the similarities of its contexts."""
    rng = np.random.default_rng((seed, 1))
    with np.errstate(all="ignore"):
        matrix = case.vectors[:, 1:].reshape(-1, case.vectors.shape[2]).astype(np.float32)
    entries = {
        f"q{query}": {
            f"d{row}": float(rng.choice([rng.standard_normal(), 1.0, 1e30]))
            for row in rng.choice(len(matrix), int(rng.integers(1, len(matrix) + 1)), replace=False)
        }
        for query in range(len(case.vectors))
    }
    run = Run.from_dict(entries)
    params = case.params
    with np.errstate(all="ignore"):
        queries = case.vectors[:, 0].astype(np.float32)
    heads = [[docid for docid, _ in run[qid][: params.context]] for qid in run.qids]
    contexts = [
        np.vstack([query[None], matrix[[int(docid[1:]) for docid in head]]])
        for query, head in zip(queries, heads, strict=True)
    ]
    reranker = RnnReranker(_held(matrix), params, threads=case.threads)
    if refused(contexts, params):
        with pytest.raises(InputError) as caught:
            reranker.rerank(run, QueryVectors(tuple(entries), queries))
        assert "\n" not in str(caught.value)
        return "refused"
    found = reranker.rerank(run, QueryVectors(tuple(entries), queries))
    again = {qid: found[qid] for qid in found.qids}
    for number, qid in enumerate(run.qids):
        assert {docid for docid, _ in again[qid]} == set(entries[qid])
        scores = np.array([score for _, score in again[qid]])
        assert np.isfinite(scores).all()
        order = sorted(again[qid], key=lambda entry: (-entry[1], entry[0]))
        head = min(params.context, len(order))
        assert again[qid][:head] == order[:head]
        alone = rnn_similarity(queries[number][None], contexts[number][None, 1:], params)[0]
        assert dict(again[qid][:head]) == dict(zip(heads[number], alone.astype(np.float64).tolist(), strict=True))
    return "met"


@pytest.mark.parametrize("first", range(FIRST, FIRST + CASES, BLOCK))
def test_random_input(first: int) -> None:
    outcomes: Counter[str] = Counter()
    faulthandler.dump_traceback_later(HANGS, exit=True)
    try:
        for seed in range(first, min(first + BLOCK, FIRST + CASES)):
            case = draw(seed)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    outcomes[check(case)] += 1
                    if len(case.vectors):
                        check_reranker(case, seed)
            except BaseException as error:
                where = f"RNNRERANKER_FUZZ=1 RNNRERANKER_FUZZ_SEED={seed}"
                made = f"{case.kind} {case.broken} {case.vectors.dtype} {case.vectors.shape}"
                raise AssertionError(f"{where}: {made}, {case.params}: {error!r}") from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert outcomes["near a tie"] <= max(5, 0.1 * outcomes.total()), outcomes
