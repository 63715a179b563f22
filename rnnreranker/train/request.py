"""What a training is asked for: a request, and the model, the loss and the encoder that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.device import AUTO
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import fields_of, find, methods, names
from rnnreranker.base.request import Request
from rnnreranker.base.settings import Params, choices, hints_of, setting
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import CHOICES, FIELDS, asked_fields
from rnnreranker.encode.params import TRAINED_POOLINGS, EncoderParams, ScorerParams
from rnnreranker.search.defaults import INDEX
from rnnreranker.train.params import TrainingParams, settings_for

if TYPE_CHECKING:
    from rnnreranker.data.document import Document
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels import SoftLabels
    from rnnreranker.runs import Run

KIND = "trained-model"  # of method
SCORERS = choices(hints_of(ScorerParams)["scorer"])


class Training(NamedTuple):
    """A kind of model with the settings of its training, and those of the loss that they name."""

    model: Any
    params: TrainingParams
    loss: Params


class Start(NamedTuple):
    """What a training begins with: a name, a folder or a hub id; None = what the model's own files say."""

    name: str
    pooling: str | None = None
    normalize: bool | None = None


@dataclass(frozen=True)
class TrainRequest(Request):
    """A training: the arguments of `train_model`, and the flags of the command.

    Attributes:
        output: the folder to write.
        model: what is trained, with settings of the training in its written form, `late:preset=colbert,epochs=3`.
        labels: `SoftLabels` or a file of them; negatives: a file, in place of labels.
        index: an opened index, a folder, `pydoc`, or the name of a prebuilt index of Pyserini.
        documents: texts where the index has none; fields: which of theirs, "title,text" or "text".
        topics: texts of the queries: a name, a file, or qid → text.
        encoder: what the training begins with, `name:pooling=cls,normalize=true`; "none" = a new model; None = the
            encoder that made the index.
        loss: what it lowers, in its written form, `multi-tier:margin=2`; the setting `loss` of the model says the same.
        validation_labels, validation_run, validation_qrels, validation_topics: of the queries that validate, labels or
            the other three; None = a share of the training queries is held out.
        scorer: of candidates, trained with the encoder, in its written form, `encoder:blocks=1`; None = none.
        neutrality: of documents, by docid, or a file of `docid<TAB>value`.
        other_index: take labels that were made from another index.
        checkpoints: write one at every validation, to resume from.
        device: "cpu", "cuda" or "auto".
        on_validation: of `query`, called with step and measures after every validation; what it raises ends the
            training.
    """

    output: str | Path = setting(MISSING, "folder of the trained model")
    model: Form = setting("query", f"what is trained, one of {', '.join(names(KIND))}")
    labels: str | Path | SoftLabels | None = setting(None, "file of python -m rnnreranker.labels")
    negatives: str | Path | None = setting(None, "file of python -m rnnreranker.negatives, in place of labels")
    index: str | Path | IndexOnDisk | None = setting(None, f"document vectors, or texts: {INDEX}")
    documents: str | None = setting(None, "texts, where the index has none: .jsonl, .tsv, ir_datasets id, `pydoc`")
    fields: str | None = setting(None, FIELDS, one_of=lambda: [*CHOICES])
    topics: str | Path | Mapping[str, str] | None = setting(None, "query texts: file, ir_datasets id, `pydoc/train`")
    encoder: Form | None = setting(
        None, "to begin with: NAME|FOLDER|hub id[:pooling=cls]; none = a new model (default: that of the index)"
    )
    loss: Form | None = setting(None, f"{', '.join(names('loss'))} (default: that of the model)")
    validation_labels: str | Path | SoftLabels | None = setting(None, "file of their candidates and targets")
    validation_run: str | Path | Run | None = setting(None, "candidates of them, in place of labels")
    validation_qrels: Qrels | None = setting(None, "judgements, beside a run; from grade 1 on relevant")
    validation_topics: str | Path | Mapping[str, str] | None = setting(None, "texts of them, where --topics has none")
    scorer: Form | None = setting(
        None, f"of candidates, for search --rerank scorer: {', '.join(SCORERS)} (default: the inner product)"
    )
    neutrality: str | Path | Mapping[str, float] | None = setting(
        None, "file of docid<TAB>value in [0, 1], for query:neutrality_weight"
    )
    other_index: bool = setting(False, "take labels that were made from another index")
    checkpoints: bool = True
    device: str = setting(AUTO, f"cpu, cuda, {AUTO}")
    on_validation: Callable[[int, dict[str, float]], None] | None = None

    @cached_property
    def training(self) -> Training:
        """The model, the settings of its training and those of its loss."""
        return training_of(self.model, self.loss)

    @cached_property
    def scoring(self) -> ScorerParams | None:
        """What scores the candidates; None = the inner product.

        Raises:
            InputError: no such scorer, settings that it does not have.
        """
        if self.scorer is None:
            return None
        written = Written.read(self.scorer)
        shown = argument("scorer", str(written))
        if written.name not in SCORERS:
            raise InputError(f"{shown}: no such scorer; {nearest(written.name, SCORERS)}")
        return ScorerParams.of(written.params, shown, scorer=written.name)

    @cached_property
    def start(self) -> Start:
        """What the training begins with.

        Raises:
            InputError: none is given where the index does not say what made it, settings that mean nothing here.
        """
        model = self.training.model
        if self.encoder is None:
            encoder = self._encoder_of_index(model)
            name, settings = str(encoder.get("name", "")), encoder.get("settings", {})
            own = {key: settings.get(key) for key in Start._fields[1:]} if model.encoder_settings else {}
            return Start(name, **own)
        written = Written.read(self.encoder)
        shown = argument("encoder", str(written))
        given = EncoderParams.of(written.params, shown).given()
        if strange := [name for name in given if name not in model.encoder_settings]:
            takers = [one for one, kind in methods(KIND).items() if kind.encoder_settings]
            raise InputError(
                f"{shown}: {', '.join(strange)}: expected {' or '.join(Start._fields[1:])}, of "
                f"{' or '.join(argument('model', one) for one in takers)}, as the training keeps the rest"
            )
        if given.get("pooling") not in (None, *TRAINED_POOLINGS):
            raise InputError(f"{shown}: pooling={given['pooling']}: expected {' or '.join(TRAINED_POOLINGS)}")
        return Start(written.name, **given)

    def _encoder_of_index(self, model: Any) -> dict[str, Any]:
        """What the index says of the encoder that made the part whose encoder is trained."""
        from rnnreranker.index.opening import open_index

        if self.index is None:
            raise InputError(f"{argument('encoder')} is missing: what the training begins with")
        index = open_index(self.index)
        encoder: dict[str, Any] = index.settings.get("parts", {}).get(model.part, {}).get("encoder", {})
        if not isinstance(encoder, dict) or not encoder.get("name"):
            raise InputError(
                f"{index.name}: this index does not say which encoder made its part {model.part}; give "
                f"{argument('encoder')}, what the training begins with"
            )
        return encoder

    def lacking(self, *names: str) -> list[str]:
        """Those of some arguments that were not given, as their user writes them."""
        return [argument(name) for name in names if getattr(self, name) is None]


