"""The request of a recovery with its similarities and teachers, checked before any work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, as_list
from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.request import Request
from rnnreranker.base.settings import hints_of, plain, setting
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import CHOICES, FIELDS, asked_fields
from rnnreranker.data.names import QRELS, TOPICS
from rnnreranker.lab.recover.teachers import Teacher, choose_teacher, known, needs_of
from rnnreranker.labels.methods.simple import JointLabeler, JointParams
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE
from rnnreranker.search.defaults import ENCODED, ENCODER, INDEX
from rnnreranker.search.queries import QueryEncoding

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.runs import Run

P = TypeVar("P", bound=RnnParams)
JOINT = "joint"
NO_SETTINGS = OF_THE_MIXTURE | {"queries"}  # of joint similarity that mean nothing here


@dataclass(frozen=True)
class RecoverRequest(Request):
    """The arguments of `recover`, and flags of the command.

    Attributes:
        index: an opened index, a folder, `pydoc`, or a prebuilt index of Pyserini.
        topics: a name, a file, or qid → text.
        qrels: with several positives a query: a name, a file, {qid: {docid: grade}} or a data frame.
        similarity: settings of rNN and of joint similarity, `joint:k=20,positive_weight=0.3,preset=tas-b`.
        beside: teachers in written form, `collective:fb_clusters=24`, see `teachers.known`.
    """

    index: str | Path | IndexOnDisk = setting(MISSING, INDEX)
    topics: str | Path | Mapping[str, str] = setting(MISSING, TOPICS)
    qrels: Qrels = setting(MISSING, QRELS)
    run: str | Path | Run | None = setting(None, "candidates (default: retrieved densely)")
    encoded_queries: str | Path | None = setting(None, ENCODED, metavar="NPY")
    encoder: Form | None = setting(None, ENCODER)
    similarity: Form = setting(JOINT, f"settings in their written form, {JOINT}:positive_weight=0.3,…", metavar="NAME")
    relevant: int = setting(1, "lowest grade of a positive", at_least=1)
    unjudged: str = setting("skip", "candidates without a judgement", one_of=lambda: ["skip", "negative"])
    source: str = setting(
        "vectors", "both: the part neighbours of the index too", flag="from", one_of=lambda: ["vectors", "both"]
    )
    visible: int = setting(1, "positives visible at a time", at_least=1)
    ablations: bool = setting(False, "joint similarity with other settings, too: each differs in one thing")
    beside: Sequence[Form] | Form = setting((), f"rank by these, too: {', '.join(known())}", metavar="NAME")
    documents: str | None = setting(None, "texts for teachers that read them (default: of the index)")
    fields: str | None = setting(None, FIELDS, one_of=lambda: [*CHOICES], metavar="NAMES")
    threads: int | None = setting(None, "default: one per core; results do not depend on it", at_least=1)

    @cached_property
    def params(self) -> RnnParams:
        """Settings of geometric, Jaccard and mixed similarity; `context` is the number of candidates.

        Raises:
            InputError: unknown settings, values out of range.
        """
        return _settings(self.similarity, RnnParams.preset("vectors"))

    @cached_property
    def joint(self) -> JointParams:
        """Settings of joint similarity, by default those of labels."""
        return _settings(self.similarity, JointLabeler.defaults)

    @cached_property
    def teachers(self) -> list[Teacher]:
        """The teachers.

        Raises:
            InputError: an unknown teacher or setting.
        """
        return [choose_teacher(form) for form in as_list(self.beside)]

    @property
    def encoding(self) -> QueryEncoding:
        """How queries are encoded."""
        return QueryEncoding.of(self.encoder, self.encoded_queries, self.topics)


def check(request: RecoverRequest) -> None:
    """Check a request before any work.

    Raises:
        InputError: all faults; unknown settings and teachers.
    """
    teachers = request.teachers
    names = [one.name for one in teachers]
    asked_fields(request.documents, request.fields)
    refuse(
        (len(set(names)) < len(names), f"{argument('beside', ' '.join(names))}: expected different names"),
        *(
            (
                setting and not getattr(chosen.params, setting),
                f"{argument('beside', name)}: which model? give {name}:{setting}=…",
            )
            for name, chosen, setting in ((*one, one.chosen.method.model_setting) for one in teachers)
        ),
        (
            request.documents and "texts" not in needs_of(teachers),
            f"{argument('documents')} goes with a {argument('beside')} that reads texts",
        ),
    )
    for name in ("params", "joint", "encoding"):
        getattr(request, name)  # read now: each says what is wrong with its written form


def _settings(form: Form, base: P) -> P:
    """`base` with the settings of a form that the class of `base` has."""
    written = Written.read(form)
    shown = argument("similarity", str(written))
    known = [name for name in hints_of(JointParams) if name not in NO_SETTINGS]
    if written.name != JOINT:
        raise InputError(f"{shown}: expected {JOINT}:KEY=VALUE,…")
    if unknown := [name for name in written.params if name not in known]:
        raise InputError(f"{shown}: " + "; ".join(f"no setting {name}, {nearest(name, known)}" for name in unknown))
    hints = hints_of(type(base))
    values = {name: plain(value, hints[name]) for name, value in written.params.items() if name in hints}
    try:
        return dataclasses.replace(type(base).named(written.preset, base) if written.preset else base, **values)
    except InputError as error:
        raise InputError(f"{shown}: {error}") from None
