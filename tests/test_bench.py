"""The benchmark measures what it says and its page is made from its record; nothing here asserts a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rnnreranker.bench.__main__ import main
from rnnreranker.bench.file_to_file import file_to_file
from rnnreranker.errors import InputError

ROOT = Path(__file__).resolve().parent.parent


def test_every_setting_is_measured_in_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, page = tmp_path / "record.json", tmp_path / "page.md"
    assert main(["--quick", "--pairs", "3", "--json", str(record)]) == 0
    measured = json.loads(record.read_text(encoding="utf-8"))
    settings = {(row["candidates"], row["tau"], row["scale"]) for row in measured["kernel"]}
    assert settings == {(60, tau, scale) for tau in (0.0, 0.5) for scale in ("minmax", "none")}
    for row in measured["kernel"]:
        assert row["pairs"] == 3
        assert row["low"] <= row["ratio"] <= row["high"]
        assert row["kernel"] > row["gram"] > 0  # the product is a part of the kernel
    assert "Gram us" in capsys.readouterr().out
    assert main(["--docs", "--record", str(record), "--page", str(page)]) == 0
    row = measured["kernel"][0]
    assert f"| {row['gram']:.0f} | {row['kernel']:.0f} | {row['ratio']:.2f} [" in page.read_text(encoding="utf-8")


def test_a_run_from_file_to_file() -> None:
    found = file_to_file(queries=5, depth=20, context=10, dimension=8, threads=1, times=1)
    assert (found.queries, found.depth, found.context, found.threads) == (5, 20, 10, 1)
    assert min(found.read, found.rerank, found.write) > 0


def test_a_record_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{\n1", encoding="utf-8")
    with pytest.raises(InputError, match=r"record\.json:2: not JSON"):
        main(["--docs", "--record", str(tmp_path / "record.json"), "--page", str(tmp_path / "page.md")])


def test_the_committed_page_is_that_of_the_committed_record(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert main(["--docs", "--record", str(ROOT / "docs" / "performance.json"), "--page", str(page)]) == 0
    assert page.read_bytes() == (ROOT / "docs" / "performance.md").read_bytes()
