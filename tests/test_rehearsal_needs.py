"""What plans read from outside, which rehearsals make miniatures of."""

import pytest

from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.rehearsal.needs import Needs, needs_of_plan
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import specs_folder


def needs_of(spec: str) -> Needs:
    return needs_of_plan(make_plan(read_spec(specs_folder() / f"{spec}.yaml")))


def test_data_models_and_prebuilt_indexes_are_told() -> None:
    needs = needs_of("tripclick")
    assert {"tripclick", "tripclick-train.tsv", "tripclick-tail-val-raw"} < set(needs.datasets)
    assert "msmarco-passage/dev/small" in needs.datasets  # left out of the topics that validate
    assert set(needs.models) == {
        "sebastian-hofstaetter/distilbert-dot-tas_b-b256-msmarco",
        "Luyu/co-condenser-marco-retriever",
        "checkpoints/repbert-tripclick",
    }
    assert needs.prebuilt == ("msmarco-v1-passage.distilbert-dot-tas_b-b256",)


@pytest.mark.parametrize(
    ("spec", "kind", "name"),
    [
        ("dl21-document", "datasets", "msmarco-passage-v2"),  # the passages of an aggregation
        ("dl21-document", "models", "cross-encoder/ms-marco-MiniLM-L-12-v2"),  # in a setting of a reranker
        ("dl21-document", "prebuilt", "msmarco-v2-doc"),
        ("reqa-nq-cold", "datasets", "reqa-nq:cold-1-train"),
        ("msmarco-passage", "models", "albert/albert-large-v2"),
    ],
)
def test_needs_in_settings_of_methods_are_told(spec: str, kind: str, name: str) -> None:
    assert name in getattr(needs_of(spec), kind)


def test_what_a_machine_has_by_itself_is_no_need() -> None:
    assert needs_of("pydoc") == Needs()
    assert needs_of("xquad-en").models == ()  # MiniLM and what is made of it


def test_needs_of_two_plans_are_put_together_once() -> None:
    both = Needs(("a", "b"), ("m",)) | Needs(("b", "c"), ("m", "n"), ("p",))
    assert both == Needs(("a", "b", "c"), ("m", "n"), ("p",))
