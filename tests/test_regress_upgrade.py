"""Specs of earlier forms in today's: the same commands, comments and anchors kept, what has no form refused by line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.__main__ import main
from rnnreranker.regress.plans.runner import chosen_plan
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import Condition, Model
from rnnreranker.regress.upgrade import upgrade
from rnnreranker.regress.upgrade.uses import KINDS
from rnnreranker.regress.upgrade.works import of_study

OLD = """\
schema: 3
name: own  # as the file is called
title: A spec
about: Nothing much.
indexes:
  main: {documents: cranfield, parts: {dense: {encoder: minilm}, bm25: {}, terms: {}, neighbours: {neighbours: 20}}}
  tokens: {documents: cranfield, parts: {dense: {encoder: minilm}, tokens: {encoder: minilm-tokens}}}
models:
  bs: &bs  # words of paper 004
    index: main
    first: {tf-idf: {tf_idf: paper}}
    labels: {term-weight: {}}
    start: minilm
    train: {dual: {preset: le-bs, alpha: 0.2, degrees: cosine}}
    topics: cranfield
    qrels: cranfield
  other: {<<: *bs, train: {dual: {preset: le-bs, alpha: 0.5}}}
  taught: {<<: *bs, index: tokens, first: {late: {late_search: exact}}, labels: {collective: {prf_clusters: 24}}, train: {late: {}}, start: minilm-tokens}
  pairs:
    <<: *bs
    labels: {teacher: {teacher: cross-encoder, teacher_model: ms-marco-minilm-l6, context: 30}}
query_sets:
  test: {topics: cranfield, qrels: cranfield}
measures: [nDCG@10]
conditions:
  dense: {title: dense, retrieve: {dense: {}}, index: main}
  bm25: {title: BM25, retrieve: {bm25: {k1: 0.8}}, index: main}
  both: {title: both, fuse: {rrf: {rrf_k: 40}}, of: [dense, bm25]}
  prf: {title: PRF, rerank: {prf-rocchio: {}}, of: dense, index: main}  # of five documents
  deep: {title: PRF, rerank: {prf-rocchio: {prf_depth: 9, rocchio_topk: 4}}, of: dense, index: main}
  mean:
    title: PRF
    rerank:
      prf-average:
    of: dense
    index: main
  colbert: {title: PRF, rerank: [{colbert-prf: {prf_clusters: 4}}, {zhong: {zhong_k1: 5}}], of: dense, index: tokens}
  grown: {title: more, expand: {ladr: {ladr: adaptive, ladr_depth: 20}}, of: dense, index: main}
recoveries:
  beside: {index: tokens, query_set: test, beside: [late, collective, cross-encoder], beside_model: ms-marco-minilm-l6, prf_clusters: 24}
"""  # noqa: E501
NEW = """\
schema: 3
name: own  # as the file is called
title: A spec
about: Nothing much.
indexes:
  main: {documents: cranfield, parts: {dense: {encoder: minilm}, bm25: {}, terms: {}, neighbours: {k: 20}}}
  tokens: {documents: cranfield, parts: {dense: {encoder: minilm}, tokens: {encoder: minilm-tokens}}}
models:
  bs: &bs  # words of paper 004
    index: main
    first: {tf-idf: {variant: paper}}
    labels: {term-weight: {}}
    start: minilm
    train: {dual: {loss: {distance: {alpha: 0.2}}, preset: le-bs, label_scale: cosine}}
    topics: cranfield
    qrels: cranfield
  other: {<<: *bs, train: {dual: {loss: {distance: {alpha: 0.5}}, preset: le-bs}}}
  taught: {<<: *bs, index: tokens, first: {late: {search: exact}}, labels: {collective: {fb_clusters: 24}}, train: {late: {}}, start: minilm-tokens}
  pairs:
    <<: *bs
    labels: {teacher: {teacher: cross-encoder, model: ms-marco-minilm-l6, context: 30}}
query_sets:
  test: {topics: cranfield, qrels: cranfield}
