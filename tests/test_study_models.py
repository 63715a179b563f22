"""Studies of models that read texts: their arms, paper 004's parts, and whole studies of tiny models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

from rnnreranker.base.record import Record, read_records
from rnnreranker.base.settings import Written
from rnnreranker.data.splits import parts_of
from rnnreranker.encode.late import make_late_base
from rnnreranker.index.__main__ import main as index
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.tasks import Task, tasks_of
from rnnreranker.lab.study.trial import distances_of
from rnnreranker.study import main
from tests.query_sets import write_judged
from tests.tiny_encoder import (
    make_cross_encoder,
    make_encoder,
    make_masked,
    make_qrels,
    make_topics,
    write_text_world,
)

pytest.importorskip("sentence_transformers")

NONE, IN_BATCH = "LE-None:loss=distance:alpha=0", "in-batch:loss=info-nce"
DISTILLED = "LE-Distill:labels=arm:name=LE-None,label_scale=cosine,against=LE-None|LE-TFIDF"
SCORES = "normalization=none,boost=1,n_max=none"
OWN = "start=ColBERT,negatives=ColBERT"
PAIR = "loss=kl,in_batch_negatives=false"
BATCH = "loss=kl:raise_positives=true,in_batch_negatives=true,batch_teacher=true"
HN = f"ColBERT-HN:{OWN}"
SELF = f'self-KD:{OWN},{BATCH},against=ColBERT|ColBERT-HN,labels="teacher:teacher=late,temperature=0.125,{SCORES}"'


CROSS = "--model cross:group_size=3,key_measure=loss,depth=50,validation_share=0.3"
CROSS = f"{CROSS} --first-stages dense impact --test-candidates 10"


def split_tasks(setting: str, folds: int, seed: int, qrels: Any) -> list[Task]:
    topics = make_topics() | {"lost": "w1 w2"}
    request = StudyRequest("i", topics, qrels, splits=setting, folds=folds, seeds=seed + 1)
    return tasks_of(request, topics, qrels)[0][-folds:]


def test_the_parts_are_those_of_the_splits_by_name() -> None:
    qrels = make_qrels()
    parts = parts_of(make_topics())
    for setting in ("standard", "cold"):
        tasks = split_tasks(setting, 4, 3, qrels)
        for fold, task in enumerate(tasks, 1):
            assert set(task.test) == set(parts[f"{setting}-{fold}-test"])
            assert task.validation == set(parts[f"{setting}-{fold}-validation"])
            training = parts[f"{setting}-{fold}-train"]
            assert set(task.part(validation=False)["query_id"]) == set(training)
            assert len(task.part(validation=False)) == 2 * len(training)  # all positives
            assert (task.name, task.seed) == (f"{setting}, fold {fold} of 4", 3)
    assert len(split_tasks("cold", 2, 0, qrels)) == 2
    with refusal("folds=5: expected 1 to 4"):
        split_tasks("cold", 5, 0, qrels)
    with refusal("4 different questions with a relevant document; five parts need 5 or more"):
        split_tasks("cold", 1, 0, qrels[qrels["query_id"] < "q12"])  # q0, q1, q10, q11
    with refusal("none of 25 topics has a judgement of grade 1 or more"):
        split_tasks("cold", 1, 0, qrels.assign(relevance=0))
    graded = qrels.assign(relevance=qrels["relevance"] - 1)  # one positive a query is left
    (task,) = split_tasks("standard", 1, 0, graded)
    assert len(task.positives) == len(set(task.positives["query_id"])) == len(make_topics()) - len(task.test)


def test_distances_of_vectors_by_hand() -> None:
    queries = np.array([[1, 0], [0, 1]], dtype=np.float32)
    documents = np.array([[1, 0], [-1, 0], [0.28, 0.96]], dtype=np.float32)
    made = distances_of(queries, documents, [np.array([0]), np.array([1, 2])])
    # f of query 1: 0, 1, .36; of query 2: .5, .5, .02
    assert made["relevant"] == pytest.approx([2 / 3, 0, 0, 0, 1 / 3, 0, 0, 0, 0, 0])
    assert made["others"] == pytest.approx([0, 0, 0, 1 / 3, 1 / 3, 0, 0, 0, 0, 1 / 3])
    on_a_line = distances_of(queries[:1], documents[:2], [np.array([], dtype=np.int64)])
    assert 0.5 < made["line"] < on_a_line["line"] == pytest.approx(1)
    assert sum(on_a_line["relevant"]) == 0


@pytest.fixture(scope="module")
def world(module_path: Path) -> Path:
    """An index with all parts of documents with texts, topics with two positives each, and models."""
    folder = write_text_world(module_path)
    for name in ("dense", "masked"):
        (folder / name).mkdir()
    make_encoder(folder / "dense")
    make_masked(folder / "masked")
    make_late_base(str(folder / "dense"), folder / "late", 16)
    for seed in (0, 1):
        make_cross_encoder(folder / f"cross{seed}", seed)
    flags = f"--documents {folder}/documents.jsonl --parts dense,impact,terms --output {folder}/index"
    assert index(f"{flags} --encoder {folder}/dense:pooling=mean --impact-encoder {folder}/masked".split()) == 0
    write_judged(folder, make_topics(), make_qrels().itertuples(index=False))
    return folder


def study(
    world: Path, work: str, arms: list[str], flags: str, encoder: str = "dense", parts: str = "--folds 2"
) -> Record:
    """The record of a study; an earlier one with the same work goes on, except for arms without a kept model."""
    given = f"--index {world / 'index'} --topics {world / 'topics.tsv'} --qrels {world / 'qrels.txt'} {parts} --seeds 1"
    given += f" --encoder {world / encoder} --epochs 2 --learning-rate 1e-3 --work {world / work}"
    for path in (world / work).glob("*/trial.json"):
        if not (path.parent / "model").is_dir():
            path.unlink()
    assert main([*f"{given} --output {world / 'study.json'} {flags}".split(), "--arms", *arms]) == 0
    (record,) = read_records(world / "study.json")
    return record


def same(again: dict[str, Any], made: dict[str, Any]) -> None:
    """Arms of a study that goes on are what they were."""
    for arm, curve in again["curves"].items():
        assert curve == made["curves"][arm]
        assert again["queries"][arm] == made["queries"][arm]


@pytest.mark.long
def test_dual_encoders_taught_by_words_and_by_each_other(world: Path) -> None:
    flags = "--model dual:depth=20 --first-stages dense --batch-size 4 --loss distance:alpha=0.7 --against LE-None"
    how: dict[str, Any] = {"flags": f"{flags} --measures R@5", "parts": "--splits standard --folds 1"}
    arms = [NONE, IN_BATCH, DISTILLED, "LE-BS:labels=term-scorer,against=LE-None|LE-Distill|LE-TFIDF"]
    arms += ["F-EBR:start=none,loss=triplet,towers=separate,learning_rate=1e-2", "LE-TFIDF:labels=term-weight"]
    arms += ["evidence:labels=evidence,loss=distance:alpha=1,label_scale=maxmin"]
    made = study(world, "dual", arms, **how).outcome
    names = [arm.partition(":")[0] for arm in arms]
    assert [row["arm"] for row in made["rows"] if row["measure"] == "R@5"] == ["base", *names]
    assert (made["model"], made["params"]["alpha"], made["tasks"]) == ("dual", 0.7, ["standard, fold 1 of 4"])
    unlabelled = {arm for arm, spent in made["costs"].items() if spent["labelling"] == 0}
    assert unlabelled == {"LE-None", "in-batch", "F-EBR"}
    assert made["costs"]["LE-Distill"]["labelling"] == made["costs"]["LE-None"]["training"]
    assert len({tuple(curve["loss"]) for curve in made["curves"].values()}) == len(names)
    begins = {arm: curve["nDCG@10"][0] for arm, curve in made["curves"].items() if not arm.startswith("F-EBR")}
    assert len(set(begins.values())) == 1  # all begin alike, but for the towers that begin from nothing
    parts = parts_of(make_topics())
    assert set(made["queries"]["LE-None"]["R@5"]) == set(parts["standard-1-test"])
    assert made["training_queries"] == len(parts["standard-1-train"])  # and not their positives, two each
    few = [NONE, IN_BATCH, DISTILLED.replace("|LE-TFIDF", ""), "LE-BS:labels=term-scorer"]
    again = study(world, "dual", few, **how).outcome
    same(again, made)
    assert again["costs"]["LE-None"] == made["costs"]["LE-None"]
    assert list(made["distances"]) == ["base", *names]
    assert all(sum(far["others"]) == pytest.approx(1) and 0 < far["line"] <= 1 for far in made["distances"].values())
    assert set(made["by_degrees"]) == {"LE-Distill", "LE-BS", "LE-TFIDF"}
    row = next(row for row in made["rows"] if row["arm"] == "LE-BS")
    assert set(row["against"]) == {"base", "LE-None", "LE-Distill", "LE-TFIDF"}


def pairs(*models: Path) -> str:
    named = ",".join(map(str, models))
    labels = str(Written("cross-encoders", {"models": named})) + f",temperature=0.25,{SCORES}"
    return str(Written("", {"labels": labels})).removeprefix(":") + f",{PAIR}"


@pytest.mark.long
def test_students_of_every_teacher(world: Path) -> None:
    one, both = pairs(world / "cross0"), pairs(world / "cross0", world / "cross1")
    model = "--model late:depth=20,dimension=16,validation_share=0.3 --first-stages dense --batch-size 4"
    flags, labels = f"{model} --against ColBERT", f'"collective:fb_docs=2,temperature=0.125,{SCORES}"'
    arms = ["ColBERT", "ColBERT-PRF:start=ColBERT,prf=colbert", "ColBERT, random negatives:negatives=random", HN, SELF]
    more = [f"KD, cross-encoder:{one}", f"KD, 2 cross-encoders:{both}", f"KD, cross-encoder, from ColBERT:{OWN},{one}"]
    more += [f"collective self-KD, fb_docs=2:{OWN},{BATCH},labels={labels}"]
    made = study(world, "late-work", [*arms, *more], flags).outcome
    names = [arm.partition(":")[0] for arm in (*arms, *more)]
    assert [row["arm"] for row in made["rows"] if row["measure"] == "nDCG@10"] == ["base", *names]
    assert (made["model"], made["params"]["similarity"]) == ("late", "l2")
    assert all(spent["training"] > 0 for spent in made["costs"].values())
    assert {arm for arm, spent in made["costs"].items() if spent["labelling"] == 0} == set(names[:3])
    losses = {arm: tuple(curve["loss"]) for arm, curve in made["curves"].items()}
    assert losses.pop("ColBERT-PRF") == losses["ColBERT"]  # one training, searched with in two ways
    assert len(set(losses.values())) == len(names) - 1
    begin = {arm: curve["nDCG@10"][0] for arm, curve in made["curves"].items()}
    assert begin["ColBERT-HN"] == begin["self-KD"] == begin["KD, cross-encoder, from ColBERT"]
    assert begin["ColBERT"] == begin["KD, cross-encoder"] == begin["KD, 2 cross-encoders"]
    row = next(row for row in made["rows"] if row["arm"] == "self-KD")
    assert set(row["against"]) == {"base", "ColBERT", "ColBERT-HN"}
    again = study(world, "late-work", arms, flags).outcome
    same(again, made)
    assert again["costs"]["ColBERT"] == made["costs"]["ColBERT"]


@pytest.mark.long
def test_negatives_of_every_first_stage_with_and_without_likely_positives(world: Path) -> None:
    arms = ["dense:negatives=dense", "dense, filtered:negatives=dense,filter=rnn,against=dense", "impact:against=dense"]
    first = study(world, "cross", [*arms, "impact, filtered:filter=rnn,against=impact"], CROSS, encoder="masked")
    made = first.outcome
    assert (first.kind, made["model"], made["first_stages"]) == ("study", "cross", ["dense", "impact"])
    names = [row["arm"] for row in made["rows"] if row["measure"] == "nDCG@10"]
    assert names == ["base", "dense", "dense, filtered", "impact", "impact, filtered"]
    last = next(row for row in made["rows"] if row["arm"] == names[-1])
    assert set(last["against"]) == {"base", "impact"}
    losses = {arm: tuple(curve["loss"]) for arm, curve in made["curves"].items()}
    assert len(set(losses.values())) == len(names) - 1  # every arm draws other negatives
    assert all(len(own) == 3 for own in losses.values())  # before, and after each of two passes
    same(study(world, "cross", ["impact"], f"{CROSS} --jobs 2", encoder="masked").outcome, made)


@pytest.mark.long
def test_workers_of_a_cluster_take_the_same_trials(world: Path) -> None:
    for package in ("distributed", "ray"):
        pytest.importorskip(package)
    here = study(world, "here", ["impact"], CROSS, encoder="masked")
    for backend in ("dask", "ray"):
        there = study(world, backend, ["impact"], f"{CROSS} --backend {backend} --jobs 2", encoder="masked")
        assert [there.outcome[name] for name in ("rows", "curves")] == [
            here.outcome[name] for name in ("rows", "curves")
        ]
        assert [one["command"] for one in there.commands] == [one["command"] for one in here.commands]
        names = [{path.parent.name for path in (world / folder).glob("*/trial.json")} for folder in ("here", backend)]
        assert names[0] == names[1] != set()
