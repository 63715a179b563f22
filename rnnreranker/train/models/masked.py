"""The model masked: a masked language model of a collection's own texts, for other trainings to begin with."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.command import counted, progress, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import fields_of
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import setting
from rnnreranker.data.fields import asked_fields
from rnnreranker.train.group.params import as_in
from rnnreranker.train.model_files import NOTHING
from rnnreranker.train.models.base import TextModel
from rnnreranker.train.params import TrainingParams, TrainParams
from rnnreranker.train.text.params import TextParams

if TYPE_CHECKING:
    from rnnreranker.train.query.training import Trained


@dataclass(frozen=True)
class MaskedParams(TextParams):
    """How a masked language model is trained, and the shape of a new one: BERT's, with four of its twelve layers.

    Raises:
        InputError: values out of range, all of them in one message.
    """

    epochs: float = as_in(TrainParams, "epochs", 10.0)
    learning_rate: float = as_in(TrainParams, "learning_rate", 1e-4)
    mask_share: float = setting(0.15, "of the tokens of a text, to be guessed", above=0, at_most=0.9)
    layers: int = setting(4, "of a new model", at_least=1, flag="new-layers", tunable=False)
    hidden_size: int = setting(
        768, "of a new model: the width of its states", at_least=1, flag="new-size", tunable=False
    )
    heads: int = setting(12, "of a new model: of attention", at_least=1, flag="new-heads", tunable=False)
    vocabulary: int = setting(
        21128,
        "of a new model: its tokens, all characters before frequent words",
        at_least=6,
        flag="new-vocabulary",
        tunable=False,
    )


class Masked(TextModel):
    """A masked language model (BERT) of a collection's texts, from one or, with `--encoder none`, from nothing."""

    name = "masked"
    needs = frozenset({"texts"})
    Params: ClassVar[type[settings.Params]] = MaskedParams
    flags = frozenset({"documents", "fields"})

    def train(self, args: argparse.Namespace, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        """Read the texts, and train."""
        from rnnreranker.base.files import fingerprint
        from rnnreranker.train.query.samples import split
        from rnnreranker.train.text.training import train_on_texts

        assert isinstance(params, MaskedParams)
        self.refuse(args, loss)
        shape = [field for field in fields_of(type(self)) if field.metadata.get("flag", "").startswith("new-")]
        if args.encoder != NOTHING:
            for field in shape:
                if getattr(params, field.name) != field.default:
                    raise InputError(
                        f"{settings.flag(settings.typed_name(field))}: is of a new model, of --encoder none; "
                        f"{args.encoder} has its own"
                    )
        for name in ("labels", "topics"):
            if getattr(args, name):
                raise InputError(f"--{name}: not for --model masked, which reads the texts of documents alone")
        with phase("reading texts"):
            texts = _texts(args)
        held_out = split(list(texts), params.validation_share, params.seed)
        checked = [text for docid, text in texts.items() if docid in held_out]
        training = [text for docid, text in texts.items() if docid not in held_out]
        if not training or not checked:
            raise InputError(
                f"{counted(len(texts), 'text')} cannot be split into training and validation: expected two or more, "
                f"and a share between (validation_share={params.validation_share})"
            )
        with phase("importing torch and transformers", "imports"):
            from rnnreranker.train.masked.learner import MaskedLearner
        encoder = None if args.encoder == NOTHING else args.encoder
        return train_on_texts(
            lambda: MaskedLearner(encoder, training, checked, params),
            *(self.name, encoder, args.output, params, {"validation_texts": len(checked)}),
            fingerprint(training, checked),
            checkpoints=args.checkpoints,
            device=device,
        )


def _texts(args: argparse.Namespace) -> dict[str, str]:
    """Docid -> text, of documents with a text, in the order of their docids."""
    from rnnreranker.data.documents import load_documents
    from rnnreranker.parts.texts import documents_of
    from rnnreranker.search.indexes import open_index

    if not args.documents and not args.index:
        raise InputError("give --documents, or --index of an index with texts: what the model learns from")
    if args.documents:
        fields = asked_fields(args) or (open_index(args.index).fields if args.index else None)
        found = load_documents(args.documents, fields)
    elif (folder := open_index(args.index).texts) is not None:
        found = documents_of(folder)
    else:
        raise InputError(f"{args.index}: no texts in this index; give --documents, what it was made from")
    texts = {one.docid: one.text for one in progress(found, unit="documents", what="read")}
    kept = {docid: texts[docid] for docid in sorted(texts) if texts[docid].strip()}
    if empty := len(texts) - len(kept):
        say(f"{counted(empty, 'document')} with an empty text: left out")
    return kept
