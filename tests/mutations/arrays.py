"""Arrays: matrices of vectors in every layout, query vectors, and kept ones of the cache."""

from __future__ import annotations

import ast
import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from mutations.format import Damage, Format
from mutations.texts import slow_ids
from rnnreranker.encode.kept_queries import read_kept
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.queries import load_encoded_queries

NUMBERS = {"<f4": "<f", "<f2": "<e", "<i8": "<q", "<i4": "<i", "<u4": "<I", "<u2": "<H", "|u1": "<B", "<f8": "<d"}
MATRIX = np.arange(1, 13, dtype=np.float32).reshape(4, 3) / 7
NAMES = "a\nb\nc\nd\n"


def slow_npy(content: bytes) -> np.ndarray:
    """An array from the bytes of a .npy file, number by number: the header is a Python literal behind its length."""
    assert content[:6] == b"\x93NUMPY"
    size, start = (2, 10) if content[6] == 1 else (4, 12)
    length = int.from_bytes(content[8 : 8 + size], "little")
    header = ast.literal_eval(content[start : start + length].decode("latin1").strip())
    kind, shape, data = header["descr"], header["shape"], content[start + length :]
    if not isinstance(kind, str) or kind not in NUMBERS:  # none of those above, as <i2: let numpy say what it is
        values = np.frombuffer(data, np.dtype(kind)).tolist()
    else:
        values = [one for (one,) in struct.iter_unpack(NUMBERS[kind], data)]
    found = np.array(values, dtype=np.dtype(kind))
    return found.reshape(shape, order="F" if header["fortran_order"] else "C")


