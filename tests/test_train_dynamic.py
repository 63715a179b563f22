"""Dynamic context: what is found and labelled again while training, and that a killed training still ends the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from labelers import make_labeler
from tiny_encoder import (
    DIMENSION,
    make_encoder,
    make_qrels,
    make_queries,
    make_run,
    make_source,
    make_topics,
    train_encoder,
)

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs
from rnnreranker.labels import LabelParams, SoftLabels
from rnnreranker.parts.vectors import QueryVectors, VectorSource
from rnnreranker.rnn import RnnParams
from rnnreranker.train.coder import Collator, DynamicContext, judged_of, query_vectors, read_samples, start_encoder
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import Start

RNN = RnnParams(context=10, k=4, k_exp=2)
LABELS = LabelParams(boost=2.0)
PARAMS = TrainParams(batch_size=7, epochs=3, learning_rate=1e-3, evaluate_every=2, candidates=11)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> VectorSource:
    return make_source(tmp_path_factory.mktemp("source"))


def made(source: VectorSource, method: str = "evidence") -> SoftLabels:
    return make_labeler(method, Inputs(vectors=source, query_vectors=make_queries()), RNN, LABELS).infer(
        make_run(), make_qrels()
    )


@pytest.mark.parametrize("method", ["evidence", "hard", "uniform", "query"])
def test_candidates_and_labels_are_those_of_a_search_by_hand(tiny: Path, source: VectorSource, method: str) -> None:
    labels, topics = made(source, method), make_topics()
    model, tokens, _ = start_encoder(Start(str(tiny), "mean"), DIMENSION, PARAMS)
    samples, _ = read_samples(labels, source, PARAMS.candidates)
    collator = Collator(samples, topics, tokens)
    dynamic = DynamicContext(labels, source, collator, replace(PARAMS, refresh_every=4))
    batch = collator.batch([3, 0])
    model.train()
    for step in (0, 1, 2, 3):
        assert np.array_equal(dynamic.current(model, batch, step).rows, batch.rows)
    found = dynamic.current(model, batch, 4)
    assert model.training
    assert found.samples == [3, 0]

    vectors = query_vectors(model, collator, range(len(samples)))
    model.eval()
    alone = model(*tokens.pad([collator.cut[3]])).detach().numpy()[0]
    assert np.allclose(vectors[3], alone, atol=1e-5)
    documents = source.fetch(np.arange(len(source.docids)))
    judged = make_qrels()
    for line, place in enumerate((3, 0)):
        qid = samples[place].qid
        order = np.argsort(-(documents @ vectors[place]), kind="stable")[: PARAMS.candidates]
        own = judged[judged["query_id"] == qid]
        if method not in ("hard", "uniform"):
            own = own.assign(relevance=1)
        positives = [int(docid[1:]) for docid in own["doc_id"]]
        wanted = [*positives, *(row for row in order.tolist() if row not in positives)][: PARAMS.candidates]
        rows = found.rows[line][found.rows[line] >= 0]
        assert rows.tolist() == wanted
        by_hand = {f"d{row}": float(documents[row] @ vectors[place]) for row in order}
        from rnnreranker.runs import Run

        query = QueryVectors((qid,), vectors[place : place + 1])
        again = make_labeler(method, Inputs(vectors=source, query_vectors=query), RNN, LABELS).infer(
            Run.from_dict({qid: by_hand}), own
        )
        targets = dict(zip(again.docids.tolist(), again.targets.tolist(), strict=True))
        assert found.targets[line, : len(rows)] == pytest.approx([targets[f"d{row}"] for row in wanted], abs=1e-5)
        assert found.positive[line].sum() == 2
    changed = sum(
        not np.array_equal(one.rows, other.rows) for one, other in zip(collator.samples, samples, strict=True)
    )
    assert changed > len(samples) / 2


def test_grades_are_kept_where_the_label_file_has_them(source: VectorSource) -> None:
    assert [grade for _, grade in judged_of(made(source, "hard"), "q0")] == [2, 1]
    assert [grade for _, grade in judged_of(made(source), "q0")] == [1, 1]
    assert [docid for docid, _ in judged_of(made(source), "q0")] == make_qrels()["doc_id"].tolist()[:2]


def trained(tiny: Path, source: VectorSource, out: Path, every: int) -> tuple[tuple[dict[str, float], ...], bytes]:
    params = replace(PARAMS, key_measure="loss", refresh_every=every)
    found = train_encoder(made(source), source, make_topics(), str(tiny), out, params, pooling="mean")
    assert found.steps == 9
    return found.history, (out / "model.safetensors").read_bytes()


def test_labels_must_say_how_they_were_made(tiny: Path, source: VectorSource, tmp_path: Path) -> None:
    found = made(source)
    labels = SoftLabels(found.qids, found.offsets, found.docids, found.scores, found.targets, found.positive)
    params = replace(PARAMS, refresh_every=2)
    with pytest.raises(InputError, match="do not say how they were made"):
        train_encoder(labels, source, make_topics(), str(tiny), tmp_path / "out", params, pooling="mean")
    with pytest.raises(InputError, match=r"refresh_every=2.5: expected an integer"):
        TrainParams(refresh_every=2.5)  # type: ignore[arg-type]
