"""PyTerrier, the real one: transformers in pipelines, inspected and compiled; an index of ours as an artifact."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from places import DOCS
from refusals import refusal
from tiny_encoder import make_encoder

from rnnreranker import (
    RnnParams,
    build_index,
    open_index,
    open_neighbours,
    rerank_hits,
)

pt = pytest.importorskip("pyterrier", reason="PyTerrier is not installed: pip install 'rnnreranker[pyterrier]'")

from rnnreranker.adapters.pyterrier import RnnIndex, RnnTransformer  # noqa: E402

PAGE = DOCS / "pyterrier.md"
TEXT = "how do i sort a list read file line by write number text key value split join map set open"
WORDS = ["w0", "w1", "w2", "w3", *TEXT.split()]
DIMENSION = 6
RNG = np.random.default_rng(2)
DOCIDS = [f"d{row:02d}" for row in range(40)]
VECTORS = RNG.standard_normal((len(DOCIDS), DIMENSION)).astype(np.float32)
QUERIES = {qid: RNG.standard_normal(DIMENSION).astype(np.float32) for qid in ("z", "a")}
PARAMS = RnnParams(k=4, context=15)


@pytest.fixture(scope="module")
def folder(module_path: Path) -> Path:
    """An index of 60 documents with vectors and a graph."""
    encoder = make_encoder(module_path / "encoder", words=WORDS)
    draws = np.random.default_rng(0)
    texts = [(f"t{at}", " ".join(draws.choice(WORDS, 6))) for at in range(60)]
    build_index(
        texts, str(module_path / "my-index"), parts=["dense", "neighbours:k=8"], encoder=f"{encoder}:pooling=mean"
    )
    return module_path / "my-index"


@pytest.fixture(scope="module")
def topics() -> pd.DataFrame:
    return pt.new.queries(["how do I sort a list", "read a file line by line"], qid=["7", "3"])


def frame() -> pd.DataFrame:
    """The first 25 of two queries, with vectors."""
    rows = []
    for qid, vector in QUERIES.items():
        scores = VECTORS @ vector
        for rank, row in enumerate(np.argsort(-scores)[:25].tolist()):
            rows.append((qid, DOCIDS[row], float(scores[row]), rank, vector, VECTORS[row], f"text of {DOCIDS[row]}"))
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank", "query_vec", "doc_vec", "text"])


def test_frames_come_back_as_rerank_hits_orders_them() -> None:
    given = frame()
    reranked = RnnTransformer(PARAMS)(given)
    assert reranked["qid"].tolist() == ["z"] * 25 + ["a"] * 25
    for qid, vector in QUERIES.items():
        before, after = given[given["qid"] == qid], reranked[reranked["qid"] == qid]
        head = before.head(PARAMS.context)
        order, _ = rerank_hits(vector, np.stack(head["doc_vec"].tolist()), head["score"].to_numpy(), PARAMS)
        assert after["docno"].tolist() == [*head["docno"].to_numpy()[order], *before["docno"][PARAMS.context :]]
        assert after["rank"].tolist() == list(range(25))
        assert (np.diff(after["score"]) < 0).all()
        assert after["text"].tolist() == [f"text of {docid}" for docid in after["docno"]]
    again = RnnTransformer(PARAMS)(given.sample(frac=1, random_state=0))
    assert [*again.sort_values(["qid", "rank"])["docno"]] == [*reranked.sort_values(["qid", "rank"])["docno"]]


def test_a_pipeline_gives_what_the_index_gives(folder: Path, topics: pd.DataFrame) -> None:
    """Cut, joined with another, compiled, with topics that are numbers."""
    index = RnnIndex(folder)
    dense = index.retriever("dense", None, 60)
    asked = dict(zip(topics["qid"], topics["query"], strict=True))
    want = open_index(folder).search(asked, "dense", "rnn:k=4", 60)
    for pipeline in (dense >> index.reranker("rnn:k=4"), index.retriever("dense", "rnn:k=4", 60)):
        for one in (pipeline, pipeline.compile()):
            hits = one(topics)
            assert hits["qid"].tolist() == ["7"] * 60 + ["3"] * 60
            for qid in asked:
                part = hits[hits["qid"] == qid]
                assert part["docno"].tolist() == [docid for docid, _ in want[qid]]
                np.testing.assert_allclose(part["score"], [score for _, score in want[qid]], rtol=1e-5)
                assert part["query"].unique().tolist() == [asked[qid]]
    reranked = dense >> index.reranker("rnn:k=4")
    assert (reranked % 3)(topics)["docno"].tolist() == [docid for qid in asked for docid, _ in want[qid][:3]]
    joined = (dense % 5 | reranked % 5)(topics)
    assert {*joined["docno"]} == {*(dense % 5)(topics)["docno"]} | {*(reranked % 5)(topics)["docno"]}
    numbers = reranked(topics.assign(qid=[7, 3]))
    assert numbers["docno"].tolist() == reranked(topics)["docno"].tolist()
    assert numbers["qid"].tolist() == [7] * 60 + [3] * 60


def test_what_needs_no_score_takes_what_union_leaves(folder: Path, topics: pd.DataFrame) -> None:
    index = RnnIndex(folder)
    dense = index.retriever("dense", None, 60)
    union = dense % 8 | index.retriever("dense", "rnn:k=4", 60) % 8
    assert "score" not in union(topics)
    want = dense(topics)
    for qid, part in (union >> index.reranker("encoder"))(topics).groupby("qid"):
        own = want[want["qid"] == qid]
        among = own[own["docno"].isin(part["docno"])]
        assert part["docno"].tolist() == among["docno"].tolist()
        np.testing.assert_allclose(part["score"], among["score"], rtol=1e-5)
    vectors = RnnParams.preset("vectors")
    given = frame().drop(columns=["score", "rank"])
    for qid, part in RnnTransformer(vectors)(given).groupby("qid"):
        rows = given[given["qid"] == qid]
        order, _ = rerank_hits(QUERIES[str(qid)], np.stack(rows["doc_vec"].tolist()), None, vectors)
        assert part["docno"].tolist() == rows["docno"].to_numpy()[order].tolist()
    for refusing in (index.reranker("rnn"), index.reranker("rnn:from=neighbours")):
        with pytest.raises(pt.validate.InputValidationError, match="score"):
            (union >> refusing)(topics)
    with refusal(r"no score, as behind \|, and a query has \d+ candidates, of which 5 take part"):
        (union >> index.reranker("encoder:context=5"))(topics)


def test_pyterrier_loads_the_index_and_walks_its_graph(folder: Path, topics: pd.DataFrame) -> None:
    adaptive = pytest.importorskip("pyterrier_adaptive")
    index = pt.Artifact.load(str(folder))
    assert isinstance(index, RnnIndex)
    graph = index.corpus_graph(4)
    own = open_neighbours(folder)
    row = int(own.rows(["t3"])[0])
    assert [*graph.neighbours("t3")] == [own.docids[at] for at in own.edges[row][:4].tolist()]
    gar = index.retriever("dense", None, 10) >> adaptive.GAR(index.reranker("encoder"), graph, num_results=30)
    walked = gar(topics)
    assert walked.groupby("qid").size().min() > 10  # more than it began with
    scores = open_index(folder).search(dict(topics[["qid", "query"]].to_numpy().tolist()), "dense", None, 60)
    for qid, part in walked.groupby("qid"):
        known = dict(scores[str(qid)])
        ordered = part.sort_values("rank")["docno"].map(known).tolist()
        assert ordered == sorted(ordered, reverse=True)


def test_the_page_runs_as_printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    said, names = io.StringIO(), {}
    with contextlib.redirect_stdout(said):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
    assert "dense + rNN" in said.getvalue()
    assert len(names["reranked"](names["topics"])) == 120


def test_docnos_that_are_numbers_keep_their_columns_and_empty_frames_their_types() -> None:
    given = frame()
    given["docno"] = given["docno"].str[1:].astype(int).astype(object)
    reranked = RnnTransformer(PARAMS)(given)
    assert not reranked["text"].isna().any()
    assert set(reranked["docno"]) == set(given["docno"])
    assert RnnTransformer(PARAMS)(given.iloc[:0])["docno"].dtype == given["docno"].dtype
