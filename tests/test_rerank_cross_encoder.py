"""Reranking by cross-encoders, one and several: the command, kept scores, a kill in the middle, bad input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker import Run
from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.encode.kinds import PairScorer
from rnnreranker.encode.params import CrossEncoderParams
from rnnreranker.search.__main__ import main
from tests.query_sets import files_of, write_texts
from tests.tiny_encoder import make_cross_encoder, make_index, make_run, make_source, make_texts, make_topics

pytest.importorskip("sentence_transformers")

STALLED = """
import sys, time
from pathlib import Path
from rnnreranker.encode.kinds import PairScorer
from rnnreranker.search.__main__ import main

score, calls = PairScorer.score, []

def stall(self, *args, **kwargs):
    calls.append(1)
    if len(calls) == 10:  # nine queries are finished
        Path(sys.argv[-1]).touch()
        time.sleep(600)
    return score(self, *args, **kwargs)

PairScorer.score = stall
raise SystemExit(main(sys.argv[1:-1]))
"""


@pytest.fixture(scope="module")
def world(module_path: Path) -> Path:
    """An index with texts, topics, a run of 12 candidates for each of 24 queries, and two cross-encoders."""
    make_index(module_path / "index")
    write_texts(module_path / "topics.tsv", make_topics())
    make_run().write(module_path / "run.txt")
    make_cross_encoder(module_path / "one")
    make_cross_encoder(module_path / "two", seed=1)
    return module_path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of pairs of every call of a model."""
    seen: list[int] = []
    score = PairScorer.score

    def counted(self: PairScorer, pairs, **options):  # type: ignore[no-untyped-def]
        seen.append(len(pairs))
        return score(self, pairs, **options)

    monkeypatch.setattr(PairScorer, "score", counted)
    return seen


def flags(world: Path, output: Path, *more: str) -> list[str]:
    words = f"--index {world}/index --topics {world}/topics.tsv --run {world}/run.txt --output {output}"
    return [*words.split(), *(more or ("--rerank", f"cross-encoder:model={world}/one"))]


def expected(world: Path, model: str) -> dict[str, dict[str, float]]:
    """What the model says of every pair of the run by itself."""
    scorer, run, topics, texts = PairScorer.load(str(world / model)), make_run(), make_topics(), make_texts()
    return {
        qid: {docid: float(scorer.score([(topics[qid], texts[docid])]).scores[0]) for docid, _ in run[qid]}
        for qid in run
    }


@pytest.mark.long
def test_the_command_orders_by_the_model(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], calls: list[int]
) -> None:
    assert main(flags(world, tmp_path / "out.txt")) == 0
    said = capsys.readouterr().err
    assert calls[-24:] == [12] * 24  # those before make the graph
    scores = expected(world, "one")
    topics, texts = make_topics(), make_texts()
    cut = sum(len(f"{topics[qid]} {texts[docid]}".split()) + 3 > 64 for qid in scores for docid in scores[qid])
    assert cut > 10
    assert f"cross-encoder: {cut} of 288 pairs had more than 64 tokens and were cut" in said
    found = Run.read(tmp_path / "out.txt")
    for qid in found:
        assert found.ranked(qid) == sorted(scores[qid], key=lambda docid: -scores[qid][docid])
        assert dict(found[qid]) == pytest.approx(scores[qid], abs=1e-5)
    calls.clear()
    assert main(flags(world, tmp_path / "again.txt")) == 0  # from what is kept
    assert calls == []
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "out.txt").read_bytes()
    assert f"{cut} of 288 pairs" in capsys.readouterr().err
    assert main([*flags(world, tmp_path / "few.txt"), "--context", "3", "--threads", "3"]) == 0
    assert calls == [3] * 24
    few, run = Run.read(tmp_path / "few.txt"), make_run()
    assert {qid: few.ranked(qid)[3:] for qid in few} == {qid: run.ranked(qid)[3:] for qid in run}


