"""Every label method on a small collection: what it gives, what is put in, and that batches leave no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from labelers import make_labeler as labeler_of
from query_sets import write_queries
from refusals import refusal

from rnnreranker import LabelParams, QueryVectors, RnnParams, Run, VectorSource, open_vectors, rnn_similarity
from rnnreranker.base.method import Inputs, find
from rnnreranker.labels.methods import base
from rnnreranker.labels.methods.base import Labeler
from rnnreranker.labels.methods.simple import JointParams, RunLabelParams
from rnnreranker.labels.methods.teacher import TeacherParams
from rnnreranker.labels.targets import aggregated, of_grades, redistributed, targets, transformed
from rnnreranker.rnn.params import VECTORS_ALONE

PARAMS = RnnParams(k=4, context=12)
METHODS = ("evidence", "geometric", "hard", "jaccard", "joint", "query", "uniform")


def make_labeler(
    method: str, source: VectorSource, queries: QueryVectors, params: Any = None, labels: Any = None, **rest: Any
) -> Labeler:
    return labeler_of(method, Inputs(vectors=source, query_vectors=queries), params, labels, **rest)


def collection(tmp_path: Path) -> tuple[VectorSource, QueryVectors, Run]:
    random = np.random.default_rng(1)
    docids, vectors = (f"d{n:02}" for n in range(40)), random.normal(size=(40, 16))
    source = open_vectors(write_queries(tmp_path / "v.npy", docids, vectors))
    asked = random.normal(size=(7, 16)).astype(np.float32)
    scores, rows = source.search(asked, 20)
    found = {
        f"q{n}": {source.docids[row]: float(score) for row, score in zip(rows[n], scores[n], strict=True)}
        for n in range(7)
    }
    return source, QueryVectors(tuple(found), asked), Run.from_dict(found)


def judgements(rows: list[tuple[str, str, int]]) -> pandas.DataFrame:
    return pandas.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])


def some(run: Run) -> pandas.DataFrame:
    """One positive a query, two for q1, one for q2 that is no candidate, none for q3."""
    absent = next(f"d{n:02}" for n in range(40) if f"d{n:02}" not in run.ranked("q2"))
    rows = [(qid, run.ranked(qid)[2], 1) for qid in run if qid not in ("q2", "q3")]
    return judgements([*rows, ("q1", run.ranked("q1")[0], 3), ("q2", absent, 1), ("q3", run.ranked("q3")[0], 0)])


def test_labels_by_a_run_are_the_softmax_of_its_scores() -> None:
    run = Run.from_dict({"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.5}, "p": {"a": 1.0}})
    raw = LabelParams(normalization="none", boost=1.0, n_max=None)
    labels = labeler_of("run", Inputs(), RunLabelParams(context=3), raw).infer(run, judgements([("q", "z", 2)]))
    (one,) = labels
    assert list(one.docids) == ["z", "a", "b", "c", "d"]
    given = np.exp([2.0, 3.0, 2.0])  # z, put in, has the lowest of the context
    assert one.targets == pytest.approx([*(given / given.sum()), 0, 0], abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_distributions(tmp_path: Path, method: str) -> None:
    source, queries, run = collection(tmp_path)
    qrels = some(run)
    labels = make_labeler(method, source, queries, PARAMS, LabelParams(n_max=5)).infer(run, qrels)
    assert labels.qids == ("q0", "q1", "q2", "q4", "q5", "q6")
    for one in labels:
        assert one.targets.sum() == pytest.approx(1.0, abs=1e-6)
        assert (one.targets >= 0).all()
        assert one.targets[one.positive].sum() > 0
        absent = one.qid == "q2"  # the positive is no candidate, and displaces the last
        others = [docid for docid in run.ranked(one.qid) if docid not in one.docids[: one.positive.sum()]]
        assert one.docids[one.positive.sum() :] == others
        assert len(one.docids) == 20 + absent
    assert labels["q1"].docids[:2] == [run.ranked("q1")[2], run.ranked("q1")[0]]
    assert labels["q1"].positive.tolist() == [True, True] + [False] * 18
    assert labels["q2"].positive.sum() == 1
    if method != "hard":
        for qid in ("q0", "q2"):
            assert np.isfinite(labels[qid].scores[:12]).all()
            assert np.isneginf(labels[qid].scores[12:]).all()
            assert (labels[qid].targets[12:] == 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_batches_threads_and_the_order_of_queries_leave_no_trace(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, queries, run = collection(tmp_path)
    qrels = some(run)
    whole = make_labeler(method, source, queries, PARAMS).infer(run, qrels)
    monkeypatch.setattr(base, "BATCH_BYTES", 1)
    turned = Run.from_dict({qid: dict(run[qid]) for qid in reversed(run.qids)})
    single = make_labeler(method, source, queries, PARAMS, threads=1).infer(turned, qrels[::-1])
    for one in whole:
        other = single[one.qid]
        rows = [sorted(zip(own.docids, own.scores.tolist(), own.targets.tolist(), strict=True)) for own in (one, other)]
        assert rows[0] == rows[1]


@pytest.mark.parametrize("method", ["uniform", "query", "geometric", "jaccard"])
def test_controls_give_positives_the_mass_of_evidence(tmp_path: Path, method: str) -> None:
    source, queries, run = collection(tmp_path)
    qrels = some(run)
    params = LabelParams(n_max=6, mass="evidence")
    evidence = make_labeler("evidence", source, queries, PARAMS, params).infer(run, qrels)
    control = make_labeler(method, source, queries, PARAMS, params).infer(run, qrels)
    for one, other in zip(evidence, control, strict=True):
        assert other.targets[other.positive].sum() == pytest.approx(one.targets[one.positive].sum(), abs=1e-6)
    if method == "uniform":
        rest = control["q0"].targets[1:12]
        assert rest.min() == rest.max() > 0
    assert any((one.targets != other.targets).any() for one, other in zip(evidence, control, strict=True))


def test_hard_labels_are_a_softmax_of_the_grades(tmp_path: Path) -> None:
    """Paper 001, Section 2.3, eq. 3: the target is the softmax of the relevance labels; here over the positives."""
    assert of_grades(np.array([1000.0, 0.0])).tolist() == [1.0, 0.0]
    source, queries, run = collection(tmp_path)
    first, second = run.ranked("q0")[:2]
    for method in ("hard", "uniform"):
        rows = [("q0", first, 1), ("q0", second, 3)]
        both = make_labeler(method, source, queries, PARAMS).infer(run, judgements(rows))["q0"].targets[:2]
        assert both / both.sum() == pytest.approx([0.1192, 0.8808], abs=1e-4)


def test_presets_are_those_of_the_tables() -> None:
    """Paper 000, Table 6: n_max 4 and 32; TripClick's values are in no table, so there is no preset of them."""
    found = {name: (one.n_max, one.normalization, round(one.boost, 3)) for name, one in LabelParams.presets.items()}
    assert found == {"coder-tas-b": (4, "maxmin", 1.222), "coder-cocondenser": (32, "std", 1.525)}


