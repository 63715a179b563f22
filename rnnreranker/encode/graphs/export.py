"""A model of torch as a graph of ONNX Runtime, and how near its numbers come; nothing is kept that differs."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import write_atomically
from rnnreranker.base.private.transformers import attention_of
from rnnreranker.base.process.phases import phase
from rnnreranker.encode.graphs.store import GRAPH, TOKENIZER, WEIGHTS, KeptGraph, Refused, made_graph

KNOWN = ("bert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta")  # `model_type` of transformers
LEAST_COSINE = 0.99999  # of what graph and model give
LARGEST = 19 * 10**8  # bytes of weights: a file of ONNX ends at 2^31
OPSET = 17  # of ONNX: the newest that torch's exporter knows as a whole
TEXTS = ["", "a", "What is reciprocal?", "naïve café 東京 — 3.14!", "one two three four five six seven " * 100]
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)  # words of texts that are drawn from the vocabulary
MEANT = "making the graph of an encoder"
_EXPORTING = threading.Lock()


def make_graph(
    key: str,
    module: contextlib.AbstractContextManager[Any],
    inputs: Sequence[str],
    transformer: Any,
    tokenizer: Any,
    about: dict[str, Any],
    compare: Callable[[KeptGraph], dict[str, Any]],
) -> KeptGraph:
    """The graph of a name, made where it is not there.

    Args:
        key: its name.
        module: gives what computes, as `write_graph` takes it; what changes the model for that, changes it back.
        inputs, transformer, tokenizer: as of `write_graph`.
        about: what whoever uses it needs to know.
        compare: says how near the graph that was just written comes, which is to know besides.

    Raises:
        Refused: the encoder has none: as `check_known`, `write_graph` and `compare`.
    """
    check_known(transformer, tokenizer)

    def write(folder: Path) -> dict[str, Any]:
        with module as computing:
            write_graph(computing, inputs, transformer, tokenizer, folder)
        with compared():
            return {**about, **compare(KeptGraph(folder, about, ""))}

    with phase("making the encoder's graph"):
        return made_graph(key, write)


def one_by_one(count: int) -> list[slice]:
    """Batches of so many texts in which model and graph are compared: of all together, and of each alone."""
    return [slice(count), *(slice(row, row + 1) for row in range(count))]


def check_known(transformer: Any, tokenizer: Any) -> None:
    """Look that a model of transformers is one whose graph is known to be right.

    Raises:
        Refused: another kind, weights that are not float32 or too many, no tokenizer.json, a package that is lacking.
    """
    kind, dtypes = str(transformer.config.model_type), {str(one.dtype) for one in transformer.parameters()}
    shown = " and ".join(sorted(one.removeprefix("torch.") for one in dtypes))
    if kind not in KNOWN or dtypes != {"torch.float32"}:
        raise Refused(f"a graph is known of float32 {', '.join(KNOWN)}, not of {shown} {kind}")
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise Refused("its tokenizer has no tokenizer.json")
    if sum(weight.nbytes for weight in transformer.state_dict().values()) > LARGEST:
        raise Refused("its weights are larger than a graph can be")
    for package in ("onnx", "onnxruntime"):
        require(package, MEANT, package)


def write_graph(module: Any, inputs: Sequence[str], transformer: Any, tokenizer: Any, folder: Path) -> None:
    """Write the files of a graph into a folder.

    Args:
        module: of torch, which takes `inputs`, (b, t) int64 each, and whose output begins with b.
        transformer: of transformers, in the module; tokenizer: of it.

    Raises:
        Refused: torch cannot export it, or ONNX Runtime not take it.
        InputError, OSError: they cannot be written.
    """
    with contextlib.ExitStack() as exported:
        path = folder / "exported.onnx"
        exported.callback(path.unlink, missing_ok=True)
        _export(module, inputs, transformer, path)
        _optimise(path, folder / GRAPH)
    (folder / WEIGHTS).touch()  # none of a model so small that all its weights stand in the graph
    words = type(tokenizer.backend_tokenizer).from_str(tokenizer.backend_tokenizer.to_str())  # one of its own
    words.no_padding()
    words.no_truncation()
    with write_atomically(folder / TOKENIZER) as stream:
        stream.write(words.to_str().encode())


def _export(module: Any, inputs: Sequence[str], transformer: Any, path: Path) -> None:
    """Write what a module computes as ONNX, for batches of any size and length."""
    import torch

    given = [torch.ones((2, 7), dtype=torch.int64) for _ in inputs]
    given[-1][1, 5:] = 0  # attention
    sizes = {0: "texts", 1: "longest"}
    attends = attention_of(transformer)
    try:
        transformer.set_attn_implementation("eager")  # fewer operations than those around torch's own attention
        with torch.no_grad(), _silent():
            torch.onnx.export(
                module.eval(),
                tuple(given),
                str(path),
                input_names=list(inputs),
                output_names=["output"],
                dynamic_axes={**dict.fromkeys(inputs, sizes), "output": {0: "texts"}},
                opset_version=OPSET,
                dynamo=False,  # the newer exporter needs a package more, and minutes
            )
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:  # torch.onnx.errors are RuntimeErrors
        reason = str(error).strip().split("\n")[0][:200]
        raise Refused(f"torch cannot export it ({type(error).__name__} {reason})") from None
    finally:
        transformer.set_attn_implementation(attends)


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
        with compared():  # without writing
            onnxruntime.InferenceSession(str(exported), providers=["CPUExecutionProvider"])
        raise InputError(f"{path}: cannot be written by ONNX Runtime, which does not say why") from None


def probes(tokenizer: Any) -> list[str]:
    """Texts of any kind, on which model and graph are compared: `TEXTS`, and words drawn from the vocabulary."""
    vocabulary = sorted(tokenizer.get_vocab())
    rng = np.random.default_rng(0)
    return [*TEXTS, *(" ".join(rng.choice(vocabulary, size=length)) for length in LENGTHS)]


def same_tokens(ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """Look that the tokens of texts are the same; Refused: they are not."""
    if list(ours) != list(theirs):
        raise Refused("its tokenizer.json gives other tokens than its tokenizer")


def check_near(cosine: float) -> float:
    """The cosine, where it is near enough to 1; Refused: it is not, or no number."""
    if not cosine >= LEAST_COSINE:  # NaN neither
        raise Refused(f"cosines to what it gives are from {cosine:.6f} on; expected {LEAST_COSINE} at least")
    return cosine


@contextlib.contextmanager
def compared() -> Iterator[None]:
    """A block that runs a graph for the first time; Refused: it fails."""
    try:
        yield
    except Refused:
        raise
    except Exception as error:  # ONNX Runtime has classes of its own, under Exception itself
        raise Refused(f"the graph cannot be run ({str(error)[:200]})") from None


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
