"""Parts of an index: texts, impacts, neighbours, Faiss of several kinds, Lucene."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from mutations.arrays import ARRAYS, MATRIX, NAMES, bad_header, read_vectors, slow_npy, slow_vectors
from mutations.format import Damage, Format
from mutations.texts import slow_ids, text_of
from rnnreranker.data.document import Document
from rnnreranker.parts.impacts import ImpactSource, QueryImpacts
from rnnreranker.parts.impacts.files import write_impacts
from rnnreranker.parts.neighbours import open_neighbours
from rnnreranker.parts.neighbours.files import write_graph
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.texts import CorpusWriter, documents_of, texts_of
from rnnreranker.parts.vectors import open_vectors

TEXTS = {"a": "one", "b": "zwö\nlines", "c": "", "d": "x" * 50}


def overwritten(rng: Random, path: Path) -> None:
    """Four or eight bytes somewhere become another number: sizes, offsets, types."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 2)):
        size = rng.choice([4, 8])
        place = rng.randrange(0, max(1, min(len(content), rng.choice([64, 256, len(content)])) - size))
        value = rng.choice(
            [0, 1, 2, 3, 5, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1, rng.getrandbits(64)]
        )
        content[place : place + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
    path.write_bytes(bytes(content))


def _make_texts(folder: Path) -> None:
    with CorpusWriter(folder) as corpus:
        for docid, text in TEXTS.items():
            corpus.add(Document(docid, text))


def _make_plain_texts(folder: Path) -> None:
    """As indexes were made before."""
    (folder / "corpus").mkdir()
    lines = [json.dumps({"id": docid, "contents": text}, ensure_ascii=False).encode() for docid, text in TEXTS.items()]
    (folder / "corpus" / "documents.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    offsets = np.cumsum([0, *(len(line) + 1 for line in lines)])[:-1]
    table = np.array(
        sorted(zip(map(_hash, TEXTS), offsets.tolist(), strict=True)), dtype=[("hash", "<u8"), ("offset", "<i8")]
    )
    np.save(folder / "corpus" / "offsets.npy", table)


def _read_texts(folder: Path) -> Any:
    return [texts_of(folder, TEXTS), [(one.docid, one.text) for one in documents_of(folder)]]


def _hash(docid: str) -> int:
    return int.from_bytes(hashlib.blake2b(docid.encode(), digest_size=8).digest(), "little")


def _slow_texts(folder: Path) -> Any:
    """Every entry of the table in turn, for every docid."""
    packed = folder / "corpus" / "documents.jsonl.gz"
    compressed = packed.exists()
    content = (packed if compressed else folder / "corpus" / "documents.jsonl").read_bytes()
    raw = (folder / "corpus" / "offsets.npy").read_bytes()
    length = int.from_bytes(raw[8:10], "little") if raw[6] == 1 else int.from_bytes(raw[8:12], "little") + 2
    table = list(struct.iter_unpack("<Qq", raw[10 + length :]))
    found = {}
    for docid in TEXTS:
        wanted = _hash(docid)
        for marked, offset in table:
            if marked == wanted and docid not in found:
                rest = gzip.decompress(content[offset >> 16 :])[offset & 65535 :] if compressed else content[offset:]
                record = json.loads(rest.split(b"\n")[0])
                if record["id"] == docid:
                    found[docid] = record["contents"]
    content = gzip.decompress(content) if compressed else content
    records = [json.loads(line) for line in content.removesuffix(b"\n").split(b"\n")] if content else []
    return [found, [(one["id"], one["contents"]) for one in records]]


DESCRIBED = {"vocabulary": 5, "words": "w", "factor": None, "encoder": {"name": "m"}}


def _make_impacts(folder: Path) -> None:
    from scipy.sparse import csr_matrix

    weights = np.array([[0, 1, 0, 2.5, 0], [1, 0, 0, 0, 3], [0, 0, 0, 0, 0.5], [2, 2, 2, 2, 2]], dtype=np.float32)
    write_impacts(folder / "impacts", lambda: [csr_matrix(weights)], 5, True)
    (folder / "docid").write_text(NAMES)


def _read_impacts(folder: Path) -> Any:
    from scipy.sparse import csr_matrix

    source = ImpactSource(folder, DESCRIBED)
    rows = source.fetch(np.arange(len(source.docids)))
    scores, found = source.search(QueryImpacts(csr_matrix(np.ones((1, 5), dtype=np.float32))), 10)
    ranked = [source.docids[row] for row in found[0].tolist()]
    return [
        list(source.docids),
        rows.toarray().tolist(),
        scores[0].tolist(),
        ranked,
        source.document_frequencies.tolist(),
    ]


def _slow_impacts(folder: Path) -> Any:
    offsets, terms, weights = (
        slow_npy((folder / "impacts" / f"{name}.npy").read_bytes()).tolist() for name in ("offsets", "terms", "weights")
    )
    docids = slow_ids(folder / "docid")
    assert len(set(docids)) == len(docids) == len(offsets) - 1
    assert offsets[0] == 0
    assert offsets[-1] == len(terms) == len(weights)
    rows, scores = [], {}
    for docid, start, end in zip(docids, offsets[:-1], offsets[1:], strict=True):
        assert start <= end
        row = [0.0] * 5
        for term, weight in zip(terms[start:end], weights[start:end], strict=True):
            assert np.isfinite(weight)
            row[term] += weight
        rows.append(row)
        if end > start:
            scores[docid] = sum(weights[start:end])
    ranked = sorted(scores, key=lambda docid: (-scores[docid], docid.encode()))
    return [docids, rows, [scores[docid] for docid in ranked], ranked, [terms.count(term) for term in range(5)]]


def _make_graph(folder: Path) -> None:
    np.save(folder / "vectors.npy", MATRIX)
    (folder / "docid").write_text(NAMES)
    write_graph(DenseNeighbours(open_vectors(folder)), folder / "neighbours", 2, threads=1, work=folder / "work")


def _read_graph(folder: Path) -> Any:
    graph = open_neighbours(folder)
    graph.check_whole()
    rows = np.arange(len(graph))
    return [list(graph.docids), graph.neighbours(rows).tolist(), graph.similarities(rows).tolist()]


def _slow_graph(folder: Path) -> Any:
    place = folder / "neighbours"
    meta = json.loads(text_of(place / "pt_meta.json"))
    edges = [one for (one,) in struct.iter_unpack("<I", (place / "edges.u32.np").read_bytes())]
    weights = [one for (one,) in struct.iter_unpack("<e", (place / "weights.f16.np").read_bytes())]
    docids, k = slow_ids(folder / "docid"), meta["k"]
    assert len(edges) == len(weights) == len(docids) * k
    assert meta["doc_count"] == len(docids)
    assert max(edges) < len(docids)
    assert np.isfinite(weights).all()
    parts = [list(values[at : at + k]) for values in (edges, weights) for at in range(0, len(values), k)]
    return [docids, parts[: len(docids)], parts[len(docids) :]]


def _make_alone(folder: Path) -> None:
    """A graph without an index around it: its docids are in docnos.npids."""
    _make_graph(folder)
    (folder / "docid").unlink()


def _read_alone(folder: Path) -> Any:
    return _read_graph(folder / "neighbours")


def _slow_alone(folder: Path) -> Any:
    """The description has a digest of the docids, so that what is read must be what was written."""
    (folder / "docid").write_text(NAMES)
    return _slow_graph(folder)


def _faiss(kind: str) -> Any:
    import faiss

    if kind == "IDMap":
        index = faiss.IndexIDMap(faiss.IndexFlatIP(3))
        index.add_with_ids(MATRIX, np.array([1, 0, 3, 2], dtype=np.int64))
        return index
    if kind == "HNSW":
        index = faiss.IndexHNSWFlat(3, 4, faiss.METRIC_INNER_PRODUCT)
    elif kind == "IVF":
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(3), 3, 2, faiss.METRIC_INNER_PRODUCT)
    elif kind == "PQ":
        index = faiss.IndexPQ(3, 3, 2, faiss.METRIC_INNER_PRODUCT)
    elif kind == "SQ":
        index = faiss.IndexScalarQuantizer(3, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    else:
        index = faiss.IndexFlatIP(3)
    index.train(MATRIX)
    index.add(MATRIX)
    return index


def _of_faiss(kind: str, weight: float) -> Format:
    def make(folder: Path) -> None:
        import faiss

        index = _faiss(kind)
        faiss.write_index(index, str(folder / "index"))
        (folder / "docid").write_text(NAMES)

    def read(folder: Path) -> Any:
        import faiss

        faiss.omp_set_num_threads(1)
        found = read_vectors(folder)
        return found if kind == "flat" else found[:2]  # others search as their damaged graphs and lists say

    def slow(folder: Path) -> Any:
        docids, content = slow_ids(folder / "docid"), (folder / "index").read_bytes()
        if kind == "flat":
            count, dimension = len(docids), int.from_bytes(content[4:8], "little")
            assert len(content) == 45 + 4 * count * dimension
            matrix = np.array([one for (one,) in struct.iter_unpack("<f", content[45:])], dtype=np.float32)
            return slow_vectors([matrix.reshape(count, dimension)], docids)
        return [docids, _from_memory(content, docids)]

    own: tuple[Damage, ...] = (overwritten,)
    return Format(f"Faiss, {kind}", make, ("index", "index", "docid"), read, slow, weight, own, quick=10)


def _from_memory(content: bytes, docids: list[str]) -> np.ndarray:
    """The vectors one by one from an index that Faiss reads from memory, where nothing is mapped."""
    import faiss

    index = faiss.deserialize_index(np.frombuffer(content, dtype=np.uint8))
    assert index.ntotal == len(docids) == len(set(docids))
    rows = range(index.ntotal)
    if isinstance(index, faiss.IndexIDMap):
        names = faiss.vector_to_array(index.id_map).tolist()
        assert sorted(names) == list(rows)
        inner = faiss.downcast_index(index.index)
        found = np.stack([inner.reconstruct(names.index(row)) for row in rows])
    else:
        if (lists := faiss.try_extract_index_ivf(index)) is not None:
            lists.make_direct_map()
        found = np.stack([index.reconstruct(row) for row in rows])
    assert np.isfinite(found).all()
    return found


FORMATS = [
    Format(
        "texts of an index", _make_texts, ("corpus/documents.jsonl.gz", "corpus/offsets.npy"), _read_texts, _slow_texts,
        1.0, (bad_header, overwritten),
    ),
    Format(
        "texts, not compressed", _make_plain_texts, ("corpus/documents.jsonl", "corpus/offsets.npy"), _read_texts,
        _slow_texts, 0.7, (bad_header, overwritten),
    ),
    Format(
        "impacts", _make_impacts, ("impacts/offsets.npy", "impacts/terms.npy", "impacts/weights.npy", "docid"),
        _read_impacts, _slow_impacts, 1.0, ARRAYS,
    ),
    Format(
        "neighbours", _make_graph,
        ("neighbours/edges.u32.np", "neighbours/weights.f16.np", "neighbours/pt_meta.json", "docid"), _read_graph,
        _slow_graph, 1.0, (overwritten,),
    ),
    Format(
        "neighbours, docnos.npids", _make_alone, ("neighbours/docnos.npids",), _read_alone, _slow_alone, 0.5,
        (overwritten,),
    ),
    *(_of_faiss(kind, 1.0 if kind == "flat" else 0.6) for kind in ("flat", "IDMap", "HNSW", "IVF", "PQ", "SQ")),
]  # fmt: skip
