"""Vector stores, the real packages: their hits are reranked as `rerank_hits` reranks the same vectors, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal, refusal_with
from store_worlds import (
    COUNT,
    DIMENSION,
    expected_of,
    nearest,
    query_of,
    same_order,
    unit_of,
    vectors_of_texts,
)

from rnnreranker import rerank_hits
from rnnreranker.adapters.stores import rerank_chroma, rerank_duckdb, rerank_faiss, rerank_milvus, rerank_qdrant
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import METRICS, metric_of
from rnnreranker.base.errors import DataWarning

VECTORS = vectors_of_texts()
UNIT = vectors_of_texts(unit=True)
QUERY, UNIT_QUERY = query_of(VECTORS), unit_of(query_of(UNIT))
HITS = 25
EXPECTED = expected_of(UNIT_QUERY, UNIT, nearest(HITS, UNIT_QUERY, UNIT))
LONG = VECTORS * np.linspace(0.5, 2, COUNT)[:, None].astype(np.float32)
INNER, COSINE_DISTANCE = metric_of("Milvus", "IP"), metric_of("Chroma", "cosine")


# ---- what every store shares


def test_the_order_in_which_hits_come_changes_nothing() -> None:
    values = 1 - UNIT @ UNIT_QUERY
    turned = np.random.default_rng(2).permutation(COUNT)
    order, scores = rerank_returned(COSINE_DISTANCE, range(COUNT), VECTORS, values, UNIT_QUERY)
    again, same = rerank_returned(COSINE_DISTANCE, turned.tolist(), VECTORS[turned], values[turned], UNIT_QUERY)
    assert turned[again].tolist() == order.tolist()
    np.testing.assert_array_equal(same, scores)


def test_distances_do_not_see_where_the_origin_is() -> None:
    """Inner products would: every vector moved by the same leaves neighbours by distance as they are."""
    moved, query, metric = VECTORS + 5, QUERY + 5, metric_of("Milvus", "L2")
    values = ((VECTORS - QUERY) ** 2).sum(axis=1)
    order, scores = rerank_returned(metric, range(COUNT), VECTORS, values, QUERY)
    again, same = rerank_returned(metric, range(COUNT), moved, None, query)
    same_order(again.tolist(), same, (order.tolist(), scores))
    assert rerank_hits(query, moved)[0].tolist() != order.tolist()


def test_of_an_id_that_comes_twice_the_better_hit_stays() -> None:
    ids = [*range(COUNT), 7, 3]
    vectors = np.concatenate([VECTORS, VECTORS[[7, 3]] + np.outer([-5, 5], QUERY)])
    order, _ = rerank_returned(INNER, ids, vectors, vectors @ QUERY, QUERY)
    assert sorted(order.tolist()) == sorted({*range(COUNT + 2)} - {COUNT, 3})  # the worse 7 and the worse 3


@pytest.mark.parametrize(
    ("vectors", "values", "query", "message"),
    [
        ([[1.0], None, []], None, [1.0], "Milvus: 2 of 3 hits have no vector (first: 'b'); ask the store for vectors"),
        ([[1.0], [np.nan], [2.0]], None, [1.0], "the vector of hit 'b' has NaN or infinite values"),
        ([[1.0], [1.0, 2.0], [2.0]], None, [1.0], "vectors: a list whose rows differ in length"),
        ([[[1.0]], [[1.0]], [[1.0]]], None, [1.0], "vectors have shape (3, 1, 1); expected (hits, dimensions)"),
        ([[1.0], [2.0]], None, [1.0], "2 vectors of 3 hits"),
        ([[1.0]] * 3, [1.0, None, 2.0], [1.0], "1 of 3 hits have no finite score (first: 'b' with None)"),
        ([[1.0]] * 3, [1.0, 2.0], [1.0], "scores have shape (2,); expected (3,)"),
        ([[1.0]] * 3, None, [1.0, 2.0], "query_vector has shape (2,); expected (1,) finite numbers"),
    ],
)
def test_what_is_refused(vectors: Any, values: Any, query: Any, message: str) -> None:
    with refusal_with(message):
        rerank_returned(INNER, ["a", "b", "c"], vectors, values, query)


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


@pytest.mark.parametrize("store", ["Qdrant", "Chroma", "Milvus", "LanceDB", "DuckDB"])
@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_scores_of_another_metric_are_refused(store: str, noise: float) -> None:
    """What is named is the metric that they are of, up to the noise of 8 bits."""
    coded = LONG + noise * np.random.default_rng(1).normal(size=LONG.shape) * np.abs(LONG).max()
    for true in METRICS[store]:
        values = every_score(QUERY, coded)[true]
        for said in METRICS[store]:
            own = metric_of(store, said)
            if said == true:
                assert len(rerank_returned(own, range(COUNT), LONG, values, QUERY)[0]) == COUNT
                continue
            with refusal(rf"^{store}: these scores are not of metric '{said}' .*'{true}'"):
                rerank_returned(own, range(COUNT), LONG, values, QUERY)


@pytest.mark.parametrize(
    ("store", "metric", "value"),
    [("Qdrant", "Cosine", 5.8), ("Qdrant", "Euclid", -0.5), ("Milvus", "IP", 5000.0)],
)
def test_a_number_that_no_such_metric_gives(store: str, metric: str, value: float) -> None:
    values = every_score(UNIT_QUERY, UNIT)[metric].copy()
    values[29] = value
    with refusal(f"^{store}: these scores are not of metric '{metric}'"):
        rerank_returned(metric_of(store, metric), range(COUNT), UNIT, values, UNIT_QUERY)


def test_doubled_cosine_distances_of_quantised_indexes_are_read_as_cosines() -> None:
    """As LanceDB's indexes of codes return them."""
    values, metric = 1 - UNIT @ UNIT_QUERY, metric_of("LanceDB", "cosine")
    order, scores = rerank_returned(metric, range(COUNT), VECTORS, values, UNIT_QUERY)
    again, doubled = rerank_returned(metric, range(COUNT), VECTORS, 2 * values, UNIT_QUERY)
    same_order(again.tolist(), doubled, (order.tolist(), scores))
    same_order(order.tolist(), scores, expected_of(UNIT_QUERY, UNIT, range(COUNT)))


