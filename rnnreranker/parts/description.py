"""`rnnreranker.json` of an index: what it was made from, and what its parts say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.checksums import DESCRIPTION, noted_files
from rnnreranker.base.files.json_files import read_json

SCHEMA = 2  # of the layout of the file


def describe(index: Path) -> dict[str, Any]:
    """What `rnnreranker.json` in an index folder says; empty when there is none.

    `parts` holds a mapping for each part; `files` is empty where they are not noted.

    Raises:
        InputError: a file that is not a JSON object, or one of another schema or form.
    """
    path = index / DESCRIPTION
    if not path.is_file():
        return {}
    described = read_json(path, repair="make the index again")
    if not isinstance(described, dict):
        raise InputError(f"{path}: expected a JSON object; make the index again")
    if (schema := described.get("schema")) != SCHEMA:
        raise InputError(f"{path}: schema {schema!r}; this version reads schema {SCHEMA}; make the index again")
    about = {"parts": None, "inputs": {}, "versions": {}, **described}
    parts = about["parts"]
    if not all(isinstance(one, dict) for one in (parts, about["inputs"], about["versions"])) or not all(
        isinstance(one, dict) for one in parts.values()
    ):
        raise InputError(f"{path}: parts, inputs and versions are no objects of objects; make the index again")
    return {**about, "files": noted_files(about, path)}
