"""Cross-encoders as teachers of a study: their scores are kept with the seconds that they took."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.device import Devices
from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.encode.cross.encoder import PairScorer
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import pandas


def taught_by(
    models: Sequence[str],
    run: Run,
    positives: pandas.DataFrame,
    topics: Mapping[str, str],
    documents: Mapping[str, str],
    folder: Path,
    devices: Devices | None = None,
) -> tuple[Run, float]:
    """The candidates of a run and the positives, with the mean of the scores of cross-encoders, and seconds.

    The seconds are those in which one thread computed the scores, also where they were kept in `folder`: a teacher that
    labels the same pairs for another seed or fold is not a cheaper one.
    """
    of_query = positives.groupby("query_id")["doc_id"].agg(list).to_dict()
    wanted = {qid: sorted({*run.ranked(qid), *of_query.get(qid, ())}) for qid in run}
    sums = {qid: np.zeros(len(docids)) for qid, docids in wanted.items()}
    seconds = 0.0
    for model in models:
        scorer = PairScorer.load(model, devices=devices)
        for qid, docids in wanted.items():
            scores, taken = _scored(scorer, topics[qid], [documents[docid] for docid in docids], folder)
            sums[qid] += np.array(scores)
            seconds += taken
    means = {qid: (sums[qid] / len(models)).tolist() for qid in wanted}
    return Run.from_dict({qid: dict(zip(docids, means[qid], strict=True)) for qid, docids in wanted.items()}), seconds


def _scored(scorer: PairScorer, query: str, texts: Sequence[str], folder: Path) -> tuple[list[float], float]:
    """The scores of a query's texts, and the seconds that they took when they were computed."""
    path = folder / f"{fingerprint(scorer.fingerprint, query, list(texts))}.json"
    if path.is_file():
        kept = read_json(path, "scores of a cross-encoder", "delete it, and they are computed again")
        return kept["scores"], float(kept["seconds"])
    begun = time.perf_counter()
    scores = scorer.score([(query, text) for text in texts], threads=1).scores.tolist()
    taken = time.perf_counter() - begun
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, {"scores": scores, "seconds": taken})
    return scores, taken
