"""A page of two texts, their words shaded by weight: what label enhancement by words (paper 004) sees in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.errors import InputError
from rnnreranker.base.pages import render, write_page
from rnnreranker.parts.terms.word_weights import CollectionWeights, Weights, label_distribution, shared_words

if TYPE_CHECKING:
    from rnnreranker.encode.words.scorer import TermScorer, WeighedWord
    from rnnreranker.parts.terms.source import TermSource


@dataclass(frozen=True)
class Weighting:
    """One weighting of the words of a query and a document.

    Attributes:
        name: of the weighting; query, document: word → weight.
    """

    name: str
    query: Weights
    document: Weights

    @property
    def shared(self) -> list[str]:
        """The words that eq. 5 sums over: those of both texts whose weights are not below 0."""
        return shared_words(self.query, self.document)

    def product(self, word: str) -> float | None:
        """What a word adds to the sum of eq. 5; None where it takes no part."""
        return self.query[word] * self.document[word] if word in self.shared else None

    @property
    def mean(self) -> float:
        """The mean of the products, of which eq. 5 is the tanh; 0 where no word takes part."""
        shared = self.shared
        return sum(self.query[word] * self.document[word] for word in shared) / max(len(shared), 1)

    @property
    def degree(self) -> float:
        """Eq. 5, see `label_distribution`."""
        return label_distribution(self.query, self.document)


@dataclass(frozen=True)
class Piece:
    """A stretch of a text: a word where it stands, or what stands between words, `word` "" then.

    Attributes:
        text: as written; word: as it is counted; weight: None beyond the model's length.
        shade: the weight as a share of the largest of both texts, 0 where it is below 0.
        kind: "shared": it takes part in eq. 5; "discarded": both texts have it, a weight is below 0; else "own".
    """

    text: str
    word: str = ""
    weight: float | None = None
    shade: float = 0.0
    kind: str = "own"


def weightings_of(query: str, document: str, scorer: TermScorer, source: TermSource | None = None) -> list[Weighting]:
    """The weights that a term scorer predicts and, where counted words are given, those of eq. 1 (TF-IDF).

    Raises:
        InputError: counted words of another kind than those of the scorer.
    """
    weightings = [Weighting("predicted", *scorer.weights([query, document]))]
    if source is None:
        return weightings
    if source.params != scorer.terms:
        raise InputError(
            f"{source.index}: its words are counted as {source.params.to_dict()}, those of {scorer.name} as "
            f"{scorer.terms.to_dict()}; give an index of the scorer's words"
        )
    return [*weightings, Weighting("TF-IDF", *CollectionWeights(source).of_texts([query, document]))]


def rows_of(weightings: Sequence[Weighting]) -> list[str]:
    """The words of both texts: first those that take part by the first weighting, the largest product first."""
    first = weightings[0]
    words = {*first.query, *first.document}

    def order_of(word: str) -> tuple[float, bool, float, str]:
        product = first.product(word)
        both = word in first.query and word in first.document
        largest = max(first.query.get(word, -1.0), first.document.get(word, -1.0))
        return (1.0 if product is None else -product, not both, -largest, word)

    return sorted(words, key=order_of)


def pieces_of(text: str, words: Sequence[WeighedWord], weighting: Weighting, largest: float) -> list[Piece]:
    """A text cut at its words.

    Args:
        text: as written; words: of it, in their order.
        weighting: weights of both texts; largest: the weight that is shaded most, above 0.
    """
    pieces, end = [], 0
    shared = set(weighting.shared)
    for one in words:
        pieces.append(Piece(text[end : one.start]))
        both = one.word in weighting.query and one.word in weighting.document
        kind = "shared" if one.word in shared else "discarded" if both else "own"
        shade = min(max(one.weight or 0.0, 0.0) / largest, 1.0)
        pieces.append(Piece(text[one.start : one.end], one.word, one.weight, shade, kind))
        end = one.end
    return [piece for piece in (*pieces, Piece(text[end:])) if piece.text]


def write_words(path: Path, query: str, document: str, scorer: TermScorer, weightings: Sequence[Weighting]) -> None:
    """Write the page, one HTML file that needs nothing else.

    Args:
        path: of the page.
        query, document: the texts.
        scorer: whose weights shade them.
        weightings: of `weightings_of`, the scorer's first.

    Raises:
        InputError: it cannot be written.
    """
    texts = {"query": query, "document": document}
    words = {name: scorer.words(text) for name, text in texts.items()}
    weights = [one.weight for several in words.values() for one in several if one.weight is not None]
    largest = max([weight for weight in weights if weight > 0], default=1.0)
    shown = {name: pieces_of(text, words[name], weightings[0], largest) for name, text in texts.items()}
    about = {"scorer": Path(scorer.name).name, "language": scorer.terms.language, "largest": largest}
    write_page(
        path,
        render("labels.report", "words.html.j2", texts=shown, weightings=weightings, rows=rows_of(weightings), **about),
    )
