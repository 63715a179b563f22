"""A term scorer as a teacher of a study: trained on the training queries of a task, for the labels of LE-BS."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.method import Inputs
from rnnreranker.encode.words.scorer import load_term_scorer
from rnnreranker.lab.study.tasks import Task
from rnnreranker.labels.methods.base import make_labeler
from rnnreranker.parts.terms.word_weights import SharedWords, Weights, distributions
from rnnreranker.train.models.texts import TermScorerParams, train_term_scorer
from rnnreranker.train.text.term_inputs import term_inputs

if TYPE_CHECKING:
    from rnnreranker.parts.terms.source import TermSource
    from rnnreranker.runs import Run


def weighed_by_scorer(
    encoder: str, source: TermSource, run: Run, task: Task, documents: Mapping[str, str]
) -> dict[str, dict[str, dict[str, float]]]:
    """The weights of the words of all queries of a task and of all documents: `queries` and `documents`, id → weights.

    The scorer learns from the TF-IDF of the training queries' words in their positives, as eq. 4 has it, and is not
    kept. It reads queries as they stand in a file of topics, on one line.

    Raises:
        InputError: as `term_inputs` and `train_term_scorer`.
    """
    positives = task.part(validation=False)
    hard = make_labeler("hard", Inputs()).infer(run, positives)
    topics = {qid: " ".join(task.topics[qid].split()) for qid in hard.qids}
    params = TermScorerParams(texts="queries", seed=task.seed)
    inputs = term_inputs(hard, topics, source, documents, params)
    with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as name:
        folder = Path(name) / "scorer"
        train_term_scorer(inputs, encoder, folder, params, checkpoints=False)
        scorer = load_term_scorer(folder)
        texts = {"queries": task.topics, "documents": documents}
        return {name: dict(zip(own, scorer.weights(list(own.values())), strict=True)) for name, own in texts.items()}


def labels_by_words(
    weights: Mapping[str, Mapping[str, Weights]],
    run: Run,
    positives: Mapping[str, set[str]],
    shared: SharedWords,
) -> dict[str, dict[str, float]]:
    """Query → docid → d of paper 004's eq. 5, of the candidates of a run and the positives.

    weights: of `weighed_by_scorer`; shared: how the weights of shared words become d.
    """
    labels_of = {}
    for qid, own in positives.items():
        docids = list(dict.fromkeys([*(run.ranked(qid) if qid in run else ()), *sorted(own)]))
        scores, _ = distributions(weights["queries"][qid], [weights["documents"][docid] for docid in docids], shared)
        labels_of[qid] = dict(zip(docids, scores.astype(np.float32).tolist(), strict=True))
    return labels_of
