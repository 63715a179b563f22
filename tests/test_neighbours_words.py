"""Graphs of the words of documents: cosines of impacts and of BM25's weights, found as loops find them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from query_sets import write_lines
from scipy.sparse import csr_matrix

from rnnreranker.data.document import Document
from rnnreranker.encode.words.analysis import TermParams
from rnnreranker.index.build import add_parts, write_index
from rnnreranker.index.opening import open_index
from rnnreranker.parts.base import part
from rnnreranker.parts.neighbours.nearest import WordNeighbours
from rnnreranker.parts.neighbours.part import GraphParams, NeighboursPart
from rnnreranker.parts.postings import source as postings
from rnnreranker.parts.postings.source import ImpactSource

WORDS = 30


def weights_of(count: int, seed: int = 0, factor: int = 100) -> np.ndarray:
    """(count, WORDS) whole numbers: few words each, every seventh document twice, every eleventh without any."""
    rng = np.random.default_rng(seed)
    found = np.where(rng.random((count, WORDS)) < 0.12, rng.integers(1, 3 * factor, (count, WORDS)), 0)
    found[1::7] = found[::7][: len(found[1::7])]
    found[5::11] = 0
    return found


def by_loops(weights: np.ndarray, k: int) -> tuple[list[list[int]], list[list[float]]]:
    """Words are summed one after the other; a row ends with the document itself where too few share a word with it."""
    units = []
    for one in weights.tolist():
        length = 0.0
        for value in one:
            length += value * value
        units.append([value / math.sqrt(length) if value else 0.0 for value in one])
    edges, scores = [], []
    for row, own in enumerate(units):
        found = []
        for other, its in enumerate(units):
            total = 0.0
            for mine, theirs in zip(own, its, strict=True):
                total += mine * theirs
            if other != row and total > 0:
                found.append((-total, other))
        found = sorted(found)[:k]
        edges.append([other for _, other in found] + [row] * (k - len(found)))
        scores.append([-value for value, _ in found] + [0.0] * (k - len(found)))
    return edges, scores


def source_of(folder: Path, weights: np.ndarray, exact: bool = False) -> WordNeighbours:
    postings.write_postings(folder / "impacts", lambda: [csr_matrix(weights.astype(np.float32))], WORDS, exact=exact)
    write_lines(folder / "docid", (f"d{row}" for row in range(len(weights))))
    described = {"vocabulary": WORDS, "words": "", "factor": None, "encoder": {"name": "x"}}
    return WordNeighbours(ImpactSource(folder, described), "impact", "mark")


@pytest.mark.parametrize("block", [2**23, 40])
def test_cosines_are_those_of_loops(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "BLOCK", block)
    monkeypatch.setattr(postings, "KEPT", 1000)
    weights = weights_of(90)
    source = source_of(tmp_path / "words", weights)
    edges, scores = source.nearest(np.arange(90), 6)
    expected = by_loops(weights, 6)
    assert edges.tolist() == expected[0]
    np.testing.assert_array_equal(scores, expected[1])
    assert edges[5].tolist() == [5] * 6


TEXTS = ["The cats chase a mouse", "a mouse chases the cats, cats!", "", "dogs sleep", "the of", "sleeping dogs bark"]


def test_words_weigh_what_bm25_gives_them(tmp_path: Path) -> None:
    documents, index = [Document(f"d{row}", text) for row, text in enumerate(TEXTS)], tmp_path / "index"
    write_index(documents, index, [part("terms").make(TermParams(stemmer="porter"), {})], name="words")
    add_parts(index, [NeighboursPart(GraphParams(3, "terms"))], threads=1)
    graph = open_index(str(index)).graph
    assert (graph.origin.of, graph.origin.similarity) == ("terms", "cosine")
    assert NeighboursPart.stands(index, GraphParams(3, "terms"))
    counts = open_index(str(index)).term_source.counts.toarray()
    lengths, have = counts.sum(axis=1), (counts > 0).sum(axis=0)
    idf = np.log(1 + (len(TEXTS) - have + 0.5) / (have + 0.5))
    weights = idf * counts / (counts + 0.9 * (1 - 0.4 + 0.4 * lengths[:, None] / lengths.mean()))
    assert graph.edges.tolist() == by_loops(weights.astype(np.float32), 3)[0]
    assert graph.edges[2].tolist() == [2, 2, 2]  # no word
