"""Studies: tasks that never test what they trained on, comparisons by hand, and a whole study of a tiny encoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from query_sets import write_index, write_judged
from refusals import refusal
from tiny_encoder import make_encoder

from rnnreranker import open_index
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.record import read_records, rounded
from rnnreranker.base.settings import Written
from rnnreranker.data.qrels import load_qrels
from rnnreranker.lab.study.request import Arm, StudyRequest
from rnnreranker.lab.study.studying import conclusion, per_query, study, study_rows, with_chosen, with_rates
from rnnreranker.lab.study.tasks import Task, tasks_of
from rnnreranker.lab.study.trial import Studied
from rnnreranker.study import main

TOPICS = {f"q{number}": f"text {number}" for number in range(11)}
QRELS = pandas.DataFrame(
    [(f"q{number}", f"d{number + step}", 2 - step) for number in range(10) for step in range(3)] + [("q10", "d0", 0)],
    columns=["query_id", "doc_id", "relevance"],
)


def fold_tasks(folds: int, seeds: int, share: float = 0.25) -> list[Task]:
    model = {"query": {"validation_share": share}}
    return tasks_of(StudyRequest("i", TOPICS, QRELS, folds=folds, seeds=seeds, model=model), TOPICS, QRELS)[0]


def test_folds_test_every_query_once_and_never_train_on_it() -> None:
    several = fold_tasks(3, 2)
    tasks, others = several[:3], several[3:]
    assert sorted(qid for task in tasks for qid in task.test) == sorted(set(TOPICS) - {"q10"})
    for task in tasks:
        trained, test = set(task.part(validation=False)["query_id"]), set(task.test)
        assert set(task.part(validation=True)["query_id"]) == task.validation
        assert len(trained | task.validation | test) == len(trained) + 2 + len(test) == 10
        assert task.positives["query_id"].is_unique
    assert [task.test for task in others] == [task.test for task in tasks]
    assert any(not a.positives.equals(b.positives) for a, b in zip(tasks, others, strict=True))
    every = StudyRequest("i", TOPICS, QRELS, folds=3, seeds=1, all_positives=True)
    assert tasks_of(every, TOPICS, QRELS)[0][0].positives["query_id"].value_counts().unique().tolist() == [2]
    with refusal("folds=11: expected at least 2, and at most one per query"):
        fold_tasks(11, 1)


def arms_of(*arms: Any, **others: Any) -> list[Arm]:
    return StudyRequest("i", "t", "q", arms=arms, **others).chosen


def test_an_arm_is_the_model_with_what_it_has_otherwise() -> None:
    arms: list[Any] = ["hard", {"soft": {"labels": {"evidence": {"k": 5, "boost": 1.5}}, "epochs": 2}}]
    arms += ["few:candidates=9,loss=margin:margin=2", "joint:labels=joint:mass=share,against=hard|soft"]
    hard, soft, few, joint = arms_of(*arms, model="query:learning_rate=1e-3", context=8)
    assert (hard.hard, hard.params.learning_rate, hard.params.candidates, hard.against) == (True, 1e-3, 100, ("base",))
    assert (soft.labels.params.k, soft.labels.params.context, soft.labels.label_params.boost) == (5, 8, 1.5)
    assert (soft.params.epochs, soft.mass, joint.mass) == (2, None, "share")
    assert (few.params.candidates, few.params.ranking.params.margin) == (9, 2)
    assert joint.against == ("base", "hard", "soft")
    task = fold_tasks(3, 6)[15]
    assert hard.params_of(task) == replace(hard.params, seed=5)
    assert replace(hard, rates={task.name: 1e-2}).params_of(task).learning_rate == 1e-2
    taught = {"plain": {"loss": "info-nce"}, "taught": {"labels": "arm:name=plain", "label_scale": "cosine"}}
    how: dict[str, Any] = {"model": "dual:depth=50", "encoder": "minilm", "loss": "distance:alpha=0.8"}
    plain, own = StudyRequest("i", "t", "q", arms=taught, against="plain", **how).chosen
    assert [arm.params.loss.partition(":")[0] for arm in (plain, own)] == ["info-nce", "distance"]
    assert (own.params.ranking.params.alpha, own.params.label_scale, own.labels.params.context) == (0.8, "cosine", 51)
    assert (own.refers, own.against) == (["plain"], ("base", "plain"))
    for wrong, said in (
        ("mass=shar", "mass='shar': expected one of own, evidence, share"),
        ("label_preset=coder-tas-b", "label_preset: a study takes none"),
    ):
        with refusal(said):
            arms_of(f"a:labels=joint:{wrong}")


def test_dual_encoders_may_have_lengths_of_their_own() -> None:
    [arm] = arms_of("F-EBR:start=none,towers=separate,max_length=32", model="dual", encoder="minilm")
    assert arm.params.max_length == 32


def test_the_learning_rate_of_a_fold_is_chosen_without_the_queries_it_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """000, 5.2 tunes on "HEAD Val" and tests on "HEAD Test": no query that chooses a rate is tested with it."""
    tasks = fold_tasks(3, 2, 0.5)
    best = {task.name: rate for task, rate in zip(tasks, (1e-4, 1e-2, 1e-3), strict=False)}
    studied = Studied.__new__(Studied)  # its trainings validate by their learning rate: 1 for the best of their task
    studied.request = StudyRequest("i", "t", "q", arms=["hard", "few:candidates=9,rates=hard"])
    studied.work, studied.arms = tmp_path, {arm.name: arm for arm in studied.request.chosen}

    def rated(self: Studied, task: Task, arm: Arm) -> dict[str, Any]:
        value = float(arm.params_of(task).learning_rate == best[task.name])
        return {"task": task.name, "arm": arm.name, "validation": {"nDCG@10": value}}

    monkeypatch.setattr(Studied, "record", rated)
    chosen = with_rates(studied, tasks, [1e-2, 1e-3, 1e-4])
    assert [arm.rates for arm in studied.arms.values()] == [best, best]
    assert {name: entry["rate"] for name, entry in chosen.pop("hard").items()} == best
    assert chosen == {}
    assert all(task.validation.isdisjoint(task.test) for task in tasks)


def test_rates_are_chosen_after_those_of_the_arms_that_a_trial_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, seen = fold_tasks(3, 1), set[float]()
    studied = Studied.__new__(Studied)
    arms = ["chain:rates=few", "few:rates=first", "first", "next:negatives=first"]
    studied.request = StudyRequest("i", "t", "q", arms=arms)
    studied.work, studied.arms = tmp_path, {arm.name: arm for arm in studied.request.chosen}

    def rated(self: Studied, task: Task, arm: Arm) -> dict[str, Any]:
        seen.update(self.arms[name].params_of(task).learning_rate for name in arm.refers)
        return {"task": task.name, "arm": arm.name, "validation": {"nDCG@10": arm.params_of(task).learning_rate}}

    monkeypatch.setattr(Studied, "record", rated)
    assert list(with_rates(studied, tasks, [1e-2, 1e-4])) == ["first", "next"]
    assert seen == {1e-2}  # and not the default
    assert [set(arm.rates.values()) for arm in studied.arms.values()] == [{1e-2}] * len(arms)


def test_a_trial_is_taken_again_after_a_model_that_it_reads_has_changed(tmp_path: Path) -> None:
    model, [task, *_] = tmp_path / "model", fold_tasks(3, 1)
    model.mkdir()
    labels = str(Written("cross-encoders", {"models": f"other,{model}"}))
    arms = [{"alone": {}}, {"begins": {"start": f"{model}:pooling=mean"}}, {"taught": {"labels": labels}}]
    studied = Studied.__new__(Studied)
    studied.arms, studied.identity = {arm.name: arm for arm in arms_of(*arms)}, ""
    prints = []
    for text in ("{}", "{ }"):
        (model / "config.json").write_text(text)
        prints.append([fingerprint(studied.described(task, arm)) for arm in studied.arms.values()])
    assert [before == after for before, after in zip(*prints, strict=True)] == [True, False, False]


def record(arm: str, seed: int, values: dict[str, float], **others: Any) -> dict[str, Any]:
    return {"arm": arm, "seed": seed, "task": "t", "values": {"nDCG@10": values}, **others}


def test_rows_average_seeds_before_comparing() -> None:
    two = {"base": [(0.5, 0.1)], "CODER": [(0.4, 0.3), (0.8, 0.5)], "CODER + mixed": [(1.0, 0.2), (0.6, 0.6)]}
    records = [record(arm, seed, {"a": a, "b": b}) for arm, pairs in two.items() for seed, (a, b) in enumerate(pairs)]
    table = per_query(records)
    others = {"CODER": ["base"], "CODER + mixed": ["base", "CODER"]}
    rows = {(row["arm"], row["group"]): row for row in study_rows(table, {"a": "one", "b": "two"}, others)}
    assert rows["CODER", "all"]["value"] == pytest.approx((0.6 + 0.4) / 2)
    assert rows["CODER + mixed", "one"]["against"]["base"]["difference"] == pytest.approx(0.3)
    assert (rows["CODER", "two"]["queries"], rows["base", "all"]["against"]) == (1, {})
    gap = rows["CODER + mixed", "all"]["against"]["CODER"]
    assert [gap[name] for name in ("difference", "low", "high")] == pytest.approx([0.1, 0, 0.2])
    assert table["CODER"].round(4).to_dict() == {"nDCG@10": {"a": 0.6, "b": 0.4}}
    with refusal("not tested on the same queries"):
        per_query([*records, record("other", 0, {"a": 1.0})])


def test_validation_chooses_among_the_arms_of_a_family_task_by_task() -> None:
    by_arm = {"half": {"one": (0.1, 0.5), "two": (0.2, 0.2)}, "whole": {"one": (0.5, 0.3), "two": (0.2, 0.2)}}
    records = [
        {"arm": arm, "task": task, "seed": seed, "validation": {"nDCG@10": value, "loss": 0.0}}
        for arm, tasks in by_arm.items()
        for task, values in tasks.items()
        for seed, value in enumerate(values)
    ]
    more, choices = with_chosen(records, dict.fromkeys(by_arm, "best"))
    assert choices["best"]["one"] == {"arm": "whole", "validation": {"half": 0.3, "whole": 0.4}}
    assert choices["best"]["two"]["arm"] == "half"  # of equal ones the first
    assert more == [*records, *({**one, "arm": "best"} for one in (*records[2:4], *records[4:6]))]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """An index of made-up vectors, topics with two positives each, and a two-layer encoder."""
    words = [f"w{number}" for number in range(30)]
    make_encoder(tmp_path / "encoder", words, 16, 32)
    rng = np.random.default_rng(0)
    write_index(tmp_path / "index", rng.standard_normal((40, 16)))
    topics = {f"q{n}": " ".join(rng.choice(words, 4)) for n in range(18)}
    judged = [(qid, f"d{row}", 1) for qid in topics for row in rng.choice(40, 2, replace=False)]
    write_judged(tmp_path, topics, judged)
    return tmp_path


@pytest.mark.slow
def test_a_study_from_files_to_record(collection: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encoder = f"{collection / 'encoder'}:pooling=mean"
    flags = f"--index {collection / 'index'} --topics {collection / 'topics.tsv'} --qrels {collection / 'qrels.txt'}"
    flags += f" --encoder {encoder} --folds 2 --seeds 2 --epochs 2 --context 8 --learning-rates 1e-3 1e-2"
    flags += f" --model query:validation_share=0.3,candidates=10 --work {collection / 'work'} --compares labels"
    flags += f" --first-stages dense --against CODER --output {collection / 'tiny.json'}"
    arms = ["CODER", "CODER + mixed:labels=evidence", "CODER + fused run:labels=run,rates=CODER"]
    arms += [f"CODER + {name},rates=CODER + mixed" for name in ("query:labels=query", "share:labels=joint:mass=share")]
    assert main([*flags.split(), "--arms", *arms]) == 0
    (first,) = read_records(collection / "tiny.json")
    made = first.outcome
    printed, said = capsys.readouterr()
    (doubts,) = [line for line in said.splitlines() if "fewer than 100: which step is best is mostly chance" in line]
    for arm, own in made["steps"].items():
        line = f"{own['unchanged']} of {own['trainings']} trainings of {arm}"
        assert (f"{line}," in f"{doubts},") == (own["unchanged"] > 0)
    assert "CODER + mixed\tnDCG@10\tall" in printed
    assert printed.endswith(f"\n\n{conclusion(made['rows'])}\n")
    assert (first.kind, first.name, set(made["rates"])) == ("study", "labels", {"CODER", "CODER + mixed"})
    for chosen in made["rates"]["CODER"].values():
        assert chosen["validation"][f"{chosen['rate']:g}"] == max(chosen["validation"].values())
    for row in (row for row in made["rows"] if row["group"] == "all"):
        single = made["queries"][row["arm"]][row["measure"]]
        assert np.mean(list(single.values())) == pytest.approx(row["value"], abs=1e-4)
    assert all(0 <= share <= 1 for shares in made["masses"]["CODER + share"].values() for share in shares)
    assert str(collection / "work") not in first.commands[0]["command"]
    taken = {path: path.stat().st_mtime_ns for path in (collection / "work").glob("*/trial.json")}
    next(iter(taken)).unlink()  # as after a kill
    topics = dict(line.split("\t") for line in (collection / "topics.tsv").read_text().splitlines())
    given: dict[str, Any] = {"encoder": encoder, "folds": 2, "seeds": 2, "context": 8, "first_stages": ["dense"]}
    given |= {"learning_rates": [1e-3, 1e-2], "against": "CODER", "work": collection / "work", "arms": arms}
    given["model"] = {"query": {"epochs": 2, "validation_share": 0.3, "candidates": 10}}
    opened, judged = open_index(collection / "index"), load_qrels(collection / "qrels.txt")
    again, _ = study(StudyRequest(opened, topics, judged, **given))
    assert [rounded(again[name]) for name in ("rows", "curves")] == [made[name] for name in ("rows", "curves")]
    assert sum(path.stat().st_mtime_ns == when for path, when in taken.items()) == len(taken) - 1


LATE: dict[str, Any] = {"model": "late", "encoder": "minilm"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "query:candidats=3"}, "model=query: no setting candidats"),
        ({"model": "query:seed=3"}, "arms=trained: seed: a study draws its own; give seeds, trainings of every arm"),
        ({"test_candidates": 2}, "test_candidates: means nothing to a study of the model query"),
        ({"test_topics": "t"}, "test_topics and test_qrels go together"),
        ({"against": "a"}, "against: a: no such arm; known: trained"),
        (
            {"arms": ["a:labels=evidnce"]},
            "arms=a:labels=evidnce: labels=evidnce: evidnce: no such labeler; did you",
        ),
        ({"arms": ["a:labels=arm"]}, "arms=a:labels=arm: labels=arm: name missing"),
        ({"arms": ["b:labels=arm:name=a", "a"]}, "arms=b:labels=arm:name=a: a: comes after it; put it before"),
        ({"arms": ["b:start=minlm"]}, "encoder minlm: no such folder or model; did you mean minilm?"),
        ({"arms": ["a:family=b", "b"]}, "arms=a:family=b: family=b: is the name of an arm"),
        ({"arms": ["a:family=base"]}, "arms=a:family=base: family=base: is the name of an arm"),
        ({"arms": ["a:rates=base"]}, "arms=a:rates=base: base: no such arm; known: a"),
        ({"arms": ["a:labels=arm:name=base"]}, "arms=a:labels=arm:name=base: base: no such arm; known: a"),
        ({"arms": ["a:rates=b", "b:start=a"]}, "arms: b, a: need the rates of one another; leave a `rates` out"),
        (
            {"arms": ["a:validation_share=0.5"]},
            "arms=a:validation_share=0.5: validation_share: a study has one for all",
        ),
        ({**LATE, "arms": ["a:query_length=8"]}, "arms=a:query_length=8: query_length: a study has one for all arms"),
        ({**LATE, "model": "cross", "arms": ["a:max_length=32"]}, "arms=a:max_length=32: max_length: a study has one"),
        ({**LATE, "arms": ["a:prf=colbert"]}, "arms=a:prf=colbert: prf: give start, the arm that is searched with"),
        ({"splits": "cold", "labelled_queries": 3}, "labelled_queries: goes without splits"),
        ({"model": "late"}, "model=late: encoder is missing"),
    ],
)
def test_what_does_not_belong_together_is_said_before_any_work(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        study(StudyRequest("nowhere", "topics", "qrels", **asked))
    assert str(caught.value).startswith(said)
