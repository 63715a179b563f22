"""Help texts that commands share, and the default reranker."""

from __future__ import annotations

FORMATS = ("trec", "msmarco")  # of runs that are written, as in `runs.columns`
INDEX = "folder, `pydoc`, or a prebuilt index of Pyserini"
ENCODED = "query vectors (.npy), rows as in FILE.ids or the topics"
ENCODER = "of queries: NAME|DIR|hub id[:pooling=cls,…] (default: the index's)"


class Usual(str):
    """A reranker that is dropped if the index lacks its inputs."""


RNN = Usual("rnn")
