"""The files of late-interaction encoders: of a name, a folder or a hub id, or made of a transformer to begin with."""

from __future__ import annotations

from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.json_files import read_json
from rnnreranker.encode.late.base import DIMENSION, late_base
from rnnreranker.encode.model_folder import ModelFolder, find_model, known_model

KIND = "late-encoder"  # of method
STANFORD = "HF_ColBERT"  # the architecture that Stanford's checkpoints name
MODEL_TYPES = ("MultiVectorEncoder", "ColBERT")  # of sentence-transformers and of PyLate


def late_folder(name: str) -> ModelFolder:
    """The files of a late-interaction encoder, which are looked at: another model would get a random projection.

    One that a name has made of an encoder is for use as it is, so that nothing marks its queries and documents.

    Raises:
        InputError: no such model, or one that is no late-interaction encoder.
        UnavailableError: as `find_model`.
    """
    base = getattr(known_model(name, KIND), "base", "")
    folder = late_base(name, base, marked=False) if base else find_model(name, KIND)
    kinds = _kinds(folder)
    if not is_late(kinds):
        shown = " and a ".join(kinds)
        raise InputError(
            f"{folder.path}: a {shown or 'model of no kind'}; expected a late-interaction encoder ({MODEL_TYPES[0]} of "
            f"sentence-transformers, or {STANFORD}); a dense model is for --encoder"
        )
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
    return folder if is_late(_kinds(folder)) else late_base("late", name, dimension or DIMENSION)


def is_late(kinds: list[str]) -> bool:
    """Whether one of what a model's files call it is a late-interaction encoder."""
    return bool({STANFORD, *MODEL_TYPES} & set(kinds))


def _kinds(folder: ModelFolder) -> list[str]:
    """What a model's files call it."""
    said: list[Any] = []
    for file, key in (("config_sentence_transformers.json", "model_type"), ("config.json", "architectures")):
        if (folder.path / file).is_file():
            config = read_json(folder.path / file, "settings file of the model", "get the model again")
            value = config.get(key) if isinstance(config, dict) else None
            said += value if isinstance(value, list) else [value]
    return [str(kind) for kind in said if kind is not None]
