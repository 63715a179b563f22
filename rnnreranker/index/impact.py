"""The weights of words in documents, encoded in blocks that survive a kill, as the impacts of an index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.command import counted, say
from rnnreranker.data.document import Document
from rnnreranker.encode.sparse import SparseEncoder
from rnnreranker.files import fingerprint, write_atomically
from rnnreranker.files.json_files import read_json
from rnnreranker.impacts import ImpactSource
from rnnreranker.impacts.impact_files import FOLDER, write_impacts
from rnnreranker.impacts.params import ImpactParams
from rnnreranker.impacts.whole import whole
from rnnreranker.index.part import Part, check_encoder

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class ImpactPart(Part):
    """Encodes blocks of documents and keeps each as a file, named by what it was made from.

    Blocks of an earlier, interrupted build are used again where encoder and documents agree.

    Args:
        encoder: gives texts the weights of words.
        params: how weights are kept.
    """

    name: ClassVar[str] = "impact"
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "sentence-transformers", "scipy")

    def __init__(self, encoder: SparseEncoder, params: ImpactParams) -> None:
        self._encoder = encoder
        self._params = params
        self._files: list[Path] = []
        self.marks = (encoder.fingerprint, params.to_dict())
        self.reused = 0
        self._cut = 0
        self._empty = 0
        self._old: ImpactSource | None = None
        self._count = 0

    def extend(self, index: Path) -> None:
        """Take the weights of blocks of documents that the index has; a block that is new in part is encoded whole.

        Raises:
            InputError: they were made by another encoder.
        """
        check_encoder(index, "impact", self._encoder.fingerprint)
        described = read_json(index / "rnnreranker.json", repair="make the index again")
        self._old = ImpactSource(index, described["parts"]["impact"])

    def start(self, work: Path, threads: int | None) -> None:
        """Keep the blocks in a folder `impacts`; the weights do not depend on the number of threads."""
        self._folder = work / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        self._threads = threads

    def add(self, documents: Sequence[Document]) -> None:
        """Encode the next block, or find it finished."""
        texts = [document.text for document in documents]
        name = fingerprint(self._encoder.fingerprint, [document.docid for document in documents], texts)
        file = self._folder / f"{len(self._files):06d}-{name}.npz"
        rows = np.arange(self._count, self._count + len(documents))
        self._count += len(documents)
        taken = self._old is not None and self._count <= len(self._old.docids)
        if taken or file.is_file():
            self.reused += len(documents)
        if not file.is_file():
            if taken and self._old is not None:
                found, cut = self._old.fetch(rows), self._encoder.count_cut(texts, "document")
                found.data = found.data.astype(np.float64) / (self._old.factor or 1.0)  # rounded again as they were
            else:
                found, cut = self._encoder.encode(texts, "document", threads=self._threads)
            with write_atomically(file) as stream:
                np.savez(stream, weights=found.data, terms=found.indices, offsets=found.indptr, cut=cut)
                stream.flush()
                os.fsync(stream.fileno())
        with np.load(file, allow_pickle=False) as block:
            self._cut += int(block["cut"])
        self._empty += sum(not text.strip() for text in texts)
        self._files.append(file)

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write the folder `impacts`; encoder, vocabulary, factor, how many words a document has, and FLOPS.

        FLOPS are those of a document searched with another: the sum over words t of p(t)^2, where p(t) is the share of
        documents with a weight for t; `diagnose` has those of queries.
        """
        made_by, exact = self._encoder, self._params.weights == "float"
        documents = write_impacts(folder / FOLDER, self._blocks, made_by.vocabulary, exact)
        postings, flops = int(documents.sum()), float(((documents / count) ** 2).sum())
        said = [f"{counted(postings, 'weight')}, {postings / count:.1f} words a document, FLOPS of two {flops:.2f}"]
        if self._cut:
            said.append(f"{counted(self._cut, 'text')} cut at {made_by.max_length} tokens")
        if self._empty:
            said.append(f"{counted(self._empty, 'text')} empty, never found")
        say(f"impacts: {'; '.join(said)}")
        return {
            "encoder": {
                "name": made_by.name,
                "settings": {"max_length": made_by.max_length},
                "fingerprint": made_by.fingerprint,
            },
            "vocabulary": made_by.vocabulary,
            "words": made_by.words,
            "factor": None if exact else self._params.factor,
            "postings": postings,
            "words_a_document": round(postings / count, 4),
            "flops": round(flops, 4),
            "cut": self._cut,
        }

    def _blocks(self) -> Iterator[csr_matrix]:
        from scipy.sparse import csr_matrix

        for file in self._files:
            with np.load(file, allow_pickle=False) as block:
                offsets = block["offsets"]
                shape = (len(offsets) - 1, self._encoder.vocabulary)
                found = csr_matrix((block["weights"], block["terms"], offsets), shape)
            yield found if self._params.weights == "float" else whole(found, self._params.factor)
