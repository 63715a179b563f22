"""Miniatures of models: in the cache of the hub and in folders, opened by the loaders that open the real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.rehearsal.models import known, write_models
from rnnreranker.regress.rehearsal.needs import Needs, needs_of_plan
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import specs_folder

STARTS = [name for name in known() if name.split("/")[0] not in ("checkpoints", "cross-encoder", "colbert-ir")]
OPEN = """
import json, numpy as np
from rnnreranker.encode.cross.encoder import PairScorer
from rnnreranker.encode.dense.encoder import Encoder
from rnnreranker.encode.late.encoder import LateEncoder
from rnnreranker.encode.sparse.encoder import SparseEncoder
texts = ["open a file and read its lines", "numbers with decimal places", "zip archives"]
seen = {name: Encoder.load(name, pooling="mean").encode(texts) for name in %r}
seen = {name: [*v.shape, len(np.unique(v, axis=0))] for name, v in seen.items()}
vectors = {name: Encoder.load(name).encode(texts) for name in ("tas-b", "cocondenser")}
seen["products"] = {name: [float((v * v).sum(1).mean()), float((v @ v.T).min())] for name, v in vectors.items()}
sparse = SparseEncoder.load("distilbert/distilbert-base-uncased").encode_documents(texts)
seen["sparse"] = [sparse.shape[1], int(np.diff(sparse.indptr).min()), int(np.diff(sparse.indptr).max())]
cross = PairScorer.load("cross-encoder/ms-marco-MiniLM-L-12-v2").score([("a file", text) for text in texts])
seen["cross"] = len(set(cross.scores.tolist()))
late = LateEncoder.load("colbert-v2").encode_documents([texts[0], "a; b?"])
seen["late"] = [late.vectors.shape[1], np.diff(late.offsets).tolist()]
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("models")
    return folder, write_models(folder, known())


@pytest.fixture(scope="module")
def opened(models: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process sees of all models, that has the environment's word for where they are."""
    folder, variables = models
    home = {"RNNRERANKER_HOME": str(tmp_path_factory.mktemp("home"))}
    words, environment = [sys.executable, "-c", OPEN % STARTS], {**os.environ, **variables, **home}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def test_every_model_that_a_plan_names_has_a_miniature() -> None:
    """The plans of all specs together."""
    needs = Needs()
    for path in sorted(specs_folder().glob("*.yaml")):
        spec = read_spec(path)
        needs |= needs_of_plan(make_plan(spec, works=spec.works))
    assert set(needs.models) <= set(known())
    assert len(needs.models) >= 13


@pytest.mark.long
def test_trainings_begin_with_them(opened: dict[str, Any]) -> None:
    """Every one has 32 numbers a text, ColBERT's 128, and another vector for another text: the words are there."""
    width = {"google-bert/bert-base-uncased": 128}
    assert {name: opened[name] for name in STARTS} == {name: [3, width.get(name, 32), 3] for name in STARTS}


def test_dense_models_have_the_inner_products_of_the_real_ones(opened: dict[str, Any]) -> None:
    """Near 100, on which published parameters of rNN stand; not all alike."""
    for own, least in opened["products"].values():
        assert own == pytest.approx(100, rel=0.02)
        assert least < 90


def test_splade_keeps_some_words(opened: dict[str, Any]) -> None:
    """A masked-language model gives a text a few of its words, neither none nor all."""
    words, fewest, most = opened["sparse"]
    assert words > 2000
    assert 0 < fewest <= most < words / 10


def test_cross_encoders_tell_pairs_apart(opened: dict[str, Any]) -> None:
    """A score of its own for each of three pairs."""
    assert opened["cross"] == 3


def test_colbert_masks_punctuation(opened: dict[str, Any]) -> None:
    """128 numbers a token, a marker before the text, and no vectors of punctuation: [CLS] [D] a b [SEP]."""
    size, lengths = opened["late"]
    assert size == 128
    assert lengths[1] == 5


def test_repbert_is_what_its_authors_hand_out_and_its_words(models: tuple[Path, dict[str, str]]) -> None:
    """Two files and the vocabulary that recipes ask for beside them; weights in the form of before torch 1.6."""
    folder, _ = models
    files = sorted(path.name for path in (folder / "checkpoints" / "repbert").iterdir())
    assert files == ["config.json", "pytorch_model.bin", "vocab.txt"]
    assert (folder / "checkpoints" / "repbert" / "pytorch_model.bin").read_bytes()[:2] != b"PK"


def test_the_same_files_every_time(models: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """Another process's miniature would have the same bytes; one that is there is not written again."""
    folder, _ = models
    for name in ("Luyu/co-condenser-marco-retriever", "FacebookAI/roberta-large", "albert/albert-large-v2"):
        write_models(tmp_path, [name])
        (new,) = tmp_path.glob(f"huggingface/hub/models--{name.replace('/', '--')}/snapshots/*")
        for file in new.iterdir():
            assert file.read_bytes() == (folder / file.relative_to(tmp_path)).read_bytes()
        (new / "config.json").write_text("{}")
        write_models(tmp_path, [name])
        assert (new / "config.json").read_text() == "{}"


def test_a_model_without_a_miniature(tmp_path: Path) -> None:
    """The name, and the one that it is most like."""
    with pytest.raises(InputError, match=r"google-bert/bert-base: no miniature.*google-bert/bert-"):
        write_models(tmp_path, ["google-bert/bert-base"])
    assert not list(tmp_path.iterdir())
