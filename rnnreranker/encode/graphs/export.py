"""An encoder of torch as a graph of ONNX Runtime, and how near its numbers come; nothing is kept that differs."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import write_atomically
from rnnreranker.base.private.transformers import attention_of
from rnnreranker.base.process.phases import phase
from rnnreranker.encode.graphs.store import GRAPH, TOKENIZER, WEIGHTS, KeptGraph, Refused, cosine_of, made_graph
from rnnreranker.encode.transformer import MASK

if TYPE_CHECKING:
    from rnnreranker.encode.transformer import TorchModel

KNOWN = ("bert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta")  # `model_type` of transformers
LEAST_COSINE = 0.99999  # of what graph and model give
LARGEST_DIFFERENCE = 1e-3  # of scores that they give
OPSET = 17  # of ONNX: the newest that torch's exporter knows as a whole
TEXTS = ["", "a", "What is reciprocal?", "naïve café 東京 — 3.14!", "one two three four five six seven " * 100]
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)  # words of texts that are drawn from the vocabulary
_EXPORTING = threading.Lock()


def make_graph(key: str, encoder: Any) -> KeptGraph:
    """The graph of an encoder on the processor, made where it is not there yet.

    Args:
        key: its name; encoder: a `TextEncoder` by torch, loaded with the settings that are in the graph.

    Raises:
        Refused: the encoder has none: another kind of model, one that torch cannot export or ONNX Runtime not run, one
            whose graph gives other numbers.
    """
    model = encoder.model
    _check_known(model)
    about = {**model.about, **encoder.beside_graph}

    def write(folder: Path) -> dict[str, Any]:
        _write_graph(model, folder)
        with _refused("the graph cannot be run"):
            return {**about, "cosine": _nearness(encoder, encoder.with_graph(KeptGraph(folder, about, "")))}

    with phase("making the encoder's graph"):
        return made_graph(key, write)


def _check_known(model: TorchModel) -> None:
    """Check that a model is one whose graph is known to be right.

    Raises:
        Refused: it is not, its weights are not float32, a package is missing.
    """
    names = ", ".join(type(one).__name__ for one in model.modules.children())
    if not re.fullmatch(model.kind.graph, names.replace(", ", ",")):
        raise Refused(f"its modules are {names}")
    if getattr(model.modules, "max_active_dims", None) is not None:
        raise Refused("it keeps some of the words of a text")
    kind = str(model.transformer.config.model_type)
    dtypes = {str(one.dtype).removeprefix("torch.") for one in model.transformer.parameters()}
    if kind not in KNOWN or dtypes != {"float32"}:
        raise Refused(f"a graph is known of float32 {', '.join(KNOWN)}, not of {' and '.join(sorted(dtypes))} {kind}")
    for package in ("onnx", "onnxruntime"):
        require(package, "making the graph of an encoder", package)


def _write_graph(model: TorchModel, folder: Path) -> None:
    """Write the files of a graph into a folder.

    Raises:
        Refused: torch cannot export it, or ONNX Runtime not take it.
        InputError, OSError: they cannot be written.
    """
    with contextlib.ExitStack() as exported:
        path = folder / "exported.onnx"
        exported.callback(path.unlink, missing_ok=True)
        _export(model, path)
        _optimise(path, folder / GRAPH)
    (folder / WEIGHTS).touch()  # none of a model so small that all its weights stand in the graph
    with _refused("its tokenizer has no tokenizer.json"):
        backend = model.modules.tokenizer.backend_tokenizer
        words = type(backend).from_str(backend.to_str())  # one of its own
    words.no_padding()
    words.no_truncation()
    with write_atomically(folder / TOKENIZER) as stream:
        stream.write(words.to_str().encode())


def _export(model: TorchModel, path: Path) -> None:
    """Write what a model computes as ONNX, for batches of any size and length."""
    import torch

    kinds = model.about["kinds"] is not None
    inputs = ["tokens", *(["kinds"] if kinds else []), "attention"]

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model.modules  # its weights keep their names

        def forward(self, tokens: Any, *others: Any) -> Any:
            features = {"input_ids": tokens, "attention_mask": others[-1]}
            return _output(model, features | ({"token_type_ids": others[0]} if kinds else {}))

    given = [torch.ones((2, 7), dtype=torch.int64) for _ in inputs]
    given[-1][1, 5:] = 0  # attention
    sizes = {0: "texts", 1: "longest"}
    attends = attention_of(model.transformer)
    try:
        model.transformer.set_attn_implementation("eager")  # fewer operations than those around torch's own attention
        with torch.no_grad(), _silent(), _refused("torch cannot export it"):
            torch.onnx.export(
                Whole().eval(),
                tuple(given),
                str(path),
                input_names=list(inputs),
                output_names=["output"],
                dynamic_axes={**dict.fromkeys(inputs, sizes), "output": {0: "texts"}},
                opset_version=OPSET,
                dynamo=False,  # the newer exporter needs a package more, and minutes
            )
    finally:
        model.transformer.set_attn_implementation(attends)


def _output(model: TorchModel, features: dict[str, Any]) -> Any:
    """What a model computes; of a late-interaction model a vector for every token, whether or not it counts."""
    if model.kind.of == "SparseEncoder":
        return _weights(model.transformer, **features)
    if model.kind.of != "MultiVectorEncoder":
        return model.computed(features, "document")
    for module in model.modules.children():
        features = features if type(module).__name__ == MASK else module(features)
    return features["token_embeddings"]


def _weights(transformer: Any, input_ids: Any, attention_mask: Any) -> Any:
    """(b, V): SPLADE's weights by a masked-language model, which is as it was afterwards.

    In place of the layer that gives every token a logit of every word stands one that takes the largest of a text at
    once: tokens that are padding are replaced by the text's first before, which changes no maximum, and the bias is
    added after, which is the same, as rounding keeps the order.
    """
    import torch

    last = transformer.get_output_embeddings()

    def largest(states: Any) -> Any:
        kept = torch.where(attention_mask.unsqueeze(-1) == 1, states, states[:, :1])
        logits = torch.matmul(kept, last.weight.t()).amax(dim=1)
        return logits if last.bias is None else logits + last.bias

    last.forward = largest
    try:
        return transformer(input_ids=input_ids, attention_mask=attention_mask).logits.relu().log1p()
    finally:
        del last.forward


def _optimise(exported: Path, path: Path) -> None:
    """Write a graph again with its operations joined, by rules that hold on every processor, and its weights apart.

    Raises:
        Refused: ONNX Runtime cannot take it.
        InputError: it cannot be written.
    """
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.intra_op_num_threads = 1
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", WEIGHTS)
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    try:
        onnxruntime.InferenceSession(str(exported), options, ["CPUExecutionProvider"])
    except Exception:  # ONNX Runtime has classes of its own, under Exception itself
        with _refused("the graph cannot be run"):  # without writing
            onnxruntime.InferenceSession(str(exported), providers=["CPUExecutionProvider"])
        raise InputError(f"{path}: cannot be written by ONNX Runtime, which does not say why") from None


def _probes(tokenizer: Any) -> list[str]:
    """Texts of any kind, on which model and graph are compared: `TEXTS`, and words drawn from the vocabulary."""
    vocabulary = sorted(tokenizer.get_vocab())
    rng = np.random.default_rng(0)
    return [*TEXTS, *(" ".join(rng.choice(vocabulary, size=length)) for length in LENGTHS)]


def lowest_cosine(encoder: Any, other: Any) -> float:
    """The lowest cosine of what two encoders make of texts of any kind; encoder: by torch.

    Raises:
        Refused: their tokenizers give other tokens.
    """
    return min(cosine_of(one, two) for one, two in _both(encoder, other) if len(one))


def _both(encoder: Any, other: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What two encoders make of the same texts: of all together, and of each alone."""
    texts = _probes(encoder.model.modules.tokenizer)
    for own in [texts, *([text] for text in texts)]:
        for one, two in zip(encoder.compared(own), other.compared(own), strict=True):
            if one.shape != two.shape:
                raise Refused("its tokenizer.json gives other tokens than its tokenizer")
            yield one, two


