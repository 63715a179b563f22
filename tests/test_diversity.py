"""The table of docs/diversity.md: means over the query sets that all methods of a first stage have on record."""

from __future__ import annotations

from typing import Any

import pytest
from page_data.diversity import diversity

from rnnreranker.base.record import Record
from rnnreranker.regress.records import Figures


def run(spec: str, name: str, value: float, pairs: float, gain: tuple[float, float, float] | None = None) -> Record:
    outcome: dict[str, Any] = {
        "query_set": spec,
        "values": {"trec": {"nDCG@10": value}},
        "redundancy": {"cosine@10": value / 2, "pairs@10": pairs},
    }
    if gain is not None:
        found = dict(zip(("difference", "low", "high"), gain, strict=True))
        outcome["differences"] = {"nDCG@10": {"baseline": "dense", **found}}
    return Record("run", spec, name, outcome)


RECORDS = [
    run("cranfield", "dense", 0.4, 1.0),
    run("cranfield", "dense-rnn", 0.5, 2.0, (0.1, 0.05, 0.15)),
    run("cranfield", "dense-mmr-7", 0.3, 0.0, (-0.1, -0.2, -0.05)),
    run("scifact", "dense", 0.6, 0.5),
    run("scifact", "dense-rnn", 0.62, 0.5, (0.02, -0.01, 0.05)),
    run("scifact", "dense-mmr-7", 0.55, 0.25, (-0.05, -0.1, -0.01)),
    run("pydoc", "dense", 0.9, 9.0),  # without the others: does not count
    run("cranfield", "bm25", 0.4, 1.0),  # two methods alone: no line
    run("cranfield", "bm25-rnn", 0.5, 1.0, (0.1, 0.05, 0.15)),
]


def test_means_over_the_query_sets_that_all_methods_have() -> None:
    first, rnn, mmr = diversity(Figures(RECORDS))
    assert [line.method for line in (first, rnn, mmr)] == ["", "rnn", "mmr-7"]
    assert {line.sets for line in (first, rnn, mmr)} == {("Cranfield", "SciFact")}
    assert (first.value, first.gain, first.pairs, first.cosine) == pytest.approx((0.5, 0.0, 0.75, 0.25))
    assert (rnn.value, rnn.gain, rnn.better, rnn.worse) == (pytest.approx(0.56), pytest.approx(0.06), 1, 0)
    assert (mmr.gain, mmr.better, mmr.worse, mmr.pairs) == (pytest.approx(-0.075), 0, 2, pytest.approx(0.125))
    old = [Record("run", one.spec, one.name, {**one.outcome, "redundancy": {}}) for one in RECORDS]
    for record in old:
        del record.outcome["redundancy"]  # measured before it was: nothing to say
    assert diversity(Figures(old)) == []
