"""Dual encoders: the loss of paper 004 by hand, scaled labels, one tower and two, resuming, folder, commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refusal

from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find, make_params
from rnnreranker.encode.kinds import Encoder
from rnnreranker.index.__main__ import main as index
from rnnreranker.labels.soft import Labels
from rnnreranker.runs import Run
from rnnreranker.search.__main__ import main as search
from rnnreranker.train.__main__ import main
from rnnreranker.train.groups import Group, GroupInputs, Groups, load_groups, sampled
from rnnreranker.train.params import DualParams
from rnnreranker.train.request import Start, TrainRequest
from tests.tiny_encoder import (
    make_documents,
    make_group_inputs,
    make_topics,
    record_of,
    train_words,
)

pytest.importorskip("sentence_transformers")


def distance(alpha: float, scores: list[float], labels: list[float], positive: list[int], valid: list[int]) -> float:
    given = [torch.tensor([one], dtype=torch.float64) for one in (scores, labels)]
    marked = [torch.tensor([one]).bool() for one in (positive, valid)]
    return float(find("loss", "distance")(make_params("loss", "distance", {"alpha": alpha}))(*given, *marked))


def test_equations_6_and_8_by_hand() -> None:
    """f of cosines .6 and -.2 is .2 and .6; the positive has d = .5, the other document .25."""
    soft = (0.2 + 0.5 - 1) ** 2 + (0.6 + 0.25 - 1) ** 2  # .09 + .0225
    hard = (0.2 + 1 - 1) ** 2 + (0.6 + 0 - 1) ** 2  # .04 + .16
    given = [0.6, -0.2], [0.5, 0.25], [1, 0], [1, 1]
    assert distance(1, *given) == pytest.approx(soft / 2)
    assert distance(0, *given) == pytest.approx(hard / 2)
    assert distance(0.2, *given) == pytest.approx((0.2 * soft + 0.8 * hard) / 2)
    assert distance(1, [0.0, -0.5], [0.5, 0.25], [1, 0], [1, 1]) == pytest.approx(0)  # f + d = 1
    assert distance(0, [1.0, -1.0], [0.5, 0.25], [1, 0], [1, 1]) == pytest.approx(0)


def labels(scores: list[float], positive: list[int]) -> Labels:
    targets = np.array(positive, dtype=np.float32) / sum(positive)
    docids = [f"d{place + 1}" for place in range(len(scores))]
    return Labels("q1", docids, np.array(scores, dtype=np.float32), targets, np.array(positive, dtype=bool))


def inputs() -> GroupInputs:
    """Training and validation queries are the same under other ids; labels are shares of words in common."""
    given = make_group_inputs()

    def scaled(one: Labels) -> Labels:
        return replace(one, scores=(one.scores / len(set(given.queries[one.qid].split()))).astype(np.float32))

    return replace(given, pools=[*map(scaled, given.pools)], checked=[*map(scaled, given.checked)])


@pytest.mark.parametrize("towers", ["shared", "separate"])
@pytest.mark.parametrize("wide", [False, True])
def test_the_loss_is_that_of_a_plain_computation(tiny: Path, towers: str, wide: bool) -> None:
    """Of the cosines of averaged tokens; documents of other groups have the labels that the query's labels give."""
    from rnnreranker.train.text import DualLearner

    params = DualParams(towers=towers, in_batch_negatives=wide)
    found = DualLearner(Start(str(tiny)), params, inputs(), "cpu")
    found.model.eval()
    first = labels([0.9, 0.3, 0.6, 0.2], [1, 0, 0, 1])
    second = replace(labels([0.4, 0.8, 0.7, 0.1], [0, 0, 1, 0]), qid="q2")

    batch = found.batch([Group(first, ("d1", "d2"), {"d1", "d4"}), Group(second, ("d3", "d4"), {"d3"})])
    topics, documents = make_topics(), make_documents()
    docids = ["d1", "d2", "d3", "d4"]
    encoder = Encoder.load(str(tiny), pooling="mean", normalize=True, max_length=64)
    queries = encoder.encode([topics["q1"], topics["q2"]])
    relevance = (1 + queries @ encoder.encode([documents[docid] for docid in docids]).T) / 2  # 1 - f
    losses = []
    for row, (pool, columns, positive) in enumerate(
        [(first, [0, 1, 2] if wide else [0, 1], 0), (second, [0, 1, 2, 3] if wide else [2, 3], 2)]
    ):  # d4 is a known positive of q1, and no candidate of it in the other group
        scaled, hard = pool.scores[columns], np.array([float(column == positive) for column in columns])
        own = relevance[row, columns]
        losses.append(np.mean(0.5 * (own - scaled) ** 2 + 0.5 * (own - hard) ** 2))
    assert found.loss(batch).item() == pytest.approx(np.mean(losses), rel=1e-4)


