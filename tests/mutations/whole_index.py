"""An index whose files have checksums: as its parts are opened, as `index --check` reads it, and Lucene's folder."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from mutations.arrays import bad_header
from mutations.format import Format
from mutations.index_parts import overwritten
from rnnreranker.base.errors import UnavailableError
from rnnreranker.base.java import find_java
from rnnreranker.data.document import Document
from rnnreranker.encode.graphs.store import Refused
from rnnreranker.encode.params import EncoderParams
from rnnreranker.encode.words.params import TermParams
from rnnreranker.index.build import write_index
from rnnreranker.index.checking import check_index
from rnnreranker.index.opening import open_index
from rnnreranker.parts.bm25.part import Bm25Part
from rnnreranker.parts.neighbours.part import NeighboursPart
from rnnreranker.parts.terms.part import TermsPart
from rnnreranker.parts.texts import documents_of, texts_of
from rnnreranker.parts.vectors.part import DensePart
from rnnreranker.search.__main__ import main as search

DOCUMENTS = [
    Document("a", "rain and sun"),
    Document("b", "sun"),
    Document("c", "fog"),
    Document("d", "hail, fog, rain"),
]
FILES = (
    *("docid", "index", "corpus/documents.jsonl.gz", "corpus/offsets.npy", "terms/offsets.npy", "terms/terms.npy"),
    *("terms/weights.npy", "terms/vocabulary.txt", "neighbours/edges.u32.np", "neighbours/weights.f16.np"),
    "neighbours/pt_meta.json",
)
LUCENE = ("bm25/segments_*", "bm25/*", "bm25/*")


class Letters:
    """Counts letters; stands for an encoder."""

    name, fingerprint, dimension, model = "letters", "letters-1", 3, None
    graph = path = None
    options = settings = EncoderParams().to_dict()

    def by_graph(self) -> Any:
        raise Refused("it is made up")

    def encode(self, texts: list[str], **_: object) -> np.ndarray:
        """(n, 3) float32."""
        return np.array([[1 + text.count(letter) for letter in "afs"] for text in texts], dtype=np.float32)


def _make(folder: Path) -> None:
    made = folder.with_name("made")
    parts = [DensePart(Letters()), TermsPart(TermParams()), NeighboursPart()]  # type: ignore[arg-type]
    write_index(DOCUMENTS, made, parts)
    folder.rmdir()
    made.rename(folder)


def _read(folder: Path) -> Any:
    index = open_index(str(folder))
    rows = np.arange(len(DOCUMENTS))
    read = [(one.docid, one.text) for one in documents_of(folder)]
    texts = texts_of(folder, [docid for docid, _ in read])
    edges = index.graph.neighbours(rows).tolist()
    return [index.vectors.fetch(rows), edges, index.term_source.counts.toarray().tolist(), read, texts]


def _slow(folder: Path) -> Any:
    """Its checksums say that it is what was written, or else it is refused."""
    vectors = Letters().encode([one.text for one in DOCUMENTS])
    products = vectors.astype(float) @ vectors.T.astype(float)
    others = [sorted((-products[row, other], other) for other in range(4) if other != row) for row in range(4)]
    texts = [re.findall("[a-z]+", one.text) for one in DOCUMENTS]
    words = sorted({word for text in texts for word in text})
    counts = [[float(text.count(word)) for word in words] for text in texts]
    listed = [(one.docid, one.text) for one in DOCUMENTS]
    return [vectors, [[other for _, other in row] for row in others], counts, listed, dict(listed)]


def _words(text: str) -> list[str]:
    """Without the stop word."""
    return [word for word in re.findall("[a-z]+", text) if word != "and"]


def _check(folder: Path) -> int:
    """How many files `--check` says are those that were written."""
    said = check_index(folder)
    number = re.search(r": (\d+) files \(", said)
    return int(number[1]) if number else 0


def _slow_check(folder: Path) -> int:
    groups = json.loads((folder / "rnnreranker.json").read_text()).get("files", {})
    names = set()
    for group in groups.values():
        for name, noted in group.items():
            content = (folder / name).read_bytes()
            assert [len(content), hashlib.sha256(content).hexdigest()] == [noted["bytes"], noted["sha256"]]
            names.add(name)
    return len(names)


def _make_lucene(folder: Path) -> None:
    made = folder.with_name("made")
    write_index(DOCUMENTS, made, [Bm25Part()])
    folder.rmdir()
    made.rename(folder)
    _searched(folder)  # imports libraries, whose warnings are not of these files


def _make_lucene_of_before(folder: Path) -> None:
    """Without checksums: what Lucene itself notices is refused, and nothing ends in any other way."""
    _make_lucene(folder)
    described = json.loads((folder / "rnnreranker.json").read_text())
    del described["files"]
    (folder / "rnnreranker.json").write_text(json.dumps(described))


def _searched(folder: Path) -> list[tuple[str, float]]:
    topics, run = folder.with_name("topics.tsv"), folder.with_name("run.txt")
    topics.write_text("q\train hail\n")
    argv = ["--index", str(folder), "--topics", str(topics), "--retriever", "bm25", "--rerank", "none"]
    with contextlib.redirect_stderr(io.StringIO()):  # its lines on what it does
        assert search([*argv, "--hits", "10", "--output", str(run)]) == 0
    rows = [line.split() for line in run.read_text().splitlines()]
    return [(words[2], round(float(words[4]), 4)) for words in rows]


def _searched_at_all(folder: Path) -> bool:
    _searched(folder)
    return True


def _by_hand(folder: Path) -> list[tuple[str, float]]:
    """BM25 with k1 .9 and b .4 over the documents."""
    texts = {one.docid: _words(one.text) for one in DOCUMENTS}
    average = sum(map(len, texts.values())) / len(texts)
    scores = dict.fromkeys(texts, 0.0)
    for word in ("rain", "hail"):
        having = sum(word in words for words in texts.values())
        for docid, words in texts.items():
            count = words.count(word)
            norm = 0.9 * (0.6 + 0.4 * len(words) / average)
            idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            scores[docid] += idf * count / (count + norm)
    ranked = sorted((-score, docid) for docid, score in scores.items() if score > 0)
    return [(docid, round(-score, 4)) for score, docid in ranked]


def _java() -> str:
    if find_spec("pyserini") is None:
        return "pyserini is not installed"
    try:
        find_java()
    except UnavailableError as error:
        return str(error)
    return ""


FORMATS = [
    Format("index with checksums", _make, FILES, _read, _slow, 1.0, (bad_header, overwritten)),
    Format("index --check", _make, (*FILES, "rnnreranker.json", "rnnreranker.json"), _check, _slow_check, 1.0),
    Format(
        "Lucene's folder", _make_lucene, LUCENE, _searched, _by_hand, 0.3, (overwritten,), quick=3, needs=_java,
    ),
    Format(
        "Lucene's, no checksums", _make_lucene_of_before, LUCENE, _searched_at_all, lambda _: True, 0.3, (overwritten,),
        quick=6, needs=_java,
    ),
]  # fmt: skip
