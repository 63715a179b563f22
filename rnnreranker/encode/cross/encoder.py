"""Pairs of a query and a document to a score: cross-encoders, by a graph or by torch."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.files.json_files import read_json
from rnnreranker.encode.cross.graph import CrossGraph, cross_key, make_cross_graph
from rnnreranker.encode.cross.model import ARCHITECTURE, CrossModel
from rnnreranker.encode.graphs.session import LIBRARIES as OF_GRAPHS
from rnnreranker.encode.graphs.store import KeptGraph, Refused, kept_graph
from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.model_folder import ModelFolder, content_of, find_model
from rnnreranker.encode.model_settings import read_settings
from rnnreranker.encode.params import CrossEncoderParams

KIND = "cross-encoder"  # of method
BATCH_TOKENS = 1024  # padded tokens of a batch: what a core's caches like best
DEVICE_TOKENS = 2**16  # of a batch on a GPU
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")  # files of which every tokenizer has one
LIBRARIES = ("torch", "transformers", "sentence_transformers")  # another version may give other last bits


class ScoredPairs(NamedTuple):
    """The scores of n pairs, (n,) float32, and which of them were cut at the length limit, (n,) bool."""

    scores: np.ndarray
    cut: np.ndarray


class PairScorer:
    """A cross-encoder: a score of every pair of texts, larger = more relevant; made by `load_pair_scorer`.

    Or by its graph by `open_pair_scorer`. A score is the one logit of the model, as it is: no sigmoid is applied,
    whatever the model's files say.

    Attributes:
        name: hub id or path; device: where it computes; max_length: tokens at which a pair is cut, its longer text
            first.
        model: what computes; graph: its files, where that is a graph.
        fingerprint: of everything that a score depends on besides the texts.

    Args:
        folder: the model's files.
        params: what the caller says of it.
        model: as above, `graph` too.
        device: of torch.
    """

    def __init__(
        self,
        folder: ModelFolder,
        params: CrossEncoderParams,
        model: CrossModel | CrossGraph,
        graph: KeptGraph | None = None,
        device: str = "cpu",
    ) -> None:
        self.model: Any = model
        self.graph = graph
        self.max_length = model.max_length
        self.name = folder.name
        self.params = params
        self.device = device
        versions = [metadata.version(library) for library in (OF_GRAPHS if graph else LIBRARIES)]
        where = graph.content if graph else device.partition(":")[0]
        self.fingerprint = fingerprint(KIND, content_of(folder.path), self.max_length, model.prompt, where, versions)

    def score(self, pairs: Sequence[tuple[str, str]], *, threads: int | None = None) -> ScoredPairs:
        """The scores of pairs (query, document), in their order.

        Pairs are put into batches by length and content, and every batch is computed by one thread: neither the order
        of the pairs nor the number of threads changes a bit. (Other pairs in the list may change the last bits.)

        Args:
            pairs: any strings, empty ones too.
            threads: None = one per core; on a GPU one.

        Raises:
            InputError: a text that is not a string, a score that is NaN or infinite.
        """
        for number, pair in enumerate(pairs):
            if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                raise InputError(f"pair {number}: expected two strings, the text of a query and that of a document")
        distinct = sorted({(query, text) for query, text in pairs})
        scores = np.empty(len(distinct), dtype=np.float32)
        if not distinct:
            return ScoredPairs(scores, np.zeros(0, dtype=bool))
        tokens = self.model.tokens(distinct)
        lengths = [one.length for one in tokens]

        def compute(batch: list[int]) -> None:
            scores[batch] = self.model.forward([tokens[i] for i in batch])

        on_cpu = self.device == "cpu"
        compute_batches(compute, lengths, BATCH_TOKENS if on_cpu else DEVICE_TOKENS, threads if on_cpu else 1)
        if (wrong := np.flatnonzero(~np.isfinite(scores))).size:
            query, text = distinct[int(wrong[0])]
            raise InputError(
                f"{self.name}: {len(wrong)} of {len(distinct)} scores are NaN or infinite (first: {query[:40]!r} with "
                f"{text[:40]!r}); expected finite ones: train or get the model again"
            )
        number_of = {pair: number for number, pair in enumerate(distinct)}
        taken = [number_of[query, text] for query, text in pairs]
        return ScoredPairs(scores[taken], np.array([one.cut for one in tokens])[taken])


def load_pair_scorer(name: str, device: str | None = None, **given: Any) -> PairScorer:
    """The cross-encoder of a name, hub id or folder.

    Args:
        name: "ms-marco-minilm-l6", … (the files of `encode/cross_models`), a hub id `org/model`, a folder: of a model
            for sequence classification with one label, as transformers or sentence-transformers save it.
        device: "cpu" (where it is None), "cuda", "cuda:1" or "mps".
        given: fields of `CrossEncoderParams`.

    Raises:
        InputError: no such model, a model for something else or of several labels, a folder without tokenizer.
        UnavailableError: a hub model that is neither in the cache nor reachable.
    """
    params = CrossEncoderParams(**given)
    folder = find_model(name, KIND)
    _check_kind(folder.path)
    try:
        model = CrossModel(folder.path, params.max_length, device or "cpu")
        return PairScorer(folder, params, model, device=device or "cpu")
    except (OSError, ValueError, KeyError, RuntimeError, IndexError, AttributeError) as error:
        if isinstance(error, (InputError, UnavailableError)):
            raise
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{folder.path}: cannot be loaded as a cross-encoder ({reason}); get it again") from None


def open_pair_scorer(name: str, **given: Any) -> PairScorer:
    """The cross-encoder of `load_pair_scorer` on the processor, by its graph in the home folder, made on first use.

    Neither torch nor sentence-transformers is imported then; scores are those of the model but for the last bits. A
    cross-encoder that has no graph is that of `load_pair_scorer`.

    Args and Raises: as `load_pair_scorer`.
    """
    params = CrossEncoderParams(**given)
    digest = pair_digest_of(name)
    if (graph := kept_graph(cross_key(digest))) is None:
        try:
            graph = make_cross_graph(load_pair_scorer(name).model, digest)  # with its own length
        except Refused:
            return load_pair_scorer(name, **given)
    return PairScorer(find_model(name, KIND), params, CrossGraph(graph, params.max_length), graph)


def pair_digest_of(name: str) -> str:
    """What tells the model of a name from others, whatever the settings; nothing is loaded.

    Raises:
        InputError, UnavailableError: as `load_pair_scorer`.
    """
    return content_of(find_model(name, KIND).path)


def _check_kind(folder: Path) -> None:
    """Look that a folder holds a trained classifier with its tokenizer; another model would get random weights."""
    again = "get the model again"
    said = read_json(folder / read_settings(folder).transformer / "config.json", "settings file of the model", again)
    kinds = said.get("architectures") if isinstance(said, dict) else None
    if not isinstance(kinds, list) or not any(str(kind).endswith(ARCHITECTURE) for kind in kinds):
        shown = " or ".join(map(str, kinds)) if isinstance(kinds, list) and kinds else "model without architectures"
        raise InputError(
            f"{folder}: a {shown}; expected a cross-encoder (...{ARCHITECTURE} with one label); "
            "a model that makes vectors is for --encoder"
        )
    if not any(any(folder.rglob(pattern)) for pattern in TOKENIZERS):
        raise InputError(
            f"{folder}: no tokenizer in this folder; expected one of {', '.join(TOKENIZERS)}: save it beside the model"
        )
