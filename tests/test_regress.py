"""Specs are read strictly, one plan feeds runner and page, results are compared as the states say."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas
import pytest

from rnnreranker.errors import InputError, UnavailableError
from rnnreranker.evaluate.comparison import holm
from rnnreranker.regress import results, runner
from rnnreranker.regress.__main__ import main
from rnnreranker.regress.measure import _differences
from rnnreranker.regress.plan import make_plan
from rnnreranker.regress.recipe import is_recipe, read_recipe
from rnnreranker.regress.report import page
from rnnreranker.regress.results import Result
from rnnreranker.regress.spec import Spec, read_spec, spec_names, specs_folder
from rnnreranker.runs import Run

SMALL = """\
schema: 1
name: small
title: A small spec
about: Nothing much.
documents: corpus.jsonl
count: 3
query_sets:
  - {id: all, topics: topics.tsv, qrels: qrels.txt, protocol: binary}
measures: [nDCG@10, RR@10]
conditions:
  - {id: dense, title: dense, retrieve: dense}
  - {id: dense-rnn, title: dense + rNN, base: dense, rerank: rnn, params: {k: 5, k_exp: 2}}
"""


def small(folder: Path, text: str = SMALL) -> Spec:
    (folder / "small.yaml").write_text(text, encoding="utf-8")
    return read_spec("small", folder)


def result(**changes: object) -> Result:
    values = {"all": {"dense": {"nDCG@10": 0.5, "RR@10": 0.25}, "dense-rnn": {"nDCG@10": 0.6, "RR@10": 0.25}}}
    difference = {"difference": 0.1, "low": 0.05, "high": 0.15, "p_holm": 0.04, "win": 2, "tie": 1, "loss": 0}
    full = Result(
        fingerprint="abc",
        documents=3,
        commit="1234567",
        date="2026-01-02T03:04:05+00:00",
        machine="Linux x86_64, 2 cores, Python 3.11.7",
        versions={"numpy": "2.0"},
        values=values,
        differences={"all": {"dense-rnn": {"nDCG@10": difference, "RR@10": difference | {"difference": 0.0}}}},
        topics={"all": 3},
        unjudgeable={"all": 1},
        judged={"all": 9},
    )
    return dataclasses.replace(full, **changes)  # type: ignore[arg-type]


def test_every_spec_of_the_project_is_good() -> None:
    folder = specs_folder()
    assert {"pydoc", "cranfield", "scifact", "dl19-dl20-sample"} <= set(spec_names(folder))
    for name in spec_names(folder):
        path = folder / f"{name}.yaml"
        assert (read_recipe(path) if is_recipe(path) else read_spec(name, folder)).name == name


def test_all_errors_of_a_spec_come_at_once_with_their_lines(tmp_path: Path) -> None:
    bad = SMALL.replace("title: A small spec", "titel: A small spec").replace("count: 3", "count: many")
    bad = bad.replace("nDCG@10, RR@10", "nDGC@10, RR@10").replace("protocol: binary", "protocol: binari")
    bad = bad.replace("base: dense,", "base: dens,").replace("k: 5", "k: 0")
    with pytest.raises(InputError) as caught:
        small(tmp_path, bad)
    message = str(caught.value)
    for part in (
        "small.yaml:3: unknown key titel; did you mean title?",
        "small.yaml:1: key title is missing",
        "small.yaml:6: count: 'many'; expected a number of documents",
        "small.yaml:8: protocol binari; did you mean binary?",
        "small.yaml:9: measures: nDGC@10: no such measure",
        "small.yaml:12: base dens: no such condition above; did you mean dense?",
        "small.yaml:12: k=0: expected an integer >= 1",
    ):
        assert part in message, message


def test_an_unknown_spec_gets_the_nearest_names(tmp_path: Path) -> None:
    small(tmp_path)
    with pytest.raises(InputError, match=r"smal: no such spec in .*; did you mean small\?"):
        read_spec("smal", tmp_path)
    (tmp_path / "broken.yaml").write_text("a: [1\nb: 2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"broken\.yaml:2: not YAML"):
        read_spec("broken", tmp_path)


def test_a_plan_makes_every_run_before_it_is_reranked(tmp_path: Path) -> None:
    plan = make_plan(small(tmp_path), Path("runs/small"))
    made: set[str] = set()
    for step in plan.steps:
        if "--run" in step.argv:
            assert step.argv[step.argv.index("--run") + 1] in made
        if step.module == "search":
            assert step.argv[step.argv.index("--output") + 1] == str(step.output)
        made.add(str(step.output))
    assert [step.condition for step in plan.steps] == ["", "dense", "dense-rnn"]
    assert (
        plan.steps[-1]
        .command()
        .endswith(
            "--run runs/small/dense.all.txt --rerank rnn --k 5 --k-exp 2 "
            "--hits 1000 --tag dense-rnn --output runs/small/dense-rnn.all.txt"
        )
    )


def test_only_takes_a_condition_and_what_it_needs(tmp_path: Path) -> None:
    spec = read_spec("pydoc", specs_folder())
    assert [step.condition for step in make_plan(spec, tmp_path, "hybrid-rnn").steps] == ["hybrid", "hybrid-rnn"]
    with pytest.raises(InputError, match=r"hybrid-rn: no such condition in pydoc; did you mean hybrid-rnn"):
        make_plan(spec, tmp_path, "hybrid-rn")


def test_states_tell_ok_new_changed_and_skipped_apart(tmp_path: Path) -> None:
    spec = small(tmp_path)
    same = results.states(spec, result(), result())
    assert same == {"all": {"dense": "ok", "dense-rnn": "ok"}}
    assert results.states(spec, result(), None) == {"all": {"dense": "new", "dense-rnn": "new"}}
    drifted = result(
        values={"all": {"dense": {"nDCG@10": 0.5004, "RR@10": 0.2511}}}, left_out={"dense-rnn": "skipped: no Java"}
    )
    assert results.states(spec, drifted, result()) == {
        "all": {"dense": "changed: RR@10 0.2500 → 0.2511", "dense-rnn": "skipped: no Java"}
    }


def test_a_measure_that_is_not_on_record_is_a_change(tmp_path: Path) -> None:
    spec, measured = small(tmp_path), result()
    before = result(values={"all": {name: {} for name in measured.values["all"]}})
    assert set(results.states(spec, measured, measured)["all"].values()) == {"ok"}
    assert all(
        state.startswith("changed: ") and " nan → " in state
        for state in results.states(spec, measured, before)["all"].values()
    )


def test_results_go_on_record_once_per_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "results" / "small.json"
    results.record(path, result())
    results.record(path, result(fingerprint="def"))
    results.record(path, result(seconds=9.5))
    found = results.read_results(path)
    assert [entry.fingerprint for entry in found] == ["def", "abc"]
    assert results.expected(found, "abc") == result(seconds=9.5)
    assert results.expected(found, "xyz") is None
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="not a results file"):
        results.read_results(path)


def test_the_page_holds_the_measured_values_and_the_commands_of_the_plan(tmp_path: Path) -> None:
    spec = small(tmp_path)
    text = page(spec, [result()])
    assert "| dense | 0.5000 | 0.2500 |" in text
    assert "+0.1000 [+0.0500, +0.1500] | 0.040 | 2/1/0 |" in text
    assert "Judgements of documents that this collection lacks: 1 of 9." in text
    for step in make_plan(spec, Path("runs/small")).steps:
        assert step.command() in text
    assert "Nothing is on record yet" in page(spec, [])


def test_holms_family_is_all_differences_of_a_query_set(tmp_path: Path) -> None:
    spec = small(tmp_path)
    qids = [f"q{number}" for number in range(8)]
    qrels = pandas.DataFrame([(qid, "a", 1) for qid in qids], columns=["query_id", "doc_id", "relevance"])
    entries = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0}
    runs = {
        "dense": Run.from_dict(dict.fromkeys(qids, entries)),
        "dense-rnn": Run.from_dict({qid: {**entries, "a": 1.5 + place % 4} for place, qid in enumerate(qids)}),
    }
    plan = make_plan(spec, tmp_path)
    (found,) = _differences(plan, spec.query_sets[0], runs, qrels, [("dense-rnn", "dense")]).values()
    p = [found[measure]["p"] for measure in spec.compare]
    assert len(p) > 1
    assert [found[measure]["p_holm"] for measure in spec.compare] == pytest.approx(holm(p))
    assert min(found[measure]["p_holm"] for measure in spec.compare) == pytest.approx(len(p) * min(p))


class TestTheRunner:
    """On a few documents with random vectors in place of an encoder."""

    @pytest.fixture
    def spec(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spec:
        (tmp_path / "corpus.jsonl").write_text("".join(f'{{"id": "d{n}", "text": "text {n}"}}\n' for n in range(3)))
        (tmp_path / "topics.tsv").write_text("q1\tone\nq2\ttwo\n")
        (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\nq2 0 elsewhere 1\n")
        monkeypatch.chdir(tmp_path)
        return small(tmp_path)

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
        """Commands in place of the real ones: an index of three documents, runs that rank d0, d1, d2."""
        made: list[str] = []

        def command_of(module: str) -> object:
            def main(argv: Sequence[str]) -> int:
                output = Path(argv[argv.index("--output") + 1])
                made.append(output.name)
                if output.name.startswith(self.fails) or f"--{self.fails}" in argv:
                    raise self.failure
                if module == "index":
                    output.mkdir(exist_ok=True)
                    np.save(output / "vectors.npy", np.eye(3, dtype=np.float32))
                    (output / "docid").write_text("d0\nd1\nd2\n")
                    (output / "rnnreranker.json").write_text('{"count": 3, "fingerprint": "f"}')
                else:
                    entries = {"d0": 3.0, "d1": 2.0, "d2": 1.0}
                    Run.from_dict({"q1": entries, "q2": entries}).write(output)
                return 0

            return main

        monkeypatch.setattr(runner, "_main_of", command_of)
        return made

    fails: str = "nothing"
    failure: Exception = UnavailableError("no Java")

    def test_measures_and_keeps_what_is_current(
        self, spec: Spec, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        work = tmp_path / "work"
        first = runner.run_spec(spec, work)
        assert first.values["all"]["dense"]["RR@10"] == pytest.approx((1 / 2 + 1 / 3) / 2)
        assert (first.documents, first.topics, first.judged, first.unjudgeable) == (
            3,
            {"all": 2},
            {"all": 3},
            {"all": 1},
        )
        assert first.differences["all"]["dense-rnn"]["RR@10"]["tie"] == 2
        assert calls == ["index", "dense.all.txt", "dense-rnn.all.txt"]
        assert runner.run_spec(spec, work).fingerprint == first.fingerprint
        assert calls[3:] == ["index"]  # which looks after itself; the runs are current
        (tmp_path / "topics.tsv").write_text("q1\tone\nq2\tanother two\n")
        assert runner.run_spec(spec, work).fingerprint != first.fingerprint
        assert calls[4:] == ["index", "dense.all.txt", "dense-rnn.all.txt"]
        monkeypatch.setattr(runner, "_code", lambda: "another version of the package")
        runner.run_spec(spec, work)
        assert calls[7:] == ["index", "dense.all.txt", "dense-rnn.all.txt"]

    def test_a_condition_that_cannot_run_is_left_out_with_those_above_it(
        self, spec: Spec, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(type(self), "fails", "dense-rnn")
        assert runner.run_spec(spec, tmp_path / "a").left_out == {"dense-rnn": "skipped: no Java"}
        monkeypatch.setattr(type(self), "failure", InputError("NaN"))
        assert runner.run_spec(spec, tmp_path / "b").left_out == {"dense-rnn": "error: NaN"}
        monkeypatch.setattr(type(self), "fails", "dense")
        with pytest.raises(UnavailableError, match="small: no condition can be run here"):
            runner.run_spec(spec, tmp_path / "c")

    def test_without_java_the_vectors_still_stand(
        self, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Spec
    ) -> None:
        monkeypatch.setattr(type(self), "fails", "bm25")
        text = (
            SMALL + "  - {id: words, title: BM25, retrieve: bm25}\n  - {id: re, title: re, base: words, rerank: rnn}\n"
        )
        found = runner.run_spec(small(tmp_path, text), tmp_path / "work")
        assert found.left_out == {"words": "skipped: no Java", "re": "skipped: its base words was left out"}
        assert set(found.values["all"]) == {"dense", "dense-rnn"}

    def test_another_collection_is_refused(self, spec: Spec, calls: list[str], tmp_path: Path) -> None:
        (tmp_path / "corpus.jsonl").write_text('{"id": "d0", "text": "only one"}\n')
        with pytest.raises(UnavailableError, match=r"corpus\.jsonl has 1 documents here, the spec is for 3"):
            runner.run_spec(spec, tmp_path / "work")
        assert calls == []

    def test_exit_codes(self, spec: Spec, calls: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        argv = ["small", "--specs", str(tmp_path), "--output", str(tmp_path / "work")]
        with pytest.raises(InputError, match="--record with --only"):
            main([*argv, "--record", "--only", "dense"])
        assert calls == []  # said before hours of work, not after
        assert main(argv) == 0
        assert "\tnew\n" in capsys.readouterr().out
        assert main([*argv, "--record"]) == 0
        capsys.readouterr()
        assert main(argv) == 0
        assert "\tok\n" in capsys.readouterr().out
        record = tmp_path / "results" / "small.json"
        record.write_text(record.read_text().replace('"RR@10": 0.4', '"RR@10": 0.5'))
        assert main(argv) == 1
        assert "\tchanged: RR@10 0.5167 → 0.4167\n" in capsys.readouterr().out
        (tmp_path / "corpus.jsonl").write_text('{"id": "d0", "text": "only one"}\n')
        assert main([*argv[:3], "--output", str(tmp_path / "other")]) == 2
        assert capsys.readouterr().err.startswith("skipped: small: corpus.jsonl has 1 documents here")
