"""Specs: collections with their indexes, query sets, models and conditions, and what is studied on them.

Entries are pydantic models: types, methods with their settings and names of data are checked field by field. What
entries must not say besides is in `faults`, and what they may say of each other in `rnnreranker.regress.specs.checks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find, names
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import CHOICES
from rnnreranker.data.names import BUILT_IN
from rnnreranker.data.qrels import named_protocol
from rnnreranker.index.request import USUAL
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.parts.base import part
from rnnreranker.regress.specs.fields import (
    Aggregation,
    Bounds,
    Documents,
    Expander,
    Feedback,
    Filter,
    Fusion,
    Labels,
    Measures,
    Names,
    Needs,
    Protocols,
    Qrels,
    Reranker,
    Retriever,
    Start,
    Topics,
    Training,
    listed,
)
from rnnreranker.regress.specs.methods import check_part, check_work, has_context, models_in
from rnnreranker.train.model_files import NOTHING

STEPS = ("candidates", "labels", "negatives")  # of a model, before its training; models that want the same share them
NOWHERE = ("none",)  # query sets of a condition that is not measured
WORKS = {  # key of a spec: kind of record; the command has the kind's name, or the one given
    "studies": "study",
    "tunings": "tuning",
    "recoveries": "recovery",
    "diagnoses": "diagnosis",
    "benchmarks": "benchmark",
}
Faults = Iterator[tuple[str, str]]  # a key of an entry, or "" = the entry; what is wrong with it


class Entry(BaseModel):
    """What a YAML file says under a key; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _note_hints(cls, content: Any, info: ValidationInfo) -> Any:
        """Note in the context which key an unknown one may be meant for."""
        if isinstance(content, dict) and info.context is not None:
            known = [name for name in cls.model_fields if name != "id"]
            info.context.update({str(key): nearest(str(key), known) for key in content if key not in known})
        return content


class IndexEntry(Entry):
    """A prebuilt index of Pyserini, or documents with the parts that are made of them."""

    id: str
    prebuilt: str = ""
    documents: Documents = ""
    text: Names = ()  # the fields that are read of them; () = the usual ones
    count: Bounds | None = None  # fewest and most documents
    parts: dict[str, Any] = {}  # dense: encoder and its settings; bm25; neighbours: their number
    needs: Needs = {}

    def faults(self, indexes: dict[str, IndexEntry]) -> Faults:
        """What an index must not say."""
        if bool(self.prebuilt) == bool(self.documents):
            yield "", f"index {self.id}: give either `prebuilt` or `documents`"
        yield from _text_faults(self)
        if not self.parts:
            yield "parts", f"index {self.id}: no parts; expected some of {', '.join(names('part'))}"
        for name, its in self.parts.items():
            try:
                origins = check_part(name, its)
            except InputError as error:
                yield "parts", str(error)
                continue
            if part(name).made_of and (self.prebuilt or not {*origins} & {*self.parts}):
                yield "parts", f"index {self.id}: {name} is made of {' or '.join(origins)}, which it lacks"
            if name == USUAL and "encoder" not in (its or {}):
                yield "parts", f"index {self.id}: {name} needs an encoder, as {name}: {{encoder: minilm}}"


class QuerySet(Entry):
    """Topics with their judgements; its id is unique over all specs."""

    id: str
    topics: Topics
    qrels: Qrels
    title: str = ""
    about: str = ""
    protocols: Protocols = ()  # the default: the one that belongs to the name of the judgements
    measures: Measures = ()  # those of the spec where there are none
    runs: str = ""  # pattern of the folder or file names of published runs for these topics
    remove_query: bool = False  # whether the document whose id is that of a topic is left out of its run
    kinds: dict[str, str] = {}  # kind of its topics: their name; each has means of its own
    needs: Needs = {}

    def model_post_init(self, context: Any) -> None:
        """Set the protocol that belongs to the judgements, where none is given."""
        if not self.protocols:
            object.__setattr__(self, "protocols", (named_protocol(self.qrels),))


class ValidationSet(Entry):
    """Topics with their original labels, which a training is validated on."""

    topics: Topics
    qrels: Qrels


