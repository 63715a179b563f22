"""Graphs of encoders in the home folder: each is made once a machine, and looked at before it is used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.command import say
from rnnreranker.errors import InputError, MissingDependencyError
from rnnreranker.files import cache_home, file_digest, fingerprint, folder_written_whole, write_json
from rnnreranker.files.json_files import read_json
from rnnreranker.locks import alone

FOLDER = "graphs"
GRAPH, WEIGHTS, TOKENIZER, DESCRIPTION = "model.onnx", "model.onnx.data", "tokenizer.json", "graph.json"
FILES = (GRAPH, WEIGHTS, TOKENIZER)
FORM = 1  # of graphs: another number has them made again
MOST = 4 * 10**9  # bytes of all graphs; beyond it those go that were not used for longest


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
    folder = _place(key)
    if not folder.is_dir():
        return None
    try:
        found = graph_in(folder, DESCRIPTION, "it is made again")
    except InputError as error:
        say(f"{error}")
        return None
    with suppress(OSError):  # of the last use, for `_make_room`
        os.utime(folder)
    return found


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

    Args:
        write: makes `FILES` in a folder, and says what is to know about them.

    Raises:
        Refused: as `write` does, or as the home folder cannot be written.
    """
    try:
        with alone(_place(key), f"{_place(key)}: another process is making this graph; waiting for it"):
            if (found := kept_graph(key)) is None:
                with folder_written_whole(_place(key)) as folder:
                    about = write(folder)
                    digests = {name: file_digest(folder / name) for name in FILES}
                    write_json(folder / DESCRIPTION, {**about, "sha256": digests})
                _make_room(_place(key))
                found = graph_in(_place(key), DESCRIPTION, "look at the disk")
            return found
    except InputError as error:
        raise Refused(str(error)) from None
    except MissingDependencyError as error:
        raise Refused(str(error)) from None


def _place(key: str) -> Path:
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
