"""What specs say of their models, gathered for the conditions whose values stand on them."""

from __future__ import annotations

from collections.abc import Iterator

from rnnreranker.regress.specs.checks import links
from rnnreranker.regress.specs.spec import Condition, IndexEntry, Model, Spec


def model_notes(spec: Spec, condition: Condition) -> list[str]:
    """The notes of all models that a condition needs, each once: what differs from the paper in how they are trained.

    A model needs what it begins with, what labels its training queries and whose index its candidates are from; a
    condition what those need that it is of.
    """
    seen: dict[str, str] = {}

    def visit(name: str) -> None:
        if name not in seen:
            model = spec.model(name)
            seen[name] = model.note
            for other in _models_of(spec, model, [model.index, model.candidates]):
                visit(other)

    for entry in _with_base(spec, condition):
        for name in _models_of(spec, entry, [entry.index]):
            visit(name)
    return list(dict.fromkeys(filter(None, seen.values())))


def _with_base(spec: Spec, condition: Condition) -> Iterator[Condition]:
    for name in condition.of:
        yield from _with_base(spec, spec.condition(name))
    yield condition


def _models_of(spec: Spec, entry: Condition | Model, indexes: list[str]) -> Iterator[str]:
    """The ids of the models that an entry names, and that its indexes are made by."""
    others: list[Condition | Model | IndexEntry] = [
        entry,
        *(spec.index(name) for name in dict.fromkeys(indexes) if name),
    ]
    for one in others:
        yield from (name for _, name, group, _ in links(one) if group == "models")
