"""A sparse encoder while it learns: sentence-transformers' SparseEncoder, its batches, SpladeLoss, its scores."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack
from sentence_transformers import SparseEncoder
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sparse_encoder import SparseEncoderTrainer, SparseEncoderTrainingArguments
from sentence_transformers.sparse_encoder.callbacks import SpladeRegularizerWeightSchedulerCallback
from sentence_transformers.sparse_encoder.losses import SpladeLoss
from sentence_transformers.sparse_encoder.modules import SpladePooling
from torch import Tensor

from rnnreranker.base.errors import InputError
from rnnreranker.encode.model_folder import TextKind, check_kind, read_settings, words_of
from rnnreranker.labels.soft import Labels
from rnnreranker.parts.impacts.part import word_use
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.group.two_sided import TwoSidedLearner, of_columns, padded_parts
from rnnreranker.train.losses import Loss
from rnnreranker.train.model_files import limit_of, loading, start_folder
from rnnreranker.train.validation import Scored

AT_ONCE = {"cpu": 2**20, "cuda": 2**27}  # logits held at a time: on a CPU what its cache holds


class _Largest(torch.autograd.Function):
    """See `largest_logits`."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Block after block of words; no logit is kept but the largest."""
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
        """Only words with a gradient, those whose weight is above 0, are looked at again, for their token."""
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
    """(b, V): max over tokens of <hidden, weight> + bias.

    The logits of all tokens are neither kept nor given gradients, nearly all of which are 0: that takes a fraction of
    the time, and memory for no more than the largest.

    Args:
        hidden: (b, T, h) what the head of a masked-language model is given; attention: (b, T), 0 at padding, the first
            token of every text is none.
        weight: (V, h) and bias: (V,) of the head.
    """
    padded = torch.where(attention.unsqueeze(2) > 0, hidden, hidden[:, :1])  # a token that is there changes no maximum
    largest: Tensor = _Largest.apply(padded, weight, bias)
    return largest


@contextlib.contextmanager
def skipped(head: torch.nn.Linear) -> Iterator[None]:
    """A block in which a layer gives back what it is given."""
    head.forward = lambda given: given  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del head.forward


PROBE = ["a", "one text, and a longer one"]


class SparseLearner(TwoSidedLearner):
    """See `Learner`.

    Args:
        encoder: a name, folder or hub id, of a masked-language model or as sentence-transformers saves a SparseEncoder.
        params: of the training; loss: what it lowers, besides the regularisation.
        inputs: the texts.
        device: cpu or cuda.

    Raises:
        InputError: a model that is no masked-language model, a tokenizer with other words than its model.
    """

    trainer = SparseEncoderTrainer
    arguments = SparseEncoderTrainingArguments

    def __init__(self, encoder: str, params: Any, loss: Loss, inputs: GroupInputs, device: str) -> None:
        super().__init__(encoder, params, loss, inputs)
        self._doc, self._binary = params.architecture == "doc", params.query_weights == "binary"
        self.folder, path = start_folder(encoder, ("sparse-encoder", "encoder"))
        check_kind(self.folder, "sparse-encoder")
        own = read_settings(self.folder)
        self._prompts = {"query": own.query_prompt, "document": own.document_prompt}
        with loading(path, "a sparse encoder"):
            transformer = Transformer(str(path), transformer_task="fill-mask")
            transformer.max_seq_length = limit_of(path, transformer.model, params.max_length)
            prompts = {name: prompt for name, prompt in self._prompts.items() if prompt}
            self.model = SparseEncoder(
                modules=[transformer, SpladePooling("max")], device=device, prompts=prompts, similarity_fn_name="dot"
            )
            self._vocabulary = int(transformer.model.get_output_embeddings().weight.shape[0])
            words_of(self.model.tokenizer, self._vocabulary, path)
        self._weigher = SparseTexts(self.model)
        self._check(path)
        self.loss = SpladeLoss(
            self._weigher,  # type: ignore[arg-type]
            InnerProductLoss(loss),
            document_regularizer_weight=params.lambda_d,
            query_regularizer_weight=0.0 if self._doc else params.lambda_q,
            query_regularizer=L1() if params.query_regularizer == "l1" else None,
        )
        self.callbacks = (RegularizerWarmup(self.loss, params.regularizer_warmup),)

    def _check(self, path: Path) -> None:
        """Look that the weights are those of SpladePooling: a model may do more than one layer to its logits."""
        with torch.no_grad():
            self.model.eval()
            features = {name: value.to(self.model.device) for name, value in self.features(PROBE, "document").items()}
            expected = self.model(dict(features))["sentence_embedding"]
            weights = self._weigher.weights(features)
            self.model.train()
        if weights.shape != expected.shape or not torch.allclose(weights, expected, rtol=1e-3, atol=1e-3):
            raise InputError(
                f"{path}: its words have no weights by one linear layer; expected a masked-language model whose head "
                "ends in one, as of BERT, DistilBERT and RoBERTa"
            )

    def scores(self, lists: Sequence[Labels]) -> Scored:
        """The inner products of all queries and candidates; how many words they use, and the FLOPS of a pair."""
        queries, documents, candidates = self.encoded(lists)
        scores = [
            (documents[own] @ queries[row].T).toarray().ravel().astype(np.float32) for row, own in enumerate(candidates)
        ]
        frequencies = np.bincount(documents.indices, minlength=self._vocabulary)
        return Scored(scores, scores, word_use(queries, frequencies, documents.shape[0]))

    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        if kind == "query" and self._doc:
            return {"sentence_embedding": self._words(texts)}
        features = self.model.preprocess(texts, prompt=self._prompts[kind] or None)
        return {name: value for name, value in features.items() if torch.is_tensor(value) and value.dim() == 2}

    def _words(self, texts: list[str]) -> Tensor:
        """(b, V): 1 for every word of every text, or how often it stands there; special tokens left out."""
        counts = torch.zeros((len(texts), self._vocabulary))
        for row, tokens in enumerate(self.model.tokenizer(texts, add_special_tokens=False)["input_ids"]):
            for token, count in Counter(tokens).items():
                counts[row, token] = 1 if self._binary else count
        return counts

    def parts(self, features: dict[str, Tensor], kind: TextKind) -> Iterator[csr_matrix]:
        """Their weights, (c, V)."""
        return (csr_matrix(part.float().cpu().numpy()) for part in self._weigher.parts(features))

    def joined(self, parts: list[csr_matrix], rows: np.ndarray) -> csr_matrix:
        return vstack(parts, "csr")[rows]


