"""`experiment`: its values are those of search, evaluate and scipy; its advice follows from what is told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import write_judged
from refusals import refusal
from scipy.stats import ttest_rel

from rnnreranker import Index, Run, build_index, evaluate_run, run_experiment
from rnnreranker.base.errors import DataWarning
from rnnreranker.evaluate.scores import Scores
from rnnreranker.experiment import ExperimentRequest, System, advice, main, settings_of, split_at

TOPICS = {f"q{number}": f"theme{number % 4} question" for number in range(24)}
SYSTEMS = "dense | dense > rnn:context=20 | tf-idf+dense by minmax > rnn | {run} > rnn:k=4"


class World:
    """Documents in four themes: the vector of a document and of a topic is that of its theme, and noise."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(7)
        themes = rng.normal(size=(4, 8)) * 1.2
        vectors = (themes[np.arange(60) % 4] + rng.normal(size=(60, 8))).astype(np.float32)
        rows = [(f"d{n:02d}", f"theme{n % 4} document {n}", vector) for n, vector in enumerate(vectors)]
        self.index: Index = build_index(rows, folder / "index", ("dense", "terms"))
        queries = themes[np.arange(24) % 4] + rng.normal(size=(24, 8)) * 1.5
        self.queries, self.run = folder / "queries.npy", folder / "run.txt"
        np.save(self.queries, queries.astype(np.float32))
        self.qrels = {qid: {f"d{n:02d}": int(n % 4 == q % 4) for n in range(55)} for q, qid in enumerate(TOPICS)}
        Run.from_dict({qid: {f"d{n:02d}": float(-n) for n in range(30)} for qid in TOPICS}).write(self.run)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("experiment"))


def test_rows_are_those_of_search_evaluate_and_scipy(world: World) -> None:
    how: dict[str, Any] = {"encoded_queries": world.queries}
    with pytest.warns(DataWarning, match="(24 topics: fewer than 100|tells only its order)"):
        table = run_experiment(world.index, TOPICS, world.qrels, systems=SYSTEMS.format(run=world.run), **how)
    both = world.index.search(TOPICS, "tf-idf+dense", None, fuse="minmax", **how)
    firsts = {"dense": world.index.search(TOPICS, "dense", None, **how), "tf-idf+dense by minmax": both}
    firsts[str(world.run)] = Run.read(world.run)
    runs = {}
    for (name, run), reranker in zip(firsts.items(), ("rnn:context=20", "rnn", "rnn:k=4"), strict=True):
        runs |= {name: run, f"{name} > {reranker}": world.index.rerank(run, reranker, TOPICS, **how)}
    assert table["system"].tolist() == list(runs)
    means = evaluate_run(runs, world.qrels, "nDCG@10 RR@10 AP Judged@10")
    np.testing.assert_allclose(table[means.columns].to_numpy(float), means.to_numpy())
    each = evaluate_run(runs, world.qrels, per_query=True).pivot(index="topic", columns="run", values="nDCG@10")
    pairs = list(zip(list(runs)[1::2], list(runs)[::2], strict=True))
    raw = np.array([ttest_rel(each[one], each[other]).pvalue for one, other in pairs])
    ordered = np.maximum.accumulate(np.sort(raw) * [3, 2, 1]).clip(max=1)  # Holm
    rows = table.set_index("system")
    for (one, other), p in zip(pairs, ordered[np.argsort(np.argsort(raw))], strict=True):
        gaps, row = each[one] - each[other], rows.loc[one]
        assert [row["difference"], row["p_holm"]] == pytest.approx([gaps.mean(), p])
        assert row["low"] <= gaps.mean() <= row["high"]
        assert (row["won"], row["lost"]) == ((gaps > 1e-9).sum(), (gaps < -1e-9).sum())
        assert np.isnan(rows.loc[other, ["difference", "p_holm", "won"]].tolist()).all()
    assert rows.loc["dense > rnn:context=20", "settings"]["rerank"][0]["context"] == 20
    assert np.isnan(rows.loc[str(world.run), "ms"])
    assert (rows["ms"].drop(str(world.run)) > 0).all()


