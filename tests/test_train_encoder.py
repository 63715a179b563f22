"""CODER training on a made-up encoder of two layers: the step, resuming, the folder that comes out, the command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from labelers import soft_labels
from query_sets import write_texts
from refusals import refusal
from tiny_encoder import DIMENSION, DOCUMENTS, QUERIES, WORDS, make_source, make_topics, record_of, train_encoder

from rnnreranker.base.errors import DataWarning
from rnnreranker.encode import Encoder
from rnnreranker.encode.coder import load_query_encoder, write_encoder
from rnnreranker.index.opening import Index
from rnnreranker.labels import SoftLabels
from rnnreranker.parts.vectors import VectorSource
from rnnreranker.train.coder import CandidateVectors, CoderInputs, CoderLearner, read_samples, start_encoder
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import Start, TrainRequest
from rnnreranker.train.trainer import FitTrainer, ranking_measures


def make_labels(qids: range = range(QUERIES)) -> SoftLabels:
    rng = np.random.default_rng(3)
    docids, scores, probabilities, positive = [], [], [], []
    for number in qids:
        size = 5 + number % 7
        chosen = rng.permutation(DOCUMENTS)[:size]
        docids.append([f"d{row}" for row in chosen])
        targets = np.zeros(size)
        targets[:2] = 0.75, 0.25
        scores.append(np.linspace(1, 0, size).tolist())
        probabilities.append(targets.tolist())
        positive.append([True] + [False] * (size - 1))
    found = [f"q{n}" for n in qids]
    return soft_labels(found, docids, scores, probabilities, positive, {"method": "made up"})


QUICK = TrainParams(batch_size=8, epochs=3, learning_rate=1e-3, dropout=0.0, warmup=0.0)


def test_a_cut_of_training_queries_leaves_the_limit_of_the_encoder(tiny: Path, tmp_path: Path) -> None:
    encoder, tokens, _ = load_query_encoder(str(tiny), DIMENSION, pooling="mean", max_tokens=8)
    write_encoder(tmp_path / "out", encoder)
    text = " ".join(WORDS[:30])
    assert len(tokens.cut([text])[0]) == 8
    written, start = Encoder.load(str(tmp_path / "out")), Encoder.load(str(tiny), pooling="mean")
    assert written.max_length == start.max_length
    np.testing.assert_allclose(written.encode([text]), start.encode([text]), atol=1e-6)


def test_a_training_begins_with_the_encoder_of_the_index(tiny: Path) -> None:
    settings = {"pooling": "mean", "max_length": 6, "query_prompt": "w1 w2 ", "document_prompt": "", "truncate_dim": 16}
    index = Index("x", {}, {"parts": {"dense": {"encoder": {"name": str(tiny), "settings": settings}}}})
    encoder, tokens, _ = start_encoder(TrainRequest("out", index=index).start, 16, TrainParams())
    texts = ["w5 w6", "w4 w5 w6 w7 w8"]
    vectors = encoder.eval()(*tokens.pad(tokens.cut(texts))).detach().numpy()
    np.testing.assert_allclose(vectors, Encoder.load(str(tiny), **settings).encode(texts), atol=1e-6)
    assert TrainRequest("out", "dual", index=index).start.settings == {
        "query_prompt": "w1 w2 ",
        "document_prompt": "",
        "max_length": 6,
    }


def test_a_step_has_as_many_queries_with_several_gpus(
    tiny: Path, source: VectorSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers.TrainingArguments, "n_gpu", property(lambda self: 2))
    inputs = CoderInputs(make_labels(), source, make_topics())
    learner = CoderLearner(Start(str(tiny), {"pooling": "mean"}), QUICK, inputs)
    assert FitTrainer(learner, tmp_path, "cpu").args.train_batch_size == QUICK.batch_size


@pytest.mark.long
def test_one_step_equals_a_plain_loop(tiny: Path, source: VectorSource, tmp_path: Path) -> None:
    params = TrainParams(
        batch_size=24, max_steps=1, learning_rate=0.05, dropout=0.0, warmup=0.0, weight_decay=0.1, clip=0.05,
        key_measure="loss", epsilon=1e-7,
    )  # fmt: skip
    labels, topics = make_labels(), make_topics()
    train_encoder(
        labels, source, topics, str(tiny), tmp_path / "out", params, validation=_renamed(labels, topics), pooling="mean"
    )
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(tiny).eval(), AutoTokenizer.from_pretrained(tiny)
    temperature = torch.nn.Parameter(torch.tensor(1.0))
    losses = []
    for one in labels:
        found = tokenizer(topics[one.qid], return_tensors="pt")
        query = model(**found).last_hidden_state[0].mean(dim=0)
        vectors = torch.from_numpy(source.fetch(source.rows(one.docids)).astype(np.float16).astype(np.float32))
        shares = torch.log_softmax(vectors @ query * temperature, dim=0)
        targets = torch.from_numpy(one.targets)
        losses.append((torch.xlogy(targets, targets) - targets * shares).sum())
    torch.stack(losses).mean().backward()
    named = [(n, p) for n, p in model.named_parameters() if not n.startswith("pooler")]
    torch.nn.utils.clip_grad_norm_([*(p for _, p in named), temperature], 0.05)
    decayed = [p for _, p in named if p.dim() > 1]
    others = [p for _, p in named if p.dim() == 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": [*others, temperature], "weight_decay": 0.0}]
    torch.optim.RAdam(groups, lr=0.05, eps=1e-7, decoupled_weight_decay=True).step()
    trained = dict(AutoModel.from_pretrained(tmp_path / "out").named_parameters())
    start = dict(AutoModel.from_pretrained(tiny).named_parameters())
    moved = max((trained[name] - start[name]).abs().max().item() for name, _ in named)
    assert moved > 5e-4
    for name, value in named:
        assert torch.allclose(trained[name], value, atol=2e-6), name


def _renamed(labels: SoftLabels, topics: dict[str, str]) -> SoftLabels:
    """The same labels under other query ids, whose texts are put into the topics."""
    for qid in labels.qids:
        topics["v" + qid] = topics[qid]
    qids = tuple("v" + qid for qid in labels.qids)
    return SoftLabels(qids, labels.offsets, labels.docids, labels.scores, labels.targets, labels.positive)


def test_the_command_trains_and_says_what_came_of_it(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rnnreranker.train.__main__ import main

    make_source(tmp_path / "index")
    make_labels().write(tmp_path / "labels.parquet")
    write_texts(tmp_path / "topics.tsv", make_topics())
    out = tmp_path / "out"
    argv = f"--labels {tmp_path}/labels.parquet --index {tmp_path}/index --topics {tmp_path}/topics.tsv".split()
    argv += f"--encoder {tiny}:pooling=mean --device cpu --output {out}".split()
    assert main([*argv, "--epochs", "1"]) == 0
    assert "nDCG@10\tbefore" in capsys.readouterr().out
    record = record_of(out)
    assert record["params"]["epochs"] == 1
    assert record["training_queries"] == 21
    assert record["validation_queries"] == 3
    assert len(record["positives"]["before"]) == 3
    (out / "training.json").unlink()
    with refusal("did not write"):
        main(argv)


@pytest.mark.long
def test_labels_of_another_index_need_a_word(
    tiny: Path, source: VectorSource, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rnnreranker.train.__main__ import main

    narrow = make_source(tmp_path / "index", 20)
    write_texts(tmp_path / "topics.tsv", make_topics())
    made_of = {"method": "evidence", "index": source.fingerprint}
    replace(make_labels(), metadata=made_of).write(tmp_path / "other.parquet")
    argv = f"--index {tmp_path}/index --topics {tmp_path}/topics.tsv --labels {tmp_path}/other.parquet".split()
    argv += f"--encoder {tiny}:pooling=mean --device cpu --max-steps 1 --output {tmp_path}/out".split()
    said = (
        rf"other\.parquet: made from {source.fingerprint[:8]}\.\.\., the vectors of --index {tmp_path / 'index'} are "
        rf"{narrow.fingerprint[:8]}\.\.\.; give the index of the labels, or --other-index"
    )
    with refusal(said):
        main(argv)
    assert not (tmp_path / "out").exists()
    added = "its vectors have 32 dimensions, the index has 20: a projection is added and trained with it\n"
    assert main([*argv, "--other-index"]) == 0
    assert capsys.readouterr().err.count(added) == 1


def test_candidates_keep_what_has_probability_and_drop_unknown_documents(source: VectorSource) -> None:
    labels = soft_labels(
        ["q"], [["d5", "none", "d9", "d1", "d7"]], [[0] * 5], [[0, 0.5, 0, 0.25, 0.25]], [[False] * 4 + [True]]
    )
    samples, lost = read_samples(labels, source, 3, {"q"})
    assert lost.tolist() == [1, 0, 0]
    assert samples[0].rows.tolist() == [5, 1, 7]
    assert samples[0].targets.tolist() == [0, 0.5, 0.5]
    vectors, positions = CandidateVectors(source, np.array([1, 5, 7])).distinct(torch.tensor([[5, 1, -1]]))
    assert np.allclose(vectors[positions[0, :2]], source.fetch(np.array([5, 1])), atol=2e-3)


def test_candidates_that_the_index_lacks_are_reported(tiny: Path, source: VectorSource) -> None:
    docids = [["d1", "gone", "d2"], ["lost", "d2", "d3"], ["d3", "d4", "d5"], ["d6", "d7", "d8"]]
    qids, first = [f"q{number}" for number in range(4)], [[True, False, False]] * 4
    labels = soft_labels(qids, docids, [[1, 0, 0]] * 4, [[1, 0, 0]] * 4, first, {"method": "hard"})
    params, start = TrainParams(validation_share=0.25), Start(str(tiny), {"pooling": "mean"})
    said = "lacks 2 candidates of the labels, 1 of them positive; left out: 1 query of 4;"
    with pytest.warns(DataWarning, match=said):
        CoderLearner(start, params, CoderInputs(labels, source, make_topics()))


def test_ranks_and_measures() -> None:
    positive = np.array([True, False, True, False])
    ranks, measures = ranking_measures(np.array([0.1, 0.9, 0.5, 0.3]), positive)
    gains = 1 / np.log2([3, 5, 2])
    assert ranks == [2, 4]
    assert measures == {"RR@10": 0.5, "nDCG@10": pytest.approx((gains[0] + gains[1]) / (gains[2] + gains[0]))}
    assert ranking_measures(-np.arange(11), np.arange(11) == 10) == ([11], {"RR@10": 0, "nDCG@10": 0})
    assert ranking_measures(np.zeros(4), positive)[0] == [3, 4]  # a tie with a negative counts against a positive
    assert ranking_measures(np.array([np.nan] * 4), positive)[0] == [3, 4]
    assert ranking_measures(np.array([3.0, 2.0, 3.0, 1.0]), positive) == ([1, 2], {"RR@10": 1, "nDCG@10": 1})
    assert ranking_measures(np.zeros(4), ~positive & positive) == ([], {})


@pytest.mark.long
def test_frozen_layers_stay(tiny: Path, source: VectorSource, tmp_path: Path) -> None:
    from transformers import AutoModel

    params = TrainParams(
        batch_size=8, epochs=4, learning_rate=0.05, dropout=0.0, warmup=0.0, frozen_layers=1, key_measure="loss"
    )  # fmt: skip
    found = train_encoder(make_labels(), source, make_topics(), str(tiny), tmp_path / "out", params, pooling="mean")
    assert found.best_step > 0
    start = dict(AutoModel.from_pretrained(tiny).named_parameters())
    end = dict(AutoModel.from_pretrained(tmp_path / "out").named_parameters())
    moved = {name for name in start if not torch.equal(start[name], end[name])}
    assert moved
    assert all(name.startswith("encoder.layer.1.") for name in moved)
    with refusal(r"frozen_layers=3.*has 2 layers"):
        start_encoder(Start(str(tiny), {"pooling": "mean"}), DIMENSION, TrainParams(frozen_layers=3))


@pytest.mark.long
def test_neutrality_draws_scores(tiny: Path, source: VectorSource, tmp_path: Path) -> None:
    labels, topics = make_labels(), make_topics()
    neutral = {f"d{number}": float(number % 2) for number in range(DOCUMENTS)} | {"of another index": 0.5}
    plain, drawn = (
        train_encoder(
            labels, source, topics, str(tiny), tmp_path / f"weight{weight}",
            replace(QUICK, epochs=4, learning_rate=0.01, neutrality_weight=weight),
            validation=_renamed(labels, topics), pooling="mean", neutrality=neutral,
        )
        for weight in (0.0, 20.0)
    )  # fmt: skip
    assert plain.history[0] == drawn.history[0]
    assert plain.history[-1]["loss"] < drawn.history[-1]["loss"] - 0.05


@pytest.mark.long
def test_a_training_that_ended_is_not_trained_on(
    tiny: Path, source: VectorSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rnnreranker.train import coder

    chosen = replace(QUICK, patience=1, key_measure="RR@10", learning_rate=1e-9)
    whole = train_encoder(make_labels(), source, make_topics(), str(tiny), tmp_path / "whole", chosen, pooling="mean")

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(coder, "write_encoder", full)
        with pytest.raises(OSError, match="no space left"):
            train_encoder(make_labels(), source, make_topics(), str(tiny), tmp_path / "again", chosen, pooling="mean")
    again = train_encoder(make_labels(), source, make_topics(), str(tiny), tmp_path / "again", chosen, pooling="mean")
    assert again.record == whole.record
    assert (again.steps, again.history) == (whole.steps, whole.history)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "again")]
    assert weights[0] == weights[1]
