"""How scores of labels are distributed: by hand, the command, the picture, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rnnreranker import InputError, SoftLabels
from rnnreranker.labels.__main__ import main
from rnnreranker.labels.report.scores import distributions_of, edges_of, ranges_of

SCORES = [[0.0, 0.1, 0.11, 1.0, -np.inf], [0.25, 0.0, -0.5]]


def made(scores: list[list[float]] = SCORES) -> SoftLabels:
    """The first candidate of a query is its positive."""
    docids = [[f"d{place}" for place in range(len(own))] for own in scores]
    positive = [[place == 0 for place in range(len(own))] for own in scores]
    targets = [[float(place == 0) for place in range(len(own))] for own in scores]
    return SoftLabels.from_lists([f"q{n}" for n in range(len(scores))], docids, scores, targets, positive, {})


def test_ranges_are_open_below_and_closed_above() -> None:
    edges = edges_of(0, 1, 10)
    found = distributions_of(made(), edges)
    assert ranges_of(edges)[:3] == ["<= 0", "(0, 0.1]", "(0.1, 0.2]"]
    assert found["all"].shares == tuple(n / 7 for n in (3, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0))
    assert (found["all"].pairs, found["all"].unscored) == (7, 1)
    assert found["all"].zeros == 2 / 7
    assert found["positives"].quantiles == pytest.approx((0, 0.0125, 0.0625, 0.125, 0.1875, 0.2375, 0.25))
    assert found["others"].mean == pytest.approx((0.1 + 0.11 + 1 - 0.5) / 5)
    turned = distributions_of(made(), edges, distances=True)["all"]
    assert turned.shares == tuple(n / 7 for n in (1, 0, 0, 0, 1, 4, 0, 0, 1, 0, 0, 0))
    assert set(distributions_of(made([[0.5, -np.inf]]), edges)) == {"all", "positives"}


def test_the_command_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    made().write(tmp_path / "one.parquet")
    made([[0.9, 0.2, 0.3]]).write(tmp_path / "two.parquet")
    files = [str(tmp_path / "one.parquet"), str(tmp_path / "two.parquet")]
    assert main(["scores", *files, "--bins", "2", "--plots", str(tmp_path / "p")]) == 0
    told = capsys.readouterr()
    rows = [line.split("\t") for line in told.out.splitlines()]
    assert rows[1][:4] == ["one", "all", "7", "0.2857"]
    assert [row[0] for row in rows[8:11]] == ["range", "<= 0", "(0, 0.5]"]
    assert rows[8][4:] == ["two all", "two positives", "two others"]
    assert [row[0] for row in rows[9:]] == ["<= 0", "(0, 0.5]", "(0.5, 1]", str(tmp_path / "p/score-distribution.svg")]
    assert "one.parquet: 1 candidate beyond its context without a score left out" in told.err
    drawn = (tmp_path / "p" / "score-distribution.svg").read_bytes()
    assert main(["scores", *files, "--bins", "2", "--plots", str(tmp_path / "p")]) == 0
    assert (tmp_path / "p" / "score-distribution.svg").read_bytes() == drawn


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["one.parquet", "one.parquet"], "one.parquet: given twice; expected different files"),
        (["one.parquet", "--range", "1", "0"], "--range 1 0: expected two numbers, the first below the second"),
        (["one.parquet", "--bins", "10000000", "--range", "0.9", "1"], "--bins 10000000: too many between"),
        (["none.parquet"], "none.parquet: no candidate has a score; give labels of a method that scores candidates"),
        (["lost.parquet"], "lost.parquet: no such label file"),
    ],
)
def test_bad_input(more: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made().write("one.parquet")
    made([[-np.inf]]).write("none.parquet")
    with pytest.raises(InputError) as raised:
        main(["scores", *more])
    assert said in str(raised.value)
