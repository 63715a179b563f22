"""The graph of a dense encoder: made of the model of transformers with its pooling, and run in its place."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.encode.graphs.near import cosine_of
from rnnreranker.encode.graphs.session import GraphSession
from rnnreranker.encode.graphs.store import KeptGraph, Refused, key_of
from rnnreranker.encode.in_batches import padded

if TYPE_CHECKING:
    from rnnreranker.encode.transformer import TransformerModel

KIND = "dense"
ABOUT: dict[str, type] = {"digest": str, "dimension": int, "pad": int, "limit": int, "lowercase": bool, "cosine": float}


class GraphModel:
    """A transformer with its pooling as a graph, and its tokenizer; one thread a batch.

    Args:
        graph: its files.
        settings: max_length and lowercase count here, the others are in the graph.

    Raises:
        InputError: files that are damaged.
    """

    def __init__(self, graph: KeptGraph, settings: dict[str, Any]) -> None:
        self._lowercase = bool(settings["lowercase"])
        self._max_length = int(settings["max_length"])
        self._pad = int(graph.about["pad"])
        self.dimension = int(graph.about["dimension"])
        self.session = GraphSession(graph)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """The token numbers of each text, cut at max_length; never empty."""
        texts = [text.lower() for text in texts] if self._lowercase else list(texts)
        return [own.ids or [self._pad] for own in self.session.tokens(texts, self._max_length)]

    def length(self, tokens: list[int]) -> int:
        """The number of tokens of a text."""
        return len(tokens)

    def forward(self, batch: list[list[int]]) -> np.ndarray:
        """(b, d) float32: the vectors of a batch of token lists."""
        return self.vectors(*padded(batch, self._pad))

    def vectors(self, tokens: np.ndarray, attention: np.ndarray) -> np.ndarray:
        """(b, d) float32: the vectors of a batch; tokens, attention: (b, longest) int64, as of `padded`."""
        return self.session.run(tokens=tokens, attention=attention)


def dense_key(content: str, settings: dict[str, Any]) -> str:
    """The name of the graph of an encoder: of all its files, and of those settings that are in the graph.

    Args:
        content: as of `content_of`; settings: of the encoder.
    """
    truncated = [settings["truncate_dim"]] if settings.get("truncate_dim") else []
    return key_of(KIND, content, settings["pooling"], bool(settings["normalize"]), *truncated)


def check_about(graph: KeptGraph, remedy: str = "remove this folder, and it is made again") -> dict[str, Any]:
    """What a graph says of its encoder; InputError: something else than of a dense encoder."""
    said = graph.about
    if wrong := [name for name, kind in ABOUT.items() if type(said.get(name)) is not kind]:
        raise InputError(f"{graph.folder}: its description has no {wrong[0]} of an encoder; {remedy}")
    return said


def make_dense_graph(model: Any, settings: dict[str, Any], digest: str, key: str) -> KeptGraph:
    """The graph of an encoder that transformers runs, made where it is not there.

    Args:
        model: what computes; settings, digest: of the encoder; key: as of `dense_key`.

    Raises:
        Refused: the encoder has none: another kind of model, other tokens, vectors whose cosine to those of the model
            is below `LEAST_COSINE`.
    """
    from rnnreranker.encode.graphs import export as graph_export
    from rnnreranker.encode.transformer import TransformerModel

    if not isinstance(model, TransformerModel):
        raise Refused("it is not run by transformers")
    transformer, tokenizer = model.transformer, model.tokenizer
    about = {"digest": digest, "dimension": model.dimension, "pad": model.pad, "limit": model.limit}
    about["lowercase"] = bool(settings["lowercase"])

    def compare(made: KeptGraph) -> dict[str, Any]:
        graph, texts = GraphModel(made, settings), graph_export.probes(tokenizer)
        graph_export.same_tokens(graph.tokenize(texts), model.tokenize(texts))
        return {"cosine": graph_export.check_near(lowest_cosine(model, graph))}

    inputs = ["tokens", "attention"]
    return graph_export.make_graph(key, nullcontext(_module(model)), inputs, transformer, tokenizer, about, compare)


def _module(model: TransformerModel) -> Any:
    """What `model.vectors` computes, as a module of torch."""
    import torch

    class Vectors(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer = model.transformer  # its weights keep their names

        def forward(self, tokens: Any, attention: Any) -> Any:
            return model.vectors(tokens, attention)

    return Vectors()


def lowest_cosine(model: TransformerModel, other: Any) -> float:
    """The lowest cosine between the vectors of two models, of texts of any kind, one at a time and together.

    Args:
        model: whose tokens both are given; other: what computes the same vectors in another way.
    """
    from rnnreranker.encode.graphs.export import one_by_one, probes

    tokens = model.tokenize(probes(model.tokenizer))
    return min(cosine_of(other.forward(tokens[own]), model.forward(tokens[own])) for own in one_by_one(len(tokens)))
