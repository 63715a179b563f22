"""Graphs of encoders in the home folder, made once a machine, and run by ONNX Runtime without torch or transformers."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError, MissingDependencyError, require
from rnnreranker.base.files import cache_home, file_digest, fingerprint, folder_written_whole, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.locks import alone
from rnnreranker.base.process.phases import phase
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.model_folder import TextKind


def cosine_of(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The lowest cosine of the rows of two matrices; of two rows of zeros it is 1.

    >>> cosine_of(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 0.0]]))
    1.0
    """
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    empty = ~ours.any(axis=1) & ~theirs.any(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = np.where(empty, 1.0, (ours * theirs).sum(axis=1) / lengths)
    return float(cosines.min())


FOLDER = "graphs"
GRAPH, WEIGHTS, TOKENIZER, DESCRIPTION = "model.onnx", "model.onnx.data", "tokenizer.json", "graph.json"
FILES = (GRAPH, WEIGHTS, TOKENIZER)
FORM = 2  # of graphs: another number has them made again
MOST = 4 * 10**9  # bytes of all graphs; beyond it those go that were not used for longest
_making = threading.Lock()  # threads of this process make one at a time, as processes do
_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when this process ends
_unkept: dict[str, Path] = {}  # graphs of this process alone, by name: the home folder could not be written


class Refused(Exception):
    """Why an encoder has no graph."""


@dataclass(frozen=True)
class KeptGraph:
    """The files of a graph, which are those that were written.

    Attributes:
        folder: where they are.
        about: what the encoder whose graph it is needs to know.
        content: 16 digits that tell its files from others.
    """

    folder: Path
    about: dict[str, Any]
    content: str


def key_of(kind: str, *parts: Any) -> str:
    """The name of a graph in the home folder: of the kind of encoder and what its graph depends on."""
    return f"{kind}-{fingerprint(FORM, *parts)}"


def kept_graph(key: str) -> KeptGraph | None:
    """The graph of that name; None where it is not there or not as it was written, so that it is made again."""
    folder = _unkept.get(key) or _path(key)
    if not folder.is_dir():
        return None
    try:
        graph = _graph_in(folder, "it is made again")
    except InputError as error:
        say(f"{error}")
        return None
    with suppress(OSError):  # of the last use, for `_make_room`
        os.utime(folder)
    return graph


def _graph_in(folder: Path, remedy: str = "look at the disk") -> KeptGraph:
    """The graph of a folder, whose files are those that its description says.

    Raises:
        InputError: files that are damaged or lacking, a description of another form.
    """
    path = folder / DESCRIPTION
    about = read_json(path, "description of a graph", remedy)
    digests = about.get("sha256") if isinstance(about, dict) else None
    if not isinstance(digests, dict):
        raise InputError(f"{path}: expected an object with sha256, the digests of {', '.join(FILES)}; {remedy}")
    if broken := [name for name in FILES if file_digest(folder / name) != digests.get(name)]:
        raise InputError(f"{folder / broken[0]}: is not the file that was written there; {remedy}")
    return KeptGraph(folder, about, fingerprint("graph", digests))


def made_graph(key: str, write: Callable[[Path], dict[str, Any]]) -> KeptGraph:
    """The graph of that name, which is made where it is not there; of two processes one waits for the other.

    Where the home folder cannot be written it is made in the folder for temporary files, for this process alone, and a
    line says so: no result depends on which folders can be written.

    Args:
        write: makes `FILES` in a folder, and says what is to know about them.

    Raises:
        Refused: as `write` does, or a package is lacking.
        InputError: neither folder can be written.
    """
    try:
        with _making:
            try:
                return kept_graph(key) or _made(_path(key), write)
            except (InputError, OSError) as error:
                why = _reason(error)
            try:
                _folders.append(tempfile.TemporaryDirectory(prefix="rnnreranker-graph-"))
                graph = _made(Path(_folders[-1].name) / key, write)
            except (InputError, OSError) as error:
                raise InputError(
                    f"the encoder's graph, which computes its vectors, cannot be written in {_path(key).parent} nor in "
                    f"the folder for temporary files ({_reason(error)}); make room there, or name others by "
                    "RNNRERANKER_HOME or TMPDIR"
                ) from None
            _unkept[key] = graph.folder
            say(f"the encoder's graph cannot be kept, and is made for this command alone: {why}")
            return graph
    except MissingDependencyError as error:
        raise Refused(str(error)) from None


def _made(path: Path, write: Callable[[Path], dict[str, Any]]) -> KeptGraph:
    with alone(path.parent, f"{path.parent}: another process is making a graph; waiting for it"):
        if (graph := kept_graph(path.name)) is None:
            with folder_written_whole(path) as folder:
                about = write(folder)
                digests = {name: file_digest(folder / name) for name in FILES}
                write_json(folder / DESCRIPTION, {**about, "sha256": digests})
            _make_room(path)
            graph = _graph_in(path)
        return graph


def _reason(error: InputError | OSError) -> str:
    return str(error) if isinstance(error, InputError) else f"{error.filename or 'a file'}: {error.strerror or error}"


def _path(key: str) -> Path:
    return cache_home() / FOLDER / key


def _make_room(newest: Path) -> None:
    """Remove the graphs that were not used for longest, where all take more than `MOST`; never the newest."""
    others = [one for one in newest.parent.iterdir() if one != newest and one.is_dir()]
    total = 0
    for folder in [newest, *sorted(others, key=lambda one: one.stat().st_mtime, reverse=True)]:
        total += sum(file.stat().st_size for file in folder.iterdir())
        if total > MOST and folder != newest:
            shutil.rmtree(folder, ignore_errors=True)


LIBRARIES = ("onnxruntime", "tokenizers")  # that compute: another version may give other last bits


class CutTokens(NamedTuple):
    """The tokens of a text or pair, cut at a limit: numbers and kinds, whether there were more, how many are attended.

    attended: the first so many tokens are; None = all.
    """

    ids: list[int]
    kinds: list[int]
    cut: bool
    attended: int | None = None

    @property
    def length(self) -> int:
        """How many there are."""
        return len(self.ids)


class GraphModel:
    """An encoder as a graph, with its tokenizer; one thread a run. It is used as `TorchModel` is.

    Args:
        graph: its files.

    Raises:
        InputError: files that ONNX Runtime or tokenizers cannot read.
        MissingDependencyError: one of them is not installed.
    """

    def __init__(self, graph: KeptGraph) -> None:
        runtime = require("onnxruntime", f"the graph {graph.folder}", "onnxruntime")
        tokenizers = require("tokenizers", f"the graph {graph.folder}", "tokenizers")
        self.about, self.computed_on = graph.about, graph.content
        skipped = self.about.get("skipped") or {}
        self._skipped = {kind: np.array(numbers, dtype=np.int64) for kind, numbers in skipped.items()}
        self._tokenizing = threading.Lock()  # a tokenizer keeps its limit in itself: one thread at a time
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

    def cut_at(self, query: int, document: int) -> None:
        """Set the tokens at which texts are cut."""
        self.lengths = {"query": query, "document": document}

    def read(self, texts: Sequence[Any], task: TextKind) -> list[CutTokens]:
        """What `forward` takes of texts or pairs: their tokens, cut; queries may be expanded."""
        limit = self.lengths[task]
        with self._tokenizing:
            self._tokenizer.enable_truncation(limit)
            encoded = self._tokenizer.encode_batch_fast(list(texts))
        pad, expansion = self.about["pad"], self.about.get("expansion")
        if task == "document" or expansion is None:
            return [CutTokens(one.ids or [pad], one.type_ids, bool(one.overflowing)) for one in encoded]
        mask, attends = expansion
        return [
            CutTokens(
                one.ids + [mask] * (limit - len(one.ids)),
                one.type_ids,
                bool(one.overflowing),
                None if attends else len(one.ids),
            )
            for one in encoded
        ]

    def forward(self, batch: Sequence[CutTokens], task: TextKind) -> Any:
        """See `TorchModel.forward`."""
        tokens, attention = padded([one.ids for one in batch], self.about["pad"])
        inputs = {"tokens": tokens, "attention": attention}
        if self.about.get("kinds") is not None:
            inputs["kinds"] = np.full_like(tokens, self.about["kinds"])
            for row, one in zip(inputs["kinds"], batch, strict=True):
                row[: one.length] = one.kinds
        counted = attention.astype(bool)
        for row, one in zip(attention, batch, strict=True):
            if one.attended is not None:
                row[one.attended :] = 0
        output = self._session.run(None, inputs)[0]
        if not self._skipped:
            return output
        counted &= ~np.isin(tokens, self._skipped[task])
        return [(output[row][its], tokens[row][its].astype(np.int32)) for row, its in enumerate(counted)]


def _options(runtime: Any) -> Any:
    """One thread a run; the graph is taken as it was optimised when it was made."""
    runtime.set_default_logger_severity(3)  # warnings are of devices that are not asked for
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options
