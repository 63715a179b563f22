"""Methods as specs name them: checked by their own settings, and written as words of a command line."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import flag
from rnnreranker.base.chosen_method import choose
from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.method import PACKAGE, find, setting_of
from rnnreranker.base.private.python import flags_of_parser
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.index.request import choose_part
from rnnreranker.parts.base import part, parts_of

if TYPE_CHECKING:
    from rnnreranker.labels.request import ChosenLabeler

MODULES = {"tuning": "tune", "recovery": "recover", "diagnosis": "diagnose"}  # kind of work
LABEL_OPTIONS = ("depth", "relevant", "pairs")  # of `python -m rnnreranker.labels`, among the settings of specs
KEY = "model"  # `{model: ID}` among settings: the folder of a model that the same spec trains
MODEL_OPTIONS = ("arms", "encoder")  # of works, that may name models


def models_in(value: Any) -> Iterator[str]:
    """The ids of the models that a setting, a method, or settings in lists and mappings name.

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
    """A setting as its command takes it: folders in place of models, the entries of a list joined by commas.

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
    """A method with its settings as its command takes them."""
    return dataclasses.replace(use, params={key: with_folders(value, folder) for key, value in use.params.items()})


def module_of(name: str) -> str:
    """The module behind `python -m rnnreranker.NAME`: the `__main__` of a folder, else the file itself.

    >>> module_of("search"), module_of("fuse")
    ('rnnreranker.search.__main__', 'rnnreranker.fuse')
    """
    return f"{PACKAGE.name}.{name}.__main__" if (PACKAGE / name).is_dir() else f"{PACKAGE.name}.{name}"


def spec_part(name: str, its: Any, folder: Callable[[str], str | Path] = "runs/models/{}".format) -> Written:
    """A part of an index with the settings that a spec has for it, those of its encoder in the form of the encoder.

    Raises:
        InputError: no such part, settings that are no mapping.
    """
    refuse((not isinstance(its, dict | None), f"{name}: {its!r}; expected its settings, as {{}}"))
    choose_part(Written(name))
    return Written(name, part(name).settings_of(with_folders(its or {}, folder)))


def check_part(name: str, its: Any) -> tuple[str, ...]:
    """Check the settings of a part of an index; the parts that it can be made of.

    Raises:
        InputError: no such part, settings that it does not have, values out of range.
    """
    return tuple(part(name).origins(choose_part(spec_part(name, its)).params))


def parts_read(kind: str, use: Written) -> set[str]:
    """The parts of an index that a method reads."""
    return parts_of(choose(kind, use_with_folders(use)).needs)


def has_context(use: Written) -> bool:
    """Whether a reranker has a number of candidates that take part."""
    return "context" in hints_of(find("reranker", use.name).Params)


def check_labels(use: Written) -> ChosenLabeler:
    """Labels as `python -m rnnreranker.labels` makes them.

    Raises:
        InputError: no such method, settings and options that it does not have, values out of range, a source that is
            not for it.
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
    """A method of labels with its settings, and options of the command that stand among them in a spec.

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
    """Check the options of the command of a study, a tuning, …; of a study those of its training and its arms too.

    Raises:
        InputError: options that it does not have, methods or settings that it does not know, values out of range,
            options that do not belong together, a condition without a query set.
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
        InputError: no such teacher, settings that it does not have.
    """
    from rnnreranker.lab.recover.teachers import choose_teacher, needs_of

    return parts_of(needs_of([choose_teacher(use_with_folders(use)) for use in beside_uses(options)]))


def beside_uses(options: dict[str, Any]) -> list[Written]:
    """The teachers of a recovery, as the spec names them.

    Raises:
        InputError: no list of methods.
    """
    forms = options.get("beside", [])
    if not isinstance(forms, list):
        raise InputError(f"beside: {forms}; expected a list of teachers")
    return [Written.read(form) for form in forms]
