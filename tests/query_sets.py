"""Indexes of vectors, queries, topics and judgements, written as commands read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.parts.neighbours import NeighbourGraph, open_neighbours
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.part import write_graph
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.runs import Run


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
    write_texts(folder / "topics.tsv", topics)
    write_lines(folder / "qrels.txt", (f"{qid} 0 {docid} {grade}" for qid, docid, grade in judged))
    return ["--topics", str(folder / "topics.tsv"), "--qrels", str(folder / "qrels.txt")]


def write_texts(path: Path, texts: Mapping[str, str]) -> Path:
    """A table of topics, or of documents in one line each."""
    write_lines(path, ("\t".join(one) for one in texts.items()))
    return path


def write_documents(path: Path, texts: Mapping[str, str]) -> Path:
    """Documents as JSON lines."""
    write_lines(path, (json.dumps({"id": docid, "text": text}) for docid, text in texts.items()))
    return path


def write_neighbours(index: Path, k: int) -> NeighbourGraph:
    """The k nearest of every document, written into an index of vectors and opened."""
    write_graph(DenseNeighbours(open_vectors(index)), index / "neighbours", k)
    return open_neighbours(index)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def ranking(run: Run) -> dict[str, list[str]]:
    """The docids of every query, best first."""
    return {qid: run.ranked(qid) for qid in run}


def files_of(folder: Path) -> dict[str, bytes]:
    """The bytes of every file in a folder and below, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal vectors of length 1, float32."""
    found = rng.standard_normal(shape)
    return (found / np.linalg.norm(found, axis=-1, keepdims=True)).astype(np.float32)