class Model(Entry):
    """A model that is trained: a query encoder against the vectors of an index, or one that reads texts.

    The latter, sparse and late-interaction encoders and cross-encoders, begin at the model that `start` names. A masked
    language model has neither topics nor labels: it learns from the texts of `documents` or of an index.
    """

    id: str
    train: Training  # the kind of model, with options of `python -m rnnreranker.train`
    topics: Topics = ""
    qrels: Qrels = ""
    index: str = ""  # whose vectors or texts it is trained on
    documents: Documents = ""  # or these texts
    text: Names = ()  # of `documents`: as of an index
    labels: Labels | None = None  # a labeler, with options of its command
    negatives: Filter | None = None  # or a filter of mined negatives
    first: Retriever = Field(default_factory=lambda: Written("dense"))  # of the candidates of the training queries
    candidates: str = ""  # the index that it retrieves from; "" = the model's own
    validation: ValidationSet | None = None
    start: Start = ""  # of the training; of a query encoder "" = the index's
    needs: Needs = {}  # of its training
    step_needs: dict[str, Needs] = {}  # of the steps before it, some of STEPS: {labels: needs}
    note: str = ""  # on all published cells that stand on it: what its training has otherwise than the paper

    @property
    def reads_texts_alone(self) -> bool:
        """Whether it learns from texts without queries, as masked language models do."""
        kind = self.train.name
        return kind in names("trained-model") and "topics" not in find("trained-model", kind).needs

    @property
    def starts(self) -> list[str]:
        """The model of the spec that the training begins with: `{model: ID}`, of a query encoder also the id alone."""
        if self.train.name == "query" and isinstance(self.start, str):
            return [self.start] if self.start else []
        return list(models_in(self.start))

    def faults(self, indexes: dict[str, IndexEntry]) -> Faults:
        """What a model must not say."""
        made = [name for name in STEPS if name == "candidates" or getattr(self, name)]
        for name in self.step_needs:
            if name not in made:
                yield "step_needs", f"step_needs {name}; {nearest(str(name), made)}"
        yield from _text_faults(self)
        texts_alone, reads_texts = self.reads_texts_alone, self.train.name != "query"
        index, kind = indexes.get(self.index), self.train.name
        dense = index is not None and USUAL in index.parts
        filtered = self.negatives.name if self.negatives and self.negatives.name != "none" else ""
        for key in ("topics", "qrels", "labels", "negatives", "candidates", "validation") if texts_alone else ():
            if getattr(self, key):
                yield key, f"{key}: {kind} is trained on texts alone; leave it out"
        for wrong, key, said in (
            (bool(self.index) == bool(self.documents), "", "give either `index` or `documents`"),
            (
                *(reads_texts and not self.start, ""),
                f"give `start`, the model that the training begins with{', or none' * texts_alone}",
            ),
            (not texts_alone and not self.topics, "", "key topics is missing"),
            (not texts_alone and not self.qrels, "", "key qrels is missing"),
            (
                not texts_alone and bool(self.labels) == bool(self.negatives),
                *("", "give either `labels` or `negatives`"),
            ),
            (not reads_texts and self.negatives, "negatives", "a query encoder is trained on `labels`"),
            (
                *(not reads_texts and self.documents, "documents"),
                "a query encoder is trained on the vectors of an `index`",
            ),
            (
                *(not texts_alone and not (self.index or self.candidates), ""),
                "give `candidates`, the index that `first` retrieves from",
            ),
            (index and not dense and not reads_texts, "index", "has no encoder that could be trained"),
            (filtered and self.documents, "documents", f"the filter {filtered} needs an `index` with vectors"),
            (filtered and index and not dense, "index", "has no vectors to filter negatives by"),
        ):
            if wrong:
                yield key, f"{f'index {self.index}' if key == 'index' else self.id}: {said}"


