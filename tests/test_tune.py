"""Tuning: the objective against the reranker, spaces, studies that go on after a kill, values on unseen topics."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from query_sets import write_index, write_judged, write_queries
from refusals import refusal, refusal_with

from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run, open_vectors
from rnnreranker.base.errors import DataWarning, ParameterError
from rnnreranker.base.record import read_records
from rnnreranker.evaluate import evaluate
from rnnreranker.index.opening import open_index
from rnnreranker.lab.tune import TuneRequest, tune_reranker
from rnnreranker.lab.tune.collections import RULES, leave_one_out
from rnnreranker.lab.tune.request import Space
from rnnreranker.lab.tune.reranking import Objective, cross_validate, tune
from rnnreranker.lab.tune.trials import search
from rnnreranker.tune import main

TOPICS, DOCUMENTS, DIMENSION = 12, 40, 6


class QuerySet:
    """Made-up documents in clusters; a topic's relevant documents are those of its cluster."""

    def __init__(self, folder: Path, seed: int = 4) -> None:
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(4, DIMENSION)) * 1.5
        vectors = (centres[np.arange(DOCUMENTS) % 4] + rng.normal(size=(DOCUMENTS, DIMENSION))).astype(np.float32)
        queries = (centres[np.arange(TOPICS) % 4] + rng.normal(size=(TOPICS, DIMENSION)) * 1.5).astype(np.float32)
        docids = [f"d{number:02d}" for number in range(DOCUMENTS)]
        self.folder = write_index(folder, vectors, docids)
        self.qids = tuple(f"q{number:02d}" for number in range(TOPICS))
        self.vectors, self.queries = open_vectors(folder), QueryVectors(self.qids, queries)
        scores = queries.astype(np.float64) @ vectors.astype(np.float64).T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :25]
        self.run = Run.from_dict(
            {
                qid: {docids[one]: row[one] for one in best}
                for qid, row, best in zip(self.qids, scores, order, strict=True)
            }
        )
        rows = [(q, d, int(j % 4 == i % 4)) for i, q in enumerate(self.qids) for j, d in enumerate(docids)]
        self.qrels = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])

    def given(self, hits: int = 20) -> dict[str, Any]:
        """The query set as arguments of a request."""
        given = {"topics": dict.fromkeys(self.qids, "text"), "qrels": self.qrels, "run": self.run, "hits": hits}
        return given | {"index": self.folder, "encoded_queries": self.queries, "protocol": "binary"}

    def objective(self, hits: int = 20, **others: Any) -> Objective:
        return Objective.read(TuneRequest(**{**self.given(hits), **others}), open_index(self.folder))


@pytest.fixture(scope="module")
def made(module_path: Path) -> QuerySet:
    return QuerySet(module_path / "index")


K, LAM = {"low": 2, "high": 8}, {"low": 0.0, "high": 1.0}
SMALL = Space({"k": K, "lam": LAM, "scale": ["minmax", "none"]}, RnnParams(context=20))


