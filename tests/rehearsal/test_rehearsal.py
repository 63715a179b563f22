"""Commands of the spec `msmarco-passage` (papers 000, 001, 002) run to their end on miniatures of what they read."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.plans.runner import run
from rnnreranker.regress.specs.entries import Spec
from rnnreranker.regress.specs.spec import read_spec, specs_folder

HERE = Path(__file__).resolve().parent
CHAINS = ("tas-b", "r-tas-b", "r-coder-tas-b", "coder-tas-b-from-tas-b", "cocondenser")  # one of each kind of recipe


@pytest.fixture(scope="module")
def spec() -> Spec:
    return read_spec(specs_folder() / "msmarco-passage.yaml")


@pytest.fixture
def miniatures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every miniature, written by a process that imports nothing before it knows where they are."""
    subprocess.run([sys.executable, str(HERE / "miniatures.py"), str(tmp_path)], check=True)
    for name, value in json.loads((tmp_path / "environment.json").read_text()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small(plan: Plan) -> Plan:
    """The plan whose trainings take two steps and whose indexes have any number of documents."""
    sys.path.insert(0, str(HERE))
    from miniatures import shortened

    steps = tuple(map(shortened, plan.steps))
    free = {"count": [], "needs": {}}
    indexes = {name: one.model_copy(update=free) for name, one in plan.spec.indexes.items()}
    sets = tuple(one.model_copy(update={"needs": {}}) for one in plan.query_sets)
    return replace(
        plan, spec=plan.spec.model_copy(update={"indexes": indexes, "needs": {}}), query_sets=sets, steps=steps
    )


@pytest.mark.slow
@pytest.mark.jvm
@pytest.mark.parametrize("condition", CHAINS)
def test_a_chain_runs_to_its_end(condition: str, spec: Spec, miniatures: Path) -> None:
    sets = [one for one in spec.query_sets.values() if one.id in ("dl19", "dl20")]
    plan = small(make_plan(spec, miniatures / "work", (spec.condition(condition),), sets))
    records, states = run(plan, specs_folder())
    measured = {(record.outcome["query_set"], record.name) for record in records}
    assert {(one.id, condition) for one in sets} <= measured, states
