"""`python -m rnnreranker.evaluate`: what runs score, and how they compare."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, refuse
from rnnreranker.base.files import check_writable, write_json
from rnnreranker.base.tables import print_table
from rnnreranker.base.typed_numbers import whole
from rnnreranker.evaluate.comparison_table import print_comparisons
from rnnreranker.evaluate.measures import PROTOCOLS, parse_measures
from rnnreranker.evaluate.ties import DEFAULT_TIES, TIES, TIES_HELP

if TYPE_CHECKING:
    from rnnreranker.evaluate.comparison import Comparison
    from rnnreranker.evaluate.redundancy import Redundancy
    from rnnreranker.evaluate.reproducibility import Graded
    from rnnreranker.evaluate.scores import Scores
    from rnnreranker.runs import Run

EPILOG = """protocols (which grades count):
  trec      graded measures use grades as gains; binary ones (RR, AP, R, P) count from grade 2 on, or from grade 1
            on where no judgement is graded higher (default)
  strict    judgements below grade 2 are removed before every measure; a topic that has none left scores 0
  strict-dropped  as strict, and such a topic is left out (the same on DL 2019 and 2020: every topic has one)
  lenient   as trec, binary measures from grade 1 on
  binary    gain 1 from grade 1 on for every measure: for grades that are codes, not an order

examples:
  python -m rnnreranker.evaluate run.txt --qrels qrels.txt --measures "nDCG@10 RR@10 P(rel=2)@10"
  python -m rnnreranker.evaluate bm25.txt dense.txt rnn.txt --qrels qrels.txt --compare
  python -m rnnreranker.evaluate bm25.txt mmr.txt --qrels qrels.txt --index my-index
  python -m rnnreranker.evaluate ours.txt --against published.txt --qrels qrels.txt
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    _check(args)

    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.evaluate import compare, evaluate
    from rnnreranker.evaluate.unjudged import say_unjudged
    from rnnreranker.runs import Run

    qrels = load_qrels(args.qrels)
    paths = [*args.runs, *(path for path in (args.against, args.baseline, args.against_baseline) if path)]
    runs = {name: Run.read(path) for name, path in zip(_names(paths), paths, strict=True)}
    judged = qrels["query_id"].unique().tolist()
    for path, run in zip(paths, runs.values(), strict=True):
        if not set(judged) & set(run):
            raise InputError(
                f"{path}: none of its {command.counted(len(run), 'query', 'queries')} is judged in {args.qrels} (its "
                f"ids: {', '.join(run.qids[:3])}; judged: {', '.join(judged[:3])}); check that both are of the same "
                "topics"
            )
    scores = evaluate(runs, qrels, args.measures, args.protocol, args.common_topics, args.ties)
    comparisons = compare(scores, args.resamples, args.seed) if args.compare else []
    graded = _graded(args, runs, scores) if args.against else []
    alike = _redundancy(args.index, runs) if args.index else {}
    for name, missing in zip(scores.runs, scores.missing.tolist(), strict=True):
        if missing:
            command.say(f"{name}: {missing} of {len(scores.topics)} judged topics are not in the run and score 0")
    say_unjudged(runs, qrels)
    if args.json:
        write_json(args.json, as_json(scores, comparisons, graded, paths, args, alike))
    if args.against:
        command.say(
            f"{scores.runs[0]} against {scores.runs[1]}; {len(scores.topics)} topics, protocol {scores.protocol}"
        )
        print_table(
            ["figure", "measure", "ours", "theirs", "value", "perfect"],
            [[one.figure, one.measure, *map(_cell, (one.ours, one.theirs, one.value)), one.perfect] for one in graded],
        )
    elif args.compare:
        command.say(f"baseline: {scores.runs[0]}; {len(scores.topics)} topics, protocol {scores.protocol}")
        print_comparisons(comparisons)
    else:
        _print_scores(scores, args.per_query, alike)
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("evaluate", "Measure runs against judgements, topic by topic, with ir-measures.", EPILOG)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="TREC or MS MARCO file, plain or .gz")
    parser.add_argument("--qrels", required=True, help="judgements: file, ir_datasets id, or `pydoc`")
    parser.add_argument("--measures", default="nDCG@10 RR@10", help='default: "nDCG@10 RR@10"')
    parser.add_argument("--protocol", choices=PROTOCOLS, default="trec")
    parser.add_argument("--ties", choices=TIES, default=DEFAULT_TIES, help=TIES_HELP)
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
    again = parser.add_argument_group("reproduction of a published run (RUN is ours)")
    again.add_argument("--against", metavar="RUN", help="theirs: grades of order and topic scores")
    again.add_argument("--baseline", metavar="RUN", help="of ours, for effects")
    again.add_argument("--against-baseline", metavar="RUN", help="of theirs")
    again.add_argument("--depth", type=command.positive, default=100, help="of the order (default: 100)")
    return parser


