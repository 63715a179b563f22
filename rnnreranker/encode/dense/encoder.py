"""Texts to vectors with any encoder of the Hugging Face world, on the CPU, the same bytes whatever the threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from rnnreranker.base.errors import InputError, RnnrerankerError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find, names
from rnnreranker.base.settings import hints_of
from rnnreranker.encode.dense.graph import GraphModel, check_about, dense_key, make_dense_graph
from rnnreranker.encode.graphs.store import KeptGraph, Refused, kept_graph
from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.model_folder import ModelFolder, content_of, find_model
from rnnreranker.encode.model_settings import ModelSettings, read_settings
from rnnreranker.encode.named import KnownModel, TextModel
from rnnreranker.encode.params import EncoderParams

BATCH_TOKENS = 1024  # padded tokens in a batch: what a core's caches like best


class DenseModel(Protocol):
    """What turns token lists into vectors; see `transformer.py`."""

    dimension: int

    def tokenize(self, texts: Sequence[str]) -> list[Any]: ...
    def length(self, tokens: Any) -> int: ...
    def forward(self, batch: list[Any]) -> np.ndarray: ...


class Encoder:
    """An encoder of texts; made by `load_encoder`, or by its graph by `open_encoder`.

    Args:
        name: hub id or path.
        model: what computes.
        settings: everything besides the weights that the vectors depend on.
        digest: of the weights and the tokenizer.
        documents: what computes the vectors of documents, where that is another model.
        path: the folder of the model that torch computes.
        graph: the files of what computes, where that is a graph.

    Attributes:
        refused: why it has no graph, once `by_graph` has tried.
    """

    def __init__(
        self,
        name: str,
        model: DenseModel,
        settings: dict[str, Any],
        digest: str,
        documents: DenseModel | None = None,
        path: Path | None = None,
        graph: KeptGraph | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.digest = digest
        self.dimension = model.dimension
        self.path, self.graph, self.refused = path, graph, ""
        self.fingerprint = fingerprint_of(digest, settings)
        self.model, self._documents = model, documents or model

    @property
    def options(self) -> dict[str, Any]:
        """What to call `load_encoder(name, **options)` with for the same encoder, whatever its files say then."""
        return {key: self.settings[key] for key in hints_of(EncoderParams)}

    @property
    def transformer(self) -> Any:
        """The model of transformers that is run, where it is run directly; else what runs it."""
        return getattr(self.model, "transformer", self.model)

    def encode(
        self,
        texts: Sequence[str],
        *,
        threads: int | None = None,
        what: Literal["queries", "documents"] = "queries",
        progress: bool = False,
    ) -> np.ndarray:
        """(n, d) float32: the vectors of n texts, in their order.

        Texts are put into batches by length and content, and every batch is computed by one thread: neither the order
        of the texts nor the number of threads changes a bit. (Other texts in the list may change the last bits.)

        Args:
            texts: may be empty strings.
            threads: None = one per core.
            what: which prompt is put before each text, where the model has prompts, and whose tower computes, where it
                has two.
            progress: show a bar on stderr.

        Raises:
            InputError: a text that is not a string, an unknown `what`, vectors that are not finite.
        """
        if what not in ("queries", "documents"):
            raise InputError(f"what={what}: expected queries or documents")
        prompt = self.settings["query_prompt" if what == "queries" else "document_prompt"]
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"text {number} is a {type(text).__name__}; expected a string")
        distinct = sorted(set(texts))  # a text that comes twice gets the same vector both times
        vectors = np.empty((len(distinct), self.dimension), dtype=np.float32)
        if not distinct:
            return vectors
        model = self.model if what == "queries" else self._documents
        tokens = model.tokenize([prompt + text for text in distinct])

        def compute(batch: list[int]) -> None:
            vectors[batch] = model.forward([tokens[number] for number in batch])

        lengths = [model.length(entry) for entry in tokens]
        compute_batches(compute, lengths, BATCH_TOKENS, threads, progress=progress)
        if not np.isfinite(vectors).all():
            text = distinct[int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])]
            raise InputError(f"{self.name}: the vector of {text[:60]!r} has NaN or infinite values; try dtype float32")
        number_of = {text: number for number, text in enumerate(distinct)}
        return vectors[[number_of[text] for text in texts]]


def fingerprint_of(digest: str, settings: dict[str, Any]) -> str:
    """What tells an encoder of weights and settings from others, whatever it is called."""
    return fingerprint("encoder", digest, {key: value for key, value in settings.items() if key != "model"})


def load_encoder(name: str, **given: Any) -> Encoder:
    """The encoder of a name, short name, hub id or folder.

    What is not given is taken from the files that sentence-transformers writes beside a model.

    Args:
        name: "minilm", "e5", "tas-b", … (the files of `encode/models`), the name of another package's encoder, a hub
            id `org/model`, a folder.
        given: fields of `EncoderParams`.

    Raises:
        InputError: no such model, settings that cannot be, a model that says nothing about its pooling.
        UnavailableError: a hub model that is neither in the cache nor reachable.
    """
    params = EncoderParams(**given)
    if (of := _own_code(name)) is not None:
        own_code = of(params)
        settings = {"model": name, **params.to_dict()}
        for prompt in ("query_prompt", "document_prompt"):
            settings[prompt] = getattr(of, prompt) if settings[prompt] is None else settings[prompt]
        return Encoder(name, own_code, settings, digest_of(name))
    return _by_model(find_model(name), params)


def open_encoder(name: str, **given: Any) -> Encoder:
    """The encoder of `load_encoder`, by its graph in the home folder, which is made on first use.

    On processors the graph takes half to nine tenths of the model's time, and neither torch nor transformers is
    imported; its vectors are those of the model but for the last bits. An encoder that has no graph (another kind of
    model, other arithmetic than float32) is that of `load_encoder`, and `refused` says why.

    Args and Raises: as `load_encoder`.
    """
    if (graph := encoder_graph(name, **given)) is not None:
        return _of_graph(*graph)
    encoder = load_encoder(name, **given)
    try:
        return by_graph(encoder)
    except Refused:
        return encoder


def encoder_graph(name: str, **given: Any) -> tuple[str, KeptGraph, dict[str, Any], str] | None:
    """Name, graph, settings and digest of the encoder of `open_encoder`, where its graph is in the home folder.

    None where it is not there; nothing is loaded.

    Raises:
        InputError, UnavailableError: as `load_encoder`.
    """
    params = EncoderParams(**given)
    if _own_code(name) is not None:
        return None
    folder = find_model(name)
    settings, own = _settings(folder, params)
    if own.beyond or settings["dtype"] != "float32" or settings["pooling"] is None:
        return None
    if (graph := kept_graph(dense_key(content_of(folder.path), settings))) is None:
        return None
    limit = check_about(graph)["limit"]
    settings["max_length"] = settings["max_length"] or limit
    return (folder.name, graph, settings, folder.digest) if settings["max_length"] <= limit else None


def by_graph(encoder: Encoder) -> Encoder:
    """An encoder by its graph in the home folder, which is made where it is not there.

    Raises:
        Refused: it has none.
    """
    if encoder.graph is not None:
        return encoder
    if encoder.path is None or encoder.refused:
        raise Refused(encoder.refused or "it is code of its own")
    try:
        key = dense_key(content_of(encoder.path), encoder.settings)
        graph = make_dense_graph(encoder.model, encoder.settings, encoder.digest, key)
    except Refused as refused:
        encoder.refused = str(refused)
        raise
    return _of_graph(encoder.name, graph, encoder.settings, encoder.digest)


def _of_graph(name: str, graph: KeptGraph, settings: dict[str, Any], digest: str) -> Encoder:
    return Encoder(name, GraphModel(graph, settings), settings, digest, graph=graph)


def _settings(folder: ModelFolder, params: EncoderParams) -> tuple[dict[str, Any], ModelSettings]:
    """The settings of a model of files, max_length None where only the model itself says it; and what its files say."""
    own, known = read_settings(folder.path), folder.known
    dtype = ("bfloat16" if has_bfloat16() else "float32") if params.dtype == "auto" else params.dtype
    settings = {
        "model": folder.name,
        "pooling": None if own.beyond else params.pooling or own.pooling or known.get("pooling"),
        "normalize": next(
            (v for v in (params.normalize, own.normalize, known.get("normalize")) if v is not None), False
        ),
        "max_length": params.max_length or own.max_length or known.get("max_length"),
        "dtype": dtype,
        "lowercase": own.lowercase,
        **{prompt: _prompt(prompt, params, own, known) for prompt in ("query_prompt", "document_prompt")},
    }
    return settings, own


def _by_model(folder: ModelFolder, params: EncoderParams) -> Encoder:
    """An encoder that torch computes."""
    settings, own = _settings(folder, params)
    from rnnreranker.encode.transformer import SentenceTransformerModel, TransformerModel

    model: DenseModel
    documents: DenseModel | None = None
    try:
        if own.beyond:
            if params.pooling is not None:
                raise InputError(f"{folder.path}: has a module {own.beyond}, so pooling is fixed; leave it out")
            model = of_modules = SentenceTransformerModel(folder.path, settings, own.beyond)
            documents = of_modules.documents
        else:
            if settings["pooling"] is None:
                raise InputError(
                    f"{folder.path}: its files do not say how token vectors become one; give pooling=mean or cls"
                )
            model = TransformerModel(folder.path / own.transformer, settings)
        _probe(model)
    except RnnrerankerError:
        raise
    except Exception as error:  # what libraries raise on settings and weights of another form has no bounds
        reason = f"{type(error).__name__} {error}".strip().split("\n")[0][:200]
        raise InputError(f"{folder.path}: cannot be loaded as an encoder ({reason}); get the model again") from None
    return Encoder(folder.name, model, settings, folder.digest, documents, path=folder.path)


def _probe(model: DenseModel) -> None:
    """Encode a text: settings that fit one another until then may not fit the weights."""
    model.forward(model.tokenize(["a"]))


def _prompt(name: str, params: EncoderParams, own: ModelSettings, known: dict[str, Any]) -> str:
    given = getattr(params, name)
    return given if given is not None else getattr(own, name) or known.get(name, "")


def digest_of(name: str) -> str:
    """What tells the model of a name from others, whatever the settings: of all its files, or name and version of code.

    Raises:
        InputError, UnavailableError: as `load_encoder`.
    """
    of = _own_code(name)
    return content_of(find_model(name).path) if of is None else of.digest()


def _own_code(name: str) -> type[TextModel] | None:
    """The model of its own code of that name, or None: files of a folder or of the hub."""
    model: Any = find("encoder", name) if name in names("encoder") else KnownModel
    return None if issubclass(model, KnownModel) else model


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 in hardware (Linux only; elsewhere the answer is no)."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
