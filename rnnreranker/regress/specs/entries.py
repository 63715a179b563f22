"""The entries of specs: their keys by type, and methods in the form of their commands."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PositiveInt,
    ValidationInfo,
    model_validator,
)

from rnnreranker.base.errors import UnavailableError, nearest, refuse
from rnnreranker.base.method import PACKAGE, choose, find
from rnnreranker.base.private import flags_of_parser
from rnnreranker.base.settings import Written, check_names, hints_of
from rnnreranker.data import local
from rnnreranker.data.names import BUILT_IN_TOPICS, is_path, left_out
from rnnreranker.data.qrels import named_protocol
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.index.request import USUAL
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
MODEL_OPTIONS = ("arms", "encoder")  # of works, that may name models
NOWHERE = "none"  # the query set of a condition that is not measured
WAYS = {"retrieve": "none", "fuse": "two or more", "aggregate": "one", "expand": "one", "rerank": "one"}  # its `of`
UNITS = {  # of sizes that steps need
    "download_gb": "GB to download",
    "disk_gb": "GB of disk",
    "ram_gb": "GB of memory",
    "gpu_hours": "hours of a GPU",
    "hours": "hours of computing",
}


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


def choose_labels(use: Written) -> tuple[ChosenLabeler, Written, dict[str, Any]]:
    """The labeler of labels, its written form, and the options of the command among its settings.

    Raises:
        InputError: an unknown method, setting or source, a value out of range.
    """
    from rnnreranker.labels.request import LabelsRequest, choose_labeler

    params = with_folders(use).params
    options = {name: params.pop(name) for name in LABEL_OPTIONS if name in params}
    LabelsRequest("run", "qrels", **options)  # checks them
    method = replace(use, params=params)
    return choose_labeler(method), method, options


@functools.cache
def flags_of(module: str) -> frozenset[str]:
    """The flags of `python -m rnnreranker.<module>`, without dashes before them and with _ for others."""
    parser = importlib.import_module(f"{PACKAGE.name}.{module}").make_parser()
    return frozenset(one.lstrip("-").replace("-", "_") for one in flags_of_parser(parser))


def needs_of(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Needs in all: sums of sizes and hours, the largest memory, each agreement and file once."""
    total: dict[str, Any] = {}
    for key, value in (one for needs in several for one in needs.items()):
        old = total.get(key)
        if old is None:
            total[key] = value
        elif key in UNITS:
            total[key] = max(old, value) if key == "ram_gb" else old + value
        elif value not in old:
            total[key] = f"{old}; {value}"
    return total


def needs_text(needs: Mapping[str, Any]) -> str:
    """Needs in words.

    >>> needs_text({"disk_gb": 2, "hours": 1})
    '2 GB of disk, 1 hour of computing'
    """
    text = ", ".join(f"{value:g} {UNITS[key]}" if key in UNITS else value for key, value in needs.items())
    return re.sub("(^|, )1 hours", r"\g<1>1 hour", text)


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
    for key, value in check_names(needs, (*UNITS, "agreement", "files"), "need").items():
        good = type(value) in (int, float) and value >= 0 if key in UNITS else isinstance(value, str)
        refuse((not good, f"needs {key}: {value!r}; expected {'a number >= 0' if key in UNITS else 'a text'}"))
    return needs


def data_sets(name: str, kind: str) -> list[tuple[str, str]]:
    """The data sets in a name, each with its kind: those behind `:without:` are topics; none for ""."""
    first, others = left_out(name)
    return [(first, kind), *((other, "topics") for other in others)] if name else []


def _data_set(name: str, info: ValidationInfo) -> str:
    """Look up the data sets in a name; a step looks for files."""
    from rnnreranker.data import irds

    for one, of in data_sets(name, str(info.field_name)) if info.context else ():
        if not is_path(one) and one not in BUILT_IN_TOPICS:
            with contextlib.suppress(UnavailableError):  # known, and not here: the step that needs it says so
                if not local.files_of(one, of):
                    irds.load(one)
    return name


DataSet = Annotated[str, AfterValidator(_data_set)]
Several = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
Names = list[str]
Fields = list[Literal["title", "text"]]  # that are read of documents; [] = the usual ones
Protocol = Annotated[str, AfterValidator(_protocol)]
Measures = list[Annotated[str, AfterValidator(_measure)]]
Needs = Annotated[dict[str, Any], AfterValidator(_needs)]
Reranker = Annotated[Written, _method(partial(choose, "reranker"))]
Retriever = Annotated[Written, _method(partial(choose, "retriever"))]