class Condition(Entry):
    """One system: a retrieval, a fusion of other conditions' runs, an expansion or a reranking of one."""

    id: str
    title: str
    retrieve: Retriever | None = None
    prf: Feedback | None = None  # that the retrieval searches again by
    fuse: Fusion | None = None
    aggregate: Aggregation | None = None  # passages to documents
    expand: Expander | None = None
    rerank: Annotated[  # one after the other
        tuple[Reranker, ...], BeforeValidator(lambda uses: tuple(uses) if isinstance(uses, list) else (uses,))
    ] = ()
    of: Annotated[  # the conditions that are fused, or the one that the step is of
        tuple[str, ...], BeforeValidator(lambda of: (of,) if isinstance(of, str) else listed(of))
    ] = ()
    against: str = ""  # the condition that its values are compared with; "" = the one that is reranked
    index: str = ""  # of the retrieval, and of the vectors of a reranking
    model: str = ""  # encodes the queries; "" = the encoder of the index
    contexts: Annotated[  # a sweep: a run for each number of reranked candidates
        tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(listed)
    ] = ()
    query_sets: Names = ()  # none = all; NOWHERE = it is there for others
    planned: str = ""  # what the toolkit lacks
    runs: Names = ()  # name patterns of published run files of this system
    figure: str = ""  # of the paper that the sweep draws
    note: str = ""
    needs: dict[str, Needs] = {}  # query set: what its last step needs there

    @property
    def run_names(self) -> list[str]:
        """The names of its runs: its id, or one for each context of a sweep."""
        return [f"{self.id}-{context}" for context in self.contexts] or [self.id]

    @property
    def published(self) -> bool:
        """Whether it is a run of others, which nothing here makes."""
        made = self.retrieve or self.fuse or self.aggregate or self.expand or self.rerank
        return bool(self.runs) and not (made or self.planned)

    @property
    def base(self) -> str:
        """The condition that it is compared with; empty for a retrieval or a fusion that names none."""
        return self.against or (self.of[0] if self.rerank or self.expand else "")

    def uses(self) -> list[tuple[str, str, Written]]:
        """The methods that read an index: the key that names each, its kind, the method with its settings."""
        named = [("retrieve", "retriever", self.retrieve), ("expand", "expander", self.expand)]
        named += [("rerank", "reranker", use) for use in self.rerank]
        return [(key, kind, use) for key, kind, use in named if use]

    def faults(self, indexes: dict[str, IndexEntry]) -> Faults:
        """What a condition must not say."""
        ways = [key for key in ("retrieve", "fuse", "aggregate", "expand", "rerank") if getattr(self, key)]
        if len(ways) != 1 and not ((self.planned or self.published) and not ways):
            said = "give one of retrieve, fuse, aggregate, expand and rerank, or planned, or runs alone"
            yield "", f"{self.id}: {said}"
        wanted = {
            "fuse": (2, math.inf, "the conditions that are fused"),
            "rerank": (1, 1, "the condition that is reranked"),
            "expand": (1, 1, "the condition that is expanded"),
            "aggregate": (1, 1, "the condition whose passages become documents"),
        }
        for way in ways:
            least, most, what = wanted.get(way, (0, 0, "none"))
            if not least <= len(self.of) <= most:
                yield "of", f"{self.id}: `of` has {len(self.of)} entries; expected {what}"
            if way not in ("fuse", "aggregate") and not self.index:
                yield "", f"{self.id}: key index is missing"
        if self.prf and self.retrieve:
            try:
                check_feedback(self.prf.name, [self.retrieve.name])
            except InputError as error:
                yield "prf", str(error)
        elif self.prf:
            yield "prf", f"{self.id}: prf is for a retrieval; give it beside `retrieve`"
        if self.contexts and not self.rerank:
            yield "contexts", f"{self.id}: contexts are for a reranking"
        elif self.contexts and any("context" in use.params for use in self.rerank):
            yield "rerank", "context: stands here, and contexts too; leave one out"
        elif self.contexts and not any(map(has_context, self.rerank)):
            yield "rerank", f"contexts: {', '.join(use.name for use in self.rerank)} has no context"


class Work(Entry):
    """One command that is no search: a study, a tuning, a recovery, a diagnosis or a benchmark."""

    id: str
    kind: str  # of the record that it makes
    options: dict[str, Any]  # of the command; `index`, `of` and `query_set` name entries of the spec
    needs: Needs = {}

    def faults(self, indexes: dict[str, IndexEntry]) -> Faults:
        """What a study, a tuning, … must not say."""
        try:
            check_work(self.kind, self.options)
        except InputError as error:
            yield "", str(error)