def test_what_may_be_right_is_told() -> None:
    scores = 1 - UNIT @ unit_of(UNIT_QUERY + 0.2)
    with pytest.warns(
        DataWarning, match=r"these scores are roughly those of metric 'cosine', but off by \d\d%; unless"
    ):
        rerank_returned(COSINE_DISTANCE, range(COUNT), VECTORS, scores, UNIT_QUERY)


def test_scores_of_a_fusion_show_another_order() -> None:
    cosine = metric_of("Qdrant", "Cosine", fused=True)
    ranks = np.argsort(np.argsort(LONG @ QUERY)).astype(float)
    assert len(rerank_returned(cosine, range(COUNT), LONG, np.arange(COUNT) % 7, QUERY)[0]) == COUNT
    for values, message in (
        (ranks, "the scores are not in the order of 'Cosine', but in that of 'Dot'; give its"),
        (1 - UNIT @ unit_of(QUERY), "the scores are not in the order of 'Cosine', but in that of 'a distance'"),
    ):
        with refusal(message):
            rerank_returned(cosine, range(COUNT), LONG, values, QUERY)


@pytest.mark.parametrize("metric", ["cosine", "dot_product", "l2"])
def test_distances_of_any_metric_are_refused(metric: str) -> None:
    cosines, distances = unit_of(LONG) @ unit_of(QUERY), np.linalg.norm(LONG - QUERY, axis=1)
    own, order = metric_of("Haystack", metric, fused=True), r"are not in the order of .*, but in that of"
    for far in (1 - cosines, 1 - LONG @ QUERY, distances, distances**2):
        for count in (5, COUNT):
            best = np.argsort(far)[:count]
            with refusal(f"{order} 'a distance'" if count == 5 else order):
                rerank_returned(own, range(count), LONG[best], far[best], QUERY)


# ---- Faiss


@pytest.mark.parametrize("made", ["Flat", "HNSW32,Flat", "IDMap2,Flat", "IDMap,Flat", "IVF2,Flat"])
@pytest.mark.parametrize("l2", [False, True])
def test_faiss(made: str, l2: bool) -> None:
    import faiss

    index = faiss.index_factory(DIMENSION, made, faiss.METRIC_L2 if l2 else faiss.METRIC_INNER_PRODUCT)
    index.train(UNIT)
    own = np.arange(COUNT) * 10 + 7 if made.startswith("IDMap") else np.arange(COUNT)
    index.add_with_ids(UNIT, own) if made.startswith("IDMap") else index.add(UNIT)
    if made.startswith("IVF"):
        ((ids, _),) = rerank_faiss(UNIT_QUERY[None], index, COUNT)  # one list is probed: the rest of the rows is -1
        assert (ids >= 0).all()
        index.nprobe = 2
    ((ids, scores),) = rerank_faiss(UNIT_QUERY[None], index, HITS)
    best, expected = EXPECTED
    same_order(ids.tolist(), scores, (own[best].tolist(), expected))


