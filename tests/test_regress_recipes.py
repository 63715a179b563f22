"""Recipes are read strictly, all faults at once with file:line; one parameter changes the commands that have it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from rnnreranker.errors import InputError
from rnnreranker.papers.matrix import Matrix
from rnnreranker.papers.paper import paper_names
from rnnreranker.regress.__main__ import main
from rnnreranker.regress.recipe import is_recipe, read_recipe, recipes
from rnnreranker.regress.recipe_check import cycles
from rnnreranker.regress.recipe_command import plan_lines
from rnnreranker.regress.recipe_plan import PASTE_FOLDER, make_recipe_plan, needs_of, value_of
from rnnreranker.regress.spec import spec_names, specs_folder

OWN = """\
schema: 2
name: own
title: A recipe
about: Nothing much.
parts: [common]
topics: msmarco-passage/trec-dl-2019/judged
qrels: msmarco-passage/trec-dl-2019/judged
protocols: [trec, strict]
measures: [RR@10, nDCG@10]
needs: {download_gb: 0.1}
conditions:
  - {id: dense-rnn, title: dense + rNN, base: dense, index: vectors, rerank: rnn, params: {k: 5, k_exp: 2}}
expected: {dense: {strict: {RR@10: 0.5}}}
"""
COMMON = """\
indexes:
  - {id: words, prebuilt: msmarco-v1-passage, needs: {disk_gb: 5, download_gb: 2}}
  - {id: vectors, documents: msmarco-passage, encoder: tas-b, needs: {disk_gb: 30, gpu_hours: 4}}
models:
  - id: first
    index: vectors
    candidates: words
    labels: {method: evidence, k: 7}
    train: {preset: coder-tas-b, epochs: 2}
    topics: msmarco-passage/train
    qrels: msmarco-passage/train
    needs: {gpu_hours: 24}
conditions:
  - {id: bm25, title: BM25, retrieve: bm25, index: words, params: {k1: 0.8, b: 0.6}}
  - {id: dense, title: dense, retrieve: dense, index: vectors}
  - {id: trained, title: trained, retrieve: dense, index: vectors, model: first}
