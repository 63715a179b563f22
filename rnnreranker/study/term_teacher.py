"""A term scorer as a teacher of a study: trained on the training queries of a task, for the labels of LE-BS."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.labels.methods.base import make_labeler
from rnnreranker.method import Inputs
from rnnreranker.study.tasks import Task
from rnnreranker.terms.term_scorer import load_term_scorer
from rnnreranker.terms.word_weights import distributions
from rnnreranker.train.models.term_scorer import train_term_scorer
from rnnreranker.train.term_inputs import term_inputs
from rnnreranker.train.term_params import TermScorerParams

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.terms.term_source import TermSource


def weighed_by_scorer(
    encoder: str, source: TermSource, run: Run, task: Task, documents: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """Query → docid → d of paper 004's eq. 5, of the candidates of a run and the positives.

    The scorer learns the TF-IDF of the training queries' words (eq. 4), and is not kept. It reads queries as they stand
    in a file of topics, on one line.

    Args:
        encoder: what it begins as; source: counted words of the collection.
        run: candidates of the training queries; task: whose they are.
        documents: docid → text.

    Raises:
        InputError: as `term_inputs` and `train_term_scorer`.
    """
    positives = task.part(validation=False)
    hard = make_labeler("hard", Inputs()).infer(run, positives)
    topics = {qid: " ".join(task.topics[qid].split()) for qid in hard.qids}
    params = TermScorerParams(seed=task.seed)
    inputs = term_inputs(hard, topics, source, documents, params)
    with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as name:
        folder = Path(name) / "scorer"
        train_term_scorer(inputs, encoder, folder, params, checkpoints=False)
        scorer, found = load_term_scorer(folder), {}
        for one in hard:
            query, *others = scorer.weights([task.topics[one.qid], *(documents[docid] for docid in one.docids)])
            scores, _ = distributions(query, others)
            found[one.qid] = dict(zip(one.docids, scores.astype(np.float32).tolist(), strict=True))
    return found
