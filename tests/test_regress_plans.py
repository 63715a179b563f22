"""Plans word by word: tests/plans/NAME.txt is what `regress NAME --dry-run` prints.

`tests/frozen/values/plans.json` has digests of the plans of all query sets.

To renew them after a change that is meant: `RENEW=1 python -m pytest tests/test_regress_plans.py`, and read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.__main__ import main

PLANS = Path(__file__).resolve().parent / "plans"


@pytest.mark.parametrize("name", ["dl19-runs", "reqa-xquad", "squad-sample"])
def test_a_dry_run_prints_the_plan_on_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--dry-run"]) == 0
    printed, path = capsys.readouterr().out, PLANS / f"{name}.txt"
    if os.environ.get("RENEW"):
        PLANS.mkdir(exist_ok=True)
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8"), f"renew it: RENEW=1 python -m pytest {Path(__file__).name}"


def test_impacts_are_added_to_an_index_or_make_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, parts in (
        ("added", "dense: {encoder: minilm}, impact: {encoder: splade-tiny, factor: 50}"),
        ("alone", "impact: {}"),
    ):
        (tmp_path / f"{name}.yaml").write_text(
            f"schema: 3\nname: {name}\ntitle: T\nabout: A\n"
            f"indexes:\n  main: {{documents: cranfield, parts: {{{parts}}}}}\n"
            "query_sets:\n  mine: {topics: cranfield, qrels: cranfield, remove_query: true}\nmeasures: [nDCG@10]\n"
            "conditions:\n  splade: {title: S, retrieve: {impact: {query_weights: counts}}}\n"
        )
        assert main([str(tmp_path / f"{name}.yaml"), "--dry-run"]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("python -m rnnreranker.")]
    start = "python -m rnnreranker.index --documents cranfield --output runs/indexes/"
    assert [line.partition("--output")[2].split(maxsplit=1)[1] for line in printed if line.startswith(start[:40])] == [
        "--encoder minilm",
        "--parts impact:factor=50 --impact-encoder splade-tiny",
        "--parts impact",
    ]
    search = "--topics cranfield --remove-query --retriever impact:query_weights=counts --rerank none"
    assert sum(search in line for line in printed) == 2


def test_a_setting_that_impacts_do_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "schema: 3\nname: own\ntitle: T\nabout: A\n"
        "indexes:\n  main: {documents: cranfield, parts: {impact: {encodr: x}}}\n"
        "query_sets:\n  mine: {topics: cranfield, qrels: cranfield}\nmeasures: [nDCG@10]\nconditions:\n"
        "  splade: {title: S, retrieve: {impact: {}}}\n"
    )
    with pytest.raises(InputError, match=r"no setting encodr"):
        main([str(tmp_path / "own.yaml"), "--dry-run"])
