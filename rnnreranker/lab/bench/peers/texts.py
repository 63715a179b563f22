"""Texts beside peers: BM25 without Java, encoding."""

from __future__ import annotations

import itertools
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.data.document import Document
from rnnreranker.data.documents import load_documents
from rnnreranker.lab.bench.peers.tasks import PeerTask, Work, largest_difference
from rnnreranker.parts.terms.counts import FOLDER, VOCABULARY

WORDS, LENGTH, ASKED = 20_000, 60, 6  # of the language, of a text in the mean, of a question
HITS = 1000
K1, B = 0.9, 0.4


def made_up_texts(count: int, length: int, seed: int) -> list[str]:
    """Words by Zipf's law."""
    rng = np.random.default_rng((seed, count))
    lengths = rng.integers(length // 2, 3 * length // 2 + 1, count)
    drawn = np.minimum(rng.zipf(1.2, int(lengths.sum())), WORDS).tolist()
    ends = np.cumsum(lengths).tolist()
    return [" ".join(f"w{word}" for word in drawn[first:last]) for first, last in itertools.pairwise([0, *ends])]


class Bm25(PeerTask):
    """A task over an index of BM25 on disk."""

    peers = ("bm25s",)

    @property
    def size(self) -> str:
        """Texts."""
        return f"{self.sizes.texts} texts"

    @property
    def questions(self) -> dict[str, str]:
        """Topics."""
        made = made_up_texts(self.sizes.questions, ASKED, 1)
        return {f"q{number:04d}": text for number, text in enumerate(made)}

    def write(self) -> None:
        """The documents."""
        with open(self.folder / "documents.jsonl", "w", encoding="utf-8") as stream:
            for number, text in enumerate(made_up_texts(self.sizes.texts, LENGTH, 0)):
                stream.write(json.dumps({"id": f"d{number:06d}", "text": text}) + "\n")

    def make_ours(self) -> Path:
        """The index with the part terms alone."""
        from rnnreranker.encode.words.params import TermParams
        from rnnreranker.index.build import write_index
        from rnnreranker.parts.terms.part import TermsPart

        documents = load_documents(str(self.folder / "documents.jsonl"))
        return write_index(documents, self.folder / "ours", [TermsPart(TermParams())], threads=1).path

    def make_theirs(self) -> Path:
        """An index of bm25s."""
        import bm25s

        with open(self.folder / "documents.jsonl", encoding="utf-8") as stream:
            texts = [json.loads(line)["text"] for line in stream]
        index = bm25s.BM25(k1=K1, b=B, method="lucene")
        index.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
        index.save(str(self.folder / "theirs"))
        return self.folder / "theirs"

    def agreement(self, peer: str, ours: Any, theirs: Any) -> str:
        """Scores of the first document of every question."""
        best = [ours[qid][0][1] for qid in ours]
        return largest_difference(best, theirs[1][:, 0])


class Bm25Index(Bm25):
    """Texts to an index on disk."""

    name = "BM25, index"

    def ours(self) -> Work:
        """`write_index`."""
        return self.make_ours

    def by_bm25s(self) -> Work:
        """`tokenize`, `index`, `save`."""
        return self.make_theirs

    def agreement(self, peer: str, ours: Path, theirs: Path) -> str:
        """How many words both have."""
        words = len((ours / FOLDER / VOCABULARY).read_text(encoding="utf-8").splitlines())
        return f"{words} words, {len(json.loads((theirs / 'vocab.index.json').read_text()))} theirs with the empty one"


class Bm25Search(Bm25):
    """Questions to an index that is in memory."""

    name = "BM25, questions"

    @property
    def size(self) -> str:
        """Texts and questions."""
        return f"{super().size}, {self.sizes.questions} questions"

    def ours(self) -> Work:
        """The retriever bm25s."""
        from rnnreranker.base.method import Inputs, find, make_params
        from rnnreranker.index.opening import open_index

        terms = open_index(str(self.make_ours())).term_source
        params = make_params("retriever", "bm25s", {"k1": K1, "b": B})
        retriever = find("retriever", "bm25s")(Inputs(topics=self.questions, terms=terms), params, threads=1)
        retriever.check()
        return lambda: retriever.retrieve(HITS)

    def by_bm25s(self) -> Work:
        """`tokenize` and `retrieve`."""
        import bm25s

        index = bm25s.BM25.load(str(self.make_theirs()))
        texts, hits = list(self.questions.values()), min(HITS, self.sizes.texts)

        def work() -> Any:
            tokens = bm25s.tokenize(texts, stopwords=None, show_progress=False)
            return index.retrieve(tokens, k=hits, n_threads=1, show_progress=False)

        return work


class Bm25Once(Bm25Search):
    """A question after another."""

    name = "BM25, one question"

    @property
    def size(self) -> str:
        """Texts."""
        return f"{self.sizes.texts} texts, after opening"

    @property
    def questions(self) -> dict[str, str]:
        """The first."""
        return dict(itertools.islice(super().questions.items(), 1))


class Encoding(PeerTask):
    """Texts to vectors, as an index has them made."""

    name = "encoding"
    peers = ("sentence_transformers",)

    @property
    def size(self) -> str:
        """Texts."""
        return f"{self.sizes.encoded} of pydoc, minilm"

    @cached_property
    def documents(self) -> list[Document]:
        """The first of pydoc."""
        return list(itertools.islice(load_documents("pydoc"), self.sizes.encoded))

    def ours(self) -> Work:
        """A block of an index, by the graph of the encoder."""
        from rnnreranker.encode.dense.encoder import Encoder
        from rnnreranker.parts.vectors.part import DensePart

        part = DensePart(Encoder.load("minilm"))
        part.start(self.folder, threads=1)
        part.add(self.documents[:1])  # makes the graph
        return lambda: part.encoded([document.text for document in self.documents])

    def by_sentence_transformers(self) -> Work:
        """`encode`."""
        from sentence_transformers import SentenceTransformer

        from rnnreranker.encode.model_folder import find_model

        model = SentenceTransformer(str(find_model("minilm", "encoder").path), device="cpu")
        return lambda: model.encode([document.text for document in self.documents], show_progress_bar=False)

    def agreement(self, peer: str, ours: Any, theirs: np.ndarray) -> str:
        """Vectors."""
        return largest_difference(ours, theirs)


def has_minilm() -> bool:
    """Whether the encoder's weights are here."""
    from rnnreranker.encode.model_folder import find_model

    try:
        return bool(find_model("minilm", "encoder"))
    except (UnavailableError, MissingDependencyError):
        return False


TASKS: tuple[type[PeerTask], ...] = (Bm25Index, Bm25Search, Bm25Once, *([Encoding] if has_minilm() else []))
