"""Encoding the documents of an index beside bare forward passes: of what computes, and of the model in float32."""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

from rnnreranker.base.command import say
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.process.torch_threads import one_torch_thread
from rnnreranker.data.documents import load_documents
from rnnreranker.lab.bench.encoding import TEXTS, bare_passes, graph_passes
from rnnreranker.lab.bench.summaries import in_pairs, judged

BOUND = 1.1


def index_encoding(name: str, count: int, pairs: int) -> list[dict[str, Any]]:
    """Documents a second until their vectors are on disk, against bare passes; one thread.

    A row for float32, and one for bfloat16 where the processor multiplies that; none where the model is not here.

    Args:
        name: of an encoder; count: documents, which make one block; pairs: of measurements.
    """
    from rnnreranker.encode.dense.encoder import Encoder, has_bfloat16

    try:
        with one_torch_thread():
            exact = Encoder.load(name)
            dtypes = ("float32", *(["bfloat16"] if has_bfloat16() else []))
            return [_row(exact, Encoder.load(name, dtype=dtype), count, pairs) for dtype in dtypes]
    except (UnavailableError, MissingDependencyError) as error:
        say(f"index-encoding: {name} left out: {error}")
        return []


def _row(exact: Any, encoder: Any, count: int, pairs: int) -> dict[str, Any]:
    from rnnreranker.parts.vectors.part import DensePart

    documents = list(itertools.islice(load_documents(TEXTS), count))
    texts = [document.text for document in documents]
    with tempfile.TemporaryDirectory() as folder:
        part, work = DensePart(encoder), Path(folder)
        part.start(work, threads=1)
        part.add(documents)
        (work / "made").mkdir()
        described = part.write(work / "made", work, count)["encoder"]

        def add() -> None:
            part.add(documents)

        by_graph = described.get("documents") == "graph"
        bare = graph_passes(part.of_documents.model, add) if by_graph else bare_passes(encoder.transformer, add)[0]
        ratio = in_pairs(bare, add, pairs, time.process_time)
        model, _ = bare_passes(exact.transformer, lambda: exact.encode(texts, threads=1, what="documents"))
        of_model = in_pairs(model, add, pairs, time.process_time)
    row: dict[str, Any] = {"model": exact.name, "by": described.get("documents", "model")}
    row |= {"dtype": encoder.settings["dtype"], "1-cosine": 1 - described["cosine"], "texts": count}
    row |= {"bare_texts_s": count / ratio.base, "index_texts_s": count / ratio.other}
    row |= {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}
    row |= {"model_texts_s": count / of_model.base, "of_model": of_model.ratio}
    return judged(row, "ratio", BOUND)
