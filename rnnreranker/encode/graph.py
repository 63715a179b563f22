"""Graphs of encoders: exported from torch once a machine, kept in the home folder, run by ONNX Runtime without
torch.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import phase, say
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import (
    DESCRIPTION,
    cache_home,
    check_files,
    fingerprint,
    folder_written_whole,
    note_files,
    read_json,
    write_json,
)
from rnnreranker.base.jobs import alone
from rnnreranker.base.private import attention_of
from rnnreranker.encode.in_batches import CountedText, padded
from rnnreranker.encode.model_folder import MASK, PROMPTS, TextKind, loading

if TYPE_CHECKING:
    from rnnreranker.encode.transformer import TorchModel

FOLDER = "graphs"
GRAPH, WEIGHTS, TOKENIZER = "model.onnx", "model.onnx.data", "tokenizer.json"
FILES = (GRAPH, WEIGHTS, TOKENIZER)
FORM = 4  # of graphs: another number has them made again
LEAST_COSINE = 0.99999  # of what graph and model give
LARGEST_DIFFERENCE = 1e-3  # of scores that they give
OPSET = 17  # of ONNX: the newest that torch's exporter knows as a whole
LONG = "one two three four five six seven " * 100
TEXTS = ["", "a", "What is reciprocal?", "naïve café 東京 — 3.14!"]
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)  # words of texts that are drawn from the vocabulary


def kept_graph(key: str) -> GraphModel | None:
    """The graph of a name; None if it is missing or damaged."""
    folder = cache_home() / FOLDER / key
    if not folder.is_dir():
        return None
    try:
        check_files(folder, FOLDER)
        about = read_json(folder / DESCRIPTION)
    except InputError as error:
        say(f"{str(error).rpartition(';')[0]}; the graph is made again")
        return None
    return GraphModel(folder, about)


def make_graph(key: str, model: TorchModel) -> GraphModel | None:
    """The graph of a model, made on first use; processes wait for each other.

    None: an unknown kind of model; its export or run fails or gives other numbers; a package or disk space is missing.
    """
    from rnnreranker.encode.transformer import KNOWN

    names = ",".join(type(one).__name__ for one in model.modules.children())
    if model.token_type or not re.fullmatch(model.kind.graph, names):
        return None
    dtypes = {str(one.dtype) for one in model.transformer.parameters()}
    if model.transformer.config.model_type not in KNOWN or dtypes != {"torch.float32"}:
        return None
    path = cache_home() / FOLDER / key
    waiting = f"{path.parent}: another process is making a graph; waiting for it"
    try:
        with phase("making the encoder's graph"), alone(path.parent, waiting):
            if (graph := kept_graph(key)) is None:
                about = dict(model.about)
                with folder_written_whole(path) as folder:
                    _export(model, folder)
                    about["cosine"] = lowest_cosine(model, GraphModel(folder, about))
                    if not about["cosine"] >= LEAST_COSINE:  # NaN neither
                        raise ValueError(about["cosine"])
                    about["files"] = {FOLDER: note_files(folder, FILES)}
                    write_json(folder / DESCRIPTION, about)
                graph = kept_graph(key)
            return graph
    except Exception:  # torch and ONNX Runtime have classes of their own, some under Exception itself
        return None


def _export(model: TorchModel, folder: Path) -> None:
    """Write a model for batches of any size and length: operations optimised for every processor, and weights."""
    import onnxruntime
    import torch

    inputs = ["tokens", *(["kinds"] if model.about["kinds"] is not None else []), "attention"]
    late = model.kind.of == "MultiVectorEncoder"

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model.modules  # its weights keep their names

        def forward(self, tokens: Any, *others: Any) -> Any:
            features = {"input_ids": tokens, "attention_mask": others[-1]}
            features |= {"token_type_ids": others[0]} if len(others) > 1 else {}
            if not late:
                return model.computed(features, "document")
            for module in model.modules.children():  # a vector for every token, whether or not it counts
                features = features if type(module).__name__ == MASK else module(features)
            return features["token_embeddings"]

    given = [torch.ones((2, 7), dtype=torch.int64) for _ in inputs]
    given[-1][1, 5:] = 0  # attention
    sizes, exported = {0: "texts", 1: "longest"}, folder / "exported.onnx"
    attends = attention_of(model.transformer)
    try:
        model.transformer.set_attn_implementation("eager")  # fewer operations than those around torch's own attention
        with torch.no_grad(), warnings.catch_warnings(action="ignore"):
            torch.onnx.export(
                Whole().eval(),
                tuple(given),
                str(exported),
                input_names=inputs,
                output_names=["output"],
                dynamic_axes={**dict.fromkeys(inputs, sizes), "output": {0: "texts"}},
                opset_version=OPSET,
                dynamo=False,  # the newer exporter needs a package more, and minutes
            )
    finally:
        model.transformer.set_attn_implementation(attends)
    options = _options(onnxruntime, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED)
    options.optimized_model_filepath = str(folder / GRAPH)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", WEIGHTS)
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    onnxruntime.InferenceSession(str(exported), options, ["CPUExecutionProvider"])
    exported.unlink()
    (folder / WEIGHTS).touch()  # none of a model so small that all its weights stand in the graph
    backend = model.modules.tokenizer.backend_tokenizer
    words = type(backend).from_str(backend.to_str())  # one of its own
    words.no_padding()
    words.no_truncation()
    words.save(str(folder / TOKENIZER))


def cosine_of(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The lowest cosine of the rows of two matrices; 1 for two rows of zeros.

    >>> cosine_of(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 0.0]]))
    1.0
    """
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.where((ours == theirs).all(axis=1), 1.0, (ours * theirs).sum(axis=1) / lengths).min())