def all_documents(request: TrainRequest, what: str) -> Iterable[Document]:
    """All documents of the source of a request, else of its index; InputError: neither has texts, which are `what`."""
    from rnnreranker.data.documents import load_documents
    from rnnreranker.index.opening import open_index
    from rnnreranker.parts.texts import documents_of

    index = None if request.index is None else open_index(request.index)
    if request.documents:
        fields = asked_fields(request.documents, request.fields) or (None if index is None else index.fields)
        return load_documents(request.documents, fields)
    if index is None or index.texts is None:
        raise InputError(f"give {argument('documents')}, or {argument('index')} of an index with texts: {what}")
    return documents_of(index.texts)


def labels_of(given: str | Path | SoftLabels) -> SoftLabels:
    """The labels of a file; labels as they are; errors as `SoftLabels.read`."""
    from rnnreranker.labels import SoftLabels

    return given if isinstance(given, SoftLabels) else SoftLabels.read(given)


def training_of(model: Form, loss: Form | None = None, base: Any = None) -> Training:
    """The model of a written form, the settings of its training, and those of the loss that they name.

    Args:
        model: `dual:preset=le-bs,loss=distance:alpha=0.5`; its settings are those of a training, with `loss`.
        loss: in place of the setting `loss`.
        base: settings of the training where nothing else is said; None = its defaults.

    Raises:
        InputError: no such model or loss, settings that they do not have, or that this loss does not read, a loss
            given twice, values out of range, no such preset.
    """
    written = Written.read(model)
    if written.name not in names(KIND):
        raise InputError(f"{argument('model', written.name)}: no such model; {nearest(written.name, names(KIND))}")
    trained = find(KIND, written.name)()
    shown, values = argument("model", written.name), dict(written.params)
    if loss is not None and "loss" in values:
        raise InputError(f"{argument('loss', str(Written.read(loss)))} and loss={values['loss']} of {shown}: give one")
    known = [field.name for field in fields_of(trained)]
    if loss is not None and "loss" not in known:
        own = " or ".join(one for one, kind in methods(KIND).items() if "loss" not in getattr(kind, "without", ()))
        raise InputError(f"{argument('loss')}: is for {argument('model')} {own}, not for {written.name}")
    if loss is not None:
        values["loss"] = loss
    if unknown := [name for name in values if name not in known]:
        raise InputError(f"{shown}: " + "; ".join(_no_setting(name, known) for name in unknown))
    if "loss" in values:
        values |= _of_loss(values["loss"])
    try:
        return Training(trained, *settings_for(trained.Params, values, written.preset or None, base))
    except InputError as error:
        raise InputError(f"{shown}: {error}") from None


def _no_setting(name: str, known: list[str]) -> str:
    """That a model has no such setting, and what has one."""
    own = [one for one, model in methods(KIND).items() if name in [field.name for field in fields_of(model)]]
    losses = [one for one, loss in methods("loss").items() if name in hints_of(loss.Params)]
    if own:
        return f"no setting {name}, which is for {argument('model')} {' or '.join(own)}"
    if losses:
        return f"no setting {name}, which is of the loss {' or '.join(losses)}: {argument('loss', f'NAME:{name}=…')}"
    return f"no setting {name}, {nearest(name, known)}"


def _of_loss(form: Form) -> dict[str, Any]:
    """A loss and its settings, by name, as `settings_for` takes them."""
    written = Written.read(form)
    shown = argument("loss", str(written))
    if written.name not in names("loss"):
        raise InputError(f"{shown}: no such loss; {nearest(written.name, names('loss'))}")
    own = find("loss", written.name).Params
    own.of(written.params, shown)
    if written.preset:
        raise InputError(f"{shown}: a loss has no presets; give the preset to the model")
    return {"loss": written.name, **written.params}