def test_faiss_decodes_quantised_vectors() -> None:
    import faiss

    index = faiss.index_factory(DIMENSION, "SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(UNIT)
    index.add(UNIT)
    vectors = index.reconstruct_n(0, COUNT)
    ((ids, scores),) = rerank_faiss(UNIT_QUERY[None], index, HITS)
    near = nearest(HITS, UNIT_QUERY, vectors)
    same_order(ids.tolist(), scores, expected_of(UNIT_QUERY, vectors, near))


def test_faiss_refusals() -> None:
    import faiss

    with refusal(r"query_vectors has shape \(12,\): expected \(queries, 12\)"):
        rerank_faiss(QUERY, faiss.IndexFlatIP(DIMENSION))
    with refusal("Faiss: metric '2': expected one of METRIC_INNER_PRODUCT, METRIC_L2"):
        rerank_faiss(QUERY[None], faiss.IndexFlat(DIMENSION, faiss.METRIC_L1))
    assert len(rerank_faiss(QUERY[None], faiss.IndexFlatIP(DIMENSION))[0][0]) == 0
    for made in ("LSH", "IVF2,PQ4x4fs"):
        index = faiss.index_factory(DIMENSION, made)
        index.train(VECTORS)
        index.add(VECTORS)
        with refusal(r"index is of type Index\w+, which gives no vectors back; use"):
            rerank_faiss(QUERY[None], index, 5)


# ---- Qdrant


@pytest.fixture(scope="module")
def qdrant() -> Any:
    client = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed").QdrantClient(":memory:")
    from qdrant_client import models

    for metric in models.Distance:
        one = models.VectorParams(size=DIMENSION, distance=metric)
        client.create_collection(metric.value, vectors_config={"text": one, "other": one})
        named = [{"text": UNIT[row].tolist(), "other": [1.0] * DIMENSION} for row in range(COUNT)]
        client.upsert(metric.value, [models.PointStruct(id=row, vector=named[row]) for row in range(COUNT)])
    return client


@pytest.mark.parametrize("metric", ["Cosine", "Dot", "Euclid"])
def test_qdrant(qdrant: Any, metric: str) -> None:
    found = qdrant.query_points(metric, UNIT_QUERY.tolist(), using="text", with_vectors=True, limit=HITS)
    points = found.points
    given = {point.id: point.score for point in points}
    best = rerank_qdrant(UNIT_QUERY, points[::-1], metric=metric, using="text")
    assert best == rerank_qdrant(UNIT_QUERY, found, metric=metric, using="text")
    expected = expected_of(UNIT_QUERY, UNIT, [*given])
    same_order([point.id for point in best], [point.score for point in best], expected)
    assert {point.id: point.score for point in points} == given  # those that were given stay as they were


def test_qdrant_fusion(qdrant: Any) -> None:
    from qdrant_client import models

    both = [models.Prefetch(query=QUERY.tolist(), using=name, limit=HITS) for name in ("text", "other")]
    rrf = models.FusionQuery(fusion=models.Fusion.RRF)
    fused = qdrant.query_points("Cosine", prefetch=both, query=rrf, with_vectors=True, limit=HITS).points
    ids = [point.id for point in fused]
    order, scores = rerank_hits(unit_of(QUERY), UNIT[ids], np.array([point.score for point in fused]))
    best = rerank_qdrant(QUERY, fused, using="text", fused=True)
    same_order([point.id for point in best], [point.score for point in best], ([ids[one] for one in order], scores))


def test_qdrant_refusals(qdrant: Any) -> None:
    points = qdrant.query_points("Dot", QUERY.tolist(), using="text", limit=3).points
    with refusal(r"3 of 3 hits have no vector \(first: \d+\); call query_points with with_vec"):
        rerank_qdrant(QUERY, points, metric="Dot")
    points = qdrant.query_points("Dot", QUERY.tolist(), using="text", with_vectors=True, limit=3).points
    for using in (None, "texts"):
        with refusal(rf"using={using!r}: expected one of other, text"):
            rerank_qdrant(QUERY, points, metric="Dot", using=using)
    with refusal(r"params: no setting kk, did you mean k\?"):
        rerank_qdrant(QUERY, points, metric="Dot", using="text", params={"kk": 3})
    with refusal("expected the hits of one query"):
        rerank_qdrant(QUERY, qdrant.scroll("Dot", with_vectors=True)[0], metric="Dot", using="text")
    assert rerank_qdrant(QUERY, []) == []


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
        made[space].add(ids=list(map(str, range(COUNT))), embeddings=UNIT, documents=[f"t{n}" for n in range(COUNT)])
    return made


@pytest.mark.parametrize("space", ["l2", "cosine", "ip"])
def test_chroma(chroma: Any, space: str) -> None:
    queries = np.stack([UNIT_QUERY, unit_of(UNIT[5] + UNIT[8])])
    asked = ["embeddings", "distances", "documents"]
    result = chroma[space].query(query_embeddings=queries, n_results=HITS, include=asked)
    again = rerank_chroma(queries, result, metric=space)
    for row, query in enumerate(queries):
        expected = expected_of(query, UNIT, list(map(int, result["ids"][row])))
        same_order(list(map(int, again["ids"][row])), again["scores"][row], expected)
        distance = dict(zip(result["ids"][row], result["distances"][row], strict=True))
        assert again["distances"][row] == [distance[name] for name in again["ids"][row]]
        assert again["documents"][row] == [f"t{name}" for name in again["ids"][row]]
    assert again["metadatas"] is None


def test_chroma_refusals(chroma: Any) -> None:
    result = chroma["ip"].query(query_embeddings=QUERY[None], n_results=3)
    with refusal(r'no embeddings; query with include=\["embeddings", "distances"\]'):
        rerank_chroma(QUERY[None], result, metric="ip")
    result = chroma["ip"].query(query_embeddings=QUERY[None], n_results=3, include=["embeddings"])
    assert len(rerank_chroma(QUERY[None], result, metric="ip")["ids"][0]) == 3
    with refusal(r"query_vectors has shape \(12,\): expected \(1, d\), a row for each query"):
        rerank_chroma(QUERY, result, metric="ip")
    asked = ["embeddings", "distances", "documents"]
    nothing = chroma["ip"].query(query_embeddings=QUERY[None], where={"a": 1}, include=asked)
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
    order = "desc" if function in ("array_cosine_similarity", "array_inner_product") else "asc"
    return connection.sql(
        f"select *, {function}(vector, $query::float[{DIMENSION}]) as score from texts where {where} "
        f"order by score {order} limit {hits}",
        params={"query": UNIT_QUERY.tolist()},
    )


@pytest.mark.parametrize("function", METRICS["DuckDB"])
def test_duckdb(duck: Any, function: str) -> None:
    rows = asked(duck, function)
    for vector in ("vector", "half"):  # fixed length and lists of doubles
        best = rerank_duckdb(UNIT_QUERY, rows, function=function, vector=vector)
        same_order(list(map(int, best["id"].to_pylist())), best["rnn_score"].to_numpy(), EXPECTED)
        assert best.column_names == ["id", "vector", "half", "score", "rnn_score"]
        assert rerank_duckdb(UNIT_QUERY, best, function=function, vector=vector)["rnn_score"] == best["rnn_score"]
    assert rerank_duckdb(UNIT_QUERY, rows.df()[::-1], function=function).column_names == best.column_names
    pytest.importorskip("polars", reason="polars is not installed")
    assert rerank_duckdb(UNIT_QUERY, rows.pl(), function=function)["id"].to_pylist() == best["id"].to_pylist()


def test_duckdb_refusals(duck: Any) -> None:
    function = "array_inner_product"
    assert len(rerank_duckdb(UNIT_QUERY, asked(duck, function, where="false"), function=function)) == 0
    with refusal("no column embedding among id, vector, half, score; select it, or name"):
        rerank_duckdb(UNIT_QUERY, asked(duck, function), function=function, vector="embedding")
    lost = duck.sql("select id, case when id = '4' then null else vector end as vector, 0.5 as score from texts")
    with refusal(r"1 of 30 hits have no vector \(first: '4'\); leave out rows where vector is"):
        rerank_duckdb(UNIT_QUERY, lost, function=function)
    large = "select case when id = '4' then null else 9007199254740990 + id::bigint end as id, vector, 0.5 as score"
    for rows in ((some := duck.sql(f"{large} from texts")), some.df(), some.fetchnumpy()):
        with refusal("1 of 30 rows have no id; leave out rows where id is null"):
            rerank_duckdb(UNIT_QUERY, rows, function=function)
    with refusal(r"rows is a list; expected connection\.sql\(\.\.\.\) itself"):
        rerank_duckdb(UNIT_QUERY, asked(duck, function).fetchall(), function=function)


# ---- Milvus


def hit_of(row: int, distance: float, **entity: Any) -> Any:
    """As pymilvus's, for what needs no server."""

    class Hit(dict):
        id = property(lambda self: self["id"])

    return Hit(id=row, distance=distance, entity=entity)


def test_milvus_forms() -> None:
    hits = [hit_of(row, float(VECTORS[row] @ QUERY), vector=VECTORS[row].tolist()) for row in range(COUNT)]
    best = rerank_milvus(QUERY, hits[::-1], metric="IP")
    same_order([hit["id"] for hit in best], [hit["score"] for hit in best], expected_of(QUERY, VECTORS, range(COUNT)))
    with refusal(r'2 of 2 hits have no vector \(first: 1\); search with output_fields=\["v"\]'):
        rerank_milvus(QUERY, [hit_of(1, 0.5), hit_of(2, 0.5)], vector="v")
    with refusal("got a list among the hits; expected the hits of one query"):
        rerank_milvus(QUERY, [hits], metric="IP")
    assert rerank_milvus(QUERY, []) == []


@pytest.mark.slow
def test_milvus_lite(tmp_path: Path) -> None:
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    client = pytest.importorskip("pymilvus", reason="pymilvus is not installed").MilvusClient(str(tmp_path / "m.db"))
    try:
        for metric in ("COSINE", "IP", "L2"):
            client.create_collection(metric, dimension=DIMENSION, metric_type=metric, primary_field_name="pk")
            client.insert(metric, [{"pk": row, "vector": UNIT[row].tolist()} for row in range(COUNT)])
            (hits,) = client.search(metric, data=[UNIT_QUERY.tolist()], limit=HITS, output_fields=["vector"])
            best = rerank_milvus(UNIT_QUERY, hits, metric=metric)
            expected = expected_of(UNIT_QUERY, UNIT, [hit["pk"] for hit in hits])
            same_order([hit["pk"] for hit in best], [hit["score"] for hit in best], expected)
    finally:
        client.close()


# ---- LanceDB


@pytest.fixture(scope="module")
def lance(module_path: Path) -> Any:
    package = pytest.importorskip("lancedb", reason="lancedb is not installed")
    from lancedb.index import FTS

    table = package.connect(module_path).create_table(
        "texts", [{"id": row, "text": f"word{row % 3} w{row}", "vector": UNIT[row].tolist()} for row in range(COUNT)]
    )
    table.create_index("text", config=FTS())
    return table


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_lancedb_vector_search(lance: Any, metric: str) -> None:
    from rnnreranker.adapters.stores import LanceDBRnnReranker

    reranker = LanceDBRnnReranker(metric, query=lambda text: UNIT_QUERY)
    found_rows = lance.search(UNIT_QUERY).metric(metric).rerank(reranker, query_string="a query").limit(HITS).to_arrow()
    same_order(found_rows["id"].to_pylist(), found_rows["_relevance_score"].to_numpy(), EXPECTED)
    assert found_rows.column_names == ["id", "text", "vector", "_relevance_score"]


def test_lancedb_refusals(lance: Any) -> None:
    from rnnreranker.adapters.stores import LanceDBRnnReranker

    reranker = LanceDBRnnReranker(query=UNIT_QUERY)
    with refusal("no column vector among id, _distance; select the column vector too"):
        lance.search(UNIT_QUERY).select(["id", "_distance"]).rerank(reranker, query_string="q").limit(5).to_arrow()
    empty = lance.search(UNIT_QUERY).where("id < 0").rerank(reranker, query_string="q").limit(5).to_arrow()
    assert (len(empty), empty.column_names[-1]) == (0, "_relevance_score")
    assert len(lance.search("word1", query_type="fts").rerank(reranker).limit(5).to_arrow()) == 5
