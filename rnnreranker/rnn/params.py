"""Parameters of reciprocal nearest neighbour similarity: the only home of defaults and published presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rnnreranker.settings import Params, context_setting, setting


@dataclass(frozen=True)
class RnnParams(Params):
    """How similar two texts are by their reciprocal nearest neighbours: the symbols of paper 000, explained here once.

    The elements of a context are the query (element 0) and its N candidates; s_ij is the inner product of two of them.

    - `k`: an element's neighbour list holds its k nearest elements besides itself (variant "paper": k in all).
    - `tau`: share of the list that may extend a reciprocal set; 0 means that no set is extended.
    - `weight`, `weight_scale`: weight of a member from its similarity s: s, exp(p s) - 1 with p = `weight_scale`, or 1;
      an element's weights are divided by their sum (variant "paper": exp(p s), and no division).
    - `k_exp`: an element's weights are averaged over the first k_exp entries of its list (variant "paper": over its
      k_exp nearest, however short the list); 1 means no averaging.
    - `lam`: lambda in s* = lambda s_0i + (1 - lambda) J(0, i), J being the Jaccard similarity of the weights.
    - `normalize`: every row of similarities is divided by its maximum or its mean, or left alone.
    - `scale`: "minmax" maps the similarities of a context to [0, 1], so that no setting depends on the scale of the
      encoder's scores; "none" takes them as they are, as the published runs did.
    - `context`: N, the candidates that are reranked. The reranker applies it, the similarity functions do not.
    - `variant`: "authors" is what the published numbers were computed with, "paper" the printed equations.

    The default does not depend on the scale of the scores; `preset` gives the published values, for raw scores.

    Raises:
        InputError: values out of range, all of them in one message.

    >>> RnnParams(k=21).k
    21
    >>> RnnParams.preset("tas-b").lam
    0.451
    >>> RnnParams(k=0, lam=1.5)
    Traceback (most recent call last):
    rnnreranker.errors.InputError: k=0: expected an integer >= 1; lam=1.5: expected a number in [0, 1]
    """

    section: ClassVar[str] = "rnn"

    k: int = setting(10, "k: neighbours of an element, itself not counted", at_least=1)
    k_exp: int = setting(3, "k_exp: neighbours whose weights are averaged (1 = no expansion)", at_least=1)
    tau: float = setting(
        0.5, "tau: share of k within which neighbours extend a reciprocal set (0 = none)", at_least=0, at_most=1
    )
    lam: float = setting(
        0.6, "lambda: weight of the geometric similarity, 1 - lambda of the Jaccard similarity", at_least=0, at_most=1
    )
    weight: Literal["linear", "exp", "binary"] = setting("linear", "weight of a neighbour from its similarity s")
    weight_scale: float = setting(2.4, "p in the weight exp(p s) of --weight exp", above=0)
    normalize: Literal["max", "mean"] | None = setting(None, "divide each row of similarities by its max or mean")
    scale: Literal["minmax", "none"] = setting("minmax", "map a context's similarities to [0, 1], or leave them raw")
    context: int = context_setting()
    variant: Literal["authors", "paper"] = setting("authors", "what published numbers used, or the printed equations")


def _published(context: int, k: int, k_exp: int, tau: float, lam: float) -> RnnParams:
    return RnnParams(k=k, k_exp=k_exp, tau=tau, lam=lam, scale="none", context=context)


RnnParams.presets = {  # paper 000, Table 5
    "tas-b": _published(60, 21, 3, 0.0, 0.451),
    "coder-tas-b": _published(60, 21, 3, 0.0, 0.451),
    "cocondenser": _published(53, 21, 5, 0.128, 0.469),
    "coder-cocondenser": _published(63, 19, 8, 0.5, 0.473),
}
