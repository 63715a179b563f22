"""The numbers that the authors' implementation produced, and those of the default, against all that computes them.

Every case file in the folder is a test.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_vectors import ArrayVectors

from rnnreranker import QueryVectors, RnnReranker, Run
from rnnreranker.rnn import RnnParams, jaccard_similarity, reference, rnn_similarity, warm_up

FOLDER = Path(os.environ.get("RNNRERANKER_SHARED") or Path(__file__).resolve().parents[2] / "shared") / "golden"
NEAR = {"rtol": 1e-4, "atol": 1e-6}


def cases(*patterns: str) -> list[str]:
    found = [path.name for pattern in patterns for path in sorted(FOLDER.glob(pattern))]
    return found or ["(no cases)"]


def expect(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, **NEAR)


def case_of(name: str, shared: Path) -> tuple[dict[str, np.ndarray], RnnParams, bool]:
    """A case, its parameters, and whether some of its inner products are equal."""
    case = dict(np.load(shared / "golden" / name))
    told: dict[str, Any] = json.loads(str(case["params"]))
    params = RnnParams(
        k=told["k"], k_exp=told["k_exp"], tau=told["trust_factor"], lam=told["sim_mixing_coef"],
        weight=told["weight_func"], weight_scale=told["weight_func_param"], scale="none",
        normalize=None if told["normalize"] in (None, "None") else told["normalize"],
    )  # fmt: skip
    case["docs_of_context"] = case["docs"][: told["hit"]]
    return case, params, bool(told.get("gen_dup", False))


@pytest.mark.parametrize("name", cases("c*.npz"))
def test_every_step_of_the_authors(name: str, shared: Path) -> None:
    """Where inner products are equal, our steps over the authors' neighbour lists, which have another rule for ties."""
    case, params, tied = case_of(name, shared)
    vectors, lists = np.vstack([case["query"][None], case["docs_of_context"]]), case["initial_rank"]
    done = reference.steps(vectors, params, lists=lists if tied else None)
    expect(done.ranking, case["pwise_sims"])
    ours = reference.neighbour_lists(done.ranking, lists.shape[1])
    for row, mine, theirs in zip(done.ranking, ours, lists.tolist(), strict=True):
        assert tied or set(mine) == set(theirs)
        expect(row[mine], row[theirs])
    weights, members = np.zeros(case["pwise_sims"].shape), np.zeros(case["pwise_sims"].shape, dtype=bool)
    weights[case["V_rows"], case["V_cols"]], members[case["V_rows"], case["V_cols"]] = case["V_vals"], True
    assert [set(np.flatnonzero(row).tolist()) for row in members] == done.sets
    expect(done.weights, weights)
    expect(done.expanded, case["Vexp"] if "Vexp" in case else weights[lists[:, : params.k_exp]].mean(axis=1))
    expected = np.nan_to_num(case["jaccard"])  # the authors get 0/0 between two elements with empty sets
    final = np.where(np.isnan(case["final"]), params.lam * case["pwise_sims"][0, 1:], case["final"])
    expect(reference.jaccard(done.expanded, 0), expected)
    expect(reference.parts(done, params).scores, final)
    if tied:  # public functions have our rule for ties
        expected = reference.jaccard_similarity(vectors, params)[0]
        final = reference.rnn_similarity(vectors[0], vectors[1:], params)
    warm_up()  # for the kernel; `dense` gives the same bytes
    expect(rnn_similarity(vectors[None, 0], vectors[None, 1:], params)[0], final)
    expect(jaccard_similarity(vectors[None], params)[0, 0], expected)


@pytest.mark.parametrize("name", cases("fp*.npz", "sm*.npz"))
def test_the_default_with_the_scores_of_a_run(name: str, shared: Path) -> None:
    case = dict(np.load(shared / "golden" / name))
    smoothing = {"smoothing": 0.25 if name.startswith("sm") else 0.0, "smoothing_neighbours": 5}
    params = RnnParams(**json.loads(str(case["params"])), **smoothing)
    assert dataclasses.replace(params, context=60, probes=3) == RnnParams(**smoothing)
    query, candidates, base = case["query"], case["candidates"], case["run_scores"]
    found = [rnn_similarity(query[None], candidates[None], params, base=base[None])[0]]
    found.append(reference.rnn_similarity(query, candidates, params, base))
    if len(np.unique(base)) == len(base):  # else docids would decide the order of the run
        source = ArrayVectors(candidates, [f"d{number:02}" for number in range(len(candidates))])
        run = Run.from_dict({"q": {docid: float(score) for docid, score in zip(source.docids, base, strict=True)}})
        reranked = dict(RnnReranker(source, params).rerank(run, QueryVectors(("q",), query[None]))["q"])
        found.append(np.array([reranked[docid] for docid in source.docids]))
    for scores in found:
        np.testing.assert_allclose(scores, case["expected"], atol=1e-6)
