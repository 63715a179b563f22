"""The entries of specs: indexes, query sets, models, conditions and works, each checked by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from rnnreranker.base.errors import InputError, nearest, problems_of
from rnnreranker.base.files.yaml_files import KeyPath
from rnnreranker.base.method import find, names
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
    beside_parts,
    beside_uses,
    check_part,
    has_context,
    listed,
    models_in,
)

STEPS = ("candidates", "labels", "negatives")  # of a model, before its training; models that want the same share them
NOWHERE = ("none",)  # query sets of a condition that is not measured
WORKS = {  # key of a spec: kind of record; `MODULES` has the command
    "studies": "study",
    "tunings": "tuning",
    "recoveries": "recovery",
    "diagnoses": "diagnosis",
}
Faults = Iterator[tuple[KeyPath, str]]  # the keys of a value in an entry, () = the entry; what is wrong with it
E = TypeVar("E", bound="Entry")


class Entry(BaseModel):
    """The value of a key of a YAML file; refuses unknown keys and what `faults` yields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    in_another: ClassVar[bool] = True  # entry
    required: ClassVar[Sequence[str]] = ()  # keys that must be there
    _id: str = ""
    _kind: str = ""  # of a work

    @property
    def id(self) -> str:
        """Its key in the file."""
        return self._id

    def faults(self) -> Faults:
        """The keys of each wrong value, and the message."""
        for key in self.required:
            if key not in self.model_fields_set:
                yield (), f"key {key.rstrip('_')} is missing"

    @model_validator(mode="before")
    @classmethod
    def _note_hints(cls, content: Any, info: ValidationInfo) -> Any:
        """Note the nearest known key of each unknown one."""
        if isinstance(content, dict) and info.context is not None:
            known = [field.alias or name for name, field in cls.model_fields.items()]
            info.context.update({str(key): nearest(str(key), known) for key in content if key not in known})
        return content

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Any:
        rest = (info.context or {}).get("rest", False)  # of what has errors: links alone are checked, by the spec
        if errors := [] if rest and self.in_another else list(self.faults()):
            details = [
                InitErrorDetails(type=PydanticCustomError("value_error", "{error}", {"error": said}), loc=keys, input=0)
                for keys, said in errors
            ]
            raise ValidationError.from_exception_data(type(self).__name__, details)
        return self


def entries(kind: type[E]) -> PlainValidator:
    """Reads a mapping of ids to entries as a tuple of entries."""
    adapter: TypeAdapter[dict[str, E]] = TypeAdapter(dict[str, kind])  # type: ignore[valid-type]

    def read(content: Any, info: ValidationInfo) -> tuple[E, ...]:
        named = adapter.validate_python(content, context=info.context)
        for name, entry in named.items():
            entry._id, entry._kind = name, WORKS.get(str(info.field_name), "")
        return tuple(named.values())

    return PlainValidator(read)


class OfTexts(Entry):
    """An entry that may read documents."""

    documents: Documents = ""
    text: Names = ()  # the fields that are read of them; () = the usual ones

    def faults(self) -> Faults:
        yield from super().faults()
        if self.text and ",".join(self.text) not in CHOICES:
            choices = " or ".join(f"[{', '.join(fields)}]" for fields in CHOICES.values())
            yield ("text",), f"text [{', '.join(self.text)}]: expected {choices}"
        if self.text and (not self.documents or self.documents in BUILT_IN):
            yield ("text",), "text is of `documents`; leave it out"


class IndexEntry(OfTexts):
    """A prebuilt index of Pyserini, or documents with the parts made of them."""

    prebuilt: str = ""
    count: Bounds | None = None  # fewest and most documents
    parts: dict[str, Any] = {}  # dense: encoder and its settings; bm25; neighbours: their number
    needs: Needs = {}

    def faults(self) -> Faults:
        yield from super().faults()
        if bool(self.prebuilt) == bool(self.documents):
            yield (), "give either `prebuilt` or `documents`"
        if not self.parts:
            yield ("parts",), f"no parts; expected some of {', '.join(names('part'))}"
        for name, its in self.parts.items():
            try:
                origins = check_part(name, its)
            except InputError as error:
                yield ("parts",), str(error)
                continue
            if part(name).made_of and (self.prebuilt or not {*origins} & {*self.parts}):
                yield ("parts",), f"{name} is made of {' or '.join(origins)}, which the index lacks"
            if name == USUAL and "encoder" not in (its or {}):
                yield ("parts",), f"{name} needs an encoder, as {name}: {{encoder: minilm}}"


class QuerySet(Entry):
    """Topics with their judgements; its id is unique over all specs."""

    required = ("topics", "qrels")
    topics: Topics = ""
    qrels: Qrels = ""
    title: str = ""
    about: str = ""
    protocols: Protocols = ()  # the default: the one that belongs to the name of the judgements
    measures: Measures = ()  # those of the spec where there are none
    runs: str = ""  # pattern of the folder or file names of published runs for these topics
    remove_query: bool = False  # whether the document whose id is that of a topic is left out of its run
    kinds: dict[str, str] = {}  # kind of its topics: their name; each has means of its own
    needs: Needs = {}

    def model_post_init(self, context: Any) -> None:
        """Set the default protocol."""
        super().model_post_init(context)
        if not self.protocols:
            object.__setattr__(self, "protocols", (named_protocol(self.qrels),))


