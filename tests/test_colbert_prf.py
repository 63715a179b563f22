"""ColBERT-PRF: clusters, words, weights and scores beside loops written from the equations; commands and bad input."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from query_sets import write_lines
from refusals import refusal

from rnnreranker.base.method import Inputs
from rnnreranker.encode.late import make_late_base
from rnnreranker.index.opening import open_index
from rnnreranker.methods.feedback.colbert import ColbertFeedback, ColbertParams
from rnnreranker.methods.rerank.prf import PrfParams, PrfReranker
from rnnreranker.methods.retrieve.late import LateRetriever
from rnnreranker.parts.tokens.neighbours import NEAREST, Lexicon
from rnnreranker.parts.tokens.part import QueryTokens, TokenSource, write_tokens
from rnnreranker.runs import Run
from tests.query_sets import unit
from tests.test_impacts import run_index, run_search
from tests.test_tokens import D
from tests.tiny_encoder import WORDS, make_encoder

WORDS_HERE, SPECIAL = 30, (0, 1)  # numbers of tokens, and those of them that stand for no text


def made_up(folder: Path, documents: int = 60, most: int = 12, seed: int = 0) -> TokenSource:
    """Documents of 0 to `most` tokens; a token is its word's vector and noise, and special ones are everywhere."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, most + 1, size=documents)
    offsets, count = np.concatenate([[0], np.cumsum(lengths)]), int(lengths.sum())
    ids = np.minimum(rng.geometric(0.12, size=count) + 1, WORDS_HERE - 1).astype(np.int32)
    ids[rng.random(count) < 0.2] = 1
    vectors = unit(rng, WORDS_HERE, D)[ids] + 0.2 * unit(rng, count, D)
    folder.mkdir(parents=True, exist_ok=True)
    block = {"vectors": vectors.astype(np.float16), "offsets": offsets, "ids": ids}
    write_tokens(folder / TokenSource.files, lambda: [block], D)
    docids = [f"d{(7 * row) % documents}" for row in range(documents)]
    write_lines(folder / "docid", docids)
    return TokenSource(folder, {"encoder": {"name": "x", "settings": {}, "digest": "y"}})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> TokenSource:
    return made_up(tmp_path_factory.mktemp("tokens"))


def tokens_of(source: TokenSource, row: int) -> np.ndarray:
    return source.vectors[source.offsets[row] : source.offsets[row + 1]].astype(np.float64)


def nearest_by_loops(source: TokenSource, vector: np.ndarray, special: Sequence[int]) -> int:
    products = [(-float(vector.astype(np.float64) @ token), place) for place, token in enumerate(
        source.vectors.astype(np.float64)
    )]  # fmt: skip
    numbers = [int(source.ids[place]) for _, place in sorted(products)[:NEAREST]]
    counted = Counter(number for number in numbers if number not in special)
    return counted.most_common(1)[0][0] if counted else -1  # of equally frequent ones the first that was met


def idf_by_loops(source: TokenSource, number: int) -> float:
    having = 0
    for row in range(len(source.docids)):
        having += number in source.ids[source.offsets[row] : source.offsets[row + 1]].tolist()
    return math.log((len(source.docids) + 1) / (having + 1))


def centroids_by_loops(passages: list[np.ndarray], clusters: int) -> np.ndarray:
    """Lloyd's iteration from tokens spread evenly over each passage's share, until no token changes its cluster."""
    tokens = [token.astype(np.float64) for passage in passages for token in passage]
    bounds = [int(place * clusters / len(passages)) for place in range(len(passages) + 1)]
    centres = []
    for passage, first, last in zip(passages, bounds[:-1], bounds[1:], strict=True):
        steps = last - first
        spread = [int(step * (len(passage) - 1) / (steps - 1)) if steps > 1 else 0 for step in range(steps)]
        centres += [passage[place].astype(np.float64) for place in spread]
    before: list[int] = []
    while True:
        own = [min(range(clusters), key=lambda m: float(((token - centres[m]) ** 2).sum())) for token in tokens]
        if own == before:
            return np.array(centres)
        before = own
        centres = [
            np.mean([token for token, m in zip(tokens, own, strict=True) if m == number], axis=0)
            for number in range(clusters)
        ]


