"""The diagnosis without judgements: overlap, sets, hubs, scale, verdict and command."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import write_index, write_neighbours, write_queries
from refusals import refusal

from rnnreranker import QueryVectors, RnnParams, Run, open_vectors
from rnnreranker.base.record import read_records
from rnnreranker.diagnose import main
from rnnreranker.lab.diagnose import DiagnoseRequest, diagnose, verdict
from rnnreranker.lab.diagnose.measures import cohesion, effects, rank_biased_overlap, skewness, terms
from rnnreranker.lab.diagnose.verdict import LIKELY
from rnnreranker.rnn import reference


def collection(folder: Path, queries: int = 12) -> tuple[Run, QueryVectors]:
    """600 documents on the unit sphere, in groups; each query with its 60 nearest. Vectors in `folder`/index."""
    rng = np.random.default_rng(5)
    spots = rng.normal(size=(600, 384))
    spots = np.repeat(rng.normal(size=(50, 384)), 12, axis=0) * 0.8 + spots * 0.6
    asked = spots[:: 600 // queries][:queries] + 0.7 * rng.normal(size=(queries, 384))
    spots, asked = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (spots, asked))
    write_index(folder / "index", spots)
    kept = {f"q{n}": {f"d{i}": float(row[i]) for i in np.argsort(-row)[:60]} for n, row in enumerate(asked @ spots.T)}
    write_queries(folder / "queries.npy", kept, asked)
    run = Run.from_dict(kept)
    run.write(folder / "run.txt")
    return run, QueryVectors(tuple(kept), asked.astype(np.float32))


def diagnosed(folder: Path, **others: Any) -> dict[str, Any]:
    """The diagnosis of a `collection`, a query set in memory."""
    return diagnose(DiagnoseRequest(index=folder / "index", **others))[0]


def test_measures_by_hand() -> None:
    # X = 0, 2, 3: 1 * .729 + (.1 / .9) * (0 + 1 * .81 + 1 * .729) = .729 + .171
    assert rank_biased_overlap("abc", "bac", 0.9) == pytest.approx(0.9)
    assert skewness(np.array([0, 0, 0, 4])) == pytest.approx(2 / math.sqrt(3))
    groups = np.kron(np.eye(2), np.ones((3, 3))).astype(bool)
    assert cohesion(groups) == pytest.approx(1 - 6 / 15)  # every path closed; 6 of 15 pairs are linked


@pytest.mark.parametrize("params", [RnnParams(), RnnParams(k=5, scale="none", lam=0.3)], ids=str)
def test_one_query_against_the_reference(tmp_path: Path, params: RnnParams) -> None:
    run, queries = collection(tmp_path, queries=1)
    source = open_vectors(tmp_path / "index")
    found = diagnosed(tmp_path, run=run, encoded_queries=queries, rerank={"rnn": params.to_dict()})
    before = run.ranked("q0")
    done = reference.steps(np.vstack([queries.vectors, source.fetch(source.rows(before))]), params)
    made = reference.parts(done, params, [score for _, score in run["q0"]])
    assert found["sets"]["jaccard_zero"] == pytest.approx((made.jaccard[0] == 0).mean(), abs=1e-4)
    assert found["sets"]["query"]["median"] == len(done.sets[0] - {0})
    known = (made.terms * made.weights[:, None]).sum(axis=0)
    one, other = (1 - params.lam) * made.jaccard.mean(axis=0).std(), params.lam * known.std()
    assert found["scale"]["jaccard_share"] == pytest.approx(one / (one + other), abs=2e-4)
    after = [before[i] for i in np.argsort(-made.scores, kind="stable")]
    moved = [abs(place - after.index(docid)) for place, docid in enumerate(before)]
    assert found["overlap"]["mean_displacement"] == pytest.approx(np.mean(moved), abs=0.05)
    assert found["overlap"]["rbo"]["mean"] == pytest.approx(rank_biased_overlap(before, after), abs=1e-3)
    assert found["overlap"]["top_10_changed"] == float(set(before[:10]) != set(after[:10]))
    assert found["graph"] is None


def measured(**changes: float) -> dict[str, Any]:
    """Measurements on which reranking likely helps, with changes."""
    values = {"cohesion": 0.4, "agreement": 0.45, "share": 0.3, "negative": 0.0, "rbo": 0.87, **changes}
    scale = {"jaccard_share": values["share"], "negative_weights": values["negative"], "query_spread": 0.3}
    return {
        "params": RnnParams().to_dict(),
        "sets": {"cohesion": values["cohesion"]},
        "scale": {**scale, "exp_safe": True, "largest_exponent": 2.4, "unit_norm": True},
        "order": {"agreement": values["agreement"], "only_order": None},
        "overlap": {"rbo": {"mean": values["rbo"]}},
        "terms": {name: {"weight": 0.15} for name in ("rank", "run", "query", "first")},
    }


@pytest.mark.parametrize(
    ("changes", "word", "reason"),
    [
        ({}, "likely helps", "rank differently (agreement 0.450, limit 0.636)"),
        ({"agreement": LIKELY + 0.0001}, "may help", "some gained and some did not"),
        ({"share": 0.51}, "risky", "51% of the score comes from neighbours"),
        ({"negative": 0.02}, "risky", "2.0% of the neighbours have negative weights"),
        ({"cohesion": 0.1}, "little effect", "form no groups"),
        ({"rbo": 0.99}, "little effect", "all but the same"),
    ],
)
def test_verdicts(changes: dict[str, float], word: str, reason: str) -> None:
    said = verdict(measured(**changes))
    assert (said["word"], said["scale"]) == (word, "minmax")
    assert reason in said["reasons"][0]
    assert said["reasons"][-1].startswith("scale minmax, as it is set")
    kept = [
        reason
        for reason in said["reasons"]
        if reason.endswith("its ranks and scores count, 30% of the weight is theirs")
    ]
    assert bool(kept) == word.endswith(("helps", "help"))


@pytest.mark.parametrize(
    ("params", "names"),
    [
        (RnnParams(), "rank run query jaccard first nearest"),
        (RnnParams(probes=3, lam=0.3, rank_weight=0), "run query jaccard first nearest"),
        (RnnParams.preset("tas-b"), "query jaccard"),
    ],
    ids=str,
)
def test_terms_sum_to_the_score_and_say_what_they_bring_into_the_first_ten(params: RnnParams, names: str) -> None:
    rng = np.random.default_rng(4)
    vectors, base = rng.normal(size=(31, 6)).astype(np.float32), np.sort(rng.random(30))[::-1]
    docids = np.array([f"d{number:02d}" for number in range(30)], dtype=object)
    expected = reference.parts(reference.steps(vectors, params), params, base)
    added, weights = terms(expected, params)
    assert list(added) == names.split()
    np.testing.assert_allclose(sum(added.values()), expected.scores, atol=1e-5)
    assert sum(weights.values()) == pytest.approx(1)
    found = effects(added, weights, docids)
    assert sum(term["spread"] or 0 for term in found.values()) == pytest.approx(1)
    best = set(np.argsort(-expected.scores)[:10])
    for name, amounts in added.items():
        assert found[name]["top_10"] == len(best - set(np.argsort(-(expected.scores - amounts))[:10]))
    alone = effects({"query": np.arange(30.0), "run": np.zeros(30)}, {"query": 0.5, "run": 0.5}, docids)
    assert (alone["query"]["agreement"], alone["run"]["spread"]) == (pytest.approx(1), 0)
    assert math.isnan(alone["run"]["agreement"])


def test_the_order_of_queries_does_not_choose_the_hub(tmp_path: Path) -> None:
    run, queries = collection(tmp_path)
    back = Run.from_dict(dict(reversed(run.to_dict().items())))
    found = [diagnosed(tmp_path, run=one, encoded_queries=queries, rerank="rnn") for one in (run.head(6), back.head(6))]
    assert found[0]["hubness"] == found[1]["hubness"]


def test_reciprocity_of_candidates_beside_that_of_the_collection(tmp_path: Path) -> None:
    """Against loops over the pairs of every context."""
    run, queries = collection(tmp_path, queries=3)
    source, params = open_vectors(tmp_path / "index"), RnnParams(k=5)
    (tmp_path / "queries.npy").unlink()
    graph = write_neighbours(tmp_path / "index", 8)
    edges, shares = [set(row) for row in graph.edges.tolist()], []
    for number, qid in enumerate(run):
        rows = graph.rows(run.ranked(qid)).tolist()
        lists = reference.steps(np.vstack([queries.vectors[number], source.fetch(np.array(rows))]), params).lists
        pairs = [(a, b) for a in rows for b in rows if a != b]
        listed = [
            (a, rows[j - 1]) for a, own in zip(rows, lists[1:], strict=True) for j in own if j and rows[j - 1] != a
        ]
        shares.append([np.mean([b in edges[a] or a in edges[b] for a, b in among]) for among in (pairs, listed)])
    found = diagnosed(tmp_path, run=run, encoded_queries=queries, rerank={"rnn": params.to_dict()})["graph"]
    expected = np.mean(shares, axis=0)
    assert [found[name] for name in ("pairs", "nearest")] == pytest.approx(expected, abs=1e-4)
    assert 0 < expected[0] < expected[1] < 1


def test_the_command_prints_and_writes_what_was_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    collection(tmp_path)
    index, queries, output = tmp_path / "index", tmp_path / "queries.npy", tmp_path / "d.json"
    flags = f"--run {tmp_path / 'run.txt'} --index {index} --encoded-queries {queries}".split()
    assert main([*flags, "--sample", "5", "--rerank", "rnn:k=5", "--lam", "0.3", "--output", str(output)]) == 0
    (record,) = read_records(output)
    found = record.outcome
    assert (record.kind, record.name, len(record.inputs["index"])) == ("diagnosis", "run", 16)
    assert found["queries"] == {"run": 12, "sampled": 5, "measured": 5}
    assert f"how grouped the candidates are\t{found['sets']['cohesion']:.3f}\t" in capsys.readouterr().out
    for more, said in (
        ("", "verdict: may help\n"),  # minmax is what was judged: nothing to advise
        ("--preset tas-b --lam 0.05", "verdict: risky; use --scale minmax\n"),
        ("--weight exp --weight-scale 1000", "verdict: risky\n- the exponential weight would overflow"),
    ):
        assert main([*flags, *more.split()]) == 0
        out = capsys.readouterr().out
        assert said in out
    assert "share of the score from neighbours\t-\t" in out  # what depends on scores is not measured
    topics = tmp_path / "topics.tsv"
    topics.write_text("other\ttext\n", encoding="utf-8")
    Run.from_dict({"q0": {"nowhere": 1.0, "d1": 0.5}}).write(tmp_path / "lost.txt")
    Run.from_dict({"q0": {"d1": 0.5}}).write(tmp_path / "short.txt")
    for argv, refused in (
        ([*flags, "--rerank", "rnn:k=5", "--k", "7"], r"^--rerank rnn:k=5 and --k: k twice; give it once"),
        ([*flags, "--rerank", "zhong"], r"^--rerank zhong: expected rnn, from vectors"),
        ([*flags, "--encoder", "minilm"], "give one of --encoder and --encoded-queries"),
        (flags[:4], r"^give --topics or --encoded-queries FILE.npy"),
        ([*flags[:4], "--topics", str(topics)], r"topics\.tsv: 12 of the 12 queries are not in"),
        (["--run", str(tmp_path / "lost.txt"), *flags[2:]], "1 of 2 docids in the run are not in the index"),
        (["--run", str(tmp_path / "short.txt"), *flags[2:]], "no query of the run has two candidates"),
    ):
        with refusal(refused):
            main(argv)
