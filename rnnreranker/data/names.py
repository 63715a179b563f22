"""Names of data: files, built-in collections, ids of ir_datasets."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home

TOPICS = "file (qid<TAB>text), ir_datasets id, or `pydoc`"
QRELS = "judgements: file, ir_datasets id, or `pydoc`"
BUILT_IN = ("pydoc",)  # collections that are made here: `--documents NAME`, `--index NAME`
PYDOC_KINDS = ("paraphrase", "symptom", "name")  # of the topics of `pydoc`
BUILT_IN_TOPICS = {  # name → files in pydoc_files/, one after the other
    "pydoc": tuple(f"{kind}.tsv" for kind in PYDOC_KINDS),
    **{f"pydoc/{kind}": (f"{kind}.tsv",) for kind in PYDOC_KINDS},
    "pydoc/shallow": ("paraphrase.tsv",),
    "pydoc/train": ("train.tsv",),
}
BUILT_IN_QRELS = {
    "pydoc": tuple(f"qrels-{kind}.txt.gz" for kind in PYDOC_KINDS),
    **{f"pydoc/{kind}": (f"qrels-{kind}.txt.gz",) for kind in PYDOC_KINDS},
    "pydoc/shallow": ("qrels-shallow.txt.gz",),  # of the pool of six conditions; what studies on record were tested on
    "pydoc/train": ("train-qrels.txt",),
}

COLLECTIONS = "collections/"  # a name that begins so is of a folder in `collections_home`
WITHOUT = ":without:"  # NAME:without:OTHER: the queries of NAME that OTHER lacks
FILE_ENDINGS = (".tsv", ".txt", ".jsonl", ".json", ".gz", ".qrels", ".csv", ".trec", ".parquet", ".npy")


def built_in_lines(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines of files of the built-in collection, joined and numbered from 1."""
    folder = resources.files("rnnreranker.data").joinpath("pydoc_files")
    contents = ((name, folder.joinpath(name).read_bytes()) for name in names)
    text = b"".join(gzip.decompress(content) if name.endswith(".gz") else content for name, content in contents)
    return enumerate(text.decode().split("\n"), 1)


def collections_home() -> Path:
    """The folder of one's own collections: RNNRERANKER_COLLECTIONS, else `data` in the cache."""
    named = os.environ.get("RNNRERANKER_COLLECTIONS")
    return Path(named).expanduser() if named else cache_home() / "data"


def is_path(name: str) -> bool:
    """Whether a name looks like a path."""
    return name.endswith(FILE_ENDINGS) or name.startswith((".", "/", "~"))


def is_there(name: str) -> bool:
    """Whether `name` is an existing file or pipe."""
    path = os.path.expanduser(name)
    return os.path.exists(path) and not os.path.isdir(path)


def is_file(name: str, what: str) -> bool:
    """Whether `name` is an existing file or pipe.

    Raises:
        InputError: it looks like a path but does not exist.
    """
    if is_there(name):
        return True
    if is_path(name):
        kind = "is a folder" if Path(name).expanduser().is_dir() else "no such file"
        raise InputError(f"{name}: {kind}; expected a {what} file or the name of a data set")
    return False


def left_out(name: str) -> tuple[str, list[str]]:
    """NAME and all OTHERs of `NAME:without:OTHER`; a file is itself.

    >>> left_out("msmarco-passage/dev/judged:without:msmarco-dev-small:without:dl19")
    ('msmarco-passage/dev/judged', ['msmarco-dev-small', 'dl19'])
    >>> left_out("collections/mine:train:without:collections/mine:test")
    ('collections/mine:train', ['collections/mine:test'])
    """
    if is_there(name):
        return name, []
    first, *others = name.split(WITHOUT)
    return first, others
