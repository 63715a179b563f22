"""Encoding texts beside the bare passes of what computes on the same batches, and beside those of torch."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from rnnreranker.base.command import say
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.process.torch_threads import one_torch_thread
from rnnreranker.data.documents import load_documents
from rnnreranker.lab.bench.summaries import in_pairs, judged

BOUND = 1.1
TEXTS = "pydoc"  # whose first documents are encoded

Work = Callable[[], object]


def encoding(models: tuple[tuple[str, str], ...], count: int, pairs: int) -> list[dict[str, Any]]:
    """Texts a second of encoders, everything but their loading included, against bare passes; one thread.

    Args:
        models: ("encoder", "sparse-encoder" or "late-encoder", name) of each; one whose weights are not installed is
            left out.
        count: texts; pairs: of measurements.
    """

    texts = [document.text for document in itertools.islice(load_documents(TEXTS), count)]
    rows = []
    with one_torch_thread():
        for kind, name in models:
            try:
                opened, loaded, transformer = _encoders(kind, name)
            except (UnavailableError, MissingDependencyError) as error:
                say(f"encoding: {name} left out: {error}")
                continue
            encode, by_model = _work(kind, opened, texts), _work(kind, loaded, texts)
            model, tokens = bare_passes(transformer, by_model)
            by_graph = opened.graph is not None
            ratio = in_pairs(
                graph_passes(opened.model, encode) if by_graph else model, encode, pairs, time.process_time
            )
            of_model = in_pairs(model, encode, pairs, time.process_time)
            row: dict[str, Any] = {"model": name, "by": "graph" if by_graph else "model", "texts": len(texts)}
            row |= {"padded_tokens": tokens, "bare_texts_s": len(texts) / ratio.base}
            row |= {"encode_texts_s": len(texts) / ratio.other}
            row |= {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}
            row |= {"model_texts_s": len(texts) / of_model.base, "of_model": of_model.ratio}
            rows.append(judged(row, "ratio", BOUND))
    return rows


def _encoders(kind: str, name: str) -> tuple[Any, Any, Any]:
    """An encoder by its graph, the same by torch, and the model of transformers that the latter runs."""
    if kind == "sparse-encoder":
        from rnnreranker.encode.sparse.encoder import SparseEncoder

        sparse = SparseEncoder.load(name)
        return SparseEncoder.open(name), sparse, sparse.model.transformer
    if kind == "late-encoder":
        from rnnreranker.encode.late.encoder import LateEncoder

        late = LateEncoder.load(name)
        return LateEncoder.open(name), late, late.model.modules[0].model
    from rnnreranker.encode.dense.encoder import Encoder

    dense = Encoder.load(name)
    return Encoder.open(name), dense, dense.transformer


def _work(kind: str, encoder: Any, texts: list[str]) -> Work:
    """What encodes the texts, as documents."""
    if kind == "encoder":
        return lambda: encoder.encode(texts, threads=1, what="documents")
    return lambda: encoder.encode(texts, "document", threads=1)


def bare_passes(model: Any, encode: Work) -> tuple[Work, int]:
    """The forward passes that encoding makes, on its batches of token numbers; how many numbers with the padding."""
    import torch

    batches: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    forward = model.forward

    def noting(*args: Any, **named: Any) -> Any:  # no hook: sentence-transformers calls `forward` itself
        batches.append((args, named))
        return forward(*args, **named)

    model.forward = noting
    encode()
    model.forward = forward

    def work() -> None:
        with torch.inference_mode():
            for args, named in batches:
                forward(*args, **named)

    return work, sum(named["input_ids"].numel() for _, named in batches)


def graph_passes(model: Any, encode: Work) -> Work:
    """The runs of a graph that encoding makes, on its batches of token numbers; model: with a `GraphSession`."""
    batches: list[dict[str, Any]] = []
    run = model.session.run

    def noting(**inputs: Any) -> Any:
        batches.append(inputs)
        return run(**inputs)

    model.session.run = noting
    encode()
    del model.session.run

    def work() -> None:
        for inputs in batches:
            run(**inputs)

    return work
