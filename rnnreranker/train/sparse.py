"""The learner of sparse encoders: SPLADE's weights of words, and its FLOPS regularisation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack
from sentence_transformers import SparseEncoder
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sparse_encoder.modules import SpladePooling
from torch import Tensor

from rnnreranker.base.errors import InputError
from rnnreranker.encode.model_folder import TextKind, check_kind, read_settings, words_of
from rnnreranker.labels.soft import Labels
from rnnreranker.parts.impacts.part import word_use
from rnnreranker.train.groups import GroupInputs
from rnnreranker.train.request import Start
from rnnreranker.train.text import TwoSidedLearner, by_length, of_columns
from rnnreranker.train.trainer import limit_of, loading, start_folder
from rnnreranker.train.validation import Scored

AT_ONCE = {"cpu": 2**20, "cuda": 2**27}  # logits held at a time: on a CPU what its cache holds
PROBE = ["a", "one text, and a longer one"]


class _Largest(torch.autograd.Function):
    """See `largest_logits`."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        largest = hidden.new_empty((hidden.shape[0], weight.shape[0]))
        step = max(64, AT_ONCE[hidden.device.type] // (hidden.shape[0] * hidden.shape[1]))
        for start in range(0, weight.shape[0], step):
            block = slice(start, start + step)
            logits = torch.nn.functional.linear(hidden, weight[block], bias[block])
            largest[:, block] = logits.amax(dim=1)
        ctx.save_for_backward(hidden, weight)
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Computes only words with a gradient: those with a weight above 0."""
        hidden, weight = ctx.saved_tensors
        (gradient,) = gradients
        of_hidden, of_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
        for row, own in enumerate(gradient):
            words = own.nonzero()[:, 0]
            if len(words):
                chosen = weight[words]  # (n, h)
                tokens = (hidden[row] @ chosen.T).argmax(dim=0)
                share = own[words].unsqueeze(1)
                of_hidden[row].index_add_(0, tokens, share * chosen)
                of_weight.index_add_(0, words, share * hidden[row, tokens])
        return of_hidden, of_weight, gradient.sum(dim=0)


def largest_logits(hidden: Tensor, attention: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(b, V): max over tokens of <hidden, weight> + bias, in a fraction of the time and memory of all logits.

    Args:
        hidden: (b, T, h), input of the head; attention: (b, T), 0 at padding, 1 at the first token.
        weight: (V, h) and bias: (V,) of the head.
    """
    padded = torch.where(attention.unsqueeze(2) > 0, hidden, hidden[:, :1])  # a repeated token changes no maximum
    return _Largest.apply(padded, weight, bias)


@contextlib.contextmanager
def skipped(head: torch.nn.Linear) -> Iterator[None]:
    """A context in which a layer returns its input."""
    head.forward = lambda given: given
    try:
        yield
    finally:
        del head.forward


class SparseLearner(TwoSidedLearner):
    """A SPLADE encoder, from a masked-language model or a saved SparseEncoder."""

    at_once = 512  # (documents, V) weights are dense

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        super().__init__(start, params, inputs, device)
        self.folder, path = start_folder(start.name, ("sparse-encoder", "encoder"))
        check_kind(self.folder, "sparse-encoder")
        own = read_settings(self.folder)
        self.prompts = {"query": own.query_prompt, "document": own.document_prompt}
        with loading(path, "a sparse encoder"):
            transformer = Transformer(str(path), transformer_task="fill-mask")
            transformer.max_seq_length = limit_of(path, transformer.model, params.max_length)
            prompts: dict[str, str] = {name: prompt for name, prompt in self.prompts.items() if prompt}
            self.model: SparseEncoder = SparseEncoder(
                modules=[transformer, SpladePooling("max")], device=device, prompts=prompts, similarity_fn_name="dot"
            )
            self._head = transformer.model.get_output_embeddings()
            words_of(self.model.tokenizer, len(self._head.weight), path)
        self._check(path)

    def _check(self, path: Path) -> None:
        """Check that one linear layer makes the logits, so that weights equal those of SpladePooling."""
        with torch.no_grad():
            self.model.eval()
            features = {name: one.to(self.model.device) for name, one in self.features(PROBE, "document").items()}
            expected, weights = self.model(dict(features))["sentence_embedding"], self._part(features)
            self.model.train()
        if weights.shape != expected.shape or not torch.allclose(weights, expected, rtol=1e-3, atol=1e-3):
            raise InputError(
                f"{path}: its words have no weights by one linear layer; expected a masked-language model whose head "
                "ends in one, as of BERT, DistilBERT and RoBERTa"
            )

    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        """As of every model; queries of SPLADE-doc have their words, (b, V): 1 or the count of each."""
        if kind == "document" or self.params.architecture != "doc":
            return super().features(texts, kind)
        tokens = self.model.tokenizer(texts, add_special_tokens=False)["input_ids"]
        counts = [torch.tensor(own, dtype=torch.int64).bincount(minlength=len(self._head.weight)) for own in tokens]
        words = torch.stack(counts).float()
        return {"words": words.clamp(max=1) if self.params.query_weights == "binary" else words}

    def weights(self, features: dict[str, Tensor]) -> Tensor:
        """(b, V): log(1 + relu(max over tokens of the logits)), or given words."""
        return features["words"] if "words" in features else by_length(features, self._part)

    def _part(self, features: dict[str, Tensor]) -> Tensor:
        head, transformer = self._head, self.model[0]
        with skipped(head):
            hidden = transformer(dict(features))["token_embeddings"]
        bias = torch.zeros_like(head.weight[:, 0]) if head.bias is None else head.bias
        return torch.log1p(torch.relu(largest_logits(hidden, features["attention_mask"], head.weight, bias)))

    def scores(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Tensor:
        return self.weights(query) @ self.weights(document).T

    def losses(self, inputs: Any, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """The loss, and the weighted regularisation of documents and of queries, which rises quadratically."""
        queries, documents = self.weights(inputs["query"]), self.weights(inputs["document"])
        params, of_docs = self.params, self.params.architecture == "doc"
        rise = params.regularizer_warmup
        rise = int(rise if rise >= 1 else rise * self.steps)
        share = 1.0 if step >= rise else (step / rise) ** 2
        of_queries = queries.abs().sum(dim=1).mean() if params.query_regularizer == "l1" else flops(queries)
        return (
            of_columns(self.ranking, queries @ documents.T, inputs["label"]),
            flops(documents) * (params.lambda_d * share),
            of_queries * (0.0 if of_docs else params.lambda_q * share),
        )

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        return torch.stack(self.losses(inputs, step)).sum()

    def both(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Sequence[Tensor]:
        sides = self.weights(query), self.weights(document)
        for used, weights in zip(self._used, sides, strict=True):
            used.append(csr_matrix(weights.float().cpu().numpy()))
        return [sides[0] @ sides[1].T] * 2

    def scored(self, lists: Sequence[Labels], others: dict[str, float]) -> Iterator[Scored]:
        """Adds the numbers of used words, and the FLOPS of a pair."""
        self._used: tuple[list[csr_matrix], list[csr_matrix]] = [], []
        yield from super().scored(lists, others)
        queries, documents = (vstack(side, "csr") for side in self._used)
        frequencies = np.bincount(documents.indices, minlength=documents.shape[1])
        others |= word_use(queries, frequencies, documents.shape[0])


def flops(weights: Tensor) -> Tensor:
    """Sum over words of the squared mean of (b, V) weights."""
    return torch.sum(torch.mean(weights, dim=0) ** 2)
