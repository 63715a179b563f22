"""The encoder of an index's vectors, for queries, checked against the index's description."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.encode.graph import GraphModel, kept_graph
from rnnreranker.encode.kinds import Encoder, fingerprint_of
from rnnreranker.encode.model_folder import ModelFolder
from rnnreranker.encode.params import EncoderParams

AGAIN = "make the index again, or give its encoder"


@dataclass(frozen=True)
class IndexEncoder:
    """Encodes the queries of an index.

    Attributes:
        said: the encoder in rnnreranker.json; graph: of it, None if torch computes or this machine has none.
    """

    index: Path
    said: dict[str, Any]
    graph: GraphModel | None

    def queries(self, texts: list[str], threads: int | None, devices: Devices | None = None) -> np.ndarray:
        """(n, d) float32: the vectors of n queries, cached; errors as `open`."""
        if devices is None and not self.said.get("graph"):  # torch computes, even where a graph is kept by now
            return self.open().encode(texts, threads=threads)
        name, settings = self.said["name"], self.said["settings"]
        graph, load = (None if devices else self.graph), partial(self.open, devices)
        kept = Encoder.kept_queries(name, settings, texts, threads, devices, graph=graph, load=load)
        return kept["vectors"]

    def open(self, devices: Devices | None = None) -> Encoder:
        """The encoder; on devices always the model.

        Raises:
            InputError, UnavailableError: another encoder than the index describes; neither graph nor model is
                available.
        """
        name, settings = self.said["name"], self.said["settings"]
        if self.graph is not None and devices is None:
            folder = ModelFolder(name, Path(name), self.graph.about["digest"])
            encoder = Encoder(folder, EncoderParams(**settings), self.graph)
        else:
            encoder = (Encoder.open if self.said.get("graph") else Encoder.load)(name, devices=devices, **settings)
            if encoder.fingerprint != self.said.get("fingerprint", encoder.fingerprint):
                raise InputError(f"{self.index}: the files of its encoder {name} have changed since; {AGAIN}")
        return encoder


def index_encoder(index: Path, dense: dict[str, Any]) -> IndexEncoder | None:
    """The encoder for queries of an index; None if the index does not name one. Nothing is loaded.

    Args:
        dense: the dense part in rnnreranker.json.

    Raises:
        InputError: a graph of another encoder.
    """
    said = {"settings": {}, **dense.get("encoder", {})}
    if not said.get("name"):
        return None
    graph = kept_graph(said["graph"]["key"]) if said.get("graph") else None
    if graph is not None:
        own = (
            graph.about["dimension"],
            fingerprint_of(graph.about["digest"], graph.about["settings"] | said["settings"]),
        )
        if own != (dense.get("dimension"), said.get("fingerprint")):
            raise InputError(f"{graph.folder}: is not the encoder that {index / 'rnnreranker.json'} says; {AGAIN}")
    return IndexEncoder(index, said, graph)
