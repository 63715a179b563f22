"""Labels from a graph of the collection: against loops, whoever makes the shards, and without a vector or a query."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from labelers import make_labeler
from query_sets import write_index, write_neighbours, write_queries
from refusals import refusal

from rnnreranker import LabelParams, RnnParams, Run, SoftLabels, VectorSource, open_vectors
from rnnreranker.base.method import Inputs, find
from rnnreranker.data.qrels import load_qrels
from rnnreranker.labels.__main__ import main
from rnnreranker.labels.methods.base import positives_of
from rnnreranker.labels.methods.simple import JointParams
from rnnreranker.labels.negatives import pairs_of
from rnnreranker.labels.similarity import GraphSimilarity
from rnnreranker.negatives import main as mine
from rnnreranker.parts.neighbours import NeighbourGraph, open_neighbours
from rnnreranker.parts.vectors.source import load_encoded_queries
from rnnreranker.rnn import reference
from rnnreranker.train.coder import check_index

QUERIES, DOCUMENTS = 12, 90
PARAMS = RnnParams(k=4, k_exp=2, context=25, lam=0.4, rank_weight=0.0, run_weight=0.0, probes=1)
JOINT = JointParams(**PARAMS.to_dict(), positive_weight=0.7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index in groups with the 6 nearest of every document, run.txt, qrels.txt."""
    made, rng = tmp_path_factory.mktemp("job"), np.random.default_rng(3)
    centres = rng.normal(size=(8, 12))
    vectors = centres[np.arange(DOCUMENTS) % 8] + 0.7 * rng.normal(size=(DOCUMENTS, 12))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    write_neighbours(write_index(made / "index", vectors), 6)
    asked = centres[np.arange(QUERIES) % 8] + 0.7 * rng.normal(size=(QUERIES, 12))
    best = np.argsort(-(asked @ vectors.T), axis=1)[:, :35]
    run = {
        f"q{n}": {f"d{row}": float(asked[n] @ vectors[row]) for row in best[n, : 35 - 3 * n]} for n in range(QUERIES)
    }
    Run.from_dict(run).write(made / "run.txt")
    write_queries(made / "q.npy", run, asked)
    lines = [f"q{n} 0 d{best[n, n]} 1" for n in range(QUERIES - 1)] + [f"q{n} 0 d{n + 70} 2" for n in range(0, 9, 3)]
    (made / "qrels.txt").write_text("\n".join(dict.fromkeys([*lines, "q1 0 elsewhere 1"])) + "\n")
    return made


@pytest.fixture(scope="module")
def graph(folder: Path) -> NeighbourGraph:
    return open_neighbours(folder / "index")


def by_hand(graph: NeighbourGraph, rows: list[int], positives: int, params: RnnParams) -> tuple[np.ndarray, np.ndarray]:
    """s and J of the first rows and all of them, (R, n) each, as loops over what the rows of the graph name."""
    known = reference.known_similarities(graph.edges, graph.weights, rows)
    done = reference.graph_steps(known, params)
    near, alike = np.zeros((positives, len(rows))), np.zeros((positives, len(rows)))
    for place in range(positives):
        alike[place] = reference.jaccard(done.expanded, place + 1)[1:]
        own = done.raw[place + 1, 1:].astype(np.float64)
        near[place] = (own - own.min()) / (np.ptp(own) or 1.0) if params.scale == "minmax" else own
    return near, alike


@pytest.mark.parametrize(
    "params",
    [
        PARAMS,
        dataclasses.replace(PARAMS, lam=1.0),
        dataclasses.replace(PARAMS, lam=0.0, tau=0.0),
        dataclasses.replace(PARAMS, scale="none", weight="binary"),
    ],
    ids=["default", "geometric", "jaccard", "raw"],
)
@pytest.mark.long
def test_similarities_are_those_of_loops(graph: NeighbourGraph, params: RnnParams) -> None:
    rng = np.random.default_rng(7)
    lengths = np.array([20, 3, 1, 20, 11])
    rows = np.stack([rng.permutation(DOCUMENTS)[:20] for _ in lengths])
    rows[1, :3] = [0, *graph.edges[0, :2]]
    probes = np.array([1, 2])
    mixed = GraphSimilarity(lengths, params, 1, graph, rows).mixed(probes)
    assert np.array_equal(mixed, GraphSimilarity(lengths, params, 3, graph, rows).mixed(probes))
    alone = [GraphSimilarity(lengths[b : b + 1], params, 1, graph, rows[b : b + 1]).mixed(probes)[0] for b in range(5)]
    assert np.array_equal(mixed, alone)
    for b, length in enumerate(lengths.tolist()):
        taken = min(2, length)
        near, alike = by_hand(graph, rows[b, :length].tolist(), taken, params)
        expected = params.lam * near + (1 - params.lam) * alike
        np.testing.assert_allclose(mixed[b, :taken, :length], expected, rtol=1e-5, atol=1e-6)
        assert not mixed[b, :, length:].any()


