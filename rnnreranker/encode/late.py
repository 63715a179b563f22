"""The files of late-interaction encoders (ColBERT), and how to make one of a transformer."""

from __future__ import annotations

import os
import string
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import cache_home, fingerprint, folder_written_whole
from rnnreranker.encode.model_folder import (
    KINDS,
    ModelFolder,
    find_model,
    known_model,
    loading,
    read_settings,
    settings_file,
    tokenizer_in,
)

KIND = "late-encoder"  # of method
NAMES = {"HF_ColBERT", "MultiVectorEncoder", "ColBERT"}  # in files of Stanford, sentence-transformers and PyLate
DIMENSION = 128
QUERY_LENGTH, DOCUMENT_LENGTH = 32, 180  # tokens, of ColBERT
MARKERS = ("[unused0]", "[unused1]")  # of BERT's vocabulary: ColBERT's [Q] and [D]
NEW_MARKERS = ("[Q]", "[D]")  # where a vocabulary has none to spare


def special_tokens(name: str) -> np.ndarray:
    """(S,) int32, ascending: an encoder's tokens without text: special ones, markers, [unused0], …"""
    tokenizer = tokenizer_in(late_folder(name).path)
    unused = (number for token, number in tokenizer.get_vocab().items() if "[unused" in token)
    return np.unique([*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder, *unused]).astype(np.int32)


def make_late_base(
    encoder: str, output: str | os.PathLike[str], dimension: int = DIMENSION, seed: int = 0, marked: bool = True
) -> None:
    """Write a folder for `LateEncoder.load` and sentence-transformers' MultiVectorEncoder, all or nothing.

    Modules: the transformer of an encoder; a linear map of token vectors to `dimension` numbers without bias, whose
    orthonormal rows are drawn by the seed; ColBERT's mask (queries expanded by unattended [MASK] to 32 tokens,
    documents cut at 180 and without punctuation); vectors scaled to length 1.

    Marked, a query begins with [CLS] [unused0] and a document with [CLS] [unused1], as in paper 002; other vocabularies
    get [Q] and [D], whose vectors begin as the mean of all.

    Args:
        encoder: as in `find_model`; output: the folder, replaced if it exists; marked: False without training.
        dimension: of a token, at most the transformer's; seed: of the projection, decides all bytes.

    Raises:
        InputError, UnavailableError: as `find_model`; no transformer, a dimension out of range.
    """
    require("sentence_transformers", "late interaction", "'rnnreranker[late]'")
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    model_folder = find_model(encoder)
    transformer = Transformer(
        str(model_folder.path / read_settings(model_folder.path).transformer),
        query_expansion={"strategy": "fixed", "attend": False, "length": QUERY_LENGTH},
        document_length=DOCUMENT_LENGTH,
        model_kwargs={"local_files_only": True},
    )
    size, tokens = int(transformer.get_embedding_dimension()), "token_embeddings"
    if not 1 <= dimension <= size:
        raise InputError(f"dimension={dimension}: expected 1 to {size}, the numbers of a token of {encoder}")
    drawn = torch.randn(size, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weight = torch.linalg.qr(drawn).Q.T.float().contiguous()
    modules = [
        transformer,
        Dense(size, dimension, False, torch.nn.Identity(), init_weight=weight, module_input_name=tokens),
        MultiVectorMask(skiplist_words=list(string.punctuation)),
        Normalize(module_input_name=tokens),
    ]
    prompts = _mark(transformer) if marked else {}
    model = MultiVectorEncoder(modules=modules, device="cpu", similarity_fn_name="maxsim", prompts=prompts)
    with folder_written_whole(output) as folder:
        model.save_pretrained(str(folder), create_model_card=False)


def _mark(transformer: Any) -> dict[str, str]:
    """Make markers single tokens of a transformer, as first words of prompts; returns the prompts by kind."""
    import torch

    tokenizer, model = transformer.tokenizer, transformer.model
    markers = MARKERS if set(MARKERS) <= set(tokenizer.get_vocab()) else NEW_MARKERS
    tokenizer.add_special_tokens({"additional_special_tokens": list(markers)})
    rows = model.get_input_embeddings().weight
    count, mean = len(rows), rows.detach().mean(dim=0)
    if len(tokenizer) > count:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        with torch.no_grad():
            model.get_input_embeddings().weight[count:] = mean
    return {kind: f"{marker} " for kind, marker in zip(("query", "document"), markers, strict=True)}


def is_late(folder: Path) -> bool:
    """Whether files are of Stanford's ColBERT, of sentence-transformers' MultiVectorEncoder, or of PyLate."""
    with loading(folder, KINDS[KIND].what):
        whole, config = (settings_file(folder / name) for name in ("config_sentence_transformers.json", "config.json"))
        return bool({whole.get("model_type"), *(config.get("architectures") or [])} & NAMES)


def late_folder(name: str) -> ModelFolder:
    """The files of a late-interaction encoder, made without markers for a name with a `base`; errors as
    `find_model`.
    """
    known = known_model(name, KIND)
    if known and known.base:
        return _made_base(name, known.base, marked=False)
    folder = find_model(name, KIND)
    if not is_late(folder.path):
        raise InputError(
            f"{folder.path}: no late-interaction encoder (MultiVectorEncoder of sentence-transformers, or Stanford's "
            "HF_ColBERT); a dense model is for --encoder"
        )
    return folder


def late_start(name: str, dimension: int | None) -> ModelFolder:
    """The files of a late-interaction encoder to train: those of the name, or made of its transformer, with markers.

    dimension: of a token in a model that is made; None = 128. Errors as `find_model` and `make_late_base`.
    """
    if known_model(name, KIND) is not None:
        return late_folder(name)
    folder = find_model(name)
    return folder if is_late(folder.path) else _made_base("late", name, dimension or DIMENSION)


def _made_base(name: str, encoder: str, dimension: int = DIMENSION, marked: bool = True) -> ModelFolder:
    lengths, markers = (QUERY_LENGTH, DOCUMENT_LENGTH), [*MARKERS, *NEW_MARKERS] if marked else []
    digest = fingerprint("late base", find_model(encoder).digest, dimension, *lengths, markers)
    folder: Path = cache_home() / "models" / f"{name}-{digest}"
    if not folder.is_dir():
        make_late_base(encoder, folder, dimension, marked=marked)
    return ModelFolder(name, folder, "")
