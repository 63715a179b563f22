"""`python -m rnnreranker.recover`: would labels made from one positive point at the positives nobody judged?"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.tables import interval, print_table
from rnnreranker.lab.recover.beside import Beside, add_beside, check_beside, needs_of, open_beside
from rnnreranker.labels.methods.joint import JointLabeler, JointParams
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE
from rnnreranker.search import flags

EPILOG = """Needs several positives a query. Each in turn stays visible; the others are hidden among the judged
candidates, which are then ranked by similarity to the query, to the visible positive, and to both, and by teachers
(--beside). No training: if hidden positives are not found here, soft labels cannot teach them.

examples:
  python -m rnnreranker.recover --index my-index --topics topics.tsv --qrels qrels.txt --relevant 2
  python -m rnnreranker.recover --index my-index --topics topics.tsv --qrels qrels.txt --from both
  python -m rnnreranker.recover --index my-index --topics topics.tsv --qrels qrels.txt \\
      --beside collective cross-encoder --beside-model cross-encoder/ms-marco-MiniLM-L-6-v2
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    check_beside(args)
    begun = time.perf_counter()
    if args.output:
        from rnnreranker.base.files import check_writable

        check_writable(args.output)
    from rnnreranker.lab.recover.answer import answer
    from rnnreranker.lab.recover.rankings import visible_positives
    from rnnreranker.lab.recover.recovery import recover
    from rnnreranker.lab.recover.similarities import Similarities

    params = command.chosen(args, RnnParams, args.preset, RnnParams.preset("vectors"))
    joint = command.chosen(args, JointParams, args.preset, JointLabeler.defaults)
    loaded, graph, beside = _load(args)
    more = None if beside is None else beside.of
    similarities = Similarities(params, joint, graph, args.ablations, more, args.threads)
    found = recover(
        visible_positives(*loaded, similarities, relevant=args.relevant, unjudged=args.unjudged, visible=args.visible),
        beside=args.beside,
    )
    if beside is not None and (remark := beside.remark()):
        command.say(remark)
    command.say(
        f"{command.counted(found.queries, 'query', 'queries')}, {found.cases} visible positives, "
        f"{found.hidden} hidden positives against {found.negatives} judged negatives"
    )
    print_table(
        ["similarity to", "measure", "value", "minus query", "p (Holm)"],
        [
            [
                row["scorer"],
                row["measure"],
                f"{row['value']:.4f}",
                interval(row["difference"], row["low"], row["high"]) if "difference" in row else "-",
                f"{row['p_holm']:.3f}" if "p_holm" in row else "-",
            ]
            for row in found.rows
        ],
    )
    for title, other, rows in (
        ("from the graph", "from vectors", found.from_graph),
        ("joint", None, found.joint),
        ("other settings", "joint", found.ablations),
        ("teacher", None, found.beside),
    ):
        if rows:
            print_table(
                [title, "measure", "minus", "difference", "p (Holm)"],
                [
                    [
                        row["scorer"],
                        row["measure"],
                        other or row["other"],
                        interval(row["difference"], row["low"], row["high"]),
                        f"{row['p_holm']:.3f}",
                    ]
                    for row in rows
                ],
            )
    print_table(
        ["filter", "discarded", "hidden positives removed", "true negatives lost"],
        [
            [row["filter"], f"{row['discarded']:.3f}", f"{row['positives']:.3f}", f"{row['negatives']:.3f}"]
            for row in found.filters
        ],
    )
    print_table(
        ["joint", "above", "up to", "candidates", "relevant"],
        [
            [row["of"], f"{row['low']:g}", f"{row['high']:g}", str(row["candidates"]), f"{row['relevant']:.3f}"]
            for row in found.reliability
        ],
    )
    print(f"\n{answer(found.rows)}")
    if args.output:
        from rnnreranker.base.record import of_command, write_records

        outcome = {"params": params.to_dict(), "joint_params": joint.to_dict(), "visible": args.visible}
        outcome |= {"relevant": args.relevant, "unjudged": args.unjudged, **found.to_dict()}
        outcome |= {} if beside is None else {"teachers": beside.describe()}
        inputs = {"index": loaded[2].fingerprint} | ({} if graph is None else {"graph": graph.fingerprint})
        about: dict[str, Any] = {"room": "recover", "argv": argv, "inputs": inputs}
        write_records(args.output, [of_command("recovery", args.unjudged, outcome, begun=begun, **about)])
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("recover", "Hide positives and see what finds them again; no training.", EPILOG)
    flags.add_index(parser)
    flags.add_topics(parser, required=True)
    parser.add_argument("--qrels", required=True, help=flags.QRELS)
    parser.add_argument("--run", help="candidates (default: retrieved densely)")
    parser.add_argument("--relevant", type=command.positive, default=1, help="lowest grade of a positive (default: 1)")
    parser.add_argument(
        "--unjudged", choices=("skip", "negative"), default="skip", help="candidates without a judgement"
    )
    parser.add_argument(
        "--from",
        dest="source",
        choices=("vectors", "both"),
        default="vectors",
        help="both: similarities from the part neighbours of the index too, beside those of vectors (default: vectors)",
    )
    parser.add_argument(
        "--visible", type=command.positive, default=1, metavar="N", help="positives visible at a time (default: 1)"
    )
    parser.add_argument(
        "--ablations", action="store_true", help="joint similarity with other settings, too: each differs in one thing"
    )
    parser.add_argument("--preset", help="published parameters (tas-b, cocondenser, …) or a YAML file")
    parser.add_argument("--output", metavar="FILE.json", help="write the record of everything measured")
    parser.add_argument("--threads", type=command.positive, help="default: one per core; results do not depend on it")
    flags.add_encoder(parser)
    add_beside(parser)
    similarity = parser.add_argument_group("rNN parameters")
    skip = OF_THE_MIXTURE | {"queries"}
    command.add_dataclass_flags(similarity, JointParams, skip, JointParams.preset("vectors"))
    return parser


def _load(args: argparse.Namespace) -> tuple[tuple[Any, Any, Any, Any], Any, Beside | None]:
    """Run, qrels, document and query vectors; the graph, None without --from both; teachers, None without --beside."""
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.runs import Run
    from rnnreranker.search.indexes import open_index
    from rnnreranker.search.queries import query_vectors

    index = open_index(args.index, needs={"vectors"} | needs_of(args.beside) if args.beside else ())
    graph = index.graph if args.source == "both" else None
    qrels = load_qrels(args.qrels)
    texts = load_topics(args.topics)
    run = Run.read(args.run) if args.run else None
    judged = set(qrels["query_id"].tolist())
    chosen = {qid: text for qid, text in texts.items() if qid in judged and (run is None or qid in run)}
    if not chosen:
        raise InputError(f"{args.qrels}: judges none of the {len(texts)} topics of {args.topics} that have candidates")
    queries = query_vectors(flags.encoding(args), index, texts, chosen, threads=args.threads)
    if run is None:
        run = dense_run(index.vectors, queries, args.context or RnnParams().context, threads=args.threads)
    return (run, qrels, index.vectors, queries), graph, open_beside(args, index, chosen, queries)
