"""Field types of specs, and methods in the form of their commands."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo

from rnnreranker.base.arguments import flag
from rnnreranker.base.chosen_method import choose
from rnnreranker.base.errors import InputError, UnavailableError, nearest, refuse
from rnnreranker.base.method import PACKAGE, find, setting_of
from rnnreranker.base.private.python import flags_of_parser
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.data import local
from rnnreranker.data.names import BUILT_IN_TOPICS, is_path, left_out
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.index.request import choose_part
from rnnreranker.labels.negatives import choose_filter
from rnnreranker.parts.base import part, parts_of
from rnnreranker.runs.fuse import fusion
from rnnreranker.search.request import passages
from rnnreranker.train.request import training_of

if TYPE_CHECKING:
    from rnnreranker.labels.request import ChosenLabeler

MODULES = {"tuning": "tune", "recovery": "recover", "diagnosis": "diagnose"}  # kind of work
LABEL_OPTIONS = ("depth", "relevant", "pairs")  # of `python -m rnnreranker.labels`, among the settings of specs
KEY = "model"  # `{model: ID}` among settings: the folder of a model that the same spec trains
MODEL_OPTIONS = ("arms", "encoder")  # of works, that may name models


def models_in(value: Any) -> Iterator[str]:
    """The ids of models in a setting, a method, or settings in lists and mappings.

    >>> list(models_in({"encoders": ["minilm", {"model": "mine"}], "context": 100}))
    ['mine']
    """
    value = list(value.params.values()) if isinstance(value, Written) else value
    if isinstance(value, dict) and set(value) == {KEY}:
        yield str(value[KEY])
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from models_in(inner)


def with_folders(value: Any, folder: Callable[[str], str | Path] = "runs/models/{}".format) -> Any:
    """A setting as its command reads it: folders for models, lists joined by commas.

    >>> with_folders({"encoders": ["minilm", {"model": "mine"}], "context": 100}, "runs/{}".format)
    {'encoders': 'minilm,runs/mine', 'context': 100}
    """
    if isinstance(value, dict):
        if set(value) == {KEY}:
            return str(folder(str(value[KEY])))
        return {name: with_folders(inner, folder) for name, inner in value.items()}
    if isinstance(value, list):
        return ",".join(str(with_folders(inner, folder)) for inner in value)
    return value


def use_with_folders(use: Written, folder: Callable[[str], str | Path] = "runs/models/{}".format) -> Written:
    """A method with its settings as its command reads them."""
    return dataclasses.replace(use, params={key: with_folders(value, folder) for key, value in use.params.items()})


def module_of(name: str) -> str:
    """The module of `python -m rnnreranker.NAME`.

    >>> module_of("search"), module_of("fuse")
    ('rnnreranker.search.__main__', 'rnnreranker.fuse')
    """
    return f"{PACKAGE.name}.{name}.__main__" if (PACKAGE / name).is_dir() else f"{PACKAGE.name}.{name}"


def spec_part(name: str, its: Any, folder: Callable[[str], str | Path] = "runs/models/{}".format) -> Written:
    """A part of an index with its settings in a spec.

    Raises:
        InputError: an unknown part, settings that are no mapping.
    """
    refuse((not isinstance(its, dict | None), f"{name}: {its!r}; expected its settings, as {{}}"))
    choose_part(Written(name))
    return Written(name, part(name).settings_of(with_folders(its or {}, folder)))


def check_part(name: str, its: Any) -> tuple[str, ...]:
    """The parts that a part can be made of.

    Raises:
        InputError: an unknown part or setting, a value out of range.
    """
    return tuple(part(name).origins(choose_part(spec_part(name, its)).params))


def parts_read(kind: str, use: Written) -> set[str]:
    """The parts of an index that a method reads."""
    return parts_of(choose(kind, use_with_folders(use)).needs)


def has_context(use: Written) -> bool:
    """Whether a reranker has a setting `context`."""
    return "context" in hints_of(find("reranker", use.name).Params)


def check_labels(use: Written) -> ChosenLabeler:
    """The labeler of labels.

    Raises:
        InputError: an unknown method, setting, option or source, a value out of range.
    """
    from rnnreranker.labels.request import choose_labeler

    own, options = labels_options(use_with_folders(use))
    pairs = options.pop("pairs", "x")
    refuse(
        (
            not (isinstance(pairs, str) and pairs),
            f"labels pairs: {pairs!r}; expected the name of a data set with pairs",
        ),
        *(
            (type(value) is not int or value < 1, f"labels {name}: {value!r}; expected an integer >= 1")
            for name, value in options.items()
        ),
    )
    return choose_labeler(own)


def labels_options(use: Written) -> tuple[Written, dict[str, Any]]:
    """A method of labels, and the options of the command among its settings.

    >>> labels_options(Written("hard", {"depth": 100}))
    (Written(name='hard', params={}, preset=''), {'depth': 100})
    """
    options = {name: value for name, value in use.params.items() if name in LABEL_OPTIONS}
    own = {name: value for name, value in use.params.items() if name not in options}
    return Written(use.name, own, use.preset), options


@functools.cache
def flags_of(module: str) -> frozenset[str]:
    """The flags of `python -m rnnreranker.<module>`."""
    return frozenset(flags_of_parser(importlib.import_module(module_of(module)).make_parser()))


def check_work(kind: str, given: dict[str, Any]) -> None:
    """Check the options of a study, a tuning, …

    Raises:
        InputError: an unknown option, method or setting, a value out of range, a condition without a query set.
    """
    module = MODULES.get(kind, kind)
    flags = flags_of(module)
    known = sorted(name.removeprefix("--").replace("-", "_") for name in flags if name.startswith("--"))
    known += ["query_set", "of"]
    unknown = [
        f"{name}; {setting_of(flag(str(name)), flags) or nearest(str(name), known)}"
        for name in given
        if name not in known
    ]
    refuse(
        (unknown, f"{module} has no option {', no option '.join(unknown)}"),
        ("of" in given and "query_set" not in given, "of: needs the query set of the run; give query_set"),
    )
    beside_parts(given)
    if kind != "study":
        return
    from rnnreranker.lab.study.request import EVERYDAY, StudyRequest, check

    options = {name: value for name, value in given.items() if name not in ("query_set", "of")}
    options |= {key: with_folders(options[key]) for key in MODEL_OPTIONS if key in options}
    typed = {name: options.pop(name) for name in EVERYDAY if name in options}
    model = Written.read(options.pop("model", StudyRequest.model)).beside(typed, "model")
    named = {name: options.pop(name, name) for name in ("index", "topics", "qrels")}
    check(StudyRequest(**named, **options, model=model))


def beside_parts(options: dict[str, Any]) -> set[str]:
    """The parts of an index that the teachers of a recovery read.

    Raises:
        InputError: an unknown teacher or setting.
    """
    from rnnreranker.lab.recover.teachers import choose_teacher, needs_of

    return parts_of(needs_of([choose_teacher(use_with_folders(use)) for use in beside_uses(options)]))


def beside_uses(options: dict[str, Any]) -> list[Written]:
    forms = options.get("beside", [])
    if not isinstance(forms, list):
        raise InputError(f"beside: {forms}; expected a list of teachers")
    return [Written.read(form) for form in forms]


TEXTS = ("agreement", "files")
UNITS = {  # of sizes that steps need
    "download_gb": "GB to download",
    "disk_gb": "GB of disk",
    "ram_gb": "GB of memory",
    "gpu_hours": "hours of a GPU",
    "hours": "hours of computing",
}


def _use(check: Callable[[Written], Any]) -> PlainValidator:
    """Reads a method with its settings, and checks it as its command does."""

    def read(value: Any) -> Written:
        use = Written.read(value)
        check(use_with_folders(use))
        return use

    return PlainValidator(read)


def listed(value: Any) -> tuple[Any, ...]:
    """A list as a tuple; () for null."""
    if not isinstance(value, list | tuple | None):
        raise ValueError(f"{value!r}; expected a list with at least one entry")
    return tuple(value or ())


def _measure(name: str) -> str:
    parse_measures([name])
    return name


def _protocol(name: str) -> str:
    refuse((name not in PROTOCOLS, f"protocol {name}; {nearest(name, PROTOCOLS)}"))
    return name


def _data(kind: str) -> AfterValidator:
    """Looks up the name of documents, topics or judgements; a step looks for files."""

    def check(name: str, info: ValidationInfo) -> str:
        if name and (info.context or {}).get("data"):
            _look_up(name, kind)
        return name

    return AfterValidator(check)


def _look_up(name: str, kind: str) -> None:
    from rnnreranker.data import irds

    name, others = left_out(name)
    for other in others:
        _look_up(other, "topics")
    if is_path(name) or name in BUILT_IN_TOPICS:
        return
    try:
        if local.source(name, kind) == name:
            irds.load(name)
    except UnavailableError:
        return  # known, and not here: the step that needs it says so


def _needs(needs: dict[str, Any]) -> dict[str, Any]:
    for key, value in needs.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        refuse(
            (key not in (*UNITS, *TEXTS), f"needs {key}; {nearest(str(key), (*UNITS, *TEXTS))}"),
            (key in UNITS and not number, f"needs {key}: {value!r}; expected a number >= 0"),
            (key in TEXTS and not isinstance(value, str), f"needs {key}: {value!r}; expected a text"),
        )
    return needs


def _start(start: Any) -> Any:
    refuse((not isinstance(start, str | dict), f"start {start!r}: expected a name or {{model: ID}}"))
    return start


Positive = Annotated[int, Field(gt=0)]
Bounds = Annotated[  # fewest and most; a number is both
    tuple[Positive, Positive], BeforeValidator(lambda count: tuple(count if isinstance(count, list) else [count] * 2))
]
Protocol = Annotated[str, AfterValidator(_protocol)]
Start = Annotated[Any, AfterValidator(_start)]  # a name or {model: ID}
Names = Annotated[tuple[str, ...], BeforeValidator(listed)]
Measures = Annotated[tuple[Annotated[str, AfterValidator(_measure)], ...], BeforeValidator(listed)]
Protocols = Annotated[tuple[Protocol, ...], BeforeValidator(listed)]
Topics = Annotated[str, _data("topics")]
Qrels = Annotated[str, _data("qrels")]
Documents = Annotated[str, _data("documents")]
Needs = Annotated[dict[str, Any], AfterValidator(_needs)]
Retriever = Annotated[Written, _use(partial(choose, "retriever"))]
Reranker = Annotated[Written, _use(partial(choose, "reranker"))]
Feedback = Annotated[Written, _use(partial(choose, "feedback"))]
Expander = Annotated[Written, _use(partial(choose, "expander"))]
Fusion = Annotated[Written, _use(lambda use: fusion(use, 0, "fuse"))]
Aggregation = Annotated[Written, _use(passages)]
Labels = Annotated[Written, _use(check_labels)]
Filter = Annotated[Written, _use(choose_filter)]
Training = Annotated[Written, _use(training_of)]


def needs_of(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Needs in all: sums of sizes and hours, the largest memory, each agreement and file once."""
    total: dict[str, Any] = {}
    for needs in several:
        for key, value in needs.items():
            if isinstance(value, str):
                texts = total.setdefault(key, "")
                total[key] = texts if value in texts else "; ".join(filter(None, (texts, value)))
            else:
                together = max if key == "ram_gb" else operator.add
                total[key] = together(total.get(key, 0), value)
    return total


def needs_text(needs: Mapping[str, Any]) -> str:
    """Needs in words.

    >>> needs_text({"disk_gb": 2, "hours": 1})
    '2 GB of disk, 1 hour of computing'
    """
    texts = [f"{value:g} {UNITS[key]}" if key in UNITS else str(value) for key, value in needs.items()]
    return ", ".join(text.replace("hours", "hour", 1) if text.startswith("1 hours") else text for text in texts)
