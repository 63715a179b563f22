"""Encoding the documents of an index by the code of a GPU, `index --device`, beside the bare passes of the model."""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

from rnnreranker.base.command import say
from rnnreranker.base.device import EXACT, Devices
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.process.torch_threads import one_torch_thread
from rnnreranker.data.documents import load_documents
from rnnreranker.encode.dense.encoder import has_bfloat16
from rnnreranker.lab.bench.encoding import TEXTS, bare_passes
from rnnreranker.lab.bench.summaries import in_pairs, judged

BOUND = 1 / 0.9  # nine tenths of the documents a second that the bare model reaches
KEPT = 120  # words of a document, about as many as trained encoders give a weight


def device_encoding(
    models: tuple[tuple[str, str], ...], made_up: tuple[int, int], count: int, pairs: int, device: str
) -> list[dict[str, Any]]:
    """Documents a second until a block of them is on disk, against the bare passes on the same batches of tokens.

    A row for float32 and bfloat16 each; on the processor, one thread and its time; on a GPU elapsed time. A processor
    that does not multiply bfloat16 has float32 alone.

    Args:
        models: ("encoder" or "sparse-encoder", name) of each; one whose weights are not installed is left out.
        made_up: layers and width of a masked-language model with made-up weights and the words of the sparse encoders
            among the models, which encodes a quarter of the documents; left out where they are.
        count: documents, which make one block; pairs: of measurements; device: as torch names it.
    """
    dtypes = (EXACT, *(["bfloat16"] if device != "cpu" or has_bfloat16() else []))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, one_torch_thread():
        for kind, name in models:
            works = [(name, name, count)]
            if kind == "sparse-encoder":
                layers, width = made_up
                works.append((str(Path(folder) / "model"), f"{layers} x {width}, made up", max(1, count // 4)))
            try:
                for path, shown, texts in works:
                    if path != name:
                        _write_model(Path(path), name, *made_up)
                    rows += [_row(kind, path, shown, Devices((device,), dtype), texts, pairs) for dtype in dtypes]
            except (UnavailableError, MissingDependencyError) as error:
                say(f"device-encoding: {name} left out: {error}")
    return rows


def _row(kind: str, name: str, shown: str, devices: Devices, count: int, pairs: int) -> dict[str, Any]:
    import torch

    documents = list(itertools.islice(load_documents(TEXTS), count))
    part = _part(kind, name)
    part.devices = devices
    with tempfile.TemporaryDirectory() as folder:
        part.start(Path(folder), threads=1)
        part.add(documents)  # the encoder is loaded, and compared with that of the processor

        def add() -> None:
            part.add(documents)

        model = part.of_documents.model
        passes, tokens = bare_passes(model.transformer, add)

        def bare() -> None:
            passes()
            if devices.kind == "cuda":
                torch.cuda.synchronize(devices.names[0])

        clock = time.perf_counter if devices.elsewhere else time.process_time
        ratio = in_pairs(bare, add, pairs, clock)
    row: dict[str, Any] = {"part": part.name, "model": shown, "device": devices.names[0], "dtype": devices.dtype}
    row |= {"texts": count, "padded_tokens": tokens}
    row |= {"bare_texts_s": count / ratio.base, "index_texts_s": count / ratio.other}
    row |= {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}
    return judged(row, "ratio", BOUND)


def _part(kind: str, name: str) -> Any:
    """The part of an index whose documents are encoded."""
    if kind == "sparse-encoder":
        from rnnreranker.encode.sparse.encoder import SparseEncoder
        from rnnreranker.parts.impacts.params import ImpactParams
        from rnnreranker.parts.impacts.part import ImpactPart

        return ImpactPart(SparseEncoder.load(name), ImpactParams())
    from rnnreranker.encode.dense.encoder import Encoder
    from rnnreranker.parts.vectors.part import DensePart

    return DensePart(Encoder.load(name))


def _write_model(folder: Path, name: str, layers: int, width: int) -> None:
    """A masked-language model with made-up weights and the tokenizer of another, that gives `KEPT` words a weight."""
    import torch
    import transformers

    from rnnreranker.encode.model_folder import find_model

    words_of = find_model(name, "sparse-encoder").path
    tokenizer = transformers.AutoTokenizer.from_pretrained(words_of, local_files_only=True)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), num_hidden_layers=layers, hidden_size=width,
        num_attention_heads=max(2, width // 64), intermediate_size=4 * width,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(config)
    with torch.no_grad():
        bias = model.get_output_embeddings().bias
        bias.fill_(-1000.0)
        bias[torch.randperm(len(bias))[:KEPT]] = 3.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
