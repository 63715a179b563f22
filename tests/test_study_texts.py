"""Studies of cross-encoders and sparse encoders: what arms differ in, and whole studies of tiny models."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnreranker.base.record import Record, read_records
from rnnreranker.index.__main__ import main as index
from rnnreranker.lab.study.__main__ import main
from tests.tiny_encoder import make_encoder, make_masked, make_qrels, write_text_world

pytest.importorskip("sentence_transformers")


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


@pytest.mark.long
def test_negatives_of_every_first_stage_with_and_without_likely_positives(world: Path) -> None:
    model = "cross:group_size=3,key_measure=loss,depth=50,validation_share=0.3"
    flags = ("--compares", "negatives", "--model", model, "--learning-rate", "1e-3", "--arms", "dense:negatives=dense")
    flags += ("dense, filtered:negatives=dense,filter=rnn,against=dense", "impact:against=dense")
    flags += ("impact, filtered:filter=rnn,against=impact",)
    first = found(world, "negatives.json", *flags)
    made = first.outcome
    assert (first.kind, first.name) == ("study", "negatives")
    assert (made["model"], made["first_stages"]) == ("cross", ["dense", "impact"])
    arms = [row["arm"] for row in made["rows"] if row["measure"] == "nDCG@10"]
    assert arms == ["base", "dense", "dense, filtered", "impact", "impact, filtered"]
    last = next(row for row in made["rows"] if row["arm"] == arms[-1])
    assert set(last["against"]) == {"base", "impact"}
    losses = {arm: tuple(curve["loss"]) for arm, curve in made["curves"].items()}
    assert len(set(losses.values())) == len(arms) - 1  # every arm draws other negatives
    assert all(len(own) == 3 for own in losses.values())  # before, and after each of two passes
    for path in (world / "work").glob("*/trial.json"):
        path.unlink()
    again = found(world, "again.json", *flags[: flags.index("dense:negatives=dense")], "impact", "--jobs", "2").outcome
    for arm in ("base", "impact"):
        assert again["queries"][arm] == made["queries"][arm]
    assert again["curves"]["impact"] == made["curves"]["impact"]


@pytest.mark.long
def test_workers_of_a_cluster_take_the_same_trials(world: Path) -> None:
    for package in ("distributed", "ray"):
        pytest.importorskip(package)
    model = "cross:group_size=3,key_measure=loss,depth=50,validation_share=0.3"
    flags = ("--model", model, "--learning-rate", "1e-3", "--arms", "impact")
    here = found(world, "here.json", *flags, "--work", str(world / "here"))
    for backend in ("dask", "ray"):
        work = ("--work", str(world / backend), "--backend", backend, "--jobs", "2")
        there = found(world, f"{backend}.json", *flags, *work)
        assert there.outcome["rows"] == here.outcome["rows"]
        assert there.outcome["curves"] == here.outcome["curves"]
        assert [one["command"] for one in there.commands] == [one["command"] for one in here.commands]
        names = [{path.parent.name for path in (world / folder).glob("*/trial.json")} for folder in ("here", backend)]
        assert names[0] == names[1] != set()
