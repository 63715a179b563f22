"""Graphs of encoders in the home folder: each is made once a machine, and looked at before it is used."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError, MissingDependencyError
from rnnreranker.base.files import cache_home, file_digest, fingerprint, folder_written_whole, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.locks import alone

FOLDER = "graphs"
GRAPH, WEIGHTS, TOKENIZER, DESCRIPTION = "model.onnx", "model.onnx.data", "tokenizer.json", "graph.json"
FILES = (GRAPH, WEIGHTS, TOKENIZER)
FORM = 1  # of graphs: another number has them made again
MOST = 4 * 10**9  # bytes of all graphs; beyond it those go that were not used for longest
_making = threading.Lock()  # threads of this process make one at a time, as processes do
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
        graph = graph_in(folder, DESCRIPTION, "it is made again")
    except InputError as error:
        say(f"{error}")
        return None
    with suppress(OSError):  # of the last use, for `_make_room`
        os.utime(folder)
    return graph


def graph_in(folder: Path, description: str, remedy: str) -> KeptGraph:
    """The graph of a folder, whose files are those that its description says.

    Raises:
        InputError: files that are damaged or lacking, a description of another form.
    """
    path = folder / description
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
            if key in _unkept and (graph := kept_graph(key)) is not None:
                return graph
            try:
                return _made_in_home(key, write)
            except (InputError, OSError) as error:
                graph = _made_for_now(key, write)
                say(f"the encoder's graph cannot be kept, and is made for this command alone: {_reason(error)}")
                return graph
    except MissingDependencyError as error:
        raise Refused(str(error)) from None


def _made_in_home(key: str, write: Callable[[Path], dict[str, Any]]) -> KeptGraph:
    path = _path(key)
    with alone(path.parent, f"{path.parent}: another process is making a graph; waiting for it"):
        if (graph := kept_graph(key)) is None:
            with folder_written_whole(path) as folder:
                _write(folder, write)
            _make_room(path)
            graph = graph_in(path, DESCRIPTION, "look at the disk")
        return graph


def _made_for_now(key: str, write: Callable[[Path], dict[str, Any]]) -> KeptGraph:
    try:
        above = Path(tempfile.mkdtemp(prefix="rnnreranker-graph-"))
        atexit.register(_forget, above, os.getpid())
        folder = above / key
        folder.mkdir()
        _write(folder, write)
        graph = graph_in(folder, DESCRIPTION, "look at the disk")
    except (InputError, OSError) as error:
        raise InputError(
            f"the encoder's graph, which computes its vectors, cannot be written in {_path(key).parent} nor in the "
            f"folder for temporary files ({_reason(error)}); make room there, or name others by RNNRERANKER_HOME or "
            "TMPDIR"
        ) from None
    _unkept[key] = folder
    return graph


def _write(folder: Path, write: Callable[[Path], dict[str, Any]]) -> None:
    about = write(folder)
    digests = {name: file_digest(folder / name) for name in FILES}
    write_json(folder / DESCRIPTION, {**about, "sha256": digests})


def _forget(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not one that was forked from it
        shutil.rmtree(folder, ignore_errors=True)


def _reason(error: InputError | OSError) -> str:
    return str(error) if isinstance(error, InputError) else f"{error.filename or 'a file'}: {error.strerror or error}"


def _path(key: str) -> Path:
    return cache_home() / FOLDER / key


def _make_room(newest: Path) -> None:
    """Remove the graphs that were not used for longest, where all take more than `MOST`; never the newest."""
    others = sorted((one for one in newest.parent.iterdir() if one != newest and one.is_dir()), key=_used, reverse=True)
    total = _size(newest)
    for folder in others:
        total += _size(folder)
        if total > MOST:
            shutil.rmtree(folder, ignore_errors=True)


def _used(folder: Path) -> float:
    return folder.stat().st_mtime


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())
