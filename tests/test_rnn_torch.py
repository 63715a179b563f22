"""Similarities on tensors: what the reference says, whatever the parameters, the padding and the split."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from array_vectors import ArrayVectors

from rnnreranker import QueryVectors, RnnReranker, Run, rnn
from rnnreranker.base.errors import InputError
from rnnreranker.rnn import RnnParams, chunks, mixing, reference, reference_scores
from rnnreranker.rnn.engines.setting import EngineSetting
from rnnreranker.rnn.engines.torch import jaccard_similarity, rnn_similarity
from rnnreranker.search.__main__ import main as search

NEAR = {"rtol": 1e-4, "atol": 1e-6}
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, RnnParams]:
    """Vectors (B, m, d), of every second seed with ties, lengths with some 0, and parameters."""
    rng = np.random.default_rng(seed)
    batch, n, d = int(rng.integers(1, 5)), int(seed % 3 + 1 if seed % 4 == 0 else rng.integers(1, 22)), 8
    if seed % 2:
        vectors = rng.standard_normal((batch, n + 1, d))
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    else:  # small integers: inner products are exact, so ties are ties everywhere; and some vectors twice
        vectors = rng.integers(-2, 3, (batch, n + 1, d)) / 4
        vectors[:, rng.integers(0, n + 1)] = vectors[:, rng.integers(0, n + 1)]
    params = RnnParams(
        k=int(rng.integers(1, 15)),
        k_exp=int(rng.integers(1, 6)),
        tau=float(rng.choice([0, 0.3, 0.5, 1])),
        lam=float(rng.random()),
        weight=str(rng.choice(["linear", "exp", "binary"])),  # type: ignore[arg-type]
        weight_scale=float(rng.uniform(0.5, 3)),
        normalize=[None, "max", "mean"][rng.integers(3)],  # type: ignore[arg-type]
        scale="minmax" if rng.random() < 0.5 else "none",
        variant="authors" if rng.random() < 0.5 else "paper",
        probes=int(rng.integers(1, 5)),
        run_weight=float(rng.choice([0.0, 0.5, 1.0])),
        query_weight=float(rng.choice([0.0, 2.0])),
        rank_constant=float(rng.choice([0.5, 10.0, 60.0])),
        smoothing=float(rng.choice([0.0, 0.25, 1.0])),
        smoothing_neighbours=int(rng.integers(1, 12)),
    )
    return vectors.astype(np.float32), rng.integers(0, n + 1, batch), params


def vectors_of(batch: int, n: int, d: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((batch, n + 1, d)).astype(np.float32))


@pytest.mark.parametrize("block", range(6))
def test_random_settings_meet_the_reference(block: int) -> None:
    met = 0
    for seed in range(40 * block, 40 * block + 40):
        vectors, lengths, params = draw(seed)
        width = vectors.shape[1]
        probes = (0, width - 1)
        base = None if seed % 3 else -np.sort(-np.random.default_rng(seed).integers(0, 9, (len(vectors), width - 1)))
        expected = np.full((len(vectors), width - 1), -np.inf)
        overlaps = np.full((len(vectors), 2, width), -np.inf)
        try:
            for row, real in enumerate(lengths.tolist()):
                if real:
                    context = vectors[row, : real + 1]
                    known = None if base is None else base[row, :real]
                    expected[row, :real] = reference_scores.rnn_similarity(context[0], context[1:], params, known)
                    for place, probe in enumerate(probes):
                        if probe <= real:
                            overlaps[row, place, : real + 1] = reference.jaccard_similarity(context, params, [probe])[0]
        except InputError:  # an exponential weight that overflows
            with pytest.raises(InputError, match="float32 overflows"):
                rnn_similarity(vectors[:, 0], vectors[:, 1:], params, lengths=lengths)
            continue
        padded = vectors.copy()
        padded[np.arange(width) > lengths[:, None]] = np.nan  # never looked at
        found = rnn_similarity(
            torch.from_numpy(vectors[:, 0]), torch.from_numpy(padded[:, 1:]), params, base=base, lengths=lengths
        )
        np.testing.assert_allclose(found.numpy(), expected, **NEAR, err_msg=f"seed {seed}: {params}")
        padded[:, 0] = vectors[:, 0]
        shared = jaccard_similarity(torch.from_numpy(padded), params, probes=probes, lengths=torch.from_numpy(lengths))
        np.testing.assert_allclose(shared.numpy(), overlaps, **NEAR, err_msg=f"seed {seed}: {params}")
        met += 1
    assert met > 30


@pytest.mark.parametrize("scale", ["minmax", "none"])
def test_contexts_of_usual_size_meet_the_kernel(scale: Any) -> None:
    vectors, params = vectors_of(5, 60, 64, seed=1), RnnParams(scale=scale, k=21, tau=0.3)
    expected = rnn.rnn_similarity(vectors[:, 0].numpy(), vectors[:, 1:].numpy(), params)
    np.testing.assert_allclose(rnn_similarity(vectors[:, 0], vectors[:, 1:], params).numpy(), expected, **NEAR)


@pytest.mark.parametrize("seed", range(1, 40, 2))
def test_only_the_rounding_of_inner_products_sets_it_apart(seed: int) -> None:
    # the engine of the other functions, given products that are summed in float64 and rounded once, as here
    vectors, _, params = draw(seed)
    if params.weight == "exp" and params.normalize == "mean":  # overflows in some of these contexts
        params = dataclasses.replace(params, normalize="max")
    wide = vectors.astype(np.float64)
    gram = (wide @ wide.transpose(0, 2, 1)).astype(np.float32)
    sizes = np.full(len(vectors), vectors.shape[1])
    problem, setting, flat = np.zeros(len(vectors)), EngineSetting.of(params, sizes), gram.reshape(len(gram), -1)
    expected = mixing.similarities(chunks.ENGINES.now(), flat, sizes, None, params, setting, problem)
    assert not problem.any()
    found = rnn_similarity(vectors[:, 0], vectors[:, 1:], params)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-7)


def test_a_constant_that_outweighs_the_differences_is_taken_off() -> None:
    vectors = vectors_of(3, 20, 16, seed=4) / 4
    shifted = torch.cat([vectors, torch.full((3, 21, 1), 256.0)], dim=2)  # adds 65536 to every inner product
    params = RnnParams(k=4)
    plain = rnn_similarity(vectors[:, 0], vectors[:, 1:], params)
    np.testing.assert_allclose(rnn_similarity(shifted[:, 0], shifted[:, 1:], params), plain, rtol=1e-4, atol=1e-5)


def test_equal_candidates_are_listed_by_their_number() -> None:
    query, one = np.array([[1.0, 0.0]], dtype=np.float32), np.array([0.5, 0.5], dtype=np.float32)
    candidates = np.stack([one, one, one, one])[None]
    params = RnnParams(k=1, k_exp=1, tau=0, lam=0, scale="none", variant="authors")
    # by hand, lists of two: 0 -> 0 1, and 1 to 4 -> 0 1 (all 0.5, so the lowest numbers); in each other's: 0 and 1
    found = rnn_similarity(query, candidates, params)
    assert found[0, 1:].tolist() == [0.0, 0.0, 0.0]
    assert found[0, 0] == pytest.approx((1 / 2 + 1 / 3) / (2 / 3 + 1 / 2), rel=1e-6)  # rows 2/3 1/3 and 1/2 1/2


@pytest.mark.parametrize("params", [RnnParams(k=5), RnnParams(k=5, scale="none", weight="exp", normalize="max")])
def test_the_split_does_not_change_a_byte(params: RnnParams) -> None:
    vectors, lengths = vectors_of(23, 30, 24), np.arange(23) + 3
    whole = rnn_similarity(vectors[:, 0], vectors[:, 1:], params, lengths=lengths)
    shared = jaccard_similarity(vectors, params, lengths=lengths, probes=(0, 7))
    for budget in (1, 1_000_000, 3_000_000):
        found = rnn_similarity(vectors[:, 0], vectors[:, 1:], params, lengths=lengths, memory_budget=budget)
        assert found.numpy().tobytes() == whole.numpy().tobytes()
        found = jaccard_similarity(vectors, params, lengths=lengths, probes=(0, 7), memory_budget=budget)
        assert found.numpy().tobytes() == shared.numpy().tobytes()


def test_the_budget_sets_how_many_contexts_are_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from rnnreranker.rnn.engines import torch_steps

    seen, steps = [], torch_steps.steps

    def watched(vectors: Any, contexts: np.ndarray, params: RnnParams) -> Any:
        seen.append(len(contexts))
        return steps(vectors, contexts, params)

    monkeypatch.setattr(torch_steps, "steps", watched)
    vectors = vectors_of(5, 10, 4)
    for budget in (1, None):
        rnn_similarity(vectors[:, 0], vectors[:, 1:], RnnParams(), memory_budget=budget)
    assert seen == [1, 1, 1, 1, 1, 5]


def test_float16_is_computed_as_float32() -> None:
    vectors = vectors_of(2, 12, 8).half()
    found = rnn_similarity(vectors[:, 0], vectors[:, 1:], RnnParams(k=3))
    wide = vectors.float()
    assert found.dtype == torch.float32
    assert torch.equal(found, rnn_similarity(wide[:, 0], wide[:, 1:], RnnParams(k=3)))
    assert torch.equal(found, rnn_similarity(vectors[:, 0].numpy(), vectors[:, 1:].numpy(), RnnParams(k=3)))


def test_no_gradient_is_kept_and_nothing_given_is_changed() -> None:
    vectors = vectors_of(2, 6, 4).requires_grad_()
    before = vectors.detach().clone()
    assert not rnn_similarity(vectors[:, 0], vectors[:, 1:], RnnParams()).requires_grad
    assert torch.equal(vectors.detach(), before)


def test_no_queries_and_no_candidates() -> None:
    assert rnn_similarity(torch.zeros(0, 4), torch.zeros(0, 3, 4), RnnParams()).shape == (0, 3)
    nothing = rnn_similarity(torch.ones(2, 4), torch.full((2, 3, 4), torch.nan), RnnParams(), lengths=[0, 0])
    assert nothing.isneginf().all()
    assert jaccard_similarity(torch.ones(2, 3, 4), RnnParams(), lengths=[0, 0]).isneginf().all()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("scale", ["minmax", "none"])
@pytest.mark.parametrize("place", [0, 2])
def test_vectors_that_cannot_be_used_are_refused_in_the_same_words(value: float, scale: Any, place: int) -> None:
    vectors = vectors_of(4, 5, 3)
    vectors[2, place, 1] = value
    arrays, params = vectors.numpy(), RnnParams(scale=scale)
    with pytest.raises(InputError) as known:
        rnn.rnn_similarity(arrays[:, 0], arrays[:, 1:], params)
    for budget in (1, None):
        with pytest.raises(InputError) as found:
            rnn_similarity(vectors[:, 0], vectors[:, 1:], params, memory_budget=budget)
        assert str(found.value) == str(known.value)
    assert str(known.value).startswith("row 2 of the batch")
    with pytest.raises(InputError) as known:
        rnn.jaccard_similarity(arrays, params)
    with pytest.raises(InputError) as found:
        jaccard_similarity(vectors, params)
    assert str(found.value) == str(known.value)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"queries": torch.zeros(3, 4)}, "queries has 3 rows and candidates 2: expected as many"),
    ({"queries": torch.zeros(2, 5)}, "the dimension of queries is 5, that of candidates 4"),
    ({"queries": torch.zeros(4)}, "queries has shape (4,): expected (B, d); for one query pass queries[None]"),
    ({"candidates": torch.zeros(2, 0, 4)}, "candidates has shape (2, 0, 4): expected at least one candidate"),
    ({"queries": torch.zeros(2, 4, dtype=torch.bool)}, "queries has type torch.bool: expected float32 or float16"),
    ({"queries": torch.zeros(2, 4, dtype=torch.complex64)}, "queries has type torch.complex64"),
    ({"lengths": [1, 9]}, "lengths[1]=9: expected 0 to 3, the candidates of a row"),
    ({"lengths": torch.tensor([1])}, "lengths has shape (1,): expected (2,), one number per query"),
    ({"memory_budget": 0}, "memory_budget=0: expected bytes, an integer >= 1, or None"),
    ({"device": "gpu"}, "device=gpu: no name of a device; expected cpu, cuda, cuda:1"),
    ({"device": "meta"}, "device=meta: no name of a device; expected cpu"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_bad_input_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    given = {"queries": torch.ones(2, 4), "candidates": torch.ones(2, 3, 4), "params": RnnParams(), **change}
    with pytest.raises(InputError) as error:
        rnn_similarity(**given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"device=cuda: torch .* has no such device here; expected one of .*cpu"):
        rnn_similarity(torch.ones(2, 4), torch.ones(2, 3, 4), RnnParams(), device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(
        InputError, match=r"device=cuda:5: torch .* has no such device here; expected one of cuda:0, cuda:1, "
    ):
        rnn_similarity(torch.ones(2, 4), torch.ones(2, 3, 4), RnnParams(), device="cuda:5")


def test_probes_are_checked() -> None:
    with pytest.raises(InputError, match=r"probe 3 is no row of vectors: expected 0 \(the query\) to 2"):
        jaccard_similarity(torch.ones(1, 3, 2), RnnParams(), probes=(0, 3))
    with pytest.raises(InputError, match="expected at least one row number"):
        jaccard_similarity(torch.ones(1, 3, 2), RnnParams(), probes=())
    with pytest.raises(InputError, match="expected row 0"):
        jaccard_similarity(torch.ones(1, 1, 2), RnnParams())


@cuda
@pytest.mark.parametrize("tf32", [False, True])
def test_a_gpu_gives_what_the_processor_gives(tf32: bool) -> None:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        for seed in range(100):
            vectors, lengths, params = draw(seed)
            try:
                expected = rnn.rnn_similarity(vectors[:, 0], vectors[:, 1:], params, lengths=lengths)
            except InputError:
                continue
            found = rnn_similarity(vectors[:, 0], vectors[:, 1:], params, lengths=lengths, device="cuda")
            assert found.device.type == "cuda"
            np.testing.assert_allclose(found.cpu().numpy(), expected, **NEAR, err_msg=f"seed {seed}: {params}")
        assert torch.backends.cuda.matmul.allow_tf32 is tf32
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@cuda
def test_tensors_on_two_devices_are_refused_unless_a_device_is_given() -> None:
    vectors = vectors_of(2, 6, 4)
    with pytest.raises(InputError, match="expected one device"):
        rnn_similarity(vectors[:, 0].cuda(), vectors[:, 1:], RnnParams())
    found = rnn_similarity(vectors[:, 0].cuda(), vectors[:, 1:], RnnParams(), device="cpu")
    assert torch.equal(found, rnn_similarity(vectors[:, 0], vectors[:, 1:], RnnParams()))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
def test_a_reranker_on_a_device_gives_the_run_of_the_default_one(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    source, queries = ArrayVectors(rng.standard_normal((90, 16)).astype(np.float32)), rng.standard_normal((6, 16))
    entries = {
        f"q{q}": {f"d{row}": float(100 - place) for place, row in enumerate(rng.permutation(90)[: 5 + 12 * q])}
        for q in range(6)
    }
    run, given = Run.from_dict(entries), QueryVectors(tuple(entries), queries.astype(np.float32))
    params = RnnParams(context=40)
    expected = RnnReranker(source, params).rerank(run, given)
    used = []
    monkeypatch.setattr(
        "rnnreranker.rnn.engines.torch.rnn_similarity",
        lambda *a, **b: used.append(b["device"]) or rnn_similarity(*a, **b),
    )
    found = RnnReranker(source, params, device=device).rerank(run, given)
    assert set(used) == {device}
    for qid in run:
        before, after = expected[qid], found[qid]
        np.testing.assert_allclose([score for _, score in after], [score for _, score in before], **NEAR)
        known = dict(before)
        assert sorted(known) == sorted(docid for docid, _ in after)
        for (docid, score), (other, _) in zip(before, after, strict=True):
            assert docid == other or abs(known[other] - score) <= 1e-6


def test_a_device_that_is_not_there_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"device.cuda: torch .* has no such device here"):
        RnnReranker(ArrayVectors(np.ones((2, 2), dtype=np.float32)), device="cuda")
    with pytest.raises(InputError, match=r"device.cuda: torch .* has no such device here"):
        search(["--index", "no-such-index", "--query", "a", "--device", "cuda"])
    with pytest.raises(
        InputError, match="--device cpu: queries are encoded there, and rerankers of models compute; here bm25 works"
    ):
        search(
            ["--index", "no-such-index", "--query", "a", "--device", "cpu", "--retriever", "bm25", "--rerank", "none"]
        )
