"""Methods as specs name them: checked through their own settings, and written as words of a command line."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find, make_params
from rnnreranker.base.settings import Params, flag, hints_of, plain, words
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.regress.source_code import module_of
from rnnreranker.regress.specs.model_names import use_with_folders
from rnnreranker.regress.specs.spec import MODULES, Index, Use, Work

# what a method needs → part of an index
PARTS = {
    **{"query vectors": "dense", "vectors": "dense", "words": "bm25", "impacts": "impact"},
    **{"query tokens": "tokens", "tokens": "tokens", "terms": "terms", "neighbours": "neighbours"},
}
# part → how its settings begin as options of `index`
OF_PART = {"dense": "", "impact": "impact_", "tokens": "token_", "terms": "term_", "bm25": "bm25_"}
SOURCES = {  # of a reranker's similarities
    "from": ("vectors", "neighbours", "tokens"),
    "queries": ("encoded", "run", "none"),
}
LABEL_OPTIONS = {"depth": 1000, "relevant": 1}  # of `python -m rnnreranker.labels`, beside the settings


def arguments(use: Use, kind: str = "") -> list[str]:
    """The settings of a method as words of a command line; kind: of method, for settings whose flags have other names.

    >>> arguments(Use("rnn", {"lam": 0.5, "normalize": None}, "tas-b"))
    ['--preset', 'tas-b', '--lam', '0.5', '--normalize', 'none']
    """
    of = find(kind, use.name).Params if kind else None
    return [*(["--preset", use.preset] if use.preset else []), *words(use.params, of)]


def option_words(name: str, value: Any) -> Iterator[str]:
    """An option of a command: a list stands behind its flag word by word."""
    if isinstance(value, list):
        yield from (flag(name), *map(str, value))
    else:
        yield from words({name: value})


def reranking_words(uses: Sequence[Use]) -> list[str]:
    """Rerankers in their order, then the settings that they share, each once."""
    found = [word for use in uses for word in ("--rerank", use.name)]
    preset = next((use.preset for use in uses if use.preset), "")
    params = {name: value for use in uses for name, value in use.params.items()}
    return [*found, *arguments(Use("", params, preset))]


def with_sources(use: Use) -> tuple[Use, dict[str, Any]]:
    """A reranker without what says where its similarities come from, and that: `from` and `queries`."""
    sources = {name: use.params[name] for name in SOURCES if name in use.params}
    return replace(use, params={name: value for name, value in use.params.items() if name not in sources}), sources


def needs_with(kind: str, name: str, sources: Mapping[str, Any]) -> frozenset[str]:
    """What a method needs, with similarities from there."""
    method = find(kind, name)
    if not sources or kind != "reranker":
        return frozenset(method.needs)
    found: frozenset[str] = method.needs_from(sources.get("from", "vectors"), sources.get("queries", "encoded"))
    return found


def parts_of(needs: Iterable[str]) -> set[str]:
    """The parts of an index that have what methods need."""
    return {PARTS[need] for need in needs if need in PARTS}


def check_use(kind: str, use: Use, index: Index | None = None) -> None:
    """Nothing, when there is such a method, it takes these settings, and the index has what it needs.

    Args:
        kind: retriever, feedback, expander, reranker, fusion or aggregation.
        use: the method.
        index: where there is one.

    Raises:
        InputError: no such method, settings it does not take, an index without the part that it reads.
    """
    if kind == "fusion":
        from rnnreranker.runs.fuse import FuseParams

        _check_fields("fuse", use.params | {"fuse": use.name}, FuseParams)
        return
    if kind == "aggregation":
        from rnnreranker.runs.passages import AGGREGATES, PassageParams

        if use.name not in AGGREGATES:
            raise InputError(f"aggregate {use.name}; {nearest(use.name, AGGREGATES)}")
        _check_fields("aggregate", use.params | {"aggregate": use.name}, PassageParams)
        return
    use, sources = with_sources(use_with_folders(use))
    if sources and not (kind == "reranker" and find(kind, use.name).takes_source):
        raise InputError(f"{', '.join(sources)}: of rnn, not of {kind} {use.name}")
    for name, value in sources.items():
        if value not in SOURCES[name]:
            raise InputError(f"{name}: {value}; {nearest(str(value), SOURCES[name])}")
    make_params(kind, use.name, use.params, use.preset or None)
    parts = parts_of(needs_with(kind, use.name, sources))
    if index is not None and (lacking := sorted(parts - set(index.parts))):
        raise InputError(f"{kind} {use.name}: index {index.id} has no part {' and no part '.join(lacking)}")


def check_prf(use: Use, retrieval: Use) -> None:
    """Nothing, when there is such feedback, it takes these settings, and the retriever can search again by it.

    Raises:
        InputError: as `check_use`; a retriever that cannot.
    """
    check_use("feedback", use)
    check_feedback(use.name, [retrieval.name])


def check_rerank(uses: Sequence[Use], index: Index | None, sweep: bool) -> None:
    """Nothing, when one search command can take all these rerankers one after the other.

    Raises:
        InputError: as `check_use`; two of them that need different values of the same flag; a sweep over contexts of
            rerankers that have none, or that states one.
    """
    uses = [use_with_folders(use) for use in uses]
    for use in uses:
        check_use("reranker", use, index)
    taking = [use for use in uses if find("reranker", use.name).takes_source]
    if len({tuple(with_sources(use)[1].items()) for use in taking}) > 1:
        raise InputError("from, queries: the rerankers have different ones; one command has one: make two conditions")
    uses = [with_sources(use)[0] for use in uses]
    made = {use.name: make_params("reranker", use.name, use.params, use.preset or None) for use in uses}
    for name in dict.fromkeys(name for use in uses for name in use.params):
        values = {one: getattr(params, name) for one, params in made.items() if hasattr(params, name)}
        if len(set(values.values())) > 1:
            shown = ", ".join(f"{value} of {one}" for one, value in values.items())
            raise InputError(f"{name}: {shown}; one command has one value of it: make two conditions")
    if len({use.preset for use in uses if find("reranker", use.name).Params.presets}) > 1:
        raise InputError("preset: the rerankers have different ones; one command has one: make two conditions")
    if sweep and any("context" in use.params for use in uses):
        raise InputError("context: stands here, and contexts too; leave one out")
    if sweep and not any("context" in hints_of(find("reranker", use.name).Params) for use in uses):
        raise InputError(f"contexts: {', '.join(made)} has no context")


def check_labels(use: Use, index: Index | None = None) -> None:
    """Nothing, when `python -m rnnreranker.labels` takes these options, and the index has what they read.

    Raises:
        InputError: no such method, options that it does not have, values out of range, a source that is not for it, no
            index or one without a part.
    """
    from rnnreranker.labels.params import LabelParams

    use = use_with_folders(use)
    rest = {name: value for name, value in use.params.items() if name != "from"}
    for name, value in LABEL_OPTIONS.items():
        value = rest.pop(name, value)
        if type(value) is not int or value < 1:
            raise InputError(f"labels {name}: {value!r}; expected an integer >= 1")
    if "label_preset" in rest:
        LabelParams.preset(rest.pop("label_preset"))
    rest = {name: value for name, value in rest.items() if name not in hints_of(find("labeler", use.name).Params)}
    _check_fields("labels", rest, LabelParams)
    if lacking := sorted(parts_of_labels(use) - set(index.parts if index else ())):
        named = f"index {index.id} has no part" if index else "give an `index` with the part"
        raise InputError(f"labels {use.name}: {named} {' and '.join(lacking)}")


def parts_of_labels(use: Use) -> set[str]:
    """The parts of an index that labels read.

    Raises:
        InputError: values out of range, a source or a teacher that there is not.
    """
    from rnnreranker.labels.methods.base import needs_of

    return parts_of(needs_of(use.name, _params_of_labels(use), use.params.get("from", "vectors")))


def labels_on_gpu(use: Use) -> bool:
    """Whether a GPU can make labels."""
    from rnnreranker.labels.methods.base import takes_device

    return takes_device(use.name, _params_of_labels(use))


def _params_of_labels(use: Use) -> Params:
    """The settings of the method of labels, without the options that all methods share."""
    own = {name: value for name, value in use.params.items() if name in hints_of(find("labeler", use.name).Params)}
    return make_params("labeler", use.name, own, use.preset or None)


def check_negatives(use: Use) -> None:
    """Nothing, when `python -m rnnreranker.negatives` takes this filter and these options.

    Raises:
        InputError: no such filter, options that it does not have, values out of range.
    """
    from rnnreranker.labels.negatives.params import NegativeParams
    from rnnreranker.rnn import RnnParams
    from rnnreranker.rnn.params import OF_THE_MIXTURE

    of_mining = {name: value for name, value in use.params.items() if name in hints_of(NegativeParams)}
    _check_fields("negatives", of_mining | {"filter": use.name}, NegativeParams)
    known = [name for name in hints_of(RnnParams) if name not in OF_THE_MIXTURE]
    rest = {name: value for name, value in use.params.items() if name not in of_mining}
    if unknown := [
        f"{name}; {nearest(str(name), [*hints_of(NegativeParams), *known])}" for name in rest if name not in known
    ]:
        raise InputError(f"negatives has no option {', no option '.join(unknown)}")
    _check_fields("negatives", rest, RnnParams)
    if use.preset:
        RnnParams.named(use.preset)


def check_training(use: Use) -> None:
    """Nothing, when `python -m rnnreranker.train` takes these options.

    Raises:
        InputError: no such kind of model, options that it does not have, values out of range.
    """
    from rnnreranker.train.params import settings_for

    settings_for(find("trained-model", use.name).Params, use.params, use.preset or None)


@functools.cache
def flags_of(module: str) -> frozenset[str]:
    """The flags of `python -m rnnreranker.<module>`."""
    return frozenset(importlib.import_module(module_of(module)).make_parser()._option_string_actions)


def options_of(module: str) -> list[str]:
    """The flags of a command as keys of YAML."""
    return sorted(name.removeprefix("--").replace("-", "_") for name in flags_of(module) if name.startswith("--"))


def check_work(work: Work, index: Index | None = None) -> None:
    """Nothing, when the command of a study, a tuning, … has these options, and its index what they read of it.

    Raises:
        InputError: options that it does not have, a condition without a query set, an index without a part.
    """
    known = [*options_of(MODULES[work.kind]), "query_set", "of"]
    unknown = [f"{name}; {nearest(str(name), known)}" for name in work.options if name not in known]
    if unknown:
        raise InputError(f"{MODULES[work.kind]} has no option {', no option '.join(unknown)}")
    if "of" in work.options and "query_set" not in work.options:
        raise InputError("of: needs the query set of the run; give query_set")
    if index is not None and (lacking := [part for part in beside_parts(work) if part not in index.parts]):
        raise InputError(f"beside: index {index.id} has no part {' and no part '.join(lacking)}")


def beside_parts(work: Work) -> list[str]:
    """The parts of an index that the teachers of a recovery read.

    Raises:
        InputError: no such teacher.
    """
    from rnnreranker.lab.recover.beside import known, needs_of

    names = work.options.get("beside", [])
    if not isinstance(names, list) or any(name not in known() for name in names):
        raise InputError(f"beside: {names}; expected a list of {', '.join(known())}")
    return sorted(parts_of(needs_of(names)))


def _check_fields(what: str, values: dict[str, Any], kind: type[Params]) -> None:
    hints = hints_of(kind)
    if unknown := [
        f"{what} {name}: no such option; {nearest(str(name), hints)}" for name in values if name not in hints
    ]:
        raise InputError("; ".join(unknown))
    kind(**{name: plain(value, hints[name]) for name, value in values.items()})
