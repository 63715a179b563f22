"""`python -m rnnreranker.evaluate`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from rnnreranker.base import command
from rnnreranker.base.files import check_writable, write_json
from rnnreranker.base.settings import setting
from rnnreranker.evaluate.evaluating import EvaluateRequest, check, evaluated

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


@dataclass(frozen=True)
class TableRequest(EvaluateRequest):
    """The flags of the command: what it prints and writes besides means."""

    per_query: bool = setting(False, "a row per topic, and `all` for the means")
    json: str | None = setting(None, "write everything, per topic too, to this file", metavar="FILE")


@command.main
def main(argv: Sequence[str]) -> int:
    request = command.request(make_parser().parse_args(argv), TableRequest)
    alone = "give --index without --compare and --per-query (--json has its figures per topic)"
    check(
        request,
        (request.compare and request.per_query, "give either --compare or --per-query (--json writes both)"),
        (request.index and (request.compare or request.per_query), alone),
    )
    check_writable(request.json)
    evaluation = evaluated(request)
    if request.json:
        write_json(request.json, evaluation.to_dict())
    evaluation.show(request.per_query)
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("evaluate", "Measure runs against judgements, topic by topic, with ir-measures.", EPILOG)
    command.add_words(parser, "runs", "RUN", "TREC or MS MARCO file, plain or .gz")
    flags = ("qrels", "measures", "protocol", "common_topics", "per_query", "json", "index")
    command.add_flags(parser, TableRequest, *flags)
    group = parser.add_argument_group("comparison")
    command.add_flags(group, TableRequest, "compare", "resamples", "seed")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
