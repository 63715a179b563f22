"""`train_model`: what the command does, from Python, with objects in place of files, and without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from query_sets import files_of, write_texts
from refusals import refusal, refusal_with
from tiny_encoder import make_qrels, make_run, make_source, make_topics, record_of

import rnnreranker
from rnnreranker import SoftLabels, train_model
from rnnreranker.base.errors import DataWarning, of_command
from rnnreranker.base.method import Inputs
from rnnreranker.base.settings import Written
from rnnreranker.labels.methods.simple import HardLabeler
from rnnreranker.train import TrainRequest
from rnnreranker.train.__main__ import main
from rnnreranker.train.request import check, hard_labels

FORM = "query:epochs=1,candidates=8,seed=3"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """An index, labels, topics, and a run with judgements, as files."""
    source = make_source(tmp_path / "index")
    HardLabeler(Inputs(vectors=source)).infer(make_run(), make_qrels()).write(tmp_path / "labels.parquet")
    write_texts(tmp_path / "topics.tsv", make_topics())
    return tmp_path


@pytest.mark.long
def test_the_folder_is_that_of_the_command(
    tiny: Path, world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, topics = str(world / "index"), make_topics()
    labels = SoftLabels.read(world / "labels.parquet")
    given: dict[str, Any] = {"encoder": f"{tiny}:pooling=mean", "device": "cpu", "output": world / "python"}
    with pytest.warns(DataWarning, match="validation queries, fewer than 100: which step is best is mostly chance"):
        trained = train_model(labels, rnnreranker.open_index(index), topics, FORM, **given)
    assert capsys.readouterr() == ("", "")
    assert (trained.path, trained.record["params"]["candidates"]) == (world / "python", 8)
    assert trained.measures == record_of(trained.path)["measures"]
    flags = f"--labels {world}/labels.parquet --index {index} --topics {world}/topics.tsv --output {world}/command"
    flags += f" --encoder {tiny}:pooling=mean --device cpu --model query:candidates=8 --epochs 1 --seed 3"
    assert main(flags.split()) == 0
    assert files_of(world / "command") == files_of(world / "python")


def test_validation_queries_and_neutrality_are_objects_too(tiny: Path, world: Path) -> None:
    topics = make_topics()
    few = {qid: text for qid, text in topics.items() if qid in ("q1", "q2", "q3")}
    others = {qid: text for qid, text in topics.items() if qid not in few}
    labelled = hard_labels(make_run(), others, make_qrels(), len(others))
    qrels: dict[str, dict[str, int]] = {}
    for qid, docid, grade in make_qrels().to_numpy().tolist():
        qrels.setdefault(qid, {})[docid] = grade
    trained = train_model(
        labelled,
        world / "index",
        topics,
        Written("query", {"max_steps": 1, "neutrality_weight": 1, "loss": {"multi-tier": {"margin": 2.0}}}),
        output=world / "out",
        encoder={str(tiny): {"pooling": "mean"}},
        validation_run=make_run(),
        validation_qrels=qrels,
        validation_topics=few,
        neutrality={"d1": 0.5},
        device="cpu",
    )
    assert trained.record["validation_queries"] == 3
    assert (trained.record["params"]["loss"], trained.record["params"]["margin"]) == ("multi-tier", 2.0)


@pytest.mark.parametrize(
    ("weight", "neutral", "said"),
    [
        (1, None, "neutrality_weight=1.0: expected above 0 with neutrality, 0 without it"),
        (0, {"d1": 0.5}, "neutrality_weight=0.0: expected above 0 with neutrality, 0 without it"),
        (1, {"x": 0.5, "y": 1}, "neutrality: none of its 2 documents is in the index"),
        (1, {"d1": 1.5}, r"neutrality: 'd1\\t1.5', expected docid<TAB>value in \[0, 1\]"),
    ],
)
def test_neutrality_goes_with_its_weight(
    tiny: Path, world: Path, weight: float, neutral: dict[str, float] | None, said: str
) -> None:
    form, given = f"query:neutrality_weight={weight}", (world / "labels.parquet", world / "index", make_topics())
    with refusal(said):
        train_model(*given, form, output=world / "out", encoder=f"{tiny}:pooling=mean", neutrality=neutral)


def test_the_encoder_of_the_index_is_trained_where_none_is_given(tiny: Path, world: Path) -> None:
    described = {"parts": {"dense": {"encoder": {"name": str(tiny), "settings": {"pooling": "mean"}}}}}
    index = rnnreranker.Index("mine", folders={"dense": world / "index"}, settings=described)
    request = TrainRequest("out", index=index)
    assert (request.start.name, request.start.settings) == (str(tiny), {"pooling": "mean"})
    assert TrainRequest("out", index=index, encoder="minilm:pooling=cls").start.settings == {"pooling": "cls"}
    with refusal(r"encoder is missing: .* no index says which encoder made its part tokens"):
        TrainRequest("out", "late", index=index).start  # noqa: B018
    with refusal(r"^encoder is missing: it is the initial model"):
        TrainRequest("out").start  # noqa: B018


@pytest.mark.parametrize(
    ("given", "said", "flagged"),
    [
        (
            {"kind": "late:neutrality_weight=1"},
            "model=late: no setting neutrality_weight, ",
            "--model late: no setting",
        ),
        ({"scorer": "encoder:blocks=0"}, "scorer=encoder:blocks=0: blocks=0: expected", "--scorer encoder:blocks=0: "),
        (
            {"kind": "sparse", "other_index": True},
            "other_index: expected none with model=sparse",
            "--other-index: expected none with --model sparse",
        ),
        ({"device": "tpu"}, "device=tpu: torch has no device tpu", "--device tpu: torch has no device tpu"),
        ({"kind": "cross", "fields": "text"}, "fields goes with documents", "--fields goes with --documents"),
        ({"encoder": "minilm:pooling=most"}, "encoder=minilm:pooling=most: ", "--encoder minilm:pooling=most: "),
    ],
)
def test_messages_name_arguments_and_flags(given: dict[str, Any], said: str, flagged: str, tmp_path: Path) -> None:
    with refusal_with(said):
        train_model(None, None, None, output=tmp_path / "out", **given)
    kind = {"model": given.pop("kind")} if "kind" in given else {}
    with of_command(), refusal_with(flagged):
        check(TrainRequest(tmp_path / "out", **kind, **given))
    assert not (tmp_path / "out").exists()
