"""The plans of all query sets, word by word: tests/plans/NAME.txt is what `regress NAME --dry-run` prints.

To renew them after a change that is meant: `RENEW=1 python -m pytest tests/test_regress_plans.py`, and read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rnnreranker.regress.__main__ import main
from rnnreranker.regress.spec import query_set_names, specs_folder

PLANS = Path(__file__).resolve().parent / "plans"


@pytest.mark.parametrize("name", query_set_names(specs_folder()))
def test_a_dry_run_prints_the_plan_on_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--dry-run"]) == 0
    printed, path = capsys.readouterr().out, PLANS / f"{name}.txt"
    if os.environ.get("RENEW"):
        PLANS.mkdir(exist_ok=True)
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8"), f"renew it: RENEW=1 python -m pytest {Path(__file__).name}"


def test_every_plan_on_file_is_of_a_query_set() -> None:
    assert {path.stem for path in PLANS.glob("*.txt")} == set(query_set_names(specs_folder()))
