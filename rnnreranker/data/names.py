"""What a name given to a command stands for: a file, something built in, or an ir_datasets id."""

from __future__ import annotations

import os
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home

BUILT_IN = ("pydoc",)  # collections that are made here: `--documents NAME`, `--index NAME`
BUILT_IN_TOPICS = {
    "pydoc": "pydoc_files/topics.tsv",
    "pydoc/symptom": "pydoc_files/symptom.tsv",  # not judged
    "pydoc/name": "pydoc_files/name.tsv",  # not judged
    "pydoc/train": "pydoc_files/train.tsv",
}
BUILT_IN_QRELS = {"pydoc": "pydoc_files/qrels.txt", "pydoc/train": "pydoc_files/train-qrels.txt"}

COLLECTIONS = "collections/"  # a name that begins so is of a folder in `collections_home`
WITHOUT = ":without:"  # NAME:without:OTHER: the queries of NAME that OTHER lacks
FILE_ENDINGS = (".tsv", ".txt", ".jsonl", ".json", ".gz", ".qrels", ".csv", ".trec")


def collections_home() -> Path:
    """Where one puts collections that are not downloaded here: RNNRERANKER_COLLECTIONS, else `data` in the cache."""
    named = os.environ.get("RNNRERANKER_COLLECTIONS")
    return Path(named).expanduser() if named else cache_home() / "data"


def is_path(name: str) -> bool:
    """Whether `name` is written like a path rather than like the name of a data set."""
    return name.endswith(FILE_ENDINGS) or name.startswith((".", "/", "~"))


def is_file(name: str, what: str) -> bool:
    """Whether `name` is a file rather than the name of a data set.

    Raises:
        InputError: when it is written like a path but nothing is there.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return True
    if is_path(name):
        kind = "is a folder" if path.is_dir() else "no such file"
        raise InputError(f"{name}: {kind}; expected a {what} file or the name of a data set")
    return False


def left_out(name: str) -> tuple[str, list[str]]:
    """The name of topics or judgements, and of the topics whose queries are left out of it; a file is itself.

    >>> left_out("msmarco-passage/dev/judged:without:msmarco-dev-small:without:dl19")
    ('msmarco-passage/dev/judged', ['msmarco-dev-small', 'dl19'])
    >>> left_out("collections/mine:train:without:collections/mine:test")
    ('collections/mine:train', ['collections/mine:test'])
    """
    if os.path.isfile(os.path.expanduser(name)):
        return name, []
    first, *others = name.split(WITHOUT)
    return first, others
