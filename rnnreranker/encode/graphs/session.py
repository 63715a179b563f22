"""A graph of an encoder, run by ONNX Runtime, and its tokenizer: neither torch nor transformers is imported.

Their imports take longer than all the rest of a search for one question. `graph_export` makes graphs.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.process.phases import phase
from rnnreranker.encode.graphs.store import GRAPH, TOKENIZER, KeptGraph

KEPT = 2**18  # tokens of texts of pairs that are kept, of some 100 bytes each
LIBRARIES = ("onnxruntime", "tokenizers")  # that compute: another version may give other last bits


class CutTokens(NamedTuple):
    """The tokens of a text or pair, cut at a limit: numbers and kinds, and whether there were more."""

    ids: list[int]
    kinds: list[int]
    cut: bool

    @property
    def length(self) -> int:
        """How many there are."""
        return len(self.ids)


class GraphSession:
    """A graph that is open; one thread a run.

    Args:
        graph: its files.

    Raises:
        InputError: files that ONNX Runtime or tokenizers cannot read.
        MissingDependencyError: one of them is not installed.
    """

    def __init__(self, graph: KeptGraph) -> None:
        runtime = require("onnxruntime", f"the graph {graph.folder}", "onnxruntime")
        tokenizers = require("tokenizers", f"the graph {graph.folder}", "tokenizers")
        self.graph = graph
        self._tokenizing = threading.Lock()  # a tokenizer keeps its limit in itself: one thread at a time
        self._kept: dict[str, Any] = {}  # text of pairs → its tokens; the first came first
        self._kept_tokens = 0
        with phase("loading the encoder's graph", "loading the model"):
            try:
                self._tokenizer = tokenizers.Tokenizer.from_file(str(graph.folder / TOKENIZER))
                self._tokenizer.no_padding()
                self._session = runtime.InferenceSession(
                    str(graph.folder / GRAPH), _options(runtime), ["CPUExecutionProvider"]
                )
            except Exception as error:  # the parsers of both libraries raise classes of their own, or Exception itself
                reason = str(error).strip().split("\n")[0][:200]
                raise InputError(
                    f"{graph.folder}: cannot be loaded ({reason}); remove this folder, and the graph is made again"
                ) from None

    def tokens(self, texts: Sequence[str], limit: int) -> list[CutTokens]:
        """The tokens of texts, each cut at a limit."""
        with self._tokenizing:
            self._tokenizer.enable_truncation(limit)
            encoded = self._tokenizer.encode_batch_fast(list(texts))
        return [CutTokens(one.ids, one.type_ids, bool(one.overflowing)) for one in encoded]

    def tokens_of_pairs(self, pairs: Sequence[tuple[str, str]], limit: int) -> list[CutTokens]:
        """The tokens of pairs of texts, each cut at a limit, the longer text first.

        A text is cut into tokens once, whatever pairs it is in, and those of the last texts are kept: candidates of a
        query are often those of another too.
        """
        with self._tokenizing:
            read = self._read({text: None for pair in pairs for text in pair}, limit)
            self._tokenizer.enable_truncation(limit)
            joined = [self._tokenizer.post_process(read[first], read[second]) for first, second in pairs]
        return [CutTokens(one.ids, one.type_ids, bool(one.overflowing)) for one in joined]

    def _read(self, texts: Mapping[str, None], limit: int) -> dict[str, Any]:
        """The tokens of texts, without those that stand around them."""
        new = [text for text in texts if text not in self._kept]
        self._tokenizer.no_truncation()
        read = dict(zip(new, self._tokenizer.encode_batch_fast(new, add_special_tokens=False), strict=True))
        tokens_of = {text: self._kept[text] if text in self._kept else read[text] for text in texts}
        for text, tokens in read.items():
            if len(tokens) <= limit:
                self._kept[text] = tokens
                self._kept_tokens += len(tokens)
        while self._kept_tokens > KEPT:
            self._kept_tokens -= len(self._kept.pop(next(iter(self._kept))))
        return tokens_of

    def run(self, **inputs: np.ndarray) -> np.ndarray:
        """The output of the graph, float32; inputs: (b, t) int64 each, by their names."""
        output: np.ndarray = self._session.run(None, inputs)[0]
        return output


def _options(runtime: Any) -> Any:
    """One thread a run; the graph is taken as it was optimised when it was made."""
    runtime.set_default_logger_severity(3)  # warnings are of devices that are not asked for
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options
