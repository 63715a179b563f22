"""An encoder of transformers as a graph of ONNX Runtime, which opens at once; compared before it is kept."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.encode.encoder import Encoder, Model
from rnnreranker.encode.query_graph import DESCRIPTION, FILES, GRAPH, TOKENIZER, WEIGHTS, GraphModel
from rnnreranker.encode.transformer import TransformerModel
from rnnreranker.errors import require
from rnnreranker.files import file_digest, folder_written_whole, write_json
from rnnreranker.process.phases import phase

KNOWN = ("bert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta")  # `model_type` of transformers
LEAST_COSINE = 0.99999  # of the vectors of graph and model
LARGEST = 19 * 10**8  # bytes of weights: a file of ONNX ends at 2^31
OPSET = 17  # of ONNX: the newest that torch's exporter knows as a whole
TEXTS = ["", "a", "What is reciprocal?", "naïve café 東京 — 3.14!", "one two three four five six seven " * 100]
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)  # words of texts that are drawn from the vocabulary


def write_query_graph(encoder: Encoder, folder: Path) -> str:
    """Write the graph of an encoder's queries; why not, where it has none: "" where it is written.

    Nothing is written of a model that is not float32, of another kind than `KNOWN`, or where a text has other tokens
    or a vector whose cosine to that of the model is below `LEAST_COSINE`.

    Args:
        encoder: of `load_encoder`; folder: to make.

    Raises:
        InputError: the folder cannot be written.
    """
    model = encoder.model
    if not isinstance(model, TransformerModel):
        return "it is not run by transformers"
    kind = str(model.transformer.config.model_type)
    if kind not in KNOWN or encoder.settings["dtype"] != "float32":
        return f"a graph is known of float32 {', '.join(KNOWN)}, not of {encoder.settings['dtype']} {kind}"
    words = getattr(model.tokenizer, "backend_tokenizer", None)
    if words is None:
        return "its tokenizer has no tokenizer.json"
    if sum(weight.nbytes for weight in model.transformer.state_dict().values()) > LARGEST:
        return "its weights are larger than a graph can be"
    for package in ("onnx", "onnxruntime"):
        require(package, "the query encoder of an index", package)
    try:
        with phase("making the query encoder"), folder_written_whole(folder) as whole:
            _export(model, whole / "exported.onnx")
            _optimise(whole / "exported.onnx", whole / GRAPH)
            (whole / "exported.onnx").unlink()
            words.save(str(whole / TOKENIZER))
            cosine = _compared(model, GraphModel(whole, encoder.settings, model.dimension, model.pad))
            if not cosine >= LEAST_COSINE:  # NaN neither
                raise _Refused(f"cosines to its vectors are from {cosine:.6f} on; expected {LEAST_COSINE} at least")
            said = {"name": encoder.name, "digest": encoder.digest, "settings": encoder.settings, "cosine": cosine}
            said |= {"dimension": model.dimension, "pad": model.pad}
            write_json(whole / DESCRIPTION, said | {"sha256": {name: file_digest(whole / name) for name in FILES}})
    except _Refused as refused:
        return str(refused)
    return ""


class _Refused(Exception):
    """Why a graph is not kept."""


def _export(model: TransformerModel, path: Path) -> None:
    """Write what `model.vectors` computes as ONNX, for batches of any size and length."""
    import torch

    class Vectors(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer = model.transformer  # its weights keep their names

        def forward(self, tokens: Any, attention: Any) -> Any:
            return model.vectors(tokens, attention)

    tokens, attention = torch.ones((2, 7), dtype=torch.int64), torch.ones((2, 7), dtype=torch.int64)
    attention[1, 5:] = 0
    sizes = {0: "texts", 1: "longest"}
    attends = model.transformer.config._attn_implementation
    try:
        model.transformer.set_attn_implementation("eager")  # fewer operations than those around torch's own attention
        with torch.no_grad(), _silent():
            torch.onnx.export(
                Vectors().eval(),
                (tokens, attention),
                str(path),
                input_names=["tokens", "attention"],
                output_names=["vectors"],
                dynamic_axes={"tokens": sizes, "attention": sizes, "vectors": {0: "texts"}},
                opset_version=OPSET,
                dynamo=False,  # the newer exporter needs a package more, and minutes
            )
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:  # torch.onnx.errors are RuntimeErrors
        reason = str(error).strip().split("\n")[0][:200]
        raise _Refused(f"torch cannot export it ({type(error).__name__} {reason})") from None
    finally:
        model.transformer.set_attn_implementation(attends)


def _optimise(exported: Path, path: Path) -> None:
    """Write a graph again with its operations joined, by rules that hold on every processor, and its weights apart."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.intra_op_num_threads = 1
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", WEIGHTS)
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    onnxruntime.InferenceSession(str(exported), options, ["CPUExecutionProvider"])


def lowest_cosine(model: TransformerModel, other: Model) -> float:
    """The lowest cosine between the vectors of two models, of texts of any kind, one at a time and together.

    Args:
        model: whose tokens both are given; other: what computes the same vectors in another way.
    """
    tokens = model.tokenize(_texts(model))
    lowest = 1.0
    for batch in [tokens, *([own] for own in tokens)]:
        ours, theirs = other.forward(batch).astype(np.float64), model.forward(batch).astype(np.float64)
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
        lowest = min(lowest, float(((ours * theirs).sum(axis=1) / lengths).min()))
    return lowest


def _texts(model: TransformerModel) -> list[str]:
    """`TEXTS`, and words drawn from the vocabulary."""
    vocabulary = sorted(model.tokenizer.get_vocab())
    rng = np.random.default_rng(0)
    return [*TEXTS, *(" ".join(rng.choice(vocabulary, size=length)) for length in LENGTHS)]


def _compared(model: TransformerModel, graph: GraphModel) -> float:
    """The lowest cosine between the vectors of model and graph.

    Raises:
        _Refused: a text of other tokens, a graph that fails on some.
    """
    if model.tokenize(_texts(model)) != graph.tokenize(_texts(model)):
        raise _Refused("its tokenizer.json gives other tokens than its tokenizer")
    try:
        return lowest_cosine(model, graph)
    except Exception as error:  # ONNX Runtime has classes of its own, under Exception itself
        raise _Refused(f"the graph cannot be run ({str(error)[:200]})") from None


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Nothing of what torch's exporter says and warns of."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)
