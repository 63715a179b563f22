"""Labels and training tuned together, on a made-up encoder of two layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_encoder import WORDS, make_encoder

from rnnreranker import LabelParams, RnnParams, open_index
from rnnreranker.base.errors import InputError
from rnnreranker.base.record import read_records
from rnnreranker.encode.kinds import Encoder
from rnnreranker.lab.tune.request import TuneTrainRequest, check
from rnnreranker.lab.tune.space import Joint, Space
from rnnreranker.lab.tune.training import Trainings, tune_jointly
from rnnreranker.train.params import TrainParams

QUERIES, DOCUMENTS = 40, 60
FIXED = Joint(RnnParams(context=20, k=5), LabelParams(), TrainParams(batch_size=8, epochs=2.0, dropout=0.0, warmup=0.0))
SMALL = Space(
    {
        **{"k": {"low": 3, "high": 8}, "lam": {"low": 0.0, "high": 1.0}, "normalization": ["maxmin", "none"]},
        **{"boost": {"low": 1.0, "high": 5.0, "log": True}, "n_max": {"low": 3, "high": 15, "log": True}},
        "learning_rate": {"low": 1e-6, "high": 1e-2, "log": True},
    },
    FIXED,
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def data(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of vectors with docids, topics.tsv and qrels.txt: documents are texts that the tiny encoder encoded."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, size=6)) for _ in range(DOCUMENTS)]
    encoder = Encoder.load(str(tiny), pooling="mean")
    np.save(folder / "vectors.npy", encoder.encode(texts))
    (folder / "docid").write_text("".join(f"d{n}\n" for n in range(DOCUMENTS)))
    found = rng.integers(0, DOCUMENTS, size=QUERIES)
    lines = [f"q{n}\t{' '.join(rng.choice(texts[d].split(), size=3))}\n" for n, d in enumerate(found)]
    (folder / "topics.tsv").write_text("".join(lines))
    (folder / "qrels.txt").write_text("".join(f"q{n} 0 d{d} 1\n" for n, d in enumerate(found)))
    return folder


@pytest.fixture
def trainings(tiny: Path, data: Path, tmp_path: Path) -> Trainings:
    given = {"index": data, "topics": data / "topics.tsv", "qrels": data / "qrels.txt"}
    return Trainings(TuneTrainRequest(encoder=f"{tiny}:pooling=mean", hits=30, **given), tmp_path / "work")


@pytest.mark.slow
def test_the_search_keeps_the_default_and_goes_on_after_a_kill(trainings: Trainings, tmp_path: Path) -> None:
    whole = tune_jointly(trainings, SMALL, 5, seed=3)
    assert whole.history[0] == trainings.value(FIXED)
    assert whole.value == max(value for value in whole.history if value is not None)
    assert whole.value == trainings.value(whole.params)
    tune_jointly(trainings, SMALL, 2, seed=3, storage=tmp_path / "trials")
    next((tmp_path / "work").glob("*/trial.json")).unlink()  # as after a kill
    assert tune_jointly(trainings, SMALL, 5, seed=3, storage=tmp_path / "trials") == whole


def test_the_default_is_the_first_trial() -> None:
    whole = TuneTrainRequest(index="i", topics="t", qrels="q").searched
    [start] = whole.firsts(1)
    assert (start["boost"], start["n_max"], start["learning_rate"]) == (1.222, 4, 1e-5)
    assert whole.drawn(start) == whole.fixed
    assert Space({"boost": {"low": 2, "high": 5}}, whole.fixed).firsts(1) == []
    assert whole.within(50).ranges["context"] == {"low": 20, "high": 50}


@pytest.mark.slow
def test_the_command_writes_a_preset_that_the_other_commands_take(
    tiny: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rnnreranker.lab.tune.__main__ import main
    from rnnreranker.labels import SoftLabels
    from rnnreranker.labels.__main__ import main as labels
    from rnnreranker.train.__main__ import main as train

    common = ["--index", str(data), "--topics", str(data / "topics.tsv"), "--encoder", f"{tiny}:pooling=mean"]
    judged = ["--qrels", str(data / "qrels.txt")]
    quick = ["--trials", "2", "--final-seeds", "1", "--model", "query:epochs=1", "--hits", "30"]
    quick += ["--method", "evidence:context=20,n_max=5"]
    preset, report = tmp_path / "my.yaml", tmp_path / "my.json"
    files = ["--output", str(preset), "--record", str(report), "--plots", str(tmp_path / "plots"), "--ablations"]
    assert main(["train", *common, *judged, *quick, *files]) == 0
    out = capsys.readouterr()
    assert "tuned - default" in out.out
    assert "queries: 20 to train on, 10 to validate, 10 to test" in out.err
    assert "warning: 10 validation queries, fewer than 100: " in out.err
    (record,) = read_records(report)
    kept = record.outcome
    assert kept["study"]["params"]["train"]["epochs"] == 1
    assert kept["held out"]["topics"] == 10
    assert kept["sweeps"]["ablations"][0]["value"] == pytest.approx(kept["held out"]["tuned"])
    assert "no n_max" in out.out
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"ablations.svg"}
    asked = {"hits": 30, "encoder": f"{tiny}:pooling=mean"}
    open_index(data).search(data / "topics.tsv", "dense", None, **asked).write(tmp_path / "run.txt")  # type: ignore
    made = tmp_path / "labels.parquet"
    argv = [*common, *judged, "--run", str(tmp_path / "run.txt"), "--preset", str(preset), "--output", str(made)]
    assert labels(argv) == 0
    written = SoftLabels.read(made).metadata
    assert written["rnn"] == kept["study"]["params"]["rnn"]
    assert (written["labels"]["n_max"], written["labels"]["boost"]) == (5, kept["study"]["params"]["labels"]["boost"])
    argv = [*common, "--labels", str(made), "--preset", str(preset), "--output", str(tmp_path / "encoder")]
    assert train([*argv, "--device", "cpu"]) == 0
    params = json.loads((tmp_path / "encoder" / "training.json").read_text())["params"]
    assert params == kept["study"]["params"]["train"] | {"loss": "kl", "raise_positives": False}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "evidence:from=neighbours"}, "from: a study takes none"),
        ({"method": "evidence:boots=2"}, "method=evidence:boots=2: no setting boots, did you mean boost?"),
        ({"model": "dual"}, "model=dual: expected query"),
        ({"model": "query:validation_share=0.2"}, "validation_share: nothing reads it in a tuning"),
        ({"loss": "triplet:alpha=2"}, "loss=triplet:alpha=2: no setting alpha"),
        ({"encoder": "minilm:max_length=7"}, "max_length=7: expected normalize or pooling"),
        ({"test_share": 2.0, "final_seeds": 0}, "final_seeds=0: expected an integer >= 1"),
        ({"test_share": 0.5, "validation_share": 0.5}, "leave nothing to train on"),
        ({"test_topics": "x.tsv"}, "test_topics and test_qrels go together"),
        ({"method": "hard:boost=2"}, "method=hard:boost=2: hard has no parameters"),
        ({"measure": "RR@10 nDCG@10"}, "expected one measure"),
        ({"device": "tpu"}, "device=tpu: torch has no device tpu"),
    ],
)
def test_what_a_request_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check(TuneTrainRequest(index="i", topics="t", qrels="q", **given))
    assert message in str(caught.value)
