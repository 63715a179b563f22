"""How a masked language model learns from a collection's texts."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DataCollatorForLanguageModeling

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.transformer import check_vocabulary, load_whole
from rnnreranker.encode.words.scorer import fast_tokenizer
from rnnreranker.train.model_files import limit_of, loading, start_folder
from rnnreranker.train.params import LONGEST
from rnnreranker.train.trainer import TextLearner

BATCH_TOKENS = 4096  # of validation
UNMASKED = -100  # the target of a token that is not to be guessed


class MaskedLearner(TextLearner):
    """A `TextLearner` that guesses masked tokens, as BERT does: of those to guess .8 are masked, .1 other tokens.

    Args:
        encoder: a name, folder or hub id of a masked-language model; None = a new one.
        training, checked: texts.
        params: of the training.

    Raises:
        InputError: a model that cannot be trained so.
    """

    def __init__(self, encoder: str | None, training: Sequence[str], checked: Sequence[str], params: Any) -> None:
        super().__init__(encoder, params, {"validation_texts": len(checked)}, fingerprint(training, checked))
        self.folder = None
        if encoder is None:
            self._tokenizer = new_tokenizer(training, params.vocabulary)
            self.model = new_model(len(self._tokenizer), params.layers, params.hidden_size, params.heads)
            if params.max_length is not None and params.max_length > POSITIONS:
                raise InputError(f"max_length={params.max_length}: expected an integer <= {POSITIONS}")
            longest = params.max_length or LONGEST
        else:
            self.folder, path = start_folder(encoder, ["encoder", "sparse-encoder"])
            with loading(path, "a masked-language model"):
                self.model = load_whole(path, "AutoModelForMaskedLM")
                longest = limit_of(path, self.model, params.max_length)
                self._tokenizer = fast_tokenizer(path)
                check_vocabulary(path, self._tokenizer, self.model)
        self._masking = DataCollatorForLanguageModeling(self._tokenizer, mlm_probability=params.mask_share)
        self.training = self._cut(training, longest)
        self._checked = [
            self._masked([one], [params.seed, number]) for number, one in enumerate(self._cut(checked, longest))
        ]

    def batch(self, several: Sequence[list[int]]) -> dict[str, Tensor]:
        """Token numbers (B, T) and attention."""
        longest = max(map(len, several))
        tokens = torch.full((len(several), longest), self._tokenizer.pad_token_id)
        attention = torch.zeros(tokens.shape, dtype=torch.long)
        for row, one in enumerate(several):
            tokens[row, : len(one)] = torch.tensor(one)
            attention[row, : len(one)] = 1
        return {"tokens": tokens, "attention": attention}

    def loss(self, inputs: dict[str, Tensor], rng: np.random.Generator, step: int) -> Tensor:
        """The mean cross-entropy of the tokens to guess, which `rng` draws."""
        device = inputs["tokens"].device
        tokens, targets = self._drawn(inputs["tokens"].cpu(), int(rng.integers(2**62)))
        logits = self.model(input_ids=tokens.to(device), attention_mask=inputs["attention"]).logits
        if (targets == UNMASKED).all():  # no token of few short texts was drawn
            return logits.sum() * 0.0
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.to(device).flatten(), ignore_index=UNMASKED
        )

    def measures(self) -> dict[str, float]:
        """Of the validation texts, each masked once for all: mean cross-entropy, and how many are guessed right."""
        sums = np.zeros((len(self._checked), 3))
        device = next(self.model.parameters()).device

        def compute(texts: list[int]) -> None:
            for text in texts:
                tokens, targets = self._checked[text]
                with torch.no_grad():
                    logits = self.model(input_ids=tokens.to(device)).logits[0].double().cpu()
                real = targets[0] != UNMASKED
                loss = torch.nn.functional.cross_entropy(logits[real], targets[0][real], reduction="sum")
                right = (logits[real].argmax(dim=1) == targets[0][real]).sum()
                sums[text] = loss.item(), right.item(), real.sum().item()

        compute_batches(compute, [tokens.shape[1] for tokens, _ in self._checked], BATCH_TOKENS)
        loss, right, count = sums.sum(axis=0)
        return {"loss": loss / max(count, 1), "accuracy": right / max(count, 1)}

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)

    def _cut(self, texts: Sequence[str], longest: int) -> list[list[int]]:
        tokens: list[list[int]] = self._tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"]
        return tokens

    def _masked(self, several: Sequence[list[int]], seed: Sequence[int]) -> tuple[Tensor, Tensor]:
        return self._drawn(self.batch(several)["tokens"], int(np.random.default_rng(seed).integers(2**62)))

    def _drawn(self, tokens: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Tokens of which some are masked, and those to guess; the others are `UNMASKED`."""
        self._masking.generator = torch.Generator().manual_seed(seed)
        special = torch.isin(tokens, torch.tensor(self._tokenizer.all_special_ids))
        drawn: tuple[Tensor, Tensor] = self._masking.torch_mask_tokens(tokens.clone(), special)
        return drawn


SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
POSITIONS = 512


def new_tokenizer(texts: Sequence[str], size: int) -> Any:
    """BERT's tokenizer, in small letters, with a vocabulary of these texts; Chinese characters stand alone.

    First all characters, as they begin a word and as they go on with one, then words that stand at least twice, the
    most frequent first, up to `size` tokens in all; what stands equally often in the order of its characters.

    Raises:
        InputError: texts without a word.
    """
    from transformers import BertTokenizer

    counts: Counter[str] = Counter()
    plain = _tokenizer(SPECIAL, BertTokenizer).backend_tokenizer
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
    return _tokenizer(tokens[: max(size, len(SPECIAL) + 1)], BertTokenizer)


def new_model(vocabulary: int, layers: int, hidden_size: int, heads: int) -> Any:
    """A BertForMaskedLM of BERT's proportions (the inner layers four times as wide), its weights drawn as BERT's are.

    Raises:
        InputError: a width that the heads do not divide.
    """
    from transformers import BertConfig, BertForMaskedLM

    if hidden_size % heads:
        raise InputError(f"hidden_size={hidden_size}: expected a multiple of heads={heads}")
    shape: dict[str, Any] = {"num_hidden_layers": layers, "hidden_size": hidden_size, "num_attention_heads": heads}
    return BertForMaskedLM(
        BertConfig(vocab_size=vocabulary, intermediate_size=4 * hidden_size, max_position_embeddings=POSITIONS, **shape)
    )


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda token: (-counts[token], token))


def _tokenizer(tokens: Sequence[str], kind: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vocab.txt"
        file.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        return kind(str(file), do_lower_case=True, model_max_length=POSITIONS)
