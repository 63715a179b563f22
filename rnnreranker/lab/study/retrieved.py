"""First stages that a study retrieves by itself, and what they say of the candidates of another."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rnnreranker.base.chosen_method import Chosen
from rnnreranker.base.device import Devices
from rnnreranker.base.method import Inputs

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

DEPTH = 1000  # of the runs that are fused


@functools.cache
def opened(name: str) -> IndexOnDisk:
    """The index of a name, whose parts every trial of a process reads."""
    from rnnreranker.index.opening import open_index

    return open_index(name)


def inputs_of(
    index: IndexOnDisk, topics: Mapping[str, str], queries: QueryVectors | None, devices: Devices | None = None
) -> Inputs:
    """What retrievers and labelers read of an index, opened when they ask for it."""
    from rnnreranker.search.inputs import of_index

    return Inputs(**of_index(index, topics, 1, devices), topics=topics, query_vectors=queries)


def retrieved(chosen: Chosen, inputs: Inputs, hits: int, threads: int) -> Run:
    """The run of a retriever."""
    retriever = chosen.method(inputs, chosen.params, threads=threads)
    retriever.check()
    run: Run = retriever.retrieve(hits)
    return run


def fused_scores(run: Run, runs: Sequence[Run]) -> Run:
    """The candidates of a run with their scores in the fusion (RRF) of it with other runs."""
    from rnnreranker.runs import Run
    from rnnreranker.runs.fuse import fuse

    fused, own = fuse([run, *runs]).to_dict(), run.to_dict()
    return Run.from_dict({qid: {docid: fused[qid][docid] for docid in scores} for qid, scores in own.items()})
