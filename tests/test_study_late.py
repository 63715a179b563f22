"""Studies of late interaction: who teaches whom, search by a collection's tokens, and whole studies of tiny models."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnreranker.base.record import Record, read_records
from rnnreranker.base.written_form import Written
from rnnreranker.encode.late import make_late_base
from rnnreranker.index.__main__ import main as index
from rnnreranker.lab.study.__main__ import main
from tests.tiny_encoder import (
    make_cross_encoder,
    make_encoder,
    make_qrels,
    write_text_world,
)

pytest.importorskip("sentence_transformers")


SCORES = "normalization=none,boost=1,n_max=none"
OWN = "start=ColBERT,negatives=ColBERT"
PAIR = "loss=kl,contrast=0,in_batch_negatives=false"
BATCH = "loss=kl:raise_positives=true,contrast=0,in_batch_negatives=true,batch_teacher=true"
HN = f"ColBERT-HN:{OWN}"
SELF = f'self-KD:{OWN},{BATCH},against=ColBERT|ColBERT-HN,labels="teacher:teacher=late,temperature=0.125,{SCORES}"'


def pairs(*models: Path) -> str:
    named = ",".join(map(str, models))
    labels = str(Written("cross-encoders", {"models": named})) + f",temperature=0.25,{SCORES}"
    return str(Written("", {"labels": labels})).removeprefix(":") + f",{PAIR}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of documents with texts, topics with two positives each, a late-interaction encoder, cross-encoders."""
    folder = write_text_world(tmp_path_factory.mktemp("world"))
    make_encoder(folder / "dense")
    make_late_base(str(folder / "dense"), folder / "late", 16)
    for seed in (0, 1):
        make_cross_encoder(folder / f"cross{seed}", seed)
    argv = [
        "--documents",
        str(folder / "documents.jsonl"),
        "--parts",
        "dense",
        "--encoder",
        f"{folder / 'dense'}:pooling=mean",
    ]
    assert index([*argv, "--output", str(folder / "index")]) == 0
    rows = make_qrels().itertuples(index=False)
    (folder / "qrels.txt").write_text("".join(f"{qid} 0 {docid} {grade}\n" for qid, docid, grade in rows))
    return folder


def study(world: Path, name: str, *flags: str, settings: str = "") -> Record:
    argv = ["--index", str(world / "index"), "--topics", str(world / "topics.tsv"), "--folds", "2", "--seeds", "1"]
    argv += ["--qrels", str(world / "qrels.txt"), "--first-stages", "dense"]
    argv += ["--epochs", "2", "--batch-size", "4", "--learning-rate", "1e-3", *flags]
    argv += ["--model", f"late:depth=20,dimension=16,validation_share=0.3{settings}"]
    argv += ["--encoder", str(world / "dense"), "--output", str(world / name)]
    assert main(argv) == 0
    (record,) = read_records(world / name)
    return record


@pytest.mark.long
def test_students_of_every_teacher(world: Path) -> None:
    one, both = pairs(world / "cross0"), pairs(world / "cross0", world / "cross1")
    flags = ["--work", str(world / "work"), "--against", "ColBERT", "--arms", "ColBERT"]
    flags += ["ColBERT-PRF:start=ColBERT,prf=colbert", "ColBERT, random negatives:negatives=random", HN, SELF]
    flags += [f"KD, cross-encoder:{one}", f"KD, 2 cross-encoders:{both}"]
    flags += [f"KD, cross-encoder, from ColBERT:{OWN},{one}"]
    flags += [f'collective self-KD, fb_docs=2:{OWN},{BATCH},labels="collective:fb_docs=2,temperature=0.125,{SCORES}"']
    made = study(world, "late.json", *flags).outcome
    names = ["ColBERT", "ColBERT-PRF", "ColBERT, random negatives", "ColBERT-HN", "self-KD", "KD, cross-encoder"]
    names += ["KD, 2 cross-encoders", "KD, cross-encoder, from ColBERT", "collective self-KD, fb_docs=2"]
    assert [row["arm"] for row in made["rows"] if row["measure"] == "nDCG@10"] == ["base", *names]
    assert (made["model"], made["params"]["similarity"]) == ("late", "l2")
    assert list(made["costs"]) == names
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
    for path in (world / "work").glob("*/trial.json"):
        if not (path.parent / "model").is_dir():
            path.unlink()  # what ColBERT and the cross-encoders came to stays
    again = study(world, "again.json", *flags[: flags.index(f"KD, cross-encoder:{one}")]).outcome
    for arm in again["curves"]:
        assert again["curves"][arm] == made["curves"][arm]
        assert again["queries"][arm] == made["queries"][arm]
    assert again["costs"]["ColBERT"] == made["costs"]["ColBERT"]
