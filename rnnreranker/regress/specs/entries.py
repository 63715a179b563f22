"""The entries of specs: indexes, query sets, models, conditions and works, each checked by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt

from rnnreranker.base.chosen_method import choose
from rnnreranker.base.errors import nearest, problems_of
from rnnreranker.base.method import find, names
from rnnreranker.base.strict import KeyPath
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import CHOICES
from rnnreranker.data.names import BUILT_IN
from rnnreranker.data.qrels import named_protocol
from rnnreranker.index.request import USUAL
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.parts.base import part
from rnnreranker.regress.specs.methods import (
    Aggregation,
    Bounds,
    Expander,
    Feedback,
    Filter,
    Fusion,
    Labels,
    Measures,
    Names,
    Needs,
    Protocols,
    Reranker,
    Retriever,
    Start,
    Teacher,
    Training,
    flags_of,
    has_context,
    spec_part,
    with_folders,
)

STEPS = ("candidates", "labels", "negatives")  # of a model, before its training; models that want the same share them
NOWHERE = "none"  # the query set of a condition that is not measured
WORKS = {  # key of a spec: kind of record; `MODULES` has the command
    "studies": "study",
    "tunings": "tuning",
    "recoveries": "recovery",
    "diagnoses": "diagnosis",
}
MODULES = {"tuning": "tune", "recovery": "recover", "diagnosis": "diagnose"}  # kind of work
MODEL_OPTIONS = ("arms", "encoder")  # of works, that may name models
Faults = Iterator[tuple[KeyPath, str]]  # the keys of a value in an entry, () = the entry; what is wrong with it
Several = BeforeValidator(lambda value: value if isinstance(value, list) else [value])


class Entry(BaseModel):
    """The value of a key of a YAML file. `faults` has the mistakes that its types do not.

    Attributes:
        named: key → the group whose ids it has.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    named: ClassVar[Mapping[str, str]] = {}
    _keys: KeyPath = ()

    @property
    def id(self) -> str:
        """Its key in the file."""
        return str(self._keys[-1])

    def faults(self) -> Faults:
        """The keys of each wrong value, and the message."""
        yield from ()


class OfTexts(Entry):
    """An entry that may read documents."""

    documents: str = ""
    text: Names = []  # the fields that are read of them; [] = the usual ones

    def faults(self) -> Faults:
        if self.text and (",".join(self.text) not in CHOICES or not self.documents or self.documents in BUILT_IN):
            choices = " or ".join(f"[{', '.join(fields)}]" for fields in CHOICES.values())
            yield ("text",), f"text [{', '.join(self.text)}]: expected {choices}, beside `documents`"


class IndexEntry(OfTexts):
    """A prebuilt index of Pyserini, or documents with the parts made of them."""

    prebuilt: str = ""
    count: Bounds | None = None  # fewest and most documents
    parts: dict[str, dict[str, Any] | None] = Field(min_length=1)  # dense: encoder and its settings; bm25; …
    needs: Needs = {}

    def faults(self) -> Faults:
        yield from super().faults()
        if bool(self.prebuilt) == bool(self.documents):
            yield (), "give either `prebuilt` or `documents`"
        for name, its in self.parts.items():
            said = problems_of(partial(self.origins, name))
            if not said and part(name).made_of and (self.prebuilt or not {*self.origins(name)} & {*self.parts}):
                said = [f"{name} is made of {' or '.join(self.origins(name))}, which the index lacks"]
            if name == USUAL and "encoder" not in (its or {}):
                said.append(f"{name} needs an encoder, as {name}: {{encoder: minilm}}")
            yield from ((("parts",), one) for one in said)

    def origins(self, name: str) -> tuple[str, ...]:
        """The parts that a part can be made of; InputError: an unknown part or setting, a value out of range."""
        return tuple(part(name).origins(choose("part", spec_part(name, self.parts[name]), "parts").params))


class QuerySet(Entry):
    """Topics with their judgements; its id is unique over all specs."""

    topics: str
    qrels: str
    title: str = ""
    about: str = ""
    protocols: Protocols = []  # the default: the one that belongs to the name of the judgements
    measures: Measures = []  # those of the spec where there are none
    runs: str = ""  # pattern of the folder or file names of published runs for these topics
    remove_query: bool = False  # whether the document whose id is that of a topic is left out of its run
    kinds: dict[str, str] = {}  # kind of its topics: their name; each has means of its own
    needs: Needs = {}

    def model_post_init(self, context: Any) -> None:
        """Set the default protocol."""
        super().model_post_init(context)
        self.protocols.extend([] if self.protocols else [named_protocol(self.qrels)])


