"""Methods: classes with a name, read from the files of their kind or from entry points, and the inputs they read.

The class of a method has `name` (on the command line and in YAML), `needs` (the inputs of GIVEN, and of what parts
give) and `Params` (its settings).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from rnnreranker.base.errors import InputError, argument, cut, nearest, refuse
from rnnreranker.base.settings import PRESET, Params, Written, check_names, hints_of, located, shown

PACKAGE = Path(__file__).resolve().parents[1]
GIVEN = ("run scores", "topics", "query vectors", "texts", "qrels")  # to methods, besides what parts give
BESIDE = {  # attribute of a method's class with settings beside its `Params` → their title
    "OfEncoder": "settings of its encoder, which may be among them or behind its name, NAME:KEY=VALUE:",
    "Beside": "settings of every one of its kind, in the same written form:",
}


class Kind(NamedTuple):
    """The files of the methods of a kind, and their group of entry points; imported: to know their names."""

    files: str
    group: str
    imported: bool = False


KINDS = {
    "retriever": Kind("methods/retrieve/*.py", "rnnreranker.retrievers"),
    "feedback": Kind("methods/feedback/*.py", "rnnreranker.feedback"),
    "reranker": Kind("methods/rerank/*.py", "rnnreranker.rerankers"),
    "expander": Kind("methods/expand/*.py", "rnnreranker.expanders"),
    "part": Kind("parts/*/part.py", "rnnreranker.parts", imported=True),
    "labeler": Kind("labels/methods/*.py", "rnnreranker.labelers"),
    "loss": Kind("train/losses.py", "rnnreranker.losses"),
    "trained-model": Kind("train/models.py", "rnnreranker.trained_models"),
    "encoder": Kind("encode/named.py", "rnnreranker.encoders", imported=True),
    "sparse-encoder": Kind("encode/named.py", "rnnreranker.sparse_encoders", imported=True),
    "late-encoder": Kind("encode/named.py", "rnnreranker.late_encoders", imported=True),
    "cross-encoder": Kind("encode/named.py", "rnnreranker.cross_encoders", imported=True),
}
NAMED = re.compile(r'^    name(?:: ClassVar\[str\])? = "(.+)"$', re.MULTILINE)  # in the class of a method


def names(kind: str) -> list[str]:
    """The names of all methods of a kind, those of this package first; imports only parts.

    Raises:
        InputError: another package uses a name that is taken.

    >>> names("loss")[-3:]
    ['margin-mse', 'multi-tier', 'triplet']
    """
    return [*_own(kind), *_foreign(kind)]


def find(kind: str, name: str) -> Any:
    """The class of a method; imports only its own file.

    Raises:
        InputError: unknown method (with the nearest names), or an unusable one of another package.
    """
    if name in _own(kind):
        return next(one for one in _classes(_own(kind)[name]) if one.name == name)
    if (entry := _foreign(kind).get(name)) is None:
        raise InputError(f"{cut(name)}: no such {kind}; {nearest(name, names(kind))}")
    where = f"{kind} {name} of {entry.value}"
    try:
        method = entry.load()
    except Exception as error:  # whatever the other package raises while it is imported
        raise InputError(f"{where}: cannot be loaded ({type(error).__name__}: {error}); mend or remove it") from error
    if getattr(method, "name", None) != name or not issubclass(getattr(method, "Params", object), Params):
        raise InputError(f"{where}: expected a class with this name, and Params of rnnreranker.plugins.Params")
    return method


def methods(kind: str) -> dict[str, Any]:
    return {name: find(kind, name) for name in names(kind)}


def make_params(kind: str, name: str, values: dict[str, Any], preset: str | None = None) -> Any:
    """The settings of a method: the given values, then those of a preset, then the defaults.

    Raises:
        InputError: unknown method, settings or preset, values out of range.
    """
    method = find(kind, name)
    if preset is not None and getattr(method, "inner", None):
        values, preset = {**values, PRESET: preset}, None  # of the method inside
    own = check_names(with_inner(method, values), fields_of(method))
    usual = defaults_of(method)
    return dataclasses.replace(usual if preset is None else method.Params.named(preset, usual), **own)


def with_inner(method: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a method with another one inside, as `prf` with a feedback: its unknown settings go to the inner one.

    Its `inner` is (setting with the inner method's written form, kind of the inner method).

    >>> with_inner(find("reranker", "prf"), {"feedback": "rocchio", "fb_docs": 3, "context": 100})
    {'feedback': 'rocchio:fb_docs=3', 'context': 100}
    """
    if (inner := getattr(method, "inner", None)) is None:
        return dict(values)
    known = fields_of(method)
    own = {key: value for key, value in values.items() if key in known}
    form = Written.read(own.get(inner[0], getattr(defaults_of(method), inner[0])))
    others = {key: value for key, value in values.items() if key not in known}
    return own | {inner[0]: str(form.beside(others, inner[0]))}


def settings_of(method: Any, kind: str, params: Any) -> Any:
    """The given settings of a method, the defaults for None; InputError: those of another method."""
    if params is not None and not isinstance(params, method.Params):
        raise InputError(f"{kind} {method.name}: got {type(params).__name__}, expected {method.Params.__name__}")
    return params if params is not None else method.Params()


