"""`python -m rnnreranker.recover`: would labels made from one positive rank unjudged positives high?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnreranker.base import command
from rnnreranker.lab.recover.recovery import answer, recover
from rnnreranker.lab.recover.request import RecoverRequest
from rnnreranker.lab.shared import LabFlags, print_report, recorded
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
      --similarity joint:k=21,positive_weight=0.3 \\
      --beside collective:fb_clusters=24 cross-encoder:model=cross-encoder/ms-marco-MiniLM-L-6-v2
"""
USAGE = "python -m rnnreranker.recover --index INDEX --topics TOPICS --qrels QRELS [flags]"
SHOWN = ("k", "lam", "context")  # settings of rNN that help shows


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    request = command.request(args, RecoverRequest, similarity=flags.with_rnn(args, args.similarity, "--similarity"))
    with recorded(args.output, "recover", "recovery", argv) as record:
        outcome, inputs = recover(request)
        record |= {"name": args.unjudged, "outcome": outcome, "inputs": inputs}
    command.say(
        f"{command.counted(outcome['queries'], 'query', 'queries')}, {outcome['cases']} visible positives, "
        f"{outcome['hidden']} hidden positives against {outcome['negatives']} judged negatives"
    )
    print_report("recovery", **outcome)
    print(f"\n{answer(outcome['rows'])}")
    return 0


def make_parser() -> Any:
    """The parser of the command."""
    text = "Hide positives and see what finds them again; no training."
    parser = command.parser("recover", text, EPILOG, usage=USAGE)
    add = command.add_flags
    add(parser, RecoverRequest, "index", "topics", "encoded_queries", "qrels", "run", "encoder", "relevant", "unjudged")
    add(parser, RecoverRequest, "visible", "ablations", "threads")
    add(parser, LabFlags, "output")
    similarity = parser.add_argument_group("similarity (any setting of rnn is a flag too)")
    add(similarity, RecoverRequest, "source", "similarity")
    add(similarity, LabFlags, "preset")
    add(similarity, RnnParams, skip=OF_THE_MIXTURE, base=RnnParams.preset("vectors"), shown=SHOWN)
    add(parser.add_argument_group("teachers beside the similarities"), RecoverRequest, "beside")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
