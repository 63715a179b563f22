"""What has a way to compute on a GPU, on the processor and there: a cross-encoder, a step of training."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.lab.bench.summaries import in_pairs
from rnnreranker.lab.bench.synthetic import contexts

WORDS, QUERY_TOKENS = 7, 32  # of a query's text; of a query that is trained on
BATCH = 32  # queries of a step

Compared = tuple[dict[str, Any], Callable[[], np.ndarray], Callable[[], np.ndarray]]  # sizes, processor, device


def gpu(
    device: str, sizes: tuple[int, ...], dimension: int, models: tuple[tuple[int, int], ...], scored: int, pairs: int
) -> list[dict[str, Any]]:
    """Elapsed milliseconds on the processor and on a device, in pairs, and how far apart the results are.

    The time includes what goes to the device and comes back.
    models: (layers, width) of made-up encoders; scored: candidates that a cross-encoder scores.
    """
    torch = require("torch", "computing on a device", "torch")
    require("transformers", "the encoders that are measured", "transformers")
    from rnnreranker.base.device import one_device

    where = torch.device(one_device(device))
    named = torch.cuda.get_device_name(where) if where.type == "cuda" else str(where)
    works: list[tuple[str, Compared]] = []
    if importlib.util.find_spec("sentence_transformers") is not None:
        works += [("cross-encoder", _cross_encoder(model, scored, str(where))) for model in models]
    works += [("training step", _step(model, sizes[-1], dimension, str(where))) for model in models]
    rows = []
    for name, (size, on_processor, on_device) in works:
        apart = float(np.abs(on_processor() - on_device()).max())
        ratio = in_pairs(on_processor, on_device, pairs, time.perf_counter)
        row: dict[str, Any] = {"work": name, "device": named, "N": None, "d": None, "layers": None, "width": None}
        row |= size | {"cpu_ms": 1e3 * ratio.base, "device_ms": 1e3 * ratio.other}
        row |= {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}
        rows.append(row | {"apart": apart})
    return rows


def _cross_encoder(model: tuple[int, int], scored: int, device: str) -> Compared:
    """The scores of a query's candidates of 30 to 150 words, all cores against the device."""
    from rnnreranker.base.device import Devices
    from rnnreranker.encode.cross.encoder import PairScorer
    from rnnreranker.lab.bench.pair_scoring import LENGTHS, made_up_words, write_model

    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "model", *model)
        scorers = [PairScorer.load(f"{folder}/model", devices=Devices((on,))) for on in ("cpu", device)]
    rng = np.random.default_rng(0)
    query = made_up_words(rng, WORDS)
    given = [(query, made_up_words(rng, int(rng.integers(*LENGTHS)))) for _ in range(scored)]
    layers, width = model
    size = {"N": scored, "layers": layers, "width": width}
    return size, lambda: scorers[0].score(given).scores, lambda: scorers[1].score(given).scores


def _step(model: tuple[int, int], n: int, dimension: int, device: str) -> Compared:
    """A step of training a query encoder on 32 queries with n candidates; what is compared is the first loss."""
    import torch
    import transformers

    from rnnreranker.base.method import find
    from rnnreranker.encode.dense.query_encoder import QueryEncoder
    from rnnreranker.lab.bench.pair_scoring import WORDS as VOCABULARY
    from rnnreranker.train.query.batches import Batch, score
    from rnnreranker.train.query.optimizer import make_optimizer
    from rnnreranker.train.query.params import TrainParams
    from rnnreranker.train.query.table import VectorTable

    layers, width = model
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, num_hidden_layers=layers, hidden_size=width, num_attention_heads=max(2, width // 32),
        intermediate_size=4 * width, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    table = VectorTable(contexts("random", 1, BATCH * n - 1, dimension)[0].astype(np.float16))
    tokens = torch.from_numpy(rng.integers(0, VOCABULARY, (BATCH, QUERY_TOKENS)))
    targets = rng.random((BATCH, n), dtype=np.float32)
    batch = Batch(
        tokens, torch.ones_like(tokens), rng.permutation(len(table)).reshape(BATCH, n),
        targets / targets.sum(axis=1, keepdims=True), np.arange(n) < np.ones((BATCH, 1)),
    )  # fmt: skip

    def on(where: str) -> Callable[[], np.ndarray]:
        torch.manual_seed(0)
        encoder = QueryEncoder(transformers.BertModel(config), "mean", True, dimension).to(where)
        optimizer, loss = make_optimizer(encoder, TrainParams()), find("loss", "kl")()
        given = [torch.from_numpy(part).to(where) for part in (batch.targets, batch.positive, batch.valid)]

        def step() -> np.ndarray:
            optimizer.zero_grad()
            value = loss(score(encoder, table, batch), *given)
            value.backward()
            optimizer.step()
            return np.asarray(value.detach().cpu())  # waits for the device

        return step

    return {"N": n, "d": dimension, "layers": layers, "width": width}, on("cpu"), on(device)
