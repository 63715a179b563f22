"""Counted words of an index."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from mutations.arrays import ARRAYS, NAMES, slow_npy
from mutations.format import Format
from mutations.texts import slow_ids, text_of
from rnnreranker.encode.words.analysis import Analyser
from rnnreranker.encode.words.params import TermParams
from rnnreranker.parts.terms.counts import count_words, write_counts
from rnnreranker.parts.terms.source import TermSource
from rnnreranker.parts.terms.tf_idf import paper_weights

TEXTS = [["rain", "sun", "rain"], ["sun"], [], ["fog", "hail", "rain"]]


def _make(folder: Path) -> None:
    write_counts(folder / "terms", lambda: [count_words(TEXTS[:3]), count_words(TEXTS[3:])])
    (folder / "docid").write_text(NAMES)


def _read(folder: Path) -> Any:
    described = {"settings": {}, "analysis": Analyser(TermParams()).fingerprint}
    source = TermSource(folder, described)
    with contextlib.redirect_stderr(io.StringIO()):  # a line on a query without a known word
        queries = source.queries(["Rain of fog"])
    scores, rows = source.search(queries, paper_weights(source.counts).T.tocsr(), 10)
    ranked = [source.docids[row] for row in rows[0].tolist()]
    return [
        list(source.docids),
        source.vocabulary,
        source.counts.toarray().tolist(),
        scores[0].round(9).tolist(),
        ranked,
    ]


def _slow(folder: Path) -> Any:
    offsets, terms, counts = (
        slow_npy((folder / "terms" / f"{name}.npy").read_bytes()).tolist() for name in ("offsets", "terms", "weights")
    )
    docids, vocabulary = slow_ids(folder / "docid"), text_of(folder / "terms" / "vocabulary.txt").split("\n")[:-1]
    assert all(one < other for one, other in itertools.pairwise(vocabulary))
    assert vocabulary
    assert len(set(docids)) == len(docids) == len(offsets) - 1
    assert offsets[0] == 0
    assert offsets[-1] == len(terms) == len(counts)
    rows = []
    for start, end in itertools.pairwise(offsets):
        row = [0.0] * len(vocabulary)
        assert start <= end
        assert sorted(set(terms[start:end])) == terms[start:end]
        for term, count in zip(terms[start:end], counts[start:end], strict=True):
            assert count >= 1
            assert count == int(count)
            row[term] = float(count)
        rows.append(row)
    scores = {}
    for docid, row in zip(docids, rows, strict=True):
        for word in ("fog", "rain"):
            if word in vocabulary and (count := row[vocabulary.index(word)]):
                have = sum(other[vocabulary.index(word)] > 0 for other in rows)
                weight = count / sum(row) * math.log(len(docids) / (have + 1))
                if weight > 0:
                    scores[docid] = scores.get(docid, 0.0) + weight
    ranked = sorted(scores, key=lambda docid: (-scores[docid], docid.encode()))
    return [docids, vocabulary, rows, np.round([scores[docid] for docid in ranked], 9).tolist(), ranked]


FORMATS = [
    Format(
        "counted words",
        _make,
        ("terms/offsets.npy", "terms/terms.npy", "terms/weights.npy", "terms/vocabulary.txt", "docid"),
        _read,
        _slow,
        1.0,
        ARRAYS,
    )
]
