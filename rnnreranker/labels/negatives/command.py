"""`python -m rnnreranker.negatives`: hard negatives of a run, without what is likely relevant, as training triplets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.data.fields import add_documents_flags, asked_fields
from rnnreranker.labels.methods.base import Source, needs_of
from rnnreranker.labels.methods.joint import JointLabeler, JointParams
from rnnreranker.labels.negatives.filters import SIMILAR
from rnnreranker.labels.negatives.params import DEFAULT_RATE, NegativeParams
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE
from rnnreranker.search import flags

if TYPE_CHECKING:
    from rnnreranker.labels.negatives.filters import Pool

EPILOG = """examples:
  python -m rnnreranker.negatives --run run.txt --index my-index --topics train.tsv --qrels train-qrels.txt \\
      --filter rnn --output triplets.parquet
  python -m rnnreranker.negatives ... --filter margin --threshold -0.05 --output triplets.parquet
  python -m rnnreranker.negatives ... --qrels one-positive.txt --truth all-judgements.txt --rate 0.1

With --truth every filter is compared at the same share of discarded pairs, on judged documents only.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    mining = command.chosen(args, NegativeParams)
    _check(args, mining)
    params = _similarities(args, mining)
    from rnnreranker.base.method import Inputs
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics
    from rnnreranker.labels.__main__ import texts_for
    from rnnreranker.labels.judged import positives_of
    from rnnreranker.labels.negatives.filters import pools, scored, threshold_at, unfiltered
    from rnnreranker.labels.negatives.mining import mine, rows_of, write_rows
    from rnnreranker.runs import Run
    from rnnreranker.search.indexes import open_index
    from rnnreranker.search.inputs import query_vectors

    judged = positives_of(load_qrels(args.qrels), args.relevant, args.qrels)
    run = Run.read(args.run)
    topics = load_topics(args.topics) if args.topics else {}
    wanted = [qid for qid in run if qid in judged]
    if not wanted:
        raise InputError(f"{args.qrels}: no query of {args.run} has a positive; give the judgements of these queries")
    index = open_index(args.index) if args.index else None
    needs = _needs(args, mining)
    if needs:
        assert index is not None
        queries = None
        if "query vectors" in needs:
            queries = query_vectors(args, index, topics, wanted, encoded=args.encoded_queries, threads=args.threads)
        inputs = Inputs(
            query_vectors=queries,
            vectors=index.vectors if "vectors" in needs else None,
            neighbours=index.graph if "neighbours" in needs else None,
        )
        if mining.filter in SIMILAR or args.truth:
            found = pools(run, judged, inputs, params, args.threads, args.source)
        else:
            found = scored(run, judged, inputs, params["rnn"].context)
    else:
        found = unfiltered(run, judged, params["rnn"].context)
    threshold = mining.threshold
    if threshold is None:
        threshold = threshold_at(found, mining.filter, DEFAULT_RATE if mining.rate is None else mining.rate)
    if args.truth:
        _compare(args, mining.filter, found, threshold)
    if args.output:
        names, rows = rows_of(mine(found, threshold, mining), mining.form, mining.negatives)
        docids = {docid for row in rows for docid in row[1:]} if not args.output.endswith(".tsv") else set()
        texts = texts_for(docids, index, args.documents, asked_fields(args)) if docids else {}
        write_rows(args.output, names, rows, topics, texts)
        command.say(
            f"{args.output}: {command.counted(len(rows), 'row')}, {command.counted(len(found), 'query', 'queries')}; "
            f"filter {mining.filter}, discarded above {threshold:.6g}"
        )
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("negatives", "Mine hard negatives without likely positives.", EPILOG)
    parser.add_argument("--run", required=True, help="candidates (TREC or MS MARCO format)")
    parser.add_argument("--qrels", required=True, help="judgements: file, ir_datasets id, `pydoc` or `pydoc/train`")
    flags.add_index(parser, required=False)
    flags.add_topics(parser)
    flags.add_encoder(parser)
    add_documents_flags(parser, "texts, where the index has none: .jsonl, .tsv, ir_datasets id, `pydoc`")
    parser.add_argument(
        "--relevant", type=command.positive, default=1, help="grade from which on positive (default: 1)"
    )
    parser.add_argument("--threads", type=command.positive, help="default: one per core")

    parser.add_argument("--output", metavar="FILE", help=".parquet or .jsonl with texts, .tsv with ids")
    parser.add_argument("--truth", metavar="QRELS", help="full judgements: print what each filter removes and loses")

    command.add_dataclass_flags(parser.add_argument_group("mining"), NegativeParams)

    similarity = parser.add_argument_group("similarity")
    similarity.add_argument(
        "--from",
        dest="source",
        choices=get_args(Source),
        default="vectors",
        help="of --filter rnn and joint: vectors, or the part neighbours of the index (default: vectors)",
    )
    similarity.add_argument("--preset", help="published parameters (tas-b, cocondenser, …) or a YAML file")
    command.add_dataclass_flags(similarity, JointParams, OF_THE_MIXTURE, JointParams.preset("vectors"))
    return parser


