"""The files of late-interaction encoders: of a name, a folder or a hub id, or made of a transformer to begin with."""

from __future__ import annotations

import os
import string
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import cache_home, fingerprint, folder_written_whole
from rnnreranker.encode.model_folder import ModelFolder, check_kind, find_model, is_kind, known_model, read_settings
from rnnreranker.encode.params import LateEncoderParams

DIMENSION = 128
QUERY_LENGTH, DOCUMENT_LENGTH = 32, 180  # tokens, of ColBERT
MARKERS = ("[unused0]", "[unused1]")  # of BERT's vocabulary: ColBERT's [Q] and [D]
NEW_MARKERS = ("[Q]", "[D]")  # where a vocabulary has none to spare


def make_late_base(
    encoder: str, output: str | os.PathLike[str], dimension: int = DIMENSION, seed: int = 0, marked: bool = True
) -> None:
    """Write a folder that `LateEncoder.load` and sentence-transformers' MultiVectorEncoder load, all or nothing.

    Modules: the transformer of an encoder; a linear map of its token vectors to `dimension` numbers without bias, whose
    rows are orthonormal and drawn by the seed, so that products keep about their ratios; ColBERT's mask (queries
    expanded by [MASK] to 32 tokens that the transformer does not attend to, documents cut at 180 and without
    punctuation); vectors scaled to length 1.

    Marked, a query begins with [CLS] [unused0] and a document with [CLS] [unused1], as in the program of paper 002 and
    in Stanford's: words of BERT's vocabulary that stand for nothing, and learn to say what a text is. They count among
    the tokens. A vocabulary without them gets two new words, [Q] and [D], whose vectors begin as the mean of all.

    Args:
        encoder: as `Encoder.load` takes it, of a model of transformers.
        output: the folder; what stands there is replaced.
        dimension: of a token, at most the transformer's.
        seed: of the projection; the same seed gives the same bytes.
        marked: whether queries and documents have markers: no for a model that will not be trained, to which they say
            nothing.

    Raises:
        InputError: no such encoder, one that is no transformer, a dimension out of range.
        UnavailableError: as `Encoder.load`.
    """
    require("sentence_transformers", "late interaction", "'rnnreranker[late]'")
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    model_folder = find_model(encoder)
    expansion = {"strategy": "fixed", "attend": False, "length": QUERY_LENGTH}
    transformer = Transformer(
        str(model_folder.path / read_settings(model_folder.path).transformer),
        query_expansion=expansion,
        document_length=DOCUMENT_LENGTH,
        model_kwargs={"local_files_only": True},
    )
    size = int(transformer.get_embedding_dimension())
    if not 1 <= dimension <= size:
        raise InputError(f"dimension={dimension}: expected 1 to {size}, the numbers of a token of {encoder}")
    drawn = torch.randn(size, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weight = torch.linalg.qr(drawn).Q.T.float().contiguous()
    identity, tokens = torch.nn.Identity(), "token_embeddings"
    projection = Dense(size, dimension, False, identity, init_weight=weight, module_input_name=tokens)
    mask = MultiVectorMask(skiplist_words=list(string.punctuation))
    modules = [transformer, projection, mask, Normalize(module_input_name=tokens)]
    prompts = _mark(transformer) if marked else {}
    model = MultiVectorEncoder(modules=modules, device="cpu", similarity_fn_name="maxsim", prompts=prompts)
    with folder_written_whole(output) as folder:
        model.save_pretrained(str(folder), create_model_card=False)


def _mark(transformer: Any) -> dict[str, str]:
    """Make markers single words of a transformer; kind → what is put before its texts.

    They are prompts of sentence-transformers, whose first word the tokenizer keeps whole, as it loads Stanford's
    checkpoints.
    """
    import torch
    from transformers import AddedToken

    tokenizer, model = transformer.tokenizer, transformer.model
    markers = MARKERS if set(MARKERS) <= set(tokenizer.get_vocab()) else NEW_MARKERS
    words = [AddedToken(marker, normalized=False, special=True) for marker in markers]
    tokenizer.add_special_tokens({"additional_special_tokens": words})
    rows = model.get_input_embeddings().weight
    count, mean = len(rows), rows.detach().mean(dim=0)
    if max(tokenizer.convert_tokens_to_ids(list(markers))) >= count:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        with torch.no_grad():
            model.get_input_embeddings().weight[count:] = mean
    return {kind: f"{marker} " for kind, marker in zip(("query", "document"), markers, strict=True)}


def late_base(name: str, encoder: str, dimension: int = DIMENSION, marked: bool = True) -> ModelFolder:
    """The files of a model that is made of an encoder, in the cache folder: made on first use.

    Raises:
        InputError, UnavailableError: as `make_late_base`.
    """
    lengths, markers = (QUERY_LENGTH, DOCUMENT_LENGTH), [*MARKERS, *NEW_MARKERS] if marked else []
    digest = fingerprint("late base", find_model(encoder).digest, dimension, *lengths, markers)
    folder: Path = cache_home() / "models" / f"{name}-{digest}"
    if not folder.is_dir():
        make_late_base(encoder, folder, dimension, marked=marked)
    made = find_model(str(folder))
    return ModelFolder(name, made.path, made.digest)


KIND = "late-encoder"  # of method


def late_folder(name: str) -> ModelFolder:
    """The files of a late-interaction encoder, which are looked at: another model would get a random projection.

    One that a name has made of an encoder is for use as it is, so that nothing marks its queries and documents.

    Raises:
        InputError: no such model, or one that is no late-interaction encoder.
        UnavailableError: as `find_model`.
    """
    known = known_model(name, KIND)
    folder = late_base(name, known.base, marked=False) if known and known.base else find_model(name, KIND)
    check_kind(folder.path, KIND)
    return folder


def late_start(name: str, dimension: int | None = None) -> ModelFolder:
    """The files of a late-interaction encoder to train: of that name, or made of the transformer of that name, marked.

    dimension: of a token in one that is made; None = 128.

    Raises:
        InputError, UnavailableError: as `find_model`, and as `make_late_base` of a model that is no transformer.
    """
    if known_model(name, KIND) is not None:
        return late_folder(name)
    folder = find_model(name)
    return folder if is_kind(folder.path, KIND) else late_base("late", name, dimension or DIMENSION)


def cut_late(model: Any, params: LateEncoderParams, folder: Path) -> tuple[int, int]:
    """Set the tokens at which a late-interaction model cuts queries and documents: those given, else its own.

    Returns the two lengths.

    Raises:
        InputError: lengths beyond the model's.
    """
    lengths, limit = dict(model.about["lengths"]), model.about["limit"]
    for kind, given in (("query", params.query_length), ("document", params.document_length)):
        lengths[kind] = int(given or lengths[kind])
        if lengths[kind] > limit:
            raise InputError(
                f"{kind}_length={lengths[kind]}: expected an integer <= {limit}, as {folder} takes no more tokens"
            )
    model.cut_at(**lengths)
    return lengths["query"], lengths["document"]
