"""What commands say of the arguments that they share, and the reranking where nobody says another."""

from __future__ import annotations

INDEX = "folder, `pydoc`, or a prebuilt index of Pyserini"
ENCODED = "query vectors (.npy), rows as in FILE.ids or the topics"
ENCODER = "of queries: NAME|DIR|hub id[:pooling=cls,…] (default: the index's)"


class Usual(str):
    """A reranker that is left out where the index has nothing for it."""


RNN = Usual("rnn")
