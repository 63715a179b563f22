"""Cross-encoders as teachers: the labels command, margins in the targets, workers of every kind, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rnnreranker import InputError, SoftLabels
from rnnreranker.base.settings import Written
from rnnreranker.encode.kinds import PairScorer
from rnnreranker.labels.__main__ import main
from rnnreranker.labels.soft import Labels
from tests.tiny_encoder import (
    make_cross_encoder,
    make_index,
    make_qrels,
    make_run,
    make_texts,
    make_topics,
)

pytest.importorskip("sentence_transformers")

PLAIN = ["--normalization", "none", "--boost", "1", "--n-max", "none"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with texts, topics, a run, judgements of grades 2 and 1, and a cross-encoder."""
    folder = tmp_path_factory.mktemp("world")
    make_index(folder / "index")
    (folder / "topics.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in make_topics().items()))
    rows = make_qrels().itertuples(index=False)
    (folder / "qrels.txt").write_text("".join(f"{qid} 0 {docid} {grade}\n" for qid, docid, grade in rows))
    make_run().write(folder / "run.txt")
    make_cross_encoder(folder / "one")
    return folder


def flags(world: Path, output: Path) -> list[str]:
    given = {"--run": "run.txt", "--topics": "topics.tsv", "--qrels": "qrels.txt", "--index": "index"}
    words = [word for name, file in given.items() for word in (name, str(world / file))]
    how = Written("teacher", {"teacher": "cross-encoder", "model": world / "one"})
    return [*words, "--output", str(output), *PLAIN, "--method", str(how)]


def expected(scorer: PairScorer, one: Labels) -> np.ndarray:
    """What a model says of every candidate by itself."""
    topics, texts = make_topics(), make_texts()
    return np.array([scorer.score([(topics[one.qid], texts[docid])]).scores[0] for docid in one.docids])


@pytest.mark.long
def test_targets_are_the_softmax_of_the_teachers_scores(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags(world, tmp_path / "labels.parquet")) == 0
    assert "pairs had more than 64 tokens and were cut" in capsys.readouterr().err
    labels = SoftLabels.read(tmp_path / "labels.parquet")
    assert len(labels) == 24
    scorer = PairScorer.load(f"{world}/one")
    for one in labels:
        scores = expected(scorer, one)
        assert one.positive.sum() == 2  # of grades 2 and 1, which do not weigh a teacher's scores
        np.testing.assert_allclose(one.scores, scores, atol=1e-6)
        np.testing.assert_allclose(np.log(one.targets) - np.log(one.targets[0]), scores - scores[0], atol=1e-5)
    described = labels.metadata["teacher"]
    assert described["name"] == "cross-encoder"
    assert described["models"] == [PairScorer.open(f"{world}/one").fingerprint]


def test_a_teacher_computes_where_it_is_told(world: Path, tmp_path: Path) -> None:
    assert main(flags(world, tmp_path / "untold.parquet")) == 0
    assert main([*flags(world, tmp_path / "told.parquet"), "--device", "cpu"]) == 0
    untold, told = (SoftLabels.read(tmp_path / f"{name}.parquet") for name in ("untold", "told"))
    for one, other in zip(untold, told, strict=True):  # told it is by torch, as on a GPU, untold by ONNX Runtime
        np.testing.assert_allclose(one.targets, other.targets, atol=1e-5)
    assert (untold.metadata.get("device"), told.metadata["device"]) == (None, "cpu")
    with pytest.raises(InputError, match="--device nowhere: torch has no device nowhere"):
        main([*flags(world, tmp_path / "none.parquet"), "--device", "nowhere"])
