"""Indexes of vectors, queries, topics and judgements, written as commands read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def write_index(folder: Path, vectors: Any, docids: Sequence[str] | None = None) -> Path:
    """The folder of (N, d) vectors; documents without names are d0, d1, …"""
    folder.mkdir(exist_ok=True)
    np.save(folder / "vectors.npy", np.asarray(vectors, dtype=np.float32))
    write_lines(folder / "docid", docids or [f"d{row}" for row in range(len(vectors))])
    return folder


def write_queries(path: Path, qids: Iterable[str], vectors: Any) -> Path:
    """A matrix of query vectors, .npy, with the ids beside it."""
    np.save(path, np.asarray(vectors, dtype=np.float32))
    write_lines(path.with_suffix(".ids"), qids)
    return path


def write_judged(folder: Path, topics: Mapping[str, str], judged: Iterable[tuple[str, str, int]]) -> list[str]:
    """topics.tsv and qrels.txt; the flags of both."""
    write_lines(folder / "topics.tsv", ("\t".join(one) for one in topics.items()))
    write_lines(folder / "qrels.txt", (f"{qid} 0 {docid} {grade}" for qid, docid, grade in judged))
    return ["--topics", str(folder / "topics.tsv"), "--qrels", str(folder / "qrels.txt")]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
