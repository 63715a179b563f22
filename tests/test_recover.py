"""Hidden positives: rankings measured by hand, what is ranked and what is not, filters at equal rates, the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from query_sets import write_index, write_judged, write_queries
from refusals import refusal

from rnnreranker import QueryVectors, RnnParams, Run, make_labels, open_vectors
from rnnreranker.base.record import read_records
from rnnreranker.lab.recover.recovery import cases_of, measure_recovery, ranking_measures
from rnnreranker.lab.recover.request import RecoverRequest, check
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.part import write_graph
from rnnreranker.recover import main
from rnnreranker.rnn import jaccard_similarity


def test_measures_by_hand() -> None:
    scores, hidden = np.array([0.9, 0.8, 0.8, 0.1, 0.5]), np.array([False, True, False, True, False])
    found = ranking_measures(scores, hidden, np.array(["a", "b", "c", "d", "e"]))  # order a b c e d
    assert found["AP"] == pytest.approx((1 / 2 + 2 / 5) / 2)
    assert found["P@m"] == pytest.approx(1 / 2)
    assert found["AUC"] == pytest.approx((1.5 + 0) / 6)  # b: above e, level with c; d: above none
    swapped = ranking_measures(scores, hidden, np.array(["a", "c", "b", "d", "e"]))  # the tie falls the other way
    assert (swapped["AP"], swapped["AUC"]) == (pytest.approx((1 / 3 + 2 / 5) / 2), found["AUC"])


class Made:
    """Two clusters of documents; the query is near the first and between both, its positives are the second."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        spots = np.repeat(np.eye(3)[:2], (6, 4), axis=0) + rng.normal(size=(10, 3)) * 0.05
        docids = [*(f"n{i}" for i in range(6)), *(f"p{i}" for i in range(4))]
        self.folder, self.vectors = write_index(folder, spots, docids), open_vectors(folder)
        query = np.array([[1.0, 0.7, 0.0]], dtype=np.float32)
        self.queries = QueryVectors(("q",), query)
        scores = (spots.astype(np.float32) @ query[0]).tolist()
        self.run = Run.from_dict({"q": dict(zip(docids, scores, strict=True))})
        grades = [("q", docid, int(docid.startswith("p"))) for docid in docids if docid != "n5"]
        self.qrels = pd.DataFrame(grades, columns=["query_id", "doc_id", "relevance"])


@pytest.fixture(scope="module")
def made(module_path: Path) -> Made:
    return Made(module_path / "index")


PARAMS = RnnParams(k=3, k_exp=1, tau=0.0, lam=0.5, context=10, **{"rank_weight": 0, "run_weight": 0})
SIMILARITY = "joint:k=3,k_exp=1,tau=0,lam=0.5,context=10,positive_weight=0.6"


def cases(made: Made, **others: Any) -> pd.DataFrame:
    given = {"index": made.folder, "topics": {"q": "text"}, "qrels": made.qrels, "run": made.run}
    given |= {"encoded_queries": made.queries, "similarity": SIMILARITY, "threads": 1, **others}
    return cases_of(RecoverRequest(**given))[0]


def test_every_positive_is_visible_once_and_judged_candidates_are_ranked(made: Made) -> None:
    found = cases(made)
    assert sorted(found["visible"].unique()) == ["p0", "p1", "p2", "p3"]
    for _, case in found.groupby("case"):
        docids = case["docid"].tolist()
        assert {case["visible"].iloc[0], "n5"}.isdisjoint(docids)  # n5 is not judged
        assert len(docids) == 8
        assert case.loc[case["hidden"], "docid"].tolist() == [one for one in docids if one.startswith("p")]
    assert cases(made, unjudged="negative").groupby("case")["docid"].agg(set).map(lambda own: "n5" in own).all()


def test_scores_are_those_of_the_similarity_functions(made: Made) -> None:
    case = cases(made).query("case == 0")
    docids = made.run.ranked("q")
    context = np.vstack([made.queries.vectors, made.vectors.fetch(made.vectors.rows(docids))])[None]
    probe = docids.index(case["visible"].iloc[0]) + 1
    places = [docids.index(docid) for docid in case["docid"]]
    alike = jaccard_similarity(context, PARAMS, probes=(probe,))[0, 0, 1:]
    near, products = context[0, 1:] @ context[0, probe], context[0, 1:] @ context[0, 0]
    unit = (near - near.min()) / (near.max() - near.min())
    expected = {"jaccard": alike, "geometric": unit, "raw": products, "margin": products - products[probe - 1]}
    for name, values in (expected | {"mixed": 0.5 * unit + 0.5 * alike}).items():
        np.testing.assert_allclose(case[name], values[places], rtol=1e-4, atol=1e-5, err_msg=name)


