"""Specs are read strictly, all faults at once with file:line; one parameter changes the commands that have it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_module import module_of
from refusals import refusal

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import choose
from rnnreranker.parts.base import parts
from rnnreranker.regress.plans.maker import chosen_plan, make_plan
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.specs.spec import find_spec, read_spec, spec_names, specs_folder

OWN = """\
schema: 3
name: own
title: A spec
about: Nothing much.
parts: [common]
query_sets:
  dl: {topics: &dl msmarco-passage/trec-dl-2019/judged, qrels: *dl, protocols: [trec, strict], remove_query: true}
  dev: {topics: msmarco-passage/dev/small, qrels: msmarco-passage/dev/small, measures: [RR@10]}
measures: [RR@10, nDCG@10]
needs: {download_gb: 0.1}
conditions:
  dense-rnn: {title: dense + rNN, rerank: {rnn: {k: 5, k_exp: 2}}, of: dense, index: vectors}
  hybrid: {title: hybrid, fuse: {rrf: {k: 40}}, of: [bm25, dense], query_sets: [dl]}
expected: {dl: {dense: {strict: {nDCG@10: 0.5}}}}
"""
COMMON = """\
indexes:
  words: {prebuilt: msmarco-v1-passage, parts: {bm25: {}}, needs: {disk_gb: 5, download_gb: 2}}
  vectors: {documents: msmarco-passage, parts: {dense: {encoder: tas-b}}, needs: {disk_gb: 30, gpu_hours: 4}}
models:
  first:
    index: vectors
    candidates: words
    first: {bm25: {b: 0.5}}
    labels: {evidence: {k: 7}}
    train: {query: {preset: coder-tas-b, epochs: 2}}
    topics: msmarco-passage/train
    qrels: msmarco-passage/train
    validation: {topics: msmarco-passage/dev/judged, qrels: msmarco-passage/dev/judged}
    needs: {gpu_hours: 24}
conditions:
  bm25: {title: BM25, retrieve: {bm25: {k1: 0.8, b: 0.6}}, index: words}
  dense: {title: dense, retrieve: {dense: {}}, index: vectors}
  trained: {title: trained, retrieve: {dense: {}}, index: vectors, model: first}
