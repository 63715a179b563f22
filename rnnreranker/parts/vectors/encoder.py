"""The encoder of an index's vectors, for queries, checked against the index's description."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.device import Devices, least_cosine
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import hints_of
from rnnreranker.encode.dense import Encoder, fingerprint_of
from rnnreranker.encode.graph import GraphModel, KeptGraph, cosine_of, kept_graph
from rnnreranker.encode.kept_queries import kept_queries
from rnnreranker.encode.model_folder import ModelFolder
from rnnreranker.encode.params import EncoderParams
from rnnreranker.parts.texts import FOLDER, documents_of
from rnnreranker.parts.vectors import open_vectors

AGAIN = "make the index again, or give its encoder"
TRIED = 32  # documents of which the shortest is encoded again


@dataclass(frozen=True)
class IndexEncoder:
    """Encodes the queries of an index.

    Attributes:
        index: the folder; said: the encoder in its rnnreranker.json.
        graph: the encoder's graph; None if torch computes, or if this machine has no graph yet.
    """

    index: Path
    said: dict[str, Any]
    graph: KeptGraph | None

    def queries(self, texts: list[str], threads: int | None, devices: Devices | None = None) -> np.ndarray:
        """(n, d) float32: the vectors of n queries, from the cache folder if they were encoded before.

        Raises:
            InputError, UnavailableError: as `open`.
        """
        if devices is not None or self.graph is None:
            return self.open(devices).encode(texts, threads=threads)
        name, settings = self.said["name"], self.said["settings"]
        kept = kept_queries(Encoder, name, settings, texts, threads, graph=self.graph, load=self.open)
        return kept["vectors"]

    def open(self, devices: Devices | None = None) -> Encoder:
        """The encoder; on devices always the model.

        A graph with other files than the one that made the index must give a document of the index its vector.

        Raises:
            InputError: another encoder than the index describes.
            UnavailableError: neither graph nor model is available.
        """
        name, settings = self.said["name"], self.said["settings"]
        if self.graph is not None and devices is None:
            own, folder = _settings(self.said, self.graph), ModelFolder(name, Path(name), self.graph.about["digest"])
            model = GraphModel(self.graph)
            encoder = Encoder(folder, EncoderParams(**settings), model, settings={"model": name, **own})
        else:
            encoder = (Encoder.open if self.said.get("graph") else Encoder.load)(name, devices=devices, **settings)
            if encoder.fingerprint != self.said.get("fingerprint", encoder.fingerprint):
                raise InputError(
                    f"{self.index}: its vectors were made by {name} as it was then, which is another encoder now; "
                    f"{AGAIN}"
                )
        made_by = self.said.get("graph")
        if encoder.graph is not None and encoder.graph.content != (isinstance(made_by, dict) and made_by["content"]):
            self._try(encoder)
        return encoder

    def _try(self, encoder: Encoder) -> None:
        """Encode the shortest of the first documents, and compare it with its vector in the index."""
        if not (self.index / FOLDER).is_dir():
            return
        first = itertools.islice(documents_of(self.index), TRIED)
        ordered = sorted((len(one.text), row, one.text) for row, one in enumerate(first) if one.text.strip())
        for _, row, text in ordered[:1]:
            kept = open_vectors(self.index).fetch(np.array([row]))
            cosine = cosine_of(encoder.encode([text], what="documents", threads=1), kept)
            if not cosine >= least_cosine(self.said.get("computed", {}).get("dtype")):
                raise InputError(
                    f"{encoder.graph.folder if encoder.graph else encoder.name}: does not give document {row + 1} of "
                    f"{self.index} its vector (cosine {cosine:.4f}); {AGAIN}"
                )


def index_encoder(index: Path, dense: dict[str, Any]) -> IndexEncoder | None:
    """The encoder for queries of an index; None if the index does not name one. Nothing is loaded.

    Args:
        index: the folder; dense: the dense part in its rnnreranker.json.

    Raises:
        InputError: a graph of another encoder.
    """
    said = {"settings": {}, **dense.get("encoder", {})}
    if not said.get("name"):
        return None
    graph, of = None, said.get("graph")
    if isinstance(of, dict):
        if not all(isinstance(of.get(name), str) for name in ("key", "content")):
            raise InputError(f"{index / 'rnnreranker.json'}: does not say of its graph key and content; {AGAIN}")
        graph = kept_graph(of["key"])
    if graph is not None:
        own = graph.about["dimension"], fingerprint_of(graph.about["digest"], _settings(said, graph))
        if own != (dense.get("dimension"), said.get("fingerprint")):
            raise InputError(f"{graph.folder}: is not the encoder that {index / 'rnnreranker.json'} says; {AGAIN}")
    return IndexEncoder(index, said, graph)


def _settings(said: dict[str, Any], graph: KeptGraph) -> dict[str, Any]:
    """Settings of the index, completed by what the model's files say."""
    given = {name: said["settings"].get(name) for name in hints_of(EncoderParams)}
    return {**given, "lowercase": bool(graph.about["lowercase"])}
