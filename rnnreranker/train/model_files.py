"""The files that a training on texts begins with, and how long its texts may be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.encode import model_folder
from rnnreranker.encode.model_folder import find_model, known_model, read_settings
from rnnreranker.train.params import LONGEST

NOTHING = "none"  # of --encoder: a new model


def start_folder(name: str, kinds: Sequence[str]) -> tuple[Path, Path]:
    """The folder of a model, and the folder in it with its transformer; errors as `find_model`.

    Args:
        name: of a model of these kinds, a folder or a hub id.
        kinds: of methods whose names are known, the first first.
    """
    folder = find_model(name, next((kind for kind in kinds if known_model(name, kind)), kinds[0])).path
    return folder, folder / read_settings(folder).transformer


def loading(path: Path, what: str) -> AbstractContextManager[None]:
    """A block that loads a model to train: whatever libraries raise in it becomes one line.

    Raises:
        InputError: a model that cannot be loaded.
    """
    return model_folder.loading(path, what, f"give another {argument('encoder')}", "trained")


def limit_of(path: Path, model: Any, wanted: int | None) -> int:
    """Tokens at which texts are cut: as wanted, else LONGEST, never more than the model takes.

    Raises:
        InputError: more are wanted; a model that is no encoder, or with other words than its tokenizer.
    """
    import transformers

    from rnnreranker.encode.transformer import NO_LIMIT, check_vocabulary

    if model.config.is_encoder_decoder:
        raise InputError(f"{path}: an encoder-decoder model; expected an encoder")
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    check_vocabulary(path, tokenizer, model)
    limits = [getattr(model.config, "max_position_embeddings", None), tokenizer.model_max_length]
    most: int = min((limit for limit in limits if limit and limit < NO_LIMIT), default=512)
    if wanted is not None and wanted > most:
        raise InputError(f"max_length={wanted}: expected an integer <= {most}, as {path} takes no more tokens")
    return wanted or min(LONGEST, most)
