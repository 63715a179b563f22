"""Gender neutrality of texts and rankings (FaiRR, NFaiRR), and as a term of the loss."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError, argument, refuse
from rnnreranker.base.files import read_lines
from rnnreranker.base.settings import as_number
from rnnreranker.runs.columns import are_words
from rnnreranker.train.losses import LOW, divergence, log_shares

if TYPE_CHECKING:
    from torch import Tensor

CUTOFFS = (5, 10, 20, 50)
THRESHOLD = 1  # gendered words that a text may have and still count as neutral
# Titles of rulers are left out: the published neutralities do not count king and queen.
FEMALE = frozenset(
    """she her hers herself woman women girl girls lady ladies mother mothers mom moms mum mums mommy mama daughter
    daughters sister sisters aunt aunts niece nieces grandmother grandmothers grandma granddaughter wife wives bride
    brides girlfriend girlfriends widow widows
    heroine actress actresses waitress stewardess hostess businesswoman businesswomen policewoman spokeswoman
    chairwoman congresswoman saleswoman nun nuns maid maids madam ma'am mrs ms miss female females feminine
    stepmother stepdaughter stepsister godmother schoolgirl housewife landlady mistress""".split()  # noqa: SIM905
)
MALE = frozenset(
    """he him his himself man men boy boys gentleman gentlemen father fathers dad dads daddy papa son sons brother
    brothers uncle uncles nephew nephews grandfather grandfathers grandpa grandson husband husbands groom grooms
    bridegroom boyfriend boyfriends widower widowers hero actor actors waiter steward host
    businessman businessmen policeman spokesman chairman congressman salesman monk monks
    butler sir mr male males masculine stepfather stepson stepbrother godfather schoolboy househusband landlord
    lad lads guy guys""".split()  # noqa: SIM905
)


def neutrality(text: str) -> float:
    """In [0, 1]: 1 - sum over genders g of |p_g - 1/2| for a text with two gendered words or more, else 1.

    p_g is the share of gender g among the gendered words of the lower-cased text, split at white space.

    >>> neutrality("she saw him"), neutrality("she saw her mother"), neutrality("he he she")
    (1.0, 0.0, 0.6666666666666667)
    """
    words = Counter(text.lower().split())
    counts = np.array([sum(words[word] for word in group) for group in (FEMALE, MALE)])
    return 1.0 if counts.sum() <= THRESHOLD else float(1 - np.abs(counts / counts.sum() - 0.5).sum())


def ranking_fairness(
    rankings: Mapping[str, Sequence[str]], background: Mapping[str, Sequence[str]], neutral: Mapping[str, float]
) -> dict[str, float]:
    """FaiRR and NFaiRR at 5, 10, 20 and 50, means over queries; larger = more neutral.

    FaiRR@n is the sum over ranks i <= n of neutrality_i / log2(i + 1), NFaiRR@n its share of the background's best.

    Args:
        rankings: by query id, docids from rank 1 on; background: documents whose ideal order normalises NFaiRR.
        neutral: neutrality of all these documents.

    Raises:
        InputError: no query, a query without background, a document without neutrality.
    """
    lacking, deepest = [qid for qid in rankings if not background.get(qid)], CUTOFFS[-1]
    refuse(
        (not rankings, "no ranking to measure; expected at least one query"),
        (lacking, f"queries without background documents: {', '.join(lacking[:3])}"),
    )

    def fairr(values: Sequence[float]) -> np.ndarray:  # (50,), at every cutoff
        seen = np.pad(values, (0, deepest))[:deepest]
        return np.cumsum(seen / np.log2(np.arange(2, deepest + 2)))

    try:
        actual = np.array([fairr([neutral[one] for one in docids]) for docids in rankings.values()])
        best = np.array([fairr(sorted((neutral[one] for one in background[qid]), reverse=True)) for qid in rankings])
    except KeyError as error:
        raise InputError(f"no neutrality of document {error}; expected one of every document") from None
    named = {"FaiRR": actual.mean(axis=0), "NFaiRR": (actual / np.where(best > 0, best, np.inf)).mean(axis=0)}
    return {f"{name}@{cutoff}": float(means[cutoff - 1]) for name, means in named.items() for cutoff in CUTOFFS}


def neutrality_of(given: str | os.PathLike[str] | Mapping[str, float]) -> dict[str, float]:
    """Neutrality by docid, of a mapping, or of a file of lines docid<TAB>value.

    Raises:
        InputError: malformed or repeated lines, a value outside [0, 1], or none.
    """
    if isinstance(given, Mapping):
        lines = ((argument("neutrality"), f"{docid}\t{value}") for docid, value in given.items())
    else:
        lines = ((f"{given}:{number}", line) for number, line in read_lines(given, "file of neutralities"))
    value_of: dict[str, float] = {}
    for where, line in lines:
        docid, _, written = line.strip().partition("\t")
        value = as_number(written, float)
        if not isinstance(value, float) or not 0 <= value <= 1 or docid in value_of or not are_words([docid]):
            raise InputError(f"{where}: {line[:40]!r}, expected docid<TAB>value in [0, 1], each docid once")
        value_of[docid] = value
    if not value_of:
        raise InputError(f"{given}: no neutralities; expected lines of docid<TAB>value")
    return value_of


def neutrality_divergence(scores: Tensor, neutral: Tensor, valid: Tensor, cutoff: int) -> Tensor:
    """KL(softmax(neutrality) || softmax(scores)) over the `cutoff` highest-scored candidates (001, fairness).

    scores, valid: as for a `Loss`; neutral: (B, N) float in [0, 1].
    """
    top = scores.where(valid, LOW).topk(min(cutoff, scores.shape[1]), dim=1).indices
    scores, neutral, valid = (part.gather(1, top) for part in (scores, neutral, valid))
    return divergence(scores, log_shares(neutral, valid).exp(), valid)
