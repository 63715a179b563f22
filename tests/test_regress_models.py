"""Specs that train what they search and rerank with, and that end with documents: plans word by word, and faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.pages.page import spec_page
from rnnreranker.regress.plans import runner
from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.specs.spec import read_spec
from rnnreranker.runs import Run
from tests.tiny_encoder import make_cross_encoder, make_documents, make_masked, make_text_labels, write_text_world

OWN = """\
schema: 3
name: own
title: A spec
about: Nothing much.
query_sets:
  passages: {topics: cranfield, qrels: cranfield}
  documents: {topics: cranfield, qrels: cranfield}
measures: [RR@10]
indexes:
  words: {documents: cranfield, parts: {bm25: {}}}
  splade: {documents: cranfield, parts: {impact: {encoder: {model: max}}}}
models:
  max:
    documents: cranfield
    candidates: words
    first: {bm25: {}}
    labels: {hard: {}}
    start: distilbert-base-uncased
    train: {sparse: {}}
    topics: cranfield
    qrels: cranfield
  small: &cross
    index: splade
    first: {impact: {}}
    labels: {hard: {depth: 100}}
    start: nreimers/MiniLM-L6-H384-uncased
    train: {cross: {}}
    topics: cranfield
    qrels: cranfield
    validation: {topics: cranfield, qrels: cranfield}
    needs: {gpu_hours: 3}
  large: {<<: *cross, start: {model: small}}
conditions:
  first: {title: First, retrieve: {impact: {}}, index: splade}
  one: {title: One, rerank: {cross-encoder: {model: {model: small}}}, of: first, index: splade, query_sets: [none]}
  both: {title: Both, rerank: {ensemble: {models: [a/b, {model: small}, {model: large}], context: 50}}, of: first, index: splade, needs: {passages: {gpu_hours: 1}}}
  of-documents: {title: Documents, aggregate: {maxp: {passages: "#"}}, of: one, query_sets: [documents]}
"""  # noqa: E501


def write(folder: Path, text: str = OWN) -> Path:
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    return folder / "own.yaml"


def plan_of(folder: Path, only: str, query_set: str = "passages", text: str = OWN) -> Plan:
    spec = read_spec(write(folder, text), data=True)
    return make_plan(spec, conditions=[spec.condition(only)], query_sets=[spec.query_sets[query_set]])


def test_documents_are_made_of_a_run_that_is_not_measured_itself(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "of-documents", "documents")
    run = "runs/own/one.documents.txt"
    assert plan.steps[-1].command() == (
        f"python -m rnnreranker.fuse {run} --aggregate 'maxp:passages=#' --hits 1000 --tag of-documents "
        "--output runs/own/of-documents.documents.txt"
    )
    assert plan.steps[-2].output == Path(run)
    spec = plan.spec
    whole = make_plan(spec)
    assert [entry.id for entry in spec.conditions_of(spec.query_sets["documents"])] == ["first", "both", "of-documents"]
    assert not any("one.passages.txt" in line for line in whole.lines())
    assert not any("one." in line for line in whole.evaluations())
    assert spec.condition("of-documents").base == ""


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{model: max}", "{model: mox}", r"ml:11: parts mox: not in models; did you mean max"),
        ("{model: max}", "{model: small}", r"ml:11: parts small: is trained as cross; expected a model of `sparse`"),
        ("{model: {model: small}}", "{model: {model: max}}", r"ml:35: rerank max: is trained as spa"),
        ("first: {title: First,", "first: {title: First, model: max,", r"ml:34: model max: is trained as sparse"),
        ("{maxp: {", "{maxq: {", r"ml:37: aggregate=maxq: no such way; did you mean maxp"),
        ("{maxp: {passages:", "{maxp: {passage:", r"ml:37: aggregate=maxp:passage=#: no setting passage, did you mean"),
        ("of: one, query_sets", "of: [one, first], query_sets", r"ml:37: of-documents: `of` has 2 entries; aggregate"),
        ("{passages: {gpu_hours: 1}}", "{passage: {gpu_hours: 1}}", r"ml:36: needs passage: not in query_sets; "),
        ("{passages: {gpu_hours: 1}}", "{passages: {gpu_days: 1}}", r"ml:36: needs gpu_days; did you mean gpu_h"),
        ("{passages: {gpu_hours: 1}}", "{passages: 1}", r"ml:36: passages: 1; expected a mapping"),
        ("train: {sparse: {}}", "train: {spares: {}}", r"ml:19: model=spares: .*did you mean sparse"),
        ("    start: distilbert-base-uncased\n", "", r"ml:13: max: give `start`, the model"),
        ("    documents: cranfield\n", "    documents: cranfield\n    index: words\n", r"ml:13: max: give either `ind"),
        ("    candidates: words\n", "", r"ml:13: max: give `candidates`, the index that"),
        ("{hard: {depth: 100}}", "{hard: {depth: 0}}", r"ml:25: depth=0: expected an"),
        ("{hard: {depth: 100}}", "{hard: {deep: 100}}", r"ml:25: no setting deep"),
        ("    labels: {hard: {}}\n", "", r"ml:13: max: key labels is missing"),
        ("start: {model: small}", "start: {model: large}", r"ml:32: cyclic steps: large → large"),
        ("start: distilbert-base-uncased", "start: {model: small}", r"ml:\d+: cyclic steps: .*max → small"),
        ("start: distilbert-base-uncased", "start: [a]", r"ml:18: .*: \['a'\]; expected a valid string"),
    ],
)  # fmt: skip
def test_faults_of_models_and_documents(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert OWN.count(before) == 1
    with pytest.raises(InputError, match=message):
        read_spec(write(tmp_path, OWN.replace(before, after)))


LATE = """\
schema: 3
name: own
title: A spec
about: Nothing much.
query_sets:
  passages: {topics: cranfield, qrels: cranfield}
