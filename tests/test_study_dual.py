"""Studies of dual encoders: arms, paper 004's parts, and whole studies of tiny encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.base.record import read_records
from rnnreranker.data.splits import parts_of
from rnnreranker.index.__main__ import main as index
from rnnreranker.lab.study.__main__ import main
from rnnreranker.lab.study.comparisons import distances_of
from rnnreranker.lab.study.request import Arm, StudyRequest, check
from rnnreranker.lab.study.tasks import split_tasks
from tests.tiny_encoder import make_encoder, make_qrels, make_topics, write_text_world

pytest.importorskip("sentence_transformers")


NONE, IN_BATCH = "LE-None:loss=distance:alpha=0", "in-batch:loss=info-nce"
DISTILLED = "LE-Distill:labels=arm:name=LE-None,label_scale=cosine,against=LE-None|LE-TFIDF"


def dual_arms(*arms: str, model: str = "dual:depth=50", **others: Any) -> list[Arm]:
    request = StudyRequest("i", "t", "q", model=model, encoder="minilm", arms=arms, **others)
    check(request)
    return request.chosen


def test_arms_have_settings_of_training_loss_and_labels() -> None:
    arms = [NONE, IN_BATCH, "LE-TFIDF:labels=term-weight", DISTILLED, "evidence:labels=evidence,label_scale=maxmin"]
    arms += ["run:labels=run:context=7,loss=distance:alpha=0.2", "words:start=none,loss=triplet,epochs=9,family=one"]
    made = dual_arms(*arms, loss="distance:alpha=0.8", against="LE-None")
    plain, in_batch, words, distilled, evidence, run, towers = made
    assert [arm.params.loss.partition(":")[0] for arm in made] == ["distance", "info-nce", *["distance"] * 4, "triplet"]
    assert [arm.loss.to_dict().get("alpha") for arm in made[:6]] == [0, None, 0.8, 0.8, 0.8, 0.2]
    assert [arm.params.label_scale for arm in (plain, distilled, evidence)] == ["scores", "cosine", "maxmin"]
    assert (evidence.labels.params.to_dict()["context"], run.labels.params.to_dict()["context"]) == (51, 7)
    assert (distilled.refers, distilled.against) == (["LE-None"], ("base", "LE-None", "LE-TFIDF"))
    assert (plain.against, in_batch.against, words.hard) == (("base",), ("base", "LE-None"), False)
    assert (towers.own.start, towers.params.epochs, towers.own.family) == ("none", 9, "one")


def test_the_parts_are_those_of_the_splits_by_name() -> None:
    topics, qrels = make_topics() | {"lost": "w1 w2"}, make_qrels()
    parts = parts_of(make_topics())
    for setting in ("standard", "cold"):
        tasks = split_tasks(topics, qrels, setting, 4, 3)
        for fold, task in enumerate(tasks, 1):
            assert set(task.test) == set(parts[f"{setting}-{fold}-test"])
            assert task.validation == set(parts[f"{setting}-{fold}-validation"])
            training = parts[f"{setting}-{fold}-train"]
            assert set(task.part(validation=False)["query_id"]) == set(training)
            assert len(task.part(validation=False)) == 2 * len(training)  # all positives
            assert (task.name, task.seed) == (f"{setting}, fold {fold} of 4", 3)
    assert len(split_tasks(topics, qrels, "cold", 2, 0)) == 2
    with pytest.raises(InputError, match="folds=5: expected 1 to 4"):
        split_tasks(topics, qrels, "cold", 5, 0)
    with pytest.raises(InputError, match="4 different questions with a relevant document; five parts need 5 or more"):
        split_tasks(topics, qrels[qrels["query_id"] < "q12"], "cold", 1, 0)  # q0, q1, q10, q11
    with pytest.raises(InputError, match="none of 25 topics has a judgement of grade 1 or more"):
        split_tasks(topics, qrels.assign(relevance=0), "cold", 1, 0)
    graded = qrels.assign(relevance=qrels["relevance"] - 1)  # one positive a query is left
    (task,) = split_tasks(topics, graded, "standard", 1, 0)
    assert len(task.positives) == len(set(task.positives["query_id"])) == len(make_topics()) - len(task.test)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of documents with texts and vectors, topics with two positives each, an encoder."""
    folder = write_text_world(tmp_path_factory.mktemp("world"))
    make_encoder(folder / "dense")
    argv = [
        "--documents",
        str(folder / "documents.jsonl"),
        "--parts",
        "dense,terms",
        "--encoder",
        f"{folder / 'dense'}:pooling=mean",
    ]
    assert index([*argv, "--output", str(folder / "index")]) == 0
    rows = make_qrels().itertuples(index=False)
    (folder / "qrels.txt").write_text("".join(f"{qid} 0 {docid} {grade}\n" for qid, docid, grade in rows))
    return folder


