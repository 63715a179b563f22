"""Methods as specs name them: checked through their own settings, and written as words of a command line."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import flag
from rnnreranker.base.chosen_method import choose
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find
from rnnreranker.base.method_lists import setting_of
from rnnreranker.base.private.python import flags_of_parser
from rnnreranker.base.settings import hints_of, words
from rnnreranker.base.written_form import Written
from rnnreranker.index.request import USUAL, choose_part
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.parts.needs import part, parts_of
from rnnreranker.regress.specs.model_names import MODEL_OPTIONS, use_with_folders, with_folders
from rnnreranker.regress.specs.spec import MODULES, IndexEntry, Work

if TYPE_CHECKING:
    from rnnreranker.labels.request import ChosenLabeler

LABEL_OPTIONS = ("depth", "relevant", "pairs")  # of `python -m rnnreranker.labels`, among the settings of specs
PACKAGE = Path(__file__).resolve().parents[2]


def module_of(name: str) -> str:
    """The module behind `python -m rnnreranker.NAME`: the `__main__` of a folder, else the file itself.

    >>> module_of("search"), module_of("fuse")
    ('rnnreranker.search.__main__', 'rnnreranker.fuse')
    """
    return f"{PACKAGE.name}.{name}.__main__" if (PACKAGE / name).is_dir() else f"{PACKAGE.name}.{name}"


def arguments(use: Written, kind: str = "") -> list[str]:
    """The settings of a method as words of a command line; kind: of method, for settings whose flags have other names.

    >>> arguments(Written("rnn", {"lam": 0.5, "normalize": None}, "tas-b"))
    ['--preset', 'tas-b', '--lam', '0.5', '--normalize', 'none']
    """
    of = find(kind, use.name).Params if kind else None
    return [*(["--preset", use.preset] if use.preset else []), *words(use.params, of)]


def option_words(name: str, value: Any) -> Iterator[str]:
    """An option of a command: a list stands behind its flag word by word, methods with settings as they are written.

    >>> list(option_words("methods", ["query", {"joint": {"mass": "share"}}]))
    ['--methods', 'query', 'joint:mass=share']
    """
    if isinstance(value, list):
        yield from (flag(name), *(str(Written.read(one)) if isinstance(one, dict) else str(one) for one in value))
    elif isinstance(value, dict):
        yield from (flag(name), *(str(Written.read({key: its})) for key, its in value.items()))
    else:
        yield from words({name: value})


def spec_part(name: str, its: Any, folder: Callable[[str], str | Path] = "runs/models/{}".format) -> Written:
    """A part of an index with the settings that a spec has for it, those of its encoder in the form of the encoder.

    Raises:
        InputError: no such part, settings that are no mapping.
    """
    if not isinstance(its, dict | None):
        raise InputError(f"{name}: {its!r}; expected its settings, as {{}}")
    choose_part(Written(name))
    return Written(name, part(name).settings_of(with_folders(its or {}, folder)))


def check_part(name: str, its: Any, index: IndexEntry) -> None:
    """Nothing, when there is such a part, it takes these settings, and can be made in the index.

    Raises:
        InputError: no such part, settings that it does not have, values out of range, no part that it is made of.
    """
    params, kind = choose_part(spec_part(name, its)).params, part(name)
    if kind.made_of and (index.prebuilt or not {*kind.origins(params)} & {*index.parts}):
        raise InputError(f"index {index.id}: {name} is made of {' or '.join(kind.origins(params))}, which it lacks")
    if name == USUAL and "encoder" not in (its or {}):
        raise InputError(f"index {index.id}: {name} needs an encoder, as {name}: {{encoder: minilm}}")


def check_use(kind: str, use: Written, index: IndexEntry | None = None) -> None:
    """Nothing, when there is such a method, it takes these settings, and the index, if there is one, has what it needs.

    kind: retriever, feedback, expander, reranker, fusion or aggregation.

    Raises:
        InputError: no such method, settings it does not take, an index without the part that it reads.
    """
    if kind == "fusion":
        from rnnreranker.runs.fuse import fusion

        fusion(use, 0, "fuse")
    elif kind == "aggregation":
        from rnnreranker.search.request import passages

        passages(use)
    else:
        chosen = choose(kind, use_with_folders(use))
        if index is not None and (lacking := sorted(parts_of(chosen.needs) - set(index.parts))):
            raise InputError(f"{kind} {use.name}: index {index.id} has no part {' and no part '.join(lacking)}")


def check_prf(use: Written, retrieval: Written) -> None:
    """Nothing, when there is such feedback, it takes these settings, and the retriever can search again by it.

    Raises:
        InputError: as `check_use`; a retriever that cannot.
    """
    check_use("feedback", use)
    check_feedback(use.name, [retrieval.name])


def check_rerank(uses: Sequence[Written], index: IndexEntry | None, sweep: bool) -> None:
    """Nothing, when there are such rerankers, they take these settings, and the index has what they need.

    Raises:
        InputError: as `check_use`; a sweep over contexts of rerankers that have none, or that states one.
    """
    for use in uses:
        check_use("reranker", use, index)
    if sweep and any("context" in use.params for use in uses):
        raise InputError("context: stands here, and contexts too; leave one out")
    if sweep and not any(map(has_context, uses)):
        raise InputError(f"contexts: {', '.join(use.name for use in uses)} has no context")


def has_context(use: Written) -> bool:
    """Whether a reranker has a number of candidates that take part."""
    return "context" in hints_of(find("reranker", use.name).Params)


def check_labels(use: Written, index: IndexEntry | None = None) -> None:
    """Nothing, when `python -m rnnreranker.labels` takes this method and options, and the index has what they read.

    Raises:
        InputError: no such method, options that it does not have, values out of range, a source that is not for it, no
            index or one without a part.
    """
    _, options = labels_options(use)
    for name, value in options.items():
        if name == "pairs":
            if not isinstance(value, str) or not value:
                raise InputError(f"labels pairs: {value!r}; expected the name of a data set with pairs, or of a file")
        elif type(value) is not int or value < 1:
            raise InputError(f"labels {name}: {value!r}; expected an integer >= 1")
    if lacking := sorted(parts_of_labels(use) - set(index.parts if index else ())):
        named = f"index {index.id} has no part" if index else "give an `index` with the part"
        raise InputError(f"labels {use.name}: {named} {' and '.join(lacking)}")


def labels_options(use: Written) -> tuple[Written, dict[str, Any]]:
    """A method of labels with its settings, and options of the command that stand among them in a spec.

    >>> labels_options(Written("hard", {"depth": 100}))
    (Written(name='hard', params={}, preset=''), {'depth': 100})
    """
    options = {name: value for name, value in use.params.items() if name in LABEL_OPTIONS}
    own = {name: value for name, value in use.params.items() if name not in options}
    return Written(use.name, own, use.preset), options


def parts_of_labels(use: Written) -> set[str]:
    """The parts of an index that labels read.

    Raises:
        InputError: settings that they do not have, values out of range, a source or a teacher that there is not.
    """
    return parts_of(_labeler(use).needs)


def labels_on_gpu(use: Written) -> bool:
    """Whether a GPU can make labels."""
    return _labeler(use).takes_device


def _labeler(use: Written) -> ChosenLabeler:
    from rnnreranker.labels.request import choose_labeler

    return choose_labeler(labels_options(use_with_folders(use))[0])


def check_negatives(use: Written) -> None:
    """Nothing, when `python -m rnnreranker.negatives` takes this filter and these settings.

    Raises:
        InputError: no such filter, settings that it does not have, values out of range.
    """
    from rnnreranker.labels.negatives.make import choose_filter

    choose_filter(use_with_folders(use))


def check_training(use: Written) -> None:
    """Nothing, when `python -m rnnreranker.train` takes these options.

    Raises:
        InputError: no such kind of model, options that it does not have, values out of range.
    """
    from rnnreranker.train.request import training_of

    training_of(use_with_folders(use))


@functools.cache
def flags_of(module: str) -> frozenset[str]:
    """The flags of `python -m rnnreranker.<module>`."""
    return frozenset(flags_of_parser(importlib.import_module(module_of(module)).make_parser()))


def options_of(module: str) -> list[str]:
    """The flags of a command as keys of YAML."""
    return sorted(name.removeprefix("--").replace("-", "_") for name in flags_of(module) if name.startswith("--"))


def check_work(work: Work, index: IndexEntry | None = None) -> None:
    """Nothing, when the command of a study, a tuning, … has these options, and its index what they read of it.

    Raises:
        InputError: options that it does not have, a condition without a query set, an index without a part.
    """
    known = [*options_of(MODULES[work.kind]), "query_set", "of"]
    flags = flags_of(MODULES[work.kind])
    unknown = [
        f"{name}; {setting_of(flag(str(name)), flags) or nearest(str(name), known)}"
        for name in work.options
        if name not in known
    ]
    if unknown:
        raise InputError(f"{MODULES[work.kind]} has no option {', no option '.join(unknown)}")
    if "of" in work.options and "query_set" not in work.options:
        raise InputError("of: needs the query set of the run; give query_set")
    read = beside_parts(work)
    if index is not None and (lacking := [part for part in read if part not in index.parts]):
        raise InputError(f"beside: index {index.id} has no part {' and no part '.join(lacking)}")
    if work.kind == "study":
        check_study(work)


def check_study(work: Work) -> None:
    """Nothing, when `python -m rnnreranker.study` takes these options, those of its training and of its arms too.

    Raises:
        InputError: methods or settings that there are not, values out of range, options that do not belong together.
    """
    from rnnreranker.lab.study.request import EVERYDAY, StudyRequest, check

    options = {name: value for name, value in work.options.items() if name not in ("query_set", "of")}
    for key in [key for key in MODEL_OPTIONS if key in options]:
        options[key] = with_folders(options[key], "runs/models/{}".format)
    typed = {name: options.pop(name) for name in EVERYDAY if name in options}
    model = Written.read(options.pop("model", StudyRequest.model)).beside(typed, "model")
    named = {name: options.pop(name, name) for name in ("index", "topics", "qrels")}
    check(StudyRequest(**named, **options, model=model))


def beside_parts(work: Work) -> list[str]:
    """The parts of an index that the teachers of a recovery read.

    Raises:
        InputError: no such teacher, settings that it does not have.
    """
    from rnnreranker.lab.recover.teachers import choose_teacher, needs_of

    return sorted(parts_of(needs_of([choose_teacher(use_with_folders(use)) for use in beside_uses(work)])))


def beside_uses(work: Work) -> list[Written]:
    """The teachers of a recovery, as the spec names them.

    Raises:
        InputError: no list of methods.
    """
    forms = work.options.get("beside", [])
    if not isinstance(forms, list):
        raise InputError(f"beside: {forms}; expected a list of teachers")
    return [Written.read(form) for form in forms]
