"""Reranking by a cross-encoder beside the bare passes of what computes on the same batches, and beside torch's."""

from __future__ import annotations

import dataclasses
import importlib.util
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.method import Inputs, make_params
from rnnreranker.encode.cross.encoder import PairScorer
from rnnreranker.encode.in_batches import BATCH_TOKENS
from rnnreranker.lab.bench.encoding import bare_passes, graph_passes
from rnnreranker.lab.bench.fresh_process import in_fresh_process
from rnnreranker.lab.bench.summaries import in_pairs, judged
from rnnreranker.methods.rerank import make_reranker
from rnnreranker.runs import Run

BOUND = 1.1
WORDS = 2000  # of the vocabulary, each a token
LENGTHS = (30, 151)  # words of a document
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def pairs(models: tuple[tuple[int, int], ...], candidates: int, times: int) -> list[dict[str, Any]]:
    """A row a model of (layers, width), each in a process and with a cache folder of its own, see `measured`."""
    rows: list[dict[str, Any]] = []
    if importlib.util.find_spec("sentence_transformers") is None:
        return rows
    for layers, width in models:
        with tempfile.TemporaryDirectory() as folder:
            given = {"folder": folder, "layers": layers, "width": width, "candidates": candidates, "times": times}
            measured = in_fresh_process(__name__, "measured", {"RNNRERANKER_HOME": folder}, **given)
        row: dict[str, Any] = {"layers": layers, "width": width, "candidates": candidates, "batch_tokens": BATCH_TOKENS}
        speed = {"bare_pairs_s": candidates / measured["base"], "rerank_pairs_s": candidates / measured["other"]}
        spread = {key: measured[key] for key in ("ratio", "low", "high", "pairs")}
        beside = {"new_texts": measured["new_texts"], "model_pairs_s": candidates / measured["model"]}
        beside["of_model"] = measured["of_model"]
        rows.append(judged(row | speed | spread | beside, "ratio", BOUND))
    return rows


def measured(folder: str, layers: int, width: int, candidates: int, times: int) -> dict[str, float]:
    """The reranker, everything but its loading included (other), against bare passes (base): a `Ratio` as a dict.

    Of torch's own passes, `model` has the seconds, and `of_model` the ratio to them. Every measured rerank is of a
    query of its own, so that no kept score is read; the candidates are the same, whose tokens are kept, but for
    `new_texts`, the ratio where none was read before.
    """
    import torch

    torch.set_num_threads(1)
    write_model(Path(folder) / "model", layers, width)
    params = make_params("reranker", "cross-encoder", {"model": f"{folder}/model"})
    rng = np.random.default_rng(0)
    texts = {f"d{row}": made_up_words(rng, int(rng.integers(*LENGTHS))) for row in range(candidates)}
    topics: dict[str, str] = {}
    reranker: Any = make_reranker("cross-encoder", Inputs(topics=topics, texts=texts), params, threads=1)

    def rerank() -> None:
        qid = f"q{len(topics)}"
        topics[qid] = made_up_words(rng, 7)
        reranker.rerank(Run.from_dict({qid: {docid: float(row) for row, docid in enumerate(texts)}}))

    [scorer] = reranker.scorers
    passes = graph_passes(scorer.model, rerank)
    measured = in_pairs(passes, rerank, times, time.process_time)

    def rerank_new() -> None:
        texts.update(others.pop() if others else shuffled(rng, texts))
        rerank()

    others = [shuffled(rng, texts) for _ in range(4 * times)]
    new_texts = in_pairs(passes, rerank_new, times, time.process_time)
    whole = PairScorer.load(f"{folder}/model")
    model, _ = bare_passes(
        whole.model.modules.model, lambda: whole.score([(topics["q0"], one) for one in texts.values()])
    )
    of_model = in_pairs(model, rerank, times, time.process_time)
    return dataclasses.asdict(measured) | {
        "new_texts": new_texts.ratio,
        "model": of_model.base,
        "of_model": of_model.ratio,
    }


def write_model(folder: Path, layers: int, width: int) -> None:
    """A BERT for sequence classification with one label, made-up weights and a vocabulary of WORDS words."""
    import transformers

    folder.mkdir()
    words = [*SPECIAL, *(f"w{number}" for number in range(WORDS))]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    config = transformers.BertConfig(
        vocab_size=len(words), num_hidden_layers=layers, hidden_size=width,
        num_attention_heads=max(2, width // 32), intermediate_size=4 * width,
    )  # fmt: skip
    config.num_labels = 1
    transformers.logging.disable_progress_bar()
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=512).save_pretrained(folder)


def shuffled(rng: np.random.Generator, texts: dict[str, str]) -> dict[str, str]:
    """Other texts of the same words, which no one has read."""
    return {docid: " ".join(rng.permutation(text.split())) for docid, text in texts.items()}


def made_up_words(rng: np.random.Generator, count: int) -> str:
    """So many words of the vocabulary of `write_model`."""
    return " ".join(f"w{number}" for number in rng.integers(0, WORDS, count))