def test_a_teacher_labels_with_its_scores(tmp_path: Path) -> None:
    source, queries, run = collection(tmp_path)
    plain = LabelParams(normalization="none", boost=1.0, n_max=None)
    inputs = Inputs(vectors=source, query_vectors=queries)
    labels = labeler_of("teacher", inputs, TeacherParams(context=12), plain).infer(run, some(run))
    one = labels["q2"]  # its positive is no candidate
    products = source.fetch(source.rows(one.docids[:12])).astype(np.float64) @ queries.vectors[2]
    np.testing.assert_allclose(one.scores[:12], products, rtol=1e-5)
    np.testing.assert_allclose(one.targets[:12], np.exp(products) / np.exp(products).sum(), rtol=1e-5)
    assert labels.metadata["teacher"] == {"name": "encoder", "context": 1000}
    assert labels.metadata["index"] == source.fingerprint
    taught = find("labeler", "teacher")
    assert taught.needs_from("vectors", TeacherParams(teacher="scorer")) == {"topics", "vectors"}
    with refusal("teacher regularise: reads scores of the run"):
        taught.needs_from("vectors", TeacherParams("regularise"))
    with refusal("method teacher: needs query vectors, which were not given"):
        labeler_of("teacher", Inputs(vectors=source))


def test_joint_similarity_has_two_ends(tmp_path: Path) -> None:
    """That of the positive is evidence, that of the query its similarity by the same settings, both in their shares."""
    source, queries, run = collection(tmp_path)
    plain, scores = RnnParams(**PARAMS.to_dict() | VECTORS_ALONE), {}
    for weight in (1.0, 0.0, 0.7):
        params = JointParams(**plain.to_dict(), positive_weight=weight)
        labels = make_labeler("joint", source, queries, params, LabelParams(aggregate="max")).infer(run, some(run))
        scores[weight] = {one.qid: one.scores[:12] for one in labels if one.positive.sum() == 1}
    assert labels.metadata["rnn"]["positive_weight"] == 0.7
    evidence = make_labeler("evidence", source, queries, plain).infer(run, some(run))
    for qid, mixed in scores[0.7].items():
        vectors = source.fetch(source.rows(evidence[qid].docids[:12]))
        of_query = rnn_similarity(queries.vectors[queries.qids.index(qid)][None], vectors[None], plain)[0]
        np.testing.assert_allclose(scores[1.0][qid], evidence[qid].scores[:12], rtol=1e-5)
        np.testing.assert_allclose(scores[0.0][qid], of_query, atol=1e-5)
        np.testing.assert_allclose(mixed, 0.7 * scores[1.0][qid] + 0.3 * scores[0.0][qid], atol=1e-6)