def study(world: Path, name: str, *flags: str, model: str = "dual:depth=20") -> dict:
    argv = ["--index", str(world / "index"), "--topics", str(world / "topics.tsv"), "--splits", "standard"]
    argv += ["--qrels", str(world / "qrels.txt"), "--first-stages", "dense", "--seeds", "1"]
    argv += ["--model", model, "--epochs", "2", "--batch-size", "4", "--learning-rate", "1e-3"]
    argv += ["--measures", "R@5 R@20"]
    assert main([*argv, "--encoder", str(world / "dense"), "--output", str(world / name), *flags]) == 0
    (record,) = read_records(world / name)
    return record.outcome


@pytest.mark.long
def test_a_whole_study(world: Path) -> None:
    flags = [
        "--work",
        str(world / "work"),
        "--loss",
        "distance:alpha=0.7",
        "--folds",
        "1",
        "--against",
        "LE-None",
        "--arms",
    ]
    arms = [NONE, IN_BATCH, DISTILLED, "LE-BS:labels=term-scorer,against=LE-None|LE-Distill|LE-TFIDF"]
    arms += ["F-EBR:start=none,loss=triplet,towers=separate,learning_rate=1e-2", "LE-TFIDF:labels=term-weight"]
    arms += ["evidence:labels=evidence,loss=distance:alpha=1,label_scale=maxmin"]
    made = study(world, "dual.json", *flags, *arms)
    names = ["LE-None", "in-batch", "LE-Distill", "LE-BS", "F-EBR", "LE-TFIDF", "evidence"]
    assert [row["arm"] for row in made["rows"] if row["measure"] == "R@5"] == ["base", *names]
    assert (made["model"], made["params"]["alpha"]) == ("dual", 0.7)
    assert made["tasks"] == ["standard, fold 1 of 4"]
    unlabelled = {arm for arm, spent in made["costs"].items() if spent["labelling"] == 0}
    assert unlabelled == {"LE-None", "in-batch", "F-EBR"}
    assert made["costs"]["LE-Distill"]["labelling"] == made["costs"]["LE-None"]["training"]
    losses = {arm: tuple(curve["loss"]) for arm, curve in made["curves"].items()}
    assert len(set(losses.values())) == len(names)
    begins = {arm: curve["nDCG@10"][0] for arm, curve in made["curves"].items() if not arm.startswith("F-EBR")}
    assert len(set(begins.values())) == 1  # all begin alike, but for the towers that begin from nothing
    parts = parts_of(make_topics())
    assert set(made["queries"]["LE-None"]["R@5"]) == set(parts["standard-1-test"])
    for path in (world / "work").glob("*/trial.json"):
        if not (path.parent / "model").is_dir():
            path.unlink()  # what LE-None came to stays
    few = [NONE, IN_BATCH, DISTILLED.replace("|LE-TFIDF", ""), "LE-BS:labels=term-scorer"]
    again = study(world, "again.json", *flags, *few)
    for arm in again["curves"]:
        assert again["curves"][arm] == made["curves"][arm]
        assert again["queries"][arm] == made["queries"][arm]
    assert again["costs"]["LE-None"] == made["costs"]["LE-None"]
    assert again["costs"]["LE-BS"]["labelling"] == made["costs"]["LE-BS"]["labelling"]
    assert list(made["distances"]) == ["base", *names]
    assert all(sum(far["others"]) == pytest.approx(1) and 0 < far["line"] <= 1 for far in made["distances"].values())
    row = next(row for row in made["rows"] if row["arm"] == "LE-BS")
    assert set(row["against"]) == {"base", "LE-None", "LE-Distill", "LE-TFIDF"}


def test_distances_of_vectors_by_hand() -> None:
    queries = np.array([[1, 0], [0, 1]], dtype=np.float32)
    documents = np.array([[1, 0], [-1, 0], [0.28, 0.96]], dtype=np.float32)
    found = distances_of(queries, documents, [np.array([0]), np.array([1, 2])])
    # f of query 1: 0, 1, .36; of query 2: .5, .5, .02
    assert found["relevant"] == pytest.approx([2 / 3, 0, 0, 0, 1 / 3, 0, 0, 0, 0, 0])
    assert found["others"] == pytest.approx([0, 0, 0, 1 / 3, 1 / 3, 0, 0, 0, 0, 1 / 3])
    moments = np.diag([0.5, 0.5]) + np.array([[2.0784, 0.2688], [0.2688, 0.9216]]) / 3
    assert found["line"] == pytest.approx(np.linalg.eigvalsh(moments)[1] / 2)
    same = distances_of(queries[:1], documents[:2], [np.array([], dtype=np.int64)])
    assert (same["line"], sum(same["relevant"])) == (pytest.approx(1), 0)
