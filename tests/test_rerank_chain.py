"""Rerankers by name: the encoder's own order, one reranker after another, and what a method is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from array_vectors import ArrayVectors
from query_sets import ranking
from refusals import refusal

from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run
from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.rerank.base import Candidates, ContextParams, Query, Reranker


def made(scale: float = 1.0) -> tuple[ArrayVectors, QueryVectors, Run]:
    """150 documents, two of them equal, and five queries with 2, 22, 42, 62 and 82 of them in a random order."""
    rng = np.random.default_rng(5)
    vectors = (rng.normal(size=(150, 24)) * scale).astype(np.float32)
    vectors[7] = vectors[3]
    docids = [f"d{number:03}" for number in range(150)]
    lists = {f"q{number}": rng.permutation(docids)[: 2 + 20 * number].tolist() for number in range(5)}
    run = Run.from_dict({qid: {docid: -float(rank) for rank, docid in enumerate(own)} for qid, own in lists.items()})
    queries = (rng.normal(size=(5, 24)) * scale).astype(np.float32)
    return ArrayVectors(vectors, docids), QueryVectors(run.qids, queries), run


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_encoder_gives_what_rnn_gave_with_lambda_1_on_raw_scores(scale: float) -> None:
    source, queries, run = made(scale)
    found = find("reranker", "encoder")(source).rerank(run, queries)
    theirs = RnnReranker(source, RnnParams(lam=1.0, context=1000, scale="none")).rerank(run, queries)
    for qid in run:
        assert found.ranked(qid) == theirs.ranked(qid)
        ours, those = ([score for _, score in ranked] for ranked in (found[qid], theirs[qid]))
        assert ours == pytest.approx(those, rel=1e-5, abs=1e-5 * scale**2)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_reranker_takes_up_where_the_one_before_left_off(scale: float, tmp_path: Path) -> None:
    """The head of the second is that of the first's order; through a file in between nothing changes but the scores."""
    source, queries, run = made(scale)
    first = find("reranker", "encoder")(source, ContextParams(context=30)).rerank(run, queries)
    first.write(tmp_path / "first.txt")
    read = Run.read(tmp_path / "first.txt")
    assert ranking(read) == ranking(first)
    for name in ("rnn", "zhong", "jaccard-plain", "regularise"):
        second = find("reranker", name)(source, make_params("reranker", name, {"context": 10}))
        found = second.rerank(first, queries)
        for qid in run:
            assert set(found.ranked(qid)[:10]) == set(first.ranked(qid)[:10])
            assert found.ranked(qid)[10:] == first.ranked(qid)[10:]
        if name != "regularise":  # the others read no scores
            again = second.rerank(read, queries)
            assert ranking(again) == ranking(found)
        found.write(tmp_path / f"{name}.txt")
        written = Run.read(tmp_path / f"{name}.txt")
        assert ranking(written) == ranking(found)
        assert all((np.diff(np.float32([score for _, score in written[qid]])) < 0).all() for qid in run)


@dataclass(frozen=True)
class TellingParams(Params):
    """Without `context`: all candidates are reranked."""

    answer: float = setting(1.0, "the score of all")


class Telling(Reranker):
    """Keeps what it was given."""

    name = "telling"
    Params = TellingParams
    seen: ClassVar[list[tuple[Query, Candidates]]] = []

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        self.seen.append((query, candidates))
        return np.full(len(candidates), self.params.answer)


def test_a_method_is_given_what_it_needs_and_nothing_else() -> None:
    source, queries, run = made()

    def refused() -> Any:
        raise AssertionError("not needed")

    class Plain(Telling):
        seen: ClassVar[list[tuple[Query, Candidates]]] = []

    Plain(Inputs(topics=refused, vectors=refused, query_vectors=refused, texts=refused)).rerank(run)
    query, candidates = Plain.seen[-1]
    assert (query, len(candidates)) == (query, 82)
    assert (query.qid, query.text, query.vector) == ("q4", None, None)
    assert (candidates.scores, candidates.vectors, candidates.texts) == (None,) * 3

    class Greedy(Telling):
        needs = frozenset({"run scores", "topics", "texts", "vectors", "query vectors"})
        seen: ClassVar[list[tuple[Query, Candidates]]] = []

    texts = {docid: f"text of {docid}" for docid in source.docids}
    inputs = Inputs(topics=dict.fromkeys(run, "wing"), vectors=source, query_vectors=lambda: queries, texts=texts)
    Greedy(inputs).rerank(run)
    query, candidates = Greedy.seen[1]
    assert (query.qid, query.text) == ("q1", "wing")
    assert query.vector.tolist() == queries.vectors[1].tolist()
    assert candidates.docids.tolist() == run.ranked("q1")
    assert candidates.scores.tolist() == [score for _, score in run["q1"]]
    assert candidates.vectors.tolist() == source.fetch(source.rows(run.ranked("q1"))).tolist()
    assert candidates.texts == [texts[docid] for docid in run.ranked("q1")]
    Greedy(inputs).rerank(run, QueryVectors(run.qids, -queries.vectors))  # those given come before
    assert Greedy.seen[-1][0].vector.tolist() == (-queries.vectors[4]).tolist()


def test_what_a_method_lacks_is_said() -> None:
    _, _, run = made()

    class Reader(Telling):
        needs = frozenset({"topics", "texts"})

    lost = run.docids[0]
    texts = {docid: "text" for docid in run.docids if docid != lost}
    with refusal(rf"1 of {len(run.docids)} docids in the run have no text \(first: {lost}\)"):
        Reader(Inputs(topics=dict.fromkeys(run, ""), texts=texts)).rows_of(run)
    with refusal(r"4 of 5 queries of the run have no text in the topics \(first: q1, q2, q3\)"):
        Reader(Inputs(topics={"q0": ""}, texts=texts)).rows_of(run)
    with refusal("texts are needed and were not given"):
        Reader(Inputs(topics=dict.fromkeys(run, ""))).rows_of(run)
    skipped = Reader(Inputs(topics=dict.fromkeys(run, ""), texts=texts), missing="skip").rerank(run)
    assert {skipped.ranked(qid)[-1] for qid in run if lost in run.ranked(qid)} == {lost}


def test_scores_of_a_method_are_looked_at() -> None:
    _, _, run = made()
    with refusal(r"rerank telling: query q0: scores .* or NaN or infinite ones"):
        _scoring(lambda n: np.full(n, np.nan)).rerank(run)
    with refusal(r"rerank telling: query q0: scores of shape \(1,\), .* expected \(2,\) finite"):
        _scoring(lambda n: np.ones(1)).rerank(run)
    with refusal("rerank telling: got RnnParams, expected TellingParams"):
        Telling(Inputs(), RnnParams())
    with refusal("device=cuda: telling takes none"):
        Telling(Inputs(), device="cuda")


def _scoring(how: Callable[[int], np.ndarray]) -> Reranker:
    class Scoring(Telling):
        def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
            return how(len(candidates))

    return Scoring(Inputs())