class ValidationSet(Entry):
    """Topics with their original labels, for the validation of a training."""

    topics: str
    qrels: str


class Model(OfTexts):
    """A model to train: a query encoder on the vectors of an index, or one that reads texts.

    Models of texts begin with the model that `start` names; a masked language model has neither topics nor labels.
    """

    named = {"index": "indexes", "candidates": "indexes"}
    train: Training  # the kind of model, with options of `train`
    topics: str = ""
    qrels: str = ""
    index: str = ""  # whose vectors or texts it is trained on, in place of `documents`
    labels: Labels | None = None  # a labeler, with options of its command
    negatives: Filter | None = None  # or a filter of mined negatives
    first: Retriever = Written("dense")  # of the candidates of the training queries
    candidates: str = ""  # the index that it retrieves from; "" = the model's own
    validation: ValidationSet | None = None
    start: Start = ""  # a name or {model: ID}; of a query encoder "" = the index's
    needs: Needs = {}  # of its training
    step_needs: dict[str, Needs] = {}  # of the steps before it, some of STEPS: {labels: needs}
    note: str = ""  # on all published cells that stand on it: what its training has otherwise than the paper

    @property
    def reads_texts_alone(self) -> bool:
        """Whether it learns from texts without queries."""
        kind = self.train.name
        return kind in names("trained-model") and "topics" not in find("trained-model", kind).needs

    @property
    def filters(self) -> str:
        """The filter of its negatives by vectors, or ""."""
        return self.negatives.name if self.negatives and self.negatives.name != "none" else ""

    def faults(self) -> Faults:
        yield from super().faults()
        kind, query = self.train.name, self.train.name == "query"
        made = [name for name in STEPS if name == "candidates" or getattr(self, name)]
        for name in {*self.step_needs} - {*made}:
            yield ("step_needs",), f"step_needs {name}; {nearest(name, made)}"
        of_queries = ("topics", "qrels", "labels", "negatives", "candidates", "validation")
        if self.reads_texts_alone:
            for key in filter(partial(getattr, self), of_queries):
                yield (key,), f"{key}: {kind} is trained on texts alone; leave it out"
        else:
            for wrong, said in (
                (not self.topics, "key topics is missing"),
                (not self.qrels, "key qrels is missing"),
                (bool(self.labels) == bool(self.negatives), "give either `labels` or `negatives`"),
                (query and self.negatives, "a query encoder is trained on `labels`"),
                (query and self.documents, "a query encoder is trained on the vectors of an `index`"),
                (not (self.index or self.candidates), "give `candidates`, the index that `first` retrieves from"),
            ):
                if wrong:
                    yield (), said
        if bool(self.index) == bool(self.documents):
            yield (), "give either `index` or `documents`"
        if not query and not self.start:
            yield (), "give `start`, the model that the training begins with, or none"


