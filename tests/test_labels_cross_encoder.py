"""Cross-encoders as teachers: the labels command, and where they compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from query_sets import write_documents, write_judged
from refusals import refusal

from rnnreranker import Run, SoftLabels, make_labels
from rnnreranker.base.settings import Written
from rnnreranker.encode.kinds import PairScorer
from rnnreranker.labels.__main__ import main
from tests.tiny_encoder import (
    make_cross_encoder,
    make_index,
    make_qrels,
    make_run,
    make_topics,
)

pytest.importorskip("sentence_transformers")

PLAIN = ["--normalization", "none", "--boost", "1", "--n-max", "none"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with texts, topics, a run, judgements of grades 2 and 1, and a cross-encoder."""
    folder = tmp_path_factory.mktemp("world")
    make_index(folder / "index")
    write_judged(folder, make_topics(), make_qrels().itertuples(index=False))
    make_run().write(folder / "run.txt")
    make_cross_encoder(folder / "one")
    return folder


def flags(world: Path, output: Path) -> list[str]:
    given = {"--run": "run.txt", "--topics": "topics.tsv", "--qrels": "qrels.txt", "--index": "index"}
    words = [word for name, file in given.items() for word in (name, str(world / file))]
    how = Written("teacher", {"teacher": "cross-encoder", "model": world / "one"})
    return [*words, "--output", str(output), *PLAIN, "--method", str(how)]


def test_a_teacher_computes_where_it_is_told(world: Path, tmp_path: Path) -> None:
    assert main(flags(world, tmp_path / "untold.parquet")) == 0
    assert main([*flags(world, tmp_path / "told.parquet"), "--device", "cpu"]) == 0
    untold, told = (SoftLabels.read(tmp_path / f"{name}.parquet") for name in ("untold", "told"))
    assert untold.metadata["teacher"]["models"] == [PairScorer.open(f"{world}/one").fingerprint]
    for one, other in zip(untold, told, strict=True):  # told it is by torch, as on a GPU, untold by ONNX Runtime
        np.testing.assert_allclose(one.targets, other.targets, atol=1e-5)
    assert (untold.metadata.get("device"), told.metadata["device"]) == (None, "cpu")
    with refusal("--device nowhere: torch has no device nowhere"):
        main([*flags(world, tmp_path / "none.parquet"), "--device", "nowhere"])


def test_a_teacher_reads_a_changed_file_of_texts_again(world: Path, tmp_path: Path) -> None:
    how = Written("teacher", {"teacher": "cross-encoder", "model": str(world / "one"), "n_max": None})

    def scores(name: str, text: str) -> list[float]:
        documents = write_documents(tmp_path / name, {docid: text + docid for docid in "12"})
        run, given = Run.from_dict({"q": {"1": 2.0, "2": 1.0}}), {"documents": str(documents)}
        found: list[float] = make_labels(
            run, {"q": {"1": 1}}, method=how, topics={"q": "w1 w2"}, **given
        ).scores.tolist()
        return found

    before, after = scores("one.jsonl", "w3 w"), scores("one.jsonl", "w4 w5 w")
    assert before != after == scores("other.jsonl", "w4 w5 w")
