"""How a term scorer learns: its inputs, and regression of the tokens of words, masked where a token has no word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.data.fields import asked_fields
from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.transformer import load_whole
from rnnreranker.encode.words.analysis import Analyser, PieceReader, Pieces, TermParams
from rnnreranker.encode.words.network import TermScorerNetwork, padded_pieces
from rnnreranker.encode.words.scorer import fast_tokenizer, write_term_scorer
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.soft import SoftLabels
from rnnreranker.parts.terms.source import TermSource
from rnnreranker.parts.terms.word_weights import CollectionWeights
from rnnreranker.train.model_files import limit_of, loading, start_folder
from rnnreranker.train.query.samples import held_out_of
from rnnreranker.train.request import labels_of
from rnnreranker.train.trainer import TextLearner

if TYPE_CHECKING:
    from rnnreranker.train.request import TrainRequest

BATCH_TOKENS = 4096  # of validation


class Example(NamedTuple):
    """A text in pieces, and the weights of its tokens that are of words."""

    pieces: Pieces
    targets: dict[int, float]


class TermLearner(TextLearner):
    """A `TextLearner` of weights of words: eq. 4 of paper 004, as a mean over tokens.

    Args:
        encoder: a name, folder or hub id.
        inputs: texts; params: of the training.

    Raises:
        InputError: a model that cannot be trained so.
        MissingDependencyError: jieba or PyStemmer is needed and not installed.
    """

    def __init__(self, encoder: str, inputs: TermInputs, params: Any) -> None:
        count = inputs.validation_queries
        made = {"labels": inputs.labels, "terms": inputs.terms.to_dict(), "validation_queries": count}
        super().__init__(encoder, params, made, inputs.content)
        self.folder, path = start_folder(encoder, ["encoder"])
        self._terms = inputs.terms
        with loading(path, "a term scorer"):
            transformer = load_whole(path)
            longest = limit_of(path, transformer, params.max_length)
            self._reader = PieceReader(fast_tokenizer(path), Analyser(inputs.terms), longest)
            self.model = TermScorerNetwork(transformer, inputs.terms.language == "zh")
        self._padding = self._reader.tokenizer.pad_token_id or 0
        self.training, self._checked = self._examples(inputs.training), self._examples(inputs.checked)

    def batch(self, several: Sequence[Example]) -> dict[str, Tensor]:
        batch = padded_pieces([one.pieces for one in several], self._padding)
        targets = torch.full(batch["tokens"].shape, torch.nan)
        for row, one in enumerate(several):
            for token, weight in one.targets.items():
                targets[row, token] = weight
        return batch | {"targets": targets}

    def loss(self, inputs: dict[str, Tensor], rng: np.random.Generator, step: int) -> Tensor:
        """The mean squared error over the tokens of words."""
        targets = inputs["targets"]
        weights = self.model(inputs["tokens"], inputs["attention"], inputs["tags"])
        real = ~torch.isnan(targets)
        return torch.nn.functional.mse_loss(weights[real], targets[real])

    def measures(self) -> dict[str, float]:
        """Of the validation texts: the mean squared error and Pearson's correlation, over tokens of words."""
        parts: list[Any] = [None] * len(self._checked)
        device = next(self.model.parameters()).device

        def compute(texts: list[int]) -> None:
            with torch.no_grad():
                batch = self.batch([self._checked[text] for text in texts])
                weights = self.model(*(batch[name].to(device) for name in ("tokens", "attention", "tags"))).cpu()
            for text, own, targets in zip(texts, weights, batch["targets"], strict=True):
                real = ~torch.isnan(targets)
                parts[text] = torch.stack([own[real], targets[real]]).double()

        compute_batches(compute, [len(one.pieces.tokens) for one in self._checked], BATCH_TOKENS)
        weights, targets = torch.cat(parts, dim=1).numpy()
        spread = weights.std() * targets.std()
        covariance = ((weights - weights.mean()) * (targets - targets.mean())).mean()
        return {
            "loss": float(((weights - targets) ** 2).mean()),
            "correlation": float(covariance / spread) if spread > 0 else 0.0,
        }

    def save(self, folder: Any) -> None:
        write_term_scorer(folder, self.model, self._reader, self._terms)

    def _examples(self, texts: Sequence[WeighedText]) -> list[Example]:
        examples = []
        for one in texts:
            pieces = self._reader.read(one.text)
            targets = pieces.spread([one.weights[word] for word in pieces.words])
            examples.append(Example(pieces, targets))
        kept = [one for one in examples if one.targets]
        if lost := len(examples) - len(kept):
            say(f"{lost} of {len(examples)} texts have no word in the tokens that the model reads: left out")
        return kept