def test_the_command_opens_no_vectors_and_no_encoder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: object, **rest: object) -> None:
        raise AssertionError("opened")

    for name in ("rnnreranker.parts.vectors.part.open_vectors", "rnnreranker.encode.kinds.Encoder.load"):
        monkeypatch.setattr(name, never)
    argv = ["--run", str(folder / "run.txt"), "--qrels", str(folder / "qrels.txt"), "--index", str(folder / "index")]
    assert main([*argv, "--from", "neighbours", "--output", str(tmp_path / "l.parquet")]) == 0
    assert len(SoftLabels.read(tmp_path / "l.parquet")) == QUERIES - 1


@pytest.mark.parametrize("queries", ["encoded", "run", "none"])
@pytest.mark.parametrize("lam", [0.4, 0.0, 1.0])
def test_joint_similarity_is_that_of_loops(
    folder: Path, graph: NeighbourGraph, queries: Literal["encoded", "run", "none"], lam: float
) -> None:
    """Both ends of every candidate by hand: the run orders the context, its first candidate stands for the query."""
    run, judged = Run.read(folder / "run.txt"), positives_of(load_qrels(folder / "qrels.txt"))
    judged = {qid: dict.fromkeys(positives, 1) for qid, positives in judged.items()}
    params = dataclasses.replace(JOINT, lam=lam, queries=queries)
    vectors, asked = open_vectors(folder / "index"), load_encoded_queries(folder / "q.npy")
    inputs = Inputs(neighbours=graph, vectors=vectors, query_vectors=asked)
    labels, _ = make_labeler("joint", inputs, params, source="neighbours").infer_from(run, judged)
    for one in labels:
        known = [docid for docid in judged[one.qid] if docid != "elsewhere"]
        context = [*known, *(docid for docid in run.ranked(one.qid) if docid not in known)][:25]
        assert one.docids[:25] == context
        ranked = run.ranked(one.qid)
        ordered = sorted(context, key=lambda docid: ranked.index(docid) if docid in ranked else len(ranked))
        query = asked.vectors[asked.qids.index(one.qid)].astype(np.float64)
        expected = joint_by_hand(graph, vectors, query, dict(run[one.qid]), ordered, known, params)
        np.testing.assert_allclose(one.scores[:25], [expected[docid] for docid in context], rtol=1e-5, atol=2e-6)


def joint_by_hand(
    graph: NeighbourGraph,
    vectors: VectorSource,
    asked: np.ndarray,
    scores: dict[str, float],
    ordered: list[str],
    positives: list[str],
    params: JointParams,
) -> dict[str, float]:
    """The joint similarity of every candidate, in the order of the run, with grades of 1; by loops."""
    rows = graph.rows(ordered).tolist()
    of_run = [scores.get(docid, min(scores[one] for one in ordered if one in scores)) for docid in ordered]
    products = [float(vectors.fetch(np.array([row]))[0].astype(np.float64) @ asked) for row in rows]
    query = {"encoded": products, "run": of_run, "none": None}[params.queries]
    known = reference.known_similarities(graph.edges, graph.weights, rows, query)
    done = reference.graph_steps(known, params)
    by_graph = reference.known_similarities(graph.edges, graph.weights, rows)[1:, 1:]
    if query is None:
        n = len(ordered)
        ranks = [(n - rank) / (n - 1) * 11 / (10 + rank) for rank in range(1, n + 1)]
        near_query = (np.array(ranks) + spread(of_run)) / 2
    else:
        near_query = spread(query)
    alike_query = reference.jaccard(done.expanded, 0)[1:]
    found = []
    for positive in positives:
        place = ordered.index(positive)
        known_pairs = by_graph[np.isfinite(by_graph)]
        own = np.where(np.isfinite(by_graph[place]), by_graph[place], known_pairs.min())
        own[place] = known_pairs.max()
        ends = [(spread(own), reference.jaccard(done.expanded, place + 1)[1:]), (near_query, alike_query)]
        mixed = [params.lam * near + (1 - params.lam) * np.array(alike) for near, alike in ends]
        found.append(params.positive_weight * mixed[0] + (1 - params.positive_weight) * mixed[1])
    return dict(zip(ordered, np.mean(found, axis=0).tolist(), strict=True))