"""


def write(folder: Path, own: str = OWN, common: str = COMMON) -> Path:
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "common.yaml").write_text(common, encoding="utf-8")
    (folder / "own.yaml").write_text(own, encoding="utf-8")
    return folder / "own.yaml"


def faults(folder: Path, own: str = OWN, common: str = COMMON) -> str:
    with pytest.raises(InputError) as caught:
        read_spec(write(folder, own, common), data=True)
    return str(caught.value)


def plan_of(folder: Path, own: str = OWN, common: str = COMMON, only: str = "", sets: tuple[str, ...] = ()) -> Plan:
    spec = read_spec(write(folder, own, common))
    conditions = (spec.condition(only),) if only else None
    return make_plan(spec, conditions=conditions, query_sets=[spec.query_sets[name] for name in sets] or None)


class TestSchema:
    def test_a_good_spec_has_the_entries_of_its_parts_first(self, tmp_path: Path) -> None:
        spec = read_spec(write(tmp_path), data=True)
        assert [*spec.conditions] == ["bm25", "dense", "trained", "dense-rnn", "hybrid"]
        assert [spec.measures_of(entry) for entry in spec.query_sets.values()] == [["RR@10", "nDCG@10"], ["RR@10"]]
        assert [entry.id for entry in spec.conditions_of(spec.query_sets["dev"])][-1] == "dense-rnn"

    def test_all_faults_come_at_once_each_with_file_and_line(self, tmp_path: Path) -> None:
        own = OWN.replace("title: A spec", "titel: A spec").replace("trec, strict]", "trec, strikt]")
        own = own.replace("qrels: msmarco-passage/dev/small", "qrels: msmarco-passage/dev/smal")
        own = own.replace("measures: [RR@10, nDCG@10]", "measures: [RR@10, nDGC@10]")
        own = own.replace("download_gb: 0.1", "downlod_gb: 0.1")
        own = own.replace("of: dense,", "of: dens,").replace("k: 40", "k: -1")
        common = COMMON.replace("prebuilt:", "documents: x.tsv, prebuilt:").replace("evidence: {", "evidense: {")
        common = (
            common.replace("epochs: 2", "epoch: 2")
            .replace("{k1: 0.8", "{k: 0.8")
            .replace("gpu_hours: 24", "gpu_hours: a")
        )
        message = faults(tmp_path, own, common)
        for part in (
            "own.yaml:3: unknown key titel; did you mean title?",
            "own.yaml:1: key title is missing",
            "own.yaml:8: msmarco-passage/dev/smal: neither a file nor a data set",
            "own.yaml:7: protocol strikt; did you mean strict?",
            "own.yaml:9: measures: nDGC@10: no such measure; did you mean nDCG",
            "own.yaml:10: no need downlod_gb, did you mean download_gb?",
            "own.yaml:12: of dens: not in conditions; did you mean dense",
            "own.yaml:13: fuse=rrf:k=-1: k=-1: expected a finite number >= 0",
            "common.yaml:2: words: give either `prebuilt` or `documents`",
            "common.yaml:9: evidense: no such labeler; did you mean evidence?",
            "common.yaml:10: model=query: no setting epoch, did you mean epochs?",
            "common.yaml:14: needs gpu_hours: 'a'; expected a number >= 0",
            "common.yaml:16: no setting k",
        ):
            assert part in message, f"{part!r} is not in {message}"
        assert "Pydantic" not in message
        lines = [int(fault.split(":")[1]) for fault in message.split("; /") if "own.yaml" in fault]
        assert lines == sorted(lines)

    def test_names_of_validation_and_of_what_is_left_out_are_looked_up(self, tmp_path: Path) -> None:
        name = "validation: {topics: msmarco-passage/dev/judged"
        common = COMMON.replace(name, f"{name}:without:msmarco-dev-smal").replace("dev/judged}", "dev/juged}")
        message = faults(tmp_path, common=common)
        for part in (
            "common.yaml:13: msmarco-dev-smal: neither a file nor a data set known here or to ir_datasets; did you",
            "common.yaml:13: msmarco-passage/dev/juged: neither a file nor a data set",
        ):
            assert part in message

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            ("of: dense,", "of: dense-rnn,", r"own\.yaml:12: cyclic steps: dense-rnn → dense-rnn"),
            ("name: own", "name: other", r"own\.yaml:2: name other: this file is own\.yaml; the two must be the same"),
            ("parts: [common]", "parts: [comon]", r"own\.yaml:5: parts comon: no such file; did you mean common\?"),
            ("rerank: {rnn:", "rerank: {rn:", r"own\.yaml:12: rn: no such reranker; .*rnn"),
            ("of: dense, index: vectors", "of: dense", r"own\.yaml:12: dense-rnn: key index is missing"),
            ("index: vectors}", "index: words}", r"own: dense-rnn: index words has no part dense"),
            ("of: dense,", "of: dense, retrieve: {dense: {}},", r"own\.yaml:12: dense-rnn: give one of"),
            ("of: [bm25, dense]", "of: bm25", r"own\.yaml:13: hybrid: `of` has 1 entries; fuse takes two or more"),
            ("of: dense,", "of: [dense, bm25],", r"own\.yaml:12: dense-rnn: `of` has 2 entries; rerank takes one"),
            ("rrf: {", "rrff: {", r"own\.yaml:13: fuse=rrff:k=40: no such fusion; did you mean rrf"),
            ("query_sets: [dl]", "query_sets: [d]", r"own\.yaml:13: query_sets d: not in query_sets; .*dl"),
            ("index: vectors}", "index: vectors, contexts: [10, no]}", r"own\.yaml:12: contexts: 'no'; expected a"),
            ("k: 5,", "k: 5, k: 6,", r"own\.yaml:12: not YAML .key k stands here a second time"),
            ("k: 5,", "k: one,", r"own\.yaml:12: k='one': expected an integer"),
            ("k: 5,", "normalize: median,", r"own\.yaml:12: normalize='median': expected one of max, mean or none"),
            ("{nDCG@10: 0.5", "{nDCG@10: half", r"own\.yaml:14: nDCG@10: 'half'; expected a valid number"),
            ("expected: {dl:", "expected: {dv:", r"own\.yaml:14: expected: dv: no such query set or run"),
            ("{dl: {dense:", "{dl: {dens:", r"own\.yaml:14: expected: dens: no such query set or run"),
            ("schema: 3", "schema: 2", r"own\.yaml:1: schema: 2; expected 3"),
            ("schema: 3", "schema: 3\n- x", r"own\.yaml:2: not YAML"),
        ],
    )  # fmt: skip
    def test_a_fault(self, tmp_path: Path, before: str, after: str, message: str) -> None:
        assert OWN.count(before) == 1
        with refusal(message):
            make_plan(read_spec(write(tmp_path, OWN.replace(before, after))))

    def test_none_and_null_are_values_of_settings_that_may_be_none(self, tmp_path: Path) -> None:
        for written in ("none", "null"):
            plan = plan_of(tmp_path, OWN.replace("k: 5,", f"normalize: {written},"), only="dense-rnn")
            step = plan.steps[-1]
            assert step.value("rerank") == "rnn:normalize=none,k_exp=2"
            assert choose("reranker", step.value("rerank")).params.normalize is None

    def test_local_data_sets_and_files_are_known_without_being_there(self, tmp_path: Path) -> None:
        own = OWN.replace(
            "topics: msmarco-passage/dev/small, qrels: msmarco-passage/dev/small", "topics: TOPICS, qrels: a/b.txt"
        )
        good = read_spec(write(tmp_path, own.replace("TOPICS", "tripclick-head-val")), data=True)
        assert good.query_sets["dev"].qrels == "a/b.txt"
        wrong = own.replace("TOPICS", "tripclick-head-dev")
        assert "own.yaml:8: tripclick-head-dev: expected tripclick, or tripclick-GROUP-SPLIT" in faults(tmp_path, wrong)

    def test_a_name_is_of_a_spec_or_of_one_of_its_query_sets(self, tmp_path: Path) -> None:
        write(tmp_path)
        assert [entry.id for entry in find_spec("own", tmp_path)[1]] == ["dl", "dev"]
        assert [entry.id for entry in find_spec("dev", tmp_path)[1]] == ["dev"]
        assert find_spec(str(tmp_path / "own.yaml"), specs_folder())[0].name == "own"
        (tmp_path / "second.yaml").write_text(OWN.replace("name: own", "name: second"), encoding="utf-8")
        with refusal(r"second\.yaml: query set dl stands in own too; choose another id"):
            find_spec("own", tmp_path)
        (tmp_path / "second.yaml").write_text("a: [1\nb: 2\n", encoding="utf-8")
        with refusal(r"second\.yaml:2: not YAML"):
            find_spec("second", tmp_path)


class TestPlan:
    def test_the_commands_of_a_plan_make_what_later_ones_read(self, tmp_path: Path) -> None:
        plan = plan_of(tmp_path, sets=("dl",))
        made: set[Path] = set()
        for step in plan.steps:
            assert made.issuperset(step.inputs)
            assert step.value("output") == str(step.output)
            made.add(step.output)
        assert [step.output.name for step in plan.steps] == [
            *("bm25.dl.txt", "msmarco-passage.vectors", "dense.dl.txt", "dense-rnn.dl.txt"),
            "msmarco-passage-train.msmarco-v1-passage.words.bm25.b-0.5.txt",
            *("first.parquet", "msmarco-passage-dev-judged.msmarco-v1-passage.words.bm25.b-0.5.txt", "first"),
            *("trained.dl.txt", "hybrid.dl.txt"),
        ]
        assert "--remove-query" in plan.steps[0].words()
        train = plan.steps[7]
        assert train.value("validation_run") == str(plan.steps[6].output)
        assert train.value("validation_topics") == train.value("validation_qrels") == "msmarco-passage/dev/judged"
        assert plan.steps[8].value("encoder") == "runs/models/msmarco-passage-train/first"
        hybrid = "runs/own/bm25.dl.txt runs/own/dense.dl.txt --method rrf:k=40 --hits 1000 --tag hybrid"
        assert plan.steps[-1].command() == f"python -m rnnreranker.fuse {hybrid} --output runs/own/hybrid.dl.txt"

    def test_only_takes_a_condition_and_what_it_needs(self, tmp_path: Path) -> None:
        spec = read_spec(specs_folder() / "pydoc.yaml")
        plan = chosen_plan(spec, spec.query_sets.values(), ["hybrid-rnn"], tmp_path)
        assert [entry.id for entry in plan.conditions] == ["bm25", "dense", "hybrid", "hybrid-rnn"]
        assert [step.module for step in plan.steps] == ["search", "search", "fuse", "search"]
        with refusal(r"hybrid-rn: no such condition in pydoc; did you mean hybrid-rnn"):
            chosen_plan(spec, spec.query_sets.values(), ["hybrid-rn"], tmp_path)

    def test_an_unknown_option_of_a_work_is_refused_where_it_stands(self, tmp_path: Path) -> None:
        works = "studies:\n  labels: {index: vectors, query_set: dl, methods: [query]}\n"
        with refusal(r"own\.yaml:16: labels: no option of study methods, "):
            read_spec(write(tmp_path, OWN + works))

    def test_two_works_of_one_id_are_refused(self, tmp_path: Path) -> None:
        works = "studies:\n  one: {index: vectors, query_set: dl}\n"
        assert [work.id for work in read_spec(write(tmp_path, OWN + works)).works] == ["one"]
        with refusal("one: the id of two studies, tunings, recoveries or diagnoses; rename one"):
            read_spec(write(tmp_path, OWN + works + works.replace("studies", "tunings")))


class TestTheProjectsOwn:
    def test_all_specs_are_good_and_know_their_data(self) -> None:
        folder = specs_folder()
        for name in spec_names(folder):
            assert read_spec(folder / f"{name}.yaml", data=True).name == name

    @pytest.mark.long
    def test_every_command_of_every_plan_is_taken_by_its_parser(self) -> None:
        parsers = {}
        for name in spec_names(specs_folder()):
            spec = read_spec(specs_folder() / f"{name}.yaml")
            for step in make_plan(spec, works=spec.works).steps:
                if step.module not in parsers:
                    parsers[step.module] = module_of(step.module).make_parser()
                args = parsers[step.module].parse_args(step.words())
                added = [f"{args.output}/{folder}" for folder in [one.folder or name for name, one in parts().items()]]
                assert str(step.output) in (args.output, getattr(args, "record", None), *added)

    @pytest.mark.long
    def test_indexes_and_models_of_one_name_are_made_by_one_command(self) -> None:
        found: dict[str, str] = {}
        for name in spec_names(specs_folder()):
            for step in make_plan(read_spec(specs_folder() / f"{name}.yaml")).steps:
                assert found.setdefault(str(step.output), step.command()) == step.command()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("dense: {encoder: tas-b}", "own: more: index vectors has no part neighbours$"),
        ("dense: {encoder: tas-b}, neighbours: {k: 0}", "neighbours:k=0: k=0: expected an integer >= 1 or none"),
        ("bm25: {}, neighbours: {k: 32}", "neighbours is made of dense or impact or terms"),
    ],
)
def test_faults_of_the_parts_of_an_index(tmp_path: Path, parts: str, said: str) -> None:
    more = "  more: {title: more, expand: {neighbours: {depth: 10}}, of: bm25, index: vectors, query_sets: [dl]}\n"
    common = COMMON.replace("dense: {encoder: tas-b}", parts)
    with refusal(said):
        make_plan(read_spec(write(tmp_path, OWN.replace("  hybrid:", f"{more}  hybrid:"), common)))
