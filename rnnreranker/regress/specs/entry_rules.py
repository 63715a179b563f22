"""What indexes and models of a spec must not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import methods, names
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import CHOICES
from rnnreranker.data.names import BUILT_IN
from rnnreranker.parts.needs import part
from rnnreranker.regress.specs.methods import (
    beside_uses,
    check_labels,
    check_negatives,
    check_part,
    check_training,
    check_use,
)
from rnnreranker.regress.specs.model_names import MODEL_OPTIONS, models_in, reads_texts_alone, start_models
from rnnreranker.regress.specs.reading import KeyPath, SpecDocument
from rnnreranker.regress.specs.spec import STEPS, Condition, IndexEntry, Model, Work

OF_RERANKER = {"cross-encoder": "cross", "ensemble": "cross"}  # what models of the spec they take


def check_index(entry: IndexEntry, source: SpecDocument, keys: KeyPath) -> None:
    """Note what an index must not say."""
    if bool(entry.prebuilt) == bool(entry.documents):
        source.problem(keys, f"index {entry.id}: give either `prebuilt` or `documents`")
    _check_text(entry, source, keys)
    if not entry.parts:
        source.problem((*keys, "parts"), f"index {entry.id}: no parts; expected some of {', '.join(names('part'))}")
    for name, its in entry.parts.items():
        source.note((*keys, "parts", name), check_part, name, its, entry)


def _check_text(entry: IndexEntry | Model, source: SpecDocument, keys: KeyPath) -> None:
    """Note fields that cannot be read, or are not of documents."""
    if entry.text and ",".join(entry.text) not in CHOICES:
        listed = " or ".join(f"[{', '.join(fields)}]" for fields in CHOICES.values())
        source.problem((*keys, "text"), f"text [{', '.join(entry.text)}]: expected {listed}")
    if entry.text and (not entry.documents or entry.documents in BUILT_IN):
        source.problem((*keys, "text"), f"{entry.id}: text is of `documents`; leave it out")


def check_model(entry: Model, source: SpecDocument, keys: KeyPath, indexes: dict[str, IndexEntry]) -> None:
    """Note what a model must not say."""
    for key, look, use, more in (
        ("labels", check_labels, entry.labels, [indexes.get(entry.index)]),
        ("negatives", check_negatives, entry.negatives, []),
        ("train", check_training, entry.train, []),
    ):
        if use:
            source.note((*keys, key), look, use, *more)
    _check_steps(entry, source, keys)
    _check_text(entry, source, keys)
    if reads_texts_alone(entry):
        _check_of_texts(entry, source, keys)
        return
    source.note((*keys, "first"), check_use, "retriever", entry.first, indexes.get(entry.candidates or entry.index))
    dense = entry.index in indexes and "dense" in indexes[entry.index].parts
    reads_texts = entry.train.name != "query"
    filtered = entry.negatives.name if entry.negatives and entry.negatives.name != "none" else ""
    for wrong, key, said in (
        (not entry.topics, "", "key topics is missing"),
        (not entry.qrels, "", "key qrels is missing"),
        (bool(entry.labels) == bool(entry.negatives), "", "give either `labels` or `negatives`"),
        (not reads_texts and entry.negatives, "negatives", "a query encoder is trained on `labels`"),
        (bool(entry.index) == bool(entry.documents), "", "give either `index` or `documents`"),
        (not reads_texts and entry.documents, "documents", "a query encoder is trained on the vectors of an `index`"),
        (not (entry.index or entry.candidates), "", "give `candidates`, the index that `first` retrieves from"),
        (reads_texts and not entry.start, "", "give `start`, the model that the training begins with"),
        (not isinstance(entry.start, str | dict), "start", f"start {entry.start!r}: expected a name or {{model: ID}}"),
        (entry.index in indexes and not dense and not reads_texts, "index", "has no encoder that could be trained"),
        (filtered and entry.documents, "documents", f"the filter {filtered} needs an `index` with vectors"),
        (filtered and entry.index in indexes and not dense, "index", "has no vectors to filter negatives by"),
        (entry.validation and set(entry.validation) != {"topics", "qrels"}, "validation", "expected topics and qrels"),
    ):
        if wrong:
            named = f"index {entry.index}" if key == "index" else entry.id
            source.problem((*keys, key) if key else keys, f"{named}: {said}")


def _check_of_texts(entry: Model, source: SpecDocument, keys: KeyPath) -> None:
    """Note what a model that learns from texts alone must not say."""
    for key in ("topics", "qrels", "labels", "negatives", "candidates", "validation"):
        if getattr(entry, key):
            source.problem((*keys, key), f"{key}: {entry.train.name} is trained on texts alone; leave it out")
    if bool(entry.index) == bool(entry.documents):
        source.problem(keys, f"{entry.id}: give either `index` or `documents`")
    if not entry.start:
        source.problem(keys, f"{entry.id}: give `start`, the model that the training begins with, or none")


def _check_steps(entry: Model, source: SpecDocument, keys: KeyPath) -> None:
    """Needs of steps that the model has."""
    made = [name for name in STEPS if name == "candidates" or getattr(entry, name)]
    for name, needs in entry.step_needs.items():
        if name not in made:
            source.problem((*keys, "step_needs", name), f"step_needs {name}; {nearest(str(name), made)}")
        elif not isinstance(needs, dict):
            source.problem((*keys, "step_needs", name), f"step_needs {name}: {needs!r}; expected {{gpu_hours: …}}")


def model_links(entry: Any) -> Iterator[tuple[str, str, str]]:
    """The models that an entry names: its key, the model, the kind of model that it must be ("" = any)."""
    if isinstance(entry, IndexEntry):
        for part, its in entry.parts.items():
            yield from (("parts", name, _models_for(part)) for name in models_in(its))
    elif isinstance(entry, Model):
        yield from (("start", name, "") for name in start_models(entry))
        for key, use in (("first", entry.first), ("labels", entry.labels), ("negatives", entry.negatives)):
            yield from ((key, name, "") for name in models_in(use))
    elif isinstance(entry, Condition):
        if entry.model:
            yield "model", entry.model, "query"
        for name in models_in(entry.retrieve):
            yield "retrieve", name, "sparse"
        for use in entry.rerank:
            yield from (("rerank", name, OF_RERANKER.get(use.name, "")) for name in models_in(use))
    elif isinstance(entry, Work):
        for use in _teachers(entry):
            yield from (("beside", name, OF_RERANKER.get(use.name, "")) for name in models_in(use))
        teachers = [*models_in(list(_pair_teachers(entry.options.get("arms"))))]
        for key in MODEL_OPTIONS:
            yield from ((key, name, "cross" if name in teachers else "") for name in models_in(entry.options.get(key)))


def _pair_teachers(arms: Any) -> Iterator[Any]:
    """What the labels of arms of a study say of cross-encoders."""
    for arm in arms.values() if isinstance(arms, dict) else arms if isinstance(arms, list) else ():
        labels = arm.get("labels") if isinstance(arm, dict) else None
        if isinstance(labels, dict):
            yield labels.get("cross-encoders")


def _teachers(work: Work) -> list[Written]:
    """What a recovery names; empty where that is no list of methods, as `check_work` says."""
    try:
        return beside_uses(work)
    except InputError:
        return []


def _models_for(name: str) -> str:
    """The kinds of model whose encoder makes a part, as `check_kinds` reads them; "" = any."""
    encoder = part(name).encoder if name in names("part") else ""
    return " or ".join(kind for kind, one in methods("trained-model").items() if encoder and one.trains == encoder)


def check_kinds(entry: Any, source: SpecDocument, keys: KeyPath, models: dict[str, Model]) -> None:
    """Note a model that stands where another kind of model is expected."""
    for key, name, kind in model_links(entry):
        trained = models[name].train.name if name in models else kind
        if kind and trained not in kind.split(" or "):
            source.problem((*keys, key), f"{key} {name}: is trained as {trained}; expected a model of `{kind}`")
