"""Teachers beside the similarities of a recovery: their scores, what they are compared with, specs, bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from rnnreranker import Run
from rnnreranker.base.method import Inputs
from rnnreranker.base.record import read_records, rounded
from rnnreranker.evaluate.comparison import holm, paired_t_test
from rnnreranker.index.opening import open_index
from rnnreranker.lab.recover import recover
from rnnreranker.lab.recover.__main__ import main
from rnnreranker.lab.recover.recovery import ranking_measures
from rnnreranker.lab.recover.request import RecoverRequest
from rnnreranker.lab.recover.similarities import cases_of as all_cases
from rnnreranker.methods.rerank.base import Candidates, Query
from rnnreranker.methods.rerank.prf import PrfParams, PrfReranker
from rnnreranker.parts.tokens.source import query_tokens
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


def words(world: Path, index: Path, *more: object) -> list[str]:
    named = ["--index", index, "--topics", world / "topics.tsv", "--qrels", world / "qrels.txt"]
    return [str(word) for word in [*named, "--run", world / "dense.txt", "--context", 25, *more]]


def cases_of(world: Path, index: Path, *beside: str, visible: int = 1) -> dict[tuple[str, str], pandas.DataFrame]:
    """The table of each case, by query and visible positives."""
    named = {"topics": world / "topics.tsv", "qrels": world / "qrels.txt", "run": world / "dense.txt"}
    request = RecoverRequest(
        index=index,
        **named,
        similarity="joint:context=25",
        beside=beside,
        visible=visible,  # type: ignore[arg-type]
    )
    return dict(list(all_cases(request)[0].groupby(["qid", "visible"], sort=False)))


def prf_settings() -> dict[str, int]:
    return {name: int(value) for name, _, value in (one.partition("=") for one in HOW.split(","))}


@pytest.mark.long
def test_scores_are_those_of_the_rerankers(world: Path, index: Path, tmp_path: Path) -> None:
    found = cases_of(world, index, "late", *COLLECTIVE, f"cross-encoder:model={world / 'cross'}")
    assert len(found) == 50
    named = ["--index", index, "--topics", world / "topics.tsv", "--run", world / "dense.txt"]
    for name, reranker in (
        ("late", "late"),
        ("collective", f"prf:feedback=colbert,{HOW}"),
        ("cross-encoder", f"cross-encoder:model={world / 'cross'}"),
    ):
        out = tmp_path / f"{name}.txt"
        assert run_search(*named, "--rerank", reranker, "--context", 25, "--output", out) == 0
        run = Run.read(out)
        for (qid, _), case in found.items():
            scores = dict(run[qid])
            np.testing.assert_allclose(case[name], [scores[docid] for docid in case["docid"]], atol=1e-5)
    topics = dict(line.split("\t") for line in (world / "topics.tsv").read_text().splitlines())
    source = open_index(str(index)).token_vectors
    asked = query_tokens(source, topics)
    params = PrfParams(f"colbert:{HOW}")
    reranker = PrfReranker(Inputs(tokens=source, query_tokens=asked), params)
    first = Run.read(world / "dense.txt")
    for (qid, visible), case in found.items():
        docids = first.ranked(qid)
        candidates = Candidates(np.array(docids, dtype=object), rows=source.rows(docids))
        own = reranker.scores_knowing(Query(qid, tokens=asked.one(qid)), candidates, [docids.index(visible)])
        places = [docids.index(docid) for docid in case["docid"]]
        np.testing.assert_array_equal(case["collective-positives"], own[places])
    assert any((case["collective-positives"] != case["collective"]).any() for case in found.values())
    (qid, visible), one = next(iter(cases_of(world, index, COLLECTIVE[1], visible=2).items()))
    expected = np.zeros(len(one))
    for positive in visible.split():
        expected += found[qid, positive].set_index("docid")["collective-positives"][one["docid"]].to_numpy() / 2
    np.testing.assert_allclose(one["collective-positives"], expected, atol=1e-9)


@pytest.mark.long
def test_teachers_are_compared_as_one_family(
    world: Path, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = words(world, index, "--beside", "late", COLLECTIVE[0])
    assert main([*given, "--output", str(tmp_path / "beside.json")]) == 0
    assert "teacher\tmeasure\tminus\tdifference\tp (Holm)\n" in capsys.readouterr().out
    assert main([*words(world, index), "--output", str(tmp_path / "plain.json")]) == 0
    found, plain = (read_records(tmp_path / f"{name}.json")[0].outcome for name in ("beside", "plain"))
    sources = index, world / "topics.tsv", world / "qrels.txt"
    kwargs: Any = {"run": Run.read(world / "dense.txt"), "similarity": {"joint": {"context": 25}}}
    own = recover(*sources, beside=["late", {"collective": prf_settings()}], **kwargs)
    assert rounded(own) == {name: found[name] for name in own}
    kept = [row for row in found["rows"] if row["scorer"] not in ("late", "collective")]
    assert kept == plain["rows"]  # p of the others as without teachers
    assert (plain["beside"], "teachers" in plain) == ([], False)
    assert found["teachers"]["collective"]["feedback"].startswith("colbert:fb_docs=2,")
    every = cases_of(world, index, "late", COLLECTIVE[0])
    values: dict[Any, list[float]] = {}
    for scorer in ("late", "collective", "query", "mixed", "joint"):
        for qid in sorted({qid for qid, _ in every}):
            own = [
                ranking_measures(*(case[column].to_numpy() for column in (scorer, "hidden", "docid")))
                for (of, _), case in every.items()
                if of == qid
            ]
            for measure in own[0]:
                values.setdefault((scorer, measure), []).append(float(np.mean([one[measure] for one in own])))
    rows = found["beside"]
    assert len(rows) == 2 * 3 * 3
    tests = []
    for row in rows:
        one, other = (np.array(values[row[key], row["measure"]]) for key in ("scorer", "other"))
        if row["other"] == "query":
            assert row["difference"] == pytest.approx((one - other).mean())
            assert row["p"] == pytest.approx(paired_t_test(one, other))
        tests.append(row["p"])
    np.testing.assert_allclose([row["p_holm"] for row in rows], holm(tests))
    for scorer in ("late", "collective"):
        [row] = [row for row in found["rows"] if (row["scorer"], row["measure"]) == (scorer, "AP")]
        assert row["value"] == pytest.approx(np.mean(values[scorer, "AP"]))
        assert "difference" not in row
