"""A dual encoder while it learns: sentence-transformers' SentenceTransformer, its batches, its loss, its scores."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer import (
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor

from rnnreranker.base.errors import InputError
from rnnreranker.encode.model_folder import ModelSettings, TextKind, read_settings
from rnnreranker.encode.query_encoder import COSINE_SCALE
from rnnreranker.encode.words.segmentation import language_of, words
from rnnreranker.labels.soft import Labels
from rnnreranker.train.group.groups import Group, scaled_labels
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.group.two_sided import TwoSidedLearner, of_columns, padded_parts, with_scaled_labels
from rnnreranker.train.losses import CosineLoss, Loss
from rnnreranker.train.model_files import NOTHING, limit_of, loading, start_folder
from rnnreranker.train.validation import Scored


class DualLearner(TwoSidedLearner):
    """See `Learner`.

    Args:
        encoder: a name, folder or hub id, of a transformer; its own pooling is not taken, tokens are averaged. "none":
            new towers, of the words of the documents and of the training queries.
        params: of the training; loss: what it lowers.
        inputs: the texts.
        device: cpu or cuda.

    Raises:
        InputError: a model with modules behind its pooling or with two towers already, a tokenizer with other words
            than its model, new towers of texts without a word.
    """

    trainer = SentenceTransformerTrainer
    arguments = SentenceTransformerTrainingArguments

    def __init__(self, encoder: str, params: Any, loss: Loss, inputs: GroupInputs, device: str) -> None:
        super().__init__(encoder, params, loss, inputs)
        self._scale = params.label_scale
        self._of_cosines = isinstance(loss, CosineLoss)
        self.folder, path, own = None, Path(encoder), ModelSettings()
        if encoder != NOTHING:
            self.folder, path = start_folder(encoder, ("encoder", "sparse-encoder"))
            own = read_settings(self.folder)
        if own.beyond:
            raise InputError(
                f"{self.folder}: has a module {own.beyond}; expected a transformer, whose tokens are then averaged"
            )
        self._prompts: dict[TextKind, str] = {"query": own.query_prompt, "document": own.document_prompt}
        count = 1 if params.towers == "shared" else 2
        with loading(path, "a dual encoder"):
            if self.folder is None:
                asked = dict.fromkeys(pool.qid for pool in inputs.pools)
                texts = [*inputs.documents.values(), *(inputs.queries[qid] for qid in asked)]
                towers = word_towers(texts, params.max_length, count)
            else:
                towers = [_tower(path, params.max_length) for _ in range(count)]
            modules: list[Any] = towers[0] if count == 1 else [Router.for_query_document(towers[0], towers[1])]
            prompts: dict[str, str] = {name: prompt for name, prompt in self._prompts.items() if prompt}
            self.model = SentenceTransformer(
                modules=modules, device=device, prompts=prompts, similarity_fn_name="dot", local_files_only=True
            )
        scale = 1.0 if self._of_cosines else params.inverse_temperature or COSINE_SCALE
        self.loss: ScaledLoss = ScaledLoss(self.model, loss, scale)

    def label(self, groups: Sequence[Group], docids: Sequence[str]) -> dict[str, Tensor]:
        """As of every model, with scaled labels for a loss of cosines."""
        label = super().label(groups, docids)
        return with_scaled_labels(label, groups, docids, self._scale) if self._of_cosines else label

    def scores(self, lists: Sequence[Labels]) -> Scored:
        """The cosines of all queries and candidates, and what the loss makes of them; nothing else is measured."""
        queries, documents, candidates = self.encoded(lists)
        searched = [documents[own] @ queries[row] for row, own in enumerate(candidates)]
        trained = [cosines * np.float32(self.loss.scale) for cosines in searched]
        scaled = [scaled_labels(one, self._scale) for one in lists] if self._of_cosines else None
        return Scored(searched, trained, {}, scaled)

    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        features = self.model.preprocess(texts, prompt=self._prompts[kind] or None, task=kind)
        return {name: value for name, value in features.items() if torch.is_tensor(value) and value.dim()}

    def parts(self, features: dict[str, Tensor], kind: TextKind) -> list[np.ndarray]:
        """Their vectors, (c, d) float32."""
        return [self.loss.vectors(features, kind).float().cpu().numpy()]

    def joined(self, parts: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
        vectors: np.ndarray = np.concatenate(parts)[rows]
        return vectors


def _tower(path: Path, longest: int | None) -> list[Any]:
    transformer = Transformer(str(path), model_kwargs={"local_files_only": True})
    transformer.max_seq_length = limit_of(path, transformer.model, longest)
    return [transformer, Pooling(transformer.get_embedding_dimension(), "mean"), Normalize()]


class ScaledLoss(torch.nn.Module):
    """A loss over cosines, times a scale, in the form that SentenceTransformerTrainer calls."""

    def __init__(self, model: SentenceTransformer, loss: Loss, scale: float) -> None:
        super().__init__()
        self.model, self._loss, self.scale = model, loss, scale

    def forward(self, inputs: list[dict[str, Tensor]], labels: dict[str, Tensor]) -> Tensor:
        """The mean over the queries of a batch; inputs: features of queries and of documents."""
        queries, documents = self.vectors(inputs[0], "query"), self.vectors(inputs[1], "document")
        return of_columns(self._loss, self.scale * (queries @ documents.T), labels)

    def vectors(self, features: dict[str, Tensor], kind: TextKind) -> Tensor:
        """(b, d): the vectors of texts, in their order; those of about the same length are computed together."""
        if "offsets" in features:  # word embeddings, without padding
            vectors: Tensor = self.model(dict(features), task=kind)["sentence_embedding"]
            return vectors
        order = torch.argsort(features["attention_mask"].sum(dim=1), stable=True)
        parts = [
            self.model(dict(part), task=kind)["sentence_embedding"]
            for part in padded_parts({name: value[order] for name, value in features.items()})
        ]
        return torch.cat(parts)[torch.argsort(order)]


SIZE = 300  # numbers of an embedding
UNKNOWN = "[UNK]"  # its embedding is 0 and stays so: with vectors of length 1 it takes no part
RUN = r"[\p{L}\p{N}](?:[\p{L}\p{N}]|[\u0300-\u036f])*"  # letters and digits, as of `terms.segmentation`


def word_towers(texts: Sequence[str], longest: int | None, count: int) -> list[list[Any]]:
    """Towers that begin alike: sentence-transformers' StaticEmbedding of random numbers, then Normalize.

    A text without a known word gets the vector 0.

    Args:
        texts: whose words are embedded.
        longest: words at which texts are cut; None = nowhere.
        count: of towers.

    Raises:
        InputError: texts without a word.
        MissingDependencyError: Chinese texts, and jieba is not installed.
    """
    tokenizer = word_tokenizer(texts)
    if longest is not None:
        tokenizer.enable_truncation(longest)
    first = StaticEmbedding(tokenizer, embedding_dim=SIZE)
    unknown = tokenizer.token_to_id(UNKNOWN)
    first.embedding.weight.data[unknown] = 0
    first.embedding.padding_idx = unknown  # no gradient either
    return [[tower, Normalize()] for tower in (first, *(copy.deepcopy(first) for _ in range(count - 1)))]


def word_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Cuts texts into the words of these ones, in small letters and NFKC; punctuation is left out.

    In English every run of letters and digits is a word, known or not. Chinese words are cut off as jieba cuts them to
    make the vocabulary; after that, so that no other program needs jieba, a text has the most probable words by how
    often they stand in `texts` (a unigram model).

    Raises:
        InputError: texts without a word.
        MissingDependencyError: Chinese texts, and jieba is not installed.
    """
    language = language_of("".join(texts))
    counts = Counter(word for text in texts for word in words(text, language))
    if not counts:
        raise InputError("no text has a word: there is nothing to make towers of")
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    model: Any
    if language == "zh":
        logs = [(word, math.log(counts[word] / counts.total())) for word in ordered]
        model = models.Unigram([(UNKNOWN, 0.0), *logs], 0, False)
    else:
        model = models.WordLevel({word: number for number, word in enumerate([UNKNOWN, *ordered])}, UNKNOWN)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(RUN), "removed", invert=True)
    return tokenizer
