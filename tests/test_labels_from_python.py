"""`make_labels` from files and from Python objects, against the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refusal
from test_negatives import small

from rnnreranker import Run, SoftLabels, make_labels
from rnnreranker.base.errors import DataWarning
from rnnreranker.base.settings import Written
from rnnreranker.data.qrels import load_qrels
from rnnreranker.index.opening import open_index
from rnnreranker.labels.__main__ import main
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.request import choose_labeler

FORM = "evidence:k=4,boost=1.5,include_level=0.1"


def by_command(folder: Path, *more: str) -> SoftLabels:
    named = {"run": "run.txt", "qrels": "qrels.txt", "index": "v.npy", "encoded-queries": "q.npy"}
    files = [word for name, file in named.items() for word in (f"--{name}", str(folder / file))]
    assert main([*files, *more, "--output", str(folder / "command.parquet")]) == 0
    return SoftLabels.read(folder / "command.parquet")


def test_files_and_objects_come_to_the_labels_of_the_command(tmp_path: Path) -> None:
    small(tmp_path)
    by_command(tmp_path, "--method", FORM)
    own = {"index": tmp_path / "v.npy", "encoded_queries": tmp_path / "q.npy"}
    written = tmp_path / "python.parquet"
    first = make_labels(tmp_path / "run.txt", tmp_path / "qrels.txt", method=FORM, output=written, **own)
    assert written.read_bytes() == (tmp_path / "command.parquet").read_bytes()
    judged = load_qrels(tmp_path / "qrels.txt")
    as_dict = {qid: {docid: grade} for qid, docid, grade in judged.itertuples(index=False)}
    own["index"] = open_index(tmp_path / "v.npy")  # type: ignore[assignment]
    as_yaml = {"evidence": {"k": 4, "boost": 1.5, "include_level": 0.1}}
    for qrels in (judged, as_dict):
        found = make_labels(Run.read(tmp_path / "run.txt"), qrels, method=as_yaml, **own)
        assert found.metadata == first.metadata
        for one, other in zip(found, first, strict=True):
            assert one.docids == other.docids
            assert one.targets.tobytes() == other.targets.tobytes()
    assert sorted(path.name for path in tmp_path.glob("*.parquet*")) == ["command.parquet", "python.parquet"]


def test_a_written_form_holds_the_settings_of_labels(tmp_path: Path) -> None:
    chosen = choose_labeler("uniform:preset=coder-tas-b,label_preset=coder-tas-b,context=300,n_max=7,from=vectors")
    assert (chosen.name, chosen.params.to_dict()["context"], chosen.source) == ("uniform", 300, "vectors")
    assert chosen.label_params == LabelParams(
        boost=LabelParams.preset("coder-tas-b").boost, n_max=7, include_level=0.1, compat="coder"
    )
    (tmp_path / "both.yaml").write_text("rnn: {k: 7}\nlabels: {boost: 3}\n")
    chosen = choose_labeler(f"evidence:preset={tmp_path / 'both.yaml'},n_max=none")
    assert (chosen.params.to_dict()["k"], chosen.label_params) == (7, LabelParams(boost=3, n_max=None))
    assert choose_labeler("joint:from=neighbours,queries=run").needs == {"neighbours"}
    assert choose_labeler(Written("hard")).needs == frozenset()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("hard:boost=50", "no setting boost"),
        ("hard:label_preset=coder-tas-b", "no setting label_preset"),
        ("joint:share=0.9", "share=0.9: has no effect without mass=share or confident"),
        ("joint:mass=share,threshold=0.9", "threshold=0.9: has no effect without mass=confident"),
        ("evidence:rho=0.9", "rho=0.9: has no effect without redistribute=fully"),
    ],
)
def test_settings_without_effect_are_refused(form: str, said: str) -> None:
    with refusal(said):
        choose_labeler(form)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"^method=evidence needs index \(where vectors come from\); method=evidence needs topics or enc"),
        ({"method": "evidense"}, "^method=evidense: evidense: no such labeler; did you mean evidence"),
        ({"method": "evidence:boot=2"}, "^method=evidence:boot=2: no setting boot, did you mean boost"),
        ({"method": {"evidence": {"boost": "2x"}}}, "boost='2x': expected a finite number >= 1"),
        ({"method": "evidence:label_preset=coder"}, "preset coder: not known"),
        ({"method": "hard:from=neighbours"}, "^method=hard:from=neighbours: method hard: not from neighbours"),
        ({"method": "hard", "topic": "x"}, "^no argument topic, did you mean topics"),
        ({"method": "hard", "backend": "rai"}, "^backend='rai': expected one of threads"),
        ({"method": "hard", "output": "x.tsv"}, r"^output=x\.tsv: expected a name that ends in \.parquet"),
    ],
)
def test_messages_name_arguments(given: dict[str, object], said: str, tmp_path: Path) -> None:
    small(tmp_path)
    with refusal(said):
        make_labels(tmp_path / "run.txt", tmp_path / "qrels.txt", **given)  # type: ignore[arg-type]


def test_labels_say_that_a_query_is_among_its_candidates(tmp_path: Path) -> None:
    small(tmp_path)
    run = Run.read(tmp_path / "run.txt")
    own = Run.from_dict({qid: {qid: 99.0, **dict(run[qid])} for qid in run})
    vectors, queries = np.load(tmp_path / "v.npy"), np.load(tmp_path / "q.npy")
    np.save(tmp_path / "v.npy", np.concatenate([vectors, queries]))
    (tmp_path / "v.ids").write_text((tmp_path / "v.ids").read_text() + (tmp_path / "q.ids").read_text())
    given = {"index": tmp_path / "v.npy", "encoded_queries": tmp_path / "q.npy"}
    with pytest.warns(DataWarning, match=r"5 of 5 queries found their own document.*--remove-query of search"):
        made = make_labels(own, tmp_path / "qrels.txt", **given)
    assert all(qid in made[qid].docids for qid in made.qids)