measures: [RR@10]
indexes:
  words: {documents: cranfield, parts: {bm25: {}}}
  tokens: {documents: cranfield, parts: {tokens: {encoder: {model: colbert}}}}
  student: {documents: cranfield, parts: {tokens: {encoder: {model: student}}}}
  both: {documents: cranfield, parts: {dense: {encoder: minilm}, tokens: {encoder: {model: colbert}}}}
models:
  colbert: &colbert
    documents: cranfield
    candidates: words
    first: {bm25: {}}
    labels: {hard: {}}
    start: bert-base-uncased
    train: {late: {preset: colbert}}
    topics: cranfield
    qrels: cranfield
  cross: {<<: *colbert, train: {cross: {}}}
  student:
    <<: *colbert
    documents: ""
    index: tokens
    candidates: tokens
    first: {late: {}}
    labels: {collective: {fb_clusters: 24, context: 50, temperature: 0.125}}
    start: {model: colbert}
    train: {late: {preset: collective}}
    step_needs: {candidates: {hours: 20}, labels: {gpu_hours: 15}}
    needs: {gpu_hours: 20}
  taught:
    <<: *colbert
    labels: {teacher: {teacher: ensemble, models: [a/b, {model: cross}]}}
    step_needs: {labels: {gpu_hours: 40}}
conditions:
  student: {title: Student, retrieve: {late: {}}, index: student}
  ordered: {title: Ordered, rerank: {late: {}}, of: student, index: both}
"""


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('    documents: ""\n    index: tokens\n', "    index: tokens\n", "student: give either `index` or `doc"),
        ("    index: tokens\n", "    index: words\n", "student: index words has no part tokens"),
        ('    documents: ""\n    index: tokens\n', "", "student: give an `index` with the part tokens"),
        ("{model: student}}}", "{model: cross}}}", r"parts cross: is trained as cross; expected a model of `late`"),
        ("{labels: {gpu_hours: 40}}", "{label: {gpu_hours: 40}}", "label: 'label'; expected 'candidates' or 'labels'"),
        ("{labels: {gpu_hours: 40}}", "{labels: 40}", "labels: 40; expected a mapping"),
        ("{labels: {gpu_hours: 40}}", "{labels: {gpu_days: 2}}", "needs gpu_days; did you mean gpu_hours"),
    ],
)  # fmt: skip
def test_faults_of_late_models(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert LATE.count(before) == 1
    with pytest.raises(InputError, match=message):
        make_plan(read_spec(write(tmp_path, LATE.replace(before, after))))


TRAINED = """\
schema: 3
name: own
title: A spec
about: Nothing much.
query_sets:
  paragraphs: {topics: topics.tsv, qrels: paragraphs.txt}
measures: [RR@10]
hits: 30
indexes:
  untrained: {documents: documents.jsonl, parts: {impact: {encoder: ./masked}}}
  splade: {documents: documents.jsonl, parts: {impact: {encoder: {model: max}}}}
models:
  max: &max
    documents: documents.jsonl
    candidates: untrained
    first: {impact: {}}
    labels: {teacher: {teacher: cross-encoder, model: ./cross, normalization: none, boost: 1, n_max: none}}
    start: ./masked
    train: {sparse: {loss: margin-mse, max_steps: 3, batch_size: 4}}
    topics: topics.tsv
    qrels: qrels.txt
  small: {<<: *max, candidates: splade, labels: {hard: {}}, start: ./cross, train: {cross: {max_steps: 3, group_size: 4}}}
