"""Queries to vectors by the graph that an index keeps of its encoder: without torch and transformers.

Their imports take longer than all the rest of a search for one question. `graph_export` makes such a folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.encode.encoder import Encoder
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.params import EncoderParams
from rnnreranker.errors import InputError, require
from rnnreranker.files import file_digest
from rnnreranker.files.json_files import read_json
from rnnreranker.process.phases import phase
from rnnreranker.settings import hints_of

GRAPH, WEIGHTS, TOKENIZER, DESCRIPTION = "model.onnx", "model.onnx.data", "tokenizer.json", "query-encoder.json"
FILES = (GRAPH, WEIGHTS, TOKENIZER)
LIBRARIES = ("onnxruntime", "tokenizers")  # that compute: another version may give other last bits
AGAIN = "make the index again, or give --encoder"
FORM = {"name": str, "digest": str, "settings": dict, "dimension": int, "pad": int, "cosine": float, "sha256": dict}


class GraphModel:
    """A transformer with its pooling as a graph of ONNX Runtime, and its tokenizer; one thread a batch.

    Args:
        folder: with the graph; settings: max_length and lowercase count here, the others are in the graph.
        dimension: of vectors; pad: the token that fills short lists.

    Raises:
        InputError: files that are damaged.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], dimension: int, pad: int) -> None:
        runtime = require("onnxruntime", f"the queries of {folder}", "onnxruntime")
        tokenizers = require("tokenizers", f"the queries of {folder}", "tokenizers")
        self._lowercase = bool(settings["lowercase"])
        self._pad = pad
        self.dimension = dimension
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(int(settings["max_length"]))
            self._session = runtime.InferenceSession(str(folder / GRAPH), _options(runtime), ["CPUExecutionProvider"])
        except Exception as error:  # the parsers of both libraries raise classes of their own, or Exception itself
            reason = str(error).strip().split("\n")[0][:200]
            raise InputError(f"{folder}: cannot be loaded ({reason}); {AGAIN}") from None

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """The token numbers of each text, cut at max_length; never empty."""
        texts = [text.lower() for text in texts] if self._lowercase else list(texts)
        return [found.ids or [self._pad] for found in self._tokenizer.encode_batch(texts)]

    def length(self, tokens: list[int]) -> int:
        """The number of tokens of a text."""
        return len(tokens)

    def forward(self, batch: list[list[int]]) -> np.ndarray:
        """(b, d) float32: the vectors of a batch of token lists."""
        return self.vectors(*padded(batch, self._pad))

    def vectors(self, tokens: np.ndarray, attention: np.ndarray) -> np.ndarray:
        """(b, d) float32: the vectors of a batch; tokens, attention: (b, longest) int64, as of `padded`."""
        vectors: np.ndarray = self._session.run(None, {"tokens": tokens, "attention": attention})[0]
        return vectors


def open_query_graph(folder: Path) -> Encoder:
    """The encoder whose graph a folder has; its vectors are those of the model, but for the last bits.

    Raises:
        InputError: a folder that is damaged or not whole.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    said = described(folder)
    if broken := [name for name in FILES if file_digest(folder / name) != said["sha256"].get(name)]:
        raise InputError(f"{folder / broken[0]}: is not the file that was written there; {AGAIN}")
    with phase("loading the query encoder", "loading the model"):
        model = GraphModel(folder, said["settings"], said["dimension"], said["pad"])
    return Encoder(said["name"], model, said["settings"], said["digest"])


def described(folder: Path) -> dict[str, Any]:
    """What a folder says of the encoder whose graph it has: its name, digest, settings, dimension, and the files'.

    Raises:
        InputError: a description that is lacking, or not of this form.
    """
    path = folder / DESCRIPTION
    said = read_json(path, "description of a query encoder", AGAIN)
    if not isinstance(said, dict) or any(not isinstance(said.get(key), kind) for key, kind in FORM.items()):
        raise InputError(f"{path}: expected an object with {', '.join(FORM)}; {AGAIN}")
    if not {*hints_of(EncoderParams), "lowercase"} <= set(said["settings"]) or said["settings"]["max_length"] is None:
        raise InputError(f"{path}: its settings are not those of an encoder; {AGAIN}")
    return said


def _options(runtime: Any) -> Any:
    """One thread a run; the graph is taken as it was optimised when it was made."""
    runtime.set_default_logger_severity(3)  # warnings are of devices that are not asked for
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options
