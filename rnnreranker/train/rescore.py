"""`python -m rnnreranker.train.rescore`: the candidates of a run in the order of a trained encoder or scorer."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker import command
from rnnreranker.errors import InputError
from rnnreranker.files import check_writable, write_json

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.vectors import VectorSource

EPILOG = """examples:
  python -m rnnreranker.train.rescore --model my-scorer --index my-index --topics test.tsv --run bm25.txt \\
      --output reranked.txt
  python -m rnnreranker.train.rescore --model my-encoder --index my-index --topics test.tsv --run bm25.txt \\
      --output cascade.txt
"""


@dataclass(frozen=True)
class Latency:
    """Mean milliseconds a query: `load` = candidate vectors read, `encode` = the query, `score` = its candidates."""

    load: float
    encode: float
    score: float
    queries: int


class Model:
    """A scorer's folder, or any encoder, behind two steps: encode a query, score candidates.

    Args:
        name: a folder of `train --scorer`; or minilm, tas-b, an encoder folder, a Hugging Face id: inner products.
        device: "cpu" or "cuda", of a scorer.

    Raises:
        InputError, UnavailableError: nothing that can be loaded there.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        from rnnreranker.encode.model_folder import is_scorer

        self.name = name
        self.encode: Callable[[str], Any]
        self.score: Callable[[Any, np.ndarray], np.ndarray]
        self.dimension: int
        if is_scorer(Path(name)):
            from rnnreranker.scorer.scorer_folder import TrainedScorer

            scorer = TrainedScorer(name, device)
            self.dimension, self.encode, self.score = scorer.dimension, scorer.encode, scorer.score
        else:
            self._use_encoder(name)

    def _use_encoder(self, name: str) -> None:
        from rnnreranker.encode.encoder import load_encoder

        encoder = load_encoder(name)
        self.dimension = encoder.dimension
        self.encode = lambda text: encoder.encode([text], threads=1, what="queries")[0]
        self.score = lambda encoded, documents: documents.astype(np.float64) @ np.asarray(encoded, dtype=np.float64)


def rescore(
    run: Run, topics: Mapping[str, str], source: VectorSource, model: Model, depth: int = 1000
) -> tuple[Run, Latency]:
    """The run with the first candidates of every query in the order of the model, and the time that it took.

    Queries go one at a time and candidates in the order of their docids, so that neither other queries nor the order
    of the run change a score.

    Args:
        run: of any system; topics: texts of its queries.
        source: vectors of its documents.
        depth: candidates of a query that are scored; the rest stays below them in its order.

    Raises:
        InputError: queries without text, candidates without a vector, vectors of another dimension than the model's,
            scores that are not finite.
    """
    from rnnreranker.runs.head import choose_head, with_new_head
    from rnnreranker.vectors.of_run import vector_rows

    lost = [qid for qid in run if qid not in topics]
    if lost:
        raise InputError(
            f"{len(lost)} of {len(run)} queries of the run have no text in the topics (first: {', '.join(lost[:3])}); "
            "give the topics that the run was made from"
        )
    if source.dimension != model.dimension:
        raise InputError(
            f"{model.name} scores vectors of {model.dimension} dimensions, the index has {source.dimension}; "
            "give the index that it was trained on"
        )
    rows_of = vector_rows(source, run)
    chosen = choose_head(run, depth)
    new = np.empty(len(run.rows))
    spent = np.zeros(3)
    for place in command.progress(range(len(run)), unit="queries", what="rescore"):
        first, last = int(run.offsets[place]), int(run.offsets[place + 1])
        cut = min(first + depth, last)
        if first == cut:
            continue
        names = run.docids[run.rows[first:cut]]
        by_docid = np.argsort(names.astype(str), kind="stable")
        own = run.rows[first:cut][by_docid]
        times = [time.perf_counter()]
        documents = source.fetch(rows_of[own])
        times.append(time.perf_counter())
        encoded = model.encode(topics[run.qids[place]])
        times.append(time.perf_counter())
        found = model.score(encoded, documents)
        times.append(time.perf_counter())
        spent += np.diff(times)
        if not np.isfinite(found).all():
            raise InputError(f"query {run.qids[place]}: {model.name} gives scores that are not finite; train it again")
        new[first + by_docid] = found
    load, encode, score = (spent * 1000 / max(len(run), 1)).round(4).tolist()
    return with_new_head(run, chosen, new[chosen]), Latency(load, encode, score, len(run))


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = _parser().parse_args(argv)
    for path in (args.output, args.timings):
        if path:
            check_writable(path)
    from rnnreranker.data.topics import load_topics
    from rnnreranker.runs import Run
    from rnnreranker.search.indexes import open_index

    run, topics = Run.read(args.run), load_topics(args.topics)
    source = open_index(args.index).vectors
    begun = time.perf_counter()
    model = Model(args.model, args.device)
    opened = (time.perf_counter() - begun) * 1000
    found, latency = rescore(run, topics, source, model, args.depth)
    found.write(args.output, tag=args.tag)
    told = {"open": round(opened, 4), **asdict(latency)}
    if args.timings:
        write_json(args.timings, {"model": args.model, "depth": args.depth, "milliseconds": told})
    command.say(
        f"{args.output}: {command.counted(latency.queries, 'query', 'queries')}; model opened in {opened:.0f} ms; a "
        f"query: load {latency.load:.2f} ms, encode {latency.encode:.2f} ms, score {latency.score:.2f} ms"
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("train.rescore", "Order the candidates of a run by a trained encoder or scorer.", EPILOG)
    parser.add_argument("--model", required=True, help="folder of train --scorer, or an encoder: folder, minilm, tas-b")
    parser.add_argument("--index", required=True, help="document vectors: folder, `pydoc`, prebuilt index")
    parser.add_argument("--topics", required=True, help="query texts: file (qid<TAB>text), ir_datasets id, `pydoc`")
    parser.add_argument("--run", required=True, help="candidates of any system (TREC or MS MARCO format)")
    parser.add_argument("--output", required=True, help="run file to write (.gz compresses)")
    parser.add_argument("--depth", type=command.positive, default=1000, help="candidates scored (default: 1000)")
    parser.add_argument("--tag", default="rescored", help="run tag (default: rescored)")
    parser.add_argument("--timings", metavar="FILE.json", help="milliseconds to open, load, encode and score")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of a scorer (default: cpu)")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
