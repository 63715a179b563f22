"""Labels and training tuned together, on a made-up encoder of two layers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_encoder import WORDS, make_encoder

from rnnreranker import LabelParams, QueryVectors, RnnParams, open_vectors
from rnnreranker.base.errors import InputError
from rnnreranker.base.record import read_records
from rnnreranker.encode.dense.encoder import Encoder
from rnnreranker.index.opening import open_index
from rnnreranker.lab.tune import LeaveOutRequest, Space, tune_collections
from rnnreranker.lab.tune.joint.queries import load_trainings
from rnnreranker.lab.tune.joint.request import TuneTrainRequest, check
from rnnreranker.lab.tune.joint.space import NARROW_NAME, Joint, JointSpace, LabelSpace
from rnnreranker.lab.tune.joint.trial import Test as HeldOutQueries
from rnnreranker.lab.tune.joint.trial import Trainings, joint_ablations, on_test_queries, tune_jointly
from rnnreranker.lab.tune.preset import write_preset
from rnnreranker.lab.tune.space import Between
from rnnreranker.methods.retrieve.dense import dense_run
from rnnreranker.runs import Run
from rnnreranker.train.query.params import TrainParams, training_settings

QUERIES, DOCUMENTS = 40, 60
FIXED = Joint(RnnParams(context=20, k=5), LabelParams(), TrainParams(batch_size=8, epochs=2.0, dropout=0.0, warmup=0.0))
SMALL = JointSpace(
    Space({"k": Between(3, 8), "lam": Between(0.0, 1.0)}, FIXED.rnn),
    LabelSpace(
        {"normalization": ("maxmin", "none"), "boost": Between(1.0, 5.0, log=True), "n_max": Between(3, 15, log=True)},
        FIXED.labels,
    ),
    Space({"learning_rate": Between(1e-6, 1e-2, log=True)}, FIXED.train),
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


@pytest.fixture(scope="module")
def trainings(tiny: Path, data: Path) -> Trainings:
    topics = dict(line.split("\t") for line in (data / "topics.tsv").read_text().splitlines())
    qids = tuple(topics)
    vectors = Encoder.load(str(tiny), pooling="mean").encode(list(topics.values()))
    queries = QueryVectors(qids, vectors)
    source = open_vectors(data)
    run = dense_run(source, queries, 30, threads=1, batch_size=64)
    rows = [line.split() for line in (data / "qrels.txt").read_text().splitlines()]
    qrels = pd.DataFrame([(q, d, int(g)) for q, _, d, g in rows], columns=["query_id", "doc_id", "relevance"])
    parts = {"training": qids[:20], "validation": qids[20:30]}
    return Trainings(source, topics, queries, run, str(tiny), "mean", qrels=qrels, **parts)


@pytest.mark.slow
def test_the_search_keeps_the_default_and_goes_on_after_a_kill(trainings: Trainings, tmp_path: Path) -> None:
    whole = tune_jointly(trainings, SMALL, 5, seed=3)
    assert whole.history[0] == trainings.value(FIXED)
    assert whole.value == max(value for value in whole.history if value is not None)
    assert whole.value == trainings.value(whole.params)
    journal = tmp_path / "trials"
    tune_jointly(trainings, SMALL, 2, seed=3, storage=journal)
    assert tune_jointly(trainings, SMALL, 5, seed=3, storage=journal) == whole
    with pytest.raises(InputError, match="trials of another seed"):
        tune_jointly(trainings, SMALL, 5, seed=4, storage=journal)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"method": "hard"}, "method"),
        ({"relevant": 2}, "relevant"),
        ({"encoder": "other"}, "encoder"),
        ({"training": ("q0", "q1")}, "training queries"),
        ({"validation": ("q30",)}, "validation queries"),
        ({"normalize": True}, "normalize"),
    ],
)
def test_a_journal_is_not_gone_on_from_with_other_trainings(
    trainings: Trainings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], named: str
) -> None:
    monkeypatch.setattr(Trainings, "value", lambda self, joint, report=None: joint.rnn.lam)
    found = tune_jointly(trainings, SMALL, 2, storage=tmp_path / "trials")
    assert tune_jointly(trainings, SMALL, 2, storage=tmp_path / "trials") == found
    with pytest.raises(InputError, match=rf"trials of another {named} \(.*\); give another storage"):
        tune_jointly(dataclasses.replace(trainings, **change), SMALL, 2, storage=tmp_path / "trials")


@pytest.mark.usefixtures("as_command")
def test_a_loss_that_is_not_finite_leaves_the_trial_out(
    trainings: Trainings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rnnreranker.train.losses.base import Loss

    monkeypatch.setattr(Loss, "__call__", lambda *_: torch.tensor(float("nan"), requires_grad=True))
    with pytest.raises(InputError, match="none of 1 trials could be computed"):
        tune_jointly(trainings, SMALL, 1)
    assert "trial 0 left out: step 0: the loss is nan; try a lower --learning-rate" in capsys.readouterr().err
    lost = dataclasses.replace(trainings, topics={})
    with pytest.raises(InputError, match="labelled queries have no text"):
        tune_jointly(lost, SMALL, 1)


@pytest.mark.long
def test_a_trial_is_told_of_every_validation_and_can_be_ended(trainings: Trainings) -> None:
    told: list[tuple[int, float]] = []
    value = trainings.value(FIXED, lambda step, found: told.append((step, found)))
    assert [step for step, _ in told] == [0, 1]  # one an epoch
    assert value >= max(found for _, found in told)  # the encoder as it is counts too

    class Enough(Exception):
        pass

    def end(step: int, found: float) -> None:
        raise Enough

    with pytest.raises(Enough):
        trainings.value(FIXED, end)
    lossy = dataclasses.replace(FIXED, train=dataclasses.replace(FIXED.train, key_measure="loss"))
    assert trainings.value(lossy) < 0


class Drawn:
    """A trial that takes the highest value of every range."""

    def __init__(self) -> None:
        self.ranges: dict[str, Any] = {}

    def suggest_categorical(self, name: str, words: list[Any]) -> Any:
        self.ranges[name] = words
        return words[-1]

    def suggest_float(self, name: str, low: float, high: float, log: bool = False) -> float:
        self.ranges[name] = (low, high)
        return high

    suggest_int = suggest_float


def test_the_boost_has_a_narrow_range_where_values_are_close() -> None:
    drawn = Drawn()
    joint = JointSpace().suggest(drawn)  # type: ignore[arg-type]
    assert (joint.labels.normalization, joint.labels.boost, joint.labels.n_max) == ("none", 1.25, 300)
    assert drawn.ranges[NARROW_NAME] == (1.0, 1.25)
    assert "boost" not in drawn.ranges
    wide = JointSpace(labels=LabelSpace({"boost": Between(1.0, 5.0)}, LabelParams()))
    assert wide.suggest(Drawn()).labels.boost == 5.0  # type: ignore[arg-type]
    start = JointSpace().as_trial(Joint())
    assert start is not None
    assert (start["boost"], start["n_max"], start["learning_rate"]) == (1.222, 4, 1e-5)
    close = LabelSpace({"boost": Between(1.0, 5.0)}, LabelParams())
    assert close.as_trial(LabelParams(normalization="none", boost=1.1)) == {NARROW_NAME: 1.1}
    assert close.as_trial(LabelParams(normalization="none", boost=1.3)) is None
    assert JointSpace().within(50).rnn.ranges["context"] == Between(20, 50)


@pytest.mark.long
def test_the_test_compares_encoders_over_the_whole_index(trainings: Trainings, tmp_path: Path) -> None:
    study = tune_jointly(trainings, SMALL, 2, seed=0)
    qids = trainings.queries.qids[30:]
    test = HeldOutQueries({qid: trainings.topics[qid] for qid in qids}, trainings.qrels, "RR@10")
    base = QueryVectors(qids, trainings.queries.vectors[30:])
    still = dataclasses.replace(FIXED, train=dataclasses.replace(FIXED.train, learning_rate=1e-12))
    found = on_test_queries(trainings, study, still, test, base, (0, 1))
    assert found.default == pytest.approx(found.base)  # a training that does not move
    assert found.base > 0.1
    assert found.topics == 10
    assert found.low <= found.gain <= found.high
    run = trainings.source.fetch(np.arange(DOCUMENTS)) @ base.vectors.T
    positives = [int(docid[1:]) for docid in trainings.qrels["doc_id"].tolist()[30:]]
    places = [int((run[:, n] > run[row, n]).sum()) + 1 for n, row in enumerate(positives)]
    assert found.base == pytest.approx(np.mean([1 / place if place <= 10 else 0 for place in places]))
    write_preset(tmp_path / "my.yaml", study.params.sections(), study, found, {"index": "made up"})
    assert RnnParams.from_yaml(tmp_path / "my.yaml") == study.params.rnn
    assert LabelParams.from_yaml(tmp_path / "my.yaml") == study.params.labels
    assert TrainParams.from_yaml(tmp_path / "my.yaml") == study.params.train
    assert f"default {found.default:.4f}" in (tmp_path / "my.yaml").read_text()


def test_as_many_documents_are_retrieved_as_the_measure_looks_at(tmp_path: Path) -> None:
    """Of 300 documents the only relevant one is the 150th."""
    np.save(tmp_path / "vectors.npy", np.array([[1.0, -n / 300] for n in range(300)], dtype=np.float32))
    (tmp_path / "docid").write_text("".join(f"d{n}\n" for n in range(1, 301)))
    qrels = pd.DataFrame([("q", "d150", 1)], columns=["query_id", "doc_id", "relevance"])
    query = QueryVectors(("q",), np.ones((1, 2), dtype=np.float32))
    expected = {"R@100": 0.0, "R@150": 1.0, "R@1000": 1.0, "AP": 1 / 150, "RR@10": 0.0}
    for measure, value in expected.items():
        test = HeldOutQueries({"q": "text"}, qrels, measure)
        assert test.values(open_vectors(tmp_path), query).tolist() == pytest.approx([value])
    assert HeldOutQueries({}, qrels, "nDCG@10").hits == 100


def test_the_relevant_grade_is_that_of_all_judgements(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32))
    (tmp_path / "docid").write_text("a\nb\n")
    qrels = pd.DataFrame([("q", "a", 1), ("other", "b", 2)], columns=["query_id", "doc_id", "relevance"])
    query = QueryVectors(("q",), np.array([[1.0, 0.0]], dtype=np.float32))
    for protocol, value in (("dl", 0.0), ("strict", 0.0), ("trec", 1.0)):
        test = HeldOutQueries({"q": "text"}, qrels, "RR", protocol)
        assert test.values(open_vectors(tmp_path), query).tolist() == [value]


def test_ablations_leave_one_part_out(trainings: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Joint] = []

    def trained(self: HeldOutQueries, _: Trainings, joint: Joint, seeds: tuple[int, ...]) -> np.ndarray:
        seen.append(joint)
        return np.array([0.5, 0.25]) if joint.labels.n_max is None else np.array([0.5, 0.75])

    monkeypatch.setattr(HeldOutQueries, "trained", trained)
    test = HeldOutQueries({}, trainings.qrels, "RR@10")
    rows = {row["what"]: row for row in joint_ablations(trainings, FIXED, test, (0,))}
    assert rows["no n_max"]["difference"] == -0.25
    assert rows["no boost (b 1)"]["difference"] == 0
    assert [joint.labels.boost for joint in seen if joint.labels.boost != FIXED.labels.boost] == [1.0]
    assert {joint.rnn.lam for joint in seen} == {0.0, 0.6, 1.0}
    assert {joint.rnn.k_exp for joint in seen} == {1, FIXED.rnn.k_exp}
    assert {joint.rnn.tau for joint in seen} == {0.0, 0.5}
    assert {joint.rnn.weight for joint in seen} == {"linear", "binary"}
    for joint in seen[1:]:  # one change each
        before, after = FIXED.to_dict(), joint.to_dict()
        assert sum(before[part][name] != after[part][name] for part in before for name in before[part]) == 1


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
    assert "20 training queries, 10 for validation, 10 for the test" in out.err
    assert "warning: 10 validation queries, fewer than 100: " in out.err
    (record,) = read_records(report)
    assert record.commands[0]["command"].startswith("python -m rnnreranker.tune train --index ")
    kept = record.outcome
    assert kept["study"]["params"]["train"]["epochs"] == 1
    assert kept["held out"]["topics"] == 10
    assert kept["ablations"][0]["value"] == pytest.approx(kept["held out"]["tuned"])
    assert "no n_max" in out.out
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"ablations.svg", "trials.svg"}
    vectors = Encoder.load(str(tiny), pooling="mean").encode(
        [line.split("\t")[1] for line in (data / "topics.tsv").read_text().splitlines()]
    )
    run = dense_run(
        open_vectors(data), QueryVectors(tuple(f"q{n}" for n in range(QUERIES)), vectors), 30, threads=1, batch_size=64
    )
    run.write(tmp_path / "run.txt")
    made = tmp_path / "labels.parquet"
    argv = [*common, *judged, "--run", str(tmp_path / "run.txt"), "--preset", str(preset), "--output", str(made)]
    assert labels(argv) == 0
    written = SoftLabels.read(made).metadata
    assert written["rnn"] == kept["study"]["params"]["rnn"]
    assert written["labels"]["n_max"] == 5
    assert written["labels"]["boost"] == kept["study"]["params"]["labels"]["boost"]
    argv = [*common, "--labels", str(made), "--preset", str(preset), "--output", str(tmp_path / "encoder")]
    assert train([*argv, "--device", "cpu"]) == 0
    params = json.loads((tmp_path / "encoder" / "training.json").read_text())["params"]
    assert params == kept["study"]["params"]["train"] | {"raise_positives": False}  # a setting of the loss


@pytest.mark.parametrize(
    ("typed", "pooling", "normalize"),
    [
        ("", "cls", True),
        (":pooling=mean", "mean", True),
        ("TINY:pooling=cls", "cls", None),
        ("TINY:pooling=cls,normalize=true", "cls", True),
    ],
)
@pytest.mark.long
def test_encoders_are_trained_with_the_settings_that_the_index_names(
    tiny: Path, data: Path, tmp_path: Path, typed: str, pooling: str, normalize: bool | None
) -> None:
    from rnnreranker.index.__main__ import main as index

    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(f'{{"id": "d{n}", "text": "{WORDS[n % 40]}"}}\n' for n in range(DOCUMENTS)))
    argv = ["--documents", str(corpus), "--encoder", f"{tiny}:pooling=cls,normalize=true"]
    assert index([*argv, "--output", str(tmp_path / "index")]) == 0
    request = TuneTrainRequest(
        index=tmp_path / "index",
        topics=data / "topics.tsv",
        qrels=data / "qrels.txt",
        encoder=typed.replace("TINY", str(tiny)) if typed else None,
    )
    found, test, base = load_trainings(request)
    assert (found.encoder, found.pooling, found.normalize) == (str(tiny), pooling, normalize)
    still = dataclasses.replace(FIXED, train=dataclasses.replace(FIXED.train, learning_rate=1e-12, epochs=1))
    found.train(still, tmp_path / "out")
    vectors = Encoder.load(str(tmp_path / "out")).encode(list(test.topics.values()))
    np.testing.assert_allclose(vectors, base.vectors, atol=1e-5)  # base and trained encoder differ in weights alone


def test_a_data_set_in_memory_is_the_one_of_its_files(
    tiny: Path, data: Path, trainings: Trainings, tmp_path: Path
) -> None:
    trainings.run.write(tmp_path / "run.txt")
    given: dict[str, Any] = {"encoder": f"{tiny}:pooling=mean", "hits": 30}
    files = {"index": data, "topics": data / "topics.tsv", "qrels": data / "qrels.txt", "run": tmp_path / "run.txt"}
    topics = dict(line.split("\t") for line in (data / "topics.tsv").read_text().splitlines())
    judged = trainings.qrels.itertuples(index=False)
    qrels = {qid: {docid: grade} for qid, docid, grade in judged}
    memory = {"index": open_index(data), "topics": topics, "qrels": qrels, "run": Run.read(tmp_path / "run.txt")}
    ours, theirs = (load_trainings(TuneTrainRequest(**given, **one)) for one in (files, memory))
    assert ours[0].about() == theirs[0].about()
    assert ours[1].topics == theirs[1].topics
    np.testing.assert_array_equal(ours[2].vectors, theirs[2].vectors)


def test_collections_in_memory_give_what_their_files_give(
    tiny: Path, data: Path, trainings: Trainings, tmp_path: Path
) -> None:
    halves = [dict(list(trainings.topics.items())[n::2]) for n in (0, 1)]
    cells = {"a": {"index": open_index(data)}, "b": {"index": data, "protocol": "binary"}}
    lines = []
    for (name, cell), half in zip(cells.items(), halves, strict=True):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in half.items()))
        cell |= {"topics": half, "qrels": trainings.qrels}
        protocol = ", protocol: binary" if "protocol" in cell else ""
        lines.append(f"{name}: {{index: {data}, topics: {tmp_path}/{name}.tsv, qrels: {data}/qrels.txt{protocol}}}\n")
    (tmp_path / "cells.yaml").write_text("".join(lines))
    asked: dict[str, Any] = {"encoder": f"{tiny}:pooling=mean", "trials": 3, "hits": 30, "rerank": "rnn:k=4"}
    files, memory = (
        tune_collections(LeaveOutRequest(collections=collections, **asked))
        for collections in (tmp_path / "cells.yaml", cells)
    )
    assert files.to_dict() == memory.to_dict()
    assert files.runs == memory.runs
    assert {params.k for params in files.search.settings} == {4}
    assert [cell.name for cell in files.search.cells] == ["a", "b"]


def test_what_the_command_cannot_do_is_said(data: Path, tmp_path: Path) -> None:
    from rnnreranker.lab.tune.__main__ import main

    common = ["train", "--index", str(data), "--topics", str(data / "topics.tsv"), "--qrels", str(data / "qrels.txt")]
    with pytest.raises(InputError, match="leave nothing to train on"):
        main([*common, "--validation-share", "0.5", "--test-share", "0.5"])
    with pytest.raises(InputError, match="--test-topics and --test-qrels go together"):
        main([*common, "--test-topics", "x.tsv"])
    again = ["--encoder", "minilm", "--test-topics", str(data / "topics.tsv"), "--test-qrels", str(data / "qrels.txt")]
    with pytest.raises(InputError, match="40 query ids in both the training and the test topics"):
        main([*common, *again])
    with pytest.raises(InputError, match="--method hard:boost=2: hard has no parameters"):
        main([*common, "--method", "hard:boost=2"])
    with pytest.raises(InputError, match="expected one measure"):
        main([*common, "--measure", "RR@10 nDCG@10"])


def test_written_forms_hold_settings_still() -> None:
    request = TuneTrainRequest(
        index="i",
        topics="t",
        qrels="q",
        method={"joint": {"k": 4, "positive_weight": 0.75, "boost": 2}},
        model="query:epochs=1,learn_temperature=false",
        loss="triplet:margin=0.3",
    )
    space, usual = request.searched, JointSpace()
    assert set(usual.ranges) - set(space.ranges) == {"k", "boost", "epochs"}
    assert space.fixed.rnn == dataclasses.replace(RnnParams.preset("vectors"), k=4)
    assert space.fixed.labels == LabelParams(boost=2.0)
    assert space.fixed.train == TrainParams(epochs=1.0, learn_temperature=False, loss="triplet")
    assert space.fixed.loss == {"margin": 0.3}
    assert request.of_method == {"positive_weight": 0.75}
    hard = TuneTrainRequest(index="i", topics="t", qrels="q", method="hard", preset="tas-b").searched
    assert set(hard.ranges) == set(usual.train.ranges)
    assert hard.fixed.rnn == RnnParams.preset("tas-b")


def test_settings_of_the_method_reach_the_labels(trainings: Trainings, tmp_path: Path) -> None:
    """They are held, and named in a journal; a method without such has the name that journals had."""
    made = []
    for weight in (0.0, 1.0):
        joint = dataclasses.replace(trainings, method="joint", of_method={"positive_weight": weight})
        assert joint.about()["method"] == f"joint:positive_weight={weight}"
        made.append(joint._params(FIXED.rnn))
    assert [params.to_dict()["positive_weight"] for params in made] == [0.0, 1.0]
    assert {params.to_dict()["k"] for params in made} == {FIXED.rnn.k}
    assert trainings.about()["method"] == "evidence"
    assert trainings._params(FIXED.rnn) == FIXED.rnn


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "evidence:from=neighbours"}, "method=evidence:from=neighbours: from=neighbours: not in tuning"),
        ({"method": "evidence:boots=2"}, "method=evidence:boots=2: no setting boots, did you mean boost?"),
        ({"model": "dual"}, "model=dual: expected query"),
        ({"model": "query:validation_share=0.2"}, "validation_share: which queries validate is said beside the model"),
        ({"loss": "triplet:alpha=2"}, "loss=triplet:alpha=2: no setting alpha"),
        ({"encoder": "minilm:max_length=7"}, "encoder: max_length: expected pooling or normalize"),
        ({"test_share": 2.0, "final_seeds": 0}, "final_seeds=0: expected 1 or more"),
        ({"device": "tpu"}, "device=tpu: no name of a device"),
    ],
)
def test_what_a_request_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check(TuneTrainRequest(index="i", topics="t", qrels="q", **given))
    assert message in str(caught.value)


def test_a_flag_that_is_gone_says_the_written_form(capsys: pytest.CaptureFixture[str]) -> None:
    from rnnreranker.lab.tune.__main__ import main

    common = ["train", "--index", "i", "--topics", "t", "--qrels", "q"]
    for flag, said in (
        ("--k-exp", "evidence: --method evidence:k_exp=VALUE"),
        ("--n-max", "--method: --method evidence:n_max=VALUE"),
        ("--epochs", "query: --model query:epochs=VALUE"),
        ("--alpha", "distance: --loss distance:alpha=VALUE"),
        ("--pooling", "--encoder: --encoder NAME:pooling=VALUE"),
    ):
        with pytest.raises(SystemExit):
            main([*common, flag, "1"])
        assert f"error: {flag} is a setting of {said}" in capsys.readouterr().err


def test_the_help_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    from rnnreranker.lab.tune.joint.__main__ import make_parser

    monkeypatch.setenv("COLUMNS", "100")
    shown = make_parser().format_help()
    assert shown.count("\n") <= 60
    assert "--method joint:context=40,n_max=8 --model query:epochs=3,batch_size=16 --loss listnet" in shown


def test_a_search_starts_from_a_published_preset_or_a_file(tmp_path: Path) -> None:
    def start(preset: str) -> Joint:
        return TuneTrainRequest(index="i", topics="t", qrels="q", preset=preset).searched.fixed

    assert start("tas-b") == Joint(RnnParams.preset("tas-b"))
    (tmp_path / "my.yaml").write_text("rnn: {k: 4}\nlabels: {boost: 2.0}\n")
    of_file = dataclasses.replace(RnnParams.preset("vectors"), k=4)
    assert start(str(tmp_path / "my.yaml")) == Joint(of_file, LabelParams(boost=2.0), loss={"raise_positives": False})
    with pytest.raises(InputError, match="preset tasb: not known"):
        start("tasb")


@pytest.mark.parametrize(
    "content",
    [
        "train: {loss: triplet, margin: 0.3, epochs: 2}\n",  # as files were written before
        "train: {loss: {triplet: {margin: 0.3}}, epochs: 2}\n",
        "train: {loss: triplet:margin=0.3, epochs: 2}\n",
    ],
)
def test_a_file_says_the_loss_in_its_written_form(tmp_path: Path, content: str) -> None:
    (tmp_path / "my.yaml").write_text(content)
    expected = dataclasses.replace(TrainParams(), loss="triplet", epochs=2.0)
    assert TrainParams.from_yaml(tmp_path / "my.yaml") == expected
    params, loss = training_settings({}, str(tmp_path / "my.yaml"))
    assert (params, loss.to_dict()) == (expected, {"margin": 0.3})
    joint = Joint(train=params, loss=loss.to_dict())
    assert joint.sections()["train"] == {**expected.to_dict(), "loss": {"triplet": {"margin": 0.3}}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("train: {loss: {triplet: {margn: 1}}}\n", "mine.yaml: train: loss triplet: no setting margn, did you mean"),
        ("train: {loss: triplet:margin=1, margin: 2}\n", "mine.yaml: train: loss triplet: margin twice; give it once"),
        ("train: {loss: {triplet: {}, kl: {}}}\n", "mine.yaml: train: {'triplet': {}, 'kl': {}}: expected one name"),
        ("train: {loss: tripled}\n", "mine.yaml: train: loss='tripled': expected one of bce"),
    ],
)
def test_a_file_whose_loss_cannot_be_read(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mine.yaml").write_text(content)
    with pytest.raises(InputError) as caught:
        TrainParams.from_yaml(tmp_path / "mine.yaml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("rnn: {k: 3}\nboost: 2\n", "boost beside sections; expected only rnn, labels, train"),
        ("labels: {bost: 2}\n", "labels: unknown key bost, did you mean boost?"),
        ("labels: [1]\n", "labels: expected a mapping of settings to values"),
        ("labels: {boost: 0.5}\n", "labels: boost=0.5: expected a finite number >= 1"),
    ],
)
def test_bad_sections_of_a_preset(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        LabelParams.from_yaml(file)
    assert message in str(caught.value)


def test_numbers_as_people_write_them(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("train: {learning_rate: 1e-5, dropout: none}\n")
    assert TrainParams.from_yaml(file) == TrainParams()
    assert RnnParams.from_yaml(file) == RnnParams()