def test_clusters_are_found_by_the_positive_and_not_by_the_query(made: Made) -> None:
    found = measure_recovery(cases(made), rates=(0.375,))
    value = {(row["scorer"], row["measure"]): row["value"] for row in found["rows"]}
    assert value["query", "AUC"] == 0
    for scorer in ("geometric", "jaccard", "mixed"):
        assert value[scorer, "AUC"] == value[scorer, "AP"] == 1
    assert (found["queries"], found["cases"], found["hidden"], found["negatives"]) == (1, 4, 12, 20)
    by_filter = {row["filter"]: row for row in found["filters"]}
    assert (by_filter["rnn"]["positives"], by_filter["rnn"]["negatives"]) == (1, 0)
    assert by_filter["max-score"]["positives"] == 0
    assert by_filter["rnn"]["discarded"] == by_filter["max-score"]["discarded"] == 0.375


def test_similarities_from_the_graph_beside_them(made: Made, tmp_path: Path) -> None:
    """Those of labels from neighbours, and two more filters."""
    for name in ("vectors.npy", "docid"):
        (tmp_path / name).write_bytes((made.folder / name).read_bytes())
    write_graph(DenseNeighbours(made.vectors), tmp_path / "neighbours", 3)
    plain, found = cases(made), cases(made, index=tmp_path, source="both")
    assert list(found) == [*plain, *(f"graph-{name}" for name in ("geometric", "jaccard", "mixed", "joint"))]
    pd.testing.assert_frame_equal(found[list(plain)], plain)
    for visible, case in found.groupby("visible"):
        for name in ("geometric", "jaccard"):
            method = f"{name}:k=3,k_exp=1,tau=0,context=10,from=neighbours"
            labels = make_labels(made.run, {"q": {visible: 1}}, tmp_path, method)["q"]
            scores = dict(zip(labels.docids, labels.scores.tolist(), strict=True))
            assert case[f"graph-{name}"].tolist() == [scores[docid] for docid in case["docid"]]
        mixed = 0.5 * case["graph-geometric"] + 0.5 * case["graph-jaccard"]
        np.testing.assert_allclose(case["graph-mixed"], mixed, rtol=1e-6)
    made_of = measure_recovery(found, rates=(0.375,))
    assert measure_recovery(plain)["from_graph"] == []
    assert (len(made_of["rows"]), len(made_of["from_graph"])) == (33, 9)
    filters = ["rnn", "joint", "rnn-graph", "joint-graph", "margin", "max-score"]
    assert [row["filter"] for row in made_of["filters"]] == filters
    value = {(row["scorer"], row["measure"]): row["value"] for row in made_of["rows"]}
    for row in made_of["from_graph"]:
        beside = value[row["scorer"].removeprefix("graph-"), row["measure"]]
        assert row["difference"] == pytest.approx(value[row["scorer"], row["measure"]] - beside)


def test_what_is_refused(made: Made) -> None:
    few = made.qrels[made.qrels["doc_id"].isin(["p0", "n0"])]
    with refusal("no query has 2 positives and a judged negative"):
        cases(made, qrels=few)
    given: dict[str, Any] = {"index": "index", "topics": "t", "qrels": "q"}
    for wrong, said in (
        ({"topics": None, "qrels": None}, "topics is missing; qrels is missing"),
        ({"similarity": "evidence"}, "similarity=evidence: expected joint:KEY=VALUE"),
        ({"similarity": "joint:lamda=1"}, "similarity=joint:lamda=1: no setting lamda"),
        ({"beside": ["late", "late"]}, "beside: late, late: expected different names"),
        ({"beside": "late:context=5"}, "beside=late:context=5: no setting context"),
        ({"beside": "bm25-feedback"}, "beside=bm25-feedback: "),
    ):
        with refusal(said):
            check(RecoverRequest(**{**given, **wrong}))


def test_the_command(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries = write_queries(tmp_path / "queries.npy", ["q"], made.queries.vectors)
    flags = write_judged(tmp_path, {"q": "text"}, made.qrels.itertuples(index=False))
    flags += f"--index {made.folder} --k 3 --encoded-queries {queries} --context 10".split()
    with refusal("no neighbours in this index"):
        main([*flags, "--from", "both"])
    write_graph(DenseNeighbours(made.vectors), made.folder / "neighbours", 3)
    assert main([*flags, "--from", "both", "--output", str(tmp_path / "found.json")]) == 0
    (record,) = read_records(tmp_path / "found.json")
    assert (record.kind, {name: len(digits) for name, digits in record.inputs.items()}) == (
        "recovery",
        {"index": 16, "graph": 16},
    )
    assert record.outcome["params"]["k"] == 3
    row = next(row for row in record.outcome["rows"] if (row["scorer"], row["measure"]) == ("mixed", "AP"))
    out = capsys.readouterr().out
    assert f"mixed\tAP\t{row['value']:.4f}" in out
    assert "from the graph\tmeasure\tminus\tdifference\tp (Holm)\n" in out
    assert out.endswith(" after Holm).\n")