def test_texts_may_come_from_elsewhere(world: Path, tmp_path: Path) -> None:
    assert main(flags(world, tmp_path / "index.txt")) == 0
    documents, bare = write_texts(tmp_path / "docs.tsv", make_texts()), tmp_path / "bare"
    make_source(bare)
    words = flags(world, tmp_path / "file.txt")
    words[words.index("--index") + 1] = str(bare)
    with refusal("bare: no texts in this index; give --documents, what it was made from"):
        main(words)
    assert main([*words, "--documents", str(documents)]) == 0
    assert (tmp_path / "file.txt").read_bytes() == (tmp_path / "index.txt").read_bytes()
    with refusal("--documents gives texts to rerankers that read them, as cross-encoder"):
        main([*flags(world, tmp_path / "rnn.txt", "--rerank", "rnn"), "--documents", str(documents)])


def test_from_python_the_order_of_the_run_changes_nothing(world: Path, calls: list[int], home: Path) -> None:
    inputs = Inputs(topics=make_topics(), texts=make_texts())
    params = make_params("reranker", "cross-encoder", {"model": f"{world}/one", "max_length": 32})
    run = make_run()
    found = find("reranker", "cross-encoder")(inputs, params, threads=1).rerank(run)
    backwards = Run.from_dict({qid: {docid: -score for docid, score in run[qid]} for qid in reversed(run.qids)})
    calls.clear()
    again = find("reranker", "cross-encoder")(inputs, params, threads=4).rerank(backwards)
    assert calls == []
    assert {qid: again[qid] for qid in run} == {qid: found[qid] for qid in run}
    for path in home.rglob("pairs/**/*.npz"):  # damaged files are no scores
        path.write_bytes(path.read_bytes()[:-7])
    computed = find("reranker", "cross-encoder")(inputs, params, threads=4).rerank(backwards)
    assert len(calls) == 24
    assert {qid: computed[qid] for qid in run} == {qid: found[qid] for qid in run}
    scorer = PairScorer.load(f"{world}/one", **CrossEncoderParams(max_length=32).to_dict())
    docid, score = found["q0"][0]
    assert score == pytest.approx(scorer.score([(inputs.topics["q0"], inputs.texts[docid])]).scores[0], abs=1e-6)


@pytest.mark.long
def test_a_kill_in_the_middle_changes_no_byte(world: Path, tmp_path: Path, home: Path) -> None:
    output, stalled = tmp_path / "out.txt", tmp_path / "stalled"
    PairScorer.open(f"{world}/one")  # whose graph takes seconds to make
    process = subprocess.Popen([sys.executable, "-c", STALLED, *flags(world, output), str(stalled)], env=os.environ)
    for _ in range(600):
        if stalled.exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert stalled.exists()
    assert not output.exists()
    kept = files_of(home / "pairs")
    assert len(kept) == 9
    assert main(flags(world, output)) == 0
    resumed = files_of(home / "pairs")
    assert len(resumed) == 24
    assert {name: resumed[name] for name in kept} == kept
    for path in (home / "pairs").rglob("*.npz"):
        path.unlink()
    assert main(flags(world, tmp_path / "whole.txt")) == 0
    assert output.read_bytes() == (tmp_path / "whole.txt").read_bytes()
    assert files_of(home / "pairs") == resumed


def test_bad_input_is_refused_before_work(world: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    for more, match in (
        (["--rerank", "cross-encoder"], "cross-encoder: which"),
        (["--rerank", f'ensemble:models="{world}/one,{world}/one"'], "two or more different"),
        (["--rerank", f"cross-encoder:model={world}/index"], "no model in this folder"),
        (
            ["--rerank", f"cross-encoder:model={world}/one,max_length=65"],
            "max_length=65: .* takes at most 64 tokens",
        ),
    ):
        with refusal(match):
            main(flags(world, output, *more))
    assert not output.exists()
