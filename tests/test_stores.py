"""Vector stores, the real packages: their hits are reranked as `rerank_hits` reranks the same vectors, or refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from store_worlds import (
    COUNT,
    DIMENSION,
    Refusing,
    expected_of,
    query_of,
    run_example,
    same_order,
    unit_of,
    vectors_of_texts,
)

from rnnreranker import rerank_hits
from rnnreranker.adapters.stores import chroma as of_chroma
from rnnreranker.adapters.stores import milvus as of_milvus
from rnnreranker.adapters.stores import qdrant as of_qdrant
from rnnreranker.adapters.stores import rerank_chroma, rerank_duckdb, rerank_faiss, rerank_milvus, rerank_qdrant
from rnnreranker.adapters.stores.duckdb import FUNCTIONS
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import (
    COSINE,
    COSINE_DISTANCE,
    DISTANCE,
    INNER,
    SQUARED_DISTANCE,
    StoreMetric,
    metric_of,
)
from rnnreranker.base.errors import DataWarning, InputError, MissingDependencyError

VECTORS = vectors_of_texts()
UNIT = vectors_of_texts(unit=True)
QUERY, UNIT_QUERY = query_of(VECTORS), unit_of(query_of(UNIT))
HITS = 25
STORES = (of_qdrant.METRICS, of_chroma.METRICS, of_milvus.METRICS)


# ---- what every store shares


def test_the_order_in_which_hits_come_changes_nothing() -> None:
    values = 1 - UNIT @ UNIT_QUERY
    turned = np.random.default_rng(2).permutation(COUNT)
    for query in (UNIT_QUERY, None):
        order, scores = rerank_returned("Store", range(COUNT), VECTORS, values, COSINE_DISTANCE, query)
        again, same = rerank_returned("Store", turned.tolist(), VECTORS[turned], values[turned], COSINE_DISTANCE, query)
        assert turned[again].tolist() == order.tolist()
        np.testing.assert_array_equal(same, scores)


def test_distances_do_not_see_where_the_origin_is() -> None:
    """Inner products would: every vector moved by the same leaves neighbours by distance as they are."""
    moved, query = VECTORS + 5, QUERY + 5
    values = ((VECTORS - QUERY) ** 2).sum(axis=1)
    order, scores = rerank_returned("Store", range(COUNT), VECTORS, values, SQUARED_DISTANCE, QUERY)
    again, same = rerank_returned("Store", range(COUNT), moved, None, SQUARED_DISTANCE, query)
    same_order(again.tolist(), same, (order.tolist(), scores))
    assert rerank_hits(query, moved)[0].tolist() != order.tolist()


def test_of_an_id_that_comes_twice_the_better_hit_stays() -> None:
    ids = [*range(COUNT), 7, 3]
    vectors = np.concatenate([VECTORS, VECTORS[[7, 3]] + np.outer([-5, 5], QUERY)])
    values = vectors @ QUERY
    order, scores = rerank_returned("Store", ids, vectors, values, INNER, QUERY)
    assert sorted(ids[position] for position in order) == [*range(COUNT)]
    assert COUNT in np.setdiff1d(np.arange(COUNT + 2), order)  # the worse 7
    assert 3 in np.setdiff1d(np.arange(COUNT + 2), order)  # the worse 3
    assert len(scores) == COUNT


@pytest.mark.parametrize(
    ("vectors", "values", "query", "message"),
    [
        ([[1.0], None, None], None, [1.0], "Store: 2 of 3 hits have no vector (first: 'b'); ask the store for vectors"),
        ([[1.0], [], [1.0]], None, [1.0], "1 of 3 hits have no vector (first: 'b')"),
        ([[1.0], [np.nan], [2.0]], None, [1.0], "vectors of 1 hits have NaN or infinite values (first: 'b')"),
        ([[1.0], [1.0, 2.0], [2.0]], None, [1.0], "the vector of hit 'b' has shape (2,); expected (1,) as the first"),
        (
            [[1.0], b"\0\0", [2.0]],
            None,
            [1.0],
            "the vector of hit 'b': a bytes of |S2; expected numbers: make an array of bytes first",
        ),
        ([[1.0], [True], [2.0]], None, [1.0], "the vector of hit 'b': a list of bool; expected numbers"),
        ([[[1.0]], [[1.0]], [[1.0]]], None, [1.0], "'a' has shape (1, 1); expected (d,), a vector a hit"),
        ([[1.0], [2.0]], None, [1.0], "2 vectors of 3 hits"),
        ([[1.0]] * 3, [1.0, None, 2.0], [1.0], "1 of 3 hits have no finite score (first: 'b' with None)"),
        ([[1.0]] * 3, [1.0, 2.0, np.nan], [1.0], "(first: 'c' with nan)"),
        ([[1.0]] * 3, [1.0, 2.0], [1.0], "2 scores of 3 hits"),
        ([[1.0]] * 3, None, None, "neither scores of the hits nor a query vector; give query_vector"),
        ([[1.0]] * 3, None, [1.0, 2.0], "query_vector has shape (2,); expected (1,) finite numbers"),
        ([[1.0]] * 3, None, [np.inf], "expected (1,) finite numbers"),
        ([[1.0]] * 3, None, "text", "query_vector: a str of <U4; expected numbers"),
    ],
)
def test_what_is_refused(vectors: Any, values: Any, query: Any, message: str) -> None:
    with pytest.raises(InputError) as refused:
        rerank_returned("Store", ["a", "b", "c"], vectors, values, INNER, query)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("metric", "value"), [(COSINE, 5.8), (COSINE, -1.2), (COSINE_DISTANCE, -4.8), (DISTANCE, -0.5), (INNER, 5000.0)]
)
def test_a_number_that_no_such_metric_gives(metric: StoreMetric, value: float) -> None:
    own = {"cosine": UNIT @ UNIT_QUERY, "inner": UNIT @ UNIT_QUERY, "l2": np.linalg.norm(UNIT - UNIT_QUERY, axis=1)}
    values = own[metric.kind] if metric is not COSINE_DISTANCE else 1 - own["cosine"]
    metric = metric_of({"own": metric}, "own")
    assert len(rerank_returned("Store", range(COUNT), UNIT, values, metric, UNIT_QUERY)[0]) == COUNT
    values[29] = value
    with pytest.raises(InputError, match=rf"^Store: the scores are not of .*: hit 29 has {value:.4g}, which means "):
        rerank_returned("Store", range(COUNT), UNIT, values, metric, UNIT_QUERY)


# ---- whether scores are those of the metric


def every_score(query: np.ndarray, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """What each way to compare gives, by its formula."""
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    distances = np.linalg.norm(vectors - query, axis=1)
    return {
        **dict.fromkeys(["Cosine", "COSINE", "array_cosine_similarity"], cosines),
        **dict.fromkeys(["cosine", "array_cosine_distance"], 1 - cosines),
        **dict.fromkeys(["Dot", "IP", "array_inner_product"], vectors @ query),
        **dict.fromkeys(["dot", "ip"], 1 - vectors @ query),
        **dict.fromkeys(["Euclid", "array_distance"], distances),
        **dict.fromkeys(["l2", "L2"], distances**2),
        "array_negative_inner_product": -(vectors @ query),
    }


@pytest.mark.parametrize("metrics", [FUNCTIONS, *STORES], ids=lambda metrics: next(iter(metrics)))
@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_scores_of_another_metric_are_refused(metrics: dict[str, StoreMetric], noise: float) -> None:
    """With the query and without; what is named is the metric that they are of, up to the noise of 8 bits."""
    vectors = VECTORS * np.linspace(0.5, 2, COUNT)[:, None].astype(np.float32)
    coded = vectors + noise * np.random.default_rng(1).normal(size=vectors.shape) * np.abs(vectors).max()
    for true in metrics:
        values = every_score(QUERY, coded)[true]
        for said in metrics:
            own = metric_of(metrics, said)
            if said == true:
                for query in (QUERY, None):
                    assert len(rerank_returned("Store", range(COUNT), vectors, values, own, query)[0]) == COUNT
                continue
            with pytest.raises(
                InputError, match=rf"^Store: the scores are not of metric='{said}': hit \d+ has .*'{true}'"
            ):
                rerank_returned("Store", range(COUNT), vectors, values, own, QUERY)
            if {true, said} != {"array_inner_product", "array_negative_inner_product"}:  # of the opposite query
                with pytest.raises(InputError, match=f"^Store: the scores are not of metric='{said}': no query has"):
                    rerank_returned("Store", range(COUNT), vectors, values, own, None)


def test_what_may_be_right_is_told() -> None:
    rng = np.random.default_rng(3)
    near = unit_of(rng.normal(size=(COUNT, 100)) + 8)  # all in one direction
    cosine = metric_of(STORES[1], "cosine")
    with pytest.warns(DataWarning, match=r"^Store: without the query's vector .* give the query's vector$"):
        rerank_returned(
            "Store", range(COUNT), near, 1 - near @ unit_of(near[0] + rng.normal(size=100) / 10), cosine, None
        )
    with pytest.warns(
        DataWarning, match=r"^Store: the scores are roughly those of metric='cosine', but off by \d\d%; unless"
    ):
        rerank_returned("Store", range(COUNT), VECTORS, 1 - UNIT @ unit_of(UNIT_QUERY + 0.2), cosine, UNIT_QUERY)


def test_scores_of_a_fusion_show_another_order() -> None:
    long = VECTORS * np.linspace(0.5, 2, COUNT)[:, None].astype(np.float32)
    cosine = metric_of(STORES[0], "Cosine").of_fusion()
    ranks = np.argsort(np.argsort(long @ QUERY)).astype(float)
    assert len(rerank_returned("Store", range(COUNT), long, np.arange(COUNT) % 7, cosine, QUERY)[0]) == COUNT
    for values, message in (
        (ranks, "the scores are not in the order of metric='Cosine', but in that of metric='Dot': give that"),
        (1 - UNIT @ unit_of(QUERY), "the scores fall where the similarity to the query rises, as distances do"),
    ):
        with pytest.raises(InputError, match=message):
            rerank_returned("Store", range(COUNT), long, values, cosine, QUERY)


# ---- Faiss


@pytest.mark.parametrize("made", ["Flat", "HNSW8,Flat", "IDMap2,Flat", "IDMap,Flat", "IVF2,Flat"])
@pytest.mark.parametrize("l2", [False, True])
def test_faiss(made: str, l2: bool) -> None:
    import faiss

    index = faiss.index_factory(DIMENSION, made, faiss.METRIC_L2 if l2 else faiss.METRIC_INNER_PRODUCT)
    index.train(UNIT)
    own = np.arange(COUNT) * 10 + 7 if made.startswith("IDMap") else np.arange(COUNT)
    index.add_with_ids(UNIT, own) if made.startswith("IDMap") else index.add(UNIT)
    if made.startswith("IVF"):
        index.nprobe = 2
    if made.startswith("HNSW"):
        index.hnsw.efSearch = 64
    ((ids, scores),) = rerank_faiss(UNIT_QUERY[None], index, HITS)
    near = np.argsort(-(UNIT @ UNIT_QUERY), kind="stable")[:HITS]
    best, expected = expected_of(UNIT_QUERY, UNIT, near)
    same_order(ids.tolist(), scores, (own[best].tolist(), expected))


def test_faiss_quantised_and_too_few() -> None:
    import faiss

    index = faiss.index_factory(DIMENSION, "SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(VECTORS)
    index.add(VECTORS)
    ((ids, scores),) = rerank_faiss(QUERY[None], index, 100)
    decoded = index.reconstruct_n(0, COUNT)
    same_order(ids.tolist(), scores, expected_of(QUERY, decoded, range(COUNT)))
    assert not np.array_equal(decoded, VECTORS)
    few = faiss.index_factory(DIMENSION, "IVF3,Flat", faiss.METRIC_INNER_PRODUCT)
    few.train(VECTORS)
    few.add(VECTORS)
    ((ids, scores),) = rerank_faiss(QUERY[None], few, COUNT)  # one list is probed: the rest of the rows is -1
    assert (ids >= 0).all()
    assert 0 < len(ids) == len(scores) < COUNT


def test_faiss_refusals() -> None:
    import faiss

    with pytest.raises(InputError, match=r"query_vectors has shape \(12,\): expected \(queries, 12\)"):
        rerank_faiss(QUERY, faiss.IndexFlatIP(DIMENSION))
    with pytest.raises(InputError, match="metric number 2: expected METRIC_INNER_PRODUCT or METRIC_L2"):
        rerank_faiss(QUERY[None], faiss.IndexFlat(DIMENSION, faiss.METRIC_L1))
    assert len(rerank_faiss(QUERY[None], faiss.IndexFlatIP(DIMENSION))[0][0]) == 0
    for hits in (0, 2.0, "10", True):
        with pytest.raises(InputError, match=f"hits={hits!r}: expected an integer >= 1"):
            rerank_faiss(QUERY[None], faiss.IndexFlatIP(DIMENSION), hits)  # type: ignore[arg-type]
    for made in ("LSH", "IVF2,PQ4x4fs"):
        index = faiss.index_factory(DIMENSION, made)
        index.train(VECTORS)
        index.add(VECTORS)
        with pytest.raises(InputError, match=r"index is of type Index\w+, which gives no vectors back \(.+\); use one"):
            rerank_faiss(QUERY[None], index, 5)


# ---- Qdrant


@pytest.fixture(scope="module")
def qdrant() -> Any:
    client = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed").QdrantClient(":memory:")
    from qdrant_client import models

    for name, metric, kind in (
        ("cosine", models.Distance.COSINE, None),
        ("dot", models.Distance.DOT, None),
        ("half", models.Distance.DOT, models.Datatype.FLOAT16),
        ("euclid", models.Distance.EUCLID, None),
        ("manhattan", models.Distance.MANHATTAN, None),
    ):
        one = models.VectorParams(size=DIMENSION, distance=metric, datatype=kind)
        client.create_collection(name, vectors_config={"text": one, "other": one})
        vectors = UNIT if name == "euclid" else VECTORS
        client.upsert(
            name,
            [
                models.PointStruct(
                    id=row, vector={"text": vectors[row].tolist(), "other": [1.0] * DIMENSION}, payload={"row": row}
                )
                for row in range(COUNT)
            ],
        )
    return client


@pytest.mark.parametrize("metric", ["Cosine", "Dot", "Euclid"])
@pytest.mark.parametrize("known", [True, False])
def test_qdrant(qdrant: Any, metric: str, known: bool) -> None:
    vectors, query = (UNIT, UNIT_QUERY) if metric == "Euclid" else (VECTORS, QUERY)
    points = qdrant.query_points(metric.lower(), query.tolist(), using="text", with_vectors=True, limit=HITS).points
    given = query if known else None
    best = rerank_qdrant(given, points[::-1], metric=metric, using="text")
    if metric == "Cosine":
        vectors, query = UNIT, unit_of(QUERY)
    expected = expected_of(query, vectors, [point.id for point in points])
    same_order([point.id for point in best], [point.score for point in best], expected)
    assert best[0].vector == next(point.vector for point in points if point.id == best[0].id)
    assert points[0].score not in {point.score for point in best}  # those that were given stay as they were


def test_qdrant_half_precision_and_fusion(qdrant: Any) -> None:
    from qdrant_client import models

    half = qdrant.query_points("half", QUERY.tolist(), using="text", with_vectors=True, limit=HITS)
    best = rerank_qdrant(QUERY, half, metric=models.Distance.DOT, using="text")
    stored = np.array([point.vector["text"] for point in sorted(half.points, key=lambda point: point.id)])
    rows = sorted(point.id for point in half.points)
    order, scores = rerank_hits(QUERY, stored, stored.astype(np.float32) @ QUERY)
    np.testing.assert_allclose([point.score for point in best], scores, atol=3e-3)  # scores of another precision
    assert np.mean(np.array([point.id for point in best]) == np.array(rows)[order]) > 0.8
    both = [models.Prefetch(query=QUERY.tolist(), using=name, limit=HITS) for name in ("text", "other")]
    fused = qdrant.query_points(
        "cosine", prefetch=both, query=models.FusionQuery(fusion=models.Fusion.RRF), with_vectors=True, limit=HITS
    ).points
    ids = [point.id for point in fused]
    order, scores = rerank_hits(unit_of(QUERY), UNIT[ids], np.array([point.score for point in fused]))
    best = rerank_qdrant(QUERY, fused, using="text", fused=True)
    same_order([point.id for point in best], [point.score for point in best], ([ids[one] for one in order], scores))


def test_qdrant_refusals(qdrant: Any) -> None:
    points = qdrant.query_points("dot", QUERY.tolist(), using="text", limit=3).points
    said = "Qdrant: 3 of 3 hits have no vector (first: {}); call query_points with with_vectors=True"
    with pytest.raises(InputError) as refused:
        rerank_qdrant(QUERY, points, metric="Dot")
    assert str(refused.value) == said.format(points[0].id)
    points = qdrant.query_points("dot", QUERY.tolist(), using="text", with_vectors=True, limit=3).points
    with pytest.raises(InputError, match=r"using=None: point \d+ has the vectors (other, text|text, other); expec"):
        rerank_qdrant(QUERY, points, metric="Dot")
    with pytest.raises(InputError, match="metric='Manhattan': expected one of Cosine, Dot, Euclid"):
        rerank_qdrant(QUERY, points, metric="Manhattan")
    with pytest.raises(InputError, match="fused scores say nothing of the query; give query_vector"):
        rerank_qdrant(None, points, metric="Dot", using="text", fused=True)
    assert rerank_qdrant(QUERY, []) == []


@pytest.mark.parametrize("true", ["cosine", "dot", "euclid", "manhattan"])
def test_qdrant_tells_its_metric(qdrant: Any, true: str) -> None:
    """Scores of another metric are refused; the description of the collection says the right one."""
    query = UNIT_QUERY if true == "euclid" else QUERY
    points = qdrant.query_points(true, query.tolist(), using="text", with_vectors=True, limit=HITS)
    for said in of_qdrant.METRICS:
        if said.lower() != true:
            with pytest.raises(InputError, match=f"^Qdrant: the scores are not of metric='{said}': hit"):
                rerank_qdrant(query, points, metric=said, using="text")
    collection = qdrant.get_collection(true)
    if true == "manhattan":
        with pytest.raises(InputError, match="metric='Manhattan': expected one of Cosine, Dot, Euclid"):
            rerank_qdrant(query, points, metric=collection, using="text")
        return
    best = rerank_qdrant(query, points, metric=collection, using="text")
    assert best == rerank_qdrant(query, points, metric=true, using="text")
    with pytest.raises(InputError, match="using='texts': the collection has "):
        rerank_qdrant(query, points, metric=collection, using="texts")


def test_qdrant_groups_and_records(qdrant: Any) -> None:
    asked = {"query": QUERY.tolist(), "using": "text", "with_vectors": True}
    points = qdrant.query_points("dot", limit=HITS, **asked).points
    groups = qdrant.query_points_groups("dot", group_by="row", limit=COUNT, group_size=1, **asked)
    records = qdrant.scroll("dot", limit=COUNT, with_vectors=True)
    every, cut = (
        [(one.id, one.score) for one in rerank_qdrant(QUERY, given, metric="Dot", using="text")]
        for given in (qdrant.query_points("dot", limit=COUNT, **asked), groups.groups[: COUNT - 1])
    )
    assert [(one.id, one.score) for one in rerank_qdrant(QUERY, groups, metric="Dot", using="text")] == every
    assert len(cut) == COUNT - 1
    for given in (records, records[0], qdrant.retrieve("dot", range(COUNT), with_vectors=True)):
        best = rerank_qdrant(QUERY, given, metric="Dot", using="text")
        same_order([one.id for one in best], [one.score for one in best], expected_of(QUERY, VECTORS, range(COUNT)))
        assert best[0].payload == {"row": best[0].id}
    with pytest.raises(InputError, match="neither scores of the hits nor a query vector"):
        rerank_qdrant(None, records, metric="Dot", using="text")
    for given, message in (
        (
            [groups, qdrant.query_points("dot", **asked)] and [qdrant.query_points("dot", **asked)] * 2,
            "results of 2 queries",
        ),
        ("text", "points is a str; expected what query_points returned"),
        ([1, 2], "points has a int; expected points as query_points returns them"),
    ):
        with pytest.raises(InputError, match=message):
            rerank_qdrant(QUERY, given, metric="Dot", using="text")
    assert rerank_qdrant(QUERY, points, metric="Dot", using="text", params={"k": 3})[0].vector["text"]
    with pytest.raises(InputError, match=r"params: no setting kk, did you mean k\?"):
        rerank_qdrant(QUERY, points, metric="Dot", using="text", params={"kk": 3})


# ---- Chroma


@pytest.fixture(scope="module")
def chroma() -> Any:
    package = pytest.importorskip("chromadb", reason="chromadb is not installed")
    from chromadb.config import Settings

    client = package.EphemeralClient(Settings(anonymized_telemetry=False))
    made = {}
    for space in ("l2", "cosine", "ip"):
        made[space] = client.create_collection(
            f"test-{space}", configuration={"hnsw": {"space": space}}, embedding_function=None
        )
        vectors = UNIT if space == "l2" else VECTORS
        made[space].add(ids=list(map(str, range(COUNT))), embeddings=vectors, documents=[f"t{n}" for n in range(COUNT)])
    return made


@pytest.mark.parametrize("space", ["l2", "cosine", "ip"])
@pytest.mark.parametrize("known", [True, False])
def test_chroma(chroma: Any, space: str, known: bool) -> None:
    vectors, query = (UNIT, UNIT_QUERY) if space == "l2" else (VECTORS, QUERY)
    queries = np.stack([query, vectors[5] + vectors[8]])
    result = chroma[space].query(
        query_embeddings=queries, n_results=HITS, include=["embeddings", "distances", "documents"]
    )
    again = rerank_chroma(queries if known else None, result, metric=space)
    if space == "cosine":
        vectors, queries = UNIT, unit_of(queries)
    tested = queries if space != "l2" or known else queries[:1]  # the other query is not of length 1
    for row, query in enumerate(tested):
        if space == "l2" and row:
            continue
        expected = expected_of(query, vectors, list(map(int, result["ids"][row])))
        same_order(list(map(int, again["ids"][row])), again["scores"][row], expected)
    distance = dict(zip(result["ids"][1], result["distances"][1], strict=True))
    assert again["distances"][1] == [distance[name] for name in again["ids"][1]]
    assert again["documents"][1] == [f"t{name}" for name in again["ids"][1]]
    assert again["metadatas"] is None


@pytest.mark.parametrize("space", ["l2", "cosine", "ip"])
def test_chroma_tells_its_metric(chroma: Any, space: str) -> None:
    query = UNIT_QUERY if space == "l2" else QUERY
    result = chroma[space].query(query_embeddings=[query], n_results=HITS, include=["embeddings", "distances"])
    for said in of_chroma.METRICS:
        if said != space and (space, said) != (
            "l2",
            "cosine",
        ):  # of unit vectors these are the doubled cosine distances
            with pytest.raises(
                InputError, match=f"^Chroma: the scores are not of metric='{said}': hit .* metric='{space}'"
            ):
                rerank_chroma([query], result, metric=said)
    told, said = (rerank_chroma([query], result, metric=metric) for metric in (chroma[space], space))
    assert (told["ids"], told["scores"]) == (said["ids"], said["scores"])
    with pytest.raises(InputError, match=r"a result of collection\.get, which has no distances; expected one of coll"):
        rerank_chroma([query], chroma[space].get(include=["embeddings"]))


def test_chroma_refusals(chroma: Any) -> None:
    result = chroma["ip"].query(query_embeddings=QUERY[None], n_results=3)
    with pytest.raises(InputError, match=r'no embeddings; call query with include=\["embeddings", "distances"\]'):
        rerank_chroma(QUERY[None], result, metric="ip")
    result = chroma["ip"].query(query_embeddings=QUERY[None], n_results=3, include=["embeddings"])
    assert len(rerank_chroma(QUERY[None], result, metric="ip")["ids"][0]) == 3
    with pytest.raises(InputError, match="neither scores of the hits nor a query vector"):
        rerank_chroma(None, result, metric="ip")
    with pytest.raises(
        InputError, match=r"query_vectors has shape \(12,\): expected \(1, d\), a row for each query of the result"
    ):
        rerank_chroma(QUERY, result, metric="ip")
    with pytest.raises(InputError, match="metric='dot': expected one of l2, cosine, ip"):
        rerank_chroma(QUERY[None], result, metric="dot")
    nothing = chroma["ip"].query(
        query_embeddings=QUERY[None], where={"a": 1}, include=["embeddings", "distances", "documents"]
    )
    again = rerank_chroma(QUERY[None], nothing, metric="ip")
    assert (again["ids"], again["documents"], again["scores"]) == ([[]], [[]], [[]])


# ---- DuckDB


@pytest.fixture(scope="module")
def duck() -> Any:
    connection = pytest.importorskip("duckdb", reason="duckdb is not installed").connect()
    connection.execute(f"create table texts (id varchar, vector float[{DIMENSION}], half double[])")
    rows = [(str(row), UNIT[row].tolist(), UNIT[row].tolist()) for row in range(COUNT)]
    connection.executemany("insert into texts values (?, ?, ?)", rows)
    return connection


def asked(connection: Any, function: str, hits: int = HITS, where: str = "true") -> Any:
    order = "" if function.endswith(("similarity", "inner_product")) and "negative" not in function else "asc"
    return connection.sql(
        f"select *, {function}(vector, $query::float[{DIMENSION}]) as score from texts where {where} "
        f"order by score {order or 'desc'} limit {hits}",
        params={"query": UNIT_QUERY.tolist()},
    )


@pytest.mark.parametrize(
    "function",
    [
        "array_cosine_similarity",
        "array_cosine_distance",
        "array_inner_product",
        "array_negative_inner_product",
        "array_distance",
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_duckdb(duck: Any, function: str, known: bool) -> None:
    rows = asked(duck, function)
    for vector in ("vector", "half"):  # fixed length and lists of doubles
        best = rerank_duckdb(UNIT_QUERY if known else None, rows, function=function, vector=vector)
        near = np.argsort(-(UNIT @ UNIT_QUERY), kind="stable")[:HITS]
        expected = expected_of(UNIT_QUERY, UNIT, near)
        same_order(list(map(int, best["id"].to_pylist())), best["rnn_score"].to_numpy(), expected)
        assert best.column_names == ["id", "vector", "half", "score", "rnn_score"]


def test_duckdb_refusals(duck: Any) -> None:
    function = "array_inner_product"
    assert len(rerank_duckdb(UNIT_QUERY, asked(duck, function, where="false"), function=function)) == 0
    with pytest.raises(InputError, match="function='array_dot': expected one of array_cosine_similarity"):
        rerank_duckdb(UNIT_QUERY, asked(duck, function), function="array_dot")
    with pytest.raises(InputError, match="no column embedding among id, vector, half, score; select it, or name"):
        rerank_duckdb(UNIT_QUERY, asked(duck, function), function=function, vector="embedding")
    lost = duck.sql("select id, case when id = '4' then null else vector end as vector, 0.5 as score from texts")
    with pytest.raises(InputError, match=r"1 of 30 hits have no vector \(first: '4'\); leave out rows where vector is"):
        rerank_duckdb(UNIT_QUERY, lost, function=function)
    both = [asked(duck, function, COUNT).to_arrow_table() for _ in range(2)]
    assert len(rerank_duckdb(UNIT_QUERY, pyarrow.concat_tables(both), function=function)) == COUNT
    with pytest.raises(InputError, match=r"rows is a list, which is no table of named columns; give connection\.sql"):
        rerank_duckdb(UNIT_QUERY, asked(duck, function).fetchall(), function=function)


# ---- Milvus


def hit_of(row: int, distance: float, **entity: Any) -> Any:
    """As pymilvus's, for what needs no server."""

    class Hit(dict):
        id = property(lambda self: self["id"])
        distance = property(lambda self: self["distance"])

    return Hit(id=row, distance=distance, entity=entity)


