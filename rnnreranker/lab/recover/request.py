"""The request of a recovery with its similarities and teachers, checked before any work."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rnnreranker.base.errors import argument, nearest, refuse
from rnnreranker.base.method import Chosen, Form, as_list, choose, methods, naming, needs_together
from rnnreranker.base.settings import Written, check_names, hints_of, setting
from rnnreranker.data.fields import CHOICES, FIELDS, asked_fields
from rnnreranker.data.names import QRELS
from rnnreranker.lab.query_set import VectorsRequest
from rnnreranker.labels.methods.simple import JointLabeler, JointParams
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels

P = TypeVar("P", bound=RnnParams)
JOINT = "joint"
NO_SETTINGS = OF_THE_MIXTURE | {"queries"}  # of joint similarity that mean nothing here
COLLECTIVE = {"collective": False, "collective-positives": True}  # whether the visible positive gives feedback


class Teacher(NamedTuple):
    """A name of `known`, and the reranker with its settings."""

    name: str
    chosen: Chosen


def known() -> list[str]:
    """Names of teachers: rerankers that read no run scores, and the collective teacher."""
    return [*COLLECTIVE, *(name for name, kind in methods("reranker").items() if "run scores" not in kind.needs)]


def choose_teacher(form: Form) -> Teacher:
    """The teacher of a written form: `late`, `collective:fb_clusters=24`, `cross-encoder:model=NAME`.

    Raises:
        InputError: an unknown teacher or setting, values out of range, no model where one is needed.
    """
    of = written = Written.read(form)
    with naming("beside", written):
        refuse(
            (written.name not in known(), f"no such teacher; {nearest(written.name, known())}"),
            ("context" in written.params, "no setting context: every candidate of the recovery's context is scored"),
        )
        if written.name in COLLECTIVE:
            of = Written("prf", {"feedback": str(dataclasses.replace(written, name="colbert"))})
        return Teacher(written.name, choose("reranker", of))


@dataclass(frozen=True, kw_only=True)
class RecoverRequest(VectorsRequest):
    """The arguments of `recover`, and flags of the command.

    Attributes:
        qrels: with several positives a query: a name, a file, {qid: {docid: grade}} or a data frame.
        similarity: settings of rNN and of joint similarity, `joint:k=20,positive_weight=0.3,preset=tas-b`.
        beside: teachers in written form, `collective:fb_clusters=24`, see `known`.
    """

    qrels: Qrels | None = setting(None, QRELS)
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

    @cached_property
    def params(self) -> RnnParams:
        """Settings of geometric, Jaccard and mixed similarity; `context` is the number of candidates.

        Raises:
            InputError: unknown settings, values out of range.
        """
        return self._settings(RnnParams.preset("vectors"))

    @cached_property
    def joint(self) -> JointParams:
        """Settings of joint similarity, by default those of labels."""
        return self._settings(JointLabeler.defaults)

    def _settings(self, base: P) -> P:
        """`base` with those of its settings that the written form has."""
        written = Written.read(self.similarity)
        with naming("similarity", written):
            refuse((written.name != JOINT, f"expected {JOINT}:KEY=VALUE,…"))
            known = {name: hint for name, hint in hints_of(JointParams).items() if name not in NO_SETTINGS}
            values = check_names(written.params, known)
            base = type(base).named(written.preset, base) if written.preset else base
            return dataclasses.replace(base, **{name: value for name, value in values.items() if name in vars(base)})

    @cached_property
    def teachers(self) -> list[Teacher]:
        """The teachers; InputError: an unknown teacher or setting."""
        return [choose_teacher(form) for form in as_list(self.beside)]


def check(request: RecoverRequest) -> None:
    """Check a request before any work.

    Raises:
        InputError: all faults; unknown settings and teachers.
    """
    names, chosen = [one.name for one in request.teachers], [one.chosen for one in request.teachers]
    asked_fields(request.documents, request.fields)
    models = [(one.name, own) for one in chosen if (own := one.method.model_setting) and not getattr(one.params, own)]
    beside = argument("beside")
    refuse(
        *request.lacking("index", "topics", "qrels"),
        (len(set(names)) < len(names), f"{beside}: {', '.join(names)}: expected different names"),
        *((True, f"{argument('beside', name)}: which model? give {name}:{own}=…") for name, own in models),
        (
            request.documents and "texts" not in needs_together(chosen),
            f"{argument('documents')} goes with a {beside} that reads texts",
        ),
    )
    _ = request.params, request.joint, request.encoding  # each says what is wrong with its written form