class Entry(BaseModel):
    """The value of a key of a YAML file.

    The context of its check: whether names of data sets are looked up.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    id: str = ""  # its key in the file


class IndexEntry(Entry):
    """A prebuilt index of Pyserini, or documents with the parts made of them."""

    documents: DataSet = ""
    text: Fields = []
    prebuilt: str = ""
    count: Annotated[
        list[PositiveInt],
        BeforeValidator(lambda count: count if isinstance(count, list) else [count, count]),
        Field(min_length=2, max_length=2),
    ] = []  # fewest and most documents; a number is both
    parts: dict[str, dict[str, Any] | None] = Field(min_length=1)  # dense: encoder and its settings; bm25; …
    needs: Needs = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        refuse((bool(self.prebuilt) == bool(self.documents), "give either `prebuilt` or `documents`"))
        for name, its in self.parts.items():
            of = part(name).origins(choose("part", spec_part(name, its), "parts").params)
            refuse(
                (of and not {*of} & {*self.parts}, f"parts: {name} is made of {' or '.join(of)}, which the index lacks")
            )
        return self


class QuerySet(Entry):
    """Topics with their judgements; its id is unique over all specs."""

    topics: DataSet
    qrels: DataSet
    title: str = ""
    protocols: list[Protocol] = Field(default_factory=lambda data: [named_protocol(data.get("qrels", ""))])
    measures: Measures = []  # those of the spec where there are none
    runs: str = ""  # pattern of the folder or file names of published runs for these topics
    remove_query: bool = False  # whether the document whose id is that of a topic is left out of its run
    kinds: dict[str, str] = {}  # kind of its topics: their name; each has means of its own
    needs: Needs = {}


class ValidationSet(Entry):
    """Topics with their original labels, for the validation of a training."""

    topics: DataSet
    qrels: DataSet


class Model(Entry):
    """A model to train: a query encoder on the vectors of an index, or one that reads texts.

    Models of texts begin with the model that `start` names; a masked language model has neither topics nor labels.
    """

    train: Annotated[Written, _method(training_of)]  # the kind of model, with options of `train`
    documents: DataSet = ""
    text: Fields = []
    topics: DataSet = ""
    qrels: DataSet = ""
    index: str = ""  # whose vectors or texts it is trained on, in place of `documents`
    labels: Annotated[Written, _method(choose_labels)] | None = None  # a labeler, with options of its command
    first: Retriever = Written("dense")  # of the candidates of the training queries
    candidates: str = ""  # the index that it retrieves from; "" = the model's own
    validation: ValidationSet | None = None
    start: str | dict[str, str] = ""  # a name or {model: ID}; of a query encoder "" = the index's
    needs: Needs = {}  # of its training
    step_needs: dict[Literal["candidates", "labels"], Needs] = {}  # of the steps before it
    note: str = ""  # on all published cells that stand on it: what its training has otherwise than the paper

    @model_validator(mode="after")
    def _whole(self) -> Self:
        kind, query = self.train.name, self.train.name == "query"
        alone = "topics" not in find("trained-model", kind).needs  # it learns from texts without queries
        given = {key: getattr(self, key) for key in ("topics", "qrels", "labels", "candidates", "validation")}
        source = self.candidates or self.index
        refuse(
            *((alone and its, f"{key}: {kind} is trained on texts alone; leave it out") for key, its in given.items()),
            *((not alone and not given[key], f"key {key} is missing") for key in ("topics", "qrels", "labels")),
            (not alone and not source, "give `candidates`, the index that `first` retrieves from"),
            (bool(self.index) == bool(self.documents), "give either `index` or `documents`"),
            (not query and not self.start, "give `start`, the model that the training begins with, or none"),
        )
        return self


class Condition(Entry):
    """One system: a retrieval, or a fusion, expansion or reranking of other conditions."""

    title: str
    retrieve: Retriever | None = None
    prf: Annotated[Written, _method(partial(choose, "feedback"))] | None = None  # that the retrieval searches again by
    fuse: Annotated[Written, _method(lambda use: fusion(use, 0, "fuse"))] | None = None
    aggregate: Annotated[Written, _method(passages)] | None = None  # passages to documents
    expand: Annotated[Written, _method(partial(choose, "expander"))] | None = None
    rerank: Annotated[list[Reranker], Several] = []  # one after the other
    of: Annotated[Names, Several] = []  # the conditions that are fused, or the one that the step is of
    against: str = ""  # the condition that its values are compared with; "" = the one that is reranked
    index: str = ""  # of the retrieval, and of the vectors of a reranking
    model: str = ""  # encodes the queries; "" = the encoder of the index
    contexts: list[PositiveInt] = []  # a sweep: a run for each number of reranked candidates
    query_sets: Names = []  # none = all; [NOWHERE] = it is there for others
    runs: Names = []  # name patterns of published run files of this system; alone, it is a run of others
    figure: str = ""  # of the paper that the sweep draws
    note: str = ""
    needs: dict[str, Needs] = {}  # query set: what its last step needs there

    @property
    def run_names(self) -> list[str]:
        """Its id, or one name for each context of a sweep."""
        return [f"{self.id}-{context}" for context in self.contexts] or [self.id]

    @property
    def ways(self) -> list[str]:
        """The keys that say how it is made, one at most; [] = it is a published run."""
        return [key for key in WAYS if getattr(self, key)]

    @property
    def base(self) -> str:
        """The condition that it is compared with, or ""."""
        return self.against or (self.of[0] if self.rerank or self.expand else "")

    def measured_on(self, query_set: QuerySet) -> bool:
        return query_set.id in (self.query_sets or (query_set.id,))

    def uses(self) -> list[tuple[str, Written]]:
        """The methods that read an index: the kind and written form of each."""
        named = [("retriever", self.retrieve), ("expander", self.expand), *(("reranker", use) for use in self.rerank)]
        return [(kind, use) for kind, use in named if use]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        ways, of = self.ways, len(self.of)
        wanted = {WAYS[way]: of > 1 if way == "fuse" else of == (way != "retrieve") for way in ways}
        refuse(
            (len(ways) != 1 and (ways or not self.runs), f"give one of {', '.join(WAYS)}, or runs alone"),
            *((not good, f"`of` has {of} entries; {ways[0]} takes {takes}") for takes, good in wanted.items()),
            ({*ways} - {"fuse", "aggregate"} and not self.index, "key index is missing"),
            (self.contexts and not any(map(has_context, self.rerank)), "contexts: no reranker with a context"),
        )
        return self


class Work(Entry):
    """A study, tuning, recovery or diagnosis with the options of its command, which checks their values."""

    model_config = ConfigDict(extra="allow")
    module: str  # the name of its command, not in the file
    needs: Needs = {}

    @property
    def options(self) -> dict[str, Any]:
        """The options of the command."""
        return self.model_extra or {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        check_names(self.options, flags_of(self.module) | {"of", "query_set"}, f"option of {self.module}")
        return self


class Spec(Entry):
    """What is measured on a collection; groups of entries are by id."""

    schema_: Literal[3] = Field(alias="schema")
    name: str
    title: str
    about: str
    query_sets: dict[str, QuerySet] = {}
    measures: Measures = []
    compare: Names = []  # with their base (none = all); their values are kept by topic
    by_topic: bool = True  # whether they are
    hits: int = 1000
    indexes: dict[str, IndexEntry] = {}
    redundancy: str = ""  # the index whose vectors say how alike the first documents of a run are; "" = nothing does
    notes: str = ""  # printed under the results
    parts: Names = []  # names in `parts/`, whose entries come first
    models: dict[str, Model] = {}
    conditions: dict[str, Condition] = {}
    studies: dict[str, Work] = {}
    tunings: dict[str, Work] = {}
    recoveries: dict[str, Work] = {}
    diagnoses: dict[str, Work] = {}
    expected: dict[str, dict[str, dict[str, dict[str, float | None]]]] = {}  # query set: run: protocol: measure: value
    needs: Needs = {}
    links: dict[Any, Any] = {}  # not in the file: group and id of an entry → those that it stands on

    @model_validator(mode="after")
    def _whole(self) -> Self:
        runs = [name for entry in self.conditions.values() for name in entry.run_names]
        expected = [{*self.expected} - {*self.query_sets}, *({*by_run} - {*runs} for by_run in self.expected.values())]
        with_vectors = [name for name, index in self.indexes.items() if USUAL in index.parts]
        said = f"redundancy: {self.redundancy}: no such index with a part {USUAL}"
        works = [work.id for work in self.works]
        twice = [name for name in dict.fromkeys(works) if works.count(name) > 1]
        refuse(
            (not self.conditions and not self.works, "conditions: none here and none in the parts"),
            (not all(map(self.measures_of, self.query_sets.values())), "measures: expected at least one name"),
            ({*self.compare} - {*self.measures}, f"compare: expected some of {', '.join(self.measures)}"),
            (self.redundancy not in ("", *with_vectors), said),
            (twice, f"{', '.join(twice)}: the id of two studies, tunings, recoveries or diagnoses; rename one"),
            *((names, f"expected: {', '.join(names)}: no such query set or run") for names in expected),
        )
        return self

    @property
    def works(self) -> tuple[Work, ...]:
        """All studies, tunings, recoveries and diagnoses."""
        groups = (self.studies, self.tunings, self.recoveries, self.diagnoses)
        return tuple(work for group in groups for work in group.values())

    def condition(self, name: str) -> Condition:
        """The condition of an id; InputError: unknown."""
        known = self.conditions
        refuse((name not in known, f"{name}: no such condition in {self.name}; {nearest(name, known)}"))
        return known[name]

    def measures_of(self, query_set: QuerySet) -> Measures:
        """The measures of a query set."""
        return query_set.measures or self.measures

    def conditions_of(self, query_set: QuerySet) -> tuple[Condition, ...]:
        """The conditions that are measured on a query set."""
        return tuple(entry for entry in self.conditions.values() if entry.measured_on(query_set))