def _text_faults(entry: IndexEntry | Model) -> Faults:
    """Fields that cannot be read, or are not of documents."""
    if entry.text and ",".join(entry.text) not in CHOICES:
        listed = " or ".join(f"[{', '.join(fields)}]" for fields in CHOICES.values())
        yield "text", f"text [{', '.join(entry.text)}]: expected {listed}"
    if entry.text and (not entry.documents or entry.documents in BUILT_IN):
        yield "text", f"{entry.id}: text is of `documents`; leave it out"


Level = dict[str, Any]  # of `expected`; null where nothing is known


class Spec(Entry):
    """What is measured on a collection."""

    name: str
    title: str
    about: str
    query_sets: tuple[QuerySet, ...] = ()
    measures: Measures = ()
    compare: Names = ()  # with their base (none = all); their values are kept by topic
    by_topic: bool = True  # whether they are
    tolerance: float = 0.0005  # absolute, on every measure
    hits: int = 1000
    redundancy: str = ""  # the index whose vectors say how alike the first documents of a run are; "" = nothing does
    notes: str = ""  # printed under the results
    parts: Names = ()  # names in `parts/`, whose entries come first
    indexes: tuple[IndexEntry, ...] = ()
    models: tuple[Model, ...] = ()
    conditions: tuple[Condition, ...] = ()
    works: tuple[Work, ...] = ()
    expected: dict[str, dict[str, dict[str, dict[str, float | None] | None] | None] | None] | None = None
    needs: Needs = {}

    @property
    def published(self) -> bool:
        """Whether a condition of it is a published run."""
        return any(condition.published for condition in self.conditions)

    @property
    def dense_encoder(self) -> str:
        """The encoder of its first index with vectors, or what one begins with that the spec trains; "" without one."""
        encoder: Any = next((entry.parts[USUAL]["encoder"] for entry in self.indexes if USUAL in entry.parts), "")
        while isinstance(encoder, dict):
            model = self.model(encoder["model"])
            encoder = model.start if model.start != NOTHING else "a model trained from nothing"
        return str(encoder)

    def condition(self, name: str) -> Condition:
        """The condition of that id.

        Raises:
            InputError: no such condition (with the nearest ids).
        """
        return _named(self.conditions, name, "condition", self.name)

    def index(self, name: str) -> IndexEntry:
        """The index of that id."""
        return _named(self.indexes, name, "index", self.name)

    def model(self, name: str) -> Model:
        """The model of that id."""
        return _named(self.models, name, "model", self.name)

    def query_set(self, name: str) -> QuerySet:
        """The query set of that id."""
        return _named(self.query_sets, name, "query set", self.name)

    def measures_of(self, query_set: QuerySet) -> tuple[str, ...]:
        """What is measured on a query set."""
        return query_set.measures or self.measures

    def conditions_of(self, query_set: QuerySet) -> tuple[Condition, ...]:
        """The conditions that are measured on a query set."""
        return tuple(entry for entry in self.conditions if query_set.id in (entry.query_sets or (query_set.id,)))


def _named(entries: Sequence[Any], name: str, kind: str, where: str) -> Any:
    for entry in entries:
        if entry.id == name:
            return entry
    known = [entry.id for entry in entries]
    raise InputError(f"{name}: no such {kind} in {where}; {nearest(name, known) if known else 'there are none'}")


def planned(spec: Spec, condition: Condition) -> str:
    """What the toolkit lacks for a condition or one that it needs; empty when every step is there."""
    lacking = (planned(spec, spec.condition(name)) for name in condition.of)
    return condition.planned or next(filter(None, lacking), "")


def specs_folder(named: str | None = None) -> Path:
    """The folder of specs: the one named, else the checkout's `regressions/`, else the copy inside the package.

    Raises:
        InputError: the named folder does not exist.
    """
    if named is not None:
        folder = Path(named)
        if not folder.is_dir():
            raise InputError(f"{named}: no such folder of specs; leave --specs out to use those of the package")
        return folder
    package = Path(__file__).resolve().parents[2]
    checkout = package.parent / "regressions"
    return checkout if checkout.is_dir() else package / "regressions"


def spec_names(folder: Path) -> list[str]:
    """The names of all specs in a folder, in order."""
    return sorted(path.stem for path in folder.glob("*.yaml"))