def spread(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Min-max."""
    own = np.array(values, dtype=np.float64)
    return (own - own.min()) / (np.ptp(own) or 1.0)


def test_labels_say_which_vectors_their_graph_is_of(folder: Path, graph: NeighbourGraph) -> None:
    """By the graph's own account: one of another tool gives none, and that of words is of no vectors."""
    qrels, vectors = load_qrels(folder / "qrels.txt"), open_vectors(folder / "index")
    for origin, known in (
        (graph.origin, vectors.fingerprint),
        (dataclasses.replace(graph.origin, source="others"), "others"),
        (dataclasses.replace(graph.origin, of="bm25"), None),
        (dataclasses.replace(graph.origin, of="", source=""), None),
    ):
        told = NeighbourGraph(graph.path, graph.table, graph.edges, graph.weights, origin)
        labeler = make_labeler("evidence", Inputs(neighbours=told), PARAMS, source="neighbours")
        labels, turned = (labeler.infer(Run.read(folder / "run.txt"), judged) for judged in (qrels, qrels[::-1]))
        assert [one.docids for one in labels] == [one.docids for one in turned]
        assert labels.targets.tobytes() == turned.targets.tobytes()
        assert labels.metadata.get("vectors") == known
        if known != vectors.fingerprint:
            with refusal(rf"made from {(known or graph.fingerprint)[:8]}\.\.\., the vectors of the index are"):
                check_index(labels, vectors, "the labels", "the index")


def test_what_is_refused(folder: Path, graph: NeighbourGraph, tmp_path: Path) -> None:
    argv = ["--run", str(folder / "run.txt"), "--qrels", str(folder / "qrels.txt"), "--from", "neighbours"]
    argv += ["--output", str(tmp_path / "l.parquet")]
    with refusal(r"--method evidence needs --index \(where neighbours come from\)"):
        main(argv)
    for method in ("query", "hard", "teacher", "collective", "term-weight"):
        with refusal(f"method {method}: not from neighbours"):
            main([*argv, "--index", str(folder / "index"), "--method", method])
    joint = find("labeler", "joint")
    encoded = dataclasses.replace(JOINT, queries="encoded")
    assert joint.needs_from("neighbours", encoded) == {"neighbours", "query vectors", "vectors"}
    with refusal("queries=encoded: of labels from neighbours; with vectors the query has one"):
        joint.needs_from("vectors", encoded)
    with refusal(r"from graph: .*neighbours"):
        make_labeler("evidence", Inputs(), source="graph")  # type: ignore[arg-type]
    divided = dataclasses.replace(PARAMS, scale="none", normalize="max")
    labeler = make_labeler("geometric", Inputs(neighbours=graph), divided, source="neighbours")
    with refusal("normalize=max: a graph has no whole rows to divide"):
        labeler.infer(Run.read(folder / "run.txt"), load_qrels(folder / "qrels.txt"))


def test_negatives_by_the_graph(folder: Path, graph: NeighbourGraph, tmp_path: Path) -> None:
    """The filter rnn has the similarities of evidence; the others need inner products with the query."""
    run, judged = Run.read(folder / "run.txt"), positives_of(load_qrels(folder / "qrels.txt"))
    judged = {qid: dict.fromkeys(positives, 1) for qid, positives in judged.items()}
    most = LabelParams(aggregate="max")
    labeler: Any = make_labeler("evidence", Inputs(neighbours=graph), PARAMS, most, source="neighbours")
    found, (labels, _) = pairs_of(run, judged, labeler, PARAMS.context), labeler.infer_from(run, judged)
    assert found["qid"].unique().tolist() == [f"q{n}" for n in range(QUERIES - 1)]
    for qid, own in found.groupby("qid"):
        scores = dict(zip(labels[qid].docids, labels[qid].scores, strict=True))
        np.testing.assert_array_equal(own["near"], own["docid"].map(scores))
    argv = ["--run", str(folder / "run.txt"), "--qrels", str(folder / "qrels.txt"), "--from", "neighbours"]
    argv += ["--output", str(tmp_path / "negatives.tsv")]
    assert mine([*argv, "--index", str(folder / "index"), "--rate", "0.2"]) == 0
    assert len((tmp_path / "negatives.tsv").read_text().splitlines()) > QUERIES
    encoded = ["--filter", "joint:queries=encoded", "--index", str(folder / "index")]
    with refusal(r"needs --topics or --encoded-queries \(the queries\)"):
        mine([*argv, *encoded])
    assert mine([*argv, *encoded, "--encoded-queries", str(folder / "q.npy")]) == 0
    said = "--filter margin compares inner products with the query: not with --from neighbours"
    with refusal(said):
        mine([*argv, "--filter", "margin"])
