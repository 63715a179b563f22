"""A term scorer as a teacher of a study: trained on the training queries of a task, for the labels of LE-BS."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.labels.methods.base import make_labeler
from rnnreranker.method import Inputs, find, make_params
from rnnreranker.study.tasks import Task

if TYPE_CHECKING:
    from rnnreranker.runs import Run


def weighed_by_scorer(
    encoder: str, index: str, run: Run, task: Task, documents: Mapping[str, str], depth: int
) -> dict[str, dict[str, float]]:
    """Query → docid → d of paper 004's eq. 5, of the candidates of a run and the positives.

    The scorer learns from the TF-IDF of the training queries' words and of their positives', and is not kept.

    Args:
        encoder: what it begins as; index: with counted words and texts.
        run: candidates of the training queries; task: whose they are.
        documents: docid → text; depth: of the run.
    """
    positives = task.part(validation=False)
    hard = make_labeler("hard", Inputs()).infer(run, positives)
    with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as name:
        folder = Path(name)
        hard.write(folder / "labels.parquet")
        lines = (f"{qid}\t{' '.join(task.topics[qid].split())}\n" for qid in hard.qids)
        (folder / "topics.tsv").write_text("".join(lines), encoding="utf-8")
        args = argparse.Namespace(
            labels=str(folder / "labels.parquet"),
            topics=str(folder / "topics.tsv"),
            index=index,
            documents=None,
            encoder=encoder,
            output=str(folder / "scorer"),
            checkpoints=False,
        )
        kind = find("trained-model", "term-scorer")
        kind().train(args, kind.Params(seed=task.seed), find("loss", "kl").Params(), "cpu")
        values = {"weights": "scorer", "scorer": args.output, "context": depth + len(positives)}
        inputs = Inputs(topics=task.topics, texts=documents)
        labeler = make_labeler("term-weight", inputs, make_params("labeler", "term-weight", values), threads=1)
        return {
            one.qid: dict(zip(one.docids, one.scores.tolist(), strict=True)) for one in labeler.infer(run, positives)
        }
