"""How much probability leaves the positives, learnt from judgements of queries that nothing is tested on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.phases import phase
from rnnreranker.labels import targets
from rnnreranker.labels.judged import Judged, contexts_of
from rnnreranker.labels.mass.held_out_loss import FOLDS, SHARES, Listwise, best_share, held_out_losses
from rnnreranker.labels.mass.hidden_positives import even_threshold, hidden_positives, likeliest_share
from rnnreranker.labels.methods.base import Labeler, VectorLabeler
from rnnreranker.labels.params import SHARED, LabelParams

if TYPE_CHECKING:
    from rnnreranker.runs import Run

MOST = 1000  # queries that a share is learnt from
DEPTH = 100  # candidates of each that it is learnt among by the loss, as far as the run has them
SEVERAL = 0.5  # of the queries must have several positives for their judgements to tell the share


@dataclass(frozen=True)
class LearntMass:
    """What was learnt.

    Attributes:
        params: of the labels, with `share` and `threshold`.
        by: "judgements", where most validation queries have several positives, or "loss" on held-out positives.
        queries: learnt from; several: those of them with several positives.
        losses: share → mean loss on held-out positives; empty for "judgements".
    """

    params: LabelParams
    by: str
    queries: int
    several: int
    losses: dict[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as for the metadata of labels."""
        losses = {f"{share:g}": round(loss, 6) for share, loss in self.losses.items()}
        return {"by": self.by, "queries": self.queries, "several": self.several} | (
            {"losses": losses} if losses else {}
        )

    def __str__(self) -> str:
        threshold = self.params.threshold
        above = f", to candidates of similarity {threshold:.3f} and more" if self.params.share and threshold else ""
        return (
            f"mass learnt by {self.by} of {self.queries} queries, {self.several} with several positives: share "
            f"{self.params.share:.3f}{above}" + ("" if self.params.share else ", labels are hard")
        )


@phase("learning the mass")
def learn_mass(labeler: Labeler, mass: str, run: Run, validation: Judged, training: Judged | None = None) -> LearntMass:
    """The share of probability that leaves the positives, and with "confident" the threshold of who takes it.

    Where at least half of the validation queries have several positives, the share is the one under which these are the
    likeliest when each in turn is the visible one (`likeliest_share`). Else it is the one whose labels are best learnt
    from: a linear map of query vectors that is fitted to the labels of some queries has the lowest loss on the
    positives of others (`held_out_losses`); labels stay hard unless a gain is sure (`best_share`).
    The threshold is where a candidate is as likely relevant as not (`even_threshold`), by the judgements; a candidate
    that nobody judged counts as not relevant, so that validation queries with one positive each give no threshold.

    Args:
        labeler: of the labels, without learnt mass.
        mass: "share" or "confident".
        run: candidates of all these queries.
        validation: positives of validation queries, as many as are known.
        training: positives of the queries whose labels are learnt from for the loss, as their labels are made from;
            None = `validation`. Never those that something is tested on.

    Raises:
        InputError: another word for `mass`; no validation query with candidates; a loss asked of a labeler without
            vectors; as `VectorLabeler.infer_from`.
    """
    if mass not in SHARED:
        raise InputError(f"mass={mass}: nothing to learn; expected {' or '.join(SHARED)}")
    if not isinstance(labeler, VectorLabeler):
        raise InputError(f"mass={mass}: takes rNN similarities, which the method {labeler.name} has not; expected own")
    chosen = drawn({qid: pairs for qid, pairs in validation.items() if pairs and qid in run})
    if not chosen:
        raise InputError("no query with a positive has candidates in the run: no mass can be learnt; give their run")
    several = sum(len(pairs) > 1 for pairs in chosen.values())
    about = {"queries": len(chosen), "several": several}

    def learnt_by(source: str, share: float, threshold: float | None = None, losses: Any = None) -> LearntMass:
        learnt: dict[str, Any] = {"mass": mass, "share": share, "threshold": threshold}
        params = dataclasses.replace(labeler.label_params, **learnt)
        return LearntMass(params, source, losses=losses or {}, **about)

    if mass == "confident":
        cases = hidden_positives(labeler, of_these(run, chosen), chosen)
        threshold = even_threshold(cases)
        if threshold is None:
            return learnt_by("judgements", 0.0, 0.0)
        return learnt_by("judgements", likeliest_share(cases, threshold), threshold)
    if several >= SEVERAL * len(chosen):
        return learnt_by("judgements", likeliest_share(hidden_positives(labeler, of_these(run, chosen), chosen)))
    if not (labeler.inputs.has("vectors") and labeler.inputs.has("query vectors")):
        raise InputError(
            f"{several} of {len(chosen)} queries have several positives: the mass is learnt by the loss on held-out "
            "positives, which needs vectors of queries and documents; give them, several positives, or a share"
        )
    known = drawn({qid: pairs for qid, pairs in (training or chosen).items() if pairs and qid in run})
    losses = held_out_losses(listwise(labeler, of_these(run, known), known), np.arange(len(known)) % FOLDS)
    about["queries"] = len(known)
    return learnt_by("loss", best_share(losses), None, dict(zip(SHARES, losses.mean(axis=1).tolist(), strict=True)))


def drawn(judged: Judged) -> dict[str, Any]:
    """At most `MOST` of the queries, in an order that does not depend on theirs."""
    ordered = sorted(judged, key=lambda qid: (fingerprint("mass", qid), qid))
    return {qid: judged[qid] for qid in ordered[:MOST]}


def of_these(run: Run, judged: Judged) -> Run:
    """The run of some queries, in their order."""
    index_of = {qid: index for index, qid in enumerate(run.qids)}
    return run.of_queries([index_of[qid] for qid in judged])


def listwise(labeler: VectorLabeler, run: Run, judged: Judged) -> Listwise:
    """The queries as `held_out_losses` learns from them: their first candidates, and the labels of their positives."""
    labeler.check(run, judged)
    vectors, queries = labeler.inputs.vectors, labeler.inputs.query_vectors
    labelled, _ = contexts_of(run, judged, labeler.params.context, labeler.source_of_rows)
    wider, _ = contexts_of(run, judged, max(labeler.params.context, DEPTH), labeler.source_of_rows)
    shape = len(wider), max((one.size for one in wider), default=1)
    documents = np.zeros((*shape, vectors.dimension), dtype=np.float32)
    real, hard, others = np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape)
    for index, one in enumerate(wider):
        vectors.fetch(one.rows, documents[index, : one.size])
        real[index, : one.size] = True
        hard[index, : len(one.grades)] = targets.of_grades(one.grades)
    for index, _, given in labeler.similar(labelled):
        count = len(labelled[index].grades)
        others[index, count : len(given)] = given[count:]
    totals = others.sum(axis=1, keepdims=True)
    asked = queries.of([one.qid for one in wider]).vectors.astype(np.float32)
    return Listwise(asked, documents, real, hard, others / np.where(totals > 0, totals, 1.0))