def _similarities(args: argparse.Namespace, mining: NegativeParams) -> dict[str, RnnParams]:
    """Filter → parameters of its similarity, of those that are wanted: the chosen one, or all that are compared."""
    found: dict[str, RnnParams] = {"rnn": command.chosen(args, RnnParams, args.preset, RnnParams.preset("vectors"))}
    joint: dict[str, RnnParams] = {"joint": command.chosen(args, JointParams, args.preset, JointLabeler.defaults)}
    if args.truth:
        return found | joint
    return joint if mining.filter == "joint" else found


def _needs(args: argparse.Namespace, mining: NegativeParams) -> frozenset[str]:
    """What must be opened of the index and of the queries for the filters that are wanted."""
    if mining.filter == "none" and (args.source == "neighbours" or not args.truth):
        return frozenset()
    asked = _similarities(args, mining)
    return frozenset[str]().union(*(needs_of(SIMILAR[how], own, args.source) for how, own in asked.items()))


def _check(args: argparse.Namespace, mining: NegativeParams) -> None:
    """Refuse what can be seen to fail, before any work."""
    from rnnreranker.base.files import check_writable
    from rnnreranker.labels.negatives.mining import SUFFIXES

    problems = []
    asked_fields(args)
    needs = _needs(args, mining)
    if args.source == "neighbours" and mining.filter not in ("rnn", "joint", "none"):
        problems.append(f"--filter {mining.filter} compares inner products with the query: not with --from neighbours")
    if args.source == "neighbours" and args.truth:
        problems.append("--truth compares filters of inner products with the query: not with --from neighbours")
    if "neighbours" in needs and not args.index:
        problems.append("give --index (its part neighbours)")
    if not args.output and not args.truth:
        problems.append("give --output FILE (what to write), --truth QRELS (what to compare with), or both")
    if args.output and not args.output.endswith(SUFFIXES):
        problems.append(f"--output {args.output}: expected a name that ends in {', '.join(SUFFIXES)}")
    if "vectors" in needs and "neighbours" not in needs and not args.index:
        problems.append("give --index (vectors of the documents), or --filter none, which needs none")
    if "query vectors" in needs and not (args.topics or args.encoded_queries):
        problems.append("give --topics or --encoded-queries (vectors of the queries)")
    if args.output and not args.output.endswith(".tsv"):
        if not args.topics:
            problems.append(f"--output {args.output} needs --topics (texts of the queries)")
        if not (args.index or args.documents):
            problems.append(f"--output {args.output} needs --index or --documents (texts of the documents)")
    if problems:
        raise InputError("; ".join(problems))
    if args.output:
        check_writable(args.output)


def _compare(args: argparse.Namespace, how: str, found: Sequence[Pool], threshold: float) -> None:
    """Print a line a filter, all at the share of pairs that the chosen one discards."""
    from rnnreranker.base.tables import print_table
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.labels.negatives.filters import FILTERS, threshold_at
    from rnnreranker.labels.negatives.mining import toll

    qrels = load_qrels(args.truth)
    pairs = zip(qrels["query_id"], qrels["doc_id"], strict=True)
    truth = dict(zip(pairs, qrels["relevance"].tolist(), strict=True))
    chosen = toll(found, how, threshold, truth, args.relevant)
    rate = chosen.discarded / chosen.pairs
    others = [other for other in FILTERS if other not in (how, "none")]
    tolls = [chosen, *(toll(found, one, threshold_at(found, one, rate), truth, args.relevant) for one in others)]
    table = [
        [
            one.filter,
            f"{one.threshold:.4f}",
            f"{one.discarded / one.pairs:.4f}",
            f"{one.hidden_discarded}/{one.hidden}",
            f"{one.hidden_discarded / max(one.hidden, 1):.4f}",
            f"{one.negative_discarded}/{one.negative}",
            f"{one.negative_discarded / max(one.negative, 1):.4f}",
        ]
        for one in tolls
    ]
    header = ["filter", "threshold", "discarded", "hidden positives", "share", "true negatives", "share"]
    print_table(header, table)
