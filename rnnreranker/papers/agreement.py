"""How often other systems stand in the order that a paper prints: Kendall's tau over pairs of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

EQUAL = 1e-12  # means of the same numbers, added in another order
SAMPLES = 2000


@dataclass(frozen=True)
class Agreement:
    """Pairs of rows of a table, and how twins of the rows order them.

    Attributes:
        same: pairs that stand in the printed order.
        opposite: those in the opposite one.
        tied_here: pairs that the paper orders and whose twins are equal.
        tied_there: pairs that the twins order and for which the paper prints equal values.
        low, high: 95% interval of `tau`; None where nothing is known topic by topic.
        topics: that the interval stands on.
    """

    same: int
    opposite: int
    tied_here: int = 0
    tied_there: int = 0
    low: float | None = None
    high: float | None = None
    topics: int = 0

    @property
    def pairs(self) -> int:
        """Pairs that the paper orders."""
        return self.same + self.opposite + self.tied_here

    @property
    def tau(self) -> float | None:
        """Kendall's tau-b, 1 for the printed order and -1 for its opposite; None where one side orders nothing.

        >>> Agreement(same=5, opposite=1).tau
        0.6666666666666666
        """
        return tau_b(self.same, self.opposite, self.tied_here, self.tied_there)


def tau_b(same: int, opposite: int, tied_here: int, tied_there: int) -> float | None:
    """(same - opposite) / √((same + opposite + tied_here) (same + opposite + tied_there)); None where that is 0 / 0."""
    ordered = same + opposite
    size = ((ordered + tied_here) * (ordered + tied_there)) ** 0.5
    return (same - opposite) / size if size else None


def agreement(
    columns: Sequence[Sequence[float | None]],
    twins: Sequence[float | None],
    by_topic: Sequence[Sequence[float] | None] = (),
) -> Agreement:
    """How the twins of a table's rows agree with the order that its columns print.

    Every column of the paper in which two rows have values is a pair; pairs are counted over all columns given, and
    tau-b is computed from the sums. The columns should be of one measure, the one in which the twins are measured:
    "does the same order come out on another collection" is then asked once a data set of the paper.

    The interval is the percentile bootstrap over the topics of the twins (95%, 2,000 samples, a fixed seed): topics are
    drawn with replacement, the same for all rows, and tau-b is computed from the means over those drawn. What the paper
    prints stays fixed, since nothing is known of it but the printed value: the interval says how far the twins' topics
    decide their order, not what other systems or collections would give. Rows are not resampled: with three to eight
    systems, chosen by the paper, that would say nothing. Samples in which all twins are equal are left out.

    Args:
        columns: of the paper: a value for each row, None where it prints none.
        twins: a value for each row, None where it has no twin or nothing is measured.
        by_topic: for each row the twin's values topic by topic, in one order of topics; without those of every row that
            has a twin there is no interval.
    """
    pairs = _pairs(columns, twins)
    signs = [_sign(float(twins[one]) - float(twins[other])) for one, other, _ in pairs]  # type: ignore[arg-type]
    printed = [sign for _, _, sign in pairs]
    found = Agreement(*_counted(printed, signs))
    rows = {row for one, other, _ in pairs for row in (one, other)}
    known = [by_topic[row] for row in rows if row < len(by_topic)]
    if not pairs or len(known) < len(rows) or any(not values for values in known):
        return found
    taus, topics = _resampled(pairs, {row: by_topic[row] for row in rows})
    if not len(taus):
        return found
    low, high = _percentiles(taus)
    return Agreement(found.same, found.opposite, found.tied_here, found.tied_there, low, high, topics)


def _pairs(columns: Sequence[Sequence[float | None]], twins: Sequence[float | None]) -> list[tuple[int, int, int]]:
    """Two rows with values on both sides, and 1, 0 or -1 for the printed order, for every column."""
    found = []
    for column in columns:
        rows = [row for row, value in enumerate(column) if value is not None and twins[row] is not None]
        for one, other in combinations(rows, 2):
            found.append((one, other, _sign(float(column[one]) - float(column[other]))))  # type: ignore[arg-type]
    return found


def _sign(difference: float) -> int:
    return 0 if abs(difference) <= EQUAL else 1 if difference > 0 else -1


def _counted(printed: Sequence[int], signs: Sequence[int]) -> tuple[int, int, int, int]:
    """Pairs in the printed order, in the opposite one, tied only in the twins, tied only in print."""
    both = list(zip(printed, signs, strict=True))
    return (
        sum(there * here == 1 for there, here in both),
        sum(there * here == -1 for there, here in both),
        sum(there != 0 and here == 0 for there, here in both),
        sum(there == 0 and here != 0 for there, here in both),
    )


def _resampled(pairs: Sequence[tuple[int, int, int]], by_topic: dict[int, Any]) -> tuple[np.ndarray, int]:
    """tau-b of every bootstrap sample in which it is defined, and the number of topics."""
    import numpy as np

    place = {row: number for number, row in enumerate(by_topic)}
    values = np.array([by_topic[row] for row in by_topic], dtype=np.float64)  # (rows, topics)
    topics = values.shape[1]
    counts = np.random.default_rng(0).multinomial(
        topics, np.full(topics, 1 / topics), size=SAMPLES
    )  # (samples, topics)
    means = counts @ values.T / topics
    ones, others, printed = (
        np.array(part) for part in zip(*((place[a], place[b], sign) for a, b, sign in pairs), strict=True)
    )
    differences = means[:, ones] - means[:, others]  # (samples, pairs)
    signs = np.where(np.abs(differences) <= EQUAL, 0, np.sign(differences))
    same, opposite = ((signs * printed == sign).sum(axis=1) for sign in (1, -1))
    here = ((signs == 0) & (printed != 0)).sum(axis=1)
    there = ((signs != 0) & (printed == 0)).sum(axis=1)
    size = np.sqrt(((same + opposite + here) * (same + opposite + there)).astype(np.float64))
    return (same - opposite)[size > 0] / size[size > 0], topics


def _percentiles(taus: np.ndarray) -> tuple[float, float]:
    import numpy as np

    low, high = np.percentile(taus, [2.5, 97.5])
    return float(low), float(high)
