"""How often other systems stand in the order that a paper prints: Kendall's tau over pairs of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

EQUAL = 1e-12  # means of the same numbers, added in another order
SAMPLES = 2000


@dataclass(frozen=True)
class OrderAgreement:
    """Pairs of rows of a table, and how twins of the rows order them.

    Attributes:
        same: pairs that stand in the printed order.
        opposite: those in the opposite one.
        tied_here: pairs that the paper orders and whose twins are equal.
        tied_there: pairs that the twins order and for which the paper prints equal values.
        low, high: 95% interval of `tau`; None where nothing is known topic by topic.
        topics: that the interval stands on.
        among: the same of those rows alone whose twins are known topic by topic, where not all are.
    """

    same: int
    opposite: int
    tied_here: int = 0
    tied_there: int = 0
    low: float | None = None
    high: float | None = None
    topics: int = 0
    among: OrderAgreement | None = None

    @property
    def pairs(self) -> int:
        """Pairs that the paper orders."""
        return self.same + self.opposite + self.tied_here

    @property
    def tau(self) -> float | None:
        """Kendall's tau-b, 1 for the printed order and -1 for its opposite; None where one side orders nothing.

        >>> OrderAgreement(same=5, opposite=1).tau
        0.6666666666666666
        """
        ordered = self.same + self.opposite
        size = ((ordered + self.tied_here) * (ordered + self.tied_there)) ** 0.5
        return (self.same - self.opposite) / size if size else None


def agreement(
    columns: Sequence[Sequence[float | None]],
    twins: Sequence[float | None],
    by_topic: Sequence[Sequence[float] | None] = (),
) -> OrderAgreement:
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
            has a twin the interval is that of the rows that have them, as `among`.
    """
    import numpy as np

    values = np.array(twins, dtype=np.float64)  # nan for None
    ones, others = np.triu_indices(len(values), 1)
    table = np.array(columns, dtype=np.float64).reshape(len(columns), len(values))
    differences = table[:, ones] - table[:, others]
    column, pair = np.nonzero(np.isfinite(differences + values[ones] - values[others]))
    if not len(pair):
        return OrderAgreement(0, 0)
    printed, ones, others = _signs(differences[column, pair]), ones[pair], others[pair]
    counted = _counted(printed, values[ones] - values[others])
    of_table = OrderAgreement(*(int(number) for number in counted))  # type: ignore[arg-type]
    rows = sorted({*ones.tolist(), *others.tolist()})
    known = [by_topic[row] for row in rows if row < len(by_topic) and by_topic[row]]
    if len(known) < len(rows):
        kept = [value if row < len(by_topic) and by_topic[row] else None for row, value in enumerate(twins)]
        among = agreement(columns, kept, by_topic)
        return replace(of_table, among=among if among.low is not None else None)
    matrix = np.array(known, dtype=np.float64)  # (rows, topics)
    topics = matrix.shape[1]
    counts = np.random.default_rng(0).multinomial(topics, np.full(topics, 1 / topics), size=SAMPLES)
    means = counts @ matrix.T / topics  # (samples, rows)
    differences = means[:, np.searchsorted(rows, ones)] - means[:, np.searchsorted(rows, others)]
    same, opposite, here, there = _counted(printed, differences)
    size = np.sqrt(((same + opposite + here) * (same + opposite + there)).astype(np.float64))
    if not size.any():
        return of_table
    low, high = np.percentile((same - opposite)[size > 0] / size[size > 0], [2.5, 97.5])
    return replace(of_table, low=float(low), high=float(high), topics=topics)


def _signs(differences: np.ndarray) -> np.ndarray:
    """1, 0 or -1 of each difference."""
    import numpy as np

    return np.where(np.abs(differences) <= EQUAL, 0, np.sign(differences))


def _counted(printed: np.ndarray, differences: np.ndarray) -> tuple[np.ndarray, ...]:
    """Pairs (on the last axis) in the printed order, in the opposite one, tied only in the twins, tied only in print.

    Args:
        printed: 1, 0 or -1.
        differences: of the twins.
    """
    signs = _signs(differences)
    here, there = (signs == 0) & (printed != 0), (signs != 0) & (printed == 0)
    return tuple(which.sum(-1) for which in (signs * printed == 1, signs * printed == -1, here, there))
