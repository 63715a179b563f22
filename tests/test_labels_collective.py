"""Labels over tokens: the collective teacher beside its reranker and loops, other teachers, shards, bad input."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from query_sets import write_queries
from refusals import refusal

from rnnreranker import SoftLabels
from rnnreranker.encode.kinds import LateEncoder
from rnnreranker.index.opening import open_index
from rnnreranker.labels.__main__ import main
from rnnreranker.methods.feedback.colbert import ColbertParams
from rnnreranker.parts.tokens.part import TokenSource
from rnnreranker.runs import Run
from tests import test_colbert_prf as prf
from tests.test_impacts import run_search

world = prf.world
PLAIN = ["--normalization", "none", "--boost", "1", "--n-max", "none"]
HOW = "fb_docs=2,fb_clusters=4,fb_embeddings=3,fb_expansion_weight=0.5"


@pytest.fixture(scope="module")
def made(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A late run 20 deep, and judgements of one positive in it and one outside."""
    folder = tmp_path_factory.mktemp("labels")
    named = ["--index", world / "index", "--topics", world / "topics.tsv", "--hits", 20]
    assert run_search(*named, "--retriever", "late", "--rerank", "none", "--output", folder / "late.txt") == 0
    lines = []
    for qid in (run := Run.read(folder / "late.txt")):
        outside = next(f"d{number}" for number in range(60) if f"d{number}" not in run.ranked(qid))
        lines += [f"{qid} 0 {run.ranked(qid)[7]} 2\n", f"{qid} 0 {outside} 1\n"]
    (folder / "qrels.txt").write_text("".join(lines))
    return folder


def labelled(world: Path, made: Path, output: Path, *more: object) -> SoftLabels:
    words = ["--run", made / "late.txt", "--qrels", made / "qrels.txt", "--topics", world / "topics.tsv"]
    given = [*words, "--index", world / "index", "--output", output, "--context", 15, *PLAIN, *more]
    assert main([str(word) for word in given]) == 0
    return SoftLabels.read(output)


def tokens_of_queries(world: Path) -> dict[str, np.ndarray]:
    topics = dict(line.split("\t") for line in (world / "topics.tsv").read_text().splitlines())
    found = LateEncoder.load(str(world / "model"), query_length=8).encode(list(topics.values()), "query")
    return {
        qid: found.vectors[found.offsets[row] : found.offsets[row + 1]].astype(np.float64)
        for row, qid in enumerate(topics)
    }


def expected(source: TokenSource, query: np.ndarray, docids: list[str], known: list[str]) -> list[float]:
    """The scores by loops: feedback are the known ones, then the first by MaxSim of the first 15, the candidates."""
    params = ColbertParams(fb_docs=2, fb_clusters=4, fb_embeddings=3, fb_expansion_weight=0.5)
    rows = dict(zip(docids, source.rows(docids).tolist(), strict=True))
    plain = [(token, 1.0) for token in query]
    near = sorted(docids[:15], key=lambda one: (-prf.score_by_loops(plain, prf.tokens_of(source, rows[one])), one))
    first = [*known, *(docid for docid in near if docid not in known)][:2]
    expanded = prf.expanded_by_loops(source, query, [rows[docid] for docid in first], params)
    return [prf.score_by_loops(expanded, prf.tokens_of(source, rows[docid])) for docid in docids]


def test_labels_are_the_softmax_of_loops(
    world: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prf, "SPECIAL", (0, 1, 2, 3, 4, 45))
    source, queries = open_index(str(world / "index")).token_vectors, tokens_of_queries(world)
    for name, positives in (("without", False), ("with", True)):
        how = f"collective:{HOW},positives={'yes' if positives else 'no'}"
        labels = labelled(world, made, tmp_path / f"{name}.parquet", "--method", how)
        assert len(labels.qids) == 10
        for one in labels:
            known = one.docids[: int(one.positive.sum())]
            assert len(known) == 2
            scores = expected(source, queries[one.qid], one.docids[:15], known if positives else [])
            np.testing.assert_allclose(one.scores[:15], scores, atol=1e-5)
            shares = [math.exp(score - max(scores)) for score in scores]
            np.testing.assert_allclose(one.targets[:15], np.array(shares) / sum(shares), atol=1e-5)
            assert np.isneginf(one.scores[15:]).all()
    about = labels.metadata
    assert (about["method"], about["teacher"]["name"]) == ("collective", "prf")
    assert (about["params"]["positives"], about["teacher"]["token_search"]) == (True, "exact")
    assert about["index"] == source.fingerprint


def test_bad_input_is_one_line(world: Path, made: Path, tmp_path: Path) -> None:
    words = ["--run", str(made / "late.txt"), "--qrels", str(made / "qrels.txt"), "--method", "collective"]
    words += ["--output", str(tmp_path / "labels.parquet")]
    method, topics, index = ["--method"], ["--topics", str(world / "topics.tsv")], ["--index", str(world / "index")]
    write_queries(tmp_path / "vectors.npy", "abc", np.eye(3))
    (tmp_path / "few.tsv").write_text("q1\tw1\n")
    for given, said in (
        (
            ["--index", str(tmp_path / "vectors.npy"), *topics],
            "no tokens in this index; add them with index --parts tokens",
        ),
        ([*index, *topics, *method, "collective:fb_clusters=0"], "fb_clusters=0: expected an integer >= 1"),
        ([*index, "--topics", str(tmp_path / "few.tsv")], "9 queries without a text"),
    ):
        with refusal(said):
            main([*words, *given])