def expanded_by_loops(
    source: TokenSource, query: np.ndarray, rows: Sequence[int], params: ColbertParams
) -> list[tuple[np.ndarray, float]]:
    """The tokens of an expanded query with their weights."""
    passages = [tokens_of(source, row) for row in rows]
    found = []
    for centre in centroids_by_loops(passages, params.fb_clusters):
        number = nearest_by_loops(source, centre.astype(np.float32), SPECIAL)
        if number >= 0:
            found.append((idf_by_loops(source, number), centre))
    found.sort(key=lambda pair: -pair[0])
    added = [(centre, params.fb_expansion_weight * idf) for idf, centre in found[: params.fb_embeddings]]
    return [*((token.astype(np.float64), 1.0) for token in query), *added]


def score_by_loops(expanded: list[tuple[np.ndarray, float]], document: np.ndarray) -> float:
    """Paper 002, eq. 6, before its softmax; 0 without tokens."""
    if not len(document):
        return 0.0
    return sum(weight * max(float(token @ other) for other in document) for token, weight in expanded)


@pytest.fixture(scope="module")
def asked() -> QueryTokens:
    """Queries of 4, 0, 7 and 5 tokens."""
    places = np.array([0, 4, 4, 11, 16])
    return QueryTokens(("q0", "q1", "q2", "q3"), unit(np.random.default_rng(3), 16, D), places)


PARAMS = ColbertParams(fb_docs=3, fb_clusters=8, fb_embeddings=5, fb_expansion_weight=0.7)


