"""Reciprocal nearest neighbour reranking and soft relevance labels for dense retrieval.

The public names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from rnnreranker.base.process import interrupts

interrupts.install_for(__name__)  # before all else, so that a command can be interrupted while it starts

from rnnreranker.base.process import memory  # noqa: E402

memory.check_for(__name__)

import os  # noqa: E402
from typing import TYPE_CHECKING  # noqa: E402

from rnnreranker._version import __version__ as __version__  # noqa: E402
from rnnreranker.base.late_names import late_names  # noqa: E402

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # or ONNX Runtime keeps an id in the temporary folder, and reports

if TYPE_CHECKING:
    from rnnreranker.adapters import RnnSearcher
    from rnnreranker.base.errors import InputError, MissingDependencyError, RnnrerankerError, UnavailableError
    from rnnreranker.evaluate.library import evaluate_run
    from rnnreranker.labels import LabelParams, SoftLabels, smooth_labels
    from rnnreranker.labels.make import make_labels
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.parts.neighbours import NeighbourGraph, open_neighbours
    from rnnreranker.parts.terms.word_weights import label_distribution
    from rnnreranker.parts.vectors import QueryVectors, VectorSource, open_vectors
    from rnnreranker.rnn import RnnParams, jaccard_similarity, maxsim, rnn_similarity
    from rnnreranker.rnn.hits import rerank_hits
    from rnnreranker.runs import Run
    from rnnreranker.search.building import build_index
    from rnnreranker.search.opened import Index, open_index
    from rnnreranker.train.training import train_model

_HOMES = {
    "Index": "search.opened",
    "InputError": "base.errors",
    "LabelParams": "labels",
    "MissingDependencyError": "base.errors",
    "NeighbourGraph": "parts.neighbours",
    "QueryVectors": "parts.vectors",
    "RnnParams": "rnn",
    "RnnReranker": "methods.rerank",
    "RnnSearcher": "adapters",
    "RnnrerankerError": "base.errors",
    "Run": "runs",
    "SoftLabels": "labels",
    "UnavailableError": "base.errors",
    "VectorSource": "parts.vectors",
    "build_index": "search.building",
    "evaluate_run": "evaluate.library",
    "jaccard_similarity": "rnn",
    "label_distribution": "parts.terms.word_weights",
    "make_labels": "labels.make",
    "maxsim": "rnn",
    "open_index": "search.opened",
    "open_neighbours": "parts.neighbours",
    "open_vectors": "parts.vectors",
    "rerank_hits": "rnn.hits",
    "rnn_similarity": "rnn",
    "smooth_labels": "labels",
    "train_model": "train.training",
}

__all__ = [
    "Index",
    "InputError",
    "LabelParams",
    "MissingDependencyError",
    "NeighbourGraph",
    "QueryVectors",
    "RnnParams",
    "RnnReranker",
    "RnnSearcher",
    "RnnrerankerError",
    "Run",
    "SoftLabels",
    "UnavailableError",
    "VectorSource",
    "build_index",
    "evaluate_run",
    "jaccard_similarity",
    "label_distribution",
    "make_labels",
    "maxsim",
    "open_index",
    "open_neighbours",
    "open_vectors",
    "rerank_hits",
    "rnn_similarity",
    "smooth_labels",
    "train_model",
]

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
