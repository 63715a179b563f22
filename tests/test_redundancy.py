"""How alike the first documents of a run are: by hand, as `evaluate --index` says it, and on record."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from array_vectors import ArrayVectors
from refusals import refusal

from rnnreranker import Run
from rnnreranker.base.errors import DataWarning
from rnnreranker.evaluate.__main__ import main
from rnnreranker.evaluate.redundancy import means_of, redundancy
from rnnreranker.index import opening
from rnnreranker.regress.plans import measure
from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.specs.spec import read_spec

VECTORS = {"a": [1.0, 0.0], "b": [5.0, 0.0], "c": [3.0, 4.0], "d": [0.0, 2.0], "zero": [0.0, 0.0]}
SOURCE = ArrayVectors(np.array(list(VECTORS.values())), list(VECTORS))


def test_cosines_of_the_pairs_by_hand() -> None:
    # q1: a.b 1, a.c .6, b.c .6; q2: a.d 0, c.d .8, a.c .6, and neither `zero` nor `gone` has a direction; q3: one alone
    entries = {"q1": "abc", "q2": ("a", "zero", "gone", "d", "c"), "q3": "a"}
    run = Run.from_dict({qid: {docid: -float(n) for n, docid in enumerate(own)} for qid, own in entries.items()})
    with pytest.warns(DataWarning, match="1 of 6 documents among the first 10 have no vector in the index"):
        found = redundancy(run, SOURCE)
    assert found["cosine@10"].to_dict() == {"q1": pytest.approx(2.2 / 3), "q2": pytest.approx(1.4 / 3)}
    assert found["pairs@10"].tolist() == [1.0, 0.0]
    assert means_of(found) == {"cosine@10": pytest.approx(0.6), "pairs@10": 0.5}
    assert means_of(redundancy(Run.from_dict({"q": {"a": 1.0}}), SOURCE)) == {"cosine@10": 0.0, "pairs@10": 0.0}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "topics.tsv").write_text("q1\tw1\n")
    (tmp_path / "corpus.jsonl").write_text('{"id": "a", "text": "w"}\n')
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\n")
    Run.from_dict({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}).write(tmp_path / "one.txt")
    for module in (opening, measure):
        monkeypatch.setattr(module, "open_index", lambda _name: SimpleNamespace(vectors=SOURCE))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_says_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Run.from_dict({**Run.read("one.txt").to_dict(), "unjudged": {"a": 2.0, "d": 1.0}}).write(files / "one.txt")
    arguments = ["one.txt", "--qrels", "qrels.txt", "--measures", "RR@10", "--index", "mine"]
    assert main([*arguments, "--json", "out.json"]) == 0
    assert capsys.readouterr().out == "run\tRR@10\tcosine@10\tpairs@10\none\t1.0000\t0.7333\t1.0000\n"
    found = json.loads((files / "out.json").read_text())["runs"][0]["redundancy"]
    assert found["per_query"]["pairs@10"] == {"q1": 1.0}
    assert found["near"] == 0.9
    with refusal("give --index without --compare and --per-query"):
        main([*arguments, "--per-query"])


SPEC = """\
schema: 3
name: small
title: A small spec
about: Nothing much.
query_sets:
  some: {topics: topics.tsv, qrels: qrels.txt}
measures: [RR@10]
redundancy: INDEX
indexes:
  tiny: {documents: corpus.jsonl, parts: {dense: {encoder: minilm}}}
  words: {documents: corpus.jsonl, parts: {bm25: {}}}
conditions:
  dense: {title: dense, retrieve: {dense: {}}, index: tiny}
"""


def test_it_goes_on_record_where_a_spec_names_an_index(files: Path) -> None:
    for index, expected in (("tiny", {"cosine@10": 0.733333, "pairs@10": 1.0}), ('""', None)):
        (files / "small.yaml").write_text(SPEC.replace("INDEX", index))
        plan = make_plan(read_spec(files / "small.yaml"), files / "work")
        (path,) = plan.run_files(plan.conditions[0], plan.query_sets[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((files / "one.txt").read_bytes())
        ((record,), states) = measure.measure(plan, {})
        assert states == {}
        assert record.outcome.get("redundancy") == expected


def test_an_index_without_vectors_or_of_another_name_is_refused(files: Path) -> None:
    for index in ("words", "min"):
        (files / "small.yaml").write_text(SPEC.replace("INDEX", index))
        with refusal(f"small.yaml:8: redundancy: {index}: no such index with a part dense"):
            read_spec(files / "small.yaml")


def test_a_run_of_another_collection_is_refused() -> None:
    with refusal(r"none of the first 10 docids .* \(first: x"):
        redundancy(Run.from_dict({"q": {"x": 2.0, "y": 1.0}}), SOURCE)