@dataclass(frozen=True)
class WeighedText:
    """A text, and the weight of each of its words by word."""

    text: str
    weights: dict[str, float]


@dataclass(frozen=True, eq=False)
class TermInputs:
    """Texts to learn from and to validate with.

    Args:
        training, checked: the texts.
        terms: what counts as a word.
        validation_queries: how many queries `checked` is of.
        content: the fingerprint of all of it.
        labels: what they say of how they were made.
    """

    training: Sequence[WeighedText]
    checked: Sequence[WeighedText]
    terms: TermParams
    validation_queries: int
    content: str
    labels: dict[str, Any]


def load_terms(request: TrainRequest, params: Any) -> TermInputs:
    """What `term_inputs` makes of what a request names.

    Raises:
        InputError: files that cannot be read or do not belong together, and as `term_inputs`.
    """
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.search.inputs import texts_for

    if request.labels is None or request.index is None or request.topics is None:
        raise InputError(
            f"{', '.join(request.lacking('labels', 'index', 'topics'))} missing: "
            f"{argument('model', 'term-scorer')} needs labels, whose positives are read, an index with the part terms, "
            "and the texts of the queries"
        )
    labels, topics, index = labels_of(request.labels), topics_of(request.topics), open_index(request.index)
    source = index.term_source
    docids = {docid for one in labels for docid in _positives(one)}
    texts = texts_for(docids, index, request.documents, asked_fields(request.documents, request.fields))
    try:
        return term_inputs(labels, topics, source, texts, params)
    except InputError as error:
        raise InputError(f"{request.shown('labels')}: {error}") from None


def term_inputs(
    labels: SoftLabels,
    topics: Mapping[str, str],
    source: TermSource,
    texts: Mapping[str, str],
    params: Any,
) -> TermInputs:
    """What a term scorer learns from labels, of which the positives alone are read.

    For every query x with a positive y: the words of x with t(w, x, y), eq. 1 of paper 004, which is 0 for a word that
    y lacks (eq. 4); where `params.texts` asks for it, once each, the positives with their own words' weights. Positives
    of held-out queries, too, are held out, unless a training query has them.

    Args:
        labels: of two queries or more; topics: their texts.
        source: counted words of the collection; texts: of the positives, by docid.
        params: of the training: whose words it learns, what share of the queries is held out, by which seed.

    Raises:
        InputError: queries or positives without a text, no text with a word, too few queries to hold some out.
    """
    pairs = [(one.qid, docid) for one in labels for docid in _positives(one)]
    check_texts((qid for qid, _ in pairs), (), topics, {})
    docids = sorted({docid for _, docid in pairs})
    rows = source.rows(docids)
    if lost := [docid for docid, row in zip(docids, rows.tolist(), strict=True) if row < 0 or docid not in texts]:
        raise InputError(
            f"{counted(len(lost), 'positive')} without counted words in {source.index}, or without a text (first: "
            f"{lost[0]}); give the index that the labels are of"
        )
    of_documents = dict(zip(docids, CollectionWeights(source).of_documents(rows), strict=True))
    held_out = held_out_of(labels.qids, params, ("query", "queries"))
    sides: list[list[WeighedText]] = [[], []]
    seen: set[str] = set()
    for side, wanted in enumerate((False, True)):
        own = [(qid, docid) for qid, docid in pairs if (qid in held_out) == wanted]
        if params.texts != "documents":
            words = source.analyser.words([topics[qid] for qid, _ in own])
            for (qid, docid), own_words in zip(own, words, strict=True):
                sides[side].append(
                    WeighedText(topics[qid], {word: of_documents[docid].get(word, 0.0) for word in own_words})
                )
        if params.texts != "queries":
            for docid in dict.fromkeys(docid for _, docid in own if docid not in seen):
                sides[side].append(WeighedText(texts[docid], of_documents[docid]))
            seen |= {docid for _, docid in own}
    training, checked = ([one for one in several if one.weights] for several in sides)
    if wordless := sum(map(len, sides)) - len(training) - len(checked):
        say(f"{counted(wordless, 'text')} without a word: nothing is learnt from {'it' if wordless == 1 else 'them'}")
    if not training or not checked:
        raise InputError(
            f"no text of {'training' if not training else 'validation'} has a word of the language "
            f"{source.params.language}; give labels of more queries, or an index whose words are of their language"
        )
    read = fingerprint(*([[one.text, sorted(one.weights.items())] for one in part] for part in (training, checked)))
    content = fingerprint(read, source.fingerprint)
    return TermInputs(training, checked, source.params, len(held_out), content, labels.metadata)


def _positives(one: Any) -> list[str]:
    return [docid for docid, positive in zip(one.docids, one.positive.tolist(), strict=True) if positive]
