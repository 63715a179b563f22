"""Learners of single texts: a masked language model, and a scorer of words."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss
from transformers import BertConfig, BertForMaskedLM, BertTokenizer, DataCollatorForLanguageModeling

from rnnreranker.base.command import counted, progress, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.transformer import load_whole
from rnnreranker.encode.words.analysis import Analyser, PieceReader, Pieces, TermParams
from rnnreranker.encode.words.network import TermScorerNetwork, padded_pieces
from rnnreranker.encode.words.scorer import fast_tokenizer, write_term_scorer
from rnnreranker.labels.export import check_texts
from rnnreranker.parts.terms.word_weights import CollectionWeights
from rnnreranker.train.params import LONGEST
from rnnreranker.train.request import NOTHING, Start, held_out_of, labels_of
from rnnreranker.train.trainer import Learner, limit_of, loading, start_folder
from rnnreranker.train.validation import Validation

if TYPE_CHECKING:
    from rnnreranker.train.request import TrainRequest

UNMASKED = -100  # the target of a token that is not to be guessed
AT_ONCE = 32  # texts of validation


class SingleTextLearner(Learner):
    unit = "texts"


class MaskedLearner(SingleTextLearner):
    """BERT's task: of the tokens to predict, 80% are masked and 10% replaced by random ones.

    start: a masked-language model; "none" = a new one. inputs: training and validation texts.
    """

    def __init__(self, start: Start, params: Any, inputs: tuple[Sequence[str], Sequence[str]], device: str) -> None:
        made = {"validation_texts": len(inputs[1]), "training_texts": len(inputs[0])}
        super().__init__(start, params, made, inputs)
        if start.name == NOTHING:
            self._tokenizer = new_tokenizer(inputs[0], params.vocabulary)
            self.model = new_model(len(self._tokenizer), params.layers, params.hidden_size, params.heads)
            if params.max_length is not None and params.max_length > POSITIONS:
                raise InputError(f"max_length={params.max_length}: expected an integer <= {POSITIONS}")
            longest = params.max_length or LONGEST
        else:
            self.folder, path = start_folder(start.name, ["encoder", "sparse-encoder"])
            with loading(path, "a masked-language model"):
                self.model = load_whole(path, "AutoModelForMaskedLM")
                longest = limit_of(path, self.model, params.max_length)
                self._tokenizer = fast_tokenizer(path)
        self._masking = DataCollatorForLanguageModeling(self._tokenizer, mlm_probability=params.mask_share)
        self.training, texts = (
            self._tokenizer(list(own), truncation=True, max_length=longest)["input_ids"] for own in inputs
        )
        self._checked = [
            self._masked(torch.tensor([tokens]), np.random.default_rng([params.seed, number]))
            for number, tokens in enumerate(texts)
        ]

    def batch(self, rows: Sequence[list[int]]) -> dict[str, Tensor]:
        """Token numbers (B, T) and attention."""
        tokens, attention = map(torch.from_numpy, padded(rows, self._tokenizer.pad_token_id))
        return {"tokens": tokens, "attention": attention}

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        device = inputs["tokens"].device
        tokens, targets = self._masked(inputs["tokens"].cpu(), rng)
        logits: Tensor = self.model(input_ids=tokens.to(device), attention_mask=inputs["attention"]).logits
        if (targets == UNMASKED).all():  # no token of few short texts was drawn
            return logits.sum() * 0.0
        return cross_entropy(logits.flatten(0, 1), targets.to(device).flatten(), ignore_index=UNMASKED)

    def validation(self) -> Validation:
        """Mean cross-entropy and accuracy; the masks of a text are always the same."""
        loss = right = count = 0.0
        for tokens, targets in self._checked:
            logits = self.model(input_ids=tokens.to(self.model.device)).logits[0].double().cpu()
            real = targets[0] != UNMASKED
            loss += cross_entropy(logits[real], targets[0][real], reduction="sum").item()
            right += (logits[real].argmax(dim=1) == targets[0][real]).sum().item()
            count += real.sum().item()
        return Validation({"loss": loss / max(count, 1), "accuracy": right / max(count, 1)})

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)

    def _masked(self, tokens: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Masked tokens and targets, `UNMASKED` at the other tokens."""
        self._masking.generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        special = torch.isin(tokens, torch.tensor(self._tokenizer.all_special_ids))
        return self._masking.torch_mask_tokens(tokens.clone(), special)


