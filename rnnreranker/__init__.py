"""Reciprocal nearest neighbour reranking and soft relevance labels for dense retrieval.

The public names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rnnreranker._version import __version__ as __version__
from rnnreranker.base import late_names

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # or ONNX Runtime keeps an id in the temporary folder, and reports

if TYPE_CHECKING:
    from rnnreranker.adapters import RnnSearcher as RnnSearcher
    from rnnreranker.base.errors import InputError as InputError
    from rnnreranker.base.errors import MissingDependencyError as MissingDependencyError
    from rnnreranker.base.errors import RnnrerankerError as RnnrerankerError
    from rnnreranker.base.errors import UnavailableError as UnavailableError
    from rnnreranker.evaluate.evaluating import evaluate_run as evaluate_run
    from rnnreranker.experiment import run_experiment as run_experiment
    from rnnreranker.index.opening import Index as Index
    from rnnreranker.index.opening import build_index as build_index
    from rnnreranker.index.opening import open_index as open_index
    from rnnreranker.labels import LabelParams as LabelParams
    from rnnreranker.labels import SoftLabels as SoftLabels
    from rnnreranker.labels import smooth_labels as smooth_labels
    from rnnreranker.labels.make import make_labels as make_labels
    from rnnreranker.methods.rerank.rnn import RnnReranker as RnnReranker
    from rnnreranker.parts.neighbours import NeighbourGraph as NeighbourGraph
    from rnnreranker.parts.neighbours import open_neighbours as open_neighbours
    from rnnreranker.parts.postings.word_weights import label_distribution as label_distribution
    from rnnreranker.parts.vectors import QueryVectors as QueryVectors
    from rnnreranker.parts.vectors import VectorSource as VectorSource
    from rnnreranker.parts.vectors import open_vectors as open_vectors
    from rnnreranker.rnn import RnnParams as RnnParams
    from rnnreranker.rnn import jaccard_similarity as jaccard_similarity
    from rnnreranker.rnn import rnn_similarity as rnn_similarity
    from rnnreranker.rnn import warm_up as warm_up
    from rnnreranker.rnn.hits import rerank_hits as rerank_hits
    from rnnreranker.rnn.maxsim import maxsim as maxsim
    from rnnreranker.runs import Run as Run
    from rnnreranker.search.searching import search_index as search_index
    from rnnreranker.train.request import train_model as train_model

__getattr__, __dir__ = late_names(__name__)