def _nearness(encoder: Any, graph: Any) -> float:
    """The lowest cosine of what an encoder and its graph give; of scores 1.

    Raises:
        Refused: it is no number or too far from 1, or scores differ.
    """
    if encoder.model.kind.output == "scores":
        largest = float(max(np.abs(one - two).max() for one, two in _both(encoder, graph)))
        if not largest <= LARGEST_DIFFERENCE:
            raise Refused(f"scores differ by up to {largest:.6f}; expected {LARGEST_DIFFERENCE} at most")
        return 1.0
    if not (cosine := lowest_cosine(encoder, graph)) >= LEAST_COSINE:  # NaN neither
        raise Refused(f"cosines to what it gives are from {cosine:.6f} on; expected {LEAST_COSINE} at least")
    return cosine


@contextlib.contextmanager
def _refused(why: str) -> Iterator[None]:
    """A block whose errors, but for those of writing files, mean that an encoder has no graph; Refused: one of them."""
    try:
        yield
    except (Refused, OSError):
        raise
    except Exception as error:  # torch and ONNX Runtime have classes of their own, some under Exception itself
        reason = str(error).strip().split("\n")[0][:200]
        raise Refused(f"{why} ({type(error).__name__} {reason})") from None


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Nothing of what torch's exporter warns of; one thread at a time, as that exporter and warnings' filters ask."""
    with _EXPORTING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)
