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
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.studying import run_study
from rnnreranker.lab.study.teachers.encoded_tokens import TokenSearch
from rnnreranker.lab.study.teachers.pair_teacher import taught_by
from rnnreranker.methods.feedback.colbert import ColbertFeedback, ColbertParams
from rnnreranker.parts.tokens.lexicon import Lexicon
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


def test_labels_take_all_that_negatives_are_drawn_from() -> None:
    request = StudyRequest("i", "t", "q", model="late:depth=50", arms=["a:labels=collective", "b:depth=9,labels=run"])
    first, second = request.chosen
    assert (first.labels.params.to_dict()["context"], second.labels.params.to_dict()["context"]) == (51, 10)
    assert (first.params.similarity, first.hard, first.against) == ("l2", False, ("base",))


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


def test_a_search_with_feedback_is_that_of_a_query_and_its_centroids(world: Path, tmp_path: Path) -> None:
    encoder, documents = LateEncoder.load(str(world / "late")), make_documents()
    topics = dict(list(make_topics().items())[:2])
    search = TokenSearch(encoder, documents, tmp_path / "tokens")
    feedback = ColbertFeedback(ColbertParams(fb_docs=2, fb_clusters=4, fb_embeddings=3, fb_expansion_weight=0.5))
    own = {qid: list(documents)[:6] for qid in topics}
    found = {"all": search.best(topics, 5, feedback=feedback), "own": search.best(topics, 5, own, feedback)}
    source, asked = search.source, search.queries(topics)
    for number, qid in enumerate(topics):
        query = asked.vectors[asked.offsets[number] : asked.offsets[number + 1]]
        of = {"all": list(documents), "own": own[qid]}
        for name, docids in of.items():
            rows = source.rows(docids)
            first = source.best(source.scores(query, np.array([0, len(query)]), rows)[0], rows, 2)[1]
            joined, weights = feedback.of_tokens(query, first, Lexicon(source))
            assert len(joined) > len(query)
            scores = source.scores(joined, np.array([0, len(joined)]), rows, weights=weights)[0]
            best = sorted(scores.tolist(), reverse=True)[:5]
            assert [score for _, score in found[name][qid]] == pytest.approx(best, rel=1e-6)


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


@pytest.mark.long
def test_a_query_encoder_learns_from_tokens(world: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    argv = ["--documents", str(world / "documents.jsonl"), "--encoder", f"{world / 'dense'}:pooling=mean"]
    argv += ["--parts", "dense,tokens", "--token-encoder", str(world / "late"), "--output", str(both)]
    assert index(argv) == 0
    words = ["--topics", str(world / "topics.tsv"), "--qrels", str(world / "qrels.txt"), "--folds", "2", "--seeds", "1"]
    words += ["--model", "query:validation_share=0.3,candidates=8", "--batch-size", "4", "--epochs", "2"]
    words += ["--context", "8"]
    words += [
        "--first-stages",
        "late",
        "--arms",
        "hard",
        *(f"{one}:labels={one}" for one in ("collective", "run", "query")),
    ]
    assert main(["--index", str(both), *words, "--output", str(tmp_path / "study.json")]) == 0
    (made,) = read_records(tmp_path / "study.json")
    values = {row["arm"]: row["value"] for row in made.outcome["rows"] if row["measure"] == "nDCG@10"}
    assert list(values) == ["base", "hard", "collective", "run", "query"]
    losses = {arm: tuple(curve["loss"]) for arm, curve in made.outcome["curves"].items()}
    assert len(set(losses.values())) == 4
    with pytest.raises(InputError, match="no tokens in this index; add them with index --parts tokens"):
        main(["--index", str(world / "index"), *words, "--output", str(tmp_path / "none.json")])


@pytest.mark.long
def test_a_test_by_reranking_stays_in_the_candidates(world: Path) -> None:
    measures = ["--measures", "nDCG@10 R@10", "--test-candidates", "10", "--arms", "ColBERT", HN]
    made = study(world, "reranked.json", *measures).outcome
    whole = study(world, "whole.json", *measures[:2], "--arms", "ColBERT").outcome
    reached = {
        name: {row["arm"]: row["value"] for row in found["rows"] if row["measure"] == "R@10"}
        for name, found in (("reranked", made), ("whole", whole))
    }
    assert reached["reranked"]["base"] == reached["reranked"]["ColBERT"] == reached["reranked"]["ColBERT-HN"]
    assert reached["whole"]["base"] != reached["reranked"]["base"]
