"""Studies of late interaction: who teaches whom, search by a collection's tokens, and whole studies of tiny models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from rnnreranker import maxsim
from rnnreranker.base.errors import InputError
from rnnreranker.base.record import Record, read_records
from rnnreranker.base.written_form import Written
from rnnreranker.encode.cross.encoder import PairScorer
from rnnreranker.encode.late.base import make_late_base
from rnnreranker.encode.late.encoder import LateEncoder
from rnnreranker.index.__main__ import main as index
from rnnreranker.lab.study.__main__ import main
from rnnreranker.lab.study.studying import run_study
from rnnreranker.lab.study.teachers.encoded_tokens import TokenSearch
from rnnreranker.lab.study.teachers.pair_teacher import taught_by
from rnnreranker.runs import Run
from tests.tiny_encoder import (
    make_cross_encoder,
    make_documents,
    make_encoder,
    make_qrels,
    make_topics,
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


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        (["a:labels=evidence"], "labels=evidence: needs query vectors and vectors, which a study of late has not"),
        (["a:labels=run:contex=9"], "labels=run:contex=9: no setting contex, did you mean context"),
        (["a:labels=rum"], "labels=rum: no such labels; "),
        (["a:labels=cross-encoders"], "labels=cross-encoders: models missing"),
        (["a:prf=colbert"], "arms=a: prf: give start, the arm that is searched with"),
        (["a", "b:start=a,prf=colbert:fb_doc=9"], "unknown parameters of colbert: fb_doc; known: fb_docs"),
        (["b:start=a", "a"], "arms=b: a: stands behind it; put it before"),
    ],
)
def test_arms_that_cannot_be_made(arms: list[str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        run_study("nowhere", "topics", "qrels", model="late", encoder="minilm", arms=arms)
    assert said in str(caught.value)


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


def test_search_by_tokens_is_that_of_all_pairs(world: Path, tmp_path: Path) -> None:
    encoder = LateEncoder.load(str(world / "late"))
    documents, topics = make_documents(), dict(list(make_topics().items())[:3])
    search = TokenSearch(encoder, documents, tmp_path / "tokens")
    found = search.best(topics, 5)
    candidates = {"q0": ["d3", "d1", "d2"], "q1": []}
    reranked = search.best(topics, 5, candidates)
    tokens = encoder.encode_documents(list(documents.values()))
    for qid, text in topics.items():
        scores = maxsim(encoder.encode_queries([text]).vectors, tokens.vectors, offsets=tokens.offsets)
        best = np.sort(scores)[::-1][:5]
        np.testing.assert_allclose([score for _, score in found[qid]], best, atol=0.02)  # of float16
        if qid == "q0":
            of_own = {docid: scores[list(documents).index(docid)] for docid in candidates[qid]}
            assert dict(reranked[qid]) == pytest.approx(of_own, abs=0.02)
        else:
            assert qid not in reranked or not reranked[qid]


def test_cross_encoders_teach_by_their_mean_and_say_what_it_took(world: Path, tmp_path: Path) -> None:
    topics, documents = make_topics(), make_documents()
    run = Run.from_dict({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}})
    positives = pandas.DataFrame([("q1", "d9", 1), ("q2", "d3", 1)], columns=["query_id", "doc_id", "relevance"])
    models = [str(world / "cross0"), str(world / "cross1")]
    found, seconds = taught_by(models, run, positives, topics, documents, tmp_path / "kept")
    for qid, docids in {"q1": ["d1", "d2", "d9"], "q2": ["d3"]}.items():
        pairs = [(topics[qid], documents[docid]) for docid in docids]
        means = np.mean([PairScorer.load(model).score(pairs).scores for model in models], axis=0)
        assert dict(found[qid]) == pytest.approx(dict(zip(docids, means.tolist(), strict=True)), abs=1e-5)
    files = list((tmp_path / "kept").glob("*.json"))
    assert len(files) == 4
    assert seconds == pytest.approx(sum(json.loads(file.read_text())["seconds"] for file in files))
    again, same = taught_by(models, run, positives, topics, documents, tmp_path / "kept")
    assert (again.to_dict(), same) == (found.to_dict(), seconds)


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
    assert made["costs"]["KD, 2 cross-encoders"]["labelling"] > made["costs"]["KD, cross-encoder"]["labelling"]
    losses = {arm: tuple(curve["loss"]) for arm, curve in made["curves"].items()}
    assert losses.pop("ColBERT-PRF") == losses["ColBERT"]  # one training, searched with in two ways
    assert len(set(losses.values())) == len(names) - 1
    begin = {arm: curve["nDCG@10"][0] for arm, curve in made["curves"].items()}
    assert begin["ColBERT-HN"] == begin["self-KD"] == begin["KD, cross-encoder, from ColBERT"]
    assert begin["ColBERT"] == begin["KD, cross-encoder"] == begin["KD, 2 cross-encoders"]
    row = next(row for row in made["rows"] if row["arm"] == "self-KD")
    assert set(row["against"]) == {"base", "ColBERT", "ColBERT-HN"}
    for path in (world / "work").glob("*.json"):
        path.unlink()  # what ColBERT and the cross-encoders came to stays
    again = study(world, "again.json", *flags, "--jobs", "2").outcome
    for name in ("rows", "curves"):
        assert again[name] == made[name]
    for arm in ("ColBERT", "KD, cross-encoder"):
        assert again["costs"][arm]["labelling"] == made["costs"][arm]["labelling"]
