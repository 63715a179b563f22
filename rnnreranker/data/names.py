"""Names of data and the help of their flags: files, built-in collections, short names of ir_datasets' ids."""

from __future__ import annotations

import os
from pathlib import Path

from rnnreranker.base.errors import InputError

TOPICS = "file (qid<TAB>text), ir_datasets id, or `pydoc`"
QRELS = "judgements: file, ir_datasets id, or `pydoc`"
INDEX = "folder, `pydoc`, or a prebuilt index of Pyserini"
ENCODED = "query vectors (.npy), rows as in FILE.ids or the topics"
ENCODER = "of queries: NAME|DIR|hub id[:pooling=cls,…] (default: the index's)"
BUILT_IN = ("pydoc",)  # collections that are made here: `--documents NAME`, `--index NAME`
PYDOC_FILES = Path(__file__).with_name("pydoc_files")
PYDOC_KINDS = ("paraphrase", "symptom", "name")  # of the topics of `pydoc`
_OF_KINDS = {f"pydoc/{kind}": [(f"{kind}.tsv", f"qrels-{kind}.txt.gz")] for kind in PYDOC_KINDS}
BUILT_IN_TOPICS = {  # name → pairs of files in PYDOC_FILES, topics and judgements; the pairs are joined
    "pydoc": [files for of_kind in _OF_KINDS.values() for files in of_kind],
    **_OF_KINDS,
    # the pool of six conditions, which studies on record are tested on
    "pydoc/shallow": [("paraphrase.tsv", "qrels-shallow.txt.gz")],
    "pydoc/train": [("train.tsv", "train-qrels.txt")],
}
SHORT_NAMES = {
    "msmarco-v1-passage": "msmarco-passage",
    "msmarco-v1-document": "msmarco-document",
    "msmarco-v2-passage": "msmarco-passage-v2",
    "msmarco-v2-document": "msmarco-document-v2",
    "msmarco-dev": "msmarco-passage/dev/judged",
    "msmarco-dev-small": "msmarco-passage/dev/small",
    "msmarco-document-dev": "msmarco-document/dev",
    "msmarco-v2-dev1": "msmarco-passage-v2/dev1",
    "msmarco-v2-dev2": "msmarco-passage-v2/dev2",
    "msmarco-v2-document-dev1": "msmarco-document-v2/dev1",
    "msmarco-v2-document-dev2": "msmarco-document-v2/dev2",
    "dl19": "msmarco-passage/trec-dl-2019/judged",
    "dl20": "msmarco-passage/trec-dl-2020/judged",
    "dl19-passage": "msmarco-passage/trec-dl-2019/judged",
    "dl20-passage": "msmarco-passage/trec-dl-2020/judged",
    "dl19-document": "msmarco-document/trec-dl-2019/judged",
    "dl20-document": "msmarco-document/trec-dl-2020/judged",
    "dl21-passage": "msmarco-passage-v2/trec-dl-2021/judged",
    "dl21-document": "msmarco-document-v2/trec-dl-2021/judged",
    "scifact": "beir/scifact/test",
}
COLLECTIONS = "collections/"  # a name that begins so is of a folder in `local.collections_home`
WITHOUT = ":without:"  # NAME:without:OTHER: the queries of NAME that OTHER lacks
FILE_ENDINGS = (".tsv", ".txt", ".jsonl", ".json", ".gz", ".qrels", ".csv", ".trec", ".parquet", ".npy")


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
    if not is_there(name) and is_path(name):
        kind = "is a folder" if Path(name).expanduser().is_dir() else "no such file"
        raise InputError(f"{name}: {kind}; expected a {what} file or the name of a data set")
    return is_there(name)


def left_out(name: str) -> tuple[str, list[str]]:
    """NAME and all OTHERs of `NAME:without:OTHER`; a file is itself.

    >>> left_out("msmarco-passage/dev/judged:without:msmarco-dev-small:without:dl19")
    ('msmarco-passage/dev/judged', ['msmarco-dev-small', 'dl19'])
    """
    if is_there(name):
        return name, []
    first, *others = name.split(WITHOUT)
    return first, others
