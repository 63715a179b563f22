"""The graph of a late-interaction encoder: a vector for every token, run in place of the model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.private.sentence_transformers import skipped_tokens
from rnnreranker.encode.graphs.near import cosine_of
from rnnreranker.encode.graphs.session import GraphSession
from rnnreranker.encode.graphs.store import KeptGraph, Refused
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.late.model import Read, lengths_of
from rnnreranker.encode.model_settings import TextKind
from rnnreranker.encode.params import LateEncoderParams

if TYPE_CHECKING:
    from rnnreranker.encode.late.model import LateModel

MASK = "MultiVectorMask"  # of sentence-transformers: says which tokens count


class LateGraph:
    """A late-interaction model as a graph, and its tokenizer; as `LateModel`.

    Args:
        graph: its files; params: lengths that are not the model's own.

    Raises:
        InputError: files that are damaged, lengths beyond the model's.
    """

    def __init__(self, graph: KeptGraph, params: LateEncoderParams) -> None:
        about = graph.about
        own = (about["query_length"], about["document_length"])
        self.query_length, self.document_length = lengths_of(params, own, about["limit"], graph.folder)
        self.prompts: dict[str, str] = about["prompts"]
        self.expands = about["expansion"] is not None
        self._about = about
        self._skipped = {kind: np.array(about["skipped"][kind], dtype=np.int64) for kind in about["skipped"]}
        self.session = GraphSession(graph)

    def read(self, texts: Sequence[str], kind: TextKind) -> list[Read]:
        """What `vectors` takes of each text: its tokens with the prompt's, cut; queries are expanded."""
        limit = self.query_length if kind == "query" else self.document_length
        given = [self.prompts[kind] + text for text in texts]
        tokenized = self.session.tokens([text.lower() for text in given] if self._about["lowercase"] else given, limit)
        if kind == "document" or not self.expands:
            return [Read(one.ids, [1] * len(one.ids), one.cut) for one in tokenized]
        mask, attends = self._about["expansion"]
        rest = [limit - len(one.ids) for one in tokenized]
        return [
            Read(one.ids + [mask] * more, [1] * len(one.ids) + [int(attends)] * more, one.cut)
            for one, more in zip(tokenized, rest, strict=True)
        ]

    def vectors(self, batch: Sequence[Read], kind: TextKind) -> list[tuple[np.ndarray, np.ndarray]]:
        """Vectors (t, d) float32 and numbers (t,) int32 of the tokens of each text of a batch that count."""
        tokens, attention = padded([one.ids for one in batch], self._about["pad"])
        real = attention.astype(bool)
        for row, one in zip(attention, batch, strict=True):
            row[: len(one.ids)] = one.attention
        counted = real & ~np.isin(tokens, self._skipped[kind])
        vectors = self.run(tokens, attention)
        return [(vectors[row][its], tokens[row][its].astype(np.int32)) for row, its in enumerate(counted)]

    def run(self, tokens: np.ndarray, attention: np.ndarray) -> np.ndarray:
        """(b, longest, d) float32: a vector for every token; tokens, attention: (b, longest) int64."""
        return self.session.run(tokens=tokens, attention=attention)


def make_late_graph(model: LateModel, key: str) -> KeptGraph:
    """The graph of a late-interaction model as it was loaded with its own lengths, made where it is not there.

    Args:
        model: as above; key: the name of the graph.

    Raises:
        Refused: the encoder has none: modules that are not known, another kind of model, other tokens, vectors whose
            cosine to those of the model is below `LEAST_COSINE`.
    """
    from rnnreranker.encode.graphs import export as graph_export

    modules = list(model.modules.children())
    kinds = [type(module).__name__ for module in modules]
    if kinds[0] != "Transformer" or not set(kinds[1:]) <= {"Dense", MASK, "Normalize"} or kinds.count(MASK) != 1:
        raise Refused(f"its modules are {', '.join(kinds)}")
    mask = modules[kinds.index(MASK)]
    if mask.keep_only_token_ids:
        raise Refused("it keeps some tokens only")
    transformer, tokenizer = modules[0].model, model.modules.tokenizer

    def compare(made: KeptGraph) -> dict[str, Any]:
        graph = LateGraph(made, LateEncoderParams())
        texts = [text for text in graph_export.probes(tokenizer) if text.strip()]
        of_kinds: tuple[TextKind, ...] = ("query", "document")
        return {"cosine": graph_export.check_near(min(_compared(model, graph, texts, kind) for kind in of_kinds))}

    about, computed = _about(model, mask), nullcontext(_module([module for module in modules if module is not mask]))
    return graph_export.make_graph(key, computed, ["tokens", "attention"], transformer, tokenizer, about, compare)


def _about(model: LateModel, mask: Any) -> dict[str, Any]:
    """What a graph needs to know: lengths, prompts, how queries are expanded, which tokens do not count."""
    first, tokenizer = model.modules[0], model.modules.tokenizer
    expansion = getattr(first, "query_expansion", None)
    expands = None
    if expansion:
        token = expansion.get("token") or tokenizer.mask_token
        expands = [int(tokenizer.convert_tokens_to_ids(token)), bool(expansion.get("attend"))]
    skipped = skipped_tokens(mask)
    return {
        "limit": model.limit,
        "query_length": model.query_length,
        "document_length": model.document_length,
        "prompts": dict(model.prompts),
        "expansion": expands,
        "skipped": {kind: skipped if kind in mask.skiplist_tasks else [] for kind in ("query", "document")},
        "lowercase": bool(getattr(first, "do_lower_case", False)),
        "pad": tokenizer.pad_token_id or 0,
    }


def _compared(model: LateModel, graph: LateGraph, texts: list[str], kind: TextKind) -> float:
    """The lowest cosine between the vectors of tokens of model and graph, one text at a time and together.

    Raises:
        Refused: other tokens.
    """
    from rnnreranker.encode.graphs.export import one_by_one, same_tokens

    lowest = 1.0
    for batch in map(texts.__getitem__, one_by_one(len(texts))):
        ours = graph.vectors(graph.read(batch, kind), kind)
        theirs = model.vectors(model.read(batch, kind), kind)
        same_tokens([ids.tolist() for _, ids in ours], [ids.tolist() for _, ids in theirs])
        pairs = [(own, other) for (own, _), (other, _) in zip(ours, theirs, strict=True) if len(own)]
        lowest = min([lowest, *(cosine_of(own, other) for own, other in pairs)])
    return lowest


def _module(computed: list[Any]) -> Any:
    """What modules of sentence-transformers compute, one after the other, as one of torch."""
    import torch

    class Vectors(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.modules_of = torch.nn.ModuleList(computed)

        def forward(self, tokens: Any, attention: Any) -> Any:
            features = {"input_ids": tokens, "attention_mask": attention}
            for module in self.modules_of:
                features = module(features)
            return features["token_embeddings"]

    return Vectors()