def row(*values: float) -> np.ndarray:
    return np.array(values)


@pytest.mark.parametrize("how", ["maxmin", "std", "max", "maxminmax", "none"])
@pytest.mark.parametrize("compat", ["paper", "coder"])
def test_equal_labels_give_no_nan(how: str, compat: str) -> None:
    params = LabelParams(normalization=how, compat=compat, include_level=0.1)  # type: ignore[arg-type]
    found = targets(row(2, 2, 2, 2), row(1, 0, 0, 0) > 0, params)
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)


def test_the_papers_order_by_hand() -> None:
    params = LabelParams(boost=2.0, n_max=2)
    positive = np.array([False, False, True, False])
    values = transformed(row(5, 3, 2, 1), positive, params)
    assert values.tolist() == [1.0, 0.5, 0.5, -np.inf]  # the positive is boosted, and kept past n_max
    found = targets(row(5, 3, 2, 1), positive, params)
    e = np.exp([1.0, 0.5, 0.5])
    np.testing.assert_allclose(found, [*(e / e.sum()), 0.0], rtol=1e-6)


def test_the_level_drops_no_positive_and_ranks_are_those_before_the_boost() -> None:
    params = LabelParams(boost=2.0, n_max=2, include_level=0.6)
    kept = np.array([False, False, False, True])
    assert transformed(row(5, 3, 2, 1), kept, params).tolist() == [1.0, -np.inf, -np.inf, 0.0]
    boosted = np.array([False, False, True, True])  # boosted to 1, it would be second; its score is third
    assert transformed(row(5, 4, 3, 1), boosted, params).tolist() == [1.0, 0.75, 1.0, 0.0]


def test_aggregation_and_redistribution_by_hand() -> None:
    scores = np.array([[1.0, 0.5, 0.25], [0.5, 1.0, 0.75]])
    grades = np.array([1.0, 2.0])
    assert aggregated(scores, grades, "mean").tolist() == [1.0, 1.25, 0.875]
    assert aggregated(scores, grades, "sum").tolist() == [2.0, 2.5, 1.75]
    assert aggregated(scores, grades, "max").tolist() == [1.0, 2.0, 1.5]
    params = LabelParams(redistribute="fully", rho=0.25)
    given = redistributed(row(9, 3, 1, -5), row(2, 0, 0, 0), params)
    assert given.tolist() == [1.5, 0.375, 0.125, 0.0]


def test_what_cannot_be_labelled_is_said(tmp_path: Path) -> None:
    source, queries, run = collection(tmp_path)
    with refusal("no judgement has a grade of 1 or more"):
        make_labeler("evidence", source, queries, PARAMS).infer(run, judgements([("q0", "d00", 0)]))
    with refusal("method query: needs query vectors and vectors, which were not given"):
        labeler_of("query", Inputs())
    with refusal(r"mass=evidence: .* method hard has not; expected own"):
        make_labeler("hard", source, queries, None, LabelParams(mass="evidence"))
    strange = Run.from_dict({"q0": {"nowhere": 1.0}})
    with refusal("1 of 1 docids in the run are not in the index"):
        make_labeler("evidence", source, queries, PARAMS).infer(strange, some(run))
    with refusal(r"boost=0\.5.*mass='all'"):
        LabelParams(boost=0.5, mass="all")  # type: ignore[arg-type]


def test_a_positive_without_a_vector_is_left_out(tmp_path: Path) -> None:
    source, queries, run = collection(tmp_path)
    judged = {"q0": {"nowhere": 1, run.ranked("q0")[0]: 1}, "q1": {"nowhere": 1}}
    labels, without = make_labeler("evidence", source, queries, PARAMS).infer_from(run, judged)
    assert (labels.qids, without) == (("q0",), 2)
    assert "nowhere" not in labels["q0"].docids