class SparseTexts(torch.nn.Module):
    """Queries and documents of a sparse encoder, as SpladeLoss calls it; queries of SPLADE-doc stay as they are.

    Texts of about the same length go through the model together.
    """

    def __init__(self, model: SparseEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """The features' `sentence_embedding`, (b, V)."""
        if "sentence_embedding" in features:
            return features
        order = torch.argsort(features["attention_mask"].sum(dim=1), stable=True)
        parts = list(self.parts({name: value[order] for name, value in features.items()}))
        return {"sentence_embedding": torch.cat(parts)[torch.argsort(order)]}

    def parts(self, features: dict[str, Tensor]) -> Iterator[Tensor]:
        """(c, V) each: the weights of texts that stand in order of their lengths."""
        if "sentence_embedding" in features:
            yield features["sentence_embedding"]
            return
        for part in padded_parts(features):
            yield self.weights(part)

    def weights(self, features: dict[str, Tensor]) -> Tensor:
        """(c, V): log(1 + relu(max over tokens of the logits)); texts are padded on the right."""
        transformer: Any = self.model[0]
        head = transformer.model.get_output_embeddings()
        with skipped(head):
            hidden = transformer(dict(features))["token_embeddings"]
        bias = torch.zeros_like(head.weight[:, 0]) if head.bias is None else head.bias
        return torch.log1p(torch.relu(largest_logits(hidden, features["attention_mask"], head.weight, bias)))


class InnerProductLoss(torch.nn.Module):
    """A loss over inner products, in the form that SpladeLoss calls."""

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self._loss = loss

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: dict[str, Tensor]) -> Tensor:
        """The mean over the queries of a batch; embeddings: (B, V) of queries and (U, V) of documents."""
        queries, documents = embeddings
        return of_columns(self._loss, queries @ documents.T, labels)


class L1(torch.nn.Module):
    """The mean sum of weights, as a regulariser of SpladeLoss."""

    def compute_loss_from_embeddings(self, embeddings: Tensor) -> Tensor:
        """A scalar of (b, V) weights."""
        return embeddings.abs().sum(dim=1).mean()


class RegularizerWarmup(SpladeRegularizerWeightSchedulerCallback):
    """sentence-transformers' quadratic rise of the weights, over a number of steps or a share of them."""

    def __init__(self, loss: SpladeLoss, warmup: float) -> None:
        super().__init__(loss)
        self._warmup = warmup

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Set how many steps they rise."""
        super().on_train_begin(args, state, control, **others)
        steps = int(self._warmup if self._warmup >= 1 else self._warmup * state.max_steps)
        self.warmup_steps = steps  # type: ignore[assignment]
