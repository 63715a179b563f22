"""Plans of parts of an index; `tests/frozen/values/plans.json` has digests of the plans of all specs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnreranker.regress.__main__ import main


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
