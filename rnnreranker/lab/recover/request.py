"""The request of a recovery: similarities and teachers as methods of labels, checked before any work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rnnreranker.base.errors import argument, refuse
from rnnreranker.base.method import Form, as_list, naming
from rnnreranker.base.settings import Written, setting
from rnnreranker.data.names import QRELS
from rnnreranker.lab.shared import VectorsRequest
from rnnreranker.labels.request import ChosenLabeler, choose_labeler

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels

JOINT, COLLECTIVE, WITH_POSITIVES = "joint", "collective", "collective-positives"
OF_GRAPH = "graph-"  # before the names of those that a graph has, too
SINGLE = {"geometric": "geometric", "jaccard": "jaccard", "mixed": "evidence"}  # similarities to a positive alone
LAMBDAS = (0.3, 0.5, 0.7)  # of joint similarity, in place of its own
WEIGHTS = (0.0, 0.33, 0.67, 1.0)  # of the positive, in place of its own


class Teacher(NamedTuple):
    """The name of a teacher, the method of labels whose scores are its own, and this method with checked settings."""

    name: str
    method: Written
    chosen: ChosenLabeler


def choose_teacher(form: Form, context: int) -> Teacher:
    """The teacher of a written form: `late`, `collective:fb_clusters=24`, `cross-encoder:model=NAME`.

    Raises:
        InputError: an unknown teacher or setting, values out of range.
    """
    written = Written.read(form)
    with naming("beside", written):
        unread = "context" in written.params
        refuse((unread, "no setting context: every candidate of the recovery's context is scored"))
        method = Written("teacher", {"teacher": str(written), "context": context})
        if written.name in (COLLECTIVE, WITH_POSITIVES):
            own = {"positives": written.name == WITH_POSITIVES, "context": context}
            method = Written(COLLECTIVE, written.params | own, written.preset)
        return Teacher(written.name, method, choose_labeler(method))


@dataclass(frozen=True, kw_only=True)
class RecoverRequest(VectorsRequest):
    """The arguments of `recover`, and flags of the command.

    Attributes:
        qrels: with several positives a query: a name, a file, {qid: {docid: grade}} or a data frame.
        similarity: settings of rNN and of joint labels, `joint:k=20,positive_weight=0.3,preset=tas-b`.
        beside: teachers in written form, `collective:fb_clusters=24`, see `choose_teacher`.
    """

    qrels: Qrels | None = setting(None, QRELS)
    similarity: Form = setting(JOINT, f"settings in their written form, {JOINT}:positive_weight=0.3,…", metavar="NAME")
    relevant: int = setting(1, "lowest grade of a positive", at_least=1)
    unjudged: Literal["skip", "negative"] = setting("skip", "candidates without a judgement")
    source: Literal["vectors", "both"] = setting("vectors", "both: the part neighbours of the index too", flag="from")
    visible: int = setting(1, "positives visible at a time", at_least=1)
    ablations: bool = setting(False, "joint similarity with other settings, too: each differs in one thing")
    beside: Sequence[Form] | Form = setting(
        (), f"rank by rerankers that read no run scores, {COLLECTIVE}, {WITH_POSITIVES}, too", metavar="NAME"
    )

    def method(self, name: str, **changed: Any) -> Written:
        """A method of labels with the settings of the similarity, some of them changed."""
        own = Written.read(self.similarity)
        params = {key: value for key, value in own.params.items() if name == JOINT or key != "positive_weight"}
        return Written(name, params | changed, own.preset)

    @cached_property
    def chosen(self) -> dict[str, Any]:
        """The settings of mixed and of joint similarity; InputError: unknown ones, values out of range."""
        with naming("similarity", own := Written.read(self.similarity)):
            refuse((own.name != JOINT or "from" in own.params, f"expected {JOINT}:KEY=VALUE,…, without from"))
            return {name: choose_labeler(self.method(name)).params for name in (JOINT, SINGLE["mixed"])}

    @property
    def context(self) -> int:
        """The number of candidates."""
        return int(self.chosen[JOINT].context)

    @property
    def scorers(self) -> dict[str, Written]:
        """Scorer → the method of labels whose scores it is, of the query first, of the graph last."""
        own, changes = self.chosen[JOINT], {"joint-geometric": {"lam": 1.0}, "joint-jaccard": {"lam": 0.0}, JOINT: {}}
        if self.ablations:
            changes |= {f"joint, lambda {lam:g}": {"lam": lam} for lam in LAMBDAS if lam != own.lam}
            changes |= {f"joint, a {a:g}": {"positive_weight": a} for a in WEIGHTS if a != own.positive_weight}
        made = {"query": self.method("query")} | {name: self.method(method) for name, method in SINGLE.items()}
        made |= {name: self.method(JOINT, **changed) for name, changed in changes.items()}
        if self.source == "both":
            graph = {"from": "neighbours"}
            made |= {OF_GRAPH + name: self.method(method, **graph) for name, method in SINGLE.items()}
            made[OF_GRAPH + JOINT] = self.method(JOINT, queries="encoded", **graph)
        return made

    @cached_property
    def teachers(self) -> list[Teacher]:
        """The teachers; InputError: an unknown teacher or setting."""
        return [choose_teacher(form, self.context) for form in as_list(self.beside)]


def check(request: RecoverRequest) -> None:
    """Check a request before any work.

    Raises:
        InputError: all faults; unknown settings and teachers.
    """
    names = [one.name for one in request.teachers]
    twice = len({*names}) < len(names)
    refuse(
        *request.lacking("index", "topics", "qrels"),
        (twice, f"{argument('beside')}: {', '.join(names)}: expected different names"),
    )
    _ = request.chosen, request.encoding  # each says what is wrong with its written form
