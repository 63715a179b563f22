"""What must not change while the code is rebuilt: see tests/frozen/README.md for what may differ, and why."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "frozen"))
import making

pytestmark = [pytest.mark.long, pytest.mark.model, pytest.mark.jvm]
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
SUMS_MAY_DIFFER = {"rnn-graph", "rnn-tokens", "late", "late-rerank", "colbert-prf"}  # in the last digit


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> making.World:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RNNRERANKER_HOME", str(tmp_path_factory.mktemp("home")))
        base = tmp_path_factory.getbasetemp()
        base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        return making.World(tmp_path_factory.mktemp("world"), base / "frozen-indexes")


def frozen(group: str) -> Any:
    return json.loads((making.VALUES / f"{group}.json").read_text(encoding="utf-8"))


def same_machine() -> bool:
    return bool(frozen("machine") == making.machine())


def differences(made: str, kept: str, tolerance: float) -> list[str]:
    """What differs between two lists `docid=score …` by more than the tolerance; entries of near scores may swap."""
    one, other = (dict(entry.rsplit("=", 1) for entry in text.split()) for text in (made, kept))
    last = min(float(score) for score in other.values())
    allowed = {docid: tolerance * max(1.0, abs(float(score))) for docid, score in (one | other).items()}
    return [
        f"{docid}: {one.get(docid)} for {other.get(docid)}"
        for docid in one.keys() | other.keys()
        if abs(float(one.get(docid, last)) - float(other.get(docid, last))) > allowed[docid]
    ]


@pytest.mark.parametrize("name", [*making.RUNS, *making.RERANKED, *making.PASSAGES])
def test_runs(name: str, world: making.World, home: Path) -> None:
    kept, made = frozen("runs")[name], making.run_values(world, name)
    assert made["entries"] == kept["entries"]
    assert made["head"].keys() == kept["head"].keys()
    found = {qid: differences(made["head"][qid], kept["head"][qid], 1e-6) for qid in kept["head"]}
    assert not {qid: lines for qid, lines in found.items() if lines}
    if same_machine() and name not in SUMS_MAY_DIFFER:
        assert made["digest"] == kept["digest"]


def test_labels(world: making.World) -> None:
    kept, made = frozen("labels"), making.labels(world)
    assert made.keys() == kept.keys()
    for name, one in kept.items():
        assert made[name]["candidates"] == one["candidates"], name
        found = {qid: differences(made[name]["targets"][qid], text, 1e-6) for qid, text in one["targets"].items()}
        assert not {qid: lines for qid, lines in found.items() if lines}, name


def test_trainings(world: making.World) -> None:
    kept, made = frozen("trainings"), making.trainings(world)
    assert made.keys() == kept.keys()
    for name, one in kept.items():
        values = {measure: made[name]["validation"][measure] for measure in one["validation"]}
        assert values == pytest.approx(one["validation"], abs=0.002), name
        if same_machine() and one["weights"]:
            assert made[name]["weights"] == one["weights"], name


def test_measures(world: making.World) -> None:
    kept, made = frozen("measures"), making.measures(world)
    assert made.keys() == kept.keys()
    for protocol, table in kept.items():
        for row, values in table.items():
            assert made[protocol][row] == pytest.approx(values, abs=1e-9), (protocol, row)


def test_what_the_laboratory_prints(world: making.World) -> None:
    kept, made = (json.dumps(one, indent=1) for one in (frozen("laboratory"), making.laboratory(world)))
    assert NUMBER.sub("#", made) == NUMBER.sub("#", kept)
    numbers = [[float(one) for one in NUMBER.findall(text)] for text in (made, kept)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.002)


@pytest.mark.parametrize("group", ["fusions", "plans", "matrix"])
def test_digests(group: str, world: making.World) -> None:
    assert making.GROUPS[group](world) == frozen(group)
