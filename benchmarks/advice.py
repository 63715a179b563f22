"""How often the advice of `experiment` is right: it is drawn from half of the topics and checked on the other half.

    python benchmarks/advice.py INDEX TOPICS QRELS [--protocol P] [--title TEXT] [--record FILE.json]

A draw is right when the system that is taken has no lower mean on the topics kept back than the one that it is taken
over (the best first stage), or, where reranking is left off, than the reranked system that was best when it was drawn.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np
from measure import options, report

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


def main() -> None:
    """Draw, and print the means over the draws."""
    parser = options(__doc__)
    for name in ("index", "topics", "qrels"):
        parser.add_argument(name)
    parser.add_argument("--protocol")
    parser.add_argument("--title", help="of the query set (default: TOPICS)")
    args, begun = parser.parse_args(), time.perf_counter()
    _, scores, times = measured(ExperimentRequest(args.index, args.topics, args.qrels, protocol=args.protocol), [])
    draws = [draw(scores, list(times), seed) for seed in range(DRAWS)]
    about = {"topics": len(scores.topics), "advice": advice(scores, list(times))[1]}
    of_reranked = [one["right"] for one in draws if one["reranked"]]
    about |= {"reranked": len(of_reranked), "right_of_reranked": int(sum(of_reranked))}
    rows = [{"of the draws": name, "mean": float(np.mean([one[name] for one in draws]))} for name in draws[0]]
    report(f"advice, {args.title or args.topics}", rows, args.record, begun, **about)


if __name__ == "__main__":
    main()
