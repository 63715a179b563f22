"""Pyserini's impact index of the weights that an index has, made by Anserini."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_json
from rnnreranker.base.java import start_java
from rnnreranker.base.process.phases import phase
from rnnreranker.encode.vocabulary import in_order, load_tokenizer
from rnnreranker.parts.base import Part, read_encoder
from rnnreranker.parts.bm25.part import run_anserini
from rnnreranker.parts.description import describe
from rnnreranker.parts.impact_lucene.anserini import (
    ABOUT,
    PART,
    WHOLE,
    check_whole,
    open_anserini,
    tokens_for,
    vectors_of,
)
from rnnreranker.parts.impacts import ImpactSource
from rnnreranker.parts.impacts.params import ImpactParams
from rnnreranker.parts.impacts.part import ImpactPart


class ImpactLucenePart(Part):
    """A folder `impact-lucene`, made once the impacts stand in the index.

    Args:
        encoder: the sparse encoder that made the impacts, whose words are the tokens.
        params: how the weights are kept.

    Raises:
        InputError: weights that are no whole numbers.
    """

    name: ClassVar[str] = PART
    made_of: ClassVar[tuple[str, ...]] = ("impact",)
    automatic: ClassVar[bool] = False
    rank: ClassVar[int] = 60
    packages: ClassVar[tuple[str, ...]] = ("pyserini",)

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> ImpactLucenePart:
        """Of the impacts that stand in the index."""
        of = beside["impact"]
        return cls(read_encoder(ImpactPart, of)[0], of.kept)

    @classmethod
    def stands(cls, index: Path, params: Any = None) -> bool:
        """As `has_lucene`."""
        return cls.at(index) is not None if params is None else has_lucene(index)

    def __init__(self, encoder: str, params: ImpactParams) -> None:
        if params.weights == "float":
            raise InputError(f"{PART} beside impact:weights=float: {WHOLE}; leave one of the two out")
        self._encoder = encoder

    def check(self) -> None:
        """Start Java and load the tokenizer.

        Raises:
            UnavailableError: no Java 21 or newer.
        """
        start_java()
        self._tokenizer, self._of = load_tokenizer(self._encoder)

    def start(self, work: Path, threads: int | None) -> None:
        """Keep what Anserini reads in a folder `vectors` until it has."""
        self._work = work / "vectors"

    @phase("making Lucene's impact index")
    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write the folder; what stands for the words in it."""
        source = opened(corpus.parent)
        check_whole(source)
        words = in_order(self._tokenizer, source.vocabulary, self._of)
        tokens = tokens_for(words, source.vocabulary)
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(parents=True)
        with open(self._work / "vectors.jsonl", "w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in vectors_of(source, tokens))
        own = ["-collection", "JsonVectorCollection", "-impact", "-pretokenized"]
        run_anserini(self._work, folder / PART, own, ".jsonl files of id and vector")
        write_json(folder / PART / ABOUT, {"impacts": source.fingerprint, "tokens": tokens})
        shutil.rmtree(self._work)
        kind = "words" if tokens[: len(words)] == words else "numbers"
        if kind == "numbers":
            say(f"{PART}: some words of {self._encoder} have white space or the like; their numbers stand for them")
        return {"tokens": kind, "impacts": source.fingerprint}


def opened(index: Path) -> ImpactSource:
    """The impacts of an index."""
    return ImpactSource(index, describe(index)["parts"].get("impact", {}))


def has_lucene(index: Path) -> bool:
    """Whether an index has Lucene's index of its impacts that can be used."""
    try:
        open_anserini(opened(index))
    except InputError:
        return False
    return True