def test_milvus_forms() -> None:
    hits = [hit_of(row, float(VECTORS[row] @ QUERY), vector=VECTORS[row].tolist()) for row in range(COUNT)]
    best = rerank_milvus(QUERY, hits[::-1], metric="IP")
    same_order([hit["id"] for hit in best], [hit["score"] for hit in best], expected_of(QUERY, VECTORS, range(COUNT)))
    with pytest.raises(InputError, match=r'2 of 2 hits have no vector \(first: 1\); search with output_fields=\["v"\]'):
        rerank_milvus(QUERY, [hit_of(1, 0.5), hit_of(2, 0.5)], vector="v")
    with pytest.raises(InputError, match=r"make an array of bytes first, numpy\.frombuffer"):
        rerank_milvus(QUERY, [hit_of(1, 0.5, vector=b"\0\0")])
    with pytest.raises(InputError, match="metric='HAMMING': expected one of COSINE, IP, L2"):
        rerank_milvus(QUERY, hits, metric="HAMMING")
    with pytest.raises(InputError, match="fused scores say nothing of the query"):
        rerank_milvus(None, hits, fused=True)
    assert rerank_milvus(QUERY, []) == []
    plain = [{"id": hit["id"], "distance": hit["distance"], "entity": hit["entity"]} for hit in hits]
    for whole in ([hits], [plain], plain):  # the whole result of a query, and hits that were written as JSON
        assert [hit["id"] for hit in rerank_milvus(QUERY, whole, metric="IP")] == [hit["id"] for hit in best]
    for wrong, message in (
        ([hits, hits], r"the result has the hits of 2 queries; expected one: give result\[i\] with query i"),
        ([1, 2], "hits has a int; expected hits with distance and entity"),
    ):
        with pytest.raises(InputError, match=message):
            rerank_milvus(QUERY, wrong, metric="IP")


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_milvus_lite(tmp_path: Path, known: bool) -> None:
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    client = pytest.importorskip("pymilvus", reason="pymilvus is not installed").MilvusClient(str(tmp_path / "m.db"))
    try:
        for metric in ("COSINE", "IP", "L2"):
            client.create_collection(metric, dimension=DIMENSION, metric_type=metric, primary_field_name="pk")
            vectors, query = (UNIT, UNIT_QUERY) if metric == "L2" else (VECTORS, QUERY)
            client.insert(metric, [{"pk": row, "vector": vectors[row].tolist()} for row in range(COUNT)])
            (hits,) = client.search(metric, data=[query.tolist()], limit=HITS, output_fields=["vector"])
            best = rerank_milvus(query if known else None, hits, metric=metric)
            whole = client.search(metric, data=[query.tolist()], limit=HITS, output_fields=["vector"])
            assert best == rerank_milvus(
                query if known else None, whole, metric=client.describe_index(metric, "vector")
            )
            with pytest.raises(InputError, match=f"^Milvus: the scores are not of .* they are of metric='{metric}'"):
                rerank_milvus(query, hits, metric="IP" if metric != "IP" else "L2")
            if metric == "COSINE":
                vectors, query = UNIT, unit_of(QUERY)
            expected = expected_of(query, vectors, [hit["pk"] for hit in hits])
            same_order([hit["pk"] for hit in best], [hit["score"] for hit in best], expected)
        (hits,) = client.search("IP", data=[QUERY.tolist()], limit=3, output_fields=["pk"])
        with pytest.raises(InputError, match=r'have no vector .*search with output_fields=\["vector"\]'):
            rerank_milvus(QUERY, hits, metric="IP")
        (hits,) = client.search("IP", data=[QUERY.tolist()], limit=3, filter="pk < 0", output_fields=["vector"])
        assert rerank_milvus(QUERY, hits, metric="IP") == []
    finally:
        client.close()


