"""Specs that train what they search and rerank with, and that end with documents: plans word by word, and faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.specs.spec import read_spec

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


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{model: max}", "{model: mox}", r"ml:11: parts mox: not in models; did you mean max"),
        ("{maxp: {", "{maxq: {", r"ml:37: aggregate=maxq: no such way; did you mean maxp"),
        ("{maxp: {passages:", "{maxp: {passage:", r"ml:37: aggregate=maxp:passage=#: no setting passage, did you mean"),
        ("of: one, query_sets", "of: [one, first], query_sets", r"ml:37: of-documents: `of` has 2 entries; aggregate"),
        ("{passages: {gpu_hours: 1}}", "{passage: {gpu_hours: 1}}", r"ml:36: needs passage: not in query_sets; "),
        ("{passages: {gpu_hours: 1}}", "{passages: {gpu_days: 1}}", r"ml:36: no need gpu_days, did you mean gpu_h"),
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
    with refusal(message):
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
        ("{labels: {gpu_hours: 40}}", "{label: {gpu_hours: 40}}", "label: 'label'; expected 'candidates' or 'labels'"),
        ("{labels: {gpu_hours: 40}}", "{labels: 40}", "labels: 40; expected a mapping"),
        ("{labels: {gpu_hours: 40}}", "{labels: {gpu_days: 2}}", "no need gpu_days, did you mean gpu_hours"),
    ],
)  # fmt: skip
def test_faults_of_late_models(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert LATE.count(before) == 1
    with refusal(message):
        make_plan(read_spec(write(tmp_path, LATE.replace(before, after))))


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
    with refusal(message):
        read_spec(path, data=True)
