"""Neutrality, FaiRR and NFaiRR against the golden numbers; calibration error by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.train.fairness import CUTOFFS, neutrality, ranking_fairness, read_neutrality
from rnnreranker.train.validation import calibration_error


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
    assert read_neutrality(path) == {"d1": 0.5, "d2": 1.0}
    path.write_text("d1\t0.5\nd2 1\nd3\t2\n")
    with pytest.raises(InputError, match=r"neutral.tsv:2: 'd2 1'.*neutral.tsv:3"):
        read_neutrality(path)


def test_calibration_error_by_hand() -> None:
    # bin 0.9: says 0.9 twice, one relevant: |1.8 - 1|; bin 0.1: says 0.1, none: 0.1
    found = calibration_error(np.array([0.92, 0.92, 0.1]), np.array([True, False, False]))
    assert found == pytest.approx((0.84 + 0.1) / 3)
    assert calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0
