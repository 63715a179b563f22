"""Where models compute: names of devices, parts of an index made there, batches on several at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

torch = pytest.importorskip("torch")

from rnnreranker.base.device import Devices, devices_of, trained_on  # noqa: E402
from rnnreranker.base.errors import of_command  # noqa: E402
from rnnreranker.encode.graph import cosine_of  # noqa: E402
from rnnreranker.encode.kinds import Encoder, LateEncoder, PairScorer, SparseEncoder, TextEncoder  # noqa: E402
from rnnreranker.index.__main__ import main as index  # noqa: E402
from rnnreranker.parts import base as encoded  # noqa: E402
from tests.query_sets import write_documents, write_lines  # noqa: E402
from tests.tiny_encoder import (  # noqa: E402
    WORDS,
    make_cross_encoder,
    make_encoder,
    make_group_inputs,
    make_late,
    make_masked,
)

TEXTS = [" ".join(WORDS[(7 * row + column) % 40] for column in range(1 + row % 30)) for row in range(90)]
KINDS: dict[str, tuple[type[TextEncoder], str, dict[str, Any]]] = {
    "dense": (Encoder, "encoder", {"pooling": "mean"}),
    "impact": (SparseEncoder, "masked", {}),
    "tokens": (LateEncoder, "late", {}),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("devices")
    make_encoder(folder / "encoder")
    make_masked(folder / "masked")
    make_late(folder / "late")
    make_cross_encoder(folder / "cross")
    write_documents(folder / "docs.jsonl", {f"d{row}": text for row, text in enumerate(TEXTS)})
    return folder


def with_gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


@pytest.mark.parametrize(
    ("device", "dtype", "said"),
    [
        (
            "gpu",
            "float32",
            "--device gpu: torch has no device gpu here; expected some of cuda:0, cuda:1, cpu, or auto$",
        ),
        ("cpu,cuda:0", "float32", r"--device cpu,cuda:0: expected different devices of one kind, as cuda:0,cuda:1"),
        ("cpu", "int8", r"--compute-dtype 'int8': expected .* one of float32, bfloat16, float16"),
    ],
)
def test_other_devices_are_refused_in_one_line(
    device: str, dtype: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with of_command(), refusal(said) as error:
        devices_of(device, dtype)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("part", KINDS)
def test_the_same_code_computes_on_devices(world: Path, part: str) -> None:
    kind, folder, options = KINDS[part]
    usual, name = kind.load(str(world / folder), **options), str(world / folder)
    rows = usual.rows(TEXTS)
    for names in (("cpu",), ("cpu", "cpu")):
        one = kind.load(name, devices=Devices(names), **options)
        assert len(one.models) == len(names)
        assert one.rows(TEXTS).tobytes() == rows.tobytes()
        assert one.fingerprint == usual.fingerprint
    half = kind.load(name, devices=Devices(("cpu",), "bfloat16"), **options).rows(TEXTS)
    assert half.dtype == np.float32
    assert half.tobytes() != rows.tobytes()
    assert cosine_of(half, rows) >= 1 - 2e-3


def test_pairs_are_scored_on_devices(world: Path) -> None:
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    where = (None, Devices(("cpu", "cpu")), Devices(("cpu",), "bfloat16"))
    usual, two, half = (PairScorer.load(str(world / "cross"), devices=one) for one in where)
    scores = usual.score(pairs).scores
    assert two.score(pairs).scores.tobytes() == scores.tobytes()
    assert np.abs(half.score(pairs).scores - scores).max() < 0.1
    assert usual.fingerprint == two.fingerprint != half.fingerprint  # scores of other bytes are kept apart


def make(world: Path, output: Path, part: str, *more: str, documents: str = "") -> dict[str, Any]:
    """What an index says of one that was made."""
    encoder = f"{world / KINDS[part][1]}{':pooling=mean' if part == 'dense' else ''}"
    argv = ["--documents", documents or str(world / "docs.jsonl"), "--output", str(output), "--parts", part]
    flag = {"dense": "--encoder", "impact": "--impact-encoder", "tokens": "--token-encoder"}[part]
    assert index([*argv, flag, encoder, *more]) == 0
    described: dict[str, Any] = json.loads((output / "rnnreranker.json").read_text())
    return described


@pytest.mark.parametrize("part", KINDS)
def test_a_part_says_where_it_was_computed(
    world: Path, tmp_path: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = make(world, tmp_path / "usual", part)
    capsys.readouterr()
    half = make(world, tmp_path / "half", part, "--device", "cpu", "--compute-dtype", "bfloat16")
    computed = half["parts"][part]["encoder"]["computed"]
    assert (computed["device"], computed["dtype"]) == ("cpu", "bfloat16")
    assert 1 - 2e-3 <= computed["cosine"] < 1
    assert f"on cpu in bfloat16: lowest cosine of 16 texts to the processor's {computed['cosine']:.6f}" in (
        capsys.readouterr().err
    )
    assert half["fingerprint"] == usual["fingerprint"]
    assert half["inputs"] == usual["inputs"]
    assert half["files"] != usual["files"]
    assert make(world, tmp_path / "half", part) == half  # it is the same index: nothing is made again


def test_parts_keep_the_types_that_they_were_computed_in(world: Path, tmp_path: Path) -> None:
    docs, more, half = str(world / "docs.jsonl"), tmp_path / "more.jsonl", ["--compute-dtype", "bfloat16"]
    more.write_text('{"id": "new", "text": "one two"}\n')
    (tmp_path / "all.jsonl").write_text(Path(docs).read_text() + more.read_text())
    for name, documents in (("mixed", docs), ("whole", str(tmp_path / "all.jsonl"))):
        make(world, tmp_path / name, "dense", documents=documents)
        make(world, tmp_path / name, "impact", *half, documents=documents)
    taken = ["--from-index", str(tmp_path / "mixed")]
    with refusal(r"--from-index .*mixed: its dense was computed in float32; leave it out"):
        make(world, tmp_path / "other", "dense", *taken, *half)
    said = make(world, tmp_path / "other", "impact", *taken, "--device", "cpu", *half)["parts"]
    expected = json.loads((tmp_path / "mixed" / "rnnreranker.json").read_text())["parts"]
    assert said["impact"] == expected["impact"]
    assert index(["--append", str(more), "--output", str(tmp_path / "mixed")]) == 0
    for file in ("index", "impacts/weights.npy"):
        assert (tmp_path / "mixed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_vectors_that_stand_too_far_away_are_refused(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoded, "least_cosine", lambda *_: 1.1)
    with refusal(r"encoder on cpu in float16: lowest cosine of 16 texts to the proc"):
        make(world, tmp_path / "out", "dense", "--compute-dtype", "float16")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("dense", ["--retriever", "dense", "--rerank", "cross-encoder:model=CROSS"]),
        ("impact", ["--retriever", "impact", "--rerank", "none"]),
    ],
)
def test_queries_are_encoded_on_a_device(world: Path, tmp_path: Path, part: str, words: list[str]) -> None:
    from rnnreranker.runs import Run
    from rnnreranker.search.__main__ import main as search

    make(world, tmp_path / "index", part)
    write_lines(tmp_path / "topics.tsv", (f"q{row}\t{text}" for row, text in enumerate(TEXTS[5:9])))
    argv = ["--index", str(tmp_path / "index"), "--topics", str(tmp_path / "topics.tsv"), "--hits", "5"]
    argv += [word.replace("CROSS", str(world / "cross")) for word in words]
    runs = {}
    for name, how in (("usual", []), ("torch", ["--device", "cpu"]), ("half", ["--compute-dtype", "bfloat16"])):
        assert search([*argv, *how, "--output", str(tmp_path / f"{name}.txt")]) == 0
        runs[name] = Run.read(tmp_path / f"{name}.txt")
    for name, most in (("torch", 1e-4), ("half", 0.1)):
        for qid in runs["usual"]:
            scores = [[score for _, score in runs[one][qid]] for one in ("usual", name)]
            np.testing.assert_allclose(*scores, atol=most, rtol=most)
    assert (tmp_path / "half.txt").read_bytes() != (tmp_path / "usual.txt").read_bytes()


def test_where_a_training_may_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert [trained_on(name) for name in ("cpu", "cuda", "auto")] == ["cpu", "cuda", "cuda"]
    for name in ("cuda:1", "cuda:0,cuda:1", "mps"):
        with refusal("expected cpu, cuda or auto; CUDA_VISIBLE_DEVICES chooses a GPU"):
            trained_on(name)
    with_gpus(monkeypatch, 0)
    assert trained_on("auto") == "cpu"


@pytest.mark.parametrize(
    ("model", "start"), [("dual", "encoder"), ("sparse", "masked"), ("late", "late"), ("cross", "cross")]
)
def test_validation_moves_every_tensor_to_the_device(
    world: Path, monkeypatch: pytest.MonkeyPatch, model: str, start: str
) -> None:
    """The library's function moves the tensors of one dictionary, not of dictionaries in it."""
    from rnnreranker.base.method import find
    from rnnreranker.train import text
    from rnnreranker.train.request import Start

    kinds = {
        "dual": text.DualLearner,
        "sparse": text.SparseLearner,
        "late": text.LateLearner,
        "cross": text.CrossLearner,
    }
    inputs, moved = make_group_inputs(), []
    learner = kinds[model](Start(str(world / start)), find("trained-model", model).Params(), inputs, "cpu")
    monkeypatch.setattr(text, "batch_to_device", lambda features, device: moved.append(features) or features)
    with torch.no_grad():
        scores = list(learner.scored(inputs.checked[:2]))
    assert [len(one) for one in scores] == [len(one.docids) for one in inputs.checked[:2]]
    assert moved
    assert all(torch.is_tensor(value) for features in moved for value in features.values())
