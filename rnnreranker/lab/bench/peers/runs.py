"""Runs beside peers: reading, writing, measuring, fusing."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.lab.bench.peers.tasks import PeerTask, Work, largest_difference, same_share
from rnnreranker.runs import Run
from rnnreranker.runs.fuse import fuse

if TYPE_CHECKING:
    import pandas

COLUMNS = ["qid", "q0", "docno", "rank", "score", "tag"]
DEPTH = 1000  # of runs that are fused
MEASURES = "nDCG@10 RR@10 R@100"
JUDGED = 10  # documents of a query


def made_up_run(queries: int, depth: int, seed: int = 0) -> Run:
    """A run of documents drawn from ten times as many as a query has, scores falling."""
    rng = np.random.default_rng((seed, queries, depth))
    rows = np.concatenate([rng.choice(10 * depth, depth, replace=False) for _ in range(queries)])
    scores = -np.sort(-(10 + rng.random((queries, depth))), axis=1).astype(np.float32).astype(np.float64)
    docids = np.array([f"doc{row:07d}" for row in range(10 * depth)], dtype=object)
    qids = tuple(f"query{number}" for number in range(queries))
    return Run.from_parts(qids, np.arange(queries + 1) * depth, docids, rows, scores.ravel())


class OfRun(PeerTask):
    """A task of one run in TREC format."""

    @property
    def size(self) -> str:
        """Queries and depth."""
        return f"{self.sizes.run_queries} x {self.sizes.run_depth}"

    @cached_property
    def run(self) -> Run:
        """The run."""
        return made_up_run(self.sizes.run_queries, self.sizes.run_depth)

    @property
    def path(self) -> str:
        """Of the run; the ending is the one that ranx knows."""
        return str(self.folder / "run.trec")

    def write(self) -> None:
        """The run."""
        self.run.write(self.path)


class Reading(OfRun):
    """A TREC run from its file."""

    name = "read a run"
    peers = ("pandas", "pyserini", "pyterrier")
    of_process = True

    def ours(self) -> Work:
        """`Run.read`."""
        return lambda: Run.read(self.path)

    def by_pandas(self) -> Work:
        """`read_csv` of six columns."""
        import pandas

        kinds = {"qid": str, "docno": str}
        return lambda: pandas.read_csv(self.path, sep=" ", header=None, names=COLUMNS, dtype=kinds)

    def by_pyserini(self) -> Work:
        """`TrecRun`."""
        from pyserini.trectools import TrecRun

        return lambda: TrecRun(self.path).run_data

    def by_pyterrier(self) -> Work:
        """`read_results`."""
        import pyterrier

        return lambda: pyterrier.io.read_results(self.path)

    def agreement(self, peer: str, ours: Run, theirs: pandas.DataFrame) -> str:
        """Docids and scores of all entries."""
        names = theirs["docid" if peer == "pyserini" else "docno"]
        same = bool((np.asarray(ours.docids[ours.rows]) == names.to_numpy()).all())
        return f"{'same' if same else 'other'} docids, {largest_difference(ours.scores, theirs['score'])}"


class Writing(OfRun):
    """A TREC run to a file."""

    name = "write a run"
    peers = ("pandas",)

    def ours(self) -> Work:
        """`Run.write`."""
        run = Run.read(self.path)
        return lambda: run.write(self.folder / "ours.trec")

    def by_pandas(self) -> Work:
        """`to_csv` of six columns."""
        import pandas

        table = pandas.read_csv(self.path, sep=" ", header=None, names=COLUMNS, dtype={"qid": str, "docno": str})
        return lambda: table.to_csv(self.folder / "theirs.trec", sep=" ", header=False, index=False)

    def agreement(self, peer: str, ours: None, theirs: None) -> str:
        """The runs of both files."""
        one, other = (Run.read(self.folder / f"{name}.trec") for name in ("ours", "theirs"))
        same = bool((one.docids[one.rows] == other.docids[other.rows]).all())
        return f"{'same' if same else 'other'} docids, {largest_difference(one.scores, other.scores)}"


class Measuring(OfRun):
    """nDCG@10, RR@10 and R@100; a fresh process reads the run before."""

    name = "nDCG@10, RR@10, R@100"
    peers = ("ranx", "pytrec_eval", "ir_measures")
    of_process = True

    @cached_property
    def grades(self) -> dict[str, dict[str, int]]:
        """Judgements of some documents of the run, grade 1 or 0."""
        rng = np.random.default_rng(1)
        grades, run = {}, Run.read(self.path)
        for number, qid in enumerate(run.qids):
            own = run.rows[run.offsets[number] : run.offsets[number + 1]]
            drawn = rng.choice(len(own), min(JUDGED, len(own)), replace=False)
            names = run.docids[own[np.sort(drawn)]].tolist()
            grades[qid] = {docid: int(rank < 1 + JUDGED // 2) for rank, docid in enumerate(names)}
        return grades

    @cached_property
    def as_dict(self) -> dict[str, dict[str, float]]:
        """The run, as peers take it."""
        run = Run.read(self.path)
        return {qid: dict(run[qid]) for qid in run}

    def ours(self) -> Work:
        """`evaluate`."""
        import pandas

        from rnnreranker.evaluate.scores import evaluate

        table = [(qid, docid, grade) for qid, own in self.grades.items() for docid, grade in own.items()]
        qrels, run = pandas.DataFrame(table, columns=["query_id", "doc_id", "relevance"]), Run.read(self.path)
        return lambda: evaluate(run, qrels, MEASURES).means[0].tolist()

    def by_ranx(self) -> Work:
        """`ranx.evaluate`, its kernels compiled before."""
        import ranx

        qrels, run = ranx.Qrels(self.grades), ranx.Run.from_file(self.path, kind="trec")
        names = ["ndcg@10", "mrr@10", "recall@100"]

        def work() -> list[float]:
            values = ranx.evaluate(qrels, run, names, threads=1, save_results_in_run=False)
            return [float(values[name]) for name in names]

        return work

    def by_pytrec_eval(self) -> Work:
        """`RelevanceEvaluator`, whose RR has no cutoff; of the mean."""
        import pytrec_eval

        run, names = self.as_dict, ("ndcg_cut_10", "recip_rank", "recall_100")
        evaluator = pytrec_eval.RelevanceEvaluator(self.grades, {"ndcg_cut.10", "recip_rank", "recall.100"})

        def work() -> list[float]:
            values = evaluator.evaluate(run).values()
            return [float(np.mean([one[name] for one in values])) for name in names]

        return work

    def by_ir_measures(self) -> Work:
        """`calc_aggregate`."""
        import ir_measures

        measures, run = [ir_measures.parse_measure(name) for name in MEASURES.split()], self.as_dict

        def work() -> list[float]:
            values = ir_measures.calc_aggregate(measures, self.grades, run)
            return [float(values[measure]) for measure in measures]

        return work

    def agreement(self, peer: str, ours: list[float], theirs: list[float]) -> str:
        """The means; pytrec_eval has another RR."""
        chosen = [0, 2] if peer == "pytrec_eval" else [0, 1, 2]
        return largest_difference([ours[at] for at in chosen], [theirs[at] for at in chosen])


class Fusing(PeerTask):
    """Two runs to one."""

    peers: ClassVar[tuple[str, ...]] = ("pyserini", "ranx")
    method: ClassVar[str]

    @property
    def size(self) -> str:
        """Queries and depth."""
        return f"2 of {self.sizes.fused} x {DEPTH}"

    @cached_property
    def runs(self) -> list[Run]:
        """Both."""
        return [made_up_run(self.sizes.fused, DEPTH, seed) for seed in (0, 1)]

    def write(self) -> None:
        """Both."""
        for number, run in enumerate(self.runs):
            run.write(self.folder / f"{number}.trec")

    def ours(self) -> Work:
        """`fuse`."""
        runs = [Run.read(self.folder / f"{number}.trec") for number in (0, 1)]
        return lambda: fuse(runs, self.method)

    def by_ranx(self) -> Work:
        """`ranx.fuse`."""
        import ranx

        runs = [ranx.Run.from_file(str(self.folder / f"{number}.trec"), kind="trec") for number in (0, 1)]
        how = {"method": "rrf"} if self.method == "rrf" else {"norm": "min-max", "method": "sum"}
        return lambda: ranx.fuse(runs, **how)

    def agreement(self, peer: str, ours: Run, theirs: Any) -> str:
        """The first document of every query."""
        if peer == "ranx":
            scores_of = theirs.to_dict()
            best = {qid: max(own, key=own.__getitem__) for qid, own in scores_of.items()}
        else:
            table = theirs.run_data.sort_values(["topic", "score"], ascending=[True, False], kind="stable")
            best = table.groupby("topic")["docid"].first().to_dict()
        return same_share([ours[qid][0][0] for qid in ours], [best[qid] for qid in ours], "first documents")


class Rrf(Fusing):
    """Reciprocal rank fusion."""

    name = "fuse, RRF"
    method = "rrf"

    def by_pyserini(self) -> Work:
        """`reciprocal_rank_fusion`."""
        from pyserini.fusion import reciprocal_rank_fusion
        from pyserini.trectools import TrecRun

        runs = [TrecRun(str(self.folder / f"{number}.trec")) for number in (0, 1)]
        return lambda: reciprocal_rank_fusion([run.clone() for run in runs], rrf_k=60)


class MinMax(Fusing):
    """The sum of scores between the lowest and the highest."""

    name = "fuse, min-max"
    method = "minmax"
    peers = ("ranx",)


TASKS: tuple[type[PeerTask], ...] = (Reading, Writing, Measuring, Rrf, MinMax)
