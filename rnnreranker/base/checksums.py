"""The size and SHA-256 of each file of an index, in `rnnreranker.json`.

Opening an index compares them; a digest is kept while size and times of a file are the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, read_json

DESCRIPTION = "rnnreranker.json"
DOCIDS, TEXTS = "docids", "texts"  # groups of files beside those of the parts; every part needs the docids
AGAIN = "copy the index again, or make it again with python -m rnnreranker.index and --overwrite"
Groups = Mapping[str, Mapping[str, Mapping[str, Any]]]  # group → name of a file in the index → its bytes and sha256


def names_in(folder: Path) -> set[str]:
    """The files in a folder and below, by their names in it; not an index's description, Lucene's lock, hidden ones."""
    files = (path.relative_to(folder) for path in folder.rglob("[!.]*") if path.is_file() and path.name != "write.lock")
    return {path.as_posix() for path in files if str(path) != DESCRIPTION}


def note_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The entries of the description for files just written: name → bytes and sha256."""
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": file_digest(folder / name)} for name in sorted(names)
    }


def check_files(index: Path, *groups: str) -> None:
    """Check that the docids and the files of some parts are unchanged.

    groups: parts of the index, or `TEXTS`. Passes if the description lists no files.

    Raises:
        InputError: a missing or changed file; a description of another form.
    """
    path = index / DESCRIPTION
    described = read_json(path, repair="make the index again") if path.is_file() else {}
    noted = noted_files(described, path) if isinstance(described, dict) else {}  # `describe` says what it is
    if wrong := check_whole(index, {group: noted.get(group, {}) for group in (DOCIDS, *groups)}, known=True):
        raise InputError(f"{wrong[0]}; {AGAIN}")


def check_whole(index: Path, groups: Groups, known: bool = False) -> list[str]:
    """The problems of all changed files of an index; known: take digests that are kept, else read all files."""
    files = sorted(entry for group in groups.values() for entry in group.items())
    return [problem for name, noted in files if (problem := _problem(index / name, noted, known))]


def _problem(path: Path, noted: Mapping[str, Any], known: bool) -> str:
    """The difference of a file from the one that was written, or ""."""
    try:
        size = path.stat().st_size
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror or error}), but was written with the index"
    if not path.is_file() or size != noted["bytes"]:
        return f"{path}: has {size} bytes, but was written with {noted['bytes']}"
    same = file_digest(path, known=known) == noted["sha256"]
    return "" if same else f"{path}: its bytes are not those that were written"


def noted_files(described: Mapping[str, Any], path: Path) -> Groups:
    """The files of a description of an index; empty if it lists none; InputError: entries without bytes and sha256."""
    groups = described.get("files", {})
    with contextlib.suppress(AttributeError, TypeError):  # of a value that is no mapping
        if all({"bytes", "sha256"} == {*noted} for group in groups.values() for noted in group.values()):
            return groups
    raise InputError(f"{path}: files are not noted as this version does, by bytes and sha256; {AGAIN}")
