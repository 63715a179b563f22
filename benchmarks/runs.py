"""Runs of MS MARCO's shape beside pandas and ir-measures: reading, writing, fusing, evaluating.

    python benchmarks/runs.py [--folder DIR] [--record FILE.json]

Writes three runs of 7,000 queries x 1,000 of 8.8 million docids to a folder (.8 GB; default: a temporary one); a later
call finds them there. Each measurement is a process of its own and is repeated three times. The table has the medians:
processor seconds, their ratio, and wall-clock seconds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import options, report

QUERIES, HITS, DOCUMENTS = 7_000, 1_000, 8_841_823
REPETITIONS = 3
MEASURES = "nDCG@10 RR@10"
TYPES = {"qid": "str", "Q0": "str", "docid": "str", "rank": "int64", "score": "float64", "tag": "str"}
TASKS = ("read", "read gz", "write", "fuse 2 rrf", "fuse 2 minmax", "fuse 3 rrf", "fuse 3 minmax", "evaluate")


def make(folder: Path) -> None:
    """Three runs with docids as those of MS MARCO's passages, one also compressed, and a judgement for every query."""
    import pandas

    rng = np.random.default_rng(0)
    qids = rng.choice(1_100_000, QUERIES, replace=False)
    for name in "abc":
        docids = np.stack([rng.choice(DOCUMENTS, HITS, replace=False) for _ in qids])
        scores = -np.sort(-rng.gamma(5, 4, docids.shape).round(6), axis=1)
        ranks = np.tile(np.arange(1, HITS + 1), QUERIES)
        columns = (np.repeat(qids, HITS), "Q0", docids.ravel(), ranks, scores.ravel(), name)
        frame = pandas.DataFrame(dict(zip(TYPES, columns, strict=True)))
        frame.to_csv(folder / f"{name}.txt", sep=" ", header=False, index=False)
        if name == "a":
            frame.to_csv(folder / "a.txt.gz", sep=" ", header=False, index=False)
            judged = docids[np.arange(QUERIES), rng.integers(0, 20, QUERIES)]
            lines = (f"{qid} 0 {docid} 1\n" for qid, docid in zip(qids.tolist(), judged.tolist(), strict=True))
            (folder / "qrels.txt").write_text("".join(lines))


def ours(task: str, how: list[str], folder: Path) -> Any:
    """What is measured of this package: a function without arguments; runs to write or fuse are read before."""
    from rnnreranker import Run
    from rnnreranker.evaluate.evaluating import evaluate_runs
    from rnnreranker.runs.fuse import FuseParams, fuse

    if task == "read":
        return lambda: Run.read(folder / ".".join(["a.txt", *how]))
    if task == "evaluate":
        return lambda: evaluate_runs([folder / "a.txt"], folder / "qrels.txt", MEASURES)
    runs = [Run.read(folder / f"{name}.txt") for name in "abc"[: int(how[0]) if how else 1]]
    if task == "write":
        return lambda: runs[0].write(folder / "ours.txt")
    return lambda: fuse(runs, FuseParams(fuse=how[1]), hits=HITS)


def theirs(task: str, how: list[str], folder: Path) -> Any:
    """The same by pandas and ir-measures, as their users write it."""
    import ir_measures
    import pandas

    def read(name: str) -> pandas.DataFrame:
        return pandas.read_csv(folder / name, sep=" ", header=None, engine="c", names=list(TYPES), dtype=TYPES)

    def fuse() -> pandas.DataFrame:
        parts = []
        for frame in frames:
            if how[1] == "rrf":
                values = 1 / (60 + frame["rank"])
            else:
                of_query = frame.groupby("qid", sort=False)["score"]
                low, high = of_query.transform("min"), of_query.transform("max")
                values = (frame["score"] - low) / (high - low)
            parts.append(frame[["qid", "docid"]].assign(score=values))
        sums = pandas.concat(parts).groupby(["qid", "docid"], sort=False, as_index=False)["score"].sum()
        in_order = sums.sort_values(["qid", "score", "docid"], ascending=[True, False, True])
        return in_order.groupby("qid", sort=False).head(HITS)

    def evaluate() -> Any:
        run = read("a.txt")[["qid", "docid", "score"]].set_axis(["query_id", "doc_id", "score"], axis=1)
        qrels = ir_measures.read_trec_qrels(str(folder / "qrels.txt"))
        return ir_measures.calc_aggregate([ir_measures.parse_measure(one) for one in MEASURES.split()], qrels, run)

    if task == "read":
        return lambda: read(".".join(["a.txt", *how]))
    if task == "evaluate":
        return evaluate
    frames = [read(f"{name}.txt") for name in "abc"[: int(how[0]) if how else 1]]
    if task == "write":
        return lambda: frames[0].to_csv(folder / "theirs.txt", sep=" ", header=False, index=False)
    return fuse


def measure(who: str, task: str, folder: str) -> None:
    """Print processor and wall-clock seconds of one measurement, in a process of its own."""
    name, *how = task.split()
    work = {"ours": ours, "theirs": theirs}[who](name, how, Path(folder))
    processor, wall = time.process_time(), time.perf_counter()
    work()
    print(json.dumps([time.process_time() - processor, time.perf_counter() - wall]))


def main(folder: Path, record: str | None) -> None:
    """Measure all tasks and print the table."""
    begun = time.perf_counter()
    if not (folder / "qrels.txt").exists():
        make(folder)
    rows = []
    for task in TASKS:
        taken: dict[str, list[list[float]]] = {"ours": [], "theirs": []}
        for _ in range(REPETITIONS):
            for who, seconds in taken.items():
                words = [sys.executable, __file__, who, task, str(folder)]
                seconds.append(json.loads(subprocess.run(words, check=True, capture_output=True).stdout))
        (own, own_wall), (other, other_wall) = (
            [statistics.median(one) for one in zip(*seconds, strict=True)] for seconds in taken.values()
        )
        rows.append({"task": task, "ours_s": own, "pandas_s": other, "ratio": own / other})
        rows[-1] |= {"ours_wall_s": own_wall, "pandas_wall_s": other_wall}
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    report("runs", rows, record, begun)


if __name__ == "__main__":
    if sys.argv[1:2] in (["ours"], ["theirs"]):
        measure(*sys.argv[1:4])
    else:
        parser = options(__doc__)
        parser.add_argument("--folder", help="for the runs (default: a temporary one)")
        args = parser.parse_args()
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(args.folder or temporary)
            folder.mkdir(parents=True, exist_ok=True)
            main(folder, args.record)
