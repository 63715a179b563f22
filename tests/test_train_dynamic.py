"""Dynamic labels: candidates and labels of a query encoder that are made again while it trains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from labelers import make_labeler, soft_labels
from refusals import refusal
from tiny_encoder import make_qrels, make_queries, make_run, make_topics, train_encoder

from rnnreranker.base.method import Inputs
from rnnreranker.labels import LabelParams, SoftLabels
from rnnreranker.parts.vectors import QueryVectors, VectorSource
from rnnreranker.rnn import RnnParams
from rnnreranker.runs import Run
from rnnreranker.train.coder import CoderInputs, CoderLearner, judged_of, start_encoder
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import Start

RNN = RnnParams(context=10, k=4, k_exp=2)
PARAMS = TrainParams(candidates=11, refresh_every=4)


def made(source: VectorSource, method: str, queries: QueryVectors, run: Run) -> SoftLabels:
    """Labels of the judged queries of a run."""
    qrels, inputs = make_qrels(), Inputs(vectors=source, query_vectors=queries)
    if method not in ("hard", "uniform"):
        qrels = qrels.assign(relevance=1)  # their labels do not keep grades
    return make_labeler(method, inputs, RNN, LabelParams(boost=2.0)).infer(run, qrels)


@pytest.mark.parametrize("method", ["evidence", "hard", "uniform", "query"])
def test_candidates_and_labels_are_those_of_a_search_by_hand(tiny: Path, source: VectorSource, method: str) -> None:
    inputs = CoderInputs(made(source, method, make_queries(), make_run()), source, make_topics())
    learner = CoderLearner(Start(str(tiny), {"pooling": "mean"}), PARAMS, inputs)
    chosen = learner.training[:2]
    learner.model.train()
    for learner.step in (0, 1, 2, 3):
        first = learner.loss({"qids": chosen})
    assert not learner.kept
    learner.step = 4
    assert abs(learner.loss({"qids": chosen}) - first) > 1e-3
    assert learner.model.training
    assert [*learner.kept] == learner.training

    documents, model = source.fetch(np.arange(len(source.docids))), learner.model.eval()
    _, tokens, _ = start_encoder(Start(str(tiny), {"pooling": "mean"}), source.dimension, PARAMS)
    for qid in chosen:
        query = model(*tokens.pad(tokens.cut([inputs.topics[qid]]))).detach().numpy()
        order = np.argsort(-(documents @ query[0]), kind="stable")[: PARAMS.candidates].tolist()
        positives = [int(docid[1:]) for docid in judged_of(inputs.labels, qid)]
        _, rows, probabilities, positive = learner.kept[qid]
        wanted = [*positives, *(row for row in order if row not in positives)][: PARAMS.candidates]
        assert rows.tolist() == wanted
        run = Run.from_dict({qid: {f"d{row}": float(documents[row] @ query[0]) for row in order}})
        again = made(source, method, QueryVectors((qid,), query), run)
        targets = dict(zip(again.docids.tolist(), again.targets.tolist(), strict=True))
        assert probabilities.tolist() == pytest.approx([targets[f"d{row}"] for row in wanted], abs=1e-5)
        assert positive.sum() == 2


def test_each_step_can_search_for_its_own_queries_alone(tiny: Path, source: VectorSource) -> None:
    inputs = CoderInputs(made(source, "hard", make_queries(), make_run()), source, make_topics())
    learner = CoderLearner(Start(str(tiny), {"pooling": "mean"}), replace(PARAMS, refresh_every=1), inputs)
    learner.step = 1
    learner.loss({"qids": learner.training[:2]})
    assert [*learner.kept] == learner.training[:2]


def test_grades_are_kept_where_the_label_file_has_them(source: VectorSource) -> None:
    positives = make_qrels()["doc_id"].tolist()[:2]
    for method, grades in (("hard", [2, 1]), ("evidence", [1, 1])):
        labels = made(source, method, make_queries(), make_run())
        assert judged_of(labels, "q0") == dict(zip(positives, grades, strict=True))


def test_labels_must_say_how_they_were_made(tiny: Path, source: VectorSource, tmp_path: Path) -> None:
    of_graph = {"method": "evidence", "from": "neighbours"}
    for metadata, said in (({}, "do not say how they were made"), (of_graph, "needs neighbours, which were not given")):
        labels = soft_labels(["q1", "q2"], [["d1"]] * 2, [[1]] * 2, [[1]] * 2, [[True]] * 2, metadata)
        with refusal(said):
            train_encoder(labels, source, make_topics(), str(tiny), tmp_path / "out", PARAMS, pooling="mean")
