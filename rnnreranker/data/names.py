"""What a name given to a command stands for: a file, something built in, or an ir_datasets id."""

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
    """The lines of some files of the built-in collection, one file after the other, numbered from 1."""
    folder = resources.files("rnnreranker.data").joinpath("pydoc_files")
    contents = ((name, folder.joinpath(name).read_bytes()) for name in names)
    text = b"".join(gzip.decompress(content) if name.endswith(".gz") else content for name, content in contents)
    return enumerate(text.decode().split("\n"), 1)


def collections_home() -> Path:
    """Where one puts collections that are not downloaded here: RNNRERANKER_COLLECTIONS, else `data` in the cache."""
    named = os.environ.get("RNNRERANKER_COLLECTIONS")
    return Path(named).expanduser() if named else cache_home() / "data"


def is_path(name: str) -> bool:
    """Whether `name` is written like a path rather than like the name of a data set."""
    return name.endswith(FILE_ENDINGS) or name.startswith((".", "/", "~"))


def is_there(name: str) -> bool:
    """Whether a file, or a pipe, stands at `name`."""
    path = os.path.expanduser(name)
    return os.path.exists(path) and not os.path.isdir(path)


def is_file(name: str, what: str) -> bool:
    """Whether `name` is a file, or a pipe, rather than the name of a data set.

    Raises:
        InputError: when it is written like a path but nothing is there.
    """
    if is_there(name):
        return True
    if is_path(name):
        kind = "is a folder" if Path(name).expanduser().is_dir() else "no such file"
        raise InputError(f"{name}: {kind}; expected a {what} file or the name of a data set")
    return False


def left_out(name: str) -> tuple[str, list[str]]:
    """The name of topics or judgements, and of the topics whose queries are left out of it; a file is itself.

    >>> left_out("msmarco-passage/dev/judged:without:msmarco-dev-small:without:dl19")
    ('msmarco-passage/dev/judged', ['msmarco-dev-small', 'dl19'])
    >>> left_out("collections/mine:train:without:collections/mine:test")
    ('collections/mine:train', ['collections/mine:test'])
    """
    if is_there(name):
        return name, []
    first, *others = name.split(WITHOUT)
    return first, others
