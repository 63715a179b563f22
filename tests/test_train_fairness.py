"""Neutrality, FaiRR and NFaiRR against the golden numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.train.fairness import CUTOFFS, neutrality, neutrality_of, ranking_fairness


def test_golden(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "fair.json").read_text())
    values = [neutrality(text) for text in golden["texts"]]
    assert values == pytest.approx(golden["neutrality"])
    neutral = {str(place): value for place, value in enumerate(values)}
    run, background = (
        {qid: [str(place) for place in places] for qid, places in golden[key].items()} for key in ("run", "background")
    )
    found = ranking_fairness(run, background, neutral)
    for cutoff in CUTOFFS:
        assert found[f"FaiRR@{cutoff}"] == pytest.approx(golden["FaiRR"][str(cutoff)])
        assert found[f"NFaiRR@{cutoff}"] == pytest.approx(golden["NFaiRR"][str(cutoff)])


def test_what_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="without background documents: q; documents without neutrality: a"):
        ranking_fairness({"q": ["a"]}, {}, {})
    with pytest.raises(InputError, match="no ranking"):
        ranking_fairness({}, {}, {})


def test_neutrality_files(tmp_path: Path) -> None:
    path = tmp_path / "neutral.tsv"
    path.write_text("d1\t0.5\nd2\t1\n")
    assert neutrality_of(path) == {"d1": 0.5, "d2": 1.0}
    path.write_text("d1\t0.5\nd2 1\nd3\t2\n")
    with pytest.raises(InputError, match=r"neutral.tsv:2: 'd2 1', expected"):
        neutrality_of(path)