@pytest.fixture
def known_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The made-up encoder has no tokenizer: its special tokens are given."""
    monkeypatch.setattr(
        "rnnreranker.parts.tokens.neighbours.special_tokens", lambda name: np.array(SPECIAL, dtype=np.int32)
    )
    monkeypatch.setattr("rnnreranker.parts.tokens.part.LateEncoder.digest_of", lambda name: "y")


@pytest.mark.usefixtures("known_words")
def test_retrieval_with_feedback_is_that_of_loops(source: TokenSource, asked: QueryTokens) -> None:
    inputs = Inputs(tokens=source, query_tokens=asked)
    first = LateRetriever(inputs, threads=1).retrieve(20)
    run = LateRetriever(inputs, threads=1, feedback=ColbertFeedback(PARAMS)).retrieve(20)
    assert [len(run[qid]) for qid in run] == [20, 0, 20, 20]
    moved = 0
    for qid in ("q0", "q2", "q3"):
        rows = source.rows(first.ranked(qid)[:3]).tolist()
        expanded = expanded_by_loops(source, asked.one(qid), rows, PARAMS)
        assert len(expanded) == len(asked.one(qid)) + 5
        filled = [row for row in range(len(source.docids)) if len(tokens_of(source, row))]
        scores = {source.docids[row]: score_by_loops(expanded, tokens_of(source, row)) for row in filled}
        expected = sorted(scores, key=lambda docid: (-scores[docid], docid))[:20]
        assert run.ranked(qid) == expected
        np.testing.assert_allclose([score for _, score in run[qid]], [scores[docid] for docid in expected], atol=1e-5)
        moved += run.ranked(qid) != first.ranked(qid)
    assert moved
    for threads, order in ((3, ("q3", "q0")), (1, ("q2", "q1", "q0"))):
        other = Inputs(tokens=source, query_tokens=asked.of(order))
        again = LateRetriever(other, threads=threads, feedback=ColbertFeedback(PARAMS)).retrieve(20)
        assert {qid: again[qid] for qid in order} == {qid: run[qid] for qid in order}


@pytest.mark.usefixtures("known_words")
def test_reranking_with_feedback_is_that_of_loops(source: TokenSource, asked: QueryTokens) -> None:
    """Empty candidates score 0 and are no feedback."""
    rng = np.random.default_rng(8)
    chosen = {qid: rng.permutation(len(source.docids))[:25] for qid in asked.qids}
    given = {qid: {source.docids[row]: -float(rank) for rank, row in enumerate(rows)} for qid, rows in chosen.items()}
    params = PrfParams("colbert:fb_docs=3,fb_clusters=8,fb_embeddings=5,fb_expansion_weight=0.7")
    inputs = Inputs(tokens=source, query_tokens=asked)
    found = PrfReranker(inputs, params).rerank(Run.from_dict(given))
    empty = 0
    for qid, rows in chosen.items():
        scores, query = dict(found[qid]), asked.one(qid)
        if qid == "q1":
            assert set(scores.values()) == {0.0}
            continue
        plain = [(-score_by_loops([(token, 1.0) for token in query], tokens_of(source, row)), row) for row in rows]
        filled = [row for _, row in sorted(plain) if len(tokens_of(source, row))][:3]
        expanded = expanded_by_loops(source, query, filled, PARAMS)
        expected = [score_by_loops(expanded, tokens_of(source, row)) for row in rows]
        np.testing.assert_allclose([scores[source.docids[row]] for row in rows], expected, atol=1e-5)
        empty += sum(not len(tokens_of(source, row)) for row in rows)
    assert empty
    turned = {qid: dict(zip(given[qid], sorted(given[qid].values()), strict=True)) for qid in reversed(asked.qids)}
    again = PrfReranker(inputs, params, threads=3).rerank(Run.from_dict(turned))
    assert {qid: again[qid] for qid in again} == {qid: found[qid] for qid in again}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder whose vocabulary has unused tokens, documents, topics, and an index with tokens."""
    pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("world")
    make_late_base(str(make_encoder(folder / "bert", [*WORDS, "[unused0]"])), folder / "model", D, marked=False)
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, size=int(rng.integers(2, 9)))) for _ in range(70)]
    lines = [f"d{number}\t{text}" for number, text in enumerate(texts[:60])]
    (folder / "docs.tsv").write_text("".join(f"{line}\n" for line in [*lines, "none\t "]))
    (folder / "topics.tsv").write_text("".join(f"q{number}\t{text}\n" for number, text in enumerate(texts[60:])))
    named = ["--documents", folder / "docs.tsv", "--output", folder / "index", "--parts", "tokens"]
    encoder = f"{folder / 'model'}:query_length=8,document_length=30"
    assert run_index(*named, "--token-encoder", encoder) == 0
    return folder


def test_commands(world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = ["--index", world / "index", "--topics", world / "topics.tsv"]
    late, prf, again, reranked = (tmp_path / f"{name}.txt" for name in ("late", "prf", "again", "reranked"))
    search = [*named, "--retriever", "late", "--rerank", "none", "--output"]
    assert run_search(*search, late) == 0
    how = "colbert:fb_docs=2,fb_clusters=6,fb_embeddings=4,fb_expansion_weight=0.5"
    assert run_search(*search, prf, "--prf", how) == 0
    assert " late.colbert.none\n" in prf.read_text()
    assert run_search(*search, again, "--prf", how, "--threads", 1) == 0
    assert prf.read_bytes() == again.read_bytes()
    how = "prf:feedback=colbert,fb_docs=2,fb_clusters=6,fb_embeddings=4,fb_expansion_weight=0.5"
    assert run_search(*named, "--run", late, "--rerank", how, "--output", reranked) == 0
    one, other, plain = (Run.read(path) for path in (prf, reranked, late))
    assert {qid: other[qid] for qid in other} == {qid: one[qid] for qid in one}  # all documents are in the first run
    assert any(one.ranked(qid) != plain.ranked(qid) for qid in one)
    index = open_index(str(world / "index"))
    near = Lexicon(index.token_vectors).nearest(index.token_vectors.vectors[:50].astype(np.float32))
    assert set(near.tolist()) <= {-1, *range(5, 45)}
    with refusal("prf colbert: is for retriever late, not for dense"):
        run_search(*named, "--retriever", "dense", "--prf", "colbert", "--output", again)
