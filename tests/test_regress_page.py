"""The page of a spec says what is on record and prints the plan; values are compared as the states say."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
from query_sets import write_lines

from rnnreranker.base.record import Record
from rnnreranker.evaluate.comparison import holm
from rnnreranker.regress.pages.page import spec_page
from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.plans.measure import Measured
from rnnreranker.regress.plans.plan import State
from rnnreranker.regress.records import compare
from rnnreranker.regress.specs.entries import Spec
from rnnreranker.regress.specs.spec import read_spec
from rnnreranker.runs import Run

SMALL = """\
schema: 3
name: small
title: A small spec
about: Nothing much.
indexes:
  main: {documents: corpus.jsonl, count: 3, parts: {dense: {encoder: minilm}}, needs: {download_gb: 2.5, disk_gb: 7}}
query_sets:
  all: {topics: topics.tsv, qrels: QRELS, protocols: [binary]}
measures: [nDCG@10, RR@10]
conditions:
  dense: {title: dense, retrieve: {dense: {}}}
  dense-rnn: {title: dense + rNN, rerank: {rnn: {k: 5, k_exp: 2}}, of: dense}
"""


def small(folder: Path, text: str = SMALL) -> Spec:
    (folder / "small.yaml").write_text(text.replace("QRELS", str(folder / "qrels.txt")), encoding="utf-8")
    return read_spec(folder / "small.yaml")


def record(name: str, ndcg: float, rr: float, **more: Any) -> Record:
    outcome = {"query_set": "all", "topics": 3, "values": {"binary": {"nDCG@10": ndcg, "RR@10": rr}}}
    outcome |= {"documents": 3, "judged": 9, "unjudgeable": 1, **more}
    about = {"commit": "1234567", "date": "2026-01-02T03:04:05+00:00", "machine": "Linux, 2 cores, Python 3.11.7"}
    return Record("run", "small", name, outcome, {"index main": "abc"}, **about, versions={"numpy": "2.0"})  # type: ignore[arg-type]


DIFFERENCE = {"difference": 0.1, "low": 0.05, "high": 0.15, "p": 0.02, "win": 2, "tie": 1, "loss": 0}
DIFFERENCE["p_holm"] = 0.9  # over other runs, measured with it
DENSE = record("dense", 0.5, 0.25)
RNN = record("dense-rnn", 0.6, 0.25, differences={"nDCG@10": DIFFERENCE, "RR@10": DIFFERENCE | {"difference": 0.0}})


class TestStates:
    def test_ok_new_and_changed_are_told_apart(self, tmp_path: Path) -> None:
        spec = small(tmp_path)
        assert compare(spec, DENSE, [DENSE, RNN]) == State("ok")
        assert compare(spec, DENSE, [RNN]) == State("new")
        near, far = record("dense", 0.5004, 0.25), record("dense", 0.5, 0.2511)
        assert compare(spec, near, [DENSE]) == State("ok")
        assert str(compare(spec, far, [DENSE])) == "changed: RR@10 0.2500 → 0.2511"

    def test_other_inputs_are_new(self, tmp_path: Path) -> None:
        other = replace(DENSE, inputs={"index main": "of another Python"})
        assert compare(small(tmp_path), other, [DENSE]) == State("new", "the record is of another index main")
        again = dataclasses.replace(DENSE, inputs={**DENSE.inputs, "index again": next(iter(DENSE.inputs.values()))})
        assert compare(small(tmp_path), again, [DENSE]) == State("ok")  # one index under two names

    def test_a_record_of_other_protocols_or_measures_says_nothing(self, tmp_path: Path) -> None:
        trec = replace(DENSE, outcome={**DENSE.outcome, "values": {"trec": DENSE.outcome["values"]["binary"]}})
        assert compare(small(tmp_path), DENSE, [trec]) == State("new")
        more = replace(DENSE, outcome={**DENSE.outcome, "values": {**DENSE.outcome["values"], "trec": {"RR@10": 0.1}}})
        assert compare(small(tmp_path), DENSE, [more]) == State("ok")

    def test_the_last_record_counts_and_what_the_spec_expects_before_it(self, tmp_path: Path) -> None:
        spec, older = small(tmp_path), record("dense", 0.7, 0.25)
        assert compare(spec, DENSE, [older, DENSE]) == State("ok")
        expecting = spec.model_copy(
            update={"expected": {"all": {"dense": {"binary": {"nDCG@10": 0.7, "RR@10": None}}}}}
        )
        assert str(compare(expecting, DENSE, [DENSE])) == "changed: nDCG@10 0.7000 → 0.5000"


class TestPage:
    def test_it_holds_the_measured_values_and_the_commands_of_the_plan(self, tmp_path: Path) -> None:
        spec = small(tmp_path)
        text = spec_page(spec, [DENSE, RNN])
        for part in (
            "- index `main`: documents `corpus.jsonl`, dense (minilm)\n",
            "All of it takes:\n\n- 2.5 GB to download, 7 GB of disk\n",
            "### all: 3 judged topics, protocol `binary`\n\n| condition | nDCG@10 | RR@10 |\n|---|--:|--:|\n",
            "| dense | 0.5000 | 0.2500 |\n| dense + rNN | 0.6000 | 0.2500 |\n",
            "corrected by Holm over the 2 comparisons of this table",
            "| dense + rNN | +0.1000 [+0.0500, +0.1500] | 0.040 | 2/1/0 |",
            "Judgements of documents that this collection lacks: 1 of 9.",
            "Measured on 2026-01-02 at commit `1234567`; 3 documents; Linux, 2 cores, Python 3.11.7; numpy 2.0; ",
            "; index main `abc`.\n",
        ):
            assert part in text, part
        assert all(step.command() in text for step in make_plan(spec).steps)


def test_holms_family_is_all_differences_of_a_query_set(tmp_path: Path) -> None:
    spec = small(tmp_path)
    qids = [f"q{number}" for number in range(8)]
    write_lines(tmp_path / "qrels.txt", (f"{qid} 0 a 1" for qid in qids))
    entries = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0}
    runs = {
        "dense": Run.from_dict(dict.fromkeys(qids, entries)),
        "dense-rnn": Run.from_dict({qid: {**entries, "a": 1.5 + place % 4} for place, qid in enumerate(qids)}),
    }
    for name, run in runs.items():
        run.write(tmp_path / name)
    measured = Measured(spec, spec.query_sets["all"], {name: tmp_path / name for name in runs}, 1000)
    assert isinstance(measured.qrels, pandas.DataFrame)
    (found,) = measured.differences({"dense-rnn": "dense"}).values()
    p = [found[measure]["p"] for measure in spec.measures]
    assert len(p) > 1
    assert [found[measure]["p_holm"] for measure in spec.measures] == pytest.approx(holm(p))
    assert min(found[measure]["p_holm"] for measure in spec.measures) == pytest.approx(len(p) * min(p))


def test_kinds_of_topics_have_means_of_their_own(tmp_path: Path) -> None:
    easy, hard = tmp_path / "easy.tsv", tmp_path / "hard.tsv"
    easy.write_text("q1\tone\nq2\ttwo\n")
    hard.write_text("q3\tthree\nq4\tfour\n")
    kinds = f"protocols: [binary], kinds: {{easy: {easy}, hard: {hard}}}"
    spec = small(tmp_path, SMALL.replace("protocols: [binary]", kinds))
    write_lines(tmp_path / "qrels.txt", (f"q{number} 0 a 1" for number in (1, 2, 3)))  # nobody judged q4
    run = tmp_path / "run"
    Run.from_dict({"q1": {"a": 2.0, "b": 1.0}, "q2": {"b": 2.0, "a": 1.0}, "q3": {"b": 1.0}}).write(run)
    outcome = Measured(spec, spec.query_sets["all"], {"dense": run}, 1000).outcome("dense")
    assert {kind: of_kind["RR@10"] for kind, of_kind in outcome["kinds"].items()} == {"easy": 0.75, "hard": 0.0}
    assert outcome["values"]["binary"]["RR@10"] == pytest.approx(0.5)
    of_kinds = {"easy": {"nDCG@10": 0.75, "RR@10": 0.7}, "hard": {"nDCG@10": 0.125, "RR@10": 0.1}}
    text = spec_page(spec, [DENSE, record("dense-rnn", 0.6, 0.3, kinds=of_kinds)])
    assert "| condition | nDCG@10 | RR@10 | nDCG@10 easy | nDCG@10 hard |\n|---|--:|--:|--:|--:|\n" in text
    assert "| dense | 0.5000 | 0.2500 | – | – |\n| dense + rNN | 0.6000 | 0.3000 | 0.7500 | 0.1250 |\n" in text