def load_texts(request: TrainRequest, params: Any) -> tuple[list[str], list[str]]:
    """Texts for training and for validation, in the order of docids. InputError: too few documents."""
    documents = request.all_documents("what the model learns from")
    texts = {one.docid: one.text for one in progress(documents, unit="documents", what="read")}
    kept = {docid: texts[docid] for docid in sorted(texts) if texts[docid].strip()}
    if empty := len(texts) - len(kept):
        say(f"{counted(empty, 'document')} with an empty text: left out")
    held_out = held_out_of(kept, params)
    training = [text for docid, text in kept.items() if docid not in held_out]
    return training, [text for docid, text in kept.items() if docid in held_out]


class WeighedText(NamedTuple):
    """A text, and the weights of its words."""

    text: str
    weights: dict[str, float]


class TermInputs(NamedTuple):
    """Training and validation texts; terms: what counts as a word; content: digest."""

    training: Sequence[WeighedText]
    checked: Sequence[WeighedText]
    terms: TermParams
    made: Mapping[str, Any]
    content: str


class Example(NamedTuple):
    """A text in pieces, and target weights by token number, for tokens of words."""

    pieces: Pieces
    targets: dict[int, float]


class TermLearner(SingleTextLearner):
    """Learns weights of words: eq. 4 of paper 004, as a mean over tokens of words."""

    def __init__(self, start: Start, params: Any, inputs: TermInputs, device: str) -> None:
        super().__init__(start, params, inputs.made, [inputs.content])
        self.folder, path = start_folder(start.name, ["encoder"])
        self._terms = inputs.terms
        with loading(path, "a term scorer"):
            transformer = load_whole(path)
            longest = limit_of(path, transformer, params.max_length)
            self._reader = PieceReader(fast_tokenizer(path), Analyser(inputs.terms), longest)
            self.model = TermScorerNetwork(transformer, inputs.terms.language == "zh")
        self.training, self._checked = self._examples(inputs.training), self._examples(inputs.checked)
        self.made["training_texts"] = len(self.training)

    def batch(self, rows: Sequence[Example]) -> dict[str, Tensor]:
        """Arguments of the network, and targets (B, T), NaN at tokens without a word."""
        batch = padded_pieces([one.pieces for one in rows], self._reader.tokenizer.pad_token_id or 0)
        targets = torch.full(batch["tokens"].shape, torch.nan)
        for row, one in enumerate(rows):
            targets[row, list(one.targets)] = torch.tensor(list(one.targets.values()))
        return batch | {"targets": targets}

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        return mse_loss(*self._of_words(inputs))

    def validation(self) -> Validation:
        """Mean squared error and Pearson's correlation, over tokens of words."""
        examples, device = (
            sorted(self._checked, key=lambda one: len(one.pieces.tokens)),
            self.model.linear.weight.device,
        )
        parts = []
        for start in range(0, len(examples), AT_ONCE):
            batch = {name: one.to(device) for name, one in self.batch(examples[start : start + AT_ONCE]).items()}
            parts.append(torch.stack(self._of_words(batch)).double().cpu())
        weights, targets = torch.cat(parts, dim=1).numpy()
        flat = not weights.std() * targets.std()
        correlation = 0.0 if flat else float(np.corrcoef(weights, targets)[0, 1])
        return Validation({"loss": float(((weights - targets) ** 2).mean()), "correlation": correlation})

    def save(self, folder: Path) -> None:
        write_term_scorer(folder, self.model, self._reader, self._terms)

    def _of_words(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Weights and targets of the tokens of words."""
        weights, targets = self.model(batch["tokens"], batch["attention"], batch["tags"]), batch["targets"]
        real = ~torch.isnan(targets)
        return weights[real], targets[real]

    def _examples(self, texts: Sequence[WeighedText]) -> list[Example]:
        pieces = [self._reader.read(one.text) for one in texts]
        weights = ([one.weights[word] for word in own.words] for one, own in zip(texts, pieces, strict=True))
        examples = [Example(own, own.spread(given)) for own, given in zip(pieces, weights, strict=True)]
        kept = [one for one in examples if one.targets]
        if lost := len(examples) - len(kept):
            say(f"{lost} of {len(examples)} texts have no word in the tokens that the model reads: left out")
        return kept


def load_terms(request: TrainRequest, params: Any) -> TermInputs:
    """Texts of the positive pairs of labels, with the weights of their words.

    For every query x with a positive y, each word w of x has t(w, x, y) (eq. 1 of paper 004), 0 if y lacks it (eq. 4).
    `params.texts` adds each positive once with its own weights. Positives of held-out queries are held out, too.

    Raises:
        InputError: unreadable or mismatched files, missing texts or words, too few queries.
    """
    request.needed("labels", "index", "topics")
    index: Any = request.opened
    labels, topics = labels_of(request.labels), request.texts_of_queries()  # type: ignore[arg-type]
    source, shown = index.term_source, request.shown("labels")
    pairs = [(one.qid, docid) for one in labels for docid in compress(one.docids, one.positive)]
    check_texts((qid for qid, _ in pairs), (), topics, {})
    docids = sorted({docid for _, docid in pairs})
    texts = request.texts(docids)
    rows = source.rows(docids)
    if lost := [docid for docid, row in zip(docids, rows.tolist(), strict=True) if row < 0 or docid not in texts]:
        raise InputError(
            f"{shown}: {counted(len(lost), 'positive')} without counted words in {source.index}, or without a text "
            f"(first: {lost[0]}); give the index that the labels are of"
        )
    of_documents = dict(zip(docids, CollectionWeights(source).of_documents(rows), strict=True))
    held_out = held_out_of(labels.qids, params)
    sides: list[list[WeighedText]] = []
    seen: set[str] = set()
    for wanted in (False, True):
        own, side = [pair for pair in pairs if (pair[0] in held_out) == wanted], []
        if params.texts != "documents":
            words = source.analyser.words([topics[qid] for qid, _ in own])
            for (qid, docid), of_query in zip(own, words, strict=True):
                side.append(WeighedText(topics[qid], {word: of_documents[docid].get(word, 0.0) for word in of_query}))
        if params.texts != "queries":
            others = dict.fromkeys(docid for _, docid in own if docid not in seen)
            side += [WeighedText(texts[docid], of_documents[docid]) for docid in others]
            seen |= others.keys()
        sides.append(side)
    training, checked = ([one for one in side if one.weights] for side in sides)
    if wordless := sum(map(len, sides)) - len(training) - len(checked):
        say(f"{counted(wordless, 'text')} without a word: nothing is learnt from {'it' if wordless == 1 else 'them'}")
    if not training or not checked:
        raise InputError(
            f"{shown}: no text of {'training' if not training else 'validation'} has a word of the language "
            f"{source.params.language}; give labels of more queries, or an index whose words are of their language"
        )
    read = fingerprint(*([[one.text, sorted(one.weights.items())] for one in part] for part in (training, checked)))
    made = {"labels": labels.metadata, "terms": source.params.to_dict(), "validation_queries": len(held_out)}
    return TermInputs(training, checked, source.params, made, fingerprint(read, source.fingerprint))


SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
POSITIONS = 512


def new_tokenizer(texts: Sequence[str], size: int) -> Any:
    """A lowercase BERT tokenizer with at most `size` tokens: all characters, then words that occur twice or more.

    Both are ordered by frequency, then alphabetically. InputError: texts without a word.
    """
    counts: Counter[str] = Counter()
    plain = _tokenizer(SPECIAL).backend_tokenizer
    for text in texts:
        parts = plain.pre_tokenizer.pre_tokenize_str(plain.normalizer.normalize_str(text))
        counts.update(word for word, _ in parts)
    if not counts:
        raise InputError("no text has a word: there is nothing to make a vocabulary of")
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        characters[word[0]] += count
        for character in word[1:]:
            characters[f"##{character}"] += count
    longer = [word for word in _by_count(counts) if len(word) > 1 and counts[word] > 1]
    tokens = [*SPECIAL, *_by_count(characters), *longer]
    return _tokenizer(tokens[: max(size, len(SPECIAL) + 1)])


def new_model(vocabulary: int, layers: int, hidden_size: int, heads: int) -> Any:
    """A new BertForMaskedLM; the inner layers are four times as wide. InputError: the heads do not divide the width."""
    if hidden_size % heads:
        raise InputError(f"hidden_size={hidden_size}: expected a multiple of heads={heads}")
    shape: dict[str, Any] = {"num_hidden_layers": layers, "hidden_size": hidden_size, "num_attention_heads": heads}
    return BertForMaskedLM(
        BertConfig(vocab_size=vocabulary, intermediate_size=4 * hidden_size, max_position_embeddings=POSITIONS, **shape)
    )


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda token: (-counts[token], token))


def _tokenizer(tokens: Sequence[str]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vocab.txt"
        file.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        return BertTokenizer(str(file), do_lower_case=True, model_max_length=POSITIONS)