measures: [nDCG@10]
conditions:
  dense: {title: dense, retrieve: {dense: {}}, index: main}
  bm25: {title: BM25, retrieve: {bm25: {k1: 0.8}}, index: main}
  both: {title: both, fuse: {rrf: {k: 40}}, of: [dense, bm25]}
  prf: {title: PRF, rerank: {prf: {feedback: rocchio, fb_docs: 5, fb_alpha: 0.4, fb_beta: 0.6}}, of: dense, index: main}  # of five documents
  deep: {title: PRF, rerank: {prf: {feedback: rocchio, fb_alpha: 0.4, fb_beta: 0.6, fb_depth: 9, fb_docs: 4}}, of: dense, index: main}
  mean:
    title: PRF
    rerank:
      prf: {feedback: average, fb_docs: 3}
    of: dense
    index: main
  colbert: {title: PRF, rerank: [{prf: {feedback: colbert, context: 1000, fb_clusters: 4}}, {zhong: {k1: 5}}], of: dense, index: tokens}
  grown: {title: more, expand: {ladr: {variant: adaptive, depth: 20}}, of: dense, index: main}
recoveries:
  beside: {index: tokens, query_set: test, beside: [late, {collective: {fb_clusters: 24}}, {cross-encoder: {model: ms-marco-minilm-l6}}]}
"""  # noqa: E501


def written(folder: Path, text: str) -> Path:
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    return folder / "own.yaml"


def test_a_spec_is_written_in_its_form_of_today(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, OLD)
    assert main(["--upgrade", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == NEW
    said = capsys.readouterr().err
    for one in (
        f"{path}:14: dual: alpha → loss\n",
        f"{path}:30: prf-rocchio → prf\n",
        f"{path}: 22 changes\n",
    ):
        assert one in said
    assert main(["--upgrade", str(path)]) == 0
    assert f"{path}: of today's form already" in capsys.readouterr().err
    spec = read_spec(path)
    commands = [step.command() for step in chosen_plan(spec, spec.query_sets, [], Path("runs")).steps]
    rerankers = [line.split("--rerank ", 1)[1] for line in commands if "--rerank prf:" in line]
    assert rerankers[1].startswith("prf:feedback=rocchio,fb_alpha=0.4,fb_beta=0.6,fb_depth=9,fb_docs=4 --hits")


@pytest.mark.parametrize(
    "options",
    [{"arms": "dual"}, {"methods": ["query", "joint:share"]}, {"arms": {"hard": {}}, "losses": ["margin"]}],
)
def test_arms_that_are_no_models_are_left_to_the_writer(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="an arm is a model now, with a name of its own"):
        of_study(options)
    assert of_study({"arms": {"hard": {}}, "model": {"query": {}}}) == {}


def test_it_is_printed_or_put_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, OLD)
    assert main(["--upgrade", str(path), "--output", "-"]) == 0
    assert capsys.readouterr().out == NEW
    assert main(["--upgrade", str(path), "--output", str(tmp_path / "new.yaml")]) == 0
    assert (tmp_path / "new.yaml").read_text(encoding="utf-8") == NEW
    assert path.read_text(encoding="utf-8") == OLD


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("zhong_k1: 5", "zhong_kk: 5", "37: unknown parameters of zhong: zhong_kk; known: k1, k2, lam, context"),
        ("zhong: {", "zong: {", "37: zong: no such reranker; did you mean zhong?"),
        ("teacher_model: m", "teacher_params: m", "21: teacher_params: write the settings that the file has beside"),
        (
            "l6, prf_clusters: 24}",
            "l6, prf_clusters: &c 24, of: *c}",
            " in today's form it would have, in line 40: not YAML (found undefined alias); write what an anchor",
        ),
        ("schema: 3", "schema: 2", " schema 2; expected 3"),
        ("name: own", "name: [own", "3: not YAML"),
    ],
)
def test_what_has_no_form_today_is_refused_by_line(tmp_path: Path, was: str, now: str, said: str) -> None:
    path = written(tmp_path, OLD.replace(was, now))
    with pytest.raises(InputError) as refused:
        upgrade(path)
    assert f"{path}:{said}" in str(refused.value)
    with pytest.raises(InputError, match="it takes one file, and runs nothing"):
        main(["--upgrade", str(path), "scifact"])
    assert path.read_text(encoding="utf-8") != NEW


def test_every_method_of_a_spec_is_known() -> None:
    uses = {one.name for of in (Condition, Model) for one in dataclasses.fields(of) if "Written" in str(one.type)}
    assert set(KINDS) == uses