def test_the_command_runs_what_the_index_can_do(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = ((qid, docid, grade) for qid, own in world.qrels.items() for docid, grade in own.items())
    flags, written = write_judged(tmp_path, TOPICS, judged), tmp_path / "table.json"
    more = f"--index {world.index.name} --encoded-queries {world.queries} --output {written}"
    assert main([*flags, *more.split()]) == 0
    out, said = capsys.readouterr()
    header, *rows, empty, sentence = out.splitlines()
    firsts = ["bm25s", "dense", "bm25s+dense by minmax", "bm25s+dense by rrf"]
    assert [row.split("\t")[0] for row in rows] == [name for one in firsts for name in (one, f"{one} > rnn")]
    assert header.split("\t")[-2:] == ["Judged@10", "ms a query"]
    assert not empty
    assert "fewer than 100" in said
    kept = json.loads(written.read_text())
    assert sentence == kept["advice"]
    assert [row["system"] for row in kept["rows"]] == [row.split("\t")[0] for row in rows]


@pytest.mark.parametrize(
    ("systems", "qrels", "said"),
    [
        ("dens | dense > rn", None, "(?s)dens: no such retriever; did you mean dense.*rn: .*did you mean rnn"),
        ("dense > ", None, r"systems: 'dense >'; expected FIRST \[by FUSION\]"),
        ("auto > rnn", None, "auto > rnn: systems: auto depends on the index; name its retrievers"),
        ("dense > none > rnn", None, "rerank=none beside rnn; leave none out"),
        ("dense > none:k=4", None, "none: no such reranker"),
        ("dense by rrf", None, "dense by rrf: fuse=rrf: joins several retrievers"),
        ("{run} by rrf", None, "by rrf: fuse=rrf: joins several retrievers, not run"),
        ("dense", {"other": {"d01": 1}}, "qrels: judges none of the 24 topics"),
    ],
)
def test_mistakes_are_refused_before_any_work(world: World, systems: str, qrels: Any, said: str) -> None:
    systems = systems.format(run=world.run)
    with refusal(said):
        run_experiment(world.index, TOPICS, qrels or world.qrels, systems=systems, encoded_queries=world.queries)


def test_a_system_is_read_around_quotes() -> None:
    assert split_at("|", 'a > b:x="1|2" | c') == ['a > b:x="1|2"', "c"]
    form = 'bm25+dense by minmax:weights="0.3,0.7" > rnn > zhong'
    assert str(System.read(form)) == form
    assert System.read("bm25 > none") == System("bm25")  # no reranked system, in no family of tests


@pytest.mark.parametrize(
    ("gain", "second", "said"),
    [
        (0.05, 0.0, "take bm25+dense > rnn: nDCG@10 0"),
        (0.05, 0.05, "take bm25+dense > rnn > zhong: nDCG@10 0"),
        (0.0, 0.0, "leave it off: no reranked system is shown to be better than bm25+dense, nDCG@10 0"),
        (-0.05, 0.0, "leave it off: no reranked system is shown to be better than bm25+dense, nDCG@10 0"),
    ],
)
def test_the_advice_is_the_best_system_that_is_told_apart(gain: float, second: float, said: str) -> None:
    """A system that is told apart from its own first stage alone, a worse one, is not taken."""
    rng = np.random.default_rng(1)
    base, noise = rng.uniform(0.3, 0.6, 200), rng.normal(0, 0.05, 200)
    noise -= noise.mean()
    values = {"bm25": base - 0.2, "bm25 > rnn": base - 0.1, "bm25+dense": base}
    values |= {"bm25+dense > rnn": base + gain + noise}
    values |= {"bm25+dense > rnn > zhong": base + gain + noise + second + noise[::-1]}
    stacked, topics = np.stack(list(values.values()))[:, :, None], tuple(map(str, range(200)))
    zeros = np.zeros(len(values), dtype=np.int64)
    scores = Scores(tuple(values), topics, ("nDCG@10",), stacked, stacked.mean(1), stacked[:, :, 0], zeros, "trec")
    taken, sentence = advice(scores, [System.read(name) for name in values])
    assert sentence.startswith(said)
    assert f" {taken}" in sentence


@pytest.mark.filterwarnings("ignore::rnnreranker.base.errors.DataWarning")
def test_a_row_is_as_of_search_whatever_the_others_are_and_protocols_see_all_judgements(world: World) -> None:
    how: dict[str, Any] = {"encoded_queries": world.queries, "hits": 5}
    judged = {qid: {**own, "d00": 2} for qid, own in world.qrels.items()} | {"q99": {"d00": 2}}
    first, contexts = "tf-idf+dense by minmax", ("rnn:context=40", "mmr:context=50")
    systems = [first, *(f"{first} > {rerank}" for rerank in contexts)]
    with pytest.warns(DataWarning, match="mmr:context=50: the fusion is deeper than .*; give hits=50"):
        table = run_experiment(world.index, TOPICS, judged, systems=systems, measures="R@5", protocol="dl", **how)
    runs = [world.index.search(TOPICS, "tf-idf+dense", one, fuse="minmax", **how) for one in (None, *contexts)]
    judged.pop("q99")
    assert table["R@5"].tolist() == [evaluate_run(run, judged, "R@5", protocol="dl")["R@5"].item() for run in runs]
    request = ExperimentRequest(world.index, TOPICS, world.qrels)
    ways = [System.read(f"dense > rnn:from=neighbours,queries={of}") for of in ("none", "run")]
    assert [settings_of(request, way)["rerank"][0]["queries"] for way in ways] == ["none", "run"]


def test_means_of_counts_shares_named_twice_and_short_runs(world: World) -> None:
    how: dict[str, Any] = {"encoded_queries": world.queries, "systems": "dense > rnn"}
    with pytest.warns(DataWarning, match="R@5, nDCG@10: computed on the first 3 documents"):
        table = run_experiment(world.index, TOPICS, world.qrels, measures="NumRet Judged@10 R@5 nDCG@10", hits=3, **how)
    assert table["NumRet"].tolist() == [3, 3]
    assert table["difference"].tolist()[1] == 0
    assert table.columns.tolist().count("Judged@10") == 1


def test_a_file_does_not_replace_the_retriever_of_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("dense", "run.txt"):
        Path(name).write_text("")
    assert [System(name).of_run for name in ("dense", "run.txt")] == [False, True]
