"""Reranking a run: the context by s*, the rest below it, nothing lost, the same bytes in whatever portions."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_vectors import ArrayVectors
from query_sets import write_queries
from refusals import refusal

from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run, make_labels, open_index, rnn_similarity
from rnnreranker.base.errors import DataWarning
from rnnreranker.base.method import Inputs, choose
from rnnreranker.lab.diagnose import DiagnoseRequest, diagnose, verdict
from rnnreranker.labels.negatives import mine_negatives
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker
from rnnreranker.parts.vectors.together import mismatch
from rnnreranker.runs.head import place_below
from rnnreranker.search.__main__ import main as search


class ByText(Reranker):
    name = "by-text"
    needs = frozenset({"texts"})

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        return np.array([len(text) for text in candidates.texts], dtype=np.float64)


@pytest.fixture(scope="module")
def collection() -> tuple[ArrayVectors, QueryVectors, Run]:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(200, 16)).astype(np.float32)
    queries = rng.normal(size=(7, 16)).astype(np.float32)
    entries = {}
    for number, query in enumerate(queries):
        best = np.argsort(-(vectors @ query))[: 10 + 15 * number]
        entries[f"q{number}"] = {f"d{row}": float(vectors[row] @ query) for row in best}
    qids = tuple(f"q{number}" for number in range(7))
    return ArrayVectors(vectors), QueryVectors(qids, queries), Run.from_dict(entries)


def test_the_context_is_ordered_by_s_star_and_the_rest_follows(collection: tuple) -> None:
    source, queries, run = collection
    params = RnnParams(context=20)
    reranked = RnnReranker(source, params).rerank(run, queries)
    for number, qid in enumerate(run):
        before = run.ranked(qid)
        context = source.fetch(source.rows(before[:20]))
        similarity = rnn_similarity(queries.vectors[number : number + 1], context[None], params)[0]
        expected = [docid for _, docid in sorted(zip(-similarity, before[:20], strict=True))]
        after = reranked.ranked(qid)
        assert after == expected + before[20:]
        scores = [score for _, score in reranked[qid]]
        assert scores[: len(expected)] == pytest.approx(sorted(similarity.tolist(), reverse=True))
        assert all(high > low for high, low in itertools.pairwise(scores[19:]))


def test_ties_are_broken_by_docid() -> None:
    vector = np.ones((1, 4), dtype=np.float32)
    source = ArrayVectors(np.repeat(vector, 3, axis=0), ["b", "c", "a"])
    run = Run.from_dict({"q": {"c": 3.0, "b": 2.0, "a": 1.0}})
    reranked = RnnReranker(source, RnnParams.preset("vectors")).rerank(run, QueryVectors(("q",), vector))
    assert reranked.ranked("q") == ["a", "b", "c"]
    kept = RnnReranker(source).rerank(run, QueryVectors(("q",), vector))  # where nothing else speaks, the run does
    assert kept.ranked("q") == ["c", "b", "a"]


def test_missing_candidates_are_counted_or_left_below(collection: tuple) -> None:
    source, queries, _ = collection
    run = Run.from_dict({"q0": {"x1": 9.0, "d1": 8.0, "x2": 7.0, "d2": 6.0, "x3": 5.0, "x4": 4.0}})
    with refusal(r"4 of 6 docids in the run are not in the index \(first: x1, x2, x3\)"):
        RnnReranker(source).rerank(run, queries)
    with pytest.warns(
        DataWarning, match=r"rnn: 4 of 6 docids in the run are not in the index and .* \(first: x1, x2, x3\)"
    ):
        reranked = RnnReranker(source, missing="skip").rerank(run, queries)
    after = reranked.ranked("q0")
    assert set(after[:2]) == {"d1", "d2"}
    assert after[2:] == ["x1", "x2", "x3", "x4"]
    of_one = Run.from_dict({"q0": {"x1": 9.0, "x2": 7.0}, "q1": {"d1": 1.0}})
    with pytest.warns(DataWarning, match="rnn: 2 of 3 docids"):
        left = RnnReranker(source, missing="skip").rerank(of_one, queries)
    assert left.ranked("q0") == ["x1", "x2"]
    with refusal(r"^2 of 2 docids in the run are not in the index .* the run was made from$"):
        RnnReranker(source, missing="skip").rerank(of_one.of_queries([0]), queries)
    by_text = ByText(Inputs(texts={"d1": "a"}), missing="skip")
    with refusal(r"^2 of 2 docids in the run have no text"):
        by_text.rerank(of_one.of_queries([0]))
    with pytest.warns(DataWarning, match="by-text: 4 of 6 docids"):
        ByText(Inputs(texts={"d1": "a", "d2": "b"}), missing="skip").rerank(run)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        by_text.rerank(of_one.of_queries([1]))


@pytest.mark.parametrize("name", ["rnn", "prf", "mmr", "regularise", "zhong", "jaccard-plain"])
def test_scores_do_not_depend_on_portions_threads_or_the_order_of_queries(
    name: str, collection: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, queries, run = collection
    ragged = {qid: dict(run[qid][: 1 + 3 * number]) for number, qid in enumerate(run)} | {"q1": {}}
    asked: list[int] = []

    class Noting(ArrayVectors):
        def fetch(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            asked.append(len(rows))
            return super().fetch(rows, out)

    found = []
    chosen, turned = choose("reranker", name), QueryVectors(queries.qids[::-1], queries.vectors[::-1].copy())
    for together, own, step in ((1, queries, 1), (10 * source.dimension, turned, -1), (2**18, queries, 1)):
        monkeypatch.setattr(chosen.method, "at_once", together)
        noting = Noting(source.vectors[::step].copy(), source.docids[::step])
        inputs = Inputs(vectors=noting, query_vectors=own)
        inputs.compared = own
        asked.clear()
        found.append(chosen.method(inputs, chosen.params, threads=1 if step > 0 else 2).rerank(Run.from_dict(ragged)))
        assert sum(asked) == sum(map(len, ragged.values()))
    assert len(asked) == 1
    assert found[0].to_dict().keys() == ragged.keys()  # a query without entries stays
    for other in found[1:]:
        assert other.to_dict() == found[0].to_dict()


@pytest.mark.parametrize("last", [5e17, -5e17, 1e30, 0.3])
@pytest.mark.parametrize("scores", [[3.0, 2.0, 2.0], [1e30, 1.0, 0.5], [1e308, 0.0, -1e308], [2.0, 2.0, 2.0]])
def test_the_rest_stays_below_and_apart_where_float64_cannot_hold_its_differences(
    last: float, scores: list[float]
) -> None:
    below = place_below(last, np.array(scores))
    assert np.isfinite(below).all()
    assert below[0] < last
    np.testing.assert_array_equal(np.sign(np.diff(below)), np.sign(np.diff(scores)))


def _together(lexical: bool) -> tuple[Run, np.ndarray, np.ndarray]:
    """A run, the vectors of 40 queries and of 800 documents in groups; lexical: its scores are not of these vectors."""
    rng = np.random.default_rng(3)
    documents = np.repeat(rng.normal(size=(80, 48)), 10, axis=0) + rng.normal(size=(800, 48))
    queries = documents[::20] + rng.normal(size=(40, 48))
    documents, queries = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (documents, queries))
    scores = queries @ documents.T + (rng.normal(size=(40, 800)) / 6 if lexical else 0)
    run = {f"q{q}": {f"d{d}": float(scores[q, d]) for d in np.argsort(-scores[q])[:20]} for q in range(40)}
    return Run.from_dict(run), queries.astype(np.float32), documents.astype(np.float32)


APART = r"query and document vectors hardly belong together: .* like those of \d\d% of the other queries"
WRONG = {
    "true": (lambda q, d, rng: (q, d), ""),
    "docids permuted": (lambda q, d, rng: (q, d[rng.permutation(len(d))]), APART),
    "queries permuted": (lambda q, d, rng: (q[rng.permutation(len(q))], d), APART),
    "another encoder": (lambda q, d, rng: (q, d @ np.linalg.qr(rng.normal(size=(48, 48)))[0].astype("f4")), APART),
    "queries longer": (lambda q, d, rng: (100 * q, d), "document vectors have length 1, but query .* around 100;"),
}


@pytest.mark.parametrize(
    ("case", "lexical"), [*((case, False) for case in WRONG), ("true", True), ("queries permuted", True)]
)
@pytest.mark.long
def test_vectors_that_do_not_belong_together_are_reported_once_at_every_door(
    case: str, lexical: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, said = WRONG[case]
    run, queries, documents = _together(lexical)
    queries, documents = make(queries, documents, np.random.default_rng(4))
    write_queries(tmp_path / "docs.npy", (f"d{d}" for d in range(len(documents))), documents)
    write_queries(tmp_path / "queries.npy", run.qids, queries)
    index, vectors = open_index(tmp_path / "docs.npy"), QueryVectors(tuple(run.qids), queries)
    qrels = {qid: {run.ranked(qid)[0]: 1} for qid in run}
    doors: list[Callable[[], Any]] = [
        lambda: RnnReranker(index.vectors).rerank(run, vectors),
        lambda: index.rerank(run, ["rnn", "zhong"], encoded_queries=vectors),
        lambda: make_labels(run, qrels, index, encoded_queries=vectors),
        lambda: mine_negatives(run, qrels, index, encoded_queries=vectors),
        lambda: diagnose(DiagnoseRequest(run=run, index=index, encoded_queries=vectors))[0],
    ]
    for door in doors:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            measured = door()
        messages = [str(one.message) for one in caught if issubclass(one.category, DataWarning)]
        assert len(messages) == bool(said)
        assert all(re.match(said, message) for message in messages)
    assert (verdict(measured)["word"] == "no verdict") == bool(said)
    run.write(tmp_path / "run.txt")
    flags = f"--index {tmp_path}/docs.npy --encoded-queries {tmp_path}/queries.npy --run {tmp_path}/run.txt"
    assert search(f"{flags} --rerank rnn --rerank zhong --output {tmp_path}/out.txt".split()) == 0
    reported = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert len(reported) == bool(said)
    assert all(re.match(f"warning: {said}", line) for line in reported)


def test_few_queries_and_shared_candidates_say_nothing_of_vectors() -> None:
    run, queries, documents = _together(False)
    permuted = ArrayVectors(documents[np.random.default_rng(4).permutation(len(documents))])
    vectors = QueryVectors(tuple(run.qids), queries)
    assert mismatch(run, vectors, permuted)
    assert not mismatch(run.of_queries(range(7)), vectors, permuted)
    same = Run.from_dict({qid: dict(run["q0"]) for qid in run})
    assert not mismatch(same, vectors, permuted)
    assert not mismatch(run, vectors, ArrayVectors(documents, [f"other{row}" for row in range(len(documents))]))


def test_a_run_of_distances_is_reported_before_its_reranking() -> None:
    run, queries, documents = _together(False)
    source, vectors = ArrayVectors(documents), QueryVectors(tuple(run.qids), queries)
    turned = Run.from_dict({qid: {docid: 1 - score for docid, score in run[qid]} for qid in run})
    for count in (1, 40):
        with pytest.warns(DataWarning, match="scores fall where similarities to the query rise") as caught:
            RnnReranker(source).rerank(turned.of_queries(range(count)), vectors)
        assert len(caught) == 1
    lexical = _together(True)[0]
    ranked = {qid: {docid: 1 / rank for rank, docid in enumerate(run.ranked(qid), 1)} for qid in run}
    for sound in (run, lexical, Run.from_dict({qid: dict.fromkeys(dict(run[qid]), 1.0) for qid in run})):
        assert not mismatch(sound, vectors, source)
    assert not mismatch(Run.from_dict(ranked), vectors, source)
