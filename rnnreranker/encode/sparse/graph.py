"""The graph of a sparse encoder: SPLADE's largest logits over a text's tokens, run in place of the model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.encode.graphs.near import cosine_of
from rnnreranker.encode.graphs.session import CutTokens, GraphSession
from rnnreranker.encode.graphs.store import KeptGraph, Refused
from rnnreranker.encode.in_batches import padded

if TYPE_CHECKING:
    from rnnreranker.encode.sparse.modules import SparseModules


class SparseGraph:
    """A masked-language model with SPLADE's pooling as a graph, and its tokenizer; as `SparseModules`.

    Args:
        graph: its files.

    Raises:
        InputError: files that are damaged.
    """

    def __init__(self, graph: KeptGraph) -> None:
        self.vocabulary, self.words = int(graph.about["vocabulary"]), str(graph.about["words"])
        self.limit: int | None = graph.about["limit"]
        self._pad, self._lowercase = int(graph.about["pad"]), bool(graph.about["lowercase"])
        self.session = GraphSession(graph)

    def tokens(self, texts: Sequence[str], limit: int) -> list[CutTokens]:
        """What `forward` takes of each text, cut at a limit."""
        return self.session.tokens([text.lower() for text in texts] if self._lowercase else list(texts), limit)

    def forward(self, batch: list[CutTokens], what: str) -> np.ndarray:
        """(b, V) float32: the weights of a batch of texts."""
        return self.weights(*padded([one.ids for one in batch], self._pad))

    def weights(self, tokens: np.ndarray, attention: np.ndarray) -> np.ndarray:
        """(b, V) float32: the weights of a batch; tokens, attention: (b, longest) int64, as of `padded`."""
        return self.session.run(tokens=tokens, attention=attention)


def make_sparse_graph(model: SparseModules, key: str) -> KeptGraph:
    """The graph of a SPLADE model that pools by maximum, made where it is not there; key: its name.

    Raises:
        Refused: the encoder has none: other modules, another kind of model, other tokens, weights whose cosine to those
            of the model is below `LEAST_COSINE`.
    """
    from rnnreranker.encode.graphs import export as graph_export

    if reason := model.other_than_splade():
        raise Refused(reason)
    transformer, tokenizer = model.transformer, model.tokenizer
    about = {"vocabulary": model.vocabulary, "words": model.words, "limit": model.limit}
    about |= {"pad": tokenizer.pad_token_id or 0, "lowercase": model.lowercase}

    def compare(made: KeptGraph) -> dict[str, Any]:
        graph = SparseGraph(made)
        texts = [text for text in graph_export.probes(tokenizer) if text.strip()]
        limit = model.limit or 512
        ours, theirs = graph.tokens(texts, limit), model.tokens(texts, limit)
        graph_export.same_tokens([one.ids for one in ours], [model.numbers(text) for text in texts])
        batches = graph_export.one_by_one(len(texts))
        pairs = [(graph.forward(ours[own], "document"), model.forward(theirs[own], "document")) for own in batches]
        cosine = graph_export.check_near(min(cosine_of(*pair) for pair in pairs))
        return {"cosine": cosine, "largest_difference": max(float(np.abs(one - other).max()) for one, other in pairs)}

    inputs = ["tokens", "attention"]
    return graph_export.make_graph(key, _Pooled(transformer), inputs, transformer, tokenizer, about, compare)


class _Pooled(AbstractContextManager[Any]):
    """A module of torch that gives the weights of a masked-language model's words; the model is as it was afterwards.

    In place of the layer that gives every token a logit of every word stands one that takes the largest of a text at
    once: tokens that are padding are replaced by the text's first before, which changes no maximum, and the bias is
    added after, which is the same, as rounding keeps the order.
    """

    def __init__(self, transformer: Any) -> None:
        self._transformer, self._last = transformer, transformer.get_output_embeddings()
        names = [name for name, module in transformer.named_modules() if module is self._last]
        if not names:
            raise Refused("its logits are of no layer of their own")
        above, _, self._name = names[0].rpartition(".")
        self._above = transformer.get_submodule(above)

    def __enter__(self) -> Any:
        import torch

        transformer, last = self._transformer, self._last

        class Largest(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight, self.bias = last.weight, last.bias
                self.attention: Any = None

            def forward(self, states: Any) -> Any:
                kept = torch.where(self.attention.unsqueeze(-1) == 1, states, states[:, :1])
                logits = torch.matmul(kept, self.weight.t()).amax(dim=1)
                return logits if self.bias is None else logits + self.bias

        largest = Largest()

        class Weights(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.transformer = transformer

            def forward(self, tokens: Any, attention: Any) -> Any:
                largest.attention = attention
                return transformer(input_ids=tokens, attention_mask=attention).logits.relu().log1p()

        setattr(self._above, self._name, largest)
        return Weights()

    def __exit__(self, *raised: object) -> None:
        setattr(self._above, self._name, self._last)
