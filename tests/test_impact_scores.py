"""Scores of impacts are inner products of weights, whatever numbers a part stores: of searches, feedback and fusions.

Paper 003, Section 2.3: "the score for a document is the mean score over all the individual model scores"; a mean over
models says that only where the scores of all have one scale.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from rnnreranker.base.method import find, make_params
from rnnreranker.methods.feedback.base import Feedback, second_pass_impacts
from rnnreranker.methods.retrieve.base import run_of_rows
from rnnreranker.parts.impacts import ImpactSource, QueryImpacts
from rnnreranker.runs import Run
from rnnreranker.runs.fuse import METHODS, fuse
from tests.test_impact_search import of_index, of_search, world  # noqa: F401  a fixture
from tests.test_impacts import made_up, written

DOCIDS = [f"d{row}" for row in range(60)]
FACTOR = 10_000.0  # fine enough for rounding to change no order here


def sources(folder: Path, seed: int) -> tuple[ImpactSource, ImpactSource, np.ndarray]:
    """The same documents in whole numbers and as they are; and (60, 50) their weights."""
    documents = made_up(60, 50, seed)
    whole, exact = (
        written(folder / "whole", documents, DOCIDS, FACTOR),
        written(folder / "float", documents, DOCIDS, None),
    )
    return whole, exact, documents.toarray()


def asked(source: ImpactSource, weights: csr_matrix, counted: bool) -> QueryImpacts:
    """Queries as a model weighs them, or counted."""
    return QueryImpacts(weights) if counted else source.as_stored(weights)


def counts(queries: int, seed: int) -> csr_matrix:
    """(queries, 50) CSR: 0, 1 or 2 of every word."""
    found = made_up(queries, 50, seed)
    found.data = np.ceil(found.data * 2)
    return found


def run_of(source: ImpactSource, queries: QueryImpacts) -> Run:
    scores, rows = source.search(queries, 60, 1)
    return run_of_rows(tuple(f"q{number}" for number in range(len(rows))), source.docids, scores, rows)


def same(one: Run, other: Run) -> None:
    assert one.qids == other.qids
    for qid in one:
        assert one.ranked(qid) == other.ranked(qid)
        assert [score for _, score in one[qid]] == pytest.approx([score for _, score in other[qid]], rel=2e-3, abs=1e-4)


def weights_of(counted: bool) -> csr_matrix:
    return counts(12, 3) if counted else made_up(12, 50, 2)


@pytest.mark.parametrize("counted", [False, True])
def test_scores_are_those_of_the_weights(tmp_path: Path, counted: bool) -> None:
    whole, exact, documents = sources(tmp_path, 1)
    weights = weights_of(counted)
    runs = [run_of(source, asked(source, weights, counted)) for source in (whole, exact)]
    same(*runs)
    by_hand = weights.toarray().astype(np.float64) @ documents.T.astype(np.float64)
    for number, qid in enumerate(runs[0]):
        for docid, score in runs[0][qid]:
            assert score == pytest.approx(by_hand[number, DOCIDS.index(docid)], rel=2e-3, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_fusions_of_whole_numbers_are_those_of_floats(tmp_path: Path, method: str) -> None:
    """A SPLADE-doc, whose queries are counted, and two SPLADEs whose parts keep other numbers; means by hand."""
    found: dict[str, list[Run]] = {"whole": [], "float": []}
    products = []
    for seed, counted, factor in ((1, True, FACTOR), (4, False, 3 * FACTOR), (5, False, 6 * FACTOR)):
        documents, weights = made_up(60, 50, seed), weights_of(counted)
        products.append(weights.toarray().astype(np.float64) @ documents.T.toarray().astype(np.float64))
        for name, of in (("whole", factor), ("float", None)):
            source = written(tmp_path / f"{name}-{seed}", documents, DOCIDS, of)
            found[name].append(run_of(source, asked(source, weights, counted)))
        same(found["whole"][-1], found["float"][-1])
    one, other = fuse(found["whole"], method), fuse(found["float"], method)
    for number, qid in enumerate(one):
        mine = dict(one[qid])
        assert mine == pytest.approx(dict(other[qid]), rel=2e-3, abs=2e-3)
        for docid, score in mine.items():
            parts = [product[number, DOCIDS.index(docid)] for product in products]
            if method.startswith("mean"):
                of_parts = len(parts) if method == "mean-zero" else np.count_nonzero(parts)
                assert score == pytest.approx(sum(parts) / of_parts, rel=2e-3, abs=1e-4)


def feedback(name: str) -> Feedback:
    return find("feedback", name)(make_params("feedback", name, {"fb_docs": 2}))


@pytest.mark.parametrize("name", ["rm3", "rocchio", "average"])
@pytest.mark.parametrize("counted", [False, True])
def test_feedback_weighs_queries_and_documents_alike(tmp_path: Path, name: str, counted: bool) -> None:
    """The second search has the scores of the query that it searches with; so counted words weigh as much as a model's.

    Rocchio's new query has its own scale, as its parts have length 1: scores are those of its weights.
    """
    whole, exact, documents = sources(tmp_path, 1)
    weights = weights_of(counted)
    runs = []
    for source in (whole, exact):
        again = second_pass_impacts(source, asked(source, weights, counted), feedback(name))
        runs.append(run_of(source, again))
        scores, rows = source.search(asked(source, weights, counted), 2, 1)
        for number in range(12):
            of = csr_matrix(documents[rows[number]])
            expected = feedback(name).of_impacts(weights[number], of, scores[number]).toarray()[0]
            np.testing.assert_allclose(again.weights[number].toarray()[0], expected, rtol=2e-3, atol=1e-4)
            by_hand = dict(zip(DOCIDS, documents @ expected, strict=True))
            for docid, score in runs[-1][f"q{number}"]:
                assert score == pytest.approx(by_hand[docid], rel=5e-3, abs=1e-4)
    for qid in runs[0]:
        assert dict(runs[0][qid]) == pytest.approx(dict(runs[1][qid]), rel=5e-3, abs=1e-4)
