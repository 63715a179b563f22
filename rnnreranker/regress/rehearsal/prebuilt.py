"""Pyserini's prebuilt indexes in small, in a cache of its own under the names that Pyserini looks for."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, UnavailableError, require
from rnnreranker.base.files import folder_written_whole
from rnnreranker.base.java import library_output, start_java, whole_logging
from rnnreranker.data.document import Document
from rnnreranker.regress.plans.obstacles import downloaded
from rnnreranker.regress.rehearsal.datasets.families import documents_of
from rnnreranker.regress.rehearsal.models import write_models
from rnnreranker.regress.rehearsal.models.distilbert import TAS_B
from rnnreranker.regress.rehearsal.models.hub import snapshot
from rnnreranker.regress.rehearsal.source import Source

COLLECTIONS = {
    "msmarco-v1-passage": "msmarco-passage",
    "msmarco-v2-passage": "msmarco-passage-v2",
    "msmarco-v2-doc": "msmarco-document-v2",
}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {  # what follows the collection in the name of a Faiss index
    "distilbert-dot-tas_b-b256": (TAS_B, {"pooling": "cls", "normalize": False, "max_length": 256}),
}


def write_prebuilt(source: Source, folder: Path, wanted: Iterable[str]) -> dict[str, str]:
    """Write the miniatures of prebuilt indexes; those that are there already stay.

    Args:
        source: what the collections' miniatures are made of: an index has their documents.
        folder: in which the cache of Pyserini is made, and the models of Faiss indexes, as `write_models` has them.
        wanted: names of Pyserini.

    Returns:
        The environment variables that lead Pyserini there.

    Raises:
        InputError: an index that there is no miniature of.
        UnavailableError: Java or Pyserini lack, which say where an index is.
    """
    cache = folder.absolute() / "pyserini"
    for name in dict.fromkeys(wanted):
        collection, _, encoder = name.partition(".")
        if collection not in COLLECTIONS or (encoder and encoder not in ENCODERS):
            known = [*COLLECTIONS, *(f"{next(iter(COLLECTIONS))}.{one}" for one in ENCODERS)]
            raise InputError(f"{name}: no miniature of this prebuilt index; expected {', '.join(known)}")
        if downloaded(name, cache):
            continue
        documents = list(documents_of(source, COLLECTIONS[collection]))
        with folder_written_whole(cache / "indexes" / _folder_of(name)) as new:
            if encoder:
                _write_faiss(new, documents, folder, *ENCODERS[encoder])
            else:
                _write_lucene(new, documents)
    return {"PYSERINI_CACHE": str(cache)}


def _folder_of(name: str) -> str:
    """What Pyserini calls the folder of an index: its archive's name and the archive's checksum."""
    start_java()  # Pyserini's tables of indexes need it
    from pyserini.prebuilt_index_info import FAISS_INDEX_INFO, TF_INDEX_INFO

    said = (FAISS_INDEX_INFO if name in FAISS_INDEX_INFO else TF_INDEX_INFO)[name]
    return f"{said['filename'].removesuffix('.tar.gz')}.{said['md5']}"


def _write_lucene(folder: Path, documents: list[Document]) -> None:
    """Write an index of words as the prebuilt ones are: with positions, vectors of words, and the texts themselves."""
    import jnius

    with tempfile.TemporaryDirectory(prefix="rnnreranker-") as corpus:
        with open(Path(corpus, "documents.jsonl"), "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps({"id": one.docid, "contents": one.text}) + "\n" for one in documents)
        words = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1"]
        words += ["-storePositions", "-storeDocvectors", "-storeRaw", "-optimize", "-quiet"]
        with library_output() as lines, whole_logging():
            jnius.autoclass("io.anserini.index.IndexCollection").main([*words, "-input", corpus, "-index", str(folder)])
    if not any(folder.glob("segments_*")):
        raise UnavailableError(f"{folder}: Anserini made no index: {(lines or ['it says nothing'])[-1]}")


def _write_faiss(folder: Path, documents: list[Document], home: Path, model: str, settings: dict[str, Any]) -> None:
    """Write a flat index of inner products, with one docid a line."""
    from rnnreranker.encode.dense.encoder import Encoder

    faiss = require("faiss", "a prebuilt index of vectors", "faiss-cpu")
    write_models(home, [model])
    encoder = Encoder.load(str(snapshot(home, model)), **settings)
    vectors = encoder.encode([one.text for one in documents], what="documents")
    index = faiss.IndexFlatIP(encoder.dimension)
    index.add(np.ascontiguousarray(vectors))
    faiss.write_index(index, str(folder / "index"))
    (folder / "docid").write_text("".join(f"{one.docid}\n" for one in documents), encoding="utf-8")
