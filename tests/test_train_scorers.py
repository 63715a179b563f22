"""Scorers of candidate sets: the order of candidates and padding change nothing, training, the folder, reranking."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from array_vectors import ArrayVectors
from labelers import make_labeler
from query_sets import write_judged
from refusals import refusal
from tiny_encoder import (
    DIMENSION,
    make_qrels,
    make_queries,
    make_run,
    make_source,
    make_topics,
    record_of,
    train_encoder,
)

from rnnreranker.base.errors import DataWarning
from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.encode.coder import CandidateScorer, ScorerNetwork, TrainedScorer
from rnnreranker.encode.kinds import Encoder
from rnnreranker.encode.params import ScorerParams
from rnnreranker.labels import SoftLabels
from rnnreranker.methods.rerank.base import Reranker
from rnnreranker.parts.vectors import VectorSource
from rnnreranker.rnn import RnnParams
from rnnreranker.runs import Run
from rnnreranker.train.coder import CandidateVectors, batch_of, read_samples, score, start_encoder
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import Start

KINDS = ("feed-forward", "encoder", "decoder")
PARAMS = TrainParams(batch_size=8, epochs=4, learning_rate=1e-3, warmup=0.0, key_measure="loss")


def small(kind: str, **others: object) -> ScorerParams:
    return ScorerParams(kind, heads=2, width=16, learning_rate=1e-2, **others)  # type: ignore[arg-type]


def reranker(model: Path, source: VectorSource, topics: dict[str, str], **values: object) -> Reranker:
    params = make_params("reranker", "scorer", {"model": str(model), **values})
    return find("reranker", "scorer")(Inputs(topics=topics, vectors=source), params)


def made(source: VectorSource) -> SoftLabels:
    queries = make_queries(source.dimension)
    return make_labeler(
        "evidence", Inputs(vectors=source, query_vectors=queries), RnnParams(context=10, k=4, k_exp=2)
    ).infer(make_run(), make_qrels())


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_shuffled_candidates_get_shuffled_scores_and_padding_changes_nothing(kind: str, training: bool) -> None:
    torch.manual_seed(0)
    scorer = ScorerNetwork(6, 5, small(kind, residual=False, dropout=0.0)).train(training)
    queries, states, documents = torch.randn(2, 6), torch.randn(2, 4, 5), torch.randn(2, 7, 6)
    attention = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    valid = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    found = scorer(queries, states, attention, documents, valid)
    assert found.std() > 0.01
    order = torch.randperm(7)
    shuffled = scorer(queries, states, attention, documents[:, order], valid[:, order])
    assert torch.allclose(shuffled[valid[:, order]], found[:, order][valid[:, order]], atol=1e-5)

    alone = scorer(queries[1:], states[1:, :2], attention[1:, :2], documents[1:, :4], valid[1:, :4])
    assert torch.allclose(alone[0], found[1, :4], atol=1e-5)
    documents[1, 4:] = 1e4
    states[1, 2:] = -1e4
    again = scorer(queries, states, attention, documents, valid)
    assert torch.allclose(again[valid], found[valid], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_candidate_is_scored_by(kind: str) -> None:
    """Other candidates count with self-attention only, the tokens of the query with cross-attention only."""
    torch.manual_seed(0)
    scorer = ScorerNetwork(6, 5, small(kind, residual=False)).eval()
    queries, states, documents = torch.randn(1, 6), torch.randn(1, 4, 5), torch.randn(1, 7, 6)
    attention, valid = torch.ones(1, 4), torch.ones(1, 7, dtype=torch.bool)
    found = scorer(queries, states, attention, documents, valid)[0, 0].item()
    others = torch.cat([documents[:, :1], torch.randn(1, 6, 6)], dim=1)
    changed = [
        scorer(queries, states, attention, others, valid)[0, 0].item(),
        scorer(queries, torch.randn(1, 4, 5), attention, documents, valid)[0, 0].item(),
        scorer(torch.randn(1, 6), states, attention, documents, valid)[0, 0].item(),
    ]
    moved = [abs(value - found) > 1e-4 for value in changed]
    assert (
        moved
        == {
            "feed-forward": [False, False, True],
            "encoder": [True, False, True],
            "decoder": [True, True, False],
        }[kind]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_untrained_scorer_is_the_inner_product(tiny: Path, source: VectorSource, kind: str) -> None:
    topics = make_topics()
    dense, tokens, _ = start_encoder(Start(str(tiny), {"pooling": "mean"}), DIMENSION, PARAMS)
    samples, _ = read_samples(made(source), source, 1000, topics)
    samples[1] = type(samples[1])("q1", samples[1].rows[:4], samples[1].targets[:4], samples[1].positive[:4])
    batch = batch_of(samples, dict(zip(topics, tokens.cut([*topics.values()]), strict=True)), tokens)
    table = CandidateVectors(source, np.arange(len(source.docids)))
    model = CandidateScorer(dense, DIMENSION, small(kind)).eval()
    with torch.no_grad():
        plain, found = (score(one, table, batch).numpy() for one in (dense.eval(), model))
    assert np.allclose(found[batch.valid], plain[batch.valid], atol=1e-4)


@pytest.mark.long
def test_a_cascade_from_the_command_line(tiny: Path, tmp_path: Path) -> None:
    """M_F = a run that has nothing to do with the vectors; labels on it (M_C); vectors of the index (M_D)."""
    from rnnreranker.labels.__main__ import main as label
    from rnnreranker.search.__main__ import main as search
    from rnnreranker.train.__main__ import main as train

    run = make_run()
    make_source(tmp_path / "index")
    run.write(tmp_path / "run.txt")
    write_judged(tmp_path, make_topics(), make_qrels().itertuples(index=False))
    labels, first_stage = tmp_path / "labels.parquet", f"--run {tmp_path}/run.txt"
    inputs = f"--index {tmp_path}/index --topics {tmp_path}/topics.tsv"
    assert label(f"{first_stage} --qrels {tmp_path}/qrels.txt --method hard --output {labels}".split()) == 0
    training = f"{inputs} --labels {labels} --encoder {tiny}:pooling=mean --device cpu --epochs 2 --learning-rate 0.01"
    scorer = "--model query:key_measure=loss --scorer encoder:blocks=1,heads=2,width=8,residual=no"
    assert train(f"{training} {scorer} --output {tmp_path}/scorer".split()) == 0
    record = record_of(tmp_path / "scorer")
    assert record["scorer"]["blocks"] == 1
    assert record["scorer"]["residual"] is False
    out = tmp_path / "reranked.txt"
    how = f"--rerank scorer:model={tmp_path}/scorer"
    assert search(f"{inputs} {first_stage} {how} --output {out}".split()) == 0
    reranked = Run.read(out)
    assert {qid: {d for d, _ in reranked[qid]} for qid in reranked} == {q: {d for d, _ in run[q]} for q in run}


@pytest.mark.long
def test_what_does_not_fit_is_said(tiny: Path, source: VectorSource, tmp_path: Path) -> None:
    with refusal("no rnnreranker-scorer; expected a folder of"):
        TrainedScorer(tiny)
    train_encoder(
        made(source), source, make_topics(), str(tiny), tmp_path / "out", TrainParams(max_steps=1), pooling="mean",
        scorer=small("feed-forward"),
    )  # fmt: skip
    with refusal(r"out: .*give pooling=mean or cls"):
        Encoder.load(str(tmp_path / "out"))
    with pytest.warns(DataWarning, match="was trained on other vectors than those of this index"):
        reranker(tmp_path / "out", ArrayVectors(np.ones((4, 32), np.float32), list("abcd")), make_topics())
    with refusal(r"scores vectors of 32 dimensions, the index has 20"):
        reranker(tmp_path / "out", make_source(tmp_path / "narrow", 20), make_topics())
    with refusal(r"rerank scorer: which\? write scorer:model"):
        find("reranker", "scorer")(source)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    config["scorer"]["blocks"] = 3
    other = {**config, "scorer": {**config["scorer"], "rate": 1e-4}}
    (tmp_path / "out" / "config.json").write_text(json.dumps(other))
    with refusal(r"no setting rate"):
        TrainedScorer(tmp_path / "out")
    (tmp_path / "out" / "config.json").write_text(json.dumps(config))
    with refusal(r"does not fit config.json"):
        TrainedScorer(tmp_path / "out")