def bad_header(rng: Random, path: Path) -> None:
    """Another header on the same numbers: type, shape, order, version."""
    content = path.read_bytes()
    if content[:6] != b"\x93NUMPY":
        content = rng.randbytes(len(content))
    else:
        length = int.from_bytes(content[8:10], "little")
        header = ast.literal_eval(content[10 : 10 + length].decode("latin1"))
        count = int(np.prod(header["shape"]))
        shapes = [(count,), (count, 1), (1, count), (2, count // 2), (0, 3), (count + 1,), (-count,), (2**62, 2)]
        shapes += [(2**31, 2**31), (2**64,), (), (1, *header["shape"]), ("3",), (True, count), (1.0, count)]
        kinds = ["<f8", ">f4", "<i4", "|O", "|S4", "<U1", "<c8", "<M8[s]", "|V4", "<f2", "|b1", "<f4", "f4", "<q", "x"]
        kinds += [[("a", "<f2"), ("b", "<f2")], "4000000000f4", "|V0", "<f16"]
        changed = rng.choice(["shape", "descr", "order", "more"])
        if changed == "shape":
            header["shape"] = rng.choice(shapes)
        elif changed == "descr":
            header["descr"] = rng.choice(kinds)
        elif changed == "order":
            header["fortran_order"] = rng.choice([True, False, 1, None, "x"])
        else:
            header["more"] = rng.choice(["x", [[]] * 50])
        text = repr(header).encode()
        version = rng.choice([b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x04\x00"])
        lengthed = struct.pack("<H" if version[0] == 1 else "<I", len(text))
        content = b"\x93NUMPY" + version + lengthed + text + content[10 + length :]
    path.write_bytes(content)


def bad_numbers(rng: Random, path: Path) -> None:
    """Other numbers behind the header: not finite, huge, tiny."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 3)):
        value = rng.choice([float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e30, 1e-45, -0.0, 65504.0])
        bits = struct.pack("<f", value) if rng.random() < 0.7 else rng.choice([b"\x00\x7c", b"\x01\x7e", b"\x01\x00"])
        place = len(content) - len(bits) * rng.randint(1, max(1, min(len(content) // len(bits), 12)))
        content[max(place, 0) : max(place, 0) + len(bits)] = bits
    path.write_bytes(bytes(content))


ARRAYS: tuple[Damage, ...] = (bad_header, bad_numbers)


def read_vectors(path: Path) -> Any:
    """Docids, all vectors, and that a search finds what the inner products say."""
    source = open_vectors(path)
    vectors = source.fetch(np.arange(len(source.docids)))
    query = np.ones((1, source.dimension), dtype=np.float32)
    scores, rows = source.search(query, 3)
    return [list(source.docids), vectors, scores[0].tolist(), [source.docids[row] for row in rows[0].tolist()]]


def slow_vectors(matrices: list[np.ndarray], docids: list[str]) -> Any:
    found = np.concatenate([np.asarray(one.tolist(), dtype=np.float32).reshape(one.shape) for one in matrices])
    assert found.ndim == 2
    assert all(one.dtype in (np.float32, np.float16) for one in matrices)
    assert len(found) == len(docids) == len(set(docids))
    assert np.isfinite(found).all()
    products = [sum(float(value) for value in row) for row in found]
    best = sorted(range(len(docids)), key=lambda row: (-products[row], docids[row].encode()))[:3]
    return [docids, found, [products[row] for row in best], [docids[row] for row in best]]


def _of_layout(
    name: str, files: dict[str, np.ndarray | str | bytes], ids: str, path: str = "", weight: float = 1.0
) -> Format:
    """A layout of matrices beside a file of ids."""
    matrices = [file for file, content in files.items() if isinstance(content, np.ndarray)]

    def make(folder: Path) -> None:
        for file, content in files.items():
            if isinstance(content, np.ndarray):
                np.save(folder / file, content)
            else:
                (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)

    def slow(folder: Path) -> Any:
        return slow_vectors([slow_npy((folder / file).read_bytes()) for file in matrices], slow_ids(folder / ids))

    return Format(name, make, tuple(files), lambda folder: read_vectors(folder / path), slow, weight, ARRAYS)


def _make_flex(folder: Path) -> None:
    (folder / "vecs.f4").write_bytes(MATRIX.tobytes())
    (folder / "pt_meta.json").write_text('{"type": "dense_index", "format": "flex", "vec_size": 3, "doc_count": 4}')
    (folder / "docnos").write_text(NAMES)


def _slow_flex(folder: Path) -> Any:
    meta = json.loads((folder / "pt_meta.json").read_text())
    assert type(meta["vec_size"]) is int
    numbers = [one for (one,) in struct.iter_unpack("<f", (folder / "vecs.f4").read_bytes())]
    matrix = np.array(numbers, dtype=np.float32).reshape(-1, meta["vec_size"])
    assert meta.get("doc_count", len(matrix)) == len(matrix)
    return slow_vectors([matrix], slow_ids(folder / "docnos"))


def _make_queries(folder: Path) -> None:
    np.save(folder / "queries.npy", MATRIX)
    (folder / "queries.ids").write_text(NAMES)


def _read_queries(folder: Path) -> Any:
    found = load_encoded_queries(folder / "queries.npy")
    return [list(found.qids), found.vectors]


def _slow_queries(folder: Path) -> Any:
    return slow_vectors([slow_npy((folder / "queries.npy").read_bytes())], slow_ids(folder / "queries.ids"))[:2]


def _make_kept(folder: Path) -> None:
    np.savez(folder / "kept.npz", weights=MATRIX[0], terms=np.arange(3), words="x")


def _read_kept(folder: Path) -> Any:
    """What the cache holds; where it is damaged it counts as not there, and is made again."""
    found = read_kept(folder / "kept.npz", {"weights", "terms", "words"})
    return _slow_kept(folder) if found is None else found


def _slow_kept(folder: Path) -> Any:
    """Its checksums say that it is what was written, or else it is not taken."""
    return {"weights": MATRIX[0], "terms": np.arange(3), "words": np.array("x")}


FORMATS = [
    _of_layout("vectors, float32", {"vectors.npy": MATRIX, "docid": NAMES}, "docid", weight=1.5),
    _of_layout("vectors, float16", {"vectors.npy": MATRIX.astype(np.float16), "docid": NAMES}, "docid"),
    _of_layout("vectors, by columns", {"vectors.npy": np.asfortranarray(MATRIX), "ids": NAMES}, "ids", weight=0.5),
    _of_layout("vectors, shards", {"x.2.npy": MATRIX[:3], "x.10.npy": MATRIX[3:], "docid": NAMES}, "docid"),
    _of_layout("vectors, X.npy with X.ids", {"docs.npy": MATRIX, "docs.ids": NAMES}, "docs.ids", "docs.npy"),
    Format(
        "vectors, FlexIndex", _make_flex, ("vecs.f4", "pt_meta.json", "docnos"), read_vectors, _slow_flex, 1.0,
        (bad_numbers,),
    ),
    Format("query vectors", _make_queries, ("queries.npy", "queries.ids"), _read_queries, _slow_queries, 1.0, ARRAYS),
    Format("kept queries of the cache", _make_kept, ("kept.npz",), _read_kept, _slow_kept, 0.7),
]  # fmt: skip
