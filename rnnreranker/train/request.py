"""`train_model`: the request of a training, its model and start, and its validation queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnreranker.base.command import check_apart, counted, notice, phase, say
from rnnreranker.base.device import AUTO, trained_on
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.jobs import alone
from rnnreranker.base.method import Form, Inputs, find, methods, names
from rnnreranker.base.settings import PRESET, Written, asked, check_names, hints_of, located, setting
from rnnreranker.data.fields import TextsRequest
from rnnreranker.data.names import INDEX
from rnnreranker.data.splits import by_hash
from rnnreranker.encode.params import RECORD, EncoderParams, ScorerParams
from rnnreranker.train.params import TrainingParams, settings_for

if TYPE_CHECKING:
    import pandas

    from rnnreranker.data.document import Document
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import Index
    from rnnreranker.labels import SoftLabels
    from rnnreranker.runs import Run

KIND = "trained-model"  # of method
SCORERS = hints_of(ScorerParams)["scorer"].words
FEW = 100  # validation queries below which the best of the steps, or of trials, is mostly chance


class Training(NamedTuple):
    model: Any
    params: TrainingParams


@dataclass(frozen=True)
class Start:
    """The initial model, a name, a folder or a hub id, and settings of `EncoderParams` in place of its own files'."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainRequest(TextsRequest):
    """A training: the arguments of `train_model` and the flags of the command.

    Attributes:
        model: written form, `late:preset=colbert,epochs=3`; `preset` may stand beside it.
        labels: `SoftLabels` or a file; index: opened, or a name; topics: files, or qid → text.
        encoder: "none" = a new model; None = the encoder of the index.
        validation_run, validation_qrels, validation_topics: validation queries, by all three; None = a share of the
            training queries.
    """

    output: str | Path = setting(MISSING, "folder of the trained model", metavar="DIR")
    model: Form = setting("query", f"what is trained, one of {', '.join(names(KIND))}")
    labels: str | Path | SoftLabels | None = setting(None, "file of python -m rnnreranker.labels")
    negatives: str | Path | None = setting(None, "file of python -m rnnreranker.negatives, in place of labels")
    index: str | Path | Index | None = setting(None, f"document vectors, or texts: {INDEX}")
    topics: str | Path | Mapping[str, str] | None = setting(None, "query texts: file, ir_datasets id, `pydoc/train`")
    encoder: Form | None = setting(
        None, "to begin with: NAME|FOLDER|hub id[:pooling=cls]; none = a new model (default: that of the index)"
    )
    preset: str | None = setting(None, "published values, ours, or a YAML file", metavar="NAME")
    validation_run: str | Path | Run | None = setting(None, "candidates of them", metavar="RUN")
    validation_qrels: Qrels | None = setting(
        None, "judgements, beside a run; from grade 1 on relevant", metavar="QRELS"
    )
    validation_topics: str | Path | Mapping[str, str] | None = setting(None, "texts of them", metavar="FILE")
    scorer: Form | None = setting(
        None, f"of candidates, for search --rerank scorer: {', '.join(SCORERS)} (default: the inner product)"
    )
    neutrality: str | Path | Mapping[str, float] | None = setting(
        None, "file of docid<TAB>value in [0, 1], for query:neutrality_weight"
    )
    other_index: bool = setting(False, "take labels that were made from another index")
    device: str = setting(AUTO, f"cpu, cuda, {AUTO}", metavar="NAME")

    @cached_property
    def training(self) -> Training:
        given = {} if self.preset is None else {PRESET: self.preset}
        return training_of(Written.read(self.model).beside(given, argument("model")))

    @cached_property
    def scoring(self) -> ScorerParams | None:
        """Settings of the scorer of candidates; None = the inner product. InputError: unknown scorer or settings."""
        if self.scorer is None:
            return None
        written = Written.read(self.scorer)
        return ScorerParams.of(written.given, argument("scorer", str(written)), scorer=written.name)

    @cached_property
    def start(self) -> Start:
        """The initial model. InputError: none is given or known to the index, or settings without effect."""
        model, taken = self.training.model, sorted(self.training.model.encoder_settings)
        if self.encoder is not None:
            written = Written.read(self.encoder)
            shown = argument("encoder", str(written))
            with located(shown):
                check_names(written.params, taken, f"setting with {argument('model', model.name)}")
            return Start(written.name, EncoderParams.of(written.given, shown).given())
        parts = {} if self.opened is None else self.opened.settings.get("parts", {})
        encoder = parts.get(model.part, {}).get("encoder")
        if not encoder:
            shown = f"{argument('encoder')} is missing: it is the initial model"
            raise InputError(f"{shown}, as no {argument('index')} says which encoder made its part {model.part}")
        own = encoder.get("settings", {})
        known = {*taken, "max_length"}
        return Start(
            encoder["name"], {name: value for name, value in own.items() if name in known and value is not None}
        )

    @cached_property
    def opened(self) -> Index | None:
        from rnnreranker.index.opening import open_index

        return None if self.index is None else open_index(self.index)

    def needed(self, *read: str) -> None:
        """Check that arguments are given. InputError: those that are None."""
        if lacking := [argument(name) for name in read if getattr(self, name) is None]:
            raise InputError(
                f"{', '.join(lacking)} missing: expected with {argument('model', self.training.model.name)}"
            )

    def texts_of_queries(self) -> dict[str, str]:
        """Texts of the training queries. InputError: no topics."""
        from rnnreranker.data.topics import topics_of

        self.needed("topics")
        return topics_of(self.topics)  # type: ignore[arg-type]

    def texts(self, docids: Iterable[str]) -> dict[str, str]:
        """Texts of documents, of the request's source or its index; some may be missing."""
        from rnnreranker.search.inputs import texts_for

        return texts_for(docids, self.opened, self.documents, self.document_fields)

    def all_documents(self, what: str) -> Iterable[Document]:
        """All documents of the request's source, else of its index. InputError: neither has texts; what: their use."""
        from rnnreranker.data.documents import load_documents
        from rnnreranker.parts.texts import documents_of

        if self.documents:
            fields = self.document_fields or getattr(self.opened, "fields", None)
            return load_documents(self.documents, fields)
        if self.opened is None or self.opened.texts is None:
            raise InputError(f"give {argument('documents')}, or {argument('index')} of an index with texts: {what}")
        return documents_of(self.opened.texts)


