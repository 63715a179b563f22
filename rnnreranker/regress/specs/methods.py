"""Field types of specs, and methods in the form of their commands."""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, PositiveInt

from rnnreranker.base.chosen_method import choose
from rnnreranker.base.errors import nearest, refuse
from rnnreranker.base.method import PACKAGE, find
from rnnreranker.base.private.python import flags_of_parser
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.data.names import left_out
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.labels.negatives import choose_filter
from rnnreranker.parts.base import part, parts_of
from rnnreranker.runs.fuse import fusion
from rnnreranker.search.request import passages
from rnnreranker.train.request import training_of

if TYPE_CHECKING:
    from rnnreranker.labels.request import ChosenLabeler

Folder = Callable[[str], Any]
MODEL = "model"  # `{model: ID}` among settings: the folder of a model that the same spec trains
MODELS: Folder = "runs/models/{}".format
LABEL_OPTIONS = ("depth", "relevant", "pairs")  # of `python -m rnnreranker.labels`, among the settings of specs


def with_folders(value: Any, folder: Folder = MODELS) -> Any:
    """A setting, or a method with its settings, as a command reads it: folders for models, lists joined by commas.

    >>> with_folders({"encoders": ["minilm", {"model": "mine"}], "context": 100}, "runs/{}".format)
    {'encoders': 'minilm,runs/mine', 'context': 100}
    """
    if isinstance(value, Written):
        return replace(value, params={key: with_folders(its, folder) for key, its in value.params.items()})
    if isinstance(value, dict):
        if set(value) == {MODEL} and isinstance(value[MODEL], str):
            return str(folder(value[MODEL]))
        return {key: with_folders(its, folder) for key, its in value.items()}
    return ",".join(str(with_folders(one, folder)) for one in value) if isinstance(value, list) else value


def models_in(value: Any) -> list[str]:
    """The ids of models in a setting, a method, or settings in lists and mappings.

    >>> models_in({"encoders": ["minilm", {"model": "mine"}], "context": 100})
    ['mine']
    """
    named: list[str] = []
    with_folders(value, named.append)
    return named


def spec_part(name: str, its: dict[str, Any] | None, folder: Folder = MODELS) -> Written:
    """A part of an index with its settings in a spec; InputError: an unknown part or setting of an encoder."""
    return Written(name, part(name).settings_of(with_folders(its or {}, folder)))


def parts_read(kind: str, use: Written) -> set[str]:
    """The parts of an index that a method reads."""
    return parts_of(choose(kind, with_folders(use)).needs)


def has_context(use: Written) -> bool:
    """Whether a reranker has a setting `context`."""
    return "context" in hints_of(find("reranker", use.name).Params)


def labels_options(use: Written) -> tuple[Written, dict[str, Any]]:
    """A method of labels, and the options of the command among its settings.

    >>> labels_options(Written("hard", {"depth": 100}))
    (Written(name='hard', params={}, preset=''), {'depth': 100})
    """
    options = {name: value for name, value in use.params.items() if name in LABEL_OPTIONS}
    return replace(use, params={name: its for name, its in use.params.items() if name not in options}), options


def choose_labels(use: Written) -> ChosenLabeler:
    """The labeler of labels; InputError: an unknown method, setting or source, a value out of range."""
    from rnnreranker.labels.request import choose_labeler

    own, options = labels_options(with_folders(use))
    for name, value in options.items():
        good = value and isinstance(value, str) if name == "pairs" else type(value) is int and value > 0
        refuse(
            (not good, f"labels {name}: {value!r}; expected {'a data set' if name == 'pairs' else 'an integer >= 1'}")
        )
    return choose_labeler(own)


@functools.cache
def flags_of(module: str) -> frozenset[str]:
    """The flags of `python -m rnnreranker.<module>`."""
    return frozenset(flags_of_parser(importlib.import_module(f"{PACKAGE.name}.{module}").make_parser()))


