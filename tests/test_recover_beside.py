"""Teachers beside the similarities of a recovery: their scores, what they are compared with, specs, bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnreranker import Run, open_index
from rnnreranker.base.method import Inputs
from rnnreranker.base.record import read_records
from rnnreranker.evaluate.comparison import holm
from rnnreranker.lab.recover.recovery import cases_of
from rnnreranker.lab.recover.request import RecoverRequest
from rnnreranker.methods.rerank.base import Candidates, Query
from rnnreranker.methods.rerank.prf import PrfParams, PrfReranker
from rnnreranker.parts.tokens.part import query_tokens
from rnnreranker.recover import main
from tests import test_colbert_prf as prf
from tests.test_impacts import run_index, run_search
from tests.tiny_encoder import make_cross_encoder

world = prf.world
HOW = "fb_docs=2,fb_clusters=4,fb_embeddings=3,fb_expansion_weight=2"
COLLECTIVE = [f"collective:{HOW}", f"collective-positives:{HOW}"]


@pytest.fixture(scope="module")
def index(world: Path) -> Path:
    """An index with vectors, tokens and texts, a run of it, judgements of it, and a cross-encoder."""
    found = world / "both"
    documents = ["--documents", world / "docs.tsv", "--output", found]
    assert run_index(*documents, "--encoder", f"{world / 'bert'}:pooling=mean") == 0
    encoder = f"{world / 'model'}:query_length=8,document_length=30"
    assert run_index(*documents, "--parts", "tokens", "--token-encoder", encoder) == 0
    named = ["--index", found, "--topics", world / "topics.tsv", "--hits", 25]
    assert run_search(*named, "--retriever", "dense", "--rerank", "none", "--output", world / "dense.txt") == 0
    lines = []
    for qid in (run := Run.read(world / "dense.txt")):
        lines += [f"{qid} 0 {docid} {int(rank % 4 == 1)}\n" for rank, docid in enumerate(run.ranked(qid)[:20])]
    (world / "qrels.txt").write_text("".join(lines))
    make_cross_encoder(world / "cross")
    return found


def given(world: Path, index: Path, *beside: str, **others: Any) -> dict[str, Any]:
    """The arguments of a recovery."""
    named = {"topics": world / "topics.tsv", "qrels": world / "qrels.txt", "run": world / "dense.txt"}
    return {"index": index, **named, "similarity": "joint:context=25", "beside": list(beside), **others}


@pytest.mark.long
def test_scores_are_those_of_the_rerankers(world: Path, index: Path) -> None:
    cross = f"cross-encoder:model={world / 'cross'}"
    found = cases_of(RecoverRequest(**given(world, index, "late", *COLLECTIVE, cross)))[0]
    cases = dict(list(found.groupby(["qid", "visible"], sort=False)))
    assert len(cases) == 50
    topics = dict(line.split("\t") for line in (world / "topics.tsv").read_text().splitlines())
    first, opened = Run.read(world / "dense.txt"), open_index(index)
    for name, reranker in (("late", "late"), ("collective", f"prf:feedback=colbert,{HOW}"), ("cross-encoder", cross)):
        run = opened.rerank(first, f"{reranker},context=25" if ":" in reranker else "late:context=25", topics)
        for (qid, _), case in cases.items():
            scores = dict(run[qid])
            np.testing.assert_allclose(case[name], [scores[docid] for docid in case["docid"]], atol=1e-5)
    source = opened.token_vectors
    asked = query_tokens(source, topics)
    reranker = PrfReranker(Inputs(tokens=source, query_tokens=asked), PrfParams(f"colbert:{HOW}"))
    two = cases_of(RecoverRequest(**given(world, index, COLLECTIVE[1], visible=2)))[0]
    several = dict(list(two.groupby(["qid", "visible"], sort=False)))
    for (qid, visible), case in {**cases, **several}.items():
        docids = first.ranked(qid)
        candidates = Candidates(np.array(docids, dtype=object), rows=source.rows(docids))
        known = [docids.index(docid) for docid in visible.split()]
        own = reranker.scores(Query(qid, tokens=asked.one(qid)), candidates, known)
        own = own[[docids.index(docid) for docid in case["docid"]]]
        np.testing.assert_allclose(case["collective-positives"], own, rtol=1e-6)
    assert (found["collective-positives"] != found["collective"]).any()


@pytest.mark.long
def test_teachers_are_compared_as_one_family(
    world: Path, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = given(world, index)
    words = [str(word) for name in ("index", "topics", "qrels", "run") for word in (f"--{name}", named[name])]
    records = {}
    for name, more in (("beside", ["--beside", "late", COLLECTIVE[0]]), ("plain", [])):
        assert main([*words, "--context", "25", *more, "--output", str(tmp_path / f"{name}.json")]) == 0
        assert ("teacher\tmeasure\tminus\tdifference\tp (Holm)\n" in capsys.readouterr().out) == bool(more)
        records[name] = read_records(tmp_path / f"{name}.json")[0].outcome
    found, plain = records.values()
    assert [row for row in found["rows"] if row["scorer"] not in ("late", "collective")] == plain["rows"]
    assert (plain["beside"], "teachers" in plain, found["teachers"]["collective"]["fb_docs"]) == ([], False, 2)
    rows = found["beside"]
    assert len(rows) == 2 * 3 * 3
    np.testing.assert_allclose([row["p_holm"] for row in rows], holm([row["p"] for row in rows]))
    value = {(row["scorer"], row["measure"]): row["value"] for row in found["rows"]}
    for row in rows:
        gap = value[row["scorer"], row["measure"]] - value[row["other"], row["measure"]]
        assert row["difference"] == pytest.approx(gap, abs=1e-5)
    assert not [row for row in found["rows"] if row["scorer"] == "late" and "difference" in row]