class Condition(Entry):
    """One system: a retrieval, or a fusion, expansion or reranking of other conditions."""

    named = {
        **{"of": "conditions", "against": "conditions", "index": "indexes", "model": "models"},
        **dict.fromkeys(("query_sets", "needs"), "query_sets"),
    }
    title: str
    retrieve: Retriever | None = None
    prf: Feedback | None = None  # that the retrieval searches again by
    fuse: Fusion | None = None
    aggregate: Aggregation | None = None  # passages to documents
    expand: Expander | None = None
    rerank: Annotated[list[Reranker], Several] = []  # one after the other
    of: Annotated[Names, Several] = []  # the conditions that are fused, or the one that the step is of
    against: str = ""  # the condition that its values are compared with; "" = the one that is reranked
    index: str = ""  # of the retrieval, and of the vectors of a reranking
    model: str = ""  # encodes the queries; "" = the encoder of the index
    contexts: list[PositiveInt] = []  # a sweep: a run for each number of reranked candidates
    query_sets: Names = []  # none = all; [NOWHERE] = it is there for others
    planned: str = ""  # what the toolkit lacks
    runs: Names = []  # name patterns of published run files of this system
    figure: str = ""  # of the paper that the sweep draws
    note: str = ""
    needs: dict[str, Needs] = {}  # query set: what its last step needs there

    @property
    def run_names(self) -> list[str]:
        """Its id, or one name for each context of a sweep."""
        return [f"{self.id}-{context}" for context in self.contexts] or [self.id]

    @property
    def ways(self) -> list[str]:
        """The keys that say how it is made, one at most."""
        return [key for key in ("retrieve", "fuse", "aggregate", "expand", "rerank") if getattr(self, key)]

    @property
    def published(self) -> bool:
        """Whether it is a run of others, without steps here."""
        return bool(self.runs) and not (self.ways or self.planned)

    @property
    def base(self) -> str:
        """The condition that it is compared with, or ""."""
        return self.against or (self.of[0] if self.rerank or self.expand else "")

    def measured_on(self, query_set: QuerySet) -> bool:
        return query_set.id in (self.query_sets or (query_set.id,))

    def uses(self) -> list[tuple[str, str, Written]]:
        """The methods that read an index: the key, kind and written form of each."""
        named = [("retrieve", "retriever", self.retrieve), ("expand", "expander", self.expand)]
        named += [("rerank", "reranker", use) for use in self.rerank]
        return [(key, kind, use) for key, kind, use in named if use]

    def faults(self) -> Faults:
        ways, of = self.ways, len(self.of)
        if len(ways) != 1 and not ((self.planned or self.published) and not ways):
            yield (), "give one of retrieve, fuse, aggregate, expand and rerank, or planned, or runs alone"
        for way in ways:
            if not (of > 1 if way == "fuse" else of == (way != "retrieve")):
                wanted = {"fuse": "two or more", "retrieve": "none"}.get(way, "one")
                yield (), f"`of` has {of} entries; {way} takes {wanted}"
            if way not in ("fuse", "aggregate") and not self.index:
                yield (), "key index is missing"
        if self.prf:
            retriever = [self.retrieve.name] if self.retrieve else []
            yield from ((("prf",), said) for said in problems_of(partial(check_feedback, self.prf.name, retriever)))
        if self.contexts and any("context" in use.params for use in self.rerank):
            yield ("rerank",), "context: stands here, and contexts too; leave one out"
        elif self.contexts and not any(map(has_context, self.rerank)):
            yield ("contexts",), f"contexts: no reranker with a context, {[use.name for use in self.rerank]}"


class Work(Entry):
    """A study, tuning, recovery or diagnosis with the options of its command."""

    model_config = ConfigDict(extra="allow")
    named = {"of": "conditions", "query_set": "query_sets"}
    beside: list[Teacher] = []  # of a recovery
    needs: Needs = {}

    @property
    def kind(self) -> str:
        """The kind of its record."""
        return WORKS[str(self._keys[0])]

    @property
    def module(self) -> str:
        """The name of its command."""
        return MODULES.get(self.kind, self.kind)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the command, without `beside`."""
        return self.model_extra or {}

    def faults(self) -> Faults:
        flags = flags_of(self.module)
        known = {name[2:].replace("-", "_") for name in flags if name.startswith("--")} | {*self.named}
        unknown = sorted(self.model_fields_set - known - {"needs"})
        for name in unknown:
            yield (name,), f"{self.module} has no option {name}; {nearest(name, known)}"
        if "of" in self.options and "query_set" not in self.options:
            yield ("of",), "of: needs the query set of the run; give query_set"
        if self.kind == "study" and not unknown:
            yield from (((), said) for said in problems_of(self._check_study))

    def _check_study(self) -> None:
        from rnnreranker.lab.study.request import EVERYDAY, StudyRequest, check

        options = {name: value for name, value in self.options.items() if name not in self.named}
        options |= {key: with_folders(options[key]) for key in MODEL_OPTIONS if key in options}
        typed = {name: options.pop(name) for name in EVERYDAY if name in options}
        model = Written.read(options.pop("model", StudyRequest.model)).beside(typed, "model")
        named = {name: options.pop(name, name) for name in ("index", "topics", "qrels")}
        check(StudyRequest(**named, **options, model=model))
