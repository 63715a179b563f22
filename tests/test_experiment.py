"""`experiment`: its values are those of search, evaluate and scipy; its advice follows from what is told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from rnnreranker import Index, Run, build_index, evaluate_run, run_experiment
from rnnreranker.base.errors import DataWarning, InputError
from rnnreranker.evaluate.scores import Scores
from rnnreranker.experiment import System, advice, main, split_at

TOPICS = {f"q{number}": f"theme{number % 4} question" for number in range(24)}
SYSTEMS = "dense | dense > rnn:context=20 | tf-idf+dense by minmax > rnn | {run} > rnn:k=4"


class World:
    """Documents in four themes: the vector of a document and of a topic is that of its theme, and noise."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(7)
        themes = rng.normal(size=(4, 8)) * 1.2
        rows = [(f"d{n:02d}", f"theme{n % 4} document {n}", themes[n % 4] + rng.normal(size=8)) for n in range(60)]
        vectors = [(docid, text, vector.astype(np.float32)) for docid, text, vector in rows]
        self.index: Index = build_index(vectors, folder / "index", ("dense", "terms"))
        queries = themes[np.arange(24) % 4] + rng.normal(size=(24, 8)) * 1.5
        self.queries = folder / "queries.npy"
        np.save(self.queries, queries.astype(np.float32))
        (folder / "queries.ids").write_text("".join(f"{qid}\n" for qid in TOPICS))
        self.topics, self.judgements = folder / "topics.tsv", folder / "qrels.txt"
        self.topics.write_text("".join(f"{qid}\t{text}\n" for qid, text in TOPICS.items()))
        self.qrels = {qid: {f"d{n:02d}": int(n % 4 == q % 4) for n in range(55)} for q, qid in enumerate(TOPICS)}
        lines = [f"{qid} 0 {docid} {grade}\n" for qid, own in self.qrels.items() for docid, grade in own.items()]
        self.judgements.write_text("".join(lines))
        self.run = folder / "run.txt"
        Run.from_dict({qid: {f"d{n:02d}": float(-n) for n in range(30)} for qid in TOPICS}).write(self.run)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("experiment"))


def test_rows_are_those_of_search_evaluate_and_scipy(world: World) -> None:
    how: dict[str, Any] = {"encoded_queries": world.queries}
    with pytest.warns(DataWarning, match="(24 topics: fewer than 100|tells only its order)"):
        table = run_experiment(world.index, TOPICS, world.qrels, systems=SYSTEMS.format(run=world.run), **how)
    dense = world.index.search(TOPICS, "dense", None, **how)
    both = world.index.search(TOPICS, "tf-idf+dense", None, fuse="minmax", **how)
    read = Run.read(world.run)
    runs = {
        "dense": dense,
        "dense > rnn:context=20": world.index.rerank(dense, "rnn:context=20", TOPICS, **how),
        "tf-idf+dense by minmax": both,
        "tf-idf+dense by minmax > rnn": world.index.rerank(both, "rnn", TOPICS, **how),
        str(world.run): read,
        f"{world.run} > rnn:k=4": world.index.rerank(read, "rnn:k=4", TOPICS, **how),
    }
    assert table["system"].tolist() == list(runs)
    means = evaluate_run(runs, world.qrels, "nDCG@10 RR@10 AP Judged@10")
    np.testing.assert_allclose(table[means.columns].to_numpy(float), means.to_numpy())
    each = evaluate_run(runs, world.qrels, per_query=True).pivot(index="topic", columns="run", values="nDCG@10")
    pairs = list(zip(list(runs)[1::2], list(runs)[::2], strict=True))
    raw = np.array([ttest_rel(each[one], each[other]).pvalue for one, other in pairs])
    ordered = np.maximum.accumulate(np.sort(raw) * [3, 2, 1]).clip(max=1)  # Holm
    rows = table.set_index("system")
    for (one, other), p in zip(pairs, ordered[np.argsort(np.argsort(raw))], strict=True):
        gaps = each[one] - each[other]
        assert rows.loc[one, "difference"] == pytest.approx(gaps.mean())
        assert rows.loc[one, "low"] <= gaps.mean() <= rows.loc[one, "high"]
        assert rows.loc[one, "p_holm"] == pytest.approx(p)
        assert (rows.loc[one, "won"], rows.loc[one, "lost"]) == ((gaps > 1e-9).sum(), (gaps < -1e-9).sum())
        assert np.isnan(rows.loc[other, ["difference", "p_holm", "won"]].tolist()).all()
    assert rows.loc["dense > rnn:context=20", "settings"]["rerank"][0]["context"] == 20
    assert np.isnan(rows.loc[str(world.run), "ms"])
    assert (rows["ms"].drop(str(world.run)) > 0).all()


def test_the_command_runs_what_the_index_can_do(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--index", world.index.name, "--topics", str(world.topics), "--qrels", str(world.judgements)]
    written = tmp_path / "table.json"
    assert main([*flags, "--encoded-queries", str(world.queries), "--output", str(written)]) == 0
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
        ("dense by rrf", None, "dense by rrf: fuse=rrf: joins several retrievers"),
        ("dense", {"other": {"d01": 1}}, "qrels: judges none of the 24 topics"),
    ],
)
def test_mistakes_are_refused_before_any_work(world: World, systems: str, qrels: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        run_experiment(world.index, TOPICS, qrels or world.qrels, systems=systems, encoded_queries=world.queries)


def test_a_system_is_read_around_quotes() -> None:
    assert split_at("|", 'a > b:x="1|2" | c') == ['a > b:x="1|2"', "c"]
    form = 'bm25+dense by minmax:weights="0.3,0.7" > rnn > zhong'
    assert str(System.read(form)) == form


RNG = np.random.default_rng(1)
BASE = RNG.uniform(0.3, 0.6, 200)
NOISE = RNG.normal(0, 0.05, 200)


@pytest.mark.parametrize(
    ("gain", "second", "said"),
    [
        (0.05, 0.0, "take bm25+dense > rnn: nDCG@10 0"),
        (0.05, 0.05, "take bm25+dense > rnn > zhong: nDCG@10 0"),
        (0.0, 0.0, "leave it off: no reranked system is told apart from bm25+dense, nDCG@10 0"),
        (-0.05, 0.0, "leave it off: no reranked system is told apart from bm25+dense, nDCG@10 0"),
    ],
)
def test_the_advice_is_the_best_system_that_is_told_apart(gain: float, second: float, said: str) -> None:
    """A system that is told apart from its own first stage alone, a worse one, is not taken."""
    one = BASE + gain + NOISE - NOISE.mean()
    values = {
        "bm25": BASE - 0.2,
        "bm25 > rnn": BASE - 0.1,
        "bm25+dense": BASE,
        "bm25+dense > rnn": one,
        "bm25+dense > rnn > zhong": one + second + NOISE[::-1] - NOISE.mean(),
    }
    stacked = np.stack(list(values.values()))[:, :, None]
    topics = tuple(map(str, range(200)))
    zeros = np.zeros(len(values), dtype=np.int64)
    scores = Scores(tuple(values), topics, ("nDCG@10",), stacked, stacked.mean(1), stacked[:, :, 0], zeros, "trec")
    taken, sentence = advice(scores, [System.read(name) for name in values])
    assert sentence.startswith(said)
    assert f" {taken}" in sentence