def data_sets(name: str, kind: str) -> list[tuple[str, str]]:
    """The data sets in a name, each with its kind: those behind `:without:` are topics."""
    first, others = left_out(name)
    return [(first, kind), *((other, "topics") for other in others)]


TEXTS = ("agreement", "files")
UNITS = {  # of sizes that steps need
    "download_gb": "GB to download",
    "disk_gb": "GB of disk",
    "ram_gb": "GB of memory",
    "gpu_hours": "hours of a GPU",
    "hours": "hours of computing",
}


def _method(check: Callable[[Written], Any]) -> PlainValidator:
    """Reads a method with its settings, and checks it as its command does."""

    def read(value: Any) -> Written:
        use = Written.read(value)
        check(with_folders(use))
        return use

    return PlainValidator(read)


def _measure(name: str) -> str:
    parse_measures([name])
    return name


def _protocol(name: str) -> str:
    refuse((name not in PROTOCOLS, f"protocol {name}; {nearest(name, PROTOCOLS)}"))
    return name


def _needs(needs: dict[str, Any]) -> dict[str, Any]:
    for key, value in needs.items():
        good = isinstance(value, str) if key in TEXTS else type(value) in (int, float) and value >= 0
        refuse(
            (key not in (*UNITS, *TEXTS), f"needs {key}; {nearest(key, (*UNITS, *TEXTS))}"),
            (not good, f"needs {key}: {value!r}; expected {'a text' if key in TEXTS else 'a number >= 0'}"),
        )
    return needs


def _start(start: Any) -> Any:
    refuse((not isinstance(start, str | dict), f"start {start!r}: expected a name or {{model: ID}}"))
    return start


def teacher(use: Written) -> Any:
    """The teacher of a recovery; InputError: an unknown one, or its settings."""
    from rnnreranker.lab.recover.request import choose_teacher

    return choose_teacher(with_folders(use))


Names = list[str]
Start = Annotated[Any, AfterValidator(_start)]
Bounds = Annotated[  # fewest and most; a number is both
    list[PositiveInt],
    BeforeValidator(lambda count: count if isinstance(count, list) else [count, count]),
    Field(min_length=2, max_length=2),
]
Protocol = Annotated[str, AfterValidator(_protocol)]
Protocols = list[Protocol]
Measures = list[Annotated[str, AfterValidator(_measure)]]
Needs = Annotated[dict[str, Any], AfterValidator(_needs)]
Retriever = Annotated[Written, _method(partial(choose, "retriever"))]
Reranker = Annotated[Written, _method(partial(choose, "reranker"))]
Feedback = Annotated[Written, _method(partial(choose, "feedback"))]
Expander = Annotated[Written, _method(partial(choose, "expander"))]
Fusion = Annotated[Written, _method(lambda use: fusion(use, 0, "fuse"))]
Aggregation = Annotated[Written, _method(passages)]
Labels = Annotated[Written, _method(choose_labels)]
Filter = Annotated[Written, _method(choose_filter)]
Training = Annotated[Written, _method(training_of)]
Teacher = Annotated[Written, _method(teacher)]


def needs_of(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Needs in all: sums of sizes and hours, the largest memory, each agreement and file once."""
    total: dict[str, Any] = {}
    for key, value in (one for needs in several for one in needs.items()):
        if isinstance(value, str):
            total[key] = "; ".join(dict.fromkeys([*filter(None, total.get(key, "").split("; ")), value]))
        else:
            total[key] = (max if key == "ram_gb" else operator.add)(total.get(key, 0), value)
    return total


def needs_text(needs: Mapping[str, Any]) -> str:
    """Needs in words.

    >>> needs_text({"disk_gb": 2, "hours": 1})
    '2 GB of disk, 1 hour of computing'
    """
    texts = [f"{value:g} {UNITS[key]}" if key in UNITS else str(value) for key, value in needs.items()]
    return ", ".join(text.replace("hours", "hour", 1) if text.startswith("1 hours") else text for text in texts)
