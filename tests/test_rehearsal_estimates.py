"""What plans say of disk beside what miniatures took, times their size."""

from __future__ import annotations

import pytest

from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.rehearsal import estimates as room
from rnnreranker.regress.rehearsal.estimates import Estimate, estimates
from rnnreranker.regress.rehearsal.shorten import Miniature
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import specs_folder


@pytest.mark.parametrize(("scaled", "off"), [(10, False), (29, False), (31, True), (3.4, False), (3.3, True)])
def test_an_estimate_is_off_by_more_than_three_times(scaled: float, off: bool) -> None:
    assert Estimate("a", 10, scaled).off is off


def test_what_a_miniature_took_is_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_topics", lambda name: 160)
    plan = make_plan(read_spec(specs_folder() / "msmarco-passage.yaml"))
    lines, vectors = 160 * 600 * 41, 600 * 32 * 4
    took = {"search": lines, "index": vectors, "labels": 0}
    compared = {one.output: one for one in estimates(plan, Miniature(), lambda step: took.get(step.module, 0))}
    dense = compared["msmarco-passage.cocondenser"]
    assert dense.scaled == pytest.approx(8841823 * 768 * 4 / 1e9, abs=0.1)
    assert not dense.off
    runs = [one for name, one in compared.items() if name.startswith("msmarco-passage-train-judged.")]
    assert len(runs) >= 4
    for one in runs:
        assert one.scaled == pytest.approx(502939 * 1000 * 41 / 1e9, abs=0.1)
        assert not one.off