def test_a_named_model_keeps_its_prompts(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of this model name none."""
    from rnnreranker.train.text import DualLearner

    monkeypatch.setattr("rnnreranker.encode.model_folder._from_hub", lambda *hub: tiny)
    given = DualLearner(Start("multilingual-e5-small", {"query_prompt": "w1 "}), DualParams(), inputs(), "cpu")
    assert given.model.prompts == {"query": "w1 ", "document": "passage: "}
    found = DualLearner(Start("multilingual-e5-small"), DualParams(), inputs(), "cpu")
    assert found.model.prompts == Encoder.load("multilingual-e5-small").prompts
    assert found.model.prompts == {"query": "query: ", "document": "passage: "}


def test_other_scores_are_another_training() -> None:
    """Labels in [0, 1] are made of the scores; a checkpoint is not of labels with others, -inf being none."""
    given = inputs()
    others = [replace(one, scores=np.where(one.positive, -np.inf, one.scores)) for one in given.pools]
    own, of_others = (fingerprint(one.content()) for one in (given, replace(given, pools=others)))
    assert own == fingerprint(inputs().content()) != of_others


def test_random_negatives_of_a_file_of_texts_are_refused(tmp_path: Path) -> None:
    """Its own texts would be the collection, whatever documents are given."""
    rows = ({"anchor": f"query {n}", "positive": f"positive {n}", "negative": f"negative {n}"} for n in range(9))
    (tmp_path / "n.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {"negatives": tmp_path / "n.jsonl", "encoder": "none"}
    request = TrainRequest("out", "dual:group_size=2,depth=1", **given)  # type: ignore[arg-type]
    assert len(load_groups(request, request.training.params).pools) == 8
    request = replace(request, model="dual:group_size=2,negatives_from=random")
    with refusal(r"n\.jsonl: has texts; negatives_from=random draws docids of a collection"):
        load_groups(request, request.training.params)


def pool(qid: str, others: int) -> Labels:
    """A positive p and candidates c0, c1, …, of which c0 is known to be half as relevant."""
    docids = ["p", *(f"c{place}" for place in range(others))]
    scores = np.array([1.0, 0.5] + [0.25] * (others - 1), dtype=np.float32)[: len(docids)]
    positive = np.arange(len(docids)) == 0
    return Labels(qid, docids, scores, positive.astype(np.float32), positive)


COLLECTION = tuple(sorted(["p", *(f"c{place}" for place in range(40)), *(f"r{place:03}" for place in range(200))]))


def drawn(kind: str, size: int = 3, qids: int = 30, others: int = 40, collection: tuple[str, ...] = COLLECTION) -> list:
    pools = [pool(f"q{place}", others) for place in range(qids)]
    params = DualParams(group_size=size, depth=20, seed=7, negatives_from=kind, epochs=2)  # type: ignore[arg-type]
    groups = Groups(pools, params, collection)
    return [groups[place] for place in range(len(groups))]


def test_negatives_come_from_where_they_are_asked() -> None:
    """Paper 004, 3.4: "Given the training data with both hard labels and label distributions"; of negatives no word."""
    of_run, at_random = drawn("run"), drawn("random")
    assert {docid[0] for group in of_run for docid in group.docids[1:]} == {"c"}
    assert {docid for group in of_run for docid in group.docids[1:]} <= {f"c{place}" for place in range(20)}
    found = [docid for group in at_random for docid in group.docids[1:]]
    assert {docid[0] for docid in found} == {"c", "r"}
    assert 0.65 < np.mean([docid[0] == "r" for docid in found]) < 0.95  # 200 of 240
    for group in at_random:
        assert group.docids[0] == "p"
        assert len(set(group.docids)) == 3


def test_a_query_has_as_many_random_documents_as_it_has_candidates() -> None:
    """They are the same whatever the order of the documents, so that labels can be made of them."""
    seen: dict[str, set[str]] = {}
    for group in drawn("random", size=15):
        seen.setdefault(group.qid, set()).update(group.docids[1:])
    for qid, found in seen.items():
        assert found <= set(sampled(qid, {"p"}, COLLECTION, 20, 7))
    assert len({tuple(sorted(found)) for found in seen.values()}) == len(seen)
    known = sampled("q1", {"p", "c1"}, COLLECTION, 239, 7)
    assert set(known) == set(COLLECTION) - {"p", "c1"}


def command(world: Path, tiny: Path, *argv: str) -> list[str]:
    few = f"--labels {world}/labels.parquet --batch-size 6 --max-steps 2".split()
    return train_words("dual", world, tiny, *few, *argv)


@pytest.mark.long
def test_what_is_trained_indexes_and_searches(world: Path, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--model", "dual:towers=separate,label_scale=maxmin", "--preset", "le-bs-nq"]
    assert main(command(world, tiny, *argv)) == 0
    said = capsys.readouterr().err.splitlines()  # no bar of a library
    assert len(said) == 2
    assert said[0].startswith("warning: 3 validation queries, fewer than 100: which step is best is mostly chance")
    record = record_of(world / "out")
    settings = record["params"]
    assert (record["model"], settings["alpha"], settings["max_length"]) == ("dual", 0.2, 64)
    making = f"--documents {world}/documents.jsonl --parts dense --encoder {world}/out --output {world}/index"
    assert index(making.split()) == 0
    asking = f"--index {world}/index --topics {world}/topics.tsv --rerank none --output {world}/run.txt --hits 3"
    assert search(asking.split()) == 0
    encoder, (qid, text) = Encoder.load(f"{world}/out"), next(iter(make_topics().items()))
    scores = encoder.encode(list(make_documents().values()), what="documents") @ encoder.encode([text])[0]
    found = Run.read(world / "run.txt")[qid]
    np.testing.assert_allclose([score for _, score in found], np.sort(scores)[::-1][:3], atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(encoder.encode([text])), 1, atol=1e-5)
    with refusal("out: cannot be loaded as a dual encoder"):  # two towers are no start
        main(command(world, world / "out", "--output", str(world / "more")))
