"""`python -m rnnreranker.evaluate`: what runs score, and how they compare."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.files import check_writable, write_json
from rnnreranker.base.typed_numbers import whole
from rnnreranker.evaluate.comparison_table import print_comparisons, print_scores
from rnnreranker.evaluate.evaluating import EvaluateRequest, check, evaluated
from rnnreranker.evaluate.protocols import CHOSEN, PROTOCOLS

if TYPE_CHECKING:
    from rnnreranker.evaluate.redundancy import Redundancy
    from rnnreranker.evaluate.scores import Scores
    from rnnreranker.parts.vectors import VectorSource

EPILOG = """protocols (which grades count):
  trec      as trec_eval and ir-measures: graded measures use grades as gains, binary ones (RR, AP, R, P) count from
            grade 1 on (default)
  dl        as trec, but binary measures count from grade 2 on, as NIST reports TREC Deep Learning (default for the
            ir_datasets names of TREC DL)
  strict    judgements below grade 2 are removed before every measure; a topic that has none left scores 0
  strict-dropped  as strict, and such a topic is left out (the same on DL 2019 and 2020: every topic has one)
  binary    gain 1 from grade 1 on for every measure: for grades that are codes, not an order

examples:
  python -m rnnreranker.evaluate run.txt --qrels qrels.txt --measures "nDCG@10 RR@10 P(rel=2)@10"
  python -m rnnreranker.evaluate bm25.txt dense.txt rnn.txt --qrels qrels.txt --compare
  python -m rnnreranker.evaluate bm25.txt mmr.txt --qrels qrels.txt --index my-index
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    vectors = None if args.index is None else lambda: _vectors(args.index)
    request = command.request(args, EvaluateRequest, vectors=vectors)
    _check(args, request)
    evaluation = evaluated(request)
    scores = evaluation.scores
    if args.json:
        write_json(args.json, evaluation.to_dict())
    if args.compare:
        command.say(f"baseline: {scores.runs[0]}; {len(scores.topics)} topics, protocol {scores.protocol}")
        print_comparisons(evaluation.comparisons, scores.protocol)
    else:
        _print_scores(scores, args.per_query, evaluation.redundancy)
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    parser = command.parser("evaluate", "Measure runs against judgements, topic by topic, with ir-measures.", EPILOG)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="TREC or MS MARCO file, plain or .gz")
    parser.add_argument("--qrels", required=True, help="judgements: file, ir_datasets id, or `pydoc`")
    parser.add_argument("--measures", default="nDCG@10 RR@10", help='default: "nDCG@10 RR@10"')
    parser.add_argument("--protocol", choices=PROTOCOLS, help=CHOSEN)
    parser.add_argument("--common-topics", action="store_true", help="only judged topics that every run has")
    parser.add_argument("--per-query", action="store_true", help="a row per topic, and `all` for the means")
    parser.add_argument("--json", metavar="FILE", help="write everything, per topic too, to this file")
    parser.add_argument(
        "--index", help="its vectors say how alike the first ten are: cosine@10, and pairs@10 of .9 and more"
    )
    group = parser.add_argument_group("comparison")
    group.add_argument("--compare", action="store_true", help="every run against the first")
    group.add_argument("--resamples", type=whole, default=10_000, help="of the bootstrap (default: 10000)")
    group.add_argument("--seed", type=whole, default=0, help="of the bootstrap (default: 0)")
    return parser


def _check(args: argparse.Namespace, request: EvaluateRequest) -> None:
    """Refuse what can be seen to fail, before any work."""
    check(
        request,
        (args.compare and args.per_query, "give either --compare or --per-query (--json writes both)"),
        (
            args.index and (args.compare or args.per_query),
            "give --index without --compare and --per-query (--json has its figures per topic)",
        ),
    )
    check_writable(args.json)


def _vectors(index: str) -> VectorSource:
    from rnnreranker.index.opening import open_index

    return open_index(index).vectors


def _print_scores(scores: Scores, per_query: bool, alike: Mapping[str, Redundancy]) -> None:
    from rnnreranker.evaluate.redundancy import NAMES

    rows: list[list[Any]] = []
    for r, run in enumerate(scores.runs):
        if per_query:
            for t, topic in enumerate(scores.topics):
                rows.append([run, topic, *(f"{value:.4f}" for value in scores.values[r, t])])
        means = [f"{value:.4f}" for value in scores.means[r]]
        means += [f"{value:.4f}" for value in alike[run].means().values()] if alike else []
        rows.append([run, "all", *means] if per_query else [run, *means])
    header = ["run", *(["topic"] if per_query else []), *scores.measures, *(NAMES if alike else ())]
    print_scores(header, rows, scores.protocol)


if __name__ == "__main__":
    raise SystemExit(command.run(main))