conditions:
  first: {title: First, retrieve: {impact: {}}, index: splade, query_sets: [none]}
  both: {title: Both, rerank: {ensemble: {models: [./cross, {model: small}], context: 20}}, of: first, index: splade, query_sets: [none]}
  fused: {title: Fused, fuse: {mean-zero: {}}, of: [first, both], query_sets: [none]}
  documents: {title: Documents, aggregate: {maxp: {passages: mapping.tsv}}, of: fused}
"""  # noqa: E501


@pytest.mark.slow
def test_models_are_trained_used_and_their_passages_made_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text_world(tmp_path)
    make_masked(_new(tmp_path / "masked"))
    make_cross_encoder(tmp_path / "cross")
    docids = list(make_documents())
    (tmp_path / "mapping.tsv").write_text("".join(f"{docid}\tp{n // 4}\n" for n, docid in enumerate(docids)))
    best = {one.qid: one.docids[0] for one in make_text_labels()}
    for name, of in (("qrels", lambda docid: docid), ("paragraphs", lambda docid: f"p{docids.index(docid) // 4}")):
        (tmp_path / f"{name}.txt").write_text("".join(f"{qid} 0 {of(docid)} 1\n" for qid, docid in best.items()))
    monkeypatch.chdir(tmp_path)
    plan = make_plan(read_spec(write(tmp_path, TRAINED)), Path("runs"))
    assert runner.run_plan(plan) == {}
    fused, found = (Run.read(f"runs/own/{name}.paragraphs.txt") for name in ("fused", "documents"))
    of = {docid: f"p{number // 4}" for number, docid in enumerate(docids)}
    for qid in found:
        assert found.ranked(qid) == list(dict.fromkeys(of[docid] for docid in fused.ranked(qid)))
    assert (tmp_path / "runs" / "models" / "topics.tsv" / "small" / "training.json").is_file()
    impacts = tmp_path / "runs" / "indexes" / "documents.jsonl.splade" / "impacts"
    encoded = impacts.stat().st_ino
    for steps, again in (("max_steps: 3, batch_size: 4", False), ("max_steps: 4, batch_size: 4", True)):
        text = TRAINED.replace("max_steps: 3, batch_size: 4", steps)
        assert runner.run_plan(make_plan(read_spec(write(tmp_path, text)), Path("runs"))) == {}
        assert (
            (tmp_path / "runs" / "indexes" / "documents.jsonl.splade" / "impacts").stat().st_ino != encoded
        ) == again


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


OF_TEXTS = """\
schema: 3
name: own
title: A spec
about: Nothing much.
query_sets:
  passages: {topics: cranfield, qrels: cranfield}
measures: [RR@10]
indexes:
  main: {documents: cranfield, parts: {dense: {encoder: {model: small}, pooling: mean}, terms: {}}}
models:
  small: {documents: cranfield, start: none, train: {masked: {hidden_size: 128, heads: 2}}}
studies:
  dual: {index: main, query_set: passages, arms: dual, splits: cold, encoder: {model: small}, first_stages: [bm25s]}
"""


def test_a_study_begins_with_a_language_model_of_the_texts(tmp_path: Path) -> None:
    spec = read_spec(write(tmp_path, OF_TEXTS), data=True)
    plan = make_plan(spec, works=spec.works)
    trained, *indexes, study = plan.steps
    assert tuple(trained.words())[:6] == (
        "--model",
        "masked:hidden_size=128,heads=2",
        "--documents",
        "cranfield",
        "--encoder",
        "none",
    )
    assert trained.output == Path("runs/models/cranfield/small")
    assert [step.value("encoder") for step in indexes if "--encoder" in step.words()] == [
        f"{trained.output}:pooling=mean"
    ]
    assert study.value("encoder") == str(trained.output)
    assert trained.output in study.inputs
    assert "on the texts of `cranfield`" in spec_page(spec, [])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("start: none, ", "", "small: give `start`, the model that the training begins with, or none"),
        ("start: none", "topics: cranfield, start: none", "topics: masked is trained on texts alone; leave it out"),
        ("documents: cranfield, start", "start", "small: give either `index` or `documents`"),
    ],
)
def test_faults_of_language_models(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = write(tmp_path, OF_TEXTS.replace(before, after))
    with pytest.raises(InputError, match=message):
        read_spec(path, data=True)
