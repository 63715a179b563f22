"""Cross-encoders trained on groups: what is drawn, the loss, resuming, the folder that comes out, the command."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from query_sets import write_lines
from refusals import refusal
from tiny_encoder import (
    make_documents,
    make_group_inputs,
    make_text_labels,
    make_topics,
    record_of,
    train_words,
)

from rnnreranker.base.errors import ParameterError
from rnnreranker.encode.kinds import PairScorer
from rnnreranker.labels.soft import Labels
from rnnreranker.train.__main__ import main
from rnnreranker.train.groups import GroupInputs, Groups, enough, pools_of
from rnnreranker.train.models import Cross
from rnnreranker.train.params import CrossParams
from rnnreranker.train.request import Start, Trained
from rnnreranker.train.text import in_batch

QUICK = CrossParams(group_size=4, batch_size=4, epochs=2, learning_rate=3e-3, warmup=0.0, key_measure="loss")


def trained(tiny: Path, out: Path, params: CrossParams = QUICK, found: GroupInputs | None = None) -> Trained:
    return Cross().train_on(found or make_group_inputs(), Start(str(tiny)), out, params)


def pool(qid: str, positives: int, negatives: int) -> Labels:
    size = positives + negatives
    positive = np.arange(size) < positives
    targets = np.full(size, 1 / size, dtype=np.float32)
    return Labels(qid, [f"{qid}-{n}" for n in range(size)], targets, targets, positive)


def test_groups_are_drawn_anew_in_every_epoch_and_the_same_whenever_they_are_asked_for() -> None:
    pools = [pool(f"q{n}", 2, 9) for n in range(5)]
    params = CrossParams(group_size=4, depth=7, seed=3, epochs=6)
    groups, again = Groups(pools, params), Groups(pools, params)
    assert len(groups) == 30
    found = [groups[place] for place in range(30)]
    for place in (29, 3, 17):
        assert again[place].docids == found[place].docids
    for epoch in range(6):
        assert sorted(group.qid for group in found[5 * epoch : 5 * epoch + 5]) == [f"q{n}" for n in range(5)]
    own = [group.docids for group in found if group.qid == "q2"]
    assert len({tuple(docids) for docids in own}) > 3
    assert {docids[0] for docids in own} == {"q2-0", "q2-1"}
    drawn = {docid for docids in own for docid in docids[1:]}
    assert drawn <= {f"q2-{n}" for n in range(2, 9)}  # the first 7 that are not positive
    assert len(drawn) > 4
    for group in found:
        assert len(set(group.docids)) == 4
        made = in_batch([group], [group.docids])
        assert (made["positive"].tolist(), made["valid"].all()) == ([[True, False, False, False]], True)
        assert made["targets"].sum() == pytest.approx(1)
        assert group.known == [f"{group.qid}-0", f"{group.qid}-1"]


def test_queries_without_enough_negatives_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    pools = [pool("a", 1, 3), pool("b", 1, 2)]
    with caplog.at_level(logging.INFO, logger="rnnreranker"):
        assert [one.qid for one in enough(pools, 4, 100)] == ["a"]
    assert "1 query without 3 negatives for a group of 4 left out" in caplog.text


def test_mined_negatives_of_a_query_are_one_pool(tmp_path: Path) -> None:
    (tmp_path / "mined.tsv").write_text("q\tp1\tn1\tn2\nq\tp2\tn2\tp1\tn3\n")
    (one,) = pools_of(str(tmp_path / "mined.tsv"))
    assert (one.docids, one.targets.tolist()) == (["p1", "p2", "n1", "n2", "n3"], [0.5, 0.5, 0, 0, 0])


@pytest.mark.long
def test_the_loss_is_that_of_the_scores_of_the_folder(tiny: Path, tmp_path: Path) -> None:
    """What was written scores as what was measured, in sentence-transformers and as a reranker loads it."""
    from sentence_transformers import CrossEncoder

    found, given = trained(tiny, tmp_path / "out"), make_group_inputs()
    model, own = CrossEncoder(str(tmp_path / "out"), device="cpu"), PairScorer.load(str(tmp_path / "out"))
    losses = []
    for one in given.checked:
        pairs = [(given.queries[one.qid], given.documents[docid]) for docid in one.docids]
        scores = torch.tensor(np.asarray(model.predict(pairs)))
        assert np.allclose(own.score(pairs).scores, scores, atol=1e-5)
        losses.append(float(torch.logsumexp(scores, 0) - scores[int(np.flatnonzero(one.positive)[0])]))
    assert found.measures["loss"] == pytest.approx(np.mean(losses), abs=1e-5)
    record = record_of(tmp_path / "out")
    assert record["params"]["group_size"] == 4
    assert record["history"] == list(found.history)
    assert not (tmp_path / "out.checkpoints").exists()


def command(world: Path, tiny: Path, *argv: str) -> list[str]:
    return train_words("cross:group_size=4", world, tiny, "--max-steps", "3", *argv)


@pytest.mark.long
def test_the_command(world: Path, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = ["--labels", str(world / "labels.parquet")]
    assert main(command(world, tiny, *labels, "--loss", "bce")) == 0
    said = capsys.readouterr()
    assert "nDCG@10\tbefore" in said.out
    assert "of 3 is best on validation nDCG@10 (3 queries)" in said.err
    assert "warning: 3 validation queries, fewer than 100: which step is best is mostly chance" in said.err
    record = record_of(world / "out")
    assert (record["model"], record["params"]["loss"]) == ("cross", "bce")
    assert record["labels"] == {"method": "words in common"}
    unmoved = f"--learning-rate 1e-30 --output {world}/unmoved".split()
    assert main([*command(world, tiny, *labels), *unmoved]) == 0
    assert f"no step was better than the start, so {world / 'unmoved'} is the start" in capsys.readouterr().err


def write_rows(world: Path) -> None:
    """negatives.tsv with ids and negatives.jsonl with texts, of all queries."""
    topics, documents = make_topics(), make_documents()
    rows = [(one.qid, *one.docids[:5]) for one in make_text_labels()]
    write_lines(world / "negatives.tsv", map("\t".join, rows))
    names = ["anchor", "positive", *(f"negative_{n}" for n in range(1, 5))]
    texts = [(topics[row[0]], *(documents[docid] for docid in row[1:])) for row in rows]
    write_lines(world / "negatives.jsonl", (json.dumps(dict(zip(names, row, strict=True))) for row in texts))


@pytest.mark.long
def test_negatives_of_a_file_by_ids_and_by_texts(world: Path, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(world)
    for name in ("negatives.tsv", "negatives.jsonl"):
        assert main(command(world, tiny, "--negatives", str(world / name))) == 0
        assert "(3 queries)" in capsys.readouterr().err
    with refusal("loss margin-mse: needs targets of the negatives"):
        main(command(world, tiny, "--negatives", str(world / "negatives.tsv"), "--loss", "margin-mse"))


@pytest.mark.long
def test_texts_that_are_missing_and_losses_that_are_no_numbers(world: Path, tiny: Path, tmp_path: Path) -> None:
    documents = (world / "documents.jsonl").read_text().splitlines(keepends=True)
    (world / "documents.jsonl").write_text("".join(documents[:40]))
    with refusal(r"\d+ documents without a text \(first: d\d+"):
        main(command(world, tiny, "--labels", str(world / "labels.parquet")))
    with pytest.raises(ParameterError, match="the loss is nan; try a lower learning_rate"):
        trained(tiny, tmp_path / "out", replace(QUICK, learning_rate=1e30))
