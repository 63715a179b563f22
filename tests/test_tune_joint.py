"""Labels and training tuned together, on a made-up encoder of two layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import write_index, write_judged
from refusals import refusal_with
from tiny_encoder import WORDS, record_of

from rnnreranker import open_index
from rnnreranker.base.record import read_records
from rnnreranker.encode.kinds import Encoder
from rnnreranker.lab.study.request import Arm
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.trial import Studied
from rnnreranker.lab.tune.request import Joint, Space, TuneTrainRequest, check_training
from rnnreranker.lab.tune.training import tune_training

QUERIES, DOCUMENTS = 40, 60


@pytest.fixture(scope="module")
def data(tiny: Path, module_path: Path) -> Path:
    """A folder of vectors with docids, topics.tsv and qrels.txt: documents are texts that the tiny encoder encoded."""
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, size=6)) for _ in range(DOCUMENTS)]
    encoder = Encoder.load(str(tiny), pooling="mean")
    relevant = rng.integers(0, DOCUMENTS, size=QUERIES)
    topics = {f"q{n}": " ".join(rng.choice(texts[d].split(), size=3)) for n, d in enumerate(relevant)}
    write_judged(module_path, topics, [(f"q{n}", f"d{d}", 1) for n, d in enumerate(relevant)])
    return write_index(module_path, encoder.encode(texts))


@pytest.mark.slow
def test_the_search_keeps_the_default_and_goes_on_after_a_kill(tiny: Path, data: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"index": data, "topics": data / "topics.tsv", "qrels": data / "qrels.txt", "trials": 5}
    given |= {"encoder": f"{tiny}:pooling=mean", "context": 30, "model": "query:epochs=1,batch_size=8", "folds": 4}
    request = TuneTrainRequest(**given, seeds=1, storage=tmp_path / "trials")
    whole = tune_training(replace(request, storage=None, work=tmp_path / "whole"))
    assert whole.study is not None
    assert whole.study.value == max(whole.study.history)
    assert whole.study.tried[0] == request.searched.within(30).fixed
    tune_training(replace(request, trials=2))
    next((tmp_path / "trials.trials").glob("*/trial.json")).unlink()  # as after a kill
    again = tune_training(request)
    assert (again.study, again.held_out) == (whole.study, whole.held_out)
    assert again.held_out["folds"][0]["train topics"] == 22


def test_a_storage_keeps_the_trials_of_other_labels_apart(
    tiny: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recorded(_: Studied, task: Task, arm: Arm | None) -> dict[str, Any]:
        worth = 0.0 if arm is None else float(arm.method.params["positive_weight"])
        measured = {} if arm is None else {arm.params.key_measure: worth}
        return {"validation": measured, "values": {"nDCG@10": dict.fromkeys(task.test, worth)}}

    monkeypatch.setattr(Studied, "record", recorded)
    given: dict[str, Any] = {"index": data, "topics": data / "topics.tsv", "qrels": data / "qrels.txt", "trials": 2}
    given |= {"encoder": f"{tiny}:pooling=mean", "context": 30, "folds": 4, "seeds": 1, "storage": tmp_path / "trials"}
    for worth in (0.2, 0.9):
        labels = f"joint:positive_weight={worth}"
        study = tune_training(TuneTrainRequest(**given, arms={"tuned": {"labels": labels}})).study
        assert study is not None
        assert study.history == (worth, worth)


def test_the_default_is_the_first_trial() -> None:
    whole = TuneTrainRequest(index="i", topics="t", qrels="q").searched
    [start] = whole.firsts(1)
    assert (start["boost"], start["n_max"], start["learning_rate"]) == (1.222, 4, 1e-5)
    assert whole.drawn(start) == whole.fixed
    assert Space({"boost": {"low": 2, "high": 5}}, Joint()).firsts(1) == []
    assert whole.within(50).ranges["context"] == {"low": 20, "high": 50}
    held = TuneTrainRequest(index="i", topics="t", qrels="q", model="query:epochs=3", arms=["a:labels=joint:boost=2"])
    assert {*whole.ranges} - {*held.searched.ranges} == {"epochs", "boost"}


@pytest.mark.slow
def test_the_command_writes_a_preset_that_the_other_commands_take(
    tiny: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rnnreranker.labels import SoftLabels
    from rnnreranker.labels.__main__ import main as labels
    from rnnreranker.train.__main__ import main as train
    from rnnreranker.tune import main

    encoder = f"{tiny}:pooling=mean"
    common = f"--index {data} --topics {data / 'topics.tsv'} --encoder {encoder}"
    judged = f"--qrels {data}/qrels.txt"
    quick = "--trials 2 --seeds 1 --folds 4 --model query:epochs=1 --context 30"
    quick += ' --arms mine:labels="evidence:context=20,n_max=5"'
    preset, report = tmp_path / "my.yaml", tmp_path / "my.json"
    assert main(f"train {common} {judged} {quick} --output {preset} --record {report}".split()) == 0
    out = capsys.readouterr()
    assert "tuned - default" in out.out
    assert "queries: 22 to train on, 8 to validate, 10 to test" in out.err
    assert "warning: 8 validation queries, fewer than 100: " in out.err
    (record,) = read_records(report)
    params = record.outcome["study"]["params"]
    assert (params["train"]["epochs"], record.outcome["held out"]["topics"]) == (1, 10)
    open_index(data).search(data / "topics.tsv", "dense", None, hits=30, encoder=encoder).write(tmp_path / "run.txt")
    made = tmp_path / "labels.parquet"
    assert labels(f"{common} {judged} --run {tmp_path}/run.txt --preset {preset} --output {made}".split()) == 0
    written = SoftLabels.read(made).metadata
    assert written["rnn"] == params["rnn"]
    assert (written["labels"]["n_max"], written["labels"]["boost"]) == (5, params["labels"]["boost"])
    training = f"{common} --labels {made} --preset {preset} --output {tmp_path}/encoder --device cpu"
    assert train(training.split()) == 0
    trained = record_of(tmp_path / "encoder")["params"]
    assert trained == params["train"] | {"loss": "kl", "raise_positives": False}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arms": ["a:labels=evidence:boots=2"]}, "labels=evidence:boots=2: no setting boots, did you mean boost?"),
        ({"arms": ["a", "b"]}, "arms: 2 arms; expected one"),
        ({"model": "dual", "encoder": "minilm", "context": 60}, "model=dual: expected query"),
        ({"learning_rates": [1e-3]}, "learning_rates: the rate is searched"),
        ({"loss": "triplet:alpha=2"}, "loss=triplet:alpha=2: no setting alpha"),
        ({"trials": 0, "seeds": 0}, "trials=0: expected an integer >= 1"),
        ({"measures": "RR@10 nDCG@10"}, "expected one measure"),
        ({"device": "tpu"}, "device=tpu: torch has no device tpu"),
    ],
)
def test_what_a_request_cannot_be(given: dict[str, Any], message: str) -> None:
    with refusal_with(message):
        check_training(TuneTrainRequest(**{"index": "i", "topics": "t", "qrels": "q", **given}))
