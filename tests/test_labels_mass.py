"""How much probability leaves the positives: by hand, and learnt where neighbours are relevant or are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from labelers import make_labeler
from query_sets import write_queries
from refusals import refusal
from scipy.optimize import minimize

from rnnreranker import LabelParams, QueryVectors, Run, VectorSource, make_labels, open_vectors
from rnnreranker.base.method import Inputs
from rnnreranker.labels.mass import HiddenPositives, Listwise, fitted, learn_mass, likeliest_share
from rnnreranker.labels.methods.base import VectorLabeler
from rnnreranker.labels.methods.simple import JointParams

TOPICS, SIZE, DIMENSION = 100, 6, 24  # documents of a topic lie near each other


class Collection(NamedTuple):
    vectors: VectorSource
    queries: QueryVectors
    run: Run
    topics: dict[str, list[str]]  # all documents of a query's topic
    folder: Path

    def labeler(self, method: str = "joint", labels: LabelParams | None = None, **rest: Any) -> VectorLabeler:
        inputs = Inputs(vectors=self.vectors, query_vectors=self.queries)
        made = make_labeler(method, inputs, JointParams(k=4, context=30), labels, **rest)
        assert isinstance(made, VectorLabeler)
        return made


def collection(folder: Path, asks_for_a_topic: bool, count: int = TOPICS) -> Collection:
    """Queries for topics, or each for the first document of one; their vectors are turned by a map that all share."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(count, DIMENSION))
    documents = np.repeat(centres, SIZE, axis=0) + rng.normal(size=(count * SIZE, DIMENSION))
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    docids = (f"d{row:03}" for row in range(len(documents)))
    vectors = open_vectors(write_queries(folder / "v.npy", docids, documents))
    meant = centres if asks_for_a_topic else documents[::SIZE] * np.sqrt(DIMENSION)
    turned = meant + 0.8 * meant @ rng.normal(size=(DIMENSION, DIMENSION)) / np.sqrt(DIMENSION)
    asked = turned + 0.5 * rng.normal(size=turned.shape)
    asked = (asked / np.linalg.norm(asked, axis=1, keepdims=True)).astype(np.float32)
    qids = tuple(f"q{n:02}" for n in range(count))
    scores, rows = vectors.search(asked, 30)
    found = {
        qid: {vectors.docids[row]: float(score) for row, score in zip(rows[n], scores[n], strict=True)}
        for n, qid in enumerate(qids)
    }
    topics = {qid: [f"d{SIZE * n + step:03}" for step in range(SIZE)] for n, qid in enumerate(qids)}
    return Collection(vectors, QueryVectors(qids, asked), Run.from_dict(found), topics, folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return collection(tmp_path_factory.mktemp("topics"), asks_for_a_topic=True)


def judged(docids: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    return {qid: dict.fromkeys(found, 1) for qid, found in docids.items()}


@pytest.mark.parametrize("mass", ["share", "confident"])
def test_labels_give_away_what_they_should(made: Collection, mass: Any) -> None:
    judgements = judged({qid: found[:2] for qid, found in made.topics.items()})
    labels = LabelParams(mass=mass, share=0.25, threshold=0.7 if mass == "confident" else None, n_max=6)
    found, _ = made.labeler(labels=labels).infer_from(made.run, judgements)
    plain, _ = made.labeler(labels=LabelParams(n_max=6)).infer_from(made.run, judgements)
    takers = {one.qid: np.isfinite(one.scores) & ~one.positive for one in plain}
    if mass == "confident":
        takers = {one.qid: takers[one.qid] & (one.scores >= 0.7) for one in plain}
    some = 0
    for one, own in zip(found, plain, strict=True):
        given = np.where(takers[one.qid], own.targets, 0)
        expected = np.where(one.positive, 0.5, 0.0)
        if given.sum() > 0:
            some += 1
            expected = 0.75 * expected + 0.25 * given / given.sum()
        np.testing.assert_allclose(one.targets, expected, atol=1e-6)
    assert some > 0
    assert some == len(found) if mass == "share" else some < len(found)
    assert found.metadata["labels"]["mass"] == mass
    assert found.metadata["labels"]["share"] == 0.25


def some_cases() -> HiddenPositives:
    """Two queries with a visible positive each: of one a hidden positive that gets .8, of the other one that gets 0."""
    return HiddenPositives(
        query=np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        case=np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        similarity=np.array([0.9, 0.5, 0.4, 0.1, 0.8, 0.5, 0.3, 0.2]),
        given=np.array([0.8, 0.2, 0.0, 0.0, 0.6, 0.4, 0.0, 0.0]),
        hidden=np.array([True, False, False, False, False, False, False, True]),
        known=np.array([2, 3]),
        weights=np.array([1.0, 1.0]),
    )


@pytest.mark.parametrize("threshold", [-np.inf, 0.85])
def test_the_share_has_the_highest_likelihood(threshold: float) -> None:
    """By trying all: visible positives 1/2 and 1/3, hidden ones 1/2, 1/3, and 1/3 that is no candidate."""
    found = some_cases()
    best, reached = None, -np.inf
    for u in np.linspace(0.01, 0.99, 99):
        for r in np.linspace(0, 0.999, 1000):
            value = np.log(1 - u) / 2 + np.log(u * (r * (0.8 if threshold < 0 else 1.0) + (1 - r) / 4)) / 2
            if threshold < 0:  # the second query has no candidate above
                value += np.log(1 - u) / 3 + np.log(u * (1 - r) / 4) / 3 + np.log(u * (1 - r)) / 3
            if value > reached:
                best, reached = u * r / (1 - u + u * r), value
    assert likeliest_share(found, threshold) == pytest.approx(best, abs=0.01)


def test_a_map_is_fitted_to_the_lowest_loss(made: Collection) -> None:
    """Against a search that knows no gradient."""
    rng = np.random.default_rng(1)
    targets = rng.dirichlet(np.ones(4), size=6)
    targets[0] = [0.5, 0.5, 0, 0]
    real = np.array([[True, True, False, False], *[[True] * 4] * 5])
    queries, documents = (rng.normal(size=shape).astype(np.float32) for shape in ((6, 2), (6, 4, 2)))
    found = Listwise(queries, documents, real, targets, targets)

    def value(flat: np.ndarray) -> float:
        total = 0.1 * float(flat @ flat)
        for query, own, there, target in zip(queries, documents, real, targets, strict=True):
            scores = 1.5 * own[there] @ (query + flat.reshape(2, 2) @ query)
            total -= float(target[there] @ (scores - np.log(np.exp(scores).sum()))) / 6
        return total

    best = minimize(value, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    mapped = fitted(found, targets, np.zeros(4), 0.1, 1.5)
    assert value(mapped) == pytest.approx(best.fun, abs=1e-6)
    np.testing.assert_allclose(mapped, best.x, atol=1e-3)


def test_the_mass_is_learnt_before_labels_are_made(made: Collection) -> None:
    """Half of the queries are labelled from one positive each; all positives of the others say how much leaves it."""
    first, last = list(made.topics)[:50], list(made.topics)[50:]
    given: dict[str, Any] = {"index": made.folder / "v.npy", "encoded_queries": made.queries}
    given |= {"run": made.run, "qrels": {qid: made.topics[qid][:1] for qid in first}}
    validation = {qid: made.topics[qid] for qid in last}
    for mass in ("share", "confident"):
        labels = make_labels(**given, method=f"joint:k=4,context=30,mass={mass}", validation_qrels=validation)
        learner = made.labeler(labels=LabelParams(mass=mass))  # type: ignore[arg-type]
        expected, about = learn_mass(learner, made.run, judged(validation))
        assert labels.metadata["learnt"] == about
        said = {name: labels.metadata["labels"][name] for name in ("mass", "share", "threshold")}
        assert said == {"mass": mass, "share": expected.share, "threshold": expected.threshold}
        assert list(labels.qids) == first
        assert (about["by"], about["queries"], about["several"]) == ("judgements", 50, 50)
        kept = {round(float(one.targets[one.positive].sum()), 4) for one in labels}
        assert kept <= {1.0, round(1 - said["share"], 4)}
    about = make_labels(**given, method="joint:k=4,context=30,mass=share").metadata["learnt"]
    assert (about["by"], about["queries"], about["several"]) == ("loss", 50, 0)
    assert "learnt" not in make_labels(**given, method="joint:k=4,context=30,mass=share,share=0.3").metadata
    with refusal("validation_qrels goes with mass=share or confident"):
        make_labels(**given, validation_qrels=validation)


@pytest.mark.parametrize("known", [{"share": 0.9}, {"threshold": 0.2}])
def test_a_given_number_stays_and_the_other_is_learnt(made: Collection, known: dict[str, float]) -> None:
    learner = made.labeler(labels=LabelParams(mass="confident", **known))  # type: ignore[arg-type]
    learnt, _ = learn_mass(learner, made.run, judged(made.topics))
    assert learnt.to_dict() | known == learnt.to_dict()
    assert None not in (learnt.share, learnt.threshold)


def test_what_cannot_be_learnt_is_said(made: Collection) -> None:
    near = judged(made.topics)
    share = LabelParams(mass="share")
    with refusal(r"mass=share: share not known; give it, or learn it from judgements"):
        made.labeler(labels=share).infer_from(made.run, near)
    with refusal("no query with a positive has candidates in the run"):
        learn_mass(made.labeler(labels=share), made.run, {"other": {"d000": 1}})


def test_validation_queries_without_a_vector_do_not_count(made: Collection) -> None:
    some = {qid: found[:1] for qid, found in list(made.topics.items())[:12]}
    learner = made.labeler(labels=LabelParams(mass="share"))
    learnt = [learn_mass(learner, made.run, judged(some | more)) for more in ({}, {"q20": ["nowhere"]})]
    assert learnt[0][1]["losses"] == learnt[1][1]["losses"]


def test_masses_that_a_method_or_a_graph_cannot_have(made: Collection) -> None:
    learner = made.labeler(labels=LabelParams(mass="share"))
    learner.reads = frozenset({"neighbours"})
    with refusal("with one positive a query it is learnt by vectors; expected from=vectors"):
        learn_mass(learner, made.run, judged({qid: known[:1] for qid, known in made.topics.items()}))
    given: dict[str, Any] = {"index": made.folder / "v.npy", "encoded_queries": made.queries, "run": made.run}
    with refusal("uniform has one similarity for all; expected evidence, share or own"):
        make_labels(**given, qrels=made.topics, method="uniform:mass=confident,share=0.3,threshold=0.2")
