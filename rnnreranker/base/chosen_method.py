"""A method chosen by its written form: its class, its settings, and the source of its similarities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, problems_of, refuse
from rnnreranker.base.method import find, make_params
from rnnreranker.base.settings import located
from rnnreranker.base.written_form import Written

Form = str | Mapping[str, Any] | Written
SOURCES: dict[str, tuple[str, ...]] = {  # of a method that compares documents: settings beside its `Params`
    "from": ("vectors", "neighbours", "tokens"),
    "queries": ("encoded", "run", "none"),
}


@dataclass(frozen=True)
class Chosen:
    """A method with checked settings.

    Attributes:
        kind: of `rnnreranker.base.method.KINDS`.
        source: "vectors", "neighbours" or "tokens", of a method that `takes_source`.
        queries: "encoded", "run", "none", or None = by the source.
    """

    kind: str
    name: str
    params: Any
    source: str = "vectors"
    queries: str | None = None

    @property
    def method(self) -> Any:
        return find(self.kind, self.name)

    @property
    def takes_source(self) -> bool:
        """Whether its similarities may come from vectors, a graph or tokens."""
        return bool(getattr(self.method, "takes_source", False))

    @property
    def needs(self) -> frozenset[str]:
        """The inputs that it reads; from a graph without `queries`, the fewest possible."""
        if not self.takes_source:
            by_params = getattr(self.method, "needs_with", None)
            return frozenset(by_params(self.params) if by_params else self.method.needs)
        usual = "none" if self.source == "neighbours" else "encoded"
        needs: frozenset[str] = self.method.needs_from(self.source, self.queries or usual)
        return needs

    def replaced(self, **changed: Any) -> Chosen:
        return replace(self, **changed)


def choose(kind: str, form: Form, of: str = "") -> Chosen:
    """The method of a written form `name:key=value,…` or `{name: {key: value}}`; of: its argument, for messages.

    Raises:
        InputError: unknown method or settings, values out of range.
    """
    with naming(of, form):
        written = Written.read(form)
        method = find(kind, written.name)
        values = method.settings_of(written.params) if hasattr(method, "settings_of") else dict(written.params)
        taken = SOURCES if getattr(method, "takes_source", False) else {}
        sources = {key: str(values.pop(key)) for key in taken if key in values}
        for key, value in sources.items():
            if value not in SOURCES[key]:
                raise InputError(f"{key}={value}: expected one of {', '.join(SOURCES[key])}")
        params = make_params(kind, written.name, values, written.preset or None)
    return Chosen(kind, written.name, params, sources.get("from", "vectors"), sources.get("queries"))


def choose_all(kind: str, forms: Iterable[Form], of: str) -> list[Chosen]:
    """The methods of several written forms, see `choose`; InputError: all their problems."""
    chosen: list[Chosen] = []
    wrong = problems_of(*(lambda form=form: chosen.append(choose(kind, form, of)) for form in forms))
    refuse(*((True, problem) for problem in wrong))
    return chosen


def naming(of: str, form: Form) -> AbstractContextManager[None]:
    """A block that reads a written form: its errors begin with the argument `of`; "" = unchanged."""
    return located(argument(of, form) if of else "")


def needs_together(chosen: Iterable[Chosen]) -> frozenset[str]:
    return frozenset[str]().union(*(one.needs for one in chosen))


def as_list(forms: Form | Sequence[Form] | None) -> list[Form]:
    return [] if forms is None else [*forms] if isinstance(forms, list | tuple) else [forms]  # type: ignore[list-item]
