"""Encoding texts beside the bare forward passes of the same model on the same batches."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from rnnreranker.bench.summaries import in_pairs, judged
from rnnreranker.command import say
from rnnreranker.data.documents import load_documents
from rnnreranker.errors import MissingDependencyError, UnavailableError
from rnnreranker.process.torch_threads import one_torch_thread

BOUND = 1.15
TEXTS = "pydoc"  # whose first documents are encoded

Work = Callable[[], object]


def encoding(models: tuple[tuple[str, str], ...], count: int, pairs: int) -> list[dict[str, Any]]:
    """Texts a second of encoders, everything but their loading included, against bare passes; one thread.

    Args:
        models: ("encoder" or "sparse-encoder", name) of each; one whose weights are not installed is left out.
        count: texts; pairs: of measurements.
    """

    texts = [document.text for document in itertools.islice(load_documents(TEXTS), count)]
    rows = []
    with one_torch_thread():
        for kind, name in models:
            try:
                encode, model = _loaded(kind, name, texts)
            except (UnavailableError, MissingDependencyError) as error:
                say(f"encoding: {name} left out: {error}")
                continue
            bare, tokens = bare_passes(model, encode)
            found = in_pairs(bare, encode, pairs, time.process_time)
            row: dict[str, Any] = {"model": name, "texts": len(texts), "padded_tokens": tokens}
            row |= {"bare_texts_s": len(texts) / found.base, "encode_texts_s": len(texts) / found.other}
            row |= {"ratio": found.ratio, "low": found.low, "high": found.high, "pairs": found.pairs}
            rows.append(judged(row, "ratio", BOUND))
    return rows


def _loaded(kind: str, name: str, texts: list[str]) -> tuple[Work, Any]:
    """What encodes the texts, and the model of transformers that it runs."""
    from rnnreranker.encode.encoder import load_encoder
    from rnnreranker.encode.sparse import load_sparse_encoder

    if kind == "sparse-encoder":
        sparse = load_sparse_encoder(name)
        return lambda: sparse.encode(texts, "document", threads=1), sparse.transformer
    dense = load_encoder(name)
    return lambda: dense.encode(texts, threads=1, what="documents"), dense.transformer


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