def training_of(model: Form, base: Any = None) -> Training:
    """The model of a written form, `dual:preset=le-bs,loss="distance:alpha=0.5"`, with its settings.

    base: values of other settings; None = the defaults.

    Raises:
        InputError: unknown names, settings without effect, values out of range.
    """
    written = Written.read(model)
    with located(argument("model", written.name)):
        trained = find(KIND, written.name)()
        return Training(trained, settings_for(trained.Params, written.params, written.preset or None, base))


def labels_of(given: str | Path | SoftLabels) -> SoftLabels:
    """The labels of a file, or the labels themselves; errors as `SoftLabels.read`."""
    from rnnreranker.labels import SoftLabels

    return given if isinstance(given, SoftLabels) else SoftLabels.read(given)


GIVEN = ("validation_run", "validation_topics", "validation_qrels")  # they go together


def validation_of(request: TrainRequest, queries: int) -> tuple[SoftLabels | None, dict[str, str]]:
    """Labels of the given validation queries (None if none are given), and their texts.

    queries: the most that are taken of a run. InputError: incomplete arguments, unreadable files.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.runs import Run

    run, topics, judged = given = [getattr(request, name) for name in GIVEN]
    if all(one is None for one in given):
        return None, {}
    request.needed(*GIVEN)
    texts = topics_of(topics)
    labels = hard_labels(run if isinstance(run, Run) else Run.read(run), texts, qrels_of(judged), queries)
    return labels, {qid: texts[qid] for qid in labels.qids}


def hard_labels(run: Run, topics: Mapping[str, str], qrels: pandas.DataFrame, queries: int) -> SoftLabels:
    """Hard labels of at most `queries` judged validation queries over a run's candidates, with missing positives added.

    The papers validate on 10,000 queries with one relevance level (000, A.2.1; 001, 3.2).

    Raises:
        InputError: no topic has a judgement of grade 1 or more, or none of those has candidates.
    """
    from rnnreranker.labels.methods.simple import HardLabeler

    positive = set(qrels.loc[qrels["relevance"] >= 1, "query_id"])
    chosen = [qid for qid in topics if qid in positive][:queries]
    known = [qid for qid in chosen if qid in run]
    if not known:
        raise InputError(
            f"none of {counted(len(topics), 'validation topic')} has a judgement of grade 1 or more"
            f"{' and candidates in the run' if chosen else ''}; give topics, judgements and a run of the same queries"
        )
    if left := len(chosen) - len(known):
        say(f"{counted(left, 'validation query', 'validation queries')} without candidates left out")
    return HardLabeler(Inputs()).infer(run, qrels[qrels["query_id"].isin(known)])


def split(qids: Iterable[str], share: float, seed: int) -> set[str]:
    """The held-out ids: those with the lowest hash of seed and id, whatever their order.

    >>> sorted(split(["a", "b", "c", "d"], 0.5, 1)) == sorted(split(["d", "c", "b", "a"], 0.5, 1))
    True
    """
    ordered = by_hash(qids, seed)
    return set(ordered[: math.ceil(share * len(ordered))])


def held_out_of(qids: Iterable[str], params: Any, given: SoftLabels | None = None) -> set[str]:
    """The ids of validation: those of the given labels, else those that `split` holds out.

    Raises:
        InputError: an id is for training too, or one side is empty.
    """
    ids = set(qids)
    held_out = set(given.qids) if given else split(ids, params.validation_share, params.seed)
    if given and (twice := sorted(ids & held_out)):
        raise InputError(
            f"{counted(len(twice), 'query', 'queries')} in both training and validation (first: "
            f"{', '.join(twice[:3])}); expected different queries"
        )
    if not held_out or held_out == ids:
        raise InputError(
            f"{len(ids)} queries or texts cannot be split into training and validation: expected two or more, and a "
            f"share between (validation_share={params.validation_share}); or give validation queries of their own "
            f"({argument('validation_run')}), where the model takes them"
        )
    return held_out


@dataclass(frozen=True)
class Trained:
    """The result of a training.

    Attributes:
        path: the folder of the model; record: content of its `training.json`.
        best_step: step of the written weights, 0 if the start was best; measures: of its validation.
        history: step and measures of each validation.
        seconds: of training, without validations.
    """

    path: Path
    best_step: int
    steps: int
    measures: dict[str, float]
    history: tuple[dict[str, float], ...]
    seconds: float
    record: dict[str, Any]


def train_model(
    labels: str | Path | SoftLabels | None,
    index: str | Path | Index | None,
    topics: str | Path | Mapping[str, str] | None,
    kind: Form = "query",
    *,
    output: str | Path,
    **others: Any,
) -> Trained:
    """Train a model and write it to a folder, as `python -m rnnreranker.train`.

    Args:
        labels: `SoftLabels` or a file; None with `negatives`, and for models of single texts.
        index: source of the labels; topics: a name, a file, or qid → text.
        kind: query, dual, sparse, late, cross, term-scorer or masked, in its written form `late:epochs=3`.
        output: the folder; a killed training resumes when it is requested again.
        others: as in `TrainRequest`.

    Raises:
        InputError: bad arguments, mismatched files.
        UnavailableError, MissingDependencyError: a missing encoder or package.
    """
    given = {"output": output, "model": kind, "labels": labels, "index": index, "topics": topics}
    return train(asked(TrainRequest, given | others))


def train(request: TrainRequest) -> Trained:
    check(request)
    model, params = request.training
    with phase("training"), alone(Path(request.output), doing="training to it"):
        trained = model.train(request, params, trained_on(request.device))
    as_it_was = "" if trained.best_step else f"no step was better than the start, so {request.output} is the start"
    notice_doubts(trained.record.get("validation_queries"), as_it_was)
    return trained


def notice_doubts(validated: int | None, *others: str) -> None:
    """Print one warning of few validation queries and of the other doubts that are not empty."""
    doubts = [doubt for doubt in others if doubt]
    if validated is not None and validated < FEW:
        queries = counted(validated, "validation query", "validation queries")
        doubts.insert(0, f"{queries}, fewer than {FEW}: which step is best is mostly chance")
    if doubts:
        notice("; ".join(doubts))


def check(request: TrainRequest) -> None:
    """Check a request before any work.

    Raises:
        InputError: unknown names, arguments without effect, or an output that cannot be written or contains an input.
    """
    model, output = request.training.model, Path(request.output)
    for read in sorted({read for kind in methods(KIND).values() for read in kind.reads - model.reads}):
        if getattr(request, read) not in (None, False):
            raise InputError(f"{argument(read)}: expected none with {argument('model', model.name)}")
    _ = request.scoring, request.encoder and request.start  # each says what is wrong with its written form
    trained_on(request.device)
    _ = request.document_fields
    if output.exists() and not (output / RECORD).is_file() and (output.is_file() or any(output.iterdir())):
        raise InputError(f"{output}: has files that this command did not write; give another {argument('output')}")
    check_apart(vars(request), replaces=request.output)