def defaults_of(method: Any) -> Params:
    """The default settings of a method: its `defaults`, or those of its `Params`."""
    return getattr(method, "defaults", None) or method.Params()


def fields_of(method: Any) -> list[str]:
    """The names of a method's settings, except those in its `without`."""
    return [name for name in hints_of(method.Params) if name not in getattr(method, "without", ())]


@functools.cache
def _own(kind: str) -> dict[str, str]:
    """Name → module of the methods of this package, in the order of their `rank` and name."""
    files, _, imported = KINDS[kind]
    known = []
    for path in PACKAGE.glob(files):
        module = ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts))
        if imported:
            classes = [one for one in _classes(module) if getattr(one, "kind", kind) == kind]
            known += [(getattr(one, "rank", 0), one.name, module) for one in classes]
        else:
            known += [(0, name, module) for name in NAMED.findall(path.read_text(encoding="utf-8"))]
    return {name: module for _, name, module in sorted(known)}


def _classes(module: str) -> list[Any]:
    """The classes with a name of their own that a module defines."""
    classes = [one for one in vars(importlib.import_module(module)).values() if isinstance(one, type)]
    return [one for one in classes if one.__module__ == module and isinstance(vars(one).get("name"), str)]


@functools.cache
def _foreign(kind: str) -> dict[str, metadata.EntryPoint]:
    entry_of: dict[str, metadata.EntryPoint] = {}
    for entry in metadata.entry_points(group=KINDS[kind].group):
        if entry.name in _own(kind) or entry_of.setdefault(entry.name, entry).value != entry.value:
            raise InputError(
                f"{kind} {entry.name} of {entry.value}: the name is taken; the package must choose another"
            )
    return entry_of


class Inputs:
    """The inputs of methods, each loaded at its first use and then kept.

    Args:
        sources: by the names of `needs` with _ for a space: the input, or a function that loads it.

    >>> inputs = Inputs(topics={"q1": "wing"}, texts=lambda: {"d1": "a wing"})
    >>> inputs.texts
    {'d1': 'a wing'}
    """

    def __init__(self, **sources: Any) -> None:
        self._sources = {name: source for name, source in sources.items() if source is not None}
        self.compared: Any = None  # the query vectors that were compared with those of the documents

    def has(self, need: str) -> bool:
        """Whether there is an input for a name of `needs`; loads nothing."""
        return need.replace(" ", "_") in self._sources

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._sources:
            raise InputError(f"{name.replace('_', ' ')} are needed and were not given")
        source = self._sources[name]
        setattr(self, name, source() if callable(source) else source)
        return getattr(self, name)


def listed() -> Iterator[str]:
    """A line for each kind of method, and for each method: name and first line of its docstring."""
    for kind in KINDS:
        yield f"{kind}:"
        for name in names(kind):
            yield f"  {name:22} {first_line(find(kind, name))}"


def described(name: str) -> Iterator[str]:
    """The settings of all methods of a name, in lines; InputError: unknown method."""
    kinds = [kind for kind in KINDS if name in names(kind)]
    if not kinds:
        raise InputError(f"{name}: no such method, {nearest(name, {one for kind in KINDS for one in names(kind)})}")
    for kind in kinds:
        method = find(kind, name)
        yield f"{kind} {name}: {first_line(method)}"
        if presets := sorted(method.Params.presets):
            yield f"  preset={'|'.join(presets)}, or a YAML file"
        yield from _settings(defaults_of(method), fields_of(method))
        if inner := getattr(method, "inner", None):
            yield f"and in the same written form those of the {inner[1]} that {inner[0]} names"
        for beside, title in BESIDE.items():
            if hints := hints_of(params := getattr(method, beside, Params)):
                yield title
                yield from _settings(params(), hints)


def _settings(usual: Any, names: Iterable[str]) -> Iterator[str]:
    """Two lines a setting: its default and help, and the values it takes."""
    for hint in (hints_of(type(usual))[name] for name in names):
        default = shown(getattr(usual, hint.field.name))
        yield f"  {hint.field.name}={default}  {hint.about['help']}\n    {hint.expected}"


def first_line(method: Any) -> str:
    return next(iter((method.__doc__ or "").strip().splitlines()), "")


class Usual(str):
    """A reranker that is dropped if the index lacks its inputs."""


RNN = Usual("rnn")
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
        return self.method.needs_from(self.source, self.queries or usual, self.params)

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
    refuse(*(lambda form=form: chosen.append(choose(kind, form, of)) for form in forms))
    return chosen


def naming(of: str, form: Form) -> AbstractContextManager[None]:
    """A block that reads a written form: its errors begin with the argument `of`; "" = unchanged."""
    return located(argument(of, form) if of else "")


def needs_together(chosen: Iterable[Chosen]) -> frozenset[str]:
    return frozenset[str]().union(*(one.needs for one in chosen))


def as_list(forms: Form | Sequence[Form] | None) -> list[Form]:
    return [] if forms is None else [*forms] if isinstance(forms, list | tuple) else [forms]  # type: ignore[list-item]
