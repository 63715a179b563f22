"""The numbers that the authors' implementation produced, against the reference and the public functions.

Every case file in the folder is a test, so further cases are picked up by being there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnreranker.rnn import RnnParams, jaccard_similarity, reference, reference_scores, rnn_similarity

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("RNNRERANKER_SHARED") or ROOT.parent / "shared") / "golden"
CASES = sorted(path.stem for path in FOLDER.glob("c*.npz"))
TOLERANCE = {"rtol": 1e-4, "atol": 1e-6}

pytestmark = pytest.mark.parametrize("name", CASES or ["(no cases)"])


class Case:
    """One golden file: its inputs as our functions take them, and its expected numbers."""

    def __init__(self, path: Path) -> None:
        self.expected: dict[str, np.ndarray] = dict(np.load(path))
        told: dict[str, Any] = json.loads(str(self.expected["params"]))
        self.tied = told.get("gen_dup", False)
        self.params = RnnParams(
            k=told["k"],
            k_exp=told["k_exp"],
            tau=told["trust_factor"],
            lam=told["sim_mixing_coef"],
            weight=told["weight_func"],
            weight_scale=told["weight_func_param"],
            normalize=None if told["normalize"] in (None, "None") else told["normalize"],
            scale="none",
        )
        self.query = self.expected["query"]
        self.candidates = self.expected["docs"][: told["hit"]]
        self.vectors = np.vstack([self.query[None], self.candidates])
        self.lists = self.expected["initial_rank"]

    def steps(self) -> reference.Steps:
        """Our steps; where there are exact ties, over the authors' neighbour lists."""
        return reference.steps(self.vectors, self.params, lists=self.lists if self.tied else None)

    def probes(self, which: str) -> tuple[np.ndarray, int]:
        """The context of a smooth-label case, query first, and how many of its first candidates are positives."""
        every = np.concatenate([self.expected["doc_ids"], self.expected["extra_doc_ids"]])
        texts = np.concatenate([self.expected["docs"], self.expected["extra_docs"]])
        row = {int(docid): i for i, docid in enumerate(every)}
        order = [row[int(docid)] for docid in self.expected[f"sl_{which}_ids"]]
        return np.vstack([self.query[None], texts[order]]), len(self.expected[f"sl_{which}_pos_ids"])


@pytest.fixture
def case(name: str, shared: Path) -> Case:
    if not CASES:
        pytest.fail(f"no c*.npz in {shared / 'golden'}")
    return Case(shared / "golden" / f"{name}.npz")


def test_similarities(case: Case) -> None:
    np.testing.assert_allclose(case.steps().ranking, case.expected["pwise_sims"], **TOLERANCE)


def test_neighbour_lists_are_the_same_sets(case: Case) -> None:
    if case.tied:
        sims, ours = case.steps().ranking, reference.neighbour_lists(case.steps().ranking, case.lists.shape[1])
        for row, mine, theirs in zip(sims, ours, case.lists, strict=True):  # equal up to the choice among ties
            np.testing.assert_allclose(row[mine], row[theirs], **TOLERANCE)
        return
    lists = case.steps().lists
    assert [len(entries) for entries in lists] == [case.lists.shape[1]] * len(lists)
    assert [set(entries) for entries in lists] == [set(row) for row in case.lists.tolist()]


def test_weights_before_expansion(case: Case) -> None:
    expected = np.zeros(case.expected["pwise_sims"].shape)
    expected[case.expected["V_rows"], case.expected["V_cols"]] = case.expected["V_vals"]
    members = np.zeros(expected.shape, dtype=bool)
    members[case.expected["V_rows"], case.expected["V_cols"]] = True
    done = case.steps()
    assert [set(np.flatnonzero(row).tolist()) for row in members] == done.sets
    np.testing.assert_allclose(done.weights, expected, **TOLERANCE)


def test_weights_after_expansion(case: Case) -> None:
    if "Vexp" in case.expected:
        expected = case.expected["Vexp"]
    else:  # too large to store: average the stored rows over the stored lists
        rows = np.zeros(case.expected["pwise_sims"].shape)
        rows[case.expected["V_rows"], case.expected["V_cols"]] = case.expected["V_vals"]
        expected = rows[case.lists[:, : case.params.k_exp]].mean(axis=1)
    np.testing.assert_allclose(case.steps().expanded, expected, **TOLERANCE)


def test_jaccard_and_score_of_the_reference(case: Case) -> None:
    done = case.steps()
    jaccard = reference.jaccard(done.expanded, 0)
    final = reference_scores.mix(reference_scores.geometric(done, case.params), jaccard[1:], case.params.lam)
    np.testing.assert_allclose(jaccard, without_nan(case.expected["jaccard"]), **TOLERANCE)
    np.testing.assert_allclose(final, expected_final(case), **TOLERANCE)


def test_jaccard_and_score_of_the_public_functions(case: Case) -> None:
    final = rnn_similarity(case.query[None], case.candidates[None], case.params)[0]
    if case.tied:  # the authors' lists are needed, which only the reference takes: compare under our rule for ties
        np.testing.assert_allclose(
            final, reference_scores.rnn_similarity(case.query, case.candidates, case.params), **TOLERANCE
        )
        return
    np.testing.assert_allclose(final, expected_final(case), **TOLERANCE)
    jaccard = jaccard_similarity(case.vectors[None], case.params)[0, 0]
    np.testing.assert_allclose(jaccard, without_nan(case.expected["jaccard"]), **TOLERANCE)


@pytest.mark.parametrize("which", ["p1", "p2", "p3"])
def test_positives_as_probes(case: Case, which: str) -> None:
    if f"sl_{which}_ids" not in case.expected:
        pytest.skip("this case stores no smooth labels")
    vectors, positives = case.probes(which)
    jaccard = jaccard_similarity(vectors[None], case.params, probes=range(1, positives + 1))[0]
    if case.tied:  # the authors' lists of this context are not stored: compare under our rule for ties
        ours = reference.jaccard_similarity(vectors, case.params, range(1, positives + 1))
        np.testing.assert_allclose(jaccard, ours, **TOLERANCE)
        return
    theirs = case.expected[f"sl_{which}_jaccard"]
    np.testing.assert_allclose(jaccard, without_nan(theirs), **TOLERANCE)
    sims = reference.similarities(reference.inner_products(vectors), case.params)[1][1 : positives + 1]
    final = reference_scores.mix(sims, jaccard, case.params.lam)
    known = ~np.isnan(theirs)
    np.testing.assert_allclose(final[known], case.expected[f"sl_{which}_final"][known], **TOLERANCE)


def without_nan(jaccard: np.ndarray) -> np.ndarray:
    """The authors get 0/0 between two elements with empty reciprocal sets; a sound implementation gives 0."""
    return np.where(np.isnan(jaccard), 0.0, jaccard)


def expected_final(case: Case) -> np.ndarray:
    geometric = case.expected["pwise_sims"][0, 1:]
    final = case.expected["final"]
    return np.where(np.isnan(final), case.params.lam * geometric, final)
