"""Pairs of a query and a document to a score: cross-encoders, by a graph or by torch."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.device import EXACT
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.files.json_files import read_json
from rnnreranker.encode.base import TextEncoder
from rnnreranker.encode.cross.graph import CrossGraph, make_cross_graph
from rnnreranker.encode.cross.model import ARCHITECTURE, CrossModel
from rnnreranker.encode.graphs.session import LIBRARIES as OF_GRAPHS
from rnnreranker.encode.graphs.store import KeptGraph, key_of
from rnnreranker.encode.in_batches import encode_texts
from rnnreranker.encode.model_folder import ModelFolder, content_of
from rnnreranker.encode.model_settings import read_settings
from rnnreranker.encode.params import CrossEncoderParams

KIND = "cross-encoder"  # of method
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")  # files of which every tokenizer has one
LIBRARIES = ("torch", "transformers", "sentence_transformers")  # another version may give other last bits


class ScoredPairs(NamedTuple):
    """The scores of n pairs, (n,) float32, and which of them were cut at the length limit, (n,) bool."""

    scores: np.ndarray
    cut: np.ndarray


class PairScorer(TextEncoder):
    """A cross-encoder: a score of every pair of texts, larger = more relevant; a classifier of one label.

    A score is the one logit of the model, as it is: no sigmoid is applied, whatever the model's files say.

    Attributes:
        max_length: tokens at which a pair is cut, its longer text first.
    """

    KIND: ClassVar[str] = KIND
    Params: ClassVar[type[settings.Params]] = CrossEncoderParams
    what: ClassVar[str] = "a cross-encoder"
    graph_kind: ClassVar[str] = "cross"

    def __init__(
        self,
        folder: ModelFolder,
        params: CrossEncoderParams,
        model: CrossModel | CrossGraph,
        graph: KeptGraph | None = None,
        computed: str = "cpu",
    ) -> None:
        self.model: Any = model
        self.graph, self.params = graph, params
        self.max_length = model.max_length
        self.name = folder.name
        versions = [metadata.version(library) for library in (OF_GRAPHS if graph else LIBRARIES)]
        where = graph.content if graph else computed
        self.digest = content_of(folder.path)
        self.fingerprint = fingerprint(KIND, self.digest, self.max_length, model.prompt, where, versions)

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        folder = super().files(name)
        _check_kind(folder.path)
        return folder

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str = "cpu", dtype: str = EXACT) -> Self:
        """As every encoder; the fingerprint is of the kind of device and the type, too."""
        computed = " ".join([device.partition(":")[0], *([] if dtype == EXACT else [dtype])])
        return cls(folder, params, CrossModel(folder.path, params.max_length, device, dtype), computed=computed)

    @classmethod
    def by_graph_of(cls, folder: ModelFolder, params: Any, graph: KeptGraph) -> Self:
        return cls(folder, params, CrossGraph(graph, params.max_length), graph)

    def make_graph(self) -> KeptGraph:
        return make_cross_graph(self.model, key_of(self.graph_kind, self.digest))

    def score(self, pairs: Sequence[tuple[str, str]], *, threads: int | None = None) -> ScoredPairs:
        """The scores of pairs (query, document), in their order.

        Args:
            pairs: any strings, empty ones too; `encode_texts` says what pairs do to each other.
            threads: None = one per core.

        Raises:
            InputError: a text that is not a string, a score that is NaN or infinite.
        """
        for number, pair in enumerate(pairs):
            if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                raise InputError(f"pair {number}: expected two strings, the text of a query and that of a document")
        given = [(query, text) for query, text in pairs]
        forwards = [one.model.forward for one in self.on_devices]
        computed = encode_texts(given, self.model.tokens, forwards, devices=self.devices, threads=threads)
        scores = np.concatenate([np.empty(0, dtype=np.float32), *computed.parts])[computed.rows]
        if (wrong := np.flatnonzero(~np.isfinite(scores))).size:
            query, text = pairs[int(wrong[0])]
            raise InputError(
                f"{self.name}: {len(wrong)} of {len(pairs)} scores are NaN or infinite (first: {query[:40]!r} with "
                f"{text[:40]!r}); expected finite ones: train or get the model again"
            )
        return ScoredPairs(scores, np.array([one.cut for one in computed.read], dtype=bool))


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