"""


def write(folder: Path, own: str = OWN, common: str = COMMON) -> Path:
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "common.yaml").write_text(common, encoding="utf-8")
    (folder / "own.yaml").write_text(own, encoding="utf-8")
    return folder / "own.yaml"


def faults(folder: Path, own: str = OWN, common: str = COMMON) -> str:
    with pytest.raises(InputError) as caught:
        read_recipe(write(folder, own, common), data=True)
    return str(caught.value)


def commands(folder: Path, own: str = OWN, common: str = COMMON) -> dict[str, str]:
    recipe = read_recipe(write(folder, own, common))
    plan = make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions)
    return {str(step.output): step.command() for step in plan.steps}


class TestSchema:
    def test_a_good_recipe_has_the_entries_of_its_parts_first(self, tmp_path: Path) -> None:
        recipe = read_recipe(write(tmp_path), data=True)
        assert [condition.id for condition in recipe.conditions] == ["bm25", "dense", "trained", "dense-rnn"]
        assert recipe.measures == ("RR@10", "nDCG@10")

    def test_all_faults_come_at_once_each_with_file_and_line(self, tmp_path: Path) -> None:
        own = OWN.replace("title: A recipe", "titel: A recipe").replace("trec, strict]", "trec, strikt]")
        own = own.replace("judged\nqrels: msmarco-passage/trec-dl-2019", "judged\nqrels: msmarco-passage/trec-dl-2091")
        own = own.replace("nDCG@10]", "nDGC@10]").replace("download_gb: 0.1", "downlod_gb: 0.1")
        own = own.replace("base: dense,", "base: dens,").replace("k: 5", "k: 0")
        own = own.replace("expected: {dense: {", "expected: {dnse: {")
        common = COMMON.replace("id: words", "id: vectors").replace("method: evidence", "method: evidense")
        common = (
            common.replace("epochs: 2", "epoch: 2")
            .replace("k1: 0.8", "k: 0.8")
            .replace("gpu_hours: 24", "gpu_hours: a")
        )
        message = faults(tmp_path, own, common)
        for part in (
            "own.yaml:3: unknown key titel; did you mean title?",
            "own.yaml:1: key title is missing",
            "own.yaml:7: msmarco-passage/trec-dl-2091/judged: neither a file nor a data set",
            "own.yaml:8: protocol strikt; did you mean strict?",
            "own.yaml:9: measures: nDGC@10: no such measure; did you mean nDCG",
            "own.yaml:10: needs downlod_gb; did you mean download_gb?",
            "own.yaml:12: base dens: not in conditions; did you mean dense",
            "own.yaml:12: k=0: expected an integer >= 1",
            "own.yaml:13: expected dnse: no such condition; did you mean dense",
            "common.yaml:3: id vectors stands a second time among the indexes",
            "common.yaml:7: candidates words: not in indexes",
            "common.yaml:8: labels method evidense; did you mean evidence?",
            "common.yaml:9: train epoch: no such option; did you mean epochs?",
            "common.yaml:12: needs gpu_hours: 'a'; expected a number >= 0",
            "common.yaml:14: params k: bm25 retrieval takes k1, b",
        ):
            assert part in message, f"{part!r} is not in {message}"
        lines = [int(fault.split(":")[1]) for fault in message.split("; /") if "own.yaml" in fault]
        assert lines == sorted(lines)

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            ("base: dense,", "base: dense-rnn,", r"own\.yaml:12: cyclic steps: dense-rnn → dense-rnn"),
            ("name: own", "name: other", r"own\.yaml:2: name other: this file is own\.yaml; the two must be the same"),
            ("parts: [common]", "parts: [comon]", r"own\.yaml:5: parts comon: no such file; did you mean common\?"),
            ("rerank: rnn", "rerank: rn", r"own\.yaml:12: rerank rn; .*rnn"),
            ("index: vectors, r", "r", r"own\.yaml:12: dense-rnn: key index is missing"),
            (
                "index: vectors, r",
                "index: words, r",
                r"own\.yaml:12: dense-rnn: index words has no encoder, so no vectors",
            ),
            (
                "base: dense",
                "base: dense, retrieve: dense",
                r"own\.yaml:12: dense-rnn: give either `retrieve`, or `base`",
            ),
            ("k_exp: 2}", "k_exp: 2}, contexts: [10, no]", r"own\.yaml:12: context False; expected an integer >= 1"),
            ("k: 5,", "k: 5, k: 6,", r"own\.yaml:12: key k stands here a second time"),
            ("RR@10: 0.5", "RR@10: half", r"own\.yaml:13: RR@10: 'half'; expected a number"),
            ("{strict: {", "{binary: {", r"own\.yaml:13: expected binary: no such protocol; known: strict, trec"),
            ("conditions:", "conditons:", r"own\.yaml:11: unknown key conditons; did you mean conditions\?"),
            ("schema: 2", "schema: 2\n- x", r"own\.yaml:2: not YAML"),
        ],
    )
    def test_a_fault(self, tmp_path: Path, before: str, after: str, message: str) -> None:
        assert OWN.count(before) == 1
        with pytest.raises(InputError, match=message):
            read_recipe(write(tmp_path, OWN.replace(before, after)))

    def test_a_cycle_is_found_on_every_way(self, tmp_path: Path) -> None:
        first, second = COMMON.index("  - id: first"), COMMON.index("conditions:")
        entry = COMMON[first:second].replace("    needs: {gpu_hours: 24}\n", "")
        both = entry + "    from_model: second\n" + entry.replace("id: first", "id: second") + "    from_model: first\n"
        message = faults(tmp_path, OWN, COMMON[:first] + both + COMMON[second:])
        assert message.endswith("common.yaml:5: cyclic steps: first → second → first")

    def test_cycles(self) -> None:
        assert cycles({"a": ["x", "b"], "x": [], "b": ["x", "a"]}) == [["a", "b", "a"]]
        assert cycles({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}) == []
        assert cycles({"a": ["b"], "b": ["c"], "c": ["b"]}) == [["b", "c", "b"]]

    def test_local_data_sets_and_files_are_known_without_being_there(self, tmp_path: Path) -> None:
        own = OWN.replace("topics: msmarco-passage/trec-dl-2019/judged", "topics: tripclick-head-val")
        own = own.replace("qrels: msmarco-passage/trec-dl-2019/judged", "qrels: somewhere/else.txt")
        assert read_recipe(write(tmp_path, own), data=True).qrels == "somewhere/else.txt"
        wrong = own.replace("tripclick-head-val", "tripclick-head-dev")
        assert "own.yaml:6: tripclick-head-dev: expected tripclick, or tripclick-GROUP-SPLIT" in faults(tmp_path, wrong)


class TestPlan:
    @pytest.mark.parametrize(
        ("before", "after", "changed"),
        [
            ("k: 5", "k: 6", ["runs/own/dense-rnn.txt"]),
            ("k1: 0.8", "k1: 0.9", ["runs/own/bm25.txt"]),
            ("k: 7", "k: 8", ["runs/models/first.parquet"]),
            ("epochs: 2", "epochs: 3", ["runs/models/first"]),
            ("RR@10, nDCG", "RR@5, nDCG", []),
        ],
    )
    def test_one_parameter_changes_one_command(
        self, tmp_path: Path, before: str, after: str, changed: list[str]
    ) -> None:
        shown = commands(tmp_path)
        own, common = OWN.replace("RR@10: 0.5", "nDCG@10: 0.5"), COMMON
        assert (own + common).count(before) == 1
        others = commands(tmp_path, own.replace(before, after), common.replace(before, after))
        assert [name for name in shown if shown[name] != others[name]] == changed
        for name in changed:
            value = after.split(": ")[1]
            assert value in shlex.split(others[name])

    def test_the_commands_of_a_plan_parse_and_make_what_later_ones_read(self, tmp_path: Path) -> None:
        recipe = read_recipe(write(tmp_path))
        plan = make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions)
        made: set[Path] = set()
        for step in plan.steps:
            assert made.issuperset(step.inputs)
            assert value_of(step.argv, "--output") == str(step.output)
            made.add(step.output)
        assert [step.output.name for step in plan.steps] == [
            *("bm25.txt", "msmarco-passage.vectors", "dense.txt", "msmarco-passage-train.msmarco-v1-passage.words.txt"),
            *("first.parquet", "first", "trained.txt", "dense-rnn.txt"),
        ]
        assert value_of(plan.steps[-2].argv, "--encoder") == "runs/models/first"

    def test_needs_are_added_up_with_a_prebuilt_index_once(self, tmp_path: Path) -> None:
        recipe = read_recipe(write(tmp_path))
        plan = make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions)
        assert needs_of(plan) == {"download_gb": 2.1, "disk_gb": 35, "gpu_hours": 28}
        only = make_recipe_plan(recipe, PASTE_FOLDER, (recipe.condition("bm25"),))
        assert needs_of(only) == {"download_gb": 2.1, "disk_gb": 5}

    def test_a_sweep_has_a_run_for_each_context(self, tmp_path: Path) -> None:
        recipe = read_recipe(write(tmp_path, OWN.replace("k_exp: 2}}", "k_exp: 2}, contexts: [10, 20]}")))
        plan = make_recipe_plan(recipe, PASTE_FOLDER, (recipe.condition("dense-rnn"),))
        assert [(step.output.name, value_of(step.argv, "--context")) for step in plan.steps[-2:]] == [
            ("dense-rnn-10.txt", "10"),
            ("dense-rnn-20.txt", "20"),
        ]

    def test_indexes_of_other_documents_do_not_meet(self) -> None:
        folder = specs_folder()
        found: dict[str, str] = {}
        for recipe in recipes(folder).values():
            for step in make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions).steps:
                if step.output.parent != PASTE_FOLDER / recipe.name:
                    assert found.setdefault(str(step.output), step.command()) == step.command()

    def test_what_is_printed_says_needs_and_what_is_planned(self, tmp_path: Path) -> None:
        own = OWN.replace("expected:", "  - {id: later, title: later, planned: a thing that is lacking}\nexpected:")
        recipe = read_recipe(write(tmp_path, own))
        lines = plan_lines(make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions))
        assert lines[1] == "# needs in all: 2.1 GB to download, 35 GB of disk, 28 hours of a GPU"
        assert "# 6 of 8: 24 hours of a GPU" in lines
        assert lines[-1] == "# later: planned: a thing that is lacking"
        assert not any("later.txt" in line for line in lines)


class TestTheProjectsOwn:
    def test_all_recipes_are_good_and_know_their_data(self) -> None:
        folder = specs_folder()
        names = [name for name in spec_names(folder) if is_recipe(folder / f"{name}.yaml")]
        wanted = {"msmarco-dev", "msmarco-dev-small", "dl19", "dl20", "dl21-passage", "dl21-document", "tripclick-head"}
        wanted |= {"tripclick-torso", "reqa-squad", "reqa-nq", "reqa-cmrc", "reqa-drcd"}
        assert wanted <= set(names)
        for name in names:
            assert read_recipe(folder / f"{name}.yaml", data=True).name == name

    def test_every_command_of_every_plan_is_taken_by_its_parser(self) -> None:
        from rnnreranker.index.__main__ import _parser as index
        from rnnreranker.labels.__main__ import _parser as labels
        from rnnreranker.search.__main__ import _parser as search
        from rnnreranker.train.__main__ import _parser as train

        parsers = {"index": index(), "labels": labels(), "search": search(), "train": train()}
        for recipe in recipes(specs_folder()).values():
            for step in make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions).steps:
                assert parsers[step.module].parse_args(step.argv).output == str(step.output)

    def test_cells_ask_for_what_their_recipe_measures(self, tmp_path: Path) -> None:
        folder = tmp_path / "specs"
        shutil.copytree(specs_folder(), folder)
        assert len(Matrix(folder, commands=False).cells) == 1245
        path = folder / "papers" / "paper-001.yaml"
        text = path.read_text(encoding="utf-8").replace(
            "        condition: repbert\n", "        condition: repbart\n", 1
        )
        path.write_text(
            text.replace("spec: dl20, protocol: strict", "spec: dl20, protocol: binary", 1), encoding="utf-8"
        )
        rows = [line.strip() for line in text.splitlines()]
        repbert, bm25 = (1 + rows.index(f"- row: {name}") for name in ("RepBERT", '"BM25 [Anserini]"'))
        with pytest.raises(InputError) as caught:
            Matrix(folder, commands=False)
        said = str(caught.value)
        assert f"{path}:{repbert}: row RepBERT: dl19 has no condition repbart; did you mean repbert" in said
        assert f"{path}:{bm25}: row BM25 [Anserini]: dl20 has no protocol binary; known: lenient" in said

    def test_the_list_names_everything_with_its_state(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--list"]) == 0
        rows = dict(line.split("\t", 1) for line in capsys.readouterr().out.splitlines())
        assert set(rows) == {"spec", *spec_names(specs_folder()), *paper_names(specs_folder())}
        assert "runnable elsewhere" in rows["msmarco-dev"]
        assert "planned" in rows["paper-002"]

    def test_a_paper_is_planned_with_the_conditions_of_its_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["paper-000", "--table", "3", "--dry-run"]) == 0
        shown = capsys.readouterr().out
        assert "--output runs/dl19/coder-tas-b-mixed.txt" in shown
        assert "--output runs/dl20/tas-b.txt" in shown
        assert "runs/tripclick" not in shown
        assert "repbert" not in shown
        with pytest.raises(InputError, match=r"table 77: no such table in paper-000; did you mean 7"):
            main(["paper-000", "--table", "77"])
        with pytest.raises(InputError, match=r"papr-000: no such spec or paper in .*; did you mean paper-000"):
            main(["papr-000"])
        with pytest.raises(InputError, match="paper-000 with specs: papers are printed, specs are run"):
            main(["paper-000", "dl19"])
