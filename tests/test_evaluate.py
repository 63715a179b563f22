"""Measures, protocols and values per topic, against values worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import ir_measures
import numpy as np
import pandas
import pytest
from refusals import refusal

from rnnreranker.base.errors import InputError
from rnnreranker.data.qrels import load_qrels, named_protocol
from rnnreranker.evaluate import evaluate
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.runs import Run
from rnnreranker.runs.head import with_new_head


def judged(*rows: tuple[str, str, int]) -> pandas.DataFrame:
    return pandas.DataFrame(list(rows), columns=["query_id", "doc_id", "relevance"])


GRADED = judged(("q1", "a", 3), ("q1", "b", 1), ("q1", "c", 0), ("q1", "d", 2), ("q2", "a", 2), ("q3", "b", 1))
RUN = Run.from_dict({"q1": {"b": 9.0, "c": 8.0, "a": 7.0, "x": 6.0}, "q2": {"x": 2.0, "a": 1.0}, "q3": {"b": 1.0}})


def test_all_wrong_names_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_measures("ndcg@5 RR@10 Sucess@5 P R@x nDCG@0 P(rell=1)@3 alpha_nDCG@10")
    message = str(caught.value)
    assert "ndcg@5: no such measure; did you mean nDCG" in message
    assert "Sucess@5: no such measure; did you mean Success" in message
    assert "P: the cutoff is missing, as in @10" in message
    assert "R@x: not written like a measure" in message
    assert "nDCG@0: the cutoff is at least 1" in message
    assert "P(rell=1)@3: unsupported params found: ['rell']" in message
    assert "; RR@10" not in message
    for nothing in ("", " , ", []):
        with refusal("none given"):
            parse_measures(nothing)


# q1 is ranked b (1), c (0), a (3), x; the grades of q1 are 3, 2, 1, 0.
DISCOUNT = [1 / math.log2(rank + 1) for rank in range(1, 5)]
BEST = 3 * DISCOUNT[0] + 2 * DISCOUNT[1]
NAMES = ("nDCG@3", "RR@10", "P@2", "R@3", "P(rel=1)@2", "Judged@4", "NumRelRet")
Q1 = {
    "dl": ((DISCOUNT[0] + 3 * DISCOUNT[2]) / (BEST + DISCOUNT[2]), 1 / 3, 0, 1 / 2, 1 / 2, 3 / 4, 1),
    "strict": (3 * DISCOUNT[2] / BEST, 1 / 3, 0, 1 / 2, 0, 3 / 4, 1),
    "trec": ((DISCOUNT[0] + 3 * DISCOUNT[2]) / (BEST + DISCOUNT[2]), 1, 1 / 2, 2 / 3, 1 / 2, 3 / 4, 2),
    "binary": ((DISCOUNT[0] + DISCOUNT[2]) / sum(DISCOUNT[:3]), 1, 1 / 2, 2 / 3, 1 / 2, 3 / 4, 2),
}


@pytest.mark.parametrize("protocol", Q1)
def test_protocols(protocol: str) -> None:
    scores = evaluate(RUN, GRADED, NAMES, protocol)
    assert scores.topics == ("q1", "q2", "q3")
    assert scores.protocol == protocol
    assert scores.measures == NAMES  # as typed
    assert scores.values[0, 0].tolist() == pytest.approx(Q1[protocol])
    # q2: x (not judged), a (grade 2); q3 has nothing above grade 1: it counts, with 0 where that is not relevant
    assert scores.per_topic("RR@10")[1:].tolist() == [0.5, 1.0 if protocol in ("trec", "binary") else 0.0]
    assert scores.mean("RR@10") == pytest.approx(scores.per_topic("RR@10").mean())


def test_a_topic_without_a_strict_relevant_document_scores_nothing_or_is_dropped() -> None:
    """000 A.2 and 001 3.2 have the strict reading as "official"; q3 has nothing above grade 1."""
    whole, dropped = (evaluate(RUN, GRADED, "RR nDCG@10", protocol) for protocol in ("strict", "strict-dropped"))
    assert whole.per_topic("RR").tolist() == pytest.approx([1 / 3, 1 / 2, 0.0])
    assert dropped.topics == ("q1", "q2")
    assert dropped.values[0].tolist() == whole.values[0, :2].tolist()
    assert evaluate(RUN, GRADED, "RR", "strict-dropped", topics=["q3", "q1"]).topics == ("q1",)
    for protocol in ("strict", "strict-dropped", "dl"):
        with refusal(f"protocol {protocol} counts grades from 2 on, the highest here is 1"):
            evaluate(RUN, judged(("q1", "a", 1)), protocol=protocol)


MEASURES = "nDCG@10 nDCG RR RR@10 AP AP@10 P@5 R@20 Success@1 Rprec Bpref NumRelRet P(rel=2)@5 Judged@10 SetF"


def generated(topics: int, grades: int) -> tuple[dict[str, dict[str, float]], pandas.DataFrame]:
    """Entries of a run with distinct scores, and judgements below `grades`."""
    rng = np.random.default_rng(topics + grades)
    names = [f"d{number}" for number in range(60)]
    entries = {}
    for topic in range(topics):
        scores = rng.normal(size=50)
        entries[f"q{topic}"] = dict(zip(rng.permutation(names)[:50].tolist(), scores.tolist(), strict=True))
    rows = [
        (topic, str(docid), int(rng.integers(grades))) for topic in entries for docid in rng.permutation(names)[:20]
    ]
    return entries, judged(*rows)


@pytest.mark.parametrize("grades", [2, 3, 4])
def test_the_default_is_what_ir_measures_gives(grades: int) -> None:
    entries, qrels = generated(20, grades)
    scores = evaluate(Run.from_dict(entries), qrels, MEASURES)
    assert scores.protocol == "trec"
    measures = parse_measures(MEASURES)
    for found in ir_measures.iter_calc(measures, qrels, entries):
        ours = scores.values[0, scores.topics.index(found.query_id), measures.index(found.measure)]
        assert ours == pytest.approx(found.value), found


def test_a_name_of_trec_dl_has_its_own_protocol(tmp_path: Path) -> None:
    names = {"dl19": "dl", "msmarco-document/trec-dl-2020/judged": "dl", "dl21-passage": "dl", "dl19.txt": "trec"}
    names |= {"msmarco-v2-dev1": "trec", "msmarco-passage/dev/small": "trec", "beir/scifact/test": "trec"}
    assert {name: named_protocol(name) for name in names} == names
    (tmp_path / "qrels.txt").write_text("q1 0 a 2\nq1 0 b 1\n")
    qrels = load_qrels(tmp_path / "qrels.txt")
    assert (qrels.attrs["protocol"], evaluate(RUN, qrels).protocol) == ("trec", "trec")
    qrels.attrs["protocol"] = "dl"
    for given, topics, first in ((None, None, 1 / 3), (None, ["q1"], 1 / 3), ("trec", None, 1.0)):
        assert evaluate(RUN, qrels, "RR@10", given, topics=topics).mean("RR@10") == pytest.approx(first)


def test_missing_topics_score_nothing_and_common_topics_leave_them_out() -> None:
    part = Run.from_dict({"q1": {"a": 1.0}, "q2": {}, "unjudged": {"a": 1.0}})
    scores = evaluate({"whole": RUN, "part": part}, GRADED, "RR@10")
    assert scores.per_topic("RR@10", "part").tolist() == [1.0, 0.0, 0.0]
    assert scores.missing.tolist() == [0, 2]
    assert scores.mean("RR@10", "part") == pytest.approx(1 / 3)
    common = evaluate({"whole": RUN, "part": part}, GRADED, "RR@10", "dl", common_topics=True)
    assert common.topics == ("q1",)
    assert common.means.ravel().tolist() == pytest.approx([1 / 3, 1.0])
    with refusal("no judged topic has entries in all 2 runs"):
        evaluate({"one": RUN.of_queries([0]), "other": RUN.of_queries([1])}, GRADED, common_topics=True)


def test_a_run_in_memory_is_measured_in_the_order_of_the_file_that_it_writes(tmp_path: Path) -> None:
    run = Run.from_dict({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}})
    tied = with_new_head(run, np.ones(3, dtype=bool), np.ones(3))
    tied.write(tmp_path / "run.txt")
    qrels = judged(("q1", "a", 1))
    for one in (tied, Run.read(tmp_path / "run.txt")):
        assert evaluate(one, qrels, "RR").means.tolist() == [[1.0]]


def test_every_measure_sees_ties_as_trec_eval_sorts_them() -> None:
    """By float32 score, then docid descending; expected: pytrec_eval, and ir-measures with scores of that order."""
    import pytrec_eval

    entries = {"q1": {"a": 5.0, "m": 5.0 + 1e-9, "z": 5.0, "Z": 9.0, "é": 5.0}, "q2": {"a": 1.0, "z": 0.5}}
    order = {"q1": ["Z", "é", "z", "m", "a"], "q2": ["a", "z"]}  # `m` is above `z` in float64 alone
    run, qrels = Run.from_dict(entries), judged(("q1", "z", 1), ("q1", "m", 1), ("q1", "b", 1), ("q2", "z", 1))
    found = evaluate(run, qrels, "RR nDCG@10 AP P@2 RR@10 Judged@2 ERR@3")
    keys = {"RR": "recip_rank", "nDCG@10": "ndcg_cut_10", "AP": "map", "P@2": "P_2", "RR@10": "recip_rank"}
    of_qrels = {qid: dict.fromkeys(rows["doc_id"], 1) for qid, rows in qrels.groupby("query_id")}
    theirs = pytrec_eval.RelevanceEvaluator(of_qrels, set(keys.values())).evaluate(entries)
    for name, key in keys.items():
        assert found.per_topic(name).tolist() == pytest.approx([theirs[topic][key] for topic in found.topics]), name
    numbers = {"q1": "1", "q2": "2"}  # gdeval knows no other ids
    ranked = {numbers[qid]: {docid: -rank for rank, docid in enumerate(docids)} for qid, docids in order.items()}
    others = {numbers[qid]: grades for qid, grades in of_qrels.items()}
    for one in ir_measures.iter_calc([ir_measures.ERR @ 3, ir_measures.Judged @ 2], others, ranked):
        assert found.per_topic(str(one.measure))[int(one.query_id) - 1] == pytest.approx(one.value), one
    assert found.per_topic("ERR@3").tolist() == pytest.approx([1 / 16 / 3, 1 / 16 / 2], abs=1e-5)


def test_nothing_depends_on_the_order_of_queries_or_on_how_many_are_measured_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    found = {f"q{q}": {f"d{d}": float(rng.normal()) for d in range(30)} for q in range(20)}
    qrels = judged(*((f"q{q}", f"d{d}", int(rng.integers(4))) for q in range(20) for d in range(0, 30, 2)))
    names = "nDCG@10 RR AP P@5 R@20 Judged@7 Rprec NumRel"
    expected = evaluate(Run.from_dict(found), qrels, names)
    monkeypatch.setattr("rnnreranker.evaluate.scores.TOPICS", 3)
    got = evaluate(Run.from_dict(dict(reversed(found.items()))), qrels, names)
    assert np.array_equal(got.values, expected.values)
    assert got.mean("NumRel") == (qrels["relevance"] >= 1).sum()  # counts are summed


def test_what_cannot_be_evaluated() -> None:
    strange = Run.from_dict({"77": {"a": 1.0}})
    with refusal(r"run run: none of its 1 queries is judged \(its ids: 77; judged: q1, q2, q3\)"):
        evaluate(strange, GRADED)
    with refusal("protocol 'trek'; did you mean trec"):
        evaluate(RUN, GRADED, protocol="trek")
    with refusal(r"P\(rel=2\)@5: protocol binary has grades 0 and 1 only"):
        evaluate(RUN, GRADED, "P(rel=2)@5", protocol="binary")
    with refusal("no runs"):
        evaluate({}, GRADED)
    with refusal(r"ERR@10: gdeval knows grades up to 4, the highest here is 5"):
        evaluate(RUN, judged(("q1", "a", 5)), "nDCG@10 ERR@10")


PUBLISHED = {
    ("19", "strict"): [0.875, 0.659, 0.222, 0.259],
    ("20", "strict"): [0.832, 0.620, 0.302, 0.363],
    ("19", "dl"): [0.875, 0.721, 0.222, 0.259],
    ("20", "dl"): [0.832, 0.685, 0.302, 0.363],
    ("19", "trec"): [0.951, 0.721, None, None],
    ("20", "trec"): [0.921, 0.685, None, None],
}


@pytest.mark.parametrize(("year", "protocol"), PUBLISHED)
def test_published_figures_of_tas_b(shared: Path, year: str, protocol: str) -> None:
    run = Run.read(shared / f"data/runs/dl{year}/rankllm.D_BERT_KD_TASB.trec.gz")
    qrels = load_qrels(shared / f"data/ir_datasets/msmarco-passage/trec-dl-20{year}/qrels")
    scores = evaluate(run, qrels, "RR@10 nDCG@10 AP@10 R@10", protocol)
    for found, expected in zip(scores.means[0], PUBLISHED[year, protocol], strict=True):
        assert expected is None or round(float(found), 3) == expected
    assert len(scores.topics) == {"19": 43, "20": 54}[year]


def by_ascending_docid(run: Run) -> dict[str, dict[str, float]]:
    """Negative ranks as scores, ties by ascending docid."""
    ranked = {qid: sorted(of, key=lambda docid: (-of[docid], docid)) for qid, of in run.to_dict().items()}
    return {qid: {docid: -float(rank) for rank, docid in enumerate(docids)} for qid, docids in ranked.items()}


def test_every_published_value(shared: Path) -> None:
    folders = {"dl19": "msmarco-passage/trec-dl-2019", "dl20": "msmarco-passage/trec-dl-2020"}
    folders["dl21"] = "msmarco-passage-v2/trec-dl-2021"
    qrels = {track: load_qrels(shared / f"data/ir_datasets/{folder}/qrels") for track, folder in folders.items()}
    lines = (shared / "data/runs/PUBLISHED.tsv").read_text().splitlines()[1:]
    asked: dict[tuple[str, str], dict[str, float]] = {}
    for track, name, measure, _, value in (line.split("\t") for line in lines):
        asked.setdefault((track, name), {})[measure] = float(value)
    files = {pair: shared / f"data/runs/{pair[0]}/{pair[1]}.trec.gz" for pair in asked}
    there = {pair: asked[pair] for pair, path in files.items() if path.is_file()}
    assert len(there) > 15
    for (track, name), expected in there.items():
        run = Run.read(files[track, name])
        scores = evaluate(run, qrels[track], list(expected))
        for measure, value in expected.items():
            found = scores.mean(measure)
            if measure == "RR@10":  # of ir-measures, which takes ties by ascending docid in this measure alone
                found = evaluate(Run.from_dict(by_ascending_docid(run)), qrels[track], measure).mean(measure)
            assert found == pytest.approx(value, abs=1e-6), (track, name, measure)