def lowest_cosine(model: TorchModel, other: Any) -> float:
    """The lowest cosine of the outputs of two models for varied texts, together and each alone.

    Of scores 1 where they are near, else 0; 0 as well where the models read other tokens.
    """
    vocabulary, rng = sorted(model.modules.tokenizer.get_vocab()), np.random.default_rng(0)
    texts: list[Any] = [*TEXTS, *(" ".join(rng.choice(vocabulary, size=length)) for length in LENGTHS)]
    pairs, cosines = model.kind.output == "scores", list[float]()
    other.cut_at(**model.lengths)
    for batch in [texts, *([text] for text in [*texts, LONG])]:
        given = list(zip(batch, batch[::-1], strict=True)) if pairs else batch
        for task in PROMPTS:
            one, two = (rows_of(which.forward(which.read(given, task), task)) for which in (model, other))
            if one.shape != two.shape:
                return 0.0
            cosines.append(float(np.abs(one - two).max() <= LARGEST_DIFFERENCE) if pairs else cosine_of(one, two))
    return float(np.min(cosines))  # NaN stays


def rows_of(output: Any) -> np.ndarray:
    """(n, d): the output of `forward` as one matrix."""
    return np.concatenate([vectors for vectors, _ in output]) if isinstance(output, list) else output


class GraphModel:
    """An encoder as a graph with its tokenizer, loaded on first use, one thread a run; used like `TorchModel`.

    Attributes:
        about: what an encoder must know; content: 16 digits that identify the files; graph: itself.

    Raises:
        InputError, MissingDependencyError: files that ONNX Runtime or tokenizers cannot read; a missing package.
    """

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph, self.folder, self.about = self, folder, about
        self.content = self.computed_on = fingerprint("graph", about.get("files"))
        self._tokenizing = threading.Lock()  # a tokenizer keeps its limit in itself: one thread at a time

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """The session of ONNX Runtime, and the tokenizer."""
        runtime = require("onnxruntime", f"the graph {self.folder}", "onnxruntime")
        tokenizers = require("tokenizers", f"the graph {self.folder}", "tokenizers")
        again = "remove this folder, and the graph is made again"
        with phase("loading the encoder's graph", "loading the model"), loading(self.folder, "a graph", again):
            tokenizer = tokenizers.Tokenizer.from_file(str(self.folder / TOKENIZER))
            options = _options(runtime, runtime.GraphOptimizationLevel.ORT_DISABLE_ALL)
            return runtime.InferenceSession(str(self.folder / GRAPH), options, ["CPUExecutionProvider"]), tokenizer

    def cut_at(self, query: int, document: int) -> None:
        self.lengths = {"query": query, "document": document}

    def read(self, texts: Sequence[Any], task: TextKind) -> list[CountedText]:
        """Texts or pairs as cut token numbers, their types, and how many count; queries may be expanded."""
        limit, (_, tokenizer) = self.lengths[task], self._loaded
        with self._tokenizing:
            tokenizer.enable_truncation(limit)
            encoded = tokenizer.encode_batch_fast(list(texts))
        mask, attends = (self.about.get("expansion") if task == "query" else None) or (None, True)
        read = []
        for one in encoded:
            ids = (one.ids or [self.about["pad"]]) if mask is None else one.ids + [mask] * (limit - len(one.ids))
            tokens = ids, one.type_ids, len(ids) if attends else len(one.ids)
            read.append(CountedText(tokens, len(ids), bool(one.overflowing)))
        return read

    def forward(self, batch: Sequence[CountedText], task: TextKind) -> Any:
        """As of `TorchModel`."""
        ids, kinds, attended = zip(*(one.text for one in batch), strict=True)
        tokens, counted = padded(ids, self.about["pad"])
        counts = np.arange(tokens.shape[1]) < np.array(attended)[:, None]
        inputs = {"tokens": tokens, "attention": counts.astype(np.int64)}
        if (kind := self.about.get("kinds")) is not None:
            inputs["kinds"], _ = padded(kinds, kind)
        output = self._loaded[0].run(None, inputs)[0]
        if not (skipped := self.about.get("skipped")):
            return output
        real = counted.astype(bool) & ~np.isin(tokens, skipped[task])
        return [(output[row][its], tokens[row][its].astype(np.int32)) for row, its in enumerate(real)]


def _options(runtime: Any, level: Any) -> Any:
    runtime.set_default_logger_severity(3)  # warnings are of devices that are not asked for
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    return options
