"""How often the advice of `experiment` is right: it is drawn from half of the topics and checked on the other half.

    python benchmarks/advice.py INDEX TOPICS QRELS [PROTOCOL]

A draw is right when the system that is taken has no lower mean on the topics kept back than the one that it is taken
over (the best first stage), or, where reranking is left off, than the reranked system that was best when it was drawn.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np

from rnnreranker.evaluate.comparison import differences
from rnnreranker.evaluate.scores import Scores
from rnnreranker.experiment import SURE, ExperimentRequest, System, advice, measured

DRAWS = 50


def part_of(scores: Scores, rows: np.ndarray) -> Scores:
    """The scores of some topics."""
    values = scores.values[:, rows]
    topics = tuple(scores.topics[row] for row in rows)
    return dataclasses.replace(scores, topics=topics, values=values, means=values.mean(axis=1))


def draw(scores: Scores, systems: list[System], seed: int) -> dict[str, float]:
    """What the advice of one half of the topics comes to on the other half."""
    order = np.random.default_rng(seed).permutation(len(scores.topics))
    seen, kept = (part_of(scores, np.sort(rows)) for rows in np.array_split(order, 2))
    taken, _ = advice(seen, systems)
    before, after = (dict(zip(systems, half.means[:, 0].tolist(), strict=True)) for half in (seen, kept))
    firsts, others = ([one for one in systems if bool(one.rerank) == wanted] for wanted in (False, True))
    alternative = max(firsts if taken.rerank else others, key=lambda one: before[one])
    values = dict(zip(systems, kept.values[:, :, 0], strict=True))
    rows = differences(values, [(one, taken) for one in systems if one != taken])
    return {
        "reranked": float(bool(taken.rerank)),
        "right": float(after[taken] >= after[alternative]),
        "highest": float(after[taken] >= max(after.values())),
        "beaten": float(any(row["difference"] > 0 and row["p_holm"] < SURE for row in rows)),
        "lost to the highest": max(after.values()) - after[taken],
        "gain over the alternative": after[taken] - after[alternative],
    }


def main(index: str, topics: str, qrels: str, protocol: str | None = None) -> None:
    """Print the means over the draws."""
    _, scores, times = measured(ExperimentRequest(index, topics, qrels, protocol=protocol), [])
    draws = [draw(scores, list(times), seed) for seed in range(DRAWS)]
    print(f"{index}: {len(scores.topics)} topics, {advice(scores, list(times))[1]}")
    for name in draws[0]:
        print(f"  {name:26} {np.mean([one[name] for one in draws]):.4f}")
    right = [one["right"] for one in draws if one["reranked"]]
    print(f"  right, where a reranked system was taken: {sum(right):.0f} of {len(right)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
