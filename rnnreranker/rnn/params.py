"""Parameters of the reciprocal nearest neighbour similarity."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.base.settings import Params, context_setting, setting


@dataclass(frozen=True)
class RnnParams(Params):
    """Parameters of the similarity by reciprocal nearest neighbours, with the symbols of paper 000.

    The elements of a context are the query (element 0) and its N candidates; s_ij is the inner product of two of them.

    - `k`: an element's neighbour list holds its k nearest elements besides itself (variant "paper": k in all).
    - `tau`: share of the list that may extend a reciprocal set; 0 = none.
    - `weight`, `weight_scale`: weight of a member from its similarity s: s, exp(p s) - 1 with p = `weight_scale`, or 1,
      divided by the sum of the element's weights (variant "paper": exp(p s), no division).
    - `k_exp`: weights are averaged over the first k_exp entries of a list (variant "paper": over the k_exp nearest); 1
      = none.
    - `lam`: lambda in s*(i) = lambda g(i) + (1 - lambda) mean over the probes p of J(p, i). J is the Jaccard similarity
      of the weights; g(i) = [w_r mm(1 / (c + rank_i)) + w_s mm(score_i) + w_q mm(s_0i)] / (w_r + w_s + w_q), with the
      first stage's rank (from 1) and score. mm is min-max over the candidates; 0 where all are equal.
    - `rank_weight`, `run_weight`, `query_weight`: w_r, w_s and w_q; `rank_constant`: c. Without a first stage, the
      inner products s_0i are its scores.
    - `probes`: how many elements p count: the query and the first `probes` - 1 candidates. J(p, p) = 1.
    - `smoothing`, `smoothing_neighbours`: a and n in s**(i) = (1 - a) s*(i) + a mean of s*(j) over the n candidates j
      with the largest inner products with i (ties: the earlier). This is one step of score regularisation (Diaz, 2005);
      0 = none.
    - `normalize`: divides every row of similarities by its maximum or its mean.
    - `scale`: "minmax" maps the similarities of a context to [0, 1], so that no setting depends on the scale of the
      encoder's scores; "none" keeps them raw, as the published runs did: s*(i) = lambda s_0i + (1 - lambda) J(0, i)
      (eq. 1), whatever the weights, the rank constant, the probes and the smoothing.
    - `context`: N, the candidates that a reranker reranks; the similarity functions ignore it.
    - `variant`: "authors" = the code behind the published numbers; "paper" = the printed equations.

    `preset` gives the published values, for raw inner products; "mixture": two probes, no smoothing; "vectors": the
    scale-free form of eq. 1, without ranks and scores of the first stage.

    Raises:
        InputError: values out of range, all of them in one message.

    >>> RnnParams(k=21).k
    21
    >>> RnnParams.preset("tas-b").lam
    0.451
    >>> RnnParams(k=0, lam=1.5)
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: k=0: expected an integer >= 1; lam=1.5: expected a finite number >= 0 and <= 1
    """

    section: ClassVar[str] = "rnn"

    k: int = setting(10, "k: neighbours of an element, itself not counted", at_least=1)
    k_exp: int = setting(2, "k_exp: neighbours whose weights are averaged (1 = none)", at_least=1)
    tau: float = setting(0.5, "tau: share of k that extends a reciprocal set (0 = none)", at_least=0, at_most=1)
    lam: float = setting(0.6, "lambda: 1 - lambda is the weight of the Jaccard similarity", at_least=0, at_most=1)
    weight: Literal["linear", "exp", "binary"] = setting("linear", "weight of a neighbour from its similarity s")
    weight_scale: float = setting(2.4, "p in the weight exp(p s) of --weight exp", above=0)
    normalize: Literal["max", "mean"] | None = setting(None, "divisor of each row of similarities: its max or mean")
    scale: Literal["minmax", "none"] = setting(
        "minmax", "scale of a context's similarities: minmax maps them to [0, 1], none leaves them raw"
    )
    context: int = context_setting()
    variant: Literal["authors", "paper"] = setting("authors", "equations: what published numbers used, or as printed")
    rank_weight: float = setting(1.0, "weight of a candidate's rank in the run", at_least=0)
    run_weight: float = setting(1.0, "weight of a candidate's score in the run", at_least=0)
    query_weight: float = setting(1.0, "weight of the inner product of query and candidate", at_least=0)
    rank_constant: float = setting(10.0, "c in 1 / (c + rank), which is what a rank counts", above=0)
    probes: int = setting(
        3, "elements whose neighbours are compared with a candidate's: the query and the run's first", at_least=1
    )
    smoothing: float = setting(
        0.25, "a: share of a score that is the mean score of the nearest candidates (0 = none)", at_least=0, at_most=1
    )
    smoothing_neighbours: int = setting(15, "n: nearest candidates whose mean score that is", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rank_weight and not self.run_weight and not self.query_weight:
            raise InputError("rank_weight=0, run_weight=0, query_weight=0: expected at least one above 0")

    @property
    def uses_run(self) -> bool:
        """Whether the order or the scores of the first stage count."""
        return self.scale == "minmax" and bool(self.rank_weight or self.run_weight or self.probes > 1)

    @property
    def smoothed_over(self) -> int:
        """How many nearest candidates smooth a score; 0 = no smoothing."""
        return self.smoothing_neighbours if self.scale == "minmax" and self.smoothing > 0 else 0

    def of_graph(self, query: bool = True) -> Self:
        """These parameters for a graph, w_q = 0 if similarities to the query are unknown.

        Raises:
            InputError: rows of raw similarities are divided, which a graph does not have; as `without_query`.
        """
        if self.scale == "none" and self.normalize:
            raise InputError(f"normalize={self.normalize}: a graph has no whole rows to divide; expected none")
        return self if query else self.without_query()

    def without_query(self) -> Self:
        """These parameters with w_q = 0; ParameterError: nothing else has a weight, or scale "none"."""
        if self.scale == "none" or not (self.rank_weight or self.run_weight):
            raise ParameterError(
                f"scale={self.scale}, rank_weight={self.rank_weight:g}, run_weight={self.run_weight:g}: without query "
                "vectors expected scale=minmax and a rank_weight or run_weight above 0, as by default"
            )
        return dataclasses.replace(self, query_weight=0.0)


OF_THE_MIXTURE = frozenset(  # not of similarities alone
    {"rank_weight", "run_weight", "query_weight", "rank_constant", "probes", "smoothing", "smoothing_neighbours"}
)
VECTORS_ALONE: dict[str, Any] = {"rank_weight": 0.0, "run_weight": 0.0, "probes": 1, "smoothing": 0.0}


def _published(context: int, k: int, k_exp: int, tau: float, lam: float) -> dict[str, Any]:
    return {"k": k, "k_exp": k_exp, "tau": tau, "lam": lam, "scale": "none", "context": context, **VECTORS_ALONE}


PRESETS: dict[str, dict[str, Any]] = {  # all but the first two: paper 000, Table 5
    "mixture": {"probes": 2, "smoothing": 0.0},
    "vectors": {"k_exp": 3, **VECTORS_ALONE},
    "tas-b": _published(60, 21, 3, 0.0, 0.451),
    "coder-tas-b": _published(60, 21, 3, 0.0, 0.451),
    "cocondenser": _published(53, 21, 5, 0.128, 0.469),
    "coder-cocondenser": _published(63, 19, 8, 0.5, 0.473),
}


RnnParams.presets = {name: RnnParams(**values) for name, values in PRESETS.items()}