class ValidationSet(Entry):
    """Topics with their original labels, for the validation of a training."""

    required = ("topics", "qrels")
    topics: Topics = ""
    qrels: Qrels = ""


class Model(OfTexts):
    """A model to train: a query encoder on the vectors of an index, or one that reads texts.

    Models of texts begin with the model that `start` names; a masked language model has neither topics nor labels.
    """

    required = ("train",)
    train: Training = Field(default_factory=lambda: Written("query"))  # the kind of model, with options of `train`
    topics: Topics = ""
    qrels: Qrels = ""
    index: str = ""  # whose vectors or texts it is trained on, in place of `documents`
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
        """Whether it learns from texts without queries."""
        kind = self.train.name
        return kind in names("trained-model") and "topics" not in find("trained-model", kind).needs

    @property
    def starts(self) -> list[str]:
        """The model of the spec that the training begins with."""
        if self.train.name == "query" and isinstance(self.start, str):
            return [self.start] if self.start else []
        return list(models_in(self.start))

    def faults(self) -> Faults:
        yield from super().faults()
        made = [name for name in STEPS if name == "candidates" or getattr(self, name)]
        for name in self.step_needs:
            if name not in made:
                yield ("step_needs",), f"step_needs {name}; {nearest(name, made)}"
        kind, query = self.train.name, self.train.name == "query"
        if bool(self.index) == bool(self.documents):
            yield (), "give either `index` or `documents`"
        if self.reads_texts_alone:
            for key in ("topics", "qrels", "labels", "negatives", "candidates", "validation"):
                if getattr(self, key):
                    yield (key,), f"{key}: {kind} is trained on texts alone; leave it out"
            if not self.start:
                yield (), "give `start`, the model that the training begins with, or none"
            return
        for wrong, said in (
            (not query and not self.start, "give `start`, the model that the training begins with"),
            (not self.topics, "key topics is missing"),
            (not self.qrels, "key qrels is missing"),
            (bool(self.labels) == bool(self.negatives), "give either `labels` or `negatives`"),
            (query and self.negatives, "a query encoder is trained on `labels`"),
            (query and self.documents, "a query encoder is trained on the vectors of an `index`"),
            (not (self.index or self.candidates), "give `candidates`, the index that `first` retrieves from"),
            (self.filters and self.documents, f"the filter {self.filters} needs an `index` with vectors"),
        ):
            if wrong:
                yield (), said

    @property
    def filters(self) -> str:
        """The filter of its negatives by vectors, or ""."""
        return self.negatives.name if self.negatives and self.negatives.name != "none" else ""


class Condition(Entry):
    """One system: a retrieval, or a fusion, expansion or reranking of other conditions."""

    required = ("title",)
    title: str = ""
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
        yield from super().faults()
        ways = self.ways
        if len(ways) != 1 and not ((self.planned or self.published) and not ways):
            yield (), "give one of retrieve, fuse, aggregate, expand and rerank, or planned, or runs alone"
        wanted = {
            "fuse": (2, math.inf, "the conditions that are fused"),
            "rerank": (1, 1, "the condition that is reranked"),
            "expand": (1, 1, "the condition that is expanded"),
            "aggregate": (1, 1, "the condition whose passages become documents"),
        }
        for way in ways:
            least, most, what = wanted.get(way, (0, 0, "none"))
            if not least <= len(self.of) <= most:
                yield (), f"`of` has {len(self.of)} entries; expected {what}"
            if way not in ("fuse", "aggregate") and not self.index:
                yield (), "key index is missing"
        if self.prf and not self.retrieve:
            yield (), "prf is for a retrieval; give it beside `retrieve`"
        elif self.prf and self.retrieve:
            prf, retriever = self.prf.name, self.retrieve.name
            yield from ((("prf",), said) for said in problems_of(lambda: check_feedback(prf, [retriever])))
        if self.contexts and not self.rerank:
            yield (), "contexts are for a reranking"
        elif self.contexts and any("context" in use.params for use in self.rerank):
            yield ("rerank",), "context: stands here, and contexts too; leave one out"
        elif self.contexts and not any(map(has_context, self.rerank)):
            yield ("rerank",), f"contexts: {', '.join(use.name for use in self.rerank)} has no context"


class Work(Entry):
    """A study, tuning, recovery or diagnosis with the options of its command."""

    model_config = ConfigDict(extra="allow")
    needs: Needs = {}

    @property
    def kind(self) -> str:
        """The kind of its record."""
        return self._kind

    @property
    def options(self) -> dict[str, Any]:
        """The options of the command."""
        return self.model_extra or {}

    def teachers(self) -> list[Written]:
        """The teachers of a recovery; none if `check_work` refuses them."""
        return [] if problems_of(lambda: beside_parts(self.options)) else beside_uses(self.options)
