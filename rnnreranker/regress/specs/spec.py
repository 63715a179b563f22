"""Specs: collections with their indexes, query sets, models and conditions, and what is studied on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.written_form import Written
from rnnreranker.data.qrels import named_protocol
from rnnreranker.regress.specs.reading import SpecDocument
from rnnreranker.train.model_files import NOTHING


@dataclass(frozen=True)
class IndexEntry:
    """A prebuilt index of Pyserini, or documents with the parts that are made of them."""

    id: str
    prebuilt: str = ""
    documents: str = ""
    text: tuple[str, ...] = ()  # the fields that are read of them; () = the usual ones
    count: tuple[int, int] | None = None  # fewest and most documents; another count is another collection
    parts: dict[str, Any] = field(
        default_factory=dict
    )  # dense: encoder and its settings; bm25; neighbours: their number
    needs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class QuerySet:
    """Topics with their judgements; its id is unique over all specs."""

    id: str
    topics: str
    qrels: str
    title: str = ""
    about: str = ""
    protocols: tuple[str, ...] = ("",)  # the default: the one that belongs to the name of the judgements
    measures: tuple[str, ...] = ()  # those of the spec where there are none
    runs: str = ""  # pattern of the folder or file names of published runs for these topics
    remove_query: bool = False  # whether the document whose id is that of a topic is left out of its run
    kinds: dict[str, str] = field(default_factory=dict)  # kind of its topics: their name; each has means of its own
    needs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.protocols == ("",):
            object.__setattr__(self, "protocols", (named_protocol(self.qrels),))


STEPS = ("candidates", "labels", "negatives")  # of a model, before its training; models that want the same share them


@dataclass(frozen=True)
class Model:
    """A model that is trained: a query encoder against the vectors of an index, or one that reads texts.

    The latter, sparse and late-interaction encoders and cross-encoders, begin at the model that `start` names. A masked
    language model has neither topics nor labels: it learns from the texts of `documents` or of an index.
    """

    id: str
    train: Written  # the kind of model, with options of `python -m rnnreranker.train`
    topics: str = ""
    qrels: str = ""
    index: str = ""  # whose vectors or texts it is trained on
    documents: str = ""  # or these texts
    text: tuple[str, ...] = ()  # of `documents`: as of an index
    labels: Written | None = None  # a labeler, with options of `python -m rnnreranker.labels`
    negatives: Written | None = None  # or a filter, with options of `python -m rnnreranker.negatives`
    first: Written = field(default_factory=lambda: Written("dense"))  # retrieves the candidates of the training queries
    candidates: str = ""  # the index that it retrieves from; "" = the model's own
    validation: dict[str, Any] = field(default_factory=dict)  # topics and qrels with their original labels
    start: Any = ""  # what the training starts at: a name or {model: ID}, of a query encoder an id; "" = the index's
    needs: dict[str, Any] = field(default_factory=dict)  # of its training
    step_needs: dict[str, Any] = field(default_factory=dict)  # of the steps before it, some of STEPS: {labels: needs}
    note: str = ""  # on all published cells that stand on it: what its training has otherwise than the paper


NOWHERE = ("none",)  # query sets of a condition that is not measured


@dataclass(frozen=True)
class Condition:
    """One system: a retrieval, a fusion of other conditions' runs, an expansion or a reranking of one."""

    id: str
    title: str
    retrieve: Written | None = None
    prf: Written | None = None  # the feedback that the retrieval searches again by
    fuse: Written | None = None
    aggregate: Written | None = None  # passages to documents
    expand: Written | None = None
    rerank: tuple[Written, ...] = ()  # one after the other
    of: tuple[str, ...] = ()  # the conditions that are fused, or the one that the step is of
    against: str = ""  # the condition that its values are compared with; "" = the one that is reranked
    index: str = ""  # of the retrieval, and of the vectors of a reranking
    model: str = ""  # encodes the queries; "" = the encoder of the index
    contexts: tuple[int, ...] = ()  # a sweep: a run for each number of reranked candidates
    query_sets: tuple[str, ...] = ()  # none = all; NOWHERE = it is there for others
    planned: str = ""  # what the toolkit lacks
    runs: tuple[str, ...] = ()  # name patterns of published run files of this system
    figure: str = ""  # of the paper that the sweep draws
    note: str = ""
    needs: dict[str, Any] = field(default_factory=dict)  # query set: what its last step needs there

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


@dataclass(frozen=True)
class Work:
    """One command that is no search: a study, a tuning, a recovery, a diagnosis or a benchmark."""

    id: str
    kind: str  # of the record that it makes
    options: dict[str, Any]  # of the command; `index`, `of` and `query_set` name entries of the spec
    needs: dict[str, Any] = field(default_factory=dict)


WORKS = {  # key of a spec: kind of record; the command has the kind's name, or the one given
    "studies": "study",
    "tunings": "tuning",
    "recoveries": "recovery",
    "diagnoses": "diagnosis",
    "benchmarks": "benchmark",
}
MODULES = {"study": "study", "tuning": "tune", "recovery": "recover", "diagnosis": "diagnose", "benchmark": "bench"}


@dataclass(frozen=True)
class Spec:
    """What is measured on a collection."""

    schema: int
    name: str
    title: str
    about: str
    query_sets: tuple[QuerySet, ...] = ()
    measures: tuple[str, ...] = ()
    compare: tuple[str, ...] = ()  # with their base (none = all); their values are kept by topic
    by_topic: bool = True  # whether they are
    tolerance: float = 0.0005  # absolute, on every measure
    hits: int = 1000
    redundancy: str = ""  # the index whose vectors say how alike the first documents of a run are; "" = nothing does
    notes: str = ""  # printed under the results
    parts: tuple[str, ...] = ()  # names in `parts/`, whose entries come first
    indexes: tuple[IndexEntry, ...] = ()
    models: tuple[Model, ...] = ()
    conditions: tuple[Condition, ...] = ()
    works: tuple[Work, ...] = ()
    expected: dict[str, Any] = field(default_factory=dict)  # query set: run: protocol: measure: value
    needs: dict[str, Any] = field(default_factory=dict)
    source: str = ""  # the file it was read from

    @property
    def published(self) -> bool:
        """Whether a condition of it is a published run."""
        return any(condition.published for condition in self.conditions)

    @property
    def dense_encoder(self) -> str:
        """The encoder of its first index with vectors, or what one begins with that the spec trains; "" without one."""
        encoder: Any = next((entry.parts["dense"]["encoder"] for entry in self.indexes if "dense" in entry.parts), "")
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


def query_set_names(folder: Path) -> dict[str, str]:
    """Query set → the spec that it stands in, for all specs of a folder.

    Raises:
        InputError: an id that two specs have, or that is the name of another spec.
    """
    spec_of: dict[str, str] = {}
    names = spec_names(folder)
    for spec in names:
        content = SpecDocument(folder / f"{spec}.yaml").content.get("query_sets")
        for name in content if isinstance(content, dict) else ():
            other = spec_of.get(name) or (name if name in names and name != spec else "")
            if other:
                raise InputError(f"{folder / spec}.yaml: query set {name} stands in {other} too; choose another id")
            spec_of[name] = spec
    return spec_of
