"""Random input through the public functions: what the reference says, or one clear line; never NaN, a warning, a hang.

RNNRERANKER_FUZZ is the number of cases (1,500 unless given), RNNRERANKER_FUZZ_SEED the number of the first one: a
failing case says its own, so RNNRERANKER_FUZZ=1 RNNRERANKER_FUZZ_SEED=that runs it alone.

A result must meet the reference at relative 1e-5 and absolute 1e-6 of the largest value (at least of 1, raw scores grow
with the vectors). Near ties are not exempt: the reference multiplies with the same BLAS call on one thread, so the
float32 similarities that lists are made from have the same bytes, and sums of weights have the same order.
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
from array_vectors import ArrayVectors

from rnnreranker.base.errors import DataWarning, InputError
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.methods.rerank import RnnReranker
from rnnreranker.parts.vectors import QueryVectors
from rnnreranker.rnn import RnnParams, jaccard_similarity, reference, reference_scores, rnn_similarity
from rnnreranker.runs import Run

CASES = int(os.environ.get("RNNRERANKER_FUZZ", "1500"))
FIRST = int(os.environ.get("RNNRERANKER_FUZZ_SEED", "0"))
HANGS = 60  # seconds for a hundred cases
BLOCK = 100
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
        rank_weight=float(rng.choice([0.0, 1.0])),
        run_weight=float(rng.choice([0.0, 1.0, 3.0])),
        probes=int(rng.choice([1, 2, 3, 30])),
        smoothing=float(rng.choice([0.0, 0.25, 1.0])),
        smoothing_neighbours=int(rng.choice([1, 2, 5, 60, 200])),
    )
    probes = tuple(int(probe) for probe in rng.integers(0, n + 1, rng.integers(1, 4)))
    return Case(array, lengths, params, probes, int(rng.integers(1, 4)), kind, broken)


def _typed(vectors: np.ndarray, rng: np.random.Generator, power: float) -> np.ndarray:
    """As float32 mostly, or as another type that can hold it."""
    choices: list[Any] = [np.float32, np.float32, np.float32, np.float64, np.float16]
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


def agrees(found: np.ndarray, expected: np.ndarray) -> bool:
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    return bool(np.allclose(found, expected, rtol=1e-5, atol=1e-6 * scale))


def check(case: Case) -> str:
    """Run a case through the three functions; what came of it: "refused" or "met"."""
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
        wanted = reference_scores.rnn_similarity(context[0], context[1:], case.params)
        wanted_others = reference.jaccard_similarity(context, case.params, [case.probes[i] for i in inside] or [0])
        assert agrees(mine, wanted), f"row {row}: {mine} is not {wanted}"
        assert not inside or agrees(others, wanted_others), f"row {row}: {others} is not {wanted_others}"
    return "met"


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
    reranker = RnnReranker(ArrayVectors(matrix), params, threads=case.threads)
    if refused(contexts, params):
        with pytest.raises(InputError) as caught:
            reranker.rerank(run, QueryVectors(tuple(entries), queries))
        assert "\n" not in str(caught.value)
        return "refused"
    found = reranker.rerank(run, QueryVectors(tuple(entries), queries))
    known = reranker.run_scores(run)
    again = {qid: found[qid] for qid in found.qids}
    for number, qid in enumerate(run.qids):
        assert {docid for docid, _ in again[qid]} == set(entries[qid])
        scores = np.array([score for _, score in again[qid]])
        assert np.isfinite(scores).all()
        order = sorted(again[qid], key=lambda entry: (-entry[1], entry[0]))
        head = min(params.context, len(order))
        assert again[qid] == order
        assert [docid for docid, _ in order[head:]] == [docid for docid, _ in run[qid][head:]]
        first, size = int(run.offsets[number]), len(contexts[number]) - 1
        base = known[first : first + size][None]
        alone = rnn_similarity(queries[number][None], contexts[number][None, 1:], params, base=base)[0]
        assert dict(again[qid][:head]) == dict(zip(heads[number], alone.astype(np.float64).tolist(), strict=True))
    return "met"


@pytest.mark.parametrize("first", range(FIRST, FIRST + CASES, BLOCK))
@pytest.mark.long
def test_random_input(first: int, capfd: pytest.CaptureFixture[str]) -> None:
    outcomes: Counter[str] = Counter()
    with capfd.disabled():
        errors = os.dup(2)  # a hang ends the process: say where it hung on the terminal itself
    faulthandler.dump_traceback_later(HANGS, exit=True, file=errors)
    try:
        for seed in range(first, min(first + BLOCK, FIRST + CASES)):
            case = draw(seed)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    warnings.simplefilter("ignore", DataWarning)  # that the run tells only its order
                    with one_blas_thread():
                        outcomes[check(case)] += 1
                        if len(case.vectors):
                            check_reranker(case, seed)
            except BaseException as error:
                where = f"RNNRERANKER_FUZZ=1 RNNRERANKER_FUZZ_SEED={seed}"
                made = f"{case.kind} {case.broken} {case.vectors.dtype} {case.vectors.shape}"
                raise AssertionError(f"{where}: {made}, {case.params}: {error!r}") from error
    finally:
        faulthandler.cancel_dump_traceback_later()
        os.close(errors)
    if min(BLOCK, FIRST + CASES - first) == BLOCK:  # most are computed, some refused
        assert outcomes["met"] > outcomes["refused"] > 0, outcomes


def malformed(rng: np.random.Generator) -> tuple[str, Any]:
    """A call that no batch can make good, with its name."""
    batch, n, d = (int(rng.integers(1, 5)) for _ in range(3))
    queries, candidates = np.ones((batch, d), np.float32), np.ones((batch, n, d), np.float32)
    vectors = np.ones((batch, n + 1, d), np.float32)
    params, more = RnnParams(), int(rng.integers(1, 5))
    kind = rng.choice(["object", "str", "bool", "complex", "datetime64[s]", "S3", "V4"])
    odd = np.zeros(candidates.shape, dtype=kind)
    depth = int(rng.choice([0, 1, 2, 4]))
    lengths: list[Any] = [
        [0] * (batch + more),
        [[0] * batch],
        [n + more] * batch,
        [-more] * batch,
        [0.5] * batch,
        ["1"] * batch,
        [None] * batch,
        [True] * batch,
        [2**70] * batch,
        [np.nan] * batch,
    ]
    wrong_lengths = lengths[rng.integers(0, len(lengths))]
    probes: list[Any] = [(), (n + more,), (-more,), (0.5,), ("0",), ((0,),), (None,), 0, (2**70,)]
    wrong_probes = probes[rng.integers(0, len(probes))]
    wrong_threads: Any = [0, -more, 1.5, "2", True, np.nan][rng.integers(0, 6)]
    calls: dict[str, Any] = {
        f"candidates {kind}": lambda: rnn_similarity(queries, odd, params),
        f"queries {kind}": lambda: rnn_similarity(odd[:, 0], candidates, params),
        f"vectors {kind}": lambda: jaccard_similarity(odd, params),
        "more queries": lambda: rnn_similarity(np.ones((batch + more, d)), candidates, params),
        "another dimension": lambda: rnn_similarity(np.ones((batch, d + more)), candidates, params),
        "no candidates": lambda: rnn_similarity(queries, candidates[:, :0], params),
        "no dimension": lambda: rnn_similarity(queries[:, :0], candidates[:, :, :0], params),
        "only a query": lambda: jaccard_similarity(vectors[:, :1], params),
        "ragged": lambda: rnn_similarity(queries, [[[1.0]], [[1.0], [2.0]]], params),  # type: ignore[arg-type]
        f"queries of {depth}": lambda: rnn_similarity(np.ones((1,) * (depth + (depth == 2))), candidates, params),
        f"vectors of {depth}": lambda: jaccard_similarity(np.ones((2,) * depth), params),
        f"lengths {wrong_lengths}": lambda: rnn_similarity(queries, candidates, params, lengths=wrong_lengths),
        f"lengths of vectors {wrong_lengths}": lambda: jaccard_similarity(vectors, params, lengths=wrong_lengths),
        f"probes {wrong_probes}": lambda: jaccard_similarity(vectors, params, probes=wrong_probes),
        f"threads {wrong_threads}": lambda: rnn_similarity(queries, candidates, params, threads=wrong_threads),
        f"threads of vectors {wrong_threads}": lambda: jaccard_similarity(vectors, params, threads=wrong_threads),
    }
    name = list(calls)[rng.integers(0, len(calls))]
    return name, calls[name]


@pytest.mark.parametrize("first", range(FIRST, FIRST + CASES, 10 * BLOCK))
def test_malformed_calls(first: int) -> None:
    for seed in range(first, min(first + 10 * BLOCK, FIRST + CASES)):
        name, call = malformed(np.random.default_rng((seed, 2)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                returned = call()
            problem = f"returned {returned!r}"
        except InputError as error:
            problem = "more than one line" if "\n" in str(error) else ""
        except Exception as error:
            problem = repr(error)
        assert not problem, f"RNNRERANKER_FUZZ=1 RNNRERANKER_FUZZ_SEED={seed}: {name}: {problem}"