def _check(args: argparse.Namespace) -> None:
    paths = [*args.runs, *([args.against] if args.against else [])]
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    beside = args.against and (args.compare or args.per_query)
    halves = bool(args.baseline) != bool(args.against_baseline) or (args.baseline and not args.against)
    refuse(
        (args.compare and len(args.runs) < 2, "--compare needs a baseline and at least one more run"),
        (args.compare and args.per_query, "give either --compare or --per-query (--json writes both)"),
        (args.against and len(args.runs) != 1, f"--against takes one run of ours; {len(args.runs)} were given"),
        (beside, "give --against without --compare and --per-query (--json writes values per topic)"),
        (halves, "--baseline and --against-baseline go together, with --against"),
        (args.resamples < 1, f"--resamples {args.resamples}: expected at least 1"),
        (args.seed < 0, f"--seed {args.seed}: expected 0 or more"),
        (
            args.index and (args.compare or args.against or args.per_query),
            "give --index without --compare, --against and --per-query (--json has its figures per topic)",
        ),
        (repeated, f"{', '.join(repeated)}: given more than once"),
    )
    parse_measures(args.measures)
    check_writable(args.json)


def _names(paths: Sequence[str]) -> list[str]:
    """Short names for run files: without folder and ending where that tells them apart."""
    short = [Path(path).name.removesuffix(".gz") for path in paths]
    short = [name.rsplit(".", 1)[0] if name.endswith((".txt", ".trec", ".tsv", ".run")) else name for name in short]
    return short if len(set(short)) == len(short) else list(paths)


def _graded(args: argparse.Namespace, runs: Mapping[str, Run], scores: Scores) -> list[Graded]:
    from rnnreranker.evaluate.reproducibility import compare_orders, compare_scores

    ours, theirs, *bases = runs.values()
    orders = compare_orders(ours, theirs, scores.topics, args.depth)
    return [*orders, *compare_scores(scores, with_baselines=bool(bases))]


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _redundancy(name: str, runs: Mapping[str, Run]) -> dict[str, Redundancy]:
    """Run → how alike its first documents are, by the vectors of an index."""
    from rnnreranker.evaluate.redundancy import redundancy
    from rnnreranker.search.indexes import open_index

    vectors = open_index(name).vectors
    return {run: redundancy(one, vectors) for run, one in runs.items()}


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
    print_table(["run", *(["topic"] if per_query else []), *scores.measures, *(NAMES if alike else ())], rows)


def as_json(
    scores: Scores,
    comparisons: Sequence[Comparison],
    graded: Sequence[Graded],
    paths: Sequence[str],
    args: argparse.Namespace,
    alike: Mapping[str, Redundancy],
) -> dict[str, Any]:
    """Everything that was measured and how, for JSON."""
    return {
        "qrels": args.qrels,
        "protocol": scores.protocol,
        "common_topics": args.common_topics,
        "ties": args.ties,
        "topics": list(scores.topics),
        "runs": [
            {
                "name": name,
                "file": path,
                "missing_topics": int(scores.missing[r]),
                "judged@10": float(scores.judged[r].mean()),
                "mean": dict(zip(scores.measures, scores.means[r].tolist(), strict=True)),
                "per_topic": {measure: scores.values[r, :, m].tolist() for m, measure in enumerate(scores.measures)},
                **({"redundancy": alike[name].as_json()} if name in alike else {}),
            }
            for r, (name, path) in enumerate(zip(scores.runs, paths, strict=True))
        ],
        "bootstrap": {"resamples": args.resamples, "seed": args.seed},
        "comparisons": [dataclasses.asdict(found) for found in comparisons],
        "reproduction": [dataclasses.asdict(found) for found in graded],
    }


if __name__ == "__main__":
    raise SystemExit(command.run(main))
