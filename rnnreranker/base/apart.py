"""No command writes over its inputs: all paths of a command are compared before any work."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import KINDS, names

# Arguments of commands and functions: those that are written, and those that may read a path, also within a written
# form. tests/test_overwriting.py fails where one is in neither.
_WRITTEN = """output json explain_output tsv qrels_output listwise plots record storage work
    docs_folder"""
_READ = """index bm25_index from_index append documents topics test_topics validation_topics qrels test_qrels
    validation_qrels truth run runs test_run validation_run encoded_queries encoder preset pairs labels negatives
    neutrality term_scorer collections space read second files names retriever retrieve fuse prf
    expand rerank aggregate method model loss arms first_stages similarity beside filter parts scorer impact_encoder
    token_encoder"""
WRITTEN, READ = frozenset(_WRITTEN.split()), frozenset(_READ.split())


def check_apart(values: Mapping[str, Any], *, replaces: str | os.PathLike[str] | None = None) -> None:
    """Refuse outputs that would replace an input or another output, also through links.

    Args:
        values: arguments by name: paths, lists of paths, written forms; others are ignored.
        replaces: a folder that is written as a whole.

    Raises:
        InputError: an output that is an input or another output, is inside an input folder, or replaces an input.
    """
    inputs = [
        (f"{argument(name)} {path}", path)
        for name, value in values.items()
        if name in READ
        for one in (value if isinstance(value, list | tuple) else [value])
        for path in _paths_in(one)
    ]
    outputs = [
        (argument(name), Path(value).expanduser())
        for name, value in values.items()
        if name in WRITTEN and isinstance(value, str | Path) and os.fspath(value) not in ("", "-")
    ]
    for position, (name, output) in enumerate(outputs):
        for other, path in outputs[:position]:
            if _same(path, output) and not path.is_dir():
                raise InputError(f"{name} {output}: {other} writes this path too; give another name")
        for given, path in inputs:
            if _same(path, output):
                raise InputError(f"{name} {output}: the command reads it ({given}); give another name")
            if _holds(path, output):
                raise InputError(f"{name} {output}: is inside a folder that the command reads ({given}); give another")
    for given, path in inputs if replaces is not None else ():
        if _holds(Path(replaces).expanduser(), path):  # type: ignore[arg-type]
            raise InputError(f"{replaces}: is written as a whole, but {given} is inside it; give another folder")


def _paths_in(value: Any) -> Iterator[Path]:
    """The existing files and folders in the text of an argument, whole or a setting in it."""
    text = str(value) if isinstance(value, os.PathLike) or hasattr(value, "params") else value
    if not isinstance(text, str):
        return
    pieces = [text, text.rpartition(":")[0], *re.split(r'[=,+"]|:without:', text)]  # FOLDER:SPLIT is a folder's split
    for path in [Path(piece).expanduser() for piece in dict.fromkeys(pieces) if piece]:
        if (os.path.isfile(path) or os.path.isdir(path)) and not _is_name(str(path)):
            yield path
            if path.suffix == ".npy" and (beside := path.with_suffix(".ids")).is_file():  # of a matrix of vectors
                yield beside


def _is_name(text: str) -> bool:
    """Whether a text is names of methods, or of the built-in collection, which take precedence over paths."""
    known = {"pydoc"}.union(*map(names, KINDS))
    return known.issuperset(re.split("[+,]", text))


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead, or would lead, to the same file or folder; ignores devices and pipes."""
    if one.exists():
        return (one.is_file() or one.is_dir()) and other.exists() and one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _holds(folder: Path, path: Path) -> bool:
    above = Path(os.path.realpath(path)).parents
    return folder.is_dir() and any(one.exists() and folder.samefile(one) for one in above)