# ---- LanceDB


@pytest.fixture(scope="module")
def lance(tmp_path_factory: pytest.TempPathFactory) -> Any:
    package = pytest.importorskip("lancedb", reason="lancedb is not installed")
    from lancedb.index import FTS

    table = package.connect(tmp_path_factory.mktemp("lance")).create_table(
        "texts", [{"id": row, "text": f"word{row % 3} w{row}", "vector": UNIT[row].tolist()} for row in range(COUNT)]
    )
    table.create_index("text", config=FTS())
    return table


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("known", [True, False])
def test_lancedb_vector_search(lance: Any, metric: str, known: bool) -> None:
    from rnnreranker.adapters.stores import LanceDBRnnReranker

    reranker = LanceDBRnnReranker(metric, query=(lambda text: UNIT_QUERY) if known else None)
    found_rows = lance.search(UNIT_QUERY).metric(metric).rerank(reranker, query_string="a query").limit(HITS).to_arrow()
    near = np.argsort(-(UNIT @ UNIT_QUERY), kind="stable")[:HITS]
    expected = expected_of(UNIT_QUERY, UNIT, near)
    same_order(found_rows["id"].to_pylist(), found_rows["_relevance_score"].to_numpy(), expected)
    assert found_rows.column_names == ["id", "text", "vector", "_relevance_score"]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table with a quantised index of cosines, and the vectors that it has, which are not of length 1."""
    package = pytest.importorskip("lancedb", reason="lancedb is not installed")
    from lancedb.index import IvfSq

    drawn = np.random.default_rng(6).normal(size=(300, DIMENSION)) * np.linspace(0.5, 2, 300)[:, None]
    vectors = np.concatenate([VECTORS, drawn.astype(np.float32)])
    fixed = pyarrow.FixedSizeListArray.from_arrays(vectors.ravel(), DIMENSION)
    columns = {"id": range(len(vectors)), "vector": fixed}
    table = package.connect(tmp_path_factory.mktemp("lance")).create_table("texts", pyarrow.table(columns))
    table.create_index("vector", config=IvfSq(distance_type="cosine", num_partitions=1))
    return table, vectors


@pytest.mark.parametrize("known", [True, False])
def test_lancedb_quantised_cosines(indexed: Any, known: bool) -> None:
    """Whose distances are 2 (1 - cosine): as the exact ones are reranked, and not taken for those of another metric."""
    from rnnreranker.adapters.stores import LanceDBRnnReranker

    table, vectors = indexed
    query = QUERY if known else None

    def searched(metric: Any) -> Any:
        search = table.search(QUERY) if metric is table else table.search(QUERY).metric("cosine")
        return search.rerank(LanceDBRnnReranker(metric, query=query), query_string="q").limit(HITS).to_arrow()

    plain = table.search(QUERY).metric("cosine").limit(HITS).to_arrow()
    unit, ids = unit_of(vectors), plain["id"].to_pylist()
    np.testing.assert_allclose(plain["_distance"].to_numpy(), 2 - 2 * unit[ids] @ unit_of(QUERY), atol=0.03)
    for metric in ("cosine", table):
        best = searched(metric)
        assert sorted(best["id"].to_pylist()) == sorted(ids)
        _, scores = expected_of(unit_of(QUERY), unit, ids)
        np.testing.assert_allclose(best["_relevance_score"].to_numpy(), scores, atol=0.05)
    for metric in ("l2", "dot"):
        with pytest.raises(InputError, match=f"^LanceDB: the scores are not of metric='{metric}': .* metric='cosine'"):
            searched(metric)


def test_lancedb_refusals(lance: Any) -> None:
    from rnnreranker.adapters.stores import LanceDBRnnReranker

    with pytest.raises(InputError, match="metric='ip': expected one of l2, cosine, dot"):
        LanceDBRnnReranker("ip")
    reranker = LanceDBRnnReranker()
    with pytest.raises(InputError, match="no column vector among id, _distance; select the column vector too"):
        lance.search(UNIT_QUERY).select(["id", "_distance"]).rerank(reranker, query_string="q").limit(5).to_arrow()
    empty = lance.search(UNIT_QUERY).where("id < 0").rerank(reranker, query_string="q").limit(5).to_arrow()
    assert (len(empty), empty.column_names[-1]) == (0, "_relevance_score")
    both = [lance.search(UNIT_QUERY).with_row_id(True).limit(10).to_arrow() for _ in range(2)]
    assert len(reranker.rerank_multivector(both, None)) == 10  # of a row that comes twice one stays


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rnnreranker.adapters.stores.lancedb", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == "lancedb"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Refusing("lancedb"), *sys.meta_path])
    with pytest.raises(MissingDependencyError, match=r"lancedb is needed .*'rnnreranker\[lancedb\]'"):
        __import__("rnnreranker.adapters.stores.lancedb")


# ---- the page


@pytest.mark.parametrize(
    ("heading", "package"),
    [
        ("Faiss", "faiss"),
        ("Qdrant", "qdrant_client"),
        ("Chroma", "chromadb"),
        ("DuckDB", "duckdb"),
        ("LanceDB", "lancedb"),
        pytest.param("Milvus", "milvus_lite", marks=pytest.mark.slow),
    ],
)
def test_the_examples_of_the_page(heading: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run as printed, and give what `rerank_hits` gives of the 60 nearest of the vectors."""
    pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    names = run_example("stores.md", heading)
    vectors, query = names["vectors"], names["query"]
    if heading != "Faiss":
        vectors, query = unit_of(vectors), unit_of(query)
    near = np.argsort(-(vectors @ query), kind="stable")[:60]
    if heading == "LanceDB":  # the last example fuses two searches
        hybrid = names["best"]
        assert len(hybrid) == 60
        names["best"] = (
            names["table"]
            .search(names["query"])
            .metric("cosine")
            .rerank(names["LanceDBRnnReranker"]("cosine"), query_string="a question")
            .limit(60)
            .to_arrow()
        )
    best = names.get("best")
    ids, scores = {
        "Faiss": lambda: (names["ids"], names["scores"]),
        "Qdrant": lambda: ([point.id for point in best], [point.score for point in best]),
        "Chroma": lambda: ([int(name[1:]) for name in best["ids"][0]], best["scores"][0]),
        "DuckDB": lambda: (best["id"].to_pylist(), best["rnn_score"].to_numpy()),
        "LanceDB": lambda: (best["id"].to_pylist(), best["_relevance_score"].to_numpy()),
        "Milvus": lambda: ([hit["id"] for hit in best], [hit["score"] for hit in best]),
    }[heading]()
    same_order(ids, scores, expected_of(query, vectors, near))
