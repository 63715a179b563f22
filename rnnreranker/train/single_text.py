"""Learners of single texts: a masked language model, and a scorer of words."""

from __future__ import annotations

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
from rnnreranker.base.errors import InputError, argument, refuse
from rnnreranker.base.files import fingerprint
from rnnreranker.encode.words.analysis import Analyser, PieceReader, Pieces, TermParams
from rnnreranker.encode.words.scorer import TermScorerNetwork, fast_tokenizer, padded_pieces, write_term_scorer
from rnnreranker.labels.export import check_texts
from rnnreranker.parts.postings.word_weights import CollectionWeights
from rnnreranker.train.models import NOTHING
from rnnreranker.train.params import LONGEST
from rnnreranker.train.request import Start, held_out_of, labels_of
from rnnreranker.train.trainer import Learner, Validation, start_of

if TYPE_CHECKING:
    from rnnreranker.train.request import TrainRequest

UNMASKED = -100  # the target of a token that is not to be guessed
AT_ONCE = 32  # texts of validation
POSITIONS = 512
SHAPE = ("layers", "hidden_size", "heads", "vocabulary")  # settings of a new model alone
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class MaskedLearner(Learner):
    """BERT's task: of the tokens to predict, 80% are masked and 10% replaced by random ones.

    start: a masked-language model; "none" = a new one. inputs: training and validation texts.
    """

    def __init__(self, start: Start, params: Any, inputs: tuple[Sequence[str], Sequence[str]], device: str) -> None:
        made = {"validation_texts": len(inputs[1]), "training_texts": len(inputs[0])}
        super().__init__(start, params, made, inputs)
        if start.name == NOTHING:
            self._tokenizer, longest = new_tokenizer(inputs[0], params.vocabulary), params.max_length or LONGEST
            self.model = new_model(len(self._tokenizer), params)
            if longest > POSITIONS:
                raise InputError(f"max_length={longest}: expected an integer <= {POSITIONS}")
        else:
            given = [name for name in SHAPE if getattr(params, name) != getattr(type(params)(), name)]
            shown = f"{', '.join(given)}: of a new model, of {argument('encoder', NOTHING)}; {start.name} has its own"
            refuse((given, shown))
            self.folder, path, self.model, longest, _ = start_of(
                start, "a masked-language model", params.max_length, "AutoModelForMaskedLM"
            )
            self._tokenizer = fast_tokenizer(path)
        self._masking = DataCollatorForLanguageModeling(self._tokenizer, mlm_probability=params.mask_share)
        self.training, self._checked = (
            self._tokenizer(list(own), truncation=True, max_length=longest)["input_ids"] for own in inputs
        )

    def batch(self, rows: Sequence[list[int]]) -> dict[str, Any]:
        """Token numbers of texts; `loss` masks them, as it knows the step."""
        return {"texts": rows}

    def guesses(self, texts: Sequence[list[int]], rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Logits (n, V) and numbers (n,) of the tokens to guess."""
        self._masking.generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        masked = self._masking([{"input_ids": tokens} for tokens in texts]).to(self.model.device)
        targets = masked.pop("labels")
        guessed = targets != UNMASKED
        return self.model(**masked).logits[guessed], targets[guessed]

    def loss(self, inputs: Any) -> Tensor:
        logits, targets = self.guesses(inputs["texts"], self.rng)
        return cross_entropy(logits, targets) if len(targets) else logits.sum()  # of nothing

    def validation(self) -> Validation:
        """Mean cross-entropy and accuracy; the masks of a text are always the same."""
        parts = [torch.zeros(2, 0, dtype=torch.float64)]
        for number, tokens in enumerate(self._checked):
            logits, own = self.guesses([tokens], np.random.default_rng([self.params.seed, number]))
            logits, own = logits.cpu().double(), own.cpu()
            parts.append(torch.stack([cross_entropy(logits, own, reduction="none"), logits.argmax(dim=1) == own]))
        loss, right = torch.cat(parts, dim=1).mean(dim=1).nan_to_num().tolist()
        return Validation({"loss": loss, "accuracy": right})

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)


def load_texts(request: TrainRequest, params: Any) -> tuple[list[str], list[str]]:
    """Texts for training and for validation, in the order of docids. InputError: too few documents."""
    documents = request.all_documents("what the model learns from")
    texts = {one.docid: one.text for one in progress(documents, unit="documents", what="read")}
    kept = {docid: texts[docid] for docid in sorted(texts) if texts[docid].strip()}
    if empty := len(texts) - len(kept):
        say(f"{counted(empty, 'document')} with an empty text: left out")
    held_out, sides = held_out_of(kept, params), tuple[list[str], list[str]](([], []))
    for docid, text in kept.items():
        sides[docid in held_out].append(text)
    return sides


def new_tokenizer(texts: Sequence[str], size: int) -> Any:
    """A lowercase BERT tokenizer with at most `size` tokens: all characters, then words that occur twice or more.

    Both are ordered by frequency, then alphabetically. InputError: texts without a word.
    """
    usual, characters = BertTokenizer().backend_tokenizer, Counter[str]()
    normalized = (usual.normalizer.normalize_str(text) for text in texts)
    counts = Counter(word for text in normalized for word, _ in usual.pre_tokenizer.pre_tokenize_str(text))
    if not counts:
        raise InputError("no text has a word: there is nothing to make a vocabulary of")
    for word, count in counts.items():
        for position, character in enumerate(word):
            characters[f"##{character}" if position else character] += count
    ranked = [(False, -count, token) for token, count in characters.items()]
    ranked += [(True, -count, word) for word, count in counts.items() if len(word) > 1 < count]
    tokens = [*SPECIAL, *(token for _, _, token in sorted(ranked))][: max(size, len(SPECIAL) + 1)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return BertTokenizer(vocab=vocabulary, do_lower_case=True, model_max_length=POSITIONS)


def new_model(vocabulary: int, params: Any) -> Any:
    """A new BertForMaskedLM; the inner layers are four times as wide. InputError: the heads do not divide the width."""
    width, heads = params.hidden_size, params.heads
    if width % heads:
        raise InputError(f"hidden_size={width}: expected a multiple of heads={heads}")
    shape = {"num_hidden_layers": params.layers, "hidden_size": width, "num_attention_heads": heads}
    shape |= {"vocab_size": vocabulary, "intermediate_size": 4 * width, "max_position_embeddings": POSITIONS}
    return BertForMaskedLM(BertConfig(**shape))


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


Example = tuple[Pieces, dict[int, float]]  # a text in pieces, and target weights by token, for tokens of words


class TermLearner(Learner):
    """Learns weights of words: eq. 4 of paper 004, as a mean over tokens of words."""

    def __init__(self, start: Start, params: Any, inputs: TermInputs, device: str) -> None:
        super().__init__(start, params, inputs.made, [inputs.content])
        self.folder, path, transformer, longest, _ = start_of(start, "a term scorer", params.max_length)
        self._terms = inputs.terms
        self._reader = PieceReader(fast_tokenizer(path), Analyser(inputs.terms), longest)
        self.model = TermScorerNetwork(transformer, inputs.terms.language == "zh")
        self.training, checked = self._examples(inputs.training), self._examples(inputs.checked)
        self._checked = sorted(checked, key=lambda one: len(one[0].tokens))
        self.made["training_texts"] = len(self.training)

    def batch(self, rows: Sequence[Example]) -> dict[str, Tensor]:
        """Arguments of the network, and targets (B, T), NaN at tokens without a word."""
        batch = padded_pieces([pieces for pieces, _ in rows], self._reader.tokenizer.pad_token_id or 0)
        targets = torch.full(batch["tokens"].shape, torch.nan)
        for row, (_, own) in enumerate(rows):
            targets[row, list(own)] = torch.tensor(list(own.values()))
        return batch | {"targets": targets}

    def loss(self, inputs: Any) -> Tensor:
        return mse_loss(*self._of_words(inputs))

    def validation(self) -> Validation:
        """Mean squared error and Pearson's correlation, over tokens of words."""
        parts, device = [], self.model.linear.weight.device
        for start in range(0, len(self._checked), AT_ONCE):
            batch = self.batch(self._checked[start : start + AT_ONCE])
            parts.append(self._of_words({name: one.to(device) for name, one in batch.items()}).double().cpu())
        both = torch.cat(parts, dim=1)
        correlation = torch.corrcoef(both)[0, 1].nan_to_num().item()
        return Validation({"loss": mse_loss(*both).item(), "correlation": correlation})

    def save(self, folder: Path) -> None:
        write_term_scorer(folder, self.model, self._reader, self._terms)

    def _of_words(self, batch: Mapping[str, Tensor]) -> Tensor:
        """(2, n): weights and targets of the tokens of words."""
        both = torch.stack([self.model(batch["tokens"], batch["attention"], batch["tags"]), batch["targets"]])
        return both[:, ~torch.isnan(both[1])]

    def _examples(self, texts: Sequence[WeighedText]) -> list[Example]:
        read = [(self._reader.read(text), weights) for text, weights in texts]
        examples = [(own, own.spread([weights[word] for word in own.words])) for own, weights in read]
        kept = [one for one in examples if one[1]]
        if lost := len(examples) - len(kept):
            say(f"{lost} of {len(examples)} texts have no word in the tokens that the model reads: left out")
        if not kept:
            raise InputError(f"no text has a word of the language {self._terms.language}; give labels of more queries")
        return kept


def load_terms(request: TrainRequest, params: Any) -> TermInputs:
    """Queries of the positive pairs of labels, with the weights of their words.

    For every query x with a positive y, each word w of x has t(w, x, y) (eq. 1 of paper 004), 0 if y lacks it (eq. 4).

    Raises:
        InputError: unreadable or mismatched files, missing texts or words, too few queries.
    """
    request.needed("labels", "index", "topics")
    index: Any = request.opened
    labels, topics = labels_of(request.labels), request.texts_of_queries()  # type: ignore[arg-type]
    source = index.term_source
    pairs = [(one.qid, docid) for one in labels for docid in compress(one.docids, one.positive)]
    docids = sorted({docid for _, docid in pairs})
    rows = source.rows(docids)
    known = compress(docids, rows >= 0)
    check_texts((qid for qid, _ in pairs), docids, topics, dict.fromkeys(known, ""))
    of_documents = dict(zip(docids, CollectionWeights(source).of_documents(rows), strict=True))
    held_out = held_out_of(labels.qids, params)
    sides: tuple[list[WeighedText], list[WeighedText]] = [], []
    for (qid, docid), words in zip(pairs, source.analyser.words([topics[qid] for qid, _ in pairs]), strict=True):
        weights = {word: of_documents[docid].get(word, 0.0) for word in words}
        sides[qid in held_out].append(WeighedText(topics[qid], weights))
    made = {"labels": labels.metadata, "terms": source.params.to_dict(), "validation_queries": len(held_out)}
    return TermInputs(*sides, source.params, made, fingerprint(sides, source.fingerprint))
