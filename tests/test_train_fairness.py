"""Neutrality, FaiRR and NFaiRR against the golden numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.train.fairness import CUTOFFS, neutrality, neutrality_of, ranking_fairness


def test_golden(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "fair.json").read_text())
    values = [neutrality(text) for text in golden["texts"]]
    assert values == pytest.approx(golden["neutrality"])
    neutral = {str(number): value for number, value in enumerate(values)}
    run, background = (
        {qid: [str(number) for number in numbers] for qid, numbers in golden[key].items()}
        for key in ("run", "background")
    )
    measures = ranking_fairness(run, background, neutral)
    for cutoff in CUTOFFS:
        assert measures[f"FaiRR@{cutoff}"] == pytest.approx(golden["FaiRR"][str(cutoff)])
        assert measures[f"NFaiRR@{cutoff}"] == pytest.approx(golden["NFaiRR"][str(cutoff)])


def test_what_is_missing_is_named() -> None:
    with refusal("without background documents: q"):
        ranking_fairness({"q": ["a"]}, {}, {})
    with refusal("no neutrality of document 'a'"):
        ranking_fairness({"q": ["a"]}, {"q": ["b"]}, {"b": 1})
    with refusal("no ranking"):
        ranking_fairness({}, {}, {})


def test_neutrality_files(tmp_path: Path) -> None:
    path = tmp_path / "neutral.tsv"
    path.write_text("d1\t0.5\nd2\t1\n")
    assert neutrality_of(path) == {"d1": 0.5, "d2": 1.0}
    path.write_text("d1\t0.5\nd2 1\nd3\t2\n")
    with refusal(r"neutral.tsv:2: 'd2 1', expected"):
        neutrality_of(path)
