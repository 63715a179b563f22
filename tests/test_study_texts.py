"""Studies of cross-encoders and sparse encoders: what arms differ in, and whole studies of tiny models."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.base.record import Record, read_records
from rnnreranker.index.__main__ import main as index
from rnnreranker.lab.study.__main__ import main
from rnnreranker.lab.study.text.arms import FILTERED, text_arms
from rnnreranker.train.models.cross import CrossParams
from rnnreranker.train.models.sparse import SparseParams
from tests.tiny_encoder import make_encoder, make_masked, make_qrels, write_text_world

pytest.importorskip("sentence_transformers")


def test_every_arm_names_those_that_it_is_compared_with() -> None:
    arms = {arm.name: arm for arm in text_arms("negatives", CrossParams(), ["bm25", "impact"], [])}
    assert arms["negatives of bm25"].others == ("base",)
    assert arms["negatives of impact"].others == ("base", "negatives of bm25")
    assert arms[f"negatives of impact{FILTERED}"].others == ("base", "negatives of impact")
    assert [(arm.stage, arm.filter) for arm in arms.values()] == [
        ("bm25", "none"), ("bm25", "rnn"), ("impact", "none"), ("impact", "rnn")
    ]  # fmt: skip
    losses = {arm.name: arm for arm in text_arms("pair-losses", CrossParams(), ["bm25"], [])}
    assert next(iter(losses)) == "lce"
    assert losses["bce"].others == ("base", "lce")
    assert losses["bce"].params.loss == "bce"
    assert not {"info-nce", "margin-mse"} & set(losses)  # one needs other queries, one a teacher
    weights = text_arms("regularisation", SparseParams(lambda_q=2e-3, lambda_d=1e-3), ["bm25"], [1, 10])
    assert [arm.params.to_dict()["lambda_q"] for arm in weights] == pytest.approx([2e-3, 2e-2])
    assert weights[1].others == ("base", "lambda x 1")
    assert [arm.name for arm in text_arms("pair-losses", CrossParams(), ["bm25"], losses=["bce"])] == ["lce", "bce"]
    with pytest.raises(InputError, match="loss=margin-mse: expected one of bce, lce"):
        text_arms("pair-losses", CrossParams(loss="margin-mse"), ["bm25"])
    with pytest.raises(InputError, match="losses=info-nce: expected one of bce, lce"):
        text_arms("pair-losses", CrossParams(), ["bm25"], losses=["info-nce"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with vectors and impacts of documents with texts, topics with two positives each."""
    folder = write_text_world(tmp_path_factory.mktemp("world"))
    for name in ("dense", "masked"):
        (folder / name).mkdir()
    make_encoder(folder / "dense")
    make_masked(folder / "masked")
    argv = ["--documents", str(folder / "documents.jsonl"), "--parts", "dense,impact"]
    argv += ["--encoder", f"{folder / 'dense'}:pooling=mean", "--impact-encoder", str(folder / "masked")]
    assert index([*argv, "--output", str(folder / "index")]) == 0
    rows = make_qrels().itertuples(index=False)
    (folder / "qrels.txt").write_text("".join(f"{qid} 0 {docid} {grade}\n" for qid, docid, grade in rows))
    return folder


def found(world: Path, name: str, *flags: str) -> Record:
    argv = ["--index", str(world / "index"), "--topics", str(world / "topics.tsv"), "--folds", "2", "--seeds", "1"]
    argv += ["--qrels", str(world / "qrels.txt"), "--encoder", str(world / "masked")]
    argv += ["--first-stages", "dense", "impact", "--test-candidates", "10", "--epochs", "2"]
    argv += ["--work", str(world / "work"), *flags, "--output", str(world / name)]
    assert main(argv) == 0
    (record,) = read_records(world / name)
    return record


def test_negatives_of_every_first_stage_with_and_without_likely_positives(world: Path) -> None:
    model = "cross:group_size=3,key_measure=loss,depth=50,validation_share=0.3"
    flags = ("--arms", "negatives", "--model", model, "--learning-rate", "1e-3")
    first = found(world, "negatives.json", *flags)
    made = first.outcome
    assert (first.kind, first.name) == ("study", "negatives")
    assert (made["model"], made["first_stages"]) == ("cross", ["dense", "impact"])
    arms = [row["arm"] for row in made["rows"] if row["measure"] == "nDCG@10"]
    assert arms == ["base", *(arm.name for arm in text_arms("negatives", CrossParams(), ["dense", "impact"], []))]
    last = next(row for row in made["rows"] if row["arm"] == arms[-1])
    assert set(last["against"]) == {"base", "negatives of impact"}
    losses = {arm: tuple(curve["loss"]) for arm, curve in made["curves"].items()}
    assert len(set(losses.values())) == len(arms) - 1  # every arm draws other negatives
    assert all(len(own) == 3 for own in losses.values())  # before, and after each of two passes
    for path in (world / "work").glob("*.json"):
        path.unlink()
    again = found(world, "again.json", *flags, "--jobs", "2").outcome
    assert again["rows"] == made["rows"]
    assert again["curves"] == made["curves"]


def test_regularisation_is_measured_in_words_and_flops(world: Path) -> None:
    flags = ("--arms", "regularisation", "--factors", "1", "3000", "--learning-rate", "1e-2", "--batch-size", "4")
    flags += ("--model", "sparse:depth=50,validation_share=0.3")
    made = found(world, "weights.json", *flags).outcome
    low, high = made["words"]["lambda x 1"], made["words"]["lambda x 3000"]
    assert high["flops"] < low["flops"]
    assert high["document_words"] < low["document_words"] <= made["words"]["base"]["document_words"] + 10
    assert set(made["words"]) == {"base", "lambda x 1", "lambda x 3000"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--arms", "negatives", "--model", "cross:seed=3"), "--model cross:seed=3: seed: a study draws its own"),
        (
            ("--arms", "negatives", "--model", "sparse:lambda_q=3"),
            "--model sparse: --arms negatives trains a model cross",
        ),
        (("--arms", "labels", "--model", "query:group_size=3"), "--model query: no setting group_size, which is for "),
        (("--arms", "labels", "--epochs", "0"), "--epochs 0.0: expected a finite number > 0"),
        (("--arms", "negatives", "--context", "8"), "--context: is for --arms labels or --arms losses or --arms cand"),
        (("--arms", "regularisation"), "--arms regularisation: --encoder is missing"),
    ],
)
def test_what_does_not_belong_together_is_said(world: Path, flags: tuple[str, ...], message: str) -> None:
    argv = ["--index", str(world / "index"), "--topics", str(world / "topics.tsv"), "--output", str(world / "no.json")]
    with pytest.raises(InputError, match=message):
        main([*argv, "--qrels", str(world / "qrels.txt"), *flags])
    assert not (world / "no.json").exists()
