"""The graph of a cross-encoder: the one logit of a pair of texts, run in place of the model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from rnnreranker.encode.cross.model import CrossModel
from rnnreranker.encode.graphs.session import CutTokens, GraphSession
from rnnreranker.encode.graphs.store import KeptGraph, Refused
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.model_settings import length_of

LARGEST_DIFFERENCE = 1e-3  # of a logit that graph and model give


class CrossGraph:
    """A classifier with one label as a graph, and its tokenizer; as `CrossModel`.

    Args:
        graph: its files; max_length: tokens at which a pair is cut, None = the model's own.

    Raises:
        InputError: files that are damaged, a length beyond the model's.
    """

    def __init__(self, graph: KeptGraph, max_length: int | None) -> None:
        about = graph.about
        self.prompt = str(about["prompt"])
        self.max_length = length_of(max_length, about["limit"], graph.folder)
        self._pad, self._kinds = about["pad"], about["kinds"]
        self.session = GraphSession(graph)

    def tokens(self, pairs: Sequence[tuple[str, str]]) -> list[CutTokens]:
        """What `forward` takes of each pair, cut at the limit, its longer text first."""
        return self.session.tokens_of_pairs([(self.prompt + query, text) for query, text in pairs], self.max_length)

    def forward(self, batch: Sequence[CutTokens]) -> np.ndarray:
        """(b,) float32: the scores of a batch of pairs."""
        tokens, attention = padded([one.ids for one in batch], self._pad)
        inputs = {"tokens": tokens, "attention": attention}
        if self._kinds is not None:
            inputs["kinds"] = np.full_like(tokens, self._kinds)
            for row, one in zip(inputs["kinds"], batch, strict=True):
                row[: one.length] = one.kinds
        return self.run(**inputs)

    def run(self, **inputs: np.ndarray) -> np.ndarray:
        """(b,) float32: the scores of a batch; inputs: (b, longest) int64 each."""
        return self.session.run(**inputs)


def make_cross_graph(model: CrossModel, key: str) -> KeptGraph:
    """The graph of a cross-encoder that was loaded on the processor with its own length, made where it is not there.

    Args:
        model: as above; key: the name of the graph.

    Raises:
        Refused: it has none: more modules than a classifier, another kind of model, other tokens, logits that differ by
            more than `LARGEST_DIFFERENCE`.
    """
    from rnnreranker.encode.graphs import export as graph_export

    if (count := len(list(model.modules.children()))) != 1 or not model.right:
        raise Refused("it pads on the left" if count == 1 else f"it has {count} modules, not a classifier alone")
    transformer, tokenizer = model.modules.model, model.modules.tokenizer
    texts = graph_export.probes(tokenizer)
    pairs = [*zip(texts, texts[::-1], strict=True), *itertools.pairwise(texts)]
    theirs = model.tokens(pairs)
    kinds = "token_type_ids" in theirs[0].inputs
    about = {"prompt": model.prompt, "limit": model.max_length, "pad": tokenizer.pad_token_id or 0}
    about["kinds"] = (tokenizer.pad_token_type_id or 0) if kinds else None

    def compare(made: KeptGraph) -> dict[str, Any]:
        graph = CrossGraph(made, None)
        ours = graph.tokens(pairs)
        read = [[one.inputs[name].tolist() for name in ("input_ids", "token_type_ids")[: 1 + kinds]] for one in theirs]
        graph_export.same_tokens(
            [([one.ids, one.kinds][: 1 + kinds], one.cut) for one in ours],
            [(own, one.cut) for own, one in zip(read, theirs, strict=True)],
        )
        batches = graph_export.one_by_one(len(pairs))
        apart = [np.abs(graph.forward(ours[own]) - model.forward(theirs[own])).max() for own in batches]
        if not (largest := float(max(apart))) <= LARGEST_DIFFERENCE:
            raise Refused(f"scores differ by up to {largest:.6f}; expected {LARGEST_DIFFERENCE} at most")
        return {"largest_difference": largest}

    inputs, computed = ["tokens", *(["kinds"] if kinds else []), "attention"], nullcontext(_module(transformer, kinds))
    return graph_export.make_graph(key, computed, inputs, transformer, tokenizer, about, compare)


def _module(transformer: Any, kinds: bool) -> Any:
    """The logit of a classifier, as a module of torch."""
    import torch

    class Scores(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer = transformer

        def forward(self, tokens: Any, *others: Any) -> Any:
            given = {"token_type_ids": others[0]} if kinds else {}
            return self.transformer(input_ids=tokens, attention_mask=others[-1], **given).logits[:, 0]

    return Scores()
