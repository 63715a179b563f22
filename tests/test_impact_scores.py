"""Scores of impacts are inner products of weights, whatever numbers a part stores: of searches, feedback and fusions.

Paper 003, Section 2.3: "the score for a document is the mean score over all the individual model scores"; a mean over
models says that only where the scores of all have one scale.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.methods.feedback.base import Feedback
from rnnreranker.methods.retrieve.base import run_of_rows
from rnnreranker.parts.postings.source import ImpactSource, QueryImpacts
from rnnreranker.runs import Run
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


def feedback(name: str) -> Feedback:
    return find("feedback", name)(make_params("feedback", name, {"fb_docs": 2}))


@pytest.mark.parametrize("name", ["rm3", "rocchio", "average"])
@pytest.mark.parametrize("counted", [False, True])
def test_feedback_weighs_queries_and_documents_alike(tmp_path: Path, name: str, counted: bool) -> None:
    """The second search is by the weights of the query; so counted words weigh as much as a model's."""
    whole, exact, documents = sources(tmp_path, 1)
    weights = weights_of(counted)
    for source in (whole, exact):
        retriever = find("retriever", "impact")(Inputs(impacts=source), feedback=feedback(name))
        queries = asked(source, weights, counted)
        scores, rows = retriever.search(queries, 2)
        again = retriever.queries_again(queries, (scores, rows))
        for number in range(12):
            of = csr_matrix(documents[rows[number]])
            expected = feedback(name).of_impacts(weights[number], of, scores[number]).toarray()[0]
            np.testing.assert_allclose(again.weights[number].toarray()[0], expected, rtol=2e-3, atol=1e-4)
