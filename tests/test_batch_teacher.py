"""The teacher of labels over a whole batch: its scores beside loops, with training, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from rnnreranker import SoftLabels
from rnnreranker.index.opening import open_index
from rnnreranker.train.__main__ import main as train
from rnnreranker.train.groups import BatchTeacher, Groups
from rnnreranker.train.params import LateParams
from rnnreranker.train.text import in_batch
from tests import test_colbert_prf as prf
from tests import test_labels_collective as collective

world, made = prf.world, collective.made
METHOD = f"collective:{collective.HOW},temperature=0.125"
COLLECTIVE = ["--method", METHOD]


def asked_again(world: Path, labels: SoftLabels) -> BatchTeacher:
    topics = dict(line.split("\t") for line in (world / "topics.tsv").read_text().splitlines())
    return BatchTeacher(labels.metadata, open_index(str(world / "index")), topics)


@pytest.mark.long
@pytest.mark.parametrize("positives", [False, True])
def test_every_document_of_a_batch_has_its_score(
    world: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, positives: bool
) -> None:
    """Paper 002, 2.3.1, below eq. 6: "we can reuse the collective centroids for estimating the R*_q(p) of any p"."""
    monkeypatch.setattr(prf, "SPECIAL", (0, 1, 2, 3, 4, 45))
    how = ["--method", f"{METHOD},positives=true"] if positives else COLLECTIVE
    labels = collective.labelled(world, made, tmp_path / "labels.parquet", *how)
    groups = [Groups(list(labels), LateParams(depth=12, seed=7))[place] for place in range(4)]
    docids = list(dict.fromkeys(docid for group in groups for docid in group.docids))
    logits = asked_again(world, labels).logits([group.pool for group in groups], docids)
    made_label = in_batch(groups, [docids] * len(groups), None, logits)
    source, queries = open_index(str(world / "index")).token_vectors, collective.tokens_of_queries(world)
    beyond = []
    for row, group in enumerate(groups):
        pool = labels[group.qid]
        known = pool.docids[:2] if positives else []
        everything = [*pool.docids[:15], *(docid for docid in docids if docid not in pool.docids[:15])]
        scores = dict(zip(everything, collective.expected(source, queries[group.qid], everything, known), strict=True))
        odds = np.exp([(scores[docid] - max(scores.values())) / 0.125 for docid in docids])
        np.testing.assert_allclose(made_label["targets"][row].numpy(), odds / odds.sum(), atol=1e-4)
        own = np.isin(docids, group.docids)
        beyond.append(float(made_label["targets"][row].numpy()[~own].sum()))
        first, second = (docids.index(docid) for docid in group.docids)
        ratio = float(made_label["targets"][row, first] / made_label["targets"][row, second])
        own_targets = dict(zip(pool.docids, pool.targets.tolist(), strict=True))
        of_labels = own_targets[group.docids[0]] / own_targets[group.docids[1]]
        assert ratio == pytest.approx(of_labels, rel=1e-3)  # as in the labels
    assert max(beyond) > 0.05  # what was 0 before
    assert made_label["valid"].all()  # eq. 3 sums over every passage, a query's other known positives too
    masked = in_batch(groups, [docids] * len(groups))["valid"].numpy()  # hard labels would call these negatives
    elsewhere = [[docid in group.known and docid not in group.docids for docid in docids] for group in groups]
    assert np.any(elsewhere)
    assert (masked == ~np.array(elsewhere)).all()


def test_the_teacher_late_says_maxsim_of_any_document(world: Path, made: Path, tmp_path: Path) -> None:
    """Self-distillation: `R_q(p) = softmax(phi_q(p))` of all passages of a batch (paper 002, eq. 2)."""
    how = ["--method", "teacher:teacher=late"]
    labels = collective.labelled(world, made, tmp_path / "labels.parquet", *how)
    docids = [f"d{number}" for number in range(60)]
    source, queries = open_index(str(world / "index")).token_vectors, collective.tokens_of_queries(world)
    pools = list(labels)[:2]
    found = asked_again(world, labels).logits(pools, docids)
    for row, pool in enumerate(pools):
        query = [(token, 1.0) for token in queries[pool.qid]]
        expected = [prf.score_by_loops(query, prf.tokens_of(source, row)) for row in source.rows(docids).tolist()]
        np.testing.assert_allclose(found[row], expected, atol=1e-4)
    with refusal(r"nowhere is not in .*; use the index of the labels"):
        asked_again(world, labels).logits(pools, ["d1", "nowhere"])


@pytest.mark.long
def test_a_student_is_trained_so(world: Path, made: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.parquet"
    collective.labelled(world, made, labels, *COLLECTIVE)
    words = ["--labels", labels, "--topics", world / "topics.tsv", "--encoder", world / "model"]
    words += ["--loss", "kl:raise_positives=true", "--batch-size", 4, "--max-steps", 2, "--device", "cpu", "--output"]
    late = ["--model", "late:group_size=2,in_batch_negatives=true,validation_share=0.3"]
    teacher = [late[0], f"{late[1]},batch_teacher=true"]
    index = ["--index", world / "index"]
    histories = {}
    for name, more in (("batch", teacher), ("labels", late)):
        assert train([str(word) for word in [*words, tmp_path / name, *index, *more]]) == 0
        record = json.loads((tmp_path / name / "training.json").read_text())
        assert record["params"]["batch_teacher"] == (name == "batch")
        histories[name] = record["history"]
    assert histories["batch"][-1] != histories["labels"][-1]
    other = tmp_path / "other"
    named = ["--documents", world / "docs.tsv", "--output", other, "--parts", "tokens"]
    assert prf.run_index(*named, "--token-encoder", f"{world / 'model'}:document_length=4") == 0
    plain = tmp_path / "plain.parquet"
    collective.labelled(world, made, plain, "--method", "collective", "--normalization", "maxmin")
    run = tmp_path / "run.parquet"
    collective.labelled(world, made, run, "--method", "run")
    replaced = {"labels": words[1]}
    for given, of, said in (
        ([*index, "--model", "late:batch_teacher=true"], labels, "expected with in_batch_negatives"),
        (["--documents", world / "docs.tsv", *teacher], labels, "--index with the tokens that they were made"),
        (["--index", other, *teacher], labels, "the labels were not made from its tokens"),
        ([*index, *teacher], plain, "normalization='maxmin'.*; expected normalization=none, boost=1 and n_max=none"),
        ([*index, *teacher], run, "the method run have no teacher over tokens"),
    ):
        argv = [of if word is replaced["labels"] else word for word in words]
        with refusal(said):
            train([str(word) for word in [*argv, tmp_path / "none", *given]])
    assert not (tmp_path / "none").exists()


def test_labels_made_with_settings_that_there_are_not_are_made_again(world: Path) -> None:
    before = {"method": "collective", "params": {"groups": 24}}
    with refusal(r"unexpected keyword argument 'groups'\); make them again"):
        BatchTeacher(before, open_index(str(world / "index")), {})