@pytest.mark.parametrize(("protocol", "mean"), [("dl", 1 / 6), ("strict", 1 / 6), ("trec", 2 / 3)])
def test_the_relevant_grade_is_that_of_all_judgements_not_of_a_fold(made: QuerySet, protocol: str, mean: float) -> None:
    """NIST's rule, which 000 follows (A.2: level 1 "treated just like a level of 0"), is one for a whole collection."""
    judged = zip(made.qids[:3], (1, 0, 1), (2, 1, 1), strict=True)
    rows = [(qid, made.run.ranked(qid)[place], grade) for qid, place, grade in judged]
    qrels = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
    objective = made.objective(25, qrels=qrels, measure="RR", protocol=protocol)
    assert evaluate(made.run, qrels, "RR", protocol).mean("RR") == pytest.approx(mean)
    assert objective.values(None).mean() == pytest.approx(mean)
    held_out = cross_validate(objective, SMALL, 2, folds=3)  # two folds have no grade of 2
    assert held_out["base"] == pytest.approx(mean)
    whole = RnnReranker(made.vectors, SMALL.fixed).rerank(made.run, made.queries)
    assert held_out["default"] == pytest.approx(evaluate(whole, qrels, "RR", protocol).mean("RR"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lamda: [0.5]", "no setting lamda, did you mean lam"),
        ("k: 3", r"k: 3; expected \{low: …, high: …\}"),
        ("k: {low: 3, high: 2}", "search space: k: .*low=3"),
    ],
)
def test_a_space_says_what_it_cannot_hold(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "space.yaml"
    file.write_text("lam: {low: 0.001, high: 1, log: true}\nnormalize: [none, max]\n")
    space = Space.of(file, RnnParams())
    assert space.ranges == {"lam": {"low": 0.001, "high": 1.0, "log": True}, "normalize": [None, "max"]}
    file.write_text(text)
    with refusal(said):
        _ = Space.of(file, RnnParams()).distributions


@pytest.mark.parametrize("preset", sorted(RnnParams.presets))
def test_a_search_begins_with_every_preset(preset: str) -> None:
    """Of most of them one of the three weights is above 0, which the default space varies."""
    space = TuneRequest(index="i", topics="t", qrels="q", rerank={"rnn": {"preset": preset}}).searched
    assert space.fixed == RnnParams.preset(preset)
    assert set(space.ranges) == set(Space().ranges)
    assert None not in search(_toy, space, 3, seed=0).history


@pytest.mark.usefixtures("as_command")
def test_a_small_space_is_tried_whole_but_for_what_cannot_be_computed(capsys: pytest.CaptureFixture[str]) -> None:
    weights = {key: [0.0, 1.0] for key in ("rank_weight", "run_weight", "query_weight")}
    found = search(_toy, Space(weights), 8)
    assert (len(set(found.tried)), found.tried[0], found.history.count(None)) == (
        8,
        RnnParams(),
        1,
    )  # not three weights of 0
    assert len(search(_toy, Space(weights), 4).history) == 4
    with refusal("none of 3 trials could be computed"):
        search(_toy, Space({key: [0.0] for key in weights}), 3)

    def refuses(params: RnnParams) -> float:
        if params.scale == "none":
            raise ParameterError("the exponential weight would overflow")
        return _toy(params)

    assert search(refuses, SMALL, 20, seed=0).params.scale == "minmax"
    assert "left out: the exponential weight would overflow" in capsys.readouterr().err


def _toy(params: RnnParams) -> float:
    return -((params.k - 6) ** 2) - (params.lam - 0.4) ** 2 + (params.scale == "minmax")


def test_a_search_finds_the_best_and_begins_with_the_default() -> None:
    found = search(_toy, SMALL, 60, seed=1)
    assert (found.params.k, found.params.scale, found.params.lam) == (6, "minmax", pytest.approx(0.4, abs=0.15))
    assert found.value == max(value for value in found.history if value is not None)
    inside = dataclasses.replace(SMALL.fixed, k=5)
    assert search(_toy, Space(SMALL.ranges, inside), 1, seed=1).params == inside


@pytest.mark.long
def test_a_killed_study_goes_on_to_the_same_trials_and_others_do_not(tmp_path: Path) -> None:
    whole = search(_toy, SMALL, 30, seed=3, storage=tmp_path / "whole.db")
    calls = 0

    def dies(params: RnnParams) -> float:
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return _toy(params)

    parts = tmp_path / "parts.db"
    with pytest.raises(KeyboardInterrupt):
        search(dies, SMALL, 30, seed=3, storage=parts)
    assert search(_toy, SMALL, 30, seed=3, storage=parts) == whole
    assert search(lambda params: -_toy(params), SMALL, 30, seed=3, storage=parts, about="other") != whole
    assert search(_toy, SMALL, 30, seed=4, storage=parts) == search(_toy, SMALL, 30, seed=4) != whole
    (tmp_path / "text").write_text("no trials\n")
    with refusal(r"text: cannot be used as a storage of trials \(.*\); give another storage"):
        search(_toy, SMALL, 30, seed=3, storage=tmp_path / "text")


@pytest.mark.parametrize("killed", [0, 1, 2])
def test_a_killed_search_of_a_small_space_goes_on_in_the_same_order(tmp_path: Path, killed: int) -> None:
    """As the cells of `leave_one_out` need it; then a search of fewer trials goes on to all of the space."""
    space, calls = Space({"k": [5, 10, 20]}, RnnParams(k=20)), iter(range(9))

    def dies(params: RnnParams) -> float:
        if next(calls) == killed:
            raise KeyboardInterrupt
        return _toy(params)

    with pytest.raises(KeyboardInterrupt):
        search(dies, space, 9, storage=tmp_path / "trials")
    again = search(_toy, space, 9, storage=tmp_path / "trials")
    assert again == search(_toy, space, 9)
    assert [one.k for one in again.tried] == [20, 5, 10]
    search(_toy, space, 2, storage=tmp_path / "few")
    assert {one.k for one in search(_toy, space, 9, storage=tmp_path / "few").tried} == {5, 10, 20}


def test_what_trials_depend_on(made: QuerySet) -> None:
    """A storage keeps the trials of each of these apart."""
    objective = made.objective()
    assert objective.about == made.objective(qrels=made.qrels.sample(frac=1, random_state=0)).about
    others = [made.objective(measure="RR@10"), made.objective(12), made.objective(qrels=made.qrels.iloc[:-1])]
    assert len({one.about for one in (objective, *others, objective.part(np.arange(TOPICS) > 0))}) == 5


@pytest.mark.long
def test_held_out_values_come_from_topics_not_searched(made: QuerySet) -> None:
    objective = made.objective()
    held_out = cross_validate(objective, SMALL, 8, folds=3, seed=0)
    by_hand, folds = [], objective.folds(3)
    assert sorted(qid for _, test in folds for qid in test.run) == sorted(made.qids)
    for (train, test), fold in zip(folds, held_out["folds"], strict=True):
        assert not {*train.run} & {*test.run}
        study = tune(train, SMALL, 8, "train", seed=0)
        assert fold["params"] == study.params.to_dict()
        by_hand.append(test.values(study.params))
    assert held_out["tuned"] == pytest.approx(np.concatenate(by_hand).mean())
    assert held_out["low"] <= held_out["tuned"] - held_out["default"] <= held_out["high"]


@pytest.mark.long
def test_leaving_one_collection_out(made: QuerySet, tmp_path: Path) -> None:
    """All cells of a collection are left out together, and the rule chooses from those of the others."""
    other = QuerySet(tmp_path / "index", seed=5)
    sets = {"a1": (made, 20, "a"), "a2": (made, 12, "a"), "b": (other, 15, "b"), "c": (made, 10, "c")}
    cells = {name: of.given(hits) | {"collection": collection} for name, (of, hits, collection) in sets.items()}
    space = {"k": {"low": 2, "high": 12}, "lam": LAM}
    request = TuneRequest(collections=cells, space=space, trials=6, seed=2, rerank="rnn:context=20")
    found, prints = leave_one_out(request)
    settings = [RnnParams(**{**found["default"], **one}) for one in found["tried"]]
    assert settings[0] == RnnParams(context=20)
    assert len({*settings}) == 6
    for cell in found["cells"]:
        of, hits, collection = sets[cell["name"]]
        others = [name for name, (*_, one) in sets.items() if one != collection]
        assert cell["setting"] == int(RULES["capped"](np.array([found["gains"][name] for name in others]).T).argmax())
        objective = of.objective(hits)
        gains = [(objective.values(one) - objective.values(None)).mean() for one in settings]
        assert found["gains"][cell["name"]] == pytest.approx(gains, abs=1e-6)
        assert (cell["default"], cell["chosen"]) == pytest.approx((gains[0], gains[cell["setting"]]))
        assert prints[cell["name"]] == objective.fingerprint
    for rule, worth in RULES.items():
        values = worth(np.array(list(found["gains"].values())).T)
        assert found["best"][rule] == int(values.argmax())
        assert rule != "capped" or found["place"] == 1 + sum(values > values[0])
    with refusal("1 collection: expected two or more"):
        leave_one_out(dataclasses.replace(request, collections={name: cells[name] for name in ("a1", "a2")}))


def test_settings_that_one_cell_cannot_compute_are_left_out_in_all(made: QuerySet, tmp_path: Path) -> None:
    rows = made.vectors.fetch(np.arange(DOCUMENTS))
    short = write_index(tmp_path / "index", rows / 4, [f"d{number:02d}" for number in range(DOCUMENTS)])
    encoded = QueryVectors(made.qids, made.queries.vectors / 4)
    cells = {"a": made.given() | {"index": short, "encoded_queries": encoded}, "b": made.given()}
    space = {"weight": ["linear", "exp"], "scale": ["minmax", "none"]}
    request = TuneRequest(collections=cells, space=space, trials=4)
    found, _ = leave_one_out(request)
    assert found["tried"] == [{}, {"scale": "none"}, {"weight": "exp"}]  # exp without minmax overflows in b
    values = [made.objective().values(RnnParams(**{**found["default"], **one})).mean() for one in found["tried"]]
    assert found["gains"]["b"] == pytest.approx(np.array(values) - made.objective().values(None).mean(), abs=1e-6)
    with refusal("the default cannot be computed in every cell; give another rerank"):
        leave_one_out(dataclasses.replace(request, rerank="rnn:weight=exp,preset=tas-b"))


def test_the_command_and_python_do_the_same(made: QuerySet, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From files, and with objects in memory in their place."""
    (tmp_path / "space.yaml").write_text("k: {low: 2, high: 8}\ntau: [0.0, 0.5]\nscale: [minmax, none]\n")
    queries = write_queries(tmp_path / "queries.npy", made.qids, made.queries.vectors)
    flags = write_judged(tmp_path, dict.fromkeys(made.qids, "text"), made.qrels.itertuples(index=False))
    flags += f"--index {made.folder} --encoded-queries {queries} --protocol binary --rerank rnn:tau=0.25".split()
    flags += f"--space {tmp_path}/space.yaml --k-exp 2 --trials 3 --folds 2".split()
    flags += f"--output {tmp_path}/shell.yaml --record {tmp_path}/my.json".split()
    assert main([*flags, "--sweep", "context,ablations"]) == 0
    printed = capsys.readouterr()
    assert "warning: 12 topics, fewer than 50: " in printed.err
    with refusal("--output is what trials of one query set choose: not with --collections"):
        main(f"--collections cells.yaml --output {tmp_path}/cells.yaml".split())
    (record,) = read_records(tmp_path / "my.json")
    assert (record.kind, record.name, record.outcome["study"]["trials"]) == ("tuning", "rnn", 3)
    assert "shell.yaml" not in record.commands[0]["command"]
    assert f"tuned\t{record.outcome['held out']['tuned']:.4f}" in printed.out
    assert [*record.outcome["sweeps"]] == ["context", "ablations"]
    given = made.given(100) | {"run": None, "trials": 3, "folds": 2, "rerank": {"rnn": {"k_exp": 2, "tau": 0.25}}}
    given["space"] = {"k": {"low": 2, "high": 8}, "tau": [0.0, 0.5], "scale": ["minmax", "none"]}
    with pytest.warns(DataWarning, match="12 topics, fewer than 50"):
        tuned = tune_reranker(TuneRequest(**given))
    tuned.write(tmp_path / "python.yaml")
    assert RnnParams.named(tmp_path / "python.yaml") == tuned.params
    assert (tuned.params.k_exp, tuned.params.tau) == (2, 0.25)
    shell, python = ((tmp_path / f"{name}.yaml").read_text().splitlines() for name in ("shell", "python"))
    assert {line.partition(":")[0] for line in shell if line not in python} == {"# topics"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trials": -1, "folds": 1}, "trials=-1: expected an integer >= 0; folds=1: expected an integer >= 2"),
        ({"test_topics": "t"}, "test_topics and test_qrels go together"),
        (
            {"test_topics": "t", "test_qrels": "q", "encoded_queries": "v.npy"},
            "encoded_queries is of topics: not with test_topics",
        ),
        ({"collections": "sets.yaml"}, "index, topics, qrels: of one query set, not with collections"),
        ({"collections": "sets.yaml", "sweep": "lambda"}, "index, topics, qrels, sweep: of one query set, not with"),
        ({"measure": "nDCG@10 RR@10"}, "expected one measure"),
        ({"trials": 0}, "trials=0: nothing to do without a sweep"),
        ({"sweep": "contxt"}, "sweep=contxt: expected some of context,lambda,grid,ablations"),
        ({"rerank": "rnn:from=neighbours"}, "expected rnn, whose settings are searched, without from"),
    ],
)
def test_what_a_request_cannot_be(given: dict[str, Any], message: str) -> None:
    with refusal_with(message):
        tune_reranker(TuneRequest(**{"index": "i", "topics": "t", "qrels": "q", **given}))
